"""The state of one connection: its events, its listeners, and its end.

Law: whoever waits is woken by every break and by the end; an event is told once, in order.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from natsstream._wire.permission_violations import parse_permission_violation
from natsstream.errors import ConnectionClosedError, ConnectionLostError, NatsStreamError
from natsstream.events import (
    Closed,
    Connected,
    ConnectionEvent,
    Disconnected,
    LameDuck,
    PeerSilent,
    PeerUnreadable,
    PermissionDenied,
    ServerComplaint,
    ServersChanged,
)
from natsstream.options import public_url

if TYPE_CHECKING:
    from natsstream._wire.watchdog import Watchdog

_log = logging.getLogger("natsstream.connection")

# An error of the server just before a disconnect is its cause; an older one is not.
_CAUSE_S = 1.0
# Commands written while there is no connection, kept by nats-py until there is one.
PENDING_BYTES_MAX = 8 << 20
CLOSE_TIMEOUT_S = 2.0
# A wait so short only asks whether there is a connection.
_NO_TIME_S = 0.001

Watcher = Callable[[], None]
Listener = Callable[[ConnectionEvent], None]


class ConnectionState:
    """The state of one connection; nats-py and the lane call its `on_` methods.

    Args:
        on_denied: Told first of what the server does not allow.

    Attributes:
        nats: nats-py's client, once there is one.
        watchdog: Watches the server while it is connected.
        connections: How many connections were made; a change means that a break lies between.
        last_error: Text of the last error; may be empty.
    """

    def __init__(self, watchdog: Watchdog, on_denied: Callable[[PermissionDenied], None]) -> None:
        self.nats: Any = None
        self.watchdog: Watchdog = watchdog
        self.connections: int = 0
        self.last_error: str = ""
        self._url = "no server"
        self._blamed_at = -_CAUSE_S
        self._is_closing = False
        self._on_denied = on_denied
        self._is_up = asyncio.Event()
        self._is_closed = False
        self._fatal: NatsStreamError | None = None
        self._watchers: set[Watcher] = set()
        self._listeners: set[Listener] = set()

    # State.

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._is_up.is_set() and not self._is_closed

    @property
    def is_closed(self) -> bool:
        """True once the connection is over for good."""
        return self._is_closed

    @property
    def is_closing(self) -> bool:
        """True once this side has begun to close the connection."""
        return self._is_closing

    @property
    def url(self) -> str:
        """The connected server, or the one that was last, without secrets."""
        server = self.nats.connected_url if self.nats is not None else None
        if server:  # nats-py tells it only while it is connected.
            self._url = public_url(server.geturl())
        return self._url

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call back whenever the connection breaks, returns or closes; returns how to stop."""
        self._watchers.add(watcher)
        return lambda: self._watchers.discard(watcher)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call back with each event; return a function to stop. The listener must not block."""
        self._listeners.add(listener)
        return lambda: self._listeners.discard(listener)

    async def wait_connected(self, timeout: float) -> None:
        """Wait until a server is connected.

        Raises:
            ConnectionLostError: No server was connected within `timeout` seconds.
            ConnectionClosedError: The connection was closed.
            AuthenticationError: It was closed because the servers refuse the credentials.
        """
        try:
            if not self._is_up.is_set():
                # Not every event loop takes an infinite time.
                async with asyncio.timeout(timeout if timeout < math.inf else None):
                    await self._is_up.wait()
        except TimeoutError:
            raise self.away(timeout) from None
        self.check_open()

    def away(self, timeout: float, *, left_open: str = "") -> ConnectionLostError:
        """Return the error for a call that has waited for a connection in vain.

        Args:
            timeout: Seconds that it has waited.
            left_open: The state of what it wanted to send; empty for nothing.
        """
        is_waited = timeout > _NO_TIME_S
        message = f"no reconnect within {timeout:.3g} s" if is_waited else "the connection is lost"
        return ConnectionLostError(
            f"{message}; {left_open}" if left_open else message,
            detail=self.last_error,
            hint="check the servers, or raise request_timeout (readers: reconnect_timeout)",
            retryable=True,
        )

    def check_open(self) -> None:
        """Raise the error that ended the connection, if it has ended."""
        if self._is_closed:
            raise self.broken()

    def broken(self) -> NatsStreamError:
        """Return the error for calls that the disconnect, or the close, has ended."""
        if self._fatal is not None:
            return self._fatal.with_traceback(None)
        if self._is_closed or self._is_closing:
            return ConnectionClosedError(
                "the connection is closed",
                detail=self.last_error,
                hint="open a new one with natsstream.connect()",
            )
        return ConnectionLostError(
            "connection lost before the answer came",
            detail=self.last_error,
            hint="call it again; what changes something may be done already",
            retryable=True,
        )

    # Callbacks of nats-py and the lane.

    def on_heard(self) -> None:
        """The server sent something."""
        self.watchdog.heard()

    async def on_error(self, error: Exception) -> None:
        """An error that does not end nats-py."""
        # The cause of a disconnect says more than the end of file that follows.
        if self._is_closing:
            return
        if asyncio.get_running_loop().time() - self._blamed_at >= _CAUSE_S:
            self.last_error = str(error).removeprefix("nats: ") or type(error).__name__

    async def on_connected(self) -> None:
        """A server is connected, at first or again; after the end it is left at once."""
        if self._is_closed:
            return
        self.connections += 1
        self._blamed_at = -_CAUSE_S
        self._is_up.set()
        self.watchdog.start()
        version = str(self.nats._server_info.get("version", ""))
        self._tell(Connected(url=self.url, is_reconnect=self.connections > 1, version=version))
        self._wake()

    async def on_disconnected(self) -> None:
        """The connection broke, or is being closed."""
        self.watchdog.stop()
        was_up = self._is_up.is_set()
        self._is_up.clear()
        if was_up and not self._is_closing:
            self._tell(Disconnected(url=self.url, reason=self.last_error))
        self._wake()

    def on_unsent(self, count: int) -> None:
        """The connection ends while messages without an ack wait for a server."""
        _log.warning(
            "connection to %s ended before a reconnect; messages of js.core.publish that were not "
            "sent: %d",
            self.url,
            count,
        )

    async def on_closed(self) -> None:
        """nats-py has closed the connection and will not open another."""
        self.end()

    async def on_lame_duck(self) -> None:
        """The server is about to shut down."""
        self._tell(LameDuck(url=self.url))

    async def on_servers(self) -> None:
        """The cluster has announced more servers."""
        servers = tuple(public_url(server.geturl()) for server in self.nats.servers)
        self._tell(ServersChanged(url=self.url, servers=servers))

    def on_server_error(self, text: str) -> None:
        """The server sent `-ERR`."""
        violation = parse_permission_violation(text)
        if violation is None:
            self._blame(text)
            self._tell(ServerComplaint(url=self.url, text=text))
            return
        operation, subject, queue = violation
        event = PermissionDenied(url=self.url, operation=operation, subject=subject, queue=queue)
        _call(self._on_denied, event)
        self._tell(event)

    def on_broken(self, error: NatsStreamError) -> None:
        """The peer sent what cannot be handled; the connection is being aborted."""
        self._blame(error.message)
        self._tell(PeerUnreadable(url=self.url, error=error))

    def on_refused(self, error: NatsStreamError) -> None:
        """The servers keep refusing the credentials: nats-py is about to close."""
        self._fatal = error

    def on_silent(self, seconds: float) -> None:
        """Nothing came from the server for too long; the client drops it."""
        self._blame(f"nothing came from the server for {seconds:g} s")
        self._tell(PeerSilent(url=self.url, seconds=seconds))

    def begin_end(self) -> None:
        """This side is closing: later disconnects are no errors."""
        self._is_closing = True
        self.last_error = ""

    def end(self) -> None:
        """The connection is over; ending twice is fine."""
        if self._is_closed:
            return
        self.watchdog.stop()
        self._is_closed = True
        # Wake all that wait for a connection: none will come.
        self._is_up.set()
        self._tell(Closed(url=self.url, reason=self._fatal.message if self._fatal else ""))
        self._wake()

    def _blame(self, cause: str) -> None:
        self.last_error = cause
        self._blamed_at = asyncio.get_running_loop().time()

    def _tell(self, event: ConnectionEvent) -> None:
        for listener in tuple(self._listeners):
            _call(listener, event)

    def _wake(self) -> None:
        for watcher in tuple(self._watchers):
            _call(watcher)


def _call(told: Callable[..., None], *args: ConnectionEvent) -> None:
    """Call a listener; if it fails, the others and the connection are not affected."""
    try:
        told(*args)
    except Exception:  # noqa: BLE001 - it is theirs, and nats-py would end its attempts to reconnect.
        _log.exception("a listener to the connection failed")
