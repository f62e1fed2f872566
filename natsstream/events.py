"""The events of a connection, as typed objects; each is also a line of the log."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar, Literal

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

    LOG_LEVEL: ClassVar[int] = logging.INFO

    time: datetime = field(default_factory=_now)
    url: str = ""

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        return f"{type(self).__name__} at {self.url}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected(ConnectionEvent):
    """A server is connected.

    Attributes:
        is_reconnect: False for the first connection only.
        version: The server's version.
    """

    is_reconnect: bool
    version: str = ""

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        again = "reconnected" if self.is_reconnect else "connected"
        return f"{again} to {self.url}, nats-server {self.version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnected(ConnectionEvent):
    """The connection broke; the client reconnects to this or another server.

    Attributes:
        reason: The cause, as far as it is known.
    """

    LOG_LEVEL: ClassVar[int] = logging.WARNING

    reason: str = ""

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        why = f": {self.reason}" if self.reason else ""
        return f"connection to {self.url} lost{why}; reconnecting"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSilent(ConnectionEvent):
    """The server answered no ping; the client reconnects.

    Attributes:
        seconds: Seconds since the server last sent something.
    """

    seconds: float

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        return f"nothing came from {self.url} for {self.seconds:g} s; dropping the connection"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerUnreadable(ConnectionEvent):
    """The peer sent bytes that are not NATS; the client drops the connection.

    Attributes:
        error: A `ProtocolError` with the line.
    """

    LOG_LEVEL: ClassVar[int] = logging.ERROR

    error: NatsStreamError

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        return f"{self.url} sent what is not NATS; dropping the connection: {self.error.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LameDuck(ConnectionEvent):
    """The server is about to shut down and will close this connection soon."""

    LOG_LEVEL: ClassVar[int] = logging.WARNING

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        return f"{self.url} is about to shut down"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersChanged(ConnectionEvent):
    """The cluster announced new servers.

    Attributes:
        servers: All servers for reconnects, without secrets.
    """

    LOG_LEVEL: ClassVar[int] = logging.DEBUG

    servers: tuple[str, ...]

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        return f"servers for reconnects: {', '.join(self.servers)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionDenied(ConnectionEvent):
    """The user may not publish or subscribe to a subject; the waiting call fails as well.

    Attributes:
        operation: The denied operation.
        subject: The denied subject.
        queue: The queue group of a subscription, empty for none.
    """

    LOG_LEVEL: ClassVar[int] = logging.WARNING

    operation: Literal["publish", "subscription"]
    subject: str
    queue: str = ""

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        act = "publish" if self.operation == "publish" else "subscribe"
        return f"{self.url} does not allow this user to {act} to {self.subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerComplaint(ConnectionEvent):
    """The server sent an error that belongs to no request.

    Attributes:
        text: Text of the error.
    """

    LOG_LEVEL: ClassVar[int] = logging.WARNING

    text: str

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        return f"{self.url} reports an error: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(ConnectionEvent):
    """The connection is closed for good.

    Attributes:
        reason: Empty when this side closed it.
    """

    reason: str = ""

    def describe(self) -> str:
        """Return the event as one line, as it is logged; it shows no credentials."""
        return f"connection to {self.url} closed" + (
            f" for good: {self.reason}" * bool(self.reason)
        )
