"""The calls of every client of the interop tests, and the shapes of the answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from natsstream import Expect

Config = dict[str, object]
"""A stream's configuration in the server's JSON."""
Headers = dict[str, list[str]]
"""All values of each name."""
Verdict = Literal["ack", "nak", "delay", "term", "reason", "progress", "none"]
"""How a delivered message is settled: "delay" is a nak with one, "reason" a term with one."""


@dataclass(frozen=True, slots=True)
class Ack:
    """What a client says of a message that it has published."""

    stream: str
    sequence: int
    duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Stored:
    """A message of a stream, as a client reads it.

    Attributes:
        subject: Its subject.
        sequence: Its sequence in the stream.
        headers: All values of each name; the order of names does not count.
        data: Its payload.
    """

    subject: str
    sequence: int
    headers: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Taken:
    """A delivery, as a client shows it.

    Attributes:
        sequence: Of the message in its stream.
        delivered: How often it was delivered, from 1.
    """

    sequence: int
    delivered: int


class RefusedError(Exception):
    """A client says that the server refused.

    Attributes:
        err_code: The server's code for it; 0 when the client does not tell.
    """

    def __init__(self, message: str, err_code: int) -> None:
        super().__init__(message)
        self.err_code = err_code


class Client(Protocol):
    """One client on one server. What the server refuses raises `RefusedError`."""

    async def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: Mapping[str, Sequence[str]] | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl_s: int | None = None,
    ) -> Ack:
        """Publish into the stream that captures the subject."""
        ...

    async def get(self, stream: str, sequence: int) -> Stored:
        """Return one message."""
        ...

    async def read(self, stream: str, count: int, *, only: str | None = None) -> list[Stored]:
        """Return all messages of a stream, or of one filter, in order; there are `count`."""
        ...

    async def create(self, config: Config) -> None:
        """Create a stream, as this client's users do."""
        ...

    async def update(self, stream: str, changes: Config) -> None:
        """Change some fields of a stream, as this client's users do."""
        ...

    async def config(self, stream: str) -> Config:
        """Return a stream's configuration as this client shows it."""
        ...

    async def create_consumer(self, stream: str, config: Config) -> None:
        """Create a consumer, as this client's users do; `config` is the server's JSON."""
        ...

    async def update_consumer(self, stream: str, consumer: str, changes: Config) -> None:
        """Change some fields of a consumer, as this client's users do."""
        ...

    async def consumer_config(self, stream: str, consumer: str) -> Config:
        """Return a consumer's configuration as this client shows it."""
        ...

    async def work(self, stream: str, consumer: str, count: int) -> list[Stored]:
        """Take the next `count` messages of a consumer and acknowledge each."""
        ...

    async def count(self, subject: str, delta: int) -> Ack:
        """Add to a counter."""
        ...

    async def total(self, stream: str, subject: str) -> int:
        """Return a counter's total."""
        ...

    async def publish_batch(self, subject: str, payloads: Sequence[bytes]) -> Ack:
        """Publish several messages that are stored together, or not at all; the last one's ack."""
        ...


class Listening(Protocol):
    """A client's subscription to a push consumer; it acks what comes."""

    async def take(self, count: int, *, within_s: float = ...) -> list[Stored]:
        """Return the next `count` messages; fewer when no more come in time."""
        ...

    async def close(self) -> None:
        """End it."""
        ...


class Worker(Client, Protocol):
    """A client that settles messages in every way; the nats CLI 0.3.0 naks and terminates only."""

    async def settle(
        self,
        stream: str,
        consumer: str,
        verdict: Verdict,
        *,
        within_s: float = ...,
        delay_s: float = 0,
        reason: str = "",
        group: str = "",
        min_pending: int = 0,
    ) -> Taken | None:
        """Take the next message of a consumer and settle it; None when none comes in time."""
        ...


class Pushed(Worker, Protocol):
    """A client that reads push consumers."""

    async def listen(self, stream: str, consumer: str) -> Listening:
        """Subscribe to what a push consumer sends; the server has it when this returns."""
        ...
