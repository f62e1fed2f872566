"""The buffered messages of a flow: their order, and what its window counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from natsstream.consume.pull.buffer import MessageBuffer
from natsstream.consume.pull.window import PullWindow

if TYPE_CHECKING:
    from natsstream import DeliveredMessage

WINDOW = 8
RUNS = st.lists(st.integers(1, 10), max_size=6)


def message(number: int, delivered: int = 1) -> DeliveredMessage:
    made = SimpleNamespace(sequence=number, delivered=delivered, wire_bytes=100)
    return cast("DeliveredMessage", made)


def filled(runs: list[int], window: PullWindow) -> MessageBuffer:
    """Return a buffer of messages 0, 1, ..., which arrived in runs."""
    buffer, first = MessageBuffer(window), 0
    for count in runs:
        buffer.add([message(number, number % 3 + 1) for number in range(first, first + count)])
        first += count
    return buffer


def read(buffer: MessageBuffer, count: int | None = None) -> list[int]:
    """Take messages as a reader does; None takes all."""
    found: list[int] = []
    while (buffer.rest or buffer.has_run) and len(found) != count:
        if not buffer.rest:
            buffer.take()
        found.append(buffer.rest.pop().sequence)
    return found


def numbers(messages: list[DeliveredMessage] | MessageBuffer) -> list[int]:
    return [each.sequence for each in messages]


@given(RUNS, st.integers(0, 60))
def test_what_a_reader_leaves_is_put_back_in_its_place(runs: list[int], count: int) -> None:
    window = PullWindow(WINDOW)
    buffer = filled(runs, window)
    taken = read(buffer, count)
    left = numbers(buffer)
    buffer.put_back()
    assert numbers(buffer) == left
    assert len(buffer) == window.waiting == len(left)
    assert window.handed == len(taken)
    assert taken + read(buffer) == [*range(sum(runs))]


@given(RUNS, st.integers(0, 60), st.sampled_from([None, 1, 2, 3, 4]))
def test_messages_that_were_delivered_often_stay(
    runs: list[int], count: int, below: int | None
) -> None:
    window = PullWindow(WINDOW)
    buffer = filled(runs, window)
    read(buffer, count)
    buffer.put_back()
    left = numbers(buffer)
    removed = numbers(buffer.remove(below=below))
    kept = [number for number in left if below is not None and number % 3 + 1 >= below]
    assert removed == [number for number in left if number not in kept]
    assert len(buffer) == window.waiting == len(kept)
    assert read(buffer) == kept


@given(RUNS, st.integers(1, 20))
def test_no_more_is_handed_out_than_was_asked_for(runs: list[int], stop_after: int) -> None:
    window = PullWindow(WINDOW, stop_after=stop_after)
    buffer = filled(runs, window)
    found: list[int] = []
    while buffer.has_run and window.to_hand:
        buffer.take()
        found += [each.sequence for each in reversed(buffer.rest)]
        buffer.rest.clear()
    total = sum(runs)
    assert found == [*range(min(total, stop_after))]
    assert numbers(buffer) == [*range(len(found), total)]


def test_sizes_are_counted_where_the_window_has_bytes() -> None:
    window = PullWindow(WINDOW, max_bytes=400)
    buffer = filled([4], window)
    assert window.want(0) == 0
    read(buffer)
    window.finish()
    assert window.want(0) > 0
