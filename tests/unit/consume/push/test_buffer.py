"""The buffer of a push consumer: order, limits, and when the server is answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.parser import Frame
from natsstream.consume.push.buffer import (
    DeliveryCount,
    FlowRequest,
    Heartbeat,
    PushBuffer,
    read_control,
)
from natsstream.errors import ProtocolError


def reply(number: int) -> bytes:
    """Return the ack subject of a delivery."""
    return b"$JS.ACK.S.c.1.%d.%d.1.0" % (number, number)


def control(block: bytes, answer: bytes = b"") -> Frame:
    """Return a frame without a payload."""
    return (b"d", answer, block, b"")


@given(
    st.lists(
        st.one_of(
            st.just("put"), st.just("take"), st.sampled_from(["$JS.FC.a", "$JS.FC.b", "$JS.FC.c"])
        )
    )
)
def test_request_is_answered_when_all_before_it_was_taken(steps: list[str]) -> None:
    """Against a list of everything in order, from whose front messages are taken."""
    inflow = PushBuffer[int](max_count=1_000, max_bytes=1_000)
    line: list[int | str] = []
    answered: list[str] = []
    expected: list[str] = []
    for number, step in enumerate(steps):
        if step == "put":
            assert inflow.queue.put(number, 1)
            line.append(number)
        elif step == "take":
            wanted = line.pop(0) if line else None
            assert inflow.take() == wanted
        else:
            inflow.ask(step)
            if step not in line:
                line.append(step)
        while line and isinstance(line[0], str):
            expected.append(str(line.pop(0)))
        answered += inflow.due()
        assert answered == expected
        assert len(inflow.queue) == sum(isinstance(each, int) for each in line)


def test_request_waits_for_the_reader() -> None:
    inflow = PushBuffer[int](max_count=10, max_bytes=10)
    inflow.queue.put(1, 1)
    inflow.queue.put(2, 1)

    inflow.ask("fc")
    assert inflow.due() == []
    inflow.take()
    assert inflow.due() == []
    inflow.take()
    assert inflow.due() == ["fc"]
    assert inflow.due() == []


def test_request_that_is_repeated_by_heartbeats_is_answered_once() -> None:
    inflow = PushBuffer[int](max_count=10, max_bytes=10)
    inflow.queue.put(1, 1)
    inflow.ask("fc")
    inflow.ask("fc")
    inflow.take()

    assert inflow.due() == ["fc"]


def test_what_does_not_fit_is_dropped_and_counted() -> None:
    inflow = PushBuffer[str](max_count=2, max_bytes=100)

    assert [inflow.queue.put(each, 1) for each in "abc"] == [True, True, False]
    assert (len(inflow.queue), inflow.queue.bytes, inflow.queue.dropped) == (2, 2, 1)
    inflow.take()
    assert inflow.queue.put("d", 99)
    assert not inflow.queue.put("e", 1)
    assert inflow.queue.dropped == 2


def test_message_larger_than_the_limit_is_taken_alone() -> None:
    inflow = PushBuffer[str](max_count=9, max_bytes=10)

    assert inflow.queue.put("large", 11)
    assert not inflow.queue.put("next", 1)
    assert inflow.take() == "large"
    assert inflow.queue.bytes == 0


def test_all_that_waits_is_given_back_without_answers() -> None:
    inflow = PushBuffer[int](max_count=9, max_bytes=10)
    inflow.queue.put(1, 1)
    inflow.ask("fc")
    inflow.queue.put(2, 1)

    assert inflow.take_all() == [1, 2]
    assert (len(inflow.queue), inflow.queue.bytes, inflow.due(), inflow.take()) == (0, 0, [], None)


def test_missing_deliveries_are_counted_once() -> None:
    count = DeliveryCount()
    count.begin(3)

    assert count.add([reply(4), reply(5)]) == 0
    assert count.add([reply(8), reply(9)]) == 2
    assert count.add([reply(10), reply(12)]) == 1
    assert count.hear(12) == 0
    assert count.hear(14) == 2
    assert count.hear(None) == 0
    assert count.add([reply(15)]) == 0
    assert count.missed == 5


def test_consumer_that_counts_again_has_missed_nothing() -> None:
    count = DeliveryCount()
    count.begin(30)

    assert count.add([reply(1), reply(2)]) == 0
    assert count.hear(2) == 0
    assert count.hear(0) == 0
    assert count.add([reply(1)]) == 0
    assert count.missed == 0


def test_reader_that_does_not_know_where_it_begins_misses_nothing_before() -> None:
    count = DeliveryCount()

    assert count.add([reply(9)]) == 0
    assert count.add([reply(11)]) == 1


def test_numbers_that_are_none_change_nothing() -> None:
    count = DeliveryCount()
    count.begin(3)

    with pytest.raises(ProtocolError, match="ack subject"):
        count.add([reply(4), reply(9), b"$JS.ACK.x"])

    assert count.add([reply(4), reply(9)]) == 4
    assert count.missed == 4


def test_controls_are_told_apart_from_anything_else() -> None:
    heartbeat = (
        b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 3\r\nNats-Last-Stream: 3\r\n\r\n"
    )
    stalled = heartbeat[:-2] + b"Nats-Consumer-Stalled: $JS.FC.S.c.x\r\n\r\n"
    request = b"NATS/1.0 100 FlowControl Request\r\n\r\n"

    assert read_control(control(heartbeat)) == Heartbeat(3, "")
    assert read_control(control(stalled)) == Heartbeat(3, "$JS.FC.S.c.x")
    assert read_control(control(request, b"$JS.FC.S.c.y")) == FlowRequest("$JS.FC.S.c.y")
    assert read_control(control(request)) is None
    assert read_control(control(b"NATS/1.0 409 Consumer Deleted\r\n\r\n")) is None
    assert read_control((b"d", b"", b"", b"a stranger's message")) is None
