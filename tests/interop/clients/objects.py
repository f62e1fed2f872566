"""The object calls of every client of the interop tests, and the shapes of the answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tests.interop.clients.client import Headers


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """An object store as its user asks for it; what is left out is left to the client.

    Attributes:
        name: Of the store, without the stream's prefix.
        description: Text for people.
        ttl_s: Life of an object; 0 is for ever.
        bytes_max: Of the store; 0 is no limit.
        in_memory: Stored in memory.
        compressed: Compressed on disk.
        replicas: Servers that hold it.
        metadata: Pairs of the user's.
    """

    name: str
    description: str = ""
    ttl_s: int = 0
    bytes_max: int = 0
    in_memory: bool = False
    compressed: bool = False
    replicas: int = 1
    metadata: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What a user says of an object that is put.

    Attributes:
        description: Text for people.
        headers: All values of each name; the nats CLI and nats.js can give them.
        metadata: Pairs; nats.js can give them.
    """

    description: str = ""
    headers: Headers = field(default_factory=dict[str, list[str]])
    metadata: dict[str, str] = field(default_factory=dict[str, str])


PLAIN = About()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a client shows of an object.

    Attributes:
        name: Its name.
        size: Its bytes.
        chunks: In how many messages they are.
        digest: SHA-256 of the content, as hexadecimal digits.
        about: What its user has said; None in a field that the client does not show.
    """

    name: str
    size: int
    chunks: int
    digest: str
    description: str
    headers: Headers
    metadata: dict[str, str] | None


@dataclass(frozen=True, slots=True)
class Told:
    """What a watch tells of an object.

    Attributes:
        name: Its name.
        is_deleted: Whether it was deleted.
    """

    name: str
    is_deleted: bool = False


class ObjectClient(Protocol):
    """One client's object stores. What the server refuses raises `RefusedError`."""

    async def create_store(self, options: StoreOptions) -> None:
        """Create a store, as this client's users do, also where an equal one exists."""
        ...

    async def put(self, store: str, name: str, data: bytes, about: About = PLAIN) -> None:
        """Store an object in place of the one of this name."""
        ...

    async def get(self, store: str, name: str) -> bytes | None:
        """Return an object's content; None when there is none. Links are followed."""
        ...

    async def info(self, store: str, name: str) -> Shown | None:
        """Return what the client shows; None when there is none."""
        ...

    async def names(self, store: str) -> list[str]:
        """Return the names of what is stored, sorted."""
        ...

    async def delete(self, store: str, name: str) -> None:
        """Delete an object."""
        ...

    async def seal(self, store: str) -> None:
        """Refuse every later change."""
        ...


class NamingClient(ObjectClient, Protocol):
    """A client that can also rename and link: the nats CLI 0.3.0 and nats-py 2.16 can not."""

    async def rename(self, store: str, name: str, new_name: str) -> None:
        """Give an object another name."""
        ...

    async def link(self, store: str, name: str, target_store: str, target: str) -> None:
        """Make a name that stands for another object."""
        ...

    async def link_store(self, store: str, name: str, target_store: str) -> None:
        """Make a name that stands for a whole store."""
        ...


class WatchingClient(ObjectClient, Protocol):
    """A client whose watch can be read here: that of nats-py 2.16 never ends."""

    async def watch(self, store: str, count: int) -> list[Told]:
        """Return the first `count` things that a watch tells: what is there, then what comes."""
        ...
