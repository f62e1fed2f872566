"""The messages in memory beside a plain sorted list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from natsstream.conat import log as log_module
from natsstream.conat.log import MessageLog
from natsstream.conat.record import Record

SEQS = st.integers(1, 60)


def record(seq: int) -> Record:
    return Record(seq, seq * 10, "k" if seq % 3 else "", b"h", b"x" * (seq % 5))


class LogBesideAList(RuleBasedStateMachine):
    """Every change of a log, with blocks so small that all of them are cut and joined."""

    def __init__(self) -> None:
        super().__init__()
        self.log = MessageLog(block=4)
        self.held: list[Record] = []

    @rule(seq=SEQS)
    def insert(self, seq: int) -> None:
        is_new = record(seq) not in self.held
        assert self.log.insert(record(seq)) is is_new
        self.held = sorted({*self.held, record(seq)})

    @rule(count=st.integers(1, 11))
    def append(self, count: int) -> None:
        first = (self.log.last_seq or 0) + 1
        added = [record(seq) for seq in range(first, first + count)]
        self.log.append_columns(*map(list, zip(*added, strict=True)))
        self.held += added

    @rule(seq=SEQS)
    def remove(self, seq: int) -> None:
        removed = self.log.remove(seq)
        assert removed == (record(seq) if record(seq) in self.held else None)
        self.held = [each for each in self.held if each.seq != seq]

    @rule(first=SEQS, last=SEQS)
    def read_a_range(self, first: int, last: int) -> None:
        wanted = [each for each in self.held if first <= each.seq <= last]
        assert list(self.log.records(first, last)) == wanted

    @rule(seq=SEQS)
    def count_before(self, seq: int) -> None:
        assert self.log.position(seq) == sum(each.seq < seq for each in self.held)
        found = self.log.find(seq)
        assert found == (record(seq) if record(seq) in self.held else None)
        later = [each for each in self.held if each.seq >= seq]
        assert self.log.data_bytes(seq) == (len(later), sum(len(each.data) for each in later))

    @rule(at=st.integers(0, 59))
    def decode(self, at: int) -> None:
        if at < len(self.held):
            assert self.log.value(at, lambda each: [each.seq]) == [self.held[at].seq]
            assert self.log.value(at, lambda _: "again") == [self.held[at].seq]

    @invariant()
    def is_equal(self) -> None:
        assert list(self.log.records()) == self.held
        assert len(self.log) == len(self.held)
        assert [self.log.record(at) for at in range(len(self.held))] == self.held
        assert self.log.sequences() == [each.seq for each in self.held]
        assert self.log.first_seq == (self.held[0].seq if self.held else None)


def test_the_oldest_message_is_found_without_adding_up_the_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full stream removes its oldest message for each new one."""
    log, added_up = MessageLog(block=4), list[int]()
    for seq in range(1, 41):
        log.insert(record(seq))
    accumulate = log_module.accumulate

    def counted(lengths: Iterable[int]) -> Iterator[int]:
        found = list(accumulate(lengths))
        added_up.extend(found)
        return iter(found)

    monkeypatch.setattr(log_module, "accumulate", counted)
    for seq in range(1, 41):
        assert (log.seq(0), log.record(0)) == (seq, record(seq))
        log.remove(seq)

    assert added_up == []
    with pytest.raises(IndexError):
        log.record(0)


TestLogBesideAList = LogBesideAList.TestCase
TestLogBesideAList.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
