"""Changes of a local mirror, for its readers; nothing here waits.

Law: a slow reader gets the newest entry of each key and ends with the same keys. Its backlog is
bounded by the mirror's keys: a key that was created and deleted meanwhile is left out.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from weakref import WeakSet

from natsstream.kv.entry import Entry


class ChangeReader:
    """The changes that one reader has not taken yet.

    Attributes:
        wake: Set when there is a change, or the mirror has ended.
    """

    def __init__(self) -> None:
        self.wake: asyncio.Event = asyncio.Event()
        # With each key's newest entry: whether the key had a value at the reader's last change.
        # In the order of the changes: its front can be taken in the same time however many wait.
        self._waiting: OrderedDict[str, tuple[Entry, bool]] = OrderedDict()

    def tell(self, entry: Entry, *, had_value: bool) -> None:
        """Add a change of a key, which had a value before it or had none."""
        waiting = self._waiting.pop(entry.key, None)
        if waiting is not None:
            had_value = waiting[1]
        if had_value or not entry.is_deleted:
            self._waiting[entry.key] = entry, had_value
            self.wake.set()

    def take(self) -> Entry | None:
        """Return the oldest change; None if there is none."""
        if not self._waiting:
            return None
        _, (entry, _) = self._waiting.popitem(last=False)
        return entry

    def __len__(self) -> int:
        return len(self._waiting)


class Changes:
    """All readers of one mirror."""

    def __init__(self) -> None:
        # Weak, for a reader that was dropped reads no more, also if it never began.
        self._readers: WeakSet[ChangeReader] = WeakSet()

    def add(self) -> ChangeReader:
        """Return a reader of the changes from now on."""
        reader = ChangeReader()
        self._readers.add(reader)
        return reader

    def tell(self, entry: Entry, *, had_value: bool) -> None:
        """Add a change for all readers."""
        for reader in self._readers:
            reader.tell(entry, had_value=had_value)

    def __len__(self) -> int:
        return len(self._readers)

    def wake(self) -> None:
        """Wake all readers, since the mirror has ended."""
        for reader in self._readers:
            reader.wake.set()
