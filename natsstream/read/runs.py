"""Messages that arrived together, with the numbers that the consumer gave them; pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from natsstream.api.message import Message, messages_below

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Run(Generic[Item]):
    """Messages that arrived together.

    Attributes:
        items: The messages or columns, without hidden ones.
        count: Number of messages, hidden ones included.
        size: Bytes that they hold in memory, about.
        first: First sequence.
        last: Last sequence.
        first_delivery: The consumer's number of the first.
        pending: Messages that the consumer still had after the last.
        sequences: Returns all of the sequences.
        hidden: The sequences of messages that are not among the items: control records.
    """

    items: Item
    count: int
    size: int
    first: int
    last: int
    first_delivery: int
    pending: int
    sequences: Callable[[], Sequence[int]]
    hidden: Sequence[int] = ()


def run_of(
    messages: list[Message], *, size: int, first_delivery: int, pending: int
) -> Run[list[Message]]:
    """Return messages that stand behind each other in a consumer as a run."""
    return Run(
        messages,
        len(messages),
        size,
        messages[0].sequence,
        messages[-1].sequence,
        first_delivery,
        pending,
        lambda: [message.sequence for message in messages],
    )


def hide(run: Run[list[Message]], start: bytes) -> Run[list[Message]]:
    """Return a run without the messages whose subjects begin with some bytes."""
    hidden = messages_below(run.items, start)
    if not hidden:
        return run
    left_out = set(hidden)
    shown = [message for message in run.items if message not in left_out]
    return replace(run, items=shown, hidden=[message.sequence for message in hidden])


def split_run(run: Run[list[Message]], last: int) -> tuple[Run[list[Message]], Run[list[Message]]]:
    """Cut a run in two behind a sequence, which lies between its first and its last one."""
    at = bisect_right(run.sequences(), last)
    before, after, later = run.items[:at], run.items[at:], run.first_delivery + at
    size = run.size * at // run.count
    return (
        run_of(
            before,
            size=size,
            first_delivery=run.first_delivery,
            pending=run.pending + len(after),
        ),
        run_of(after, size=run.size - size, first_delivery=later, pending=run.pending),
    )
