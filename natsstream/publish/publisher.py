"""Publishing many messages with a window of acks in flight.

Law: a message whose ack was returned is stored. Every future completes, with the ack, with the
server's error, or with an error that leaves open whether the message is stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Self

from natsstream._wire.client import Subscription
from natsstream._wire.headers import HeaderValues
from natsstream._wire.parser import Frame
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.arguments import counted
from natsstream.errors import (
    ConfigError,
    ConnectionLostError,
    NatsStreamError,
    PermissionDeniedError,
    UsageError,
)
from natsstream.events import PermissionDenied
from natsstream.foreign_names import answers_names
from natsstream.publish.ack_window import AckFuture, AckWindow
from natsstream.publish.admission import find_stream
from natsstream.publish.destination import Destination, check_acks, keeps_ids
from natsstream.publish.message_encoder import MessageEncoder
from natsstream.publish.outgoing import (
    Expect,
    Payload,
    PublishMessage,
    Rollup,
    check_messages,
    check_publish_subject,
    pair_of,
    payload_bytes,
    too_large,
)
from natsstream.publish.pipelined_sender import PipelinedSender
from natsstream.publish.pub_ack import PubAck
from natsstream.publish.publisher_options import PublisherOptions
from natsstream.publish.schedule import Schedule, Ttl
from natsstream.units import NS_PER_SECOND, duration_ns

_log = logging.getLogger("natsstream.publisher")

# The server's own default, for streams that do not say.
_DUPLICATE_WINDOW_S = 120.0


# For `send` an answer would cost a twentieth.
@answers_names("publisher", calls=("send_many",))
class Publisher:
    """Publishes without waiting for each ack; made by `JetStream.publisher`.

    Messages are sent in the order of `send`. Leaving the context waits for all acks and raises the
    first failure whose future was not read. Leaving it by an error waits for no ack; what `send`
    has taken is still sent if a server is connected.

    Args:
        api: The connection.
        options: The options.
        logs: Whether lost acks are logged; False for a caller that sends all again itself.
    """

    def __init__(self, api: Api, options: PublisherOptions, *, logs: bool = True) -> None:
        self._api = api
        self._loop = api.client.loop
        self._options = options
        self._logs = logs
        self._window = self._new_window()
        self._sender: PipelinedSender | None = None
        self._subscription: Subscription | None = None
        self._prefix = ""
        self._is_retried = options.retry_for is not None
        self._labels = MessageEncoder(api, retry_for=options.retry_for)
        # Looked at for each message, so not through `_labels`.
        self._starts = self._labels.starts
        self._looking_up = asyncio.Lock()
        self._refusal: NatsStreamError | None = None
        self._is_left = False
        self._unwatch = lambda: None
        self._unwatch_denied = lambda: None

    @property
    def pending_count(self) -> int:
        """Messages whose ack is in flight."""
        return self._window.count

    @property
    def pending_bytes(self) -> int:
        """Bytes of the messages whose ack is in flight."""
        return self._window.size

    async def __aenter__(self) -> Self:
        if self._subscription is not None:
            raise UsageError("the publisher is open already", hint="make one for each block")
        client = self._api.client
        # Nothing of an earlier block: neither its failures nor where its acks went to.
        self._window = self._new_window()
        self._refusal = None
        self._is_left = False
        self._prefix = f"{client.new_inbox()}."
        self._labels.begin(self._prefix)
        self._subscription = await client.subscribe(
            f"{self._prefix}*",
            self._on_acks,
            on_denied=self._on_inbox_denied,
            what="publisher",
        )
        if not self._is_retried:
            self._sender = self._sender_to(None)
        self._unwatch = client.watch(self._on_connection)
        self._unwatch_denied = client.watch_denied(self._on_denied)
        return self

    def _new_window(self) -> AckWindow:
        # A caller that hides this publisher has no call of which an error could speak.
        count_max, size_max = self._options.max_pending, self._options.max_pending_bytes
        return AckWindow(count_max, size_max, is_hidden=not self._logs)

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                await self.flush()
            elif self._window.count:
                self._abandon()
        finally:
            self._close()

    async def send(
        self,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        rollup: Rollup | None = None,
        schedule: Schedule | None = None,
    ) -> asyncio.Future[PubAck]:
        """Send a message; waits only while the window is full.

        Arguments as in `JetStream.publish`. With `retry_for` all messages go to the stream of the
        first one, each gets a `msg_id` if it has none, and `expect` may set `stream` only.

        Returns:
            The future of the ack. It need not be awaited: leaving the context raises failures.

        Raises:
            SubjectError: The subject is illegal; nothing was sent.
            HeaderError: A header is illegal; nothing was sent.
            ConfigError: An argument is illegal; nothing was sent.
            EventLoopError: The connection belongs to another event loop; nothing was sent.
            PayloadTooLargeError: The message exceeds the server's limit; nothing was sent.
            UnsupportedServerError: The server is too old for an argument; nothing was sent.
            TransportError: With `retry_for`: no stream info within that time, or within
                `request_timeout` if that is longer; nothing was sent.
            NatsStreamError: An earlier message failed, and its future was not read. Its error is
                raised once, and this message was not sent.
        """
        if asyncio.get_running_loop() is not self._loop:
            self._api.client.check_loop()
        if self._sender is None:
            await self._prepare(subject)
        given = None
        if headers is msg_id is expect is ttl is rollup is schedule is None:
            self._window.raise_earlier()
            if (future := self._send_at_once(subject, data)) is not None:
                return future
        else:
            given = PublishMessage(subject, data, headers, msg_id, expect, ttl, rollup, schedule)
        return await self._send(self._window.raise_earlier, subject, data, given)

    async def send_many(
        self, messages: Iterable[PublishMessage | tuple[str, Payload]]
    ) -> list[PubAck]:
        """Send messages and wait for all of their acks.

        With `natsstream.blocking` the iterable runs in the loop's thread.

        Args:
            messages: Messages with their arguments, or (subject, data) pairs.

        Returns:
            The acks, in the order of the messages.

        Raises:
            NatsStreamError: The error of the first failed message; `index` counts from 0. Later
                messages that were in flight are stored or not; nothing else is sent.

        The iterable must not block: while it waits for a file or another server, the whole
        connection waits, and earlier messages may exceed `ack_timeout`.

        Cost: about 300 bytes a message until the call returns; pass a long source in parts.
        """
        self._api.client.check_loop()
        self._window.raise_earlier()
        futures: list[AckFuture] = []
        failures = self._window.failures
        check_messages(messages)
        for message in messages:
            try:
                futures.append(await self._send_one(message))
            except NatsStreamError as error:
                await self._settle(futures)
                error.index = len(futures)
                raise
            if self._window.failures != failures:
                failures = self._window.failures
                if any(future.error for future in futures):
                    break
        await self._settle(futures)
        return [future.result() for future in futures]

    async def flush(self) -> None:
        """Wait for the acks of everything sent so far.

        Raises:
            NatsStreamError: The first failure whose future was not read.

        Cost: at most `ack_timeout`, or `retry_for` if that is longer.
        """
        self._api.client.check_loop()
        if self._sender is not None:
            self._sender.write()
            await self._window.wait_for(self._sender.entries())
        self._window.raise_failure()

    async def _send_one(self, message: PublishMessage | tuple[str, Payload]) -> AckFuture:
        """Send one of many."""
        given = message if isinstance(message, PublishMessage) else None
        subject, data = pair_of(message) if given is None else (given.subject, given.data)
        if self._sender is None:
            await self._prepare(subject)
        if given is None and (future := self._send_at_once(subject, data)) is not None:
            return future
        return await self._send(_pass, subject, data, given)

    def _send_at_once(self, subject: str, data: Payload) -> AckFuture | None:
        """Send a message that needs no headers and no wait; None for any other.

        A coroutine less is a tenth of the cost of a message.
        """
        if self._sender is None or self._is_retried or not isinstance(data, bytes):
            return None
        try:
            start = self._starts.get(subject)
        except TypeError:  # No text, and nothing that a dict could look for.
            return None
        size = len(data)
        if start is None or size > self._api.client.max_payload_bytes:
            return None
        if not self._window.has_room(size + len(start)):
            return None
        return self._sender.add(subject, start, b"", data)

    async def _send(
        self,
        raise_failure: Callable[[], None],
        subject: str,
        data: Payload,
        given: PublishMessage | None,
    ) -> AckFuture:
        """Send a message; `given` has more than subject and data, None if there is no more."""
        try:
            start = self._starts.get(subject) or await self._labels.start(subject)
        except TypeError:  # No text, and nothing that a dict could look for.
            start = await self._labels.start(subject)
        if not isinstance(data, bytes):
            data = payload_bytes(data)
        block = b""
        if self._is_retried or given is not None:
            block = await self._labels.make(subject, data, given)
        size = len(block) + len(data)
        if size > self._api.client.max_payload_bytes:
            raise too_large(f"message to {subject}", size, self._api.client.max_payload_bytes)
        size += len(start)
        if not self._window.has_room(size):
            if self._sender is not None:
                self._sender.write()
            await self._window.wait_for_room(size)
        if self._sender is None:
            raise self._refusal or self._not_open()
        raise_failure()
        return self._sender.add(subject, start, block, data)

    async def _settle(self, futures: list[AckFuture]) -> None:
        """Wait until all have ended; raise the first failure with its index."""
        if self._sender is not None:
            self._sender.write()
        waiting = [future for future in futures if not future.done()]
        if waiting:
            # Every future settles by its ack, its deadline or the connection's end.
            await asyncio.wait(waiting)
        failed = [index for index, future in enumerate(futures) if future.error is not None]
        for index in failed:
            futures[index].is_seen = True
        if failed:
            error = futures[failed[0]].error
            if isinstance(error, NatsStreamError):
                error.index = failed[0]
                raise error

    def __repr__(self) -> str:
        state = "closed" if self._is_left else "not open"
        if self._subscription is not None:
            state = f"{self.pending_count} pending"
        return f"<Publisher {self._api.client.url}, {state}>"

    # How messages are sent.

    async def _prepare(self, subject: str) -> None:
        """Find and check the stream before the first message that may be sent again."""
        if self._subscription is None:
            raise self._not_open()
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)  # Else it would grow with each call.
        # This may take as long as the message; other calls wait for the same request.
        loop, request_s = asyncio.get_running_loop(), self._api.client.options.request_timeout
        deadline = loop.time() + max(self._options.retry_for or 0.0, request_s)
        async with self._looking_up:
            if self._sender is not None:
                return
            legal = check_publish_subject(subject)
            name = self._options.stream
            if name is None:
                left = max(deadline - loop.time(), 0.001)
                name = await find_stream(self._api, legal, timeout=left)
            left = max(deadline - loop.time(), 0.001)
            stream = await stream_info(self._api, name, timeout=left)
            self._check_stream(stream)
            if self._is_left:
                raise self._not_open()
            # Only one stream knows the ids: another one would store a copy twice.
            destination = self._labels.destination = Destination(self._api, stream)
            self._sender = self._sender_to(destination)

    def _check_stream(self, stream: StreamInfo) -> None:
        """Refuse a stream in which a message that is sent again could be stored twice."""
        retry_for = self._options.retry_for or 0.0
        told = stream.config.duplicate_window
        window_s = _DUPLICATE_WINDOW_S if told is None else duration_ns(told) / NS_PER_SECOND
        if window_s <= retry_for:
            raise ConfigError(
                f"stream {stream.name} has a duplicate_window of {window_s:g} s, retry_for is "
                f"{retry_for:g} s: a copy could be stored twice",
                hint="lower retry_for, or raise the stream's duplicate_window above it",
            )
        check_acks(stream.config)

    def _sender_to(self, destination: Destination | None) -> PipelinedSender:
        prefix = self._prefix.encode()
        return PipelinedSender(self._api, self._options, self._window, prefix, destination)

    # Callbacks of the connection.

    def _on_acks(self, frames: list[Frame]) -> None:
        if self._sender is not None:
            self._sender.on_acks(frames)

    def _on_connection(self) -> None:
        client = self._api.client
        # A close in order is no loss: the futures have its error.
        is_lost = self._window.count and not client.is_connected and not client.is_closing
        if is_lost and self._logs:
            _log.warning(
                "connection lost with %s in flight: %s",
                counted(self._window.count, "message"),
                self._fate_of_unacked(),
            )
        if self._sender is not None:
            self._sender.on_connection()

    def _fate_of_unacked(self) -> str:
        if not self._is_retried:
            return "stored or not; the sends fail"
        destination = self._labels.destination
        stream = destination.stream if destination is not None else None
        if stream is None or keeps_ids(stream.config):
            return "sent again"
        return (
            f"sent again; stream {stream.name} removes messages early, so a server that restarts "
            "forgets their ids, and may store them twice"
        )

    def _on_denied(self, event: PermissionDenied) -> None:
        if self._sender is not None and event.operation == "publish":
            self._sender.on_denied(event)

    def _on_inbox_denied(self, error: PermissionDeniedError) -> None:
        """No ack can come: fail all messages, and take no more."""
        self._refusal = error
        if self._sender is not None:
            self._sender.close(error)
            self._sender = None
        self._window.wake()

    def _abandon(self) -> None:
        """Send what `send` has taken, as far as that needs no wait, and tell what became of it."""
        unsent = 0
        if self._sender is not None:
            self._sender.write()
            unsent = self._sender.unsent_count
        in_flight, told = self._window.count - unsent, list[str]()
        if in_flight:
            told.append(f"{counted(in_flight, 'message')} in flight: stored or not")
        if unsent:
            told.append(f"{counted(unsent, 'unsent message')}")
        if self._logs:
            _log.warning("a publisher was left by an error with %s", ", and ".join(told))

    def _close(self) -> None:
        self._is_left = True
        self._unwatch()
        self._unwatch_denied()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close(ConnectionLostError("the publisher was left before the ack came"))
        self._window.wake()

    def _not_open(self) -> UsageError:
        if self._is_left:
            return UsageError(
                "the publisher is closed: its block has ended",
                hint="send inside the block, or open another one with js.publisher()",
            )
        return UsageError("the publisher is not open", hint="use it with 'async with'")


def _pass() -> None:
    """Raise nothing: `send_many` tells failures with their index."""
