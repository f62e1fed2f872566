"""The bucket calls of every client of the interop tests, and the shapes of the answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Operation = Literal["PUT", "DEL", "PURGE"]
WRONG_LAST_SEQUENCE = 10071


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOptions:
    """A bucket as its user asks for it; what is left out is left to the client.

    Attributes:
        name: Of the bucket, without the stream's prefix.
        description: Text for people.
        history: Revisions kept of a key.
        ttl_s: Life of a value; 0 is for ever.
        marker_ttl_s: Life of the markers that the server writes; 0 asks for none.
        bytes_max: Of the bucket; 0 is no limit.
        value_bytes_max: Of one value; 0 is no limit.
        in_memory: Stored in memory.
        compressed: Compressed on disk.
        replicas: Servers that hold it.
        mirror: The bucket that it mirrors.
        sources: Buckets that are copied into it.
        republish: Subjects of the source and the destination.
    """

    name: str
    description: str = ""
    history: int = 1
    ttl_s: int = 0
    marker_ttl_s: int = 0
    bytes_max: int = 0
    value_bytes_max: int = 0
    in_memory: bool = False
    compressed: bool = False
    replicas: int = 1
    mirror: str = ""
    sources: tuple[str, ...] = ()
    republish: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """One revision of a key, as a client shows it in a history or a watch.

    Attributes:
        key: The key.
        operation: What was done to it.
        value: What it had; empty for markers.
    """

    key: str
    operation: Operation
    value: bytes = b""


class KvClient(Protocol):
    """One client's buckets. What the server refuses raises `RefusedError`."""

    async def create_bucket(self, options: BucketOptions) -> None:
        """Create a bucket, as this client's users do, also where an equal one exists."""
        ...

    async def get(self, bucket: str, key: str) -> bytes | None:
        """Return a key's value; None when it has none."""
        ...

    async def put(self, bucket: str, key: str, value: bytes) -> None:
        """Give a key a value."""
        ...

    async def create(
        self, bucket: str, key: str, value: bytes, *, ttl_s: int | None = None
    ) -> None:
        """Give a key without a value one."""
        ...

    async def update(self, bucket: str, key: str, value: bytes, *, revision: int) -> None:
        """Give a key a value if its revision is this one."""
        ...

    async def delete(self, bucket: str, key: str) -> None:
        """Delete a key; its history stays."""
        ...

    async def purge(self, bucket: str, key: str, *, ttl_s: int | None = None) -> None:
        """Delete a key and its history."""
        ...

    async def keys(self, bucket: str) -> list[str]:
        """Return the keys that have a value, sorted."""
        ...

    async def history(self, bucket: str, key: str) -> list[Seen]:
        """Return the revisions of a key, oldest first."""
        ...

    async def watch(self, bucket: str, count: int) -> list[Seen]:
        """Return the first `count` entries of a watch of the whole bucket."""
        ...
