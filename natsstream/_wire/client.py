"""One connection to NATS: nats-py's, with the fast lane in front of it.

Law: nats-py's errors do not leave this room, and no wait is without a deadline.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, cast

from natsstream._wire.acks import parse_ack_subject
from natsstream._wire.connection_log import ConnectionLog
from natsstream._wire.connection_state import CLOSE_TIMEOUT_S, ConnectionState, Listener, Watcher
from natsstream._wire.encode import publish_command, publish_start
from natsstream._wire.endings import Endings
from natsstream._wire.parser import Frame, FrameParser, FrameSink
from natsstream._wire.request_timer import RequestTimer
from natsstream._wire.requests import RETRY_WAIT_S, Requests, check_responders
from natsstream._wire.subscriptions import DeniedSink, Subscription, Subscriptions
from natsstream._wire.watchdog import Watchdog, unsent_bytes
from natsstream._wire.writer import SocketWriter
from natsstream.errors import (
    AuthenticationError,
    ConnectError,
    ConnectionClosedError,
    ConnectionLostError,
    EventLoopError,
    NatsStreamError,
    NoRespondersError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RequestTimeoutError,
    TlsError,
    TransportError,
    UsageError,
)
from natsstream.events import ConnectionEvent, PermissionDenied
from natsstream.options import ConnectOptions, public_url
from natsstream.own_loop import OwnLoop

if TYPE_CHECKING:
    from natsstream._wire.nats_py import NatsPyLink

# The last commands, such as the deletion of a consumer, have this long to reach the server.
_LAST_FLUSH_S = 1.0
# Consumers of which nobody asks any more would stay otherwise.
_REFUSED_ACKS_MAX = 100
# Producers that are open have this long to store what was appended.
LAST_STORES_S = 5.0
# Made anew for each call, so that each can name its call.
_OF_CONNECTION = (ConnectionClosedError, ConnectionLostError, EventLoopError)


class Client:
    """A connection that reconnects; use `Client.connect` or `Client.attach`.

    Attributes:
        options: Its options.
        parser: The sinks of its subscriptions.
        requests: Its requests in flight.
        refused_acks: The last refused ack of each stream and consumer, until its reader is told.
        endings: Clean-up in flight on the server.
    """

    def __init__(self, options: ConnectOptions) -> None:
        self.options: ConnectOptions = options
        self._own_loop = OwnLoop()
        self.requests: Requests = Requests(options.inbox_prefix, self._own_loop)
        self.refused_acks: dict[tuple[str, str], PermissionDenied] = {}
        self.endings: Endings = Endings()
        watchdog = Watchdog(
            interval_s=options.ping_interval,
            missed_max=options.max_missed_pings,
            ping=self._ping,
            give_up=self._give_up,
            unsent=lambda: unsent_bytes(self._transport),
        )
        self._state = ConnectionState(watchdog, self._on_denied)
        # Whose refusal of the inbox it was: a server that is tried in vain says nothing of its end.
        self._refusing: object = None
        self._writer = SocketWriter(self._state)
        self.parser: FrameParser = FrameParser(self._state.on_server_error)
        self._link: NatsPyLink | None = None
        self._nats: Any = None
        self._subscriptions = Subscriptions(self.parser, self.write)
        self._state.watch(self._on_change)
        self._state.listen(ConnectionLog())

    @classmethod
    async def connect(cls, options: ConnectOptions) -> Client:
        """Connect to the first of the servers that answers.

        Raises:
            ConnectError: No server answered within `connect_timeout` each; retryable if one of them
                refused the connection, could not be reached, or was silent.
            AuthenticationError: A server refused the credentials.
            TlsError: No server could be trusted.
        """
        # Here and not at the top: nats-py costs most of a second to import.
        from natsstream._wire.nats_py import open_nats  # noqa: PLC0415

        failures: list[TransportError] = []
        for url in options.servers:
            # A new client each time: events of a failed handshake do not reach the next one.
            client = cls(options)
            try:
                await client._begin(await open_nats(url, options, client.parser, client._state))
            except BaseException as error:
                await client.close()
                if isinstance(error, AuthenticationError) or not isinstance(error, TransportError):
                    raise
                failures.append(error)
            else:
                return client
        if all(isinstance(each, TlsError) for each in failures):
            raise failures[0]
        raise ConnectError(
            f"no server answered at {', '.join(map(public_url, options.servers))}",
            detail="; ".join(
                f"{public_url(url)}: {each.detail or each.message}"
                for url, each in zip(options.servers, failures, strict=True)
            ),
            hint=next(
                (each.hint for each in failures if each.hint),
                "is nats-server running there? Start one with: nats-server -js",
            ),
            retryable=any(each.retryable for each in failures),
        )

    @classmethod
    async def attach(cls, nats: object, options: ConnectOptions) -> Client:
        """Use a connection that the application has opened with nats-py, and leave it open.

        Raises:
            ConfigError: The object is no client of nats-py, or not connected.
        """
        # As above: an application with a client of nats-py has imported it already.
        from natsstream._wire.attach import attach_nats  # noqa: PLC0415

        client = cls(options)
        client._writer.gathers = False
        try:
            await client._begin(attach_nats(nats, client.parser, client._state))
        except BaseException:
            await client.close()
            raise
        return client

    async def _begin(self, link: NatsPyLink) -> None:
        self._link = link
        self._nats = self._state.nats = link.nats
        self._writer.open(link)
        await self._state.on_connected()
        await self.subscribe(
            f"{self.requests.inbox}.*", self.requests.settle, on_denied=self._on_inbox_denied
        )
        # A refusal comes before the PONG: known by then, nothing is stored whose ack cannot come.
        # A connection that breaks here reconnects; one that is silent is the watchdog's.
        with suppress(TransportError):
            await self.flush(self.options.connect_timeout)

    # Changes of the connection.

    @property
    def _transport(self) -> asyncio.Transport | None:
        return self._link.transport if self._link is not None else None

    def _on_change(self) -> None:
        if self.is_connected:
            # nats-py subscribes again, and has the server's PONG, before it says so.
            if self._refusing is None or self._refusing is not self._transport:
                self.requests.allow()
            return
        self.refused_acks.clear()
        self.requests.lose(self._state.broken)
        self._writer.lose()

    def _on_denied(self, event: PermissionDenied) -> None:
        if event.operation == "publish":
            self.requests.deny(event)
            acked = parse_ack_subject(event.subject)
            if acked is not None and len(self.refused_acks) < _REFUSED_ACKS_MAX:
                self.refused_acks[acked.stream, acked.consumer] = event
        else:
            self._subscriptions.deny(event)

    def _on_inbox_denied(self, error: PermissionDeniedError) -> None:
        prefix = self.options.inbox_prefix
        error.hint = f"allow {prefix}.> in the user's permissions, or set inbox_prefix"
        self._refusing = self._transport
        self.requests.refuse(error)

    def _give_up(self, seconds: float) -> None:
        self._state.on_silent(seconds)
        if self._link is not None:
            self._link.abort()

    def _ping(self) -> None:
        # Without a lane, nothing but the PONG tells that the server is there.
        if self._writer.has_server:
            self._writer.ping(self._state.on_heard)

    # State.

    def check_loop(self) -> None:
        """Raise EventLoopError on another event loop than the connection's."""
        self._own_loop.check()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The connection's event loop."""
        return self._own_loop.loop

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._state.is_connected

    @property
    def is_closed(self) -> bool:
        """True once the connection is closed for good."""
        return self._state.is_closed

    @property
    def is_closing(self) -> bool:
        """True once `close` has begun to end the connection."""
        return self._state.is_closing

    @property
    def is_congested(self) -> bool:
        """True while written bytes wait for room in the socket: `drain` before the next write."""
        return self._writer.is_congested

    @property
    def connections(self) -> int:
        """Number of connections so far; a change means a reconnect."""
        return self._state.connections

    @property
    def has_lane(self) -> bool:
        """False if frames come through nats-py's parser, on an attached WebSocket."""
        return self._link is not None and self._link.has_lane

    @property
    def raw(self) -> Any:
        """nats-py's client."""
        return self._nats

    @property
    def server_info(self) -> dict[str, object]:
        """The INFO of the connected server."""
        return cast("dict[str, object]", self._nats._server_info)

    @property
    def max_payload_bytes(self) -> int:
        """Largest message (headers and payload) that the server takes."""
        return cast("int", self._nats.max_payload)

    @property
    def url(self) -> str:
        """The connected server, without secrets."""
        return self._state.url

    def closing_error(self, what: str = "") -> NatsStreamError:
        """Return the error for one that waits when the connection ends.

        Args:
            what: The one that waits, for the error; empty for none.
        """
        error = self._state.broken()
        if what and isinstance(error, _OF_CONNECTION):
            error.name_call(what)
        return error

    @property
    def loss(self) -> str:
        """The detail of an error for one that has waited without a server; empty with one."""
        if self.is_connected:
            return ""
        cause = self._state.last_error
        return f"the connection is lost: {cause}" if cause else "the connection is lost"

    def unsent_error(self, waited_s: float, limit: str) -> ConnectionLostError:
        """Return the error for what has waited for a connection, and is not sent any more.

        Args:
            waited_s: Seconds that it has waited.
            limit: The name of what bounds the wait.
        """
        error = self._state.away(waited_s, left_open="it was not sent")
        error.is_unsent = True
        error.hint = f"check the servers, and send it again; or raise {limit}"
        return error

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call back on every disconnect, reconnect and close; return a function to stop."""
        return self._state.watch(watcher)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call back with each event; return a function to stop. The listener must not block."""
        return self._state.listen(listener)

    def watch_denied(self, sink: Callable[[PermissionDenied], None]) -> Callable[[], None]:
        """Call back with each permission violation; return a function to stop."""

        def pass_on(event: ConnectionEvent) -> None:
            if isinstance(event, PermissionDenied):
                sink(event)

        return self._state.listen(pass_on)

    async def wait_connected(self, timeout: float, *, what: str = "") -> None:
        """Wait until a server is connected.

        Args:
            timeout: Seconds to wait.
            what: The operation that waits, for errors; empty for none.

        Raises:
            ConnectionLostError: No server was connected within `timeout` seconds.
            ConnectionClosedError: The connection was closed.
            AuthenticationError: It was closed because the servers refuse the credentials.
            EventLoopError: The connection belongs to another event loop.
        """
        try:
            self._own_loop.check()
            await self._state.wait_connected(timeout)
        except _OF_CONNECTION as error:
            if what:
                error.name_call(what)
            raise

    # Writing.

    def write(self, commands: bytes) -> bool:
        """Send protocol bytes, in order, now or after a reconnect.

        Returns:
            True if they are in flight to the connected server; False if they wait for a reconnect,
            and `take_back` can still remove them.

        Raises:
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is no connection, and 8 MiB wait for one already.
        """
        return self._writer.write(commands)

    def write_now(self, commands: bytes) -> bool:
        """Send protocol bytes to the server that is connected, and to no later one.

        Raises:
            ConnectionClosedError: The connection was closed.
        """
        if not self.is_connected:
            return False
        if self.write(commands):
            return True
        self.take_back(commands)
        return False

    def take_back(self, command: bytes) -> bool:
        """Remove a command that still waits for a connection: its caller has stopped waiting.

        Returns:
            True if it was there: it was never sent.
        """
        return self._writer.take_back(command)

    async def drain(self) -> None:
        """Wait until the socket has room, at most `request_timeout`.

        Raises:
            ConnectionLostError: The server does not read.
        """
        await self._writer.drain(self.options.request_timeout)

    def when_flushed(self, then: Callable[[], None]) -> bool:
        """Call back when the server has handled all written commands, or the connection broke.

        All messages that it sent before have arrived then. There is no deadline.

        Returns:
            False without a connected server: the callback is not called.
        """
        return self._writer.when_flushed(then)

    async def flush(self, timeout: float, *, what: str = "") -> None:
        """Wait until the server has handled all written commands.

        Args:
            timeout: Seconds to wait.
            what: The operation that waits, for errors of the connection; empty for none.

        Raises:
            RequestTimeoutError: No PONG came within `timeout` seconds.
            ConnectionLostError: The connection broke, or there is none.
            EventLoopError: The connection belongs to another event loop.
        """
        try:
            self._own_loop.check()
            await self._writer.flush(timeout)
        except _OF_CONNECTION as error:
            if what:
                error.name_call(what)
            raise

    def publish_command(self, subject: str, reply: str, headers: bytes, payload: bytes) -> bytes:
        """Return the bytes that publish one message.

        Raises:
            PayloadTooLargeError: The message exceeds the server's max_payload.
            SubjectError: The subject or reply is illegal.
            HeaderError: The header block is illegal.
        """
        size, largest = len(headers) + len(payload), self._nats.max_payload
        if size > largest:
            raise PayloadTooLargeError(
                f"message to {subject} has {size} bytes, the server's max_payload is {largest}",
                hint="split it, or raise max_payload in the server's configuration",
            )
        return publish_command(publish_start(subject, reply), b"", headers, payload)

    async def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: bytes = b"",
        timeout: float,
        retries: int = 0,
        repeats: bool = False,
        what: str = "",
    ) -> Frame:
        """Send a request and return its answer.

        Args:
            subject: Subject of the request.
            payload: Its payload.
            headers: An encoded header block; may be empty.
            timeout: Seconds in all, retries included.
            retries: Retries if there are no responders, 250 ms apart (ADR-22).
            repeats: Repeat it without an answer, after 1 s, then 2 s, then every 4 s, and after a
                reconnect; the first answer counts. For requests that change nothing.
            what: The operation, for errors of the connection and of the deadline; empty for the
                subject.

        Raises:
            RequestTimeoutError: No answer within `timeout` seconds.
            NoRespondersError: The subject has no responders.
            PermissionDeniedError: The user may not publish there, or not subscribe to the inbox.
            ConnectionLostError: The connection broke before the answer came (with `repeats`: and is
                not back in time), or was away for `timeout` seconds, and nothing was sent.
            EventLoopError: The connection belongs to another event loop.
            UsageError: The request is illegal; see `publish_command`.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + timeout
        call = what or f"request on {subject}"
        while True:
            if repeats:
                await self.wait_connected(max(deadline - now(), 0.001), what=call)
            try:
                frame = await self._ask(
                    subject, payload, headers, deadline, timeout, repeats=repeats
                )
            except _OF_CONNECTION as error:
                error.name_call(call)
                # While the state says connected, 8 MiB wait, and would refuse it again.
                if repeats and isinstance(error, ConnectionLostError) and not self.is_connected:
                    continue
                raise
            except PermissionDeniedError as error:
                if what and error.subject not in what and not self.requests.is_refused:
                    error.name_call(what)
                raise
            except RequestTimeoutError as error:
                if what:  # Many subjects of JetStream's API do not name the message.
                    error.name_call(what)
                raise
            try:
                check_responders(frame, subject)
            except NoRespondersError:
                if retries <= 0 or deadline - now() <= RETRY_WAIT_S:
                    raise
                await asyncio.sleep(RETRY_WAIT_S)
                if now() >= deadline:  # A busy loop woke up late: the deadline has passed.
                    raise
            else:
                return frame
            retries -= 1

    async def _ask(
        self,
        subject: str,
        payload: bytes,
        headers: bytes,
        deadline: float,
        timeout: float,
        *,
        repeats: bool,
    ) -> Frame:
        reply, future = self.requests.expect(subject)
        command, is_over = b"", False

        def ask_again() -> None:
            if self._writer.has_server:  # Otherwise the first one still waits for a connection.
                self.write(command)

        timer = RequestTimer(future, deadline, ask_again if repeats else None)
        try:
            command = self.publish_command(subject, reply, headers, payload)
            self._writer.write_together(command)
            frame = await future
            is_over = not repeats
            return frame
        except TimeoutError:
            is_usual = timeout == self.options.request_timeout
            limit = "request_timeout" if is_usual else "timeout or request_timeout"
            if self.take_back(command) and not self.is_connected:
                raise self.unsent_error(timeout, limit) from None
            answerer = "the server" if subject.startswith("$") else "the program that answers it"
            raise RequestTimeoutError(
                f"no answer on {subject} within {timeout:g} s",
                detail=self.loss,
                hint=f"raise {limit}, or check {answerer}",
                retryable=True,
            ) from None
        finally:
            timer.end()
            self.requests.forget(reply)
            if not is_over:
                self.take_back(command)

    # Subscriptions.

    def new_inbox(self) -> str:
        """Return a unique subject for answers.

        Raises:
            PermissionDeniedError: The user may not subscribe to the connection's inbox: the same
                holds for this one.
        """
        self.requests.check_inbox()
        return f"{self.options.inbox_prefix}.{secrets.token_hex(11)}"

    async def subscribe(
        self,
        subject: str,
        sink: FrameSink,
        *,
        queue: str = "",
        on_denied: DeniedSink | None = None,
        what: str = "",
    ) -> Subscription:
        """Hand every frame of a subject to a sink, across reconnects.

        Args:
            subject: The subject; wildcards are legal.
            sink: Gets the frames; it must not wait.
            queue: The queue group, empty for none.
            on_denied: Called when the server does not allow it, which it tells later.
            what: The reader, for errors of the connection and for `on_denied`; empty for the
                subject.

        Raises:
            SubjectError: The subject would break the line.
            ConfigError: The name of the queue group would.
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is no connection and 8 MiB wait for one already.
            EventLoopError: The connection belongs to another event loop.
        """
        try:
            self._own_loop.check()
            self._state.check_open()
        except _OF_CONNECTION as error:
            error.name_call(what or f"subscription to {subject}")
            raise
        if self._link is None:
            raise self._state.broken()
        return self._subscriptions.make(
            self._link, subject, sink, queue=queue, on_denied=on_denied, what=what
        )

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            "an open connection cannot be pickled or copied, nor anything that uses one",
            hint="send the URL and the names instead, and connect where they arrive",
        )

    async def close(self) -> None:
        """Store what open producers hold, send what is written, then leave; twice is fine.

        An attached connection stays open for the application.

        Raises:
            EventLoopError: The connection belongs to another event loop.
        """
        if self._link is None:
            return
        if self._state.is_closed:
            await self.endings.leave(_LAST_FLUSH_S)  # They only tell what was not stored.
            return
        self._own_loop.check()
        try:
            await self.endings.leave(LAST_STORES_S)
            await self.endings.finish(_LAST_FLUSH_S)
            self._subscriptions.end_all()
            with suppress(NatsStreamError):
                await self.flush(_LAST_FLUSH_S)
            self._state.begin_end()
            # Whatever nats-py meets while it closes, we are done with it.
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await self._link.close()
        finally:
            # Also when the caller does not wait, or a frozen server takes no more bytes.
            self._state.begin_end()
            self._link.discard()
            self._state.end()
