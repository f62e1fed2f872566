"""One connection to NATS: nats-py's, with the fast lane in front of it.

What lives here: connecting, writing, requests with deadlines, subscriptions with sinks, and what
breaks. What must not: JetStream, and how a connection is made (`nats_py.py`).

Law: nats-py's errors do not leave this room, and no wait is without a deadline.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

from natsstream._wire.parser import BlockSink, Frame, FrameParser, FrameSink
from natsstream._wire.status import StatusCode, parse_status
from natsstream.errors import (
    AuthenticationError,
    ConnectError,
    ConnectionClosedError,
    ConnectionLostError,
    NatsStreamError,
    NoRespondersError,
    PayloadTooLargeError,
    ProtocolError,
    RequestTimeoutError,
    TransportError,
)
from natsstream.options import ConnectOptions, public_url

# Commands written while there is no connection, kept by nats-py until there is one.
PENDING_BYTES_MAX = 8 << 20
_CLOSE_TIMEOUT_S = 2.0


class Subscription:
    """A subject whose frames go to sinks; made by `Client.subscribe`."""

    def __init__(self, client: Client, sid: bytes, subject: str) -> None:
        self._client = client
        self.sid = sid
        self.subject = subject

    def read_blocks(self, sink: BlockSink | None) -> None:
        """Hand runs of messages to a block sink; None ends that."""
        blocks = self._client.parser.blocks
        if sink is None:
            blocks.pop(self.sid, None)
        else:
            blocks[self.sid] = sink

    def close(self) -> None:
        """Stop the subscription here and on the server; closing twice is fine."""
        self._client.unsubscribe(self.sid)


class Client:
    """A connection that reconnects; use `Client.connect`.

    Attributes:
        options: What it was opened with.
        parser: The sinks of its subscriptions.
        connections: How many connections were made; a change means that a break lies between.
    """

    def __init__(self, options: ConnectOptions) -> None:
        self.options: ConnectOptions = options
        self.parser: FrameParser = FrameParser()
        self.connections: int = 0
        self._nats: Any = None
        self._is_up = asyncio.Event()
        self._is_closed = False
        self._broken: NatsStreamError | None = None
        self._watchers: set[Callable[[], None]] = set()
        self._inbox = f"_INBOX.{secrets.token_hex(11)}"
        self._replies: dict[bytes, asyncio.Future[Frame]] = {}
        self._requests = 0
        self._last_error = ""

    @classmethod
    async def connect(cls, options: ConnectOptions) -> Client:
        """Connect to the first of the servers that answers.

        Raises:
            ConnectError: None could be reached within `connect_timeout` each.
            AuthenticationError: A server refused the credentials.
        """
        failures: list[str] = []
        for url in options.servers:
            # A new one each time: what a failed handshake tells while it closes is not about it.
            client = cls(options)
            try:
                await client._open(url)
                await client.subscribe(f"{client._inbox}.*", client._resolve)
            except BaseException as error:
                await client.close()
                if isinstance(error, AuthenticationError) or not isinstance(error, TransportError):
                    raise
                failures.append(f"{public_url(url)}: {error.detail or error.message}")
            else:
                return client
        raise ConnectError(
            f"no server answered at {', '.join(map(public_url, options.servers))}",
            detail="; ".join(failures),
            hint="is nats-server running there? Start one with: nats-server -js",
        )

    async def _open(self, url: str) -> None:
        # Here and not at the top: nats-py costs most of a second to import.
        from natsstream._wire.nats_py import Callbacks, open_nats  # noqa: PLC0415

        callbacks = Callbacks(
            self._on_error,
            self._on_connected,
            self._on_disconnected,
            self._on_closed,
            self._on_broken,
        )
        self._nats = await open_nats(url, self.options, self.parser, callbacks)
        await self._on_connected()

    # What nats-py tells.

    async def _on_error(self, error: Exception) -> None:
        self._last_error = str(error) or type(error).__name__

    async def _on_connected(self) -> None:
        self.connections += 1
        self._is_up.set()
        for watcher in tuple(self._watchers):
            watcher()

    async def _on_disconnected(self) -> None:
        self._is_up.clear()
        lost = ConnectionLostError(
            "connection lost before the answer came", detail=self._last_error, retryable=True
        )
        for future in self._replies.values():
            if not future.done():
                future.set_exception(lost)
        for watcher in tuple(self._watchers):
            watcher()

    async def _on_closed(self) -> None:
        self._is_closed = True
        # Those who wait for a connection must wake to learn that none will come.
        self._is_up.set()
        for watcher in tuple(self._watchers):
            watcher()

    def _on_broken(self, error: NatsStreamError) -> None:
        self._broken = error

    # State.

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._is_up.is_set() and not self._is_closed

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
        connected = self._nats.connected_url
        return public_url(connected.geturl()) if connected else "no server"

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call back whenever the connection breaks, returns or closes; returns how to stop."""
        self._watchers.add(watcher)
        return lambda: self._watchers.discard(watcher)

    async def wait_connected(self, timeout: float) -> None:
        """Wait until a server is connected.

        Raises:
            ConnectionLostError: None was within `timeout` seconds.
            ConnectionClosedError: The connection was closed.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._is_up.wait()
        except TimeoutError:
            raise ConnectionLostError(
                f"no server came back within {timeout:g} s",
                detail=self._last_error,
                hint="raise reconnect_timeout, or look at the servers",
                retryable=True,
            ) from None
        self._check_open()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ConnectionClosedError(
                "the connection is closed",
                detail=self._broken.message if self._broken else self._last_error,
                hint="open a new one with natsstream.connect()",
            )

    # Writing.

    def write(self, commands: bytes) -> None:
        """Send protocol bytes, in order, now or after a reconnect.

        Raises:
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is no connection and 8 MiB wait for one already.
        """
        self._check_open()
        nats = self._nats
        if self._is_up.is_set() and nats.is_connected:
            # nats-py's own way costs a task switch; the transport keeps the order. What nats-py
            # has queued goes first: its flusher may wait for room in the socket.
            transport = nats._transport._io_writer.transport
            if nats._pending:
                transport.writelines(nats._pending)
                nats._pending = []
                nats._pending_data_size = 0
            transport.write(commands)
            return
        if nats._pending_data_size + len(commands) > PENDING_BYTES_MAX:
            raise ConnectionLostError(
                "not connected, and the buffer for writes is full", retryable=True
            )
        nats._pending.append(commands)
        nats._pending_data_size += len(commands)
        if nats.is_connected and nats._flush_queue.empty():
            nats._flush_queue.put_nowait(asyncio.get_running_loop().create_future())

    def _take_back(self, command: bytes) -> None:
        """Forget a command that still waits for a connection: nobody waits for its answer.

        Otherwise a server that comes back would do what its caller has long been told has failed.
        """
        nats = self._nats
        for index, waiting in enumerate(nats._pending):
            if waiting is command:
                del nats._pending[index]
                nats._pending_data_size -= len(command)
                return

    async def drain(self) -> None:
        """Wait until the socket has room, at most `request_timeout`."""
        if not self.is_connected:
            return
        with suppress(OSError):  # A broken connection shows itself by its own event.
            try:
                async with asyncio.timeout(self.options.request_timeout):
                    await self._nats._transport.drain()
            except TimeoutError:
                raise ConnectionLostError(
                    "the server reads nothing", hint="is it paused or overloaded?", retryable=True
                ) from None

    def publish_command(
        self, subject: str, reply: str, headers: bytes, payload: bytes | memoryview
    ) -> bytes:
        """Return the bytes that publish one message.

        Raises:
            PayloadTooLargeError: It exceeds the server's max_payload.
        """
        size = len(headers) + len(payload)
        if size > self.max_payload_bytes:
            raise PayloadTooLargeError(
                f"message to {subject} has {size} bytes, the server takes {self.max_payload_bytes}",
                hint="split it, or raise max_payload in the server's configuration",
            )
        if headers:
            line = f"HPUB {subject} {reply} {len(headers)} {size}\r\n"
            return b"%b%b%b\r\n" % (line.encode(), headers, payload)
        return b"%b%b\r\n" % (f"PUB {subject} {reply} {size}\r\n".encode(), payload)

    # Requests: one subscription for all answers.

    def _resolve(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            future = self._replies.get(frame[0])
            if future is not None and not future.done():
                future.set_result(frame)

    def expect_reply(self) -> tuple[str, asyncio.Future[Frame]]:
        """Return a reply subject and the future that its frame settles.

        The caller waits with a deadline and calls `forget_reply`.
        """
        self._requests += 1
        reply = f"{self._inbox}.{self._requests:x}"
        future: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        self._replies[reply.encode()] = future
        return reply, future

    def forget_reply(self, reply: str) -> None:
        """Drop a reply subject; an answer that comes later is ignored."""
        self._replies.pop(reply.encode(), None)

    async def request(
        self, subject: str, payload: bytes = b"", *, headers: bytes = b"", timeout: float
    ) -> Frame:
        """Send a request and return its answer.

        Raises:
            RequestTimeoutError: No answer within `timeout` seconds.
            NoRespondersError: Nobody listens on the subject.
            ConnectionLostError: The connection broke before the answer came.
        """
        reply, future = self.expect_reply()
        command = b""
        try:
            command = self.publish_command(subject, reply, headers, payload)
            self.write(command)
            async with asyncio.timeout(timeout):
                frame = await future
        except TimeoutError:
            raise RequestTimeoutError(
                f"no answer on {subject} within {timeout:g} s",
                hint="raise request_timeout, or look at the server's health",
                retryable=True,
            ) from None
        finally:
            self.forget_reply(reply)
            self._take_back(command)
        check_responders(frame, subject)
        return frame

    # Subscriptions.

    def new_inbox(self) -> str:
        """Return a subject that nobody else uses."""
        return f"_INBOX.{secrets.token_hex(11)}"

    async def subscribe(self, subject: str, sink: FrameSink) -> Subscription:
        """Hand every frame of a subject to a sink, across reconnects."""
        self._check_open()
        # The sink must be there before the server can answer: nats-py numbers in order.
        sid = str(self._nats._sid + 1).encode()
        self.parser.sinks[sid] = sink
        try:
            made = await self._nats.subscribe(subject)
        except Exception as error:
            self.parser.sinks.pop(sid, None)
            raise ProtocolError(f"can not subscribe to {subject}", detail=repr(error)) from error
        if str(made._id).encode() != sid:
            raise ProtocolError("nats-py numbers subscriptions in a new way; use nats-py 2.16")
        return Subscription(self, sid, subject)

    def unsubscribe(self, sid: bytes) -> None:
        """End a subscription here and on the server."""
        if self.parser.sinks.pop(sid, None) is None:
            return
        self.parser.blocks.pop(sid, None)
        self._nats._remove_sub(int(sid))
        if self.is_connected:
            with suppress(NatsStreamError):
                self.write(b"UNSUB %b\r\n" % sid)

    async def close(self) -> None:
        """Send what is written, then leave; closing twice is fine."""
        if self._nats is None or self._is_closed:
            return
        with suppress(Exception):  # Whatever nats-py meets while it closes, we are done with it.
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._nats.close()
        # A frozen server takes none of the bytes that are still to be written.
        self._nats.abort()
        self._is_closed = True
        self._is_up.set()
        for future in self._replies.values():
            if not future.done():
                future.set_exception(ConnectionClosedError("the connection is closed"))
        self._replies.clear()


def check_responders(frame: Frame, subject: str) -> None:
    """Raise NoRespondersError when a frame is the server's 503."""
    if not frame[3] and frame[2]:
        status = parse_status(frame[2])
        if status is not None and status.code == StatusCode.NO_RESPONDERS:
            raise NoRespondersError(
                f"nobody listens on {subject}",
                hint="does a stream with this subject exist, and is JetStream on?",
                retryable=True,
            )
