"""The events of a connection, as typed objects."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from natsstream.errors import NatsStreamError


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionEvent:
    """An event of the connection.

    Attributes:
        time: When the client noticed it, UTC.
        url: The server, without secrets; empty for none.
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
    """The connection broke; the client reconnects to this or another server.

    Attributes:
        reason: The cause, as far as it is known.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSilent(ConnectionEvent):
    """The server answered no ping; the client reconnects.

    Attributes:
        seconds: Seconds since the server last sent something.
    """

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerUnreadable(ConnectionEvent):
    """The peer sent bytes that are not NATS; the client drops the connection.

    Attributes:
        error: A `ProtocolError` with the line.
    """

    error: NatsStreamError


@dataclass(frozen=True, slots=True, kw_only=True)
class LameDuck(ConnectionEvent):
    """The server is about to shut down and will close this connection soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersChanged(ConnectionEvent):
    """The cluster announced new servers.

    Attributes:
        servers: All servers for reconnects, without secrets.
    """

    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDenied(ConnectionEvent):
    """The user may not publish or subscribe to a subject; the waiting call fails as well.

    Attributes:
        operation: The denied operation.
        subject: The denied subject.
        queue: The queue group of a subscription, empty for none.
    """

    operation: Literal["publish", "subscription"]
    subject: str
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerComplaint(ConnectionEvent):
    """The server sent an error that belongs to no request.

    Attributes:
        text: Text of the error.
    """

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(ConnectionEvent):
    """The connection is closed for good.

    Attributes:
        reason: Empty when this side closed it.
    """

    reason: str = ""
