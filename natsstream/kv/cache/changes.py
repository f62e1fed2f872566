"""What changes in a local mirror, for those who want to hear of it; nothing here waits.

Law: who reads slowly gets the newest entry of each key and ends with the same keys. What waits for
a reader is bounded by what the mirror held and holds: a key that came and went is not told.
"""

from __future__ import annotations

import asyncio
from weakref import WeakSet

from natsstream.kv.entry import Entry


class ChangeReader:
    """What one reader has not taken yet.

    Attributes:
        wake: Set when there is something, or the mirror has ended.
    """

    def __init__(self) -> None:
        self.wake: asyncio.Event = asyncio.Event()
        # With each key's newest entry: whether it had a value when the reader was told last.
        self._waiting: dict[str, tuple[Entry, bool]] = {}

    def tell(self, entry: Entry, *, had_value: bool) -> None:
        """Take in a change of a key, which had a value before it or had none."""
        waiting = self._waiting.pop(entry.key, None)
        if waiting is not None:
            had_value = waiting[1]
        if had_value or not entry.is_deleted:
            self._waiting[entry.key] = entry, had_value
            self.wake.set()

    def take(self) -> Entry | None:
        """Return the change that has waited longest; None when there is none."""
        if not self._waiting:
            return None
        return self._waiting.pop(next(iter(self._waiting)))[0]

    def __len__(self) -> int:
        return len(self._waiting)


class Changes:
    """All readers of one mirror."""

    def __init__(self) -> None:
        # One that nobody holds any more reads no more, also if it never began.
        self._readers: WeakSet[ChangeReader] = WeakSet()

    def add(self) -> ChangeReader:
        """Return a reader of what changes from now on."""
        reader = ChangeReader()
        self._readers.add(reader)
        return reader

    def tell(self, entry: Entry, *, had_value: bool) -> None:
        """Tell all readers of a change."""
        for reader in self._readers:
            reader.tell(entry, had_value=had_value)

    def __len__(self) -> int:
        return len(self._readers)

    def wake(self) -> None:
        """Have all readers look whether the mirror has ended."""
        for reader in self._readers:
            reader.wake.set()
