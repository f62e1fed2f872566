"""Items that wait for their reader, with a limit; pure.

Law: an item without room is dropped and counted, so memory is bounded and no loss is silent.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class BoundedQueue(Generic[Item]):
    """The items that wait for one reader.

    Args:
        max_count: Items that may wait.
        max_bytes: Bytes that may wait; a larger item is taken alone. 0 is no limit.

    Attributes:
        bytes: Bytes of the items that wait.
        dropped: Items that found no room.
    """

    def __init__(self, *, max_count: int, max_bytes: int = 0) -> None:
        self.bytes: int = 0
        self.dropped: int = 0
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._reported = 0
        self._items: deque[tuple[Item, int]] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, item: Item, size: int = 0) -> bool:
        """Add an item of `size` bytes; False when there is no room and it was dropped."""
        if len(self._items) >= self._max_count:
            self.dropped += 1
            return False
        if self._max_bytes and self._items and self.bytes + size > self._max_bytes:
            self.dropped += 1
            return False
        self._items.append((item, size))
        self.bytes += size
        return True

    def force(self, item: Item) -> None:
        """Add an item that needs no room."""
        self._items.append((item, 0))

    def take(self) -> Item | None:
        """Return the next item; None when none waits."""
        if not self._items:
            return None
        item, size = self._items.popleft()
        self.bytes -= size
        return item

    def take_all(self) -> list[Item]:
        """Return all items that wait."""
        items = [item for item, _ in self._items]
        self._items.clear()
        self.bytes = 0
        return items

    def take_dropped(self) -> int:
        """Return how many items were dropped since the last call."""
        dropped, self._reported = self.dropped - self._reported, self.dropped
        return dropped
