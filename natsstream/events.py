"""What happens to a connection, as typed objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from natsstream.errors import NatsStreamError


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionEvent:
    """Something happened to the connection.

    Attributes:
        time: When this side learnt it, UTC.
        url: The server it is about, without secrets; empty where none is.
    """

    time: datetime = field(default_factory=_now)
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected(ConnectionEvent):
    """A server is connected.

    Attributes:
        is_reconnect: False for the first connection only.
        version: The server's version.
    """

    is_reconnect: bool
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnected(ConnectionEvent):
    """The connection broke; another server, or the same, is being looked for.

    Attributes:
        reason: Why, as far as this side knows.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSilent(ConnectionEvent):
    """The server answered no ping and is left for another one.

    Attributes:
        seconds: How long nothing came from it.
    """

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerUnreadable(ConnectionEvent):
    """The server, or something between, sent bytes that are no NATS; the connection is dropped.

    Attributes:
        error: A `ProtocolError` that shows the line.
    """

    error: NatsStreamError


@dataclass(frozen=True, slots=True, kw_only=True)
class LameDuck(ConnectionEvent):
    """The server is about to shut down and will close this connection soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersChanged(ConnectionEvent):
    """The cluster told of servers that were not known before.

    Attributes:
        servers: All servers that are tried when the connection breaks, without secrets.
    """

    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDenied(ConnectionEvent):
    """The user may not publish or subscribe there; whoever waits for it is told as well.

    Attributes:
        operation: What was tried.
        subject: Where.
        queue: The queue group of a subscription, empty for none.
    """

    operation: Literal["publish", "subscription"]
    subject: str
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerComplaint(ConnectionEvent):
    """The server sent an error that belongs to no request.

    Attributes:
        text: Its words.
    """

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(ConnectionEvent):
    """The connection is closed for good.

    Attributes:
        reason: Empty when this side closed it.
    """

    reason: str = ""
