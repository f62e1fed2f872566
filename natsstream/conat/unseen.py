"""Values of a key that nobody saw, between two that were seen; pure rules.

Law: gaps are sequences that were gone before they could be seen. The key of one is known only if a
message comes that replaced it.

A message of the live feed comes with the sequence that it replaced. If that is a gap, or the value
that is held, the answer is exact. For a message that was read, or if the held value was gone, any
gap since the key's last seen value counts. A gap counts until the stream itself was compared after
it: what is stored later replaced nothing in it.
"""

from __future__ import annotations

from natsstream.conat.record import Record


class UnseenValues:
    """The gaps of one core stream since it was last compared, and what is known of them.

    Of all gaps only the first and the last one are kept. A sequence between them that is not a gap
    was seen, and a key's last seen sequence is known.
    """

    def __init__(self) -> None:
        self._first = 1
        self._last = 0
        # Per key: the last value that was seen and is gone, and one that came and was not shown.
        self._seen: dict[str, int] = {}
        self._skipped: dict[str, int] = {}

    def add(self, first_seq: int, last_seq: int) -> None:
        """Take note of a gap behind all others; an empty range is none."""
        if last_seq >= first_seq:
            if self._last < self._first:
                self._first = first_seq
            self._last = last_seq

    def skip(self, record: Record) -> None:
        """Take note of a message that came and is not shown, as it is gone already."""
        if record.key_subject:
            self._skipped[record.key_subject] = record.seq

    def removed(self, record: Record) -> None:
        """Take note that a message is gone that was seen."""
        if self._last >= self._first and record.key_subject:
            seen = self._seen.get(record.key_subject, 0)
            self._seen[record.key_subject] = max(seen, record.seq)

    def settle(self, last_seq: int) -> None:
        """Forget the gaps up to a sequence: no message to come has replaced one of them."""
        self._first = max(self._first, last_seq + 1)
        if self._last < self._first:
            self._seen.clear()

    def precede(self, record: Record, seen_seq: int, replaced_seq: int | None) -> bool:
        """Return True if the key of a message to be shown had values before it that nobody saw.

        Args:
            record: The message; it comes behind all gaps.
            seen_seq: The key's newest message that is held; 0 for none.
            replaced_seq: The key's message that it replaced in the stream, 0 for none; None if it
                was read, and nobody told.
        """
        subject = record.key_subject
        if not subject:
            return False
        if replaced_seq is not None and replaced_seq < seen_seq:
            replaced_seq = None  # The held one was gone by then: a value in a gap may have been.
        seen_seq = max(seen_seq, self._seen.pop(subject, 0))
        if self._skipped.pop(subject, 0) > seen_seq:
            return True
        unseen_seq = self._last if replaced_seq is None else replaced_seq
        return max(self._first, seen_seq + 1) <= unseen_seq <= self._last
