"""When an answer is believed that ends before what the stream has had."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream.read import leader_reads
from natsstream.read.leader_reads import LeaderReads
from natsstream.read.missing import MissingSequences

if TYPE_CHECKING:
    from natsstream.api.stream_info import StreamInfo

BELIEVED_S = 12.0


class Asked:
    """Answers of a stream's leader at moments of a clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        clock = SimpleNamespace(get_running_loop=lambda: SimpleNamespace(time=lambda: self.now))
        monkeypatch.setattr(leader_reads, "asyncio", clock)
        missing = MissingSequences()
        self._leader = LeaderReads(cast("Any", None), "S", (), missing=missing, created_ns=None)

    def is_believed(self, last_seq: int, *, after_s: float, replicas: int = 3) -> bool:
        self.now += after_s
        state, config = SimpleNamespace(last_seq=last_seq), SimpleNamespace(replicas=replicas)
        info = cast("StreamInfo", SimpleNamespace(state=state, config=config))
        return self._leader.is_believed(info, 10)


def test_short_answer_of_a_single_server_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Asked(monkeypatch).is_believed(9, after_s=0, replicas=1)


def test_short_answers_in_a_row_are_believed_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    answers = [asked.is_believed(9, after_s=1) for _ in range(int(BELIEVED_S) + 1)]

    assert answers == [False] * int(BELIEVED_S) + [True]


def test_answer_that_is_long_enough_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch)
    assert not asked.is_believed(9, after_s=1)
    assert asked.is_believed(10, after_s=2)

    assert not asked.is_believed(9, after_s=BELIEVED_S)


def test_silence_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind an outage the leader may be one that has just come back."""
    asked = Asked(monkeypatch)
    assert not asked.is_believed(9, after_s=1)

    assert not asked.is_believed(9, after_s=3_600)
