"""Messages that are gone, and that a late message or answer may still bring; pure rules."""

from __future__ import annotations

from natsstream.conat.record import Record
from natsstream.conat.sequence_ranges import SequenceRanges


class Removed:
    """The messages that were removed from one core stream since some moment."""

    def __init__(self) -> None:
        self._ranges = SequenceRanges()
        # Per subject, the newest message that has replaced all before it.
        self._replacing: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._ranges)

    def __contains__(self, record: Record) -> bool:
        return record.seq in self._ranges or record.seq < self._replacing.get(record.key_subject, 0)

    def add(self, first_seq: int, last_seq: int) -> None:
        """Take note of a deletion; both ends are included."""
        self._ranges.add(first_seq, last_seq)

    def replaced_by(self, record: Record) -> None:
        """Take note of a message that has replaced all messages of its subject before it."""
        self._replacing[record.key_subject] = record.seq

    def forget(self, last_seq: int) -> None:
        """Forget the deletions up to a sequence."""
        self._ranges.forget(last_seq)
