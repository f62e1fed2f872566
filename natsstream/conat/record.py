"""A stored message of a core stream, as the arrays keep it."""

from __future__ import annotations

from typing import NamedTuple

from natsstream.conat.headers import is_tombstone, ttl_ms_of
from natsstream.units import NS_PER_MS

_ROLLUP = b"Nats-Rollup:"
_OF_SUBJECT = b"Nats-Rollup: sub\r\n"


class Record(NamedTuple):
    """A stored message.

    Attributes:
        seq: Its sequence.
        time_ns: When the stream stored it, in Unix nanoseconds.
        key_subject: The subject of its key; empty for a message without a key.
        headers: Its header block, as stored; empty for none.
        data: Its payload, as stored.
    """

    seq: int
    time_ns: int
    key_subject: str
    headers: bytes
    data: bytes

    @property
    def is_tombstone(self) -> bool:
        """True if it deletes its key."""
        return is_tombstone(self.headers)

    @property
    def expires_ns(self) -> int | None:
        """When it expires by its own TTL, in Unix nanoseconds; None for never."""
        ttl_ms = ttl_ms_of(self.headers)
        return None if ttl_ms is None else self.time_ns + ttl_ms * NS_PER_MS


def replaces(headers: bytes) -> str:
    """Return which earlier messages a message removes: "" for none, "subject" or "all"."""
    at = headers.find(_ROLLUP)
    if at < 0:
        return ""
    value = headers[at + len(_ROLLUP) : headers.find(b"\r\n", at)].strip()
    return "all" if value == b"all" else "subject"


def may_replace(blocks: bytes, *, keyed: bool) -> bool:
    """Return True if messages may remove others than the older ones of their own key.

    Args:
        blocks: Their header blocks, joined.
        keyed: True if all of them have keys.
    """
    rollups = blocks.count(_ROLLUP)
    return rollups > (blocks.count(_OF_SUBJECT) if keyed else 0)
