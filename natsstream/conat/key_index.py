"""The newest message of each key of a core stream.

Law: `newest` has the tombstones too, `live` only keys that have a value, in the order in which the
keys came.
"""

from __future__ import annotations

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
        # Older messages that are still stored: other clients write keys without a rollup.
        self._older: dict[str, list[int]] = {}

    def add(self, subject: str, seq: int, *, is_tombstone: bool) -> None:
        """Add a key's message; an older one does not change what the key has."""
        held = self.newest.get(subject)
        if held is not None and held > seq:
            self._older.setdefault(subject, []).append(seq)
            return
        if held is not None:
            self._older.setdefault(subject, []).append(held)
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
        gone = [each for each in self._older.pop(subject, []) if each < seq]
        held = self.newest.get(subject)
        if held is not None and held < seq:
            # `live` keeps the key's place for the message to come.
            del self.newest[subject]
            gone.append(held)
        return gone

    def remove(self, record: Record) -> int | None:
        """Forget a message; return the older one that is the key's newest now, None for none."""
        subject, seq = record.key_subject, record.seq
        older = self._older.get(subject, [])
        if self.newest.get(subject) != seq:
            if seq in older:
                older.remove(seq)
            return None
        del self.newest[subject]
        self.live.pop(subject, None)
        if not older:
            return None
        newest = max(older)
        older.remove(newest)
        return newest
