"""Entries of a local mirror in memory; pure rules.

Law: an entry that has expired on the server is not returned, also while the server is away. The
server's clock is never compared with ours: each look at it bounds how late it can be, and that
bound counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from natsstream.errors import CacheFullError
from natsstream.kv.cache.freshness import LookAtServer
from natsstream.kv.entry import Entry
from natsstream.units import NS_PER_SECOND

# Memory of an entry besides its key and value, about.
_OVERHEAD_BYTES = 400


class CacheContents:
    """Entries by key.

    Args:
        limit_bytes: The limit of all entries together.

    Attributes:
        revision: The newest revision taken.
        size_bytes: The memory of keys and values, with Python's overhead, about.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.revision: int = 0
        self.size_bytes: int = 0
        self._limit_bytes = limit_bytes
        # In the order of their revisions: the oldest first.
        self._entries: dict[str, Entry] = {}
        # Those with a ttl of their own.
        self._mortal: dict[str, None] = {}
        # Those whose keys cannot be decoded, by the stored key: no keys of the application.
        self._foreign: dict[str, Entry] = {}
        self._max_age_ns = 0
        self._look = LookAtServer(0, 0)

    def set_rules(self, max_age_ns: int, look: LookAtServer) -> None:
        """Take the bucket's ttl, 0 for none, and a look at the server's clock."""
        self._max_age_ns = max_age_ns
        self._look = look

    def take(self, entry: Entry) -> bool:
        """Take a revision; False if a newer one is known, or its key cannot be decoded.

        Raises:
            CacheFullError: The mirror would exceed its limit.
        """
        is_foreign = entry.error is not None and not entry.error.revision
        entries = self._foreign if is_foreign else self._entries
        held = entries.get(entry.key)
        if held is not None and held.revision >= entry.revision:
            return False
        self.revision = max(self.revision, entry.revision)
        if held is not None:
            self._drop(entries, entry.key)
        if not entry.is_deleted:
            self._make_room(entry)
            entries[entry.key] = entry
            if entry.ttl is not None and not is_foreign:
                self._mortal[entry.key] = None
        return not is_foreign

    def take_back(self, entries: Iterable[Entry], now_ns: int) -> list[Entry]:
        """Take older entries that the server has again; return those that were taken.

        Raises:
            CacheFullError: The mirror would exceed its limit.
        """
        living = [each for each in entries if not self._has_expired(each, now_ns)]
        taken = [each for each in living if self.take(each)]
        if taken:
            by_revision = sorted(self._entries.values(), key=lambda each: each.revision)
            self._entries.clear()
            self._entries.update((each.key, each) for each in by_revision)
        return taken

    def drop(self, key: str) -> Entry:
        """Forget a key and return its entry."""
        return self._drop(self._entries, key)

    def with_foreign(self, now_ns: int) -> list[Entry]:
        """Return the entries that have not expired, those of foreign keys last."""
        entries = (*self._entries.values(), *self._foreign.values())
        return [each for each in entries if not self._has_expired(each, now_ns)]

    def get(self, key: str, now_ns: int) -> Entry | None:
        """Return a key's entry; None if it has none, or it has expired by now."""
        entry = self._entries.get(key)
        return None if entry is None or self._has_expired(entry, now_ns) else entry

    def holds(self, key: str) -> bool:
        """Return True if a key has an entry here, expired or not."""
        return key in self._entries

    def all(self) -> dict[str, Entry]:
        """Return the entries, the oldest revision first; `forget_expired` goes before."""
        return self._entries

    def forget_expired(self, now_ns: int) -> list[Entry]:
        """Drop the entries that have expired on the server, and return them.

        Cost: the dropped entries, and each entry with a ttl of its own.
        """
        for key, each in list(self._foreign.items()):
            if self._has_expired(each, now_ns):
                self._drop(self._foreign, key)
        gone = [key for key in self._mortal if self._has_expired(self._entries[key], now_ns)]
        if self._max_age_ns:
            for key, entry in self._entries.items():
                if self._has_expired(entry, now_ns):
                    gone.append(key)
                elif key not in self._mortal:
                    break  # Those behind it are younger.
        return [self.drop(key) for key in dict.fromkeys(gone)]

    def missing(self, keys: Iterable[str], horizon: int) -> list[Entry]:
        """Return the entries whose keys the server did not have at a revision."""
        there = set(keys)
        held = self._entries.values()
        return [each for each in held if each.revision <= horizon and each.key not in there]

    def __len__(self) -> int:
        return len(self._entries)

    def _drop(self, entries: dict[str, Entry], key: str) -> Entry:
        entry = entries.pop(key)
        self.size_bytes -= _size_bytes(entry)
        if entries is self._entries:
            self._mortal.pop(key, None)
        return entry

    def _make_room(self, entry: Entry) -> None:
        self.size_bytes += _size_bytes(entry)
        if self.size_bytes > self._limit_bytes:
            raise CacheFullError(
                f"the mirror of bucket {entry.bucket} needs more than {self._limit_bytes} bytes: "
                f"{len(self._entries) + 1} keys, {self.size_bytes} bytes",
                limit_bytes=self._limit_bytes,
                hint="give a larger max_bytes, or filters: cached('users.>')",
            )

    def _has_expired(self, entry: Entry, now_ns: int) -> bool:
        if not self._look.time_ns:
            return False
        server_ns = self._look.latest_ns(now_ns)
        if entry.ttl is not None:
            if entry.ttl < 0:
                return False  # It is exempt from the bucket's ttl too.
            if server_ns >= entry.created_ns + entry.ttl * NS_PER_SECOND:
                return True
        return bool(self._max_age_ns) and server_ns >= entry.created_ns + self._max_age_ns


def _size_bytes(entry: Entry) -> int:
    # A foreign key may be no UTF-8.
    key_bytes = len(entry.key.encode(errors="surrogateescape"))
    return key_bytes + entry.nbytes + _OVERHEAD_BYTES
