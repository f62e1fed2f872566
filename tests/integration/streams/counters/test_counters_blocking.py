"""Counters and schedules without async."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import Schedule, blocking

if TYPE_CHECKING:
    from natsstream.testing import NatsNode


@pytest.mark.smoke
def test_counting_works_without_async(server: NatsNode, stream_name: str) -> None:
    with blocking.connect(server.url) as js:
        counters = js.counters.ensure(stream_name, subjects=[f"{stream_name}.>"], storage="memory")
        totals = [counters.incr(f"{stream_name}.a", delta) for delta in (1, 10**30)]
        held = js.streams.get(stream_name).counters.get(f"{stream_name}.a")
        listed = [each.value for each in js.counters.list(f"{stream_name}.*")]

    assert totals == [1, 10**30 + 1]
    assert held is not None
    assert [held.value] == listed == [10**30 + 1]


def test_schedules_are_listed_and_ended_without_async(server: NatsNode, stream_name: str) -> None:
    with blocking.connect(server.url) as js:
        stream = js.streams.create(
            stream_name, subjects=[f"{stream_name}.>"], allow_msg_schedules=True, storage="memory"
        )
        schedule = Schedule.every(3600, target=f"{stream_name}.do")
        stream.publish(f"{stream_name}.when", b"", schedule=schedule)
        listed = [each.schedule for each in stream.schedules.list()]
        ended = stream.schedules.cancel(f"{stream_name}.when")

    assert (listed, ended) == ([schedule], True)
