"""Compares what a stream holds in the end with what its writers were told; pure rules.

Law: every acknowledged message stands in the stream once, at the acknowledged sequence; what was
refused is not there; what nobody knows about is there once at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scripts.chaos_runs.ledger import Content, Findings, WriterBook
from scripts.chaos_runs.letters import identity_of, split_identity

# A seq of an acknowledgement that is wrong is told for so many messages of a writer.
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """What a stream says of itself at the end of a run.

    Attributes:
        first_seq: First sequence.
        last_seq: Last sequence.
        messages: How many it holds.
    """

    first_seq: int
    last_seq: int
    messages: int


def audit(
    held: Mapping[int, int],
    end: StreamEnd,
    books: Sequence[WriterBook],
    content: Content,
    findings: Findings,
) -> None:
    """Compare the stream with the books.

    Args:
        held: Identity by sequence, as read at the end.
        end: What the stream says of itself.
        books: What the writers were told.
        content: What the readers saw during the run.
        findings: Where a broken promise is written down.
    """
    if len(held) != end.messages:
        findings.add("content", f"the stream has {end.messages} messages, {len(held)} were read")
    _compare_with_readers(held, end, content, findings)
    places: dict[int, list[int]] = {}
    for sequence, identity in held.items():
        places.setdefault(identity, []).append(sequence)
    for book in books:
        _audit_writer(book, places, findings)
        if book.keeps_order:
            _audit_order(book, findings)
    numbers = {book.index: book.count for book in books}
    for identity, sequences in places.items():
        writer, number = split_identity(identity)
        if not 0 < number <= numbers.get(writer, 0):
            findings.add("content", f"{writer}-{number} at {sequences} was never sent")


def _compare_with_readers(
    held: Mapping[int, int], end: StreamEnd, content: Content, findings: Findings
) -> None:
    """Whoever was given a message saw what is still there: a stream takes nothing back."""
    for sequence in range(1, content.capacity + 1):
        seen = content.identity(sequence)
        if seen and held.get(sequence) != seen:
            now = held.get(sequence)
            what = split_identity(now) if now is not None else "not there"
            findings.add(
                "content",
                f"sequence {sequence} was read as {split_identity(seen)}, and is {what} in the end "
                f"({end.first_seq} to {end.last_seq})",
            )


def _audit_writer(book: WriterBook, places: Mapping[int, list[int]], findings: Findings) -> None:
    told = 0
    for number in range(1, book.count + 1):
        outcome = book.outcome(number)
        found = places.get(identity_of(book.index, number), [])
        problem = ""
        if outcome == "open":
            problem = "never ended"
        elif outcome == "acked" and found != [book.sequence(number)]:
            problem = f"acknowledged at {book.sequence(number)}, found at {found or 'no sequence'}"
        elif outcome == "refused" and found:
            problem = f"refused, found at {found}"
        elif outcome == "unknown" and len(found) > 1:
            problem = f"of unknown fate, found at {found}"
        if problem and told < _EXAMPLES:
            told += 1
            findings.add("acknowledged", f"{book.name}: message {number}: {problem}")


def _audit_order(book: WriterBook, findings: Findings) -> None:
    """What failed is left out: a late copy of it may be stored behind what came after it."""
    last, last_number = 0, 0
    for number in range(1, book.count + 1):
        if book.outcome(number) != "acked":
            continue
        sequence = book.sequence(number)
        if sequence <= last:
            findings.add(
                "order kept",
                f"{book.name}: message {number} stands at {sequence}, "
                f"{last_number} before it at {last}",
            )
            return
        last, last_number = sequence, number
