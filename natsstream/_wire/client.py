"""One connection to NATS: nats-py's, with the fast lane in front of it.

Law: nats-py's errors do not leave this room, and no wait is without a deadline.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from natsstream._wire.connection_state import CLOSE_TIMEOUT_S, ConnectionState, Listener, Watcher
from natsstream._wire.encode import publish_command, publish_start
from natsstream._wire.endings import Endings
from natsstream._wire.parser import Frame, FrameParser, FrameSink
from natsstream._wire.request_timer import RequestTimer
from natsstream._wire.requests import RETRY_WAIT_S, Requests, check_responders
from natsstream._wire.subscriptions import DeniedSink, Subscription, Subscriptions
from natsstream._wire.unsent import unsent_bytes
from natsstream._wire.watchdog import Watchdog
from natsstream._wire.writer import SocketWriter
from natsstream.errors import (
    AuthenticationError,
    ConnectError,
    NatsStreamError,
    NoRespondersError,
    PayloadTooLargeError,
    PermissionDeniedError,
    RequestTimeoutError,
    TlsError,
    TransportError,
)
from natsstream.events import ConnectionEvent, PermissionDenied
from natsstream.options import ConnectOptions, public_url

if TYPE_CHECKING:
    from natsstream._wire.nats_py import NatsPyLink

# What was written last, such as the deletion of a consumer, gets this long to reach the server.
_LAST_FLUSH_S = 1.0


class Client:
    """A connection that reconnects; use `Client.connect` or `Client.attach`.

    Attributes:
        options: What it was opened with.
        parser: The sinks of its subscriptions.
        requests: Its requests in flight.
        endings: Clean-up in flight on the server.
    """

    def __init__(self, options: ConnectOptions) -> None:
        self.options: ConnectOptions = options
        self.requests: Requests = Requests(options.inbox_prefix)
        self.endings: Endings = Endings()
        watchdog = Watchdog(
            interval_s=options.ping_interval,
            missed_max=options.max_missed_pings,
            ping=self._ping,
            give_up=self._give_up,
            unsent=lambda: unsent_bytes(self._link.transport if self._link else None),
        )
        self._state = ConnectionState(watchdog, self._on_denied)
        self._writer = SocketWriter(self._state)
        self.parser: FrameParser = FrameParser(self._state.on_server_error)
        self._link: NatsPyLink | None = None
        self._nats: Any = None
        self._subscriptions = Subscriptions(self.parser, self.write)
        self._state.watch(self._on_change)

    @classmethod
    async def connect(cls, options: ConnectOptions) -> Client:
        """Connect to the first of the servers that answers.

        Raises:
            ConnectError: None could be reached within `connect_timeout` each.
            AuthenticationError: A server refused the credentials.
            TlsError: No server could be trusted.
        """
        # Here and not at the top: nats-py costs most of a second to import.
        from natsstream._wire.nats_py import open_nats  # noqa: PLC0415

        failures: list[TransportError] = []
        for url in options.servers:
            # A new one each time: what a failed handshake tells while it closes is not about it.
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
        )

    @classmethod
    async def attach(cls, nats: object, options: ConnectOptions) -> Client:
        """Stand on a connection that the application has opened with nats-py, and leave it open.

        Raises:
            ConfigError: It is no client of nats-py, or not connected.
        """
        # As above: whoever has a client of nats-py has paid for its import, others need not.
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

    # What happens to the connection.

    def _on_change(self) -> None:
        if self.is_connected:
            return
        self.requests.lose(self._state.broken)
        self._writer.lose()

    def _on_denied(self, event: PermissionDenied) -> None:
        if event.operation == "publish":
            self.requests.deny(event)
        else:
            self._subscriptions.deny(event)

    def _on_inbox_denied(self, error: PermissionDeniedError) -> None:
        prefix = self.options.inbox_prefix
        error.hint = f"allow {prefix}.> in the user's permissions, or set inbox_prefix"
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

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._state.is_connected

    @property
    def is_closed(self) -> bool:
        """True once the connection is over for good."""
        return self._state.is_closed

    @property
    def is_congested(self) -> bool:
        """True while written bytes wait for room in the socket: `drain` before more are written."""
        return self._writer.is_congested

    @property
    def connections(self) -> int:
        """How many connections were made; a change means that a break lies between."""
        return self._state.connections

    @property
    def has_lane(self) -> bool:
        """False where frames have to come through nats-py's parser, on an attached WebSocket."""
        return self._link is not None and self._link.has_lane

    @property
    def raw(self) -> Any:
        """nats-py's client."""
        return self._nats

    @property
    def server_info(self) -> dict[str, object]:
        """What the connected server said in its INFO."""
        return cast("dict[str, object]", self._nats._server_info)

    @property
    def max_payload_bytes(self) -> int:
        """Largest message (headers and payload) that the server takes."""
        return cast("int", self._nats.max_payload)

    @property
    def url(self) -> str:
        """The connected server, without secrets."""
        return self._state.url

    def closing_error(self) -> NatsStreamError:
        """Return what those get whose wait the end of the connection ends."""
        return self._state.broken()

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call back whenever the connection breaks, returns or closes; returns how to stop."""
        return self._state.watch(watcher)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call back with each event; returns how to stop. The listener must not wait."""
        return self._state.listen(listener)

    def watch_denied(self, sink: Callable[[PermissionDenied], None]) -> Callable[[], None]:
        """Call back with each thing that the server does not allow; returns how to stop."""

        def pass_on(event: ConnectionEvent) -> None:
            if isinstance(event, PermissionDenied):
                sink(event)

        return self._state.listen(pass_on)

    async def wait_connected(self, timeout: float) -> None:
        """Wait until a server is connected.

        Raises:
            ConnectionLostError: None was within `timeout` seconds.
            ConnectionClosedError: The connection was closed.
            AuthenticationError: It was, because the servers refuse the credentials.
        """
        await self._state.wait_connected(timeout)

    # Writing.

    def write(self, commands: bytes) -> bool:
        """Send protocol bytes, in order, now or after a reconnect.

        Returns:
            True when they are in flight to the connected server; False when they wait for one,
            and `take_back` can still forget them.

        Raises:
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is no connection and 8 MiB wait for one already.
        """
        return self._writer.write(commands)

    def take_back(self, command: bytes) -> None:
        """Forget a command that still waits for a connection: nobody waits for its answer."""
        self._writer.take_back(command)

    async def drain(self) -> None:
        """Wait until the socket has room, at most `request_timeout`.

        Raises:
            ConnectionLostError: The server reads nothing.
        """
        await self._writer.drain(self.options.request_timeout)

    def when_flushed(self, then: Callable[[], None]) -> bool:
        """Call back when the server has handled all that was written, or the connection broke.

        What it has sent until then was handed over before. Nobody waits; a server that stands still
        lets it take as long as the connection lasts.

        Returns:
            False when there is no server to ask: nothing is called.
        """
        return self._writer.when_flushed(then)

    async def flush(self, timeout: float) -> None:
        """Wait until the server has handled all that was written.

        Raises:
            RequestTimeoutError: It did not within `timeout` seconds.
            ConnectionLostError: The connection broke, or there is none.
        """
        await self._writer.flush(timeout)

    def publish_command(self, subject: str, reply: str, headers: bytes, payload: bytes) -> bytes:
        """Return the bytes that publish one message.

        Raises:
            PayloadTooLargeError: It exceeds the server's max_payload.
            SubjectError: Subject or reply would break the line.
            HeaderError: The header block would break the message.
        """
        size, largest = len(headers) + len(payload), self._nats.max_payload
        if size > largest:
            raise PayloadTooLargeError(
                f"message to {subject} has {size} bytes, the server takes {largest}",
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
    ) -> Frame:
        """Send a request and return its answer.

        Args:
            subject: Where to.
            payload: What to ask.
            headers: An encoded header block, or nothing.
            timeout: Seconds in all, retries included.
            retries: How often it is sent again when nobody listens, 250 ms apart (ADR-22).
            repeats: Send it again while there is no answer, after 1 s, then 2 s, then each 4 s; the
                first answer counts. For questions, which change nothing.

        Raises:
            RequestTimeoutError: No answer within `timeout` seconds.
            NoRespondersError: The subject has no responders.
            PermissionDeniedError: The user may not publish there, or not listen for answers.
            ConnectionLostError: The connection broke before the answer came.
            UsageError: It cannot be encoded; see `publish_command`.
        """
        now = asyncio.get_running_loop().time
        deadline = now() + timeout
        while True:
            frame = await self._ask(subject, payload, headers, deadline, timeout, repeats=repeats)
            try:
                check_responders(frame, subject)
            except NoRespondersError:
                if retries <= 0 or deadline - now() <= RETRY_WAIT_S:
                    raise
                await asyncio.sleep(RETRY_WAIT_S)
                if now() >= deadline:  # A busy loop woke up late: nothing more may be sent.
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
            if self._writer.has_server:  # Otherwise the first one waits for a connection still.
                self.write(command)

        timer = RequestTimer(future, deadline, ask_again if repeats else None)
        try:
            command = self.publish_command(subject, reply, headers, payload)
            self._writer.write_together(command)
            frame = await future
            is_over = not repeats
            return frame
        except TimeoutError:
            raise RequestTimeoutError(
                f"no answer on {subject} within {timeout:g} s",
                hint="raise request_timeout, or look at the server's health",
                retryable=True,
            ) from None
        finally:
            timer.end()
            self.requests.forget(reply)
            if not is_over:
                self.take_back(command)

    # Subscriptions.

    def new_inbox(self) -> str:
        """Return a subject that nobody else uses."""
        return f"{self.options.inbox_prefix}.{secrets.token_hex(11)}"

    async def subscribe(
        self,
        subject: str,
        sink: FrameSink,
        *,
        queue: str = "",
        on_denied: DeniedSink | None = None,
    ) -> Subscription:
        """Hand every frame of a subject to a sink, across reconnects.

        Args:
            subject: What to listen to; wildcards are taken.
            sink: Gets the frames; it must not wait.
            queue: The queue group, empty for none.
            on_denied: Called when the server does not allow it, which it tells later.

        Raises:
            SubjectError: The subject would break the line.
            ConfigError: The name of the queue group would.
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is no connection and 8 MiB wait for one already.
        """
        self._state.check_open()
        if self._link is None:
            raise self._state.broken()
        return self._subscriptions.make(self._link, subject, sink, queue=queue, on_denied=on_denied)

    async def close(self) -> None:
        """Send what is written, then leave; closing twice is fine.

        An attached connection stays open for the application.
        """
        if self._link is None or self._state.is_closed:
            return
        try:
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
