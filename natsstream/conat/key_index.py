"""The messages of each key of a core stream, the newest above all.

Law: `newest` has the tombstones too, `live` only keys that have a value, in the order in which the
keys came. Adding and removing a message cost the same however many a key has.
"""

from __future__ import annotations

from itertools import islice

from natsstream.conat.record import Record


class KeyIndex:
    """Sequences by the subject of a key.

    Attributes:
        newest: The sequence of each key's newest message.
        live: The same, without the keys whose newest message is a tombstone.
    """

    def __init__(self) -> None:
        self.newest: dict[str, int] = {}
        self.live: dict[str, int] = {}
        # Older messages that are still stored: other clients write keys without a rollup. The
        # sequences of each key ascend, unless the key is in `_unsorted`.
        self._older: dict[str, dict[int, None]] = {}
        self._unsorted: set[str] = set()

    def add(self, subject: str, seq: int, *, is_tombstone: bool) -> None:
        """Add a key's message; an older one does not change what the key has."""
        held = self.newest.get(subject)
        if held is not None and held > seq:
            older = self._older.setdefault(subject, {})
            if older and next(reversed(older)) > seq:
                self._unsorted.add(subject)
            older[seq] = None
            return
        if held is not None:
            self._older.setdefault(subject, {})[held] = None
        self.newest[subject] = seq
        if is_tombstone:
            self.live.pop(subject, None)
        else:
            self.live[subject] = seq

    def extend(self, keys: dict[str, int]) -> None:
        """Add the messages of new keys, none of which is a tombstone."""
        self.newest.update(keys)
        self.live.update(keys)

    def replaced(self, subject: str, seq: int) -> list[int]:
        """Forget a key's messages before a sequence, and return their sequences."""
        gone = [each for each in self._older.get(subject, ()) if each < seq]
        for each in gone:
            self._forget(subject, each)
        held = self.newest.get(subject)
        if held is not None and held < seq:
            # `live` keeps the key's place for the message to come.
            del self.newest[subject]
            gone.append(held)
        return gone

    def remove(self, record: Record) -> int | None:
        """Forget a message; return the older one that is the key's newest now, None for none."""
        subject, seq = record.key_subject, record.seq
        if self.newest.get(subject) != seq:
            self._forget(subject, seq)
            return None
        del self.newest[subject]
        self.live.pop(subject, None)
        older = self._ascending(subject)
        if not older:
            return None
        newest = next(reversed(older))
        self._forget(subject, newest)
        return newest

    def surplus(self, subject: str, count: int) -> list[int]:
        """Return the oldest messages of a key that leave it so many, or fewer; count is above 0."""
        older = self._ascending(subject)
        held = len(older) + (subject in self.newest)
        return list(islice(older, max(held - count, 0)))

    def _ascending(self, subject: str) -> dict[int, None]:
        """Return the older messages of a key, ascending."""
        older = self._older.get(subject, {})
        if subject in self._unsorted:
            self._unsorted.remove(subject)
            older = self._older[subject] = dict.fromkeys(sorted(older))
        return older

    def _forget(self, subject: str, seq: int) -> None:
        older = self._older.get(subject)
        if older is not None:
            older.pop(seq, None)
            if not older:
                del self._older[subject]
                self._unsorted.discard(subject)
