"""Publishing many messages with a window of acks under way.

What lives here: what users call. What must not: how messages are sent (`sending.py`,
`ordered_sending.py`) and counted (`window.py`).

Law: a message whose ack was returned is in the stream; every future settles, with the ack, with
the server's refusal, or with an error that says that nothing is known.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self, cast

from natsstream._wire import api as subjects
from natsstream._wire.client import Subscription
from natsstream._wire.commands import publish_start
from natsstream._wire.headers import HeaderName, HeaderValues
from natsstream._wire.parser import Frame
from natsstream.errors import (
    ConfigError,
    ConnectionLostError,
    NatsStreamError,
    PayloadTooLargeError,
    PermissionDeniedError,
)
from natsstream.events import PermissionDenied
from natsstream.streams.api import Api
from natsstream.streams.info import StreamInfo
from natsstream.streams.names import check_subject
from natsstream.streams.publishing.guards import Alone, MessageIdGuard
from natsstream.streams.publishing.ordered_sending import OrderedSending
from natsstream.streams.publishing.outgoing import (
    Expect,
    Payload,
    PublishMessage,
    Ttl,
    message_headers,
    needed_features,
    payload_bytes,
)
from natsstream.streams.publishing.pub_ack import PubAck, no_stream
from natsstream.streams.publishing.publisher_options import PublisherOptions
from natsstream.streams.publishing.sending import PlainSending, Sending
from natsstream.streams.publishing.window import AckFuture, Window
from natsstream.units import NS_PER_SECOND, duration_ns

# The server's own default, for streams that do not say.
_DUPLICATE_WINDOW_S = 120.0
_SUBJECTS_MAX = 1_024


class Publisher:
    """Publishes without waiting for each ack; made by `JetStream.publisher`.

    Messages leave in the order of `send`. Leaving the context waits for all acks and raises the
    first failure that nobody has looked at; leaving it by an error sends nothing more.
    """

    def __init__(self, api: Api, options: PublisherOptions) -> None:
        self._api = api
        self._options = options
        self._window = Window(options.max_pending, options.max_pending_bytes)
        self._sending: Sending | None = None
        self._subscription: Subscription | None = None
        self._prefix = ""
        # What the commands of a subject begin with; a subject in it is legal.
        self._starts: dict[str, bytes] = {}
        self._ids = f"{secrets.token_urlsafe(9)}-"
        self._ids_given = 0
        self._looking_up = asyncio.Lock()
        self._refusal: NatsStreamError | None = None
        self._is_left = False
        self._unwatch = lambda: None
        self._unwatch_denied = lambda: None

    @property
    def pending_count(self) -> int:
        """Messages whose ack is under way."""
        return self._window.count

    @property
    def pending_bytes(self) -> int:
        """Bytes of the messages whose ack is under way."""
        return self._window.size

    async def __aenter__(self) -> Self:
        if self._subscription is not None:
            raise ConfigError("the publisher is open already", hint="make one for each block")
        client = self._api.client
        # Nothing of an earlier block: neither its failures nor where its acks went to.
        self._window = Window(self._options.max_pending, self._options.max_pending_bytes)
        self._starts.clear()
        self._refusal = None
        self._is_left = False
        self._prefix = f"{client.new_inbox()}."
        self._subscription = await client.subscribe(
            f"{self._prefix}*", self._on_acks, on_denied=self._on_inbox_denied
        )
        if self._options.retry_for is None:
            self._sending = self._plain()
        self._unwatch = client.watch(self._on_connection)
        self._unwatch_denied = client.watch_denied(self._on_denied)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            if kind is None:
                await self.flush()
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
    ) -> asyncio.Future[PubAck]:
        """Send a message; waits only while the window is full.

        Args:
            subject: Where to; no wildcards.
            data: The payload.
            headers: Header values by name; a list sends the header more than once.
            msg_id: Identity for the stream's duplicate window; with `retry_for` one is made where
                none is given.
            expect: What must hold in the stream; with `retry_for` only `stream`.
            ttl: Whole seconds after which the stream forgets the message, or "never"; the stream
                needs `allow_msg_ttl`, the server 2.11.

        Returns:
            The future of its ack. It need not be awaited: leaving the context tells failures.

        Raises:
            SubjectError: The subject can not be published to; nothing was sent.
            HeaderError: A header would break the wire; nothing was sent.
            ConfigError: An argument has no legal value; nothing was sent.
            PayloadTooLargeError: The message exceeds the server's limit; nothing was sent.
            UnsupportedServerError: The server is too old for what was asked; nothing was sent.
            NatsStreamError: An earlier message failed and nobody looked at its future.
        """
        if self._sending is None:
            await self._prepare(subject)
        raise_failure = self._window.raise_failure
        return await self._send(raise_failure, subject, data, headers, msg_id, expect, ttl)

    async def send_many(
        self, messages: Iterable[PublishMessage | tuple[str, Payload]]
    ) -> list[PubAck]:
        """Send messages and wait for all of their acks.

        One call crosses into the loop's thread once where `natsstream.blocking` is used; the
        iterable is then gone through in that thread.

        Args:
            messages: Each with its arguments, or as (subject, data).

        Returns:
            The acks, in the order of the messages.

        Raises:
            NatsStreamError: What the first message that failed has failed with; its `index` counts
                from 0. Nothing is sent after a failure is known, but messages behind it may have
                been under way, and are stored or not; all of them have ended.

        The iterable must give its messages at once: while it waits, for a file or another server,
        the whole connection does, and messages before may fail by `ack_timeout`.

        Cost: some 300 bytes a message until the call ends: give a long source in parts.
        """
        self._window.raise_failure()
        futures: list[AckFuture] = []
        failures = self._window.failures
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
            NatsStreamError: The first failure that nobody has looked at.

        Cost: at most `ack_timeout`, and `retry_for` on top, as no message waits for longer.
        """
        if self._sending is not None:
            self._sending.write()
            await self._window.wait_for(self._sending.entries())
        self._window.raise_failure()

    async def _send_one(self, message: PublishMessage | tuple[str, Payload]) -> AckFuture:
        """Send one of many."""
        if not isinstance(message, PublishMessage):
            subject, data = message
            if self._sending is None:
                await self._prepare(subject)
            return await self._send(_pass, subject, data)
        if self._sending is None:
            await self._prepare(message.subject)
        return await self._send(
            _pass,
            message.subject,
            message.data,
            message.headers,
            message.msg_id,
            message.expect,
            message.ttl,
        )

    async def _send(
        self,
        raise_failure: Callable[[], None],
        subject: str,
        data: Payload = b"",
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
    ) -> AckFuture:
        start = self._starts.get(subject) or self._start(subject)
        if not isinstance(data, bytes):
            data = payload_bytes(data)
        if self._options.retry_for is not None:
            msg_id = self._retried_id(msg_id, expect, headers)
        block = b""
        if headers or msg_id is not None or expect is not None or ttl is not None:
            block = message_headers(headers, msg_id, expect, ttl)
            if ttl is not None or expect is not None:
                await self._api.require(*needed_features(expect, ttl))
        size = len(block) + len(data)
        if size > self._api.client.max_payload_bytes:
            raise self._too_large(subject, size)
        size += len(start)
        while not self._window.has_room(size):
            if self._sending is not None:
                self._sending.write()
            await self._window.wait_for_room()
        if self._sending is None:
            raise self._refusal or _not_open()
        raise_failure()
        return self._sending.add(subject, start, block, data, msg_id or "")

    def _start(self, subject: str) -> bytes:
        """Return what the commands of a new subject begin with."""
        check_subject(subject)
        if len(self._starts) >= _SUBJECTS_MAX:
            self._starts.clear()
        start = self._starts[subject] = publish_start(subject, self._prefix)
        return start

    def _retried_id(
        self, msg_id: str | None, expect: Expect | None, headers: HeaderValues | None
    ) -> str:
        """Return the id by which the stream knows a second copy, made here where none is given."""
        if expect is not None and expect.is_about_order:
            raise ConfigError(
                "a message that may be sent again can expect nothing of what stands before it",
                detail="the second copy would be refused because of the first",
                hint="leave retry_for out, or the expectation",
            )
        if msg_id is None and headers:
            # One that the caller gives as a header is an identity as well.
            given = headers.get(HeaderName.MSG_ID)
            msg_id = given if given is None or isinstance(given, str) else next(iter(given), None)
        if msg_id is not None:
            return msg_id
        self._ids_given += 1
        return f"{self._ids}{self._ids_given:x}"

    def _too_large(self, subject: str, size: int) -> PayloadTooLargeError:
        largest = self._api.client.max_payload_bytes
        return PayloadTooLargeError(
            f"message to {subject} has {size} bytes, the server takes {largest}",
            hint="split it, or raise max_payload in the server's configuration",
        )

    async def _settle(self, futures: list[AckFuture]) -> None:
        """Wait until all have ended; raise the first failure with its index."""
        if self._sending is not None:
            self._sending.write()
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

    # How messages are sent.

    async def _prepare(self, subject: str) -> None:
        """Look at the stream before the first message that may be sent again."""
        if self._subscription is None:
            raise _not_open()
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)  # Else it would grow with each call.
        async with self._looking_up:
            if self._sending is not None:
                return
            name = self._options.stream or await self._find_stream(check_subject(subject))
            answer = await self._api.read(subjects.stream_info(name), None, what=f"stream {name}")
            stream = StreamInfo.from_json(answer)
            self._check_stream(stream)
            if self._is_left:
                raise _not_open()
            self._sending = self._ordered(stream) if self._options.keep_order else self._plain()

    async def _find_stream(self, subject: str) -> str:
        body = {"subject": subject}
        answer = await self._api.read(subjects.STREAM_NAMES, body, what=f"stream of {subject}")
        # The server sends a list of names, or null.
        names = cast("list[str] | None", answer.get("streams"))
        if not names:
            raise no_stream(subject)
        return names[0]

    def _check_stream(self, stream: StreamInfo) -> None:
        """Refuse a stream in which a message that is sent again could be stored twice."""
        retry_for = self._options.retry_for or 0.0
        told = stream.config.duplicate_window
        window_s = _DUPLICATE_WINDOW_S if told is None else duration_ns(told) / NS_PER_SECOND
        if window_s <= retry_for:
            raise ConfigError(
                f"stream {stream.name} remembers message ids for {window_s:g} s only, and messages "
                f"would be sent again for {retry_for:g} s",
                hint="lower retry_for, or raise the stream's duplicate_window",
            )
        if stream.config.no_ack:
            raise ConfigError(
                f"stream {stream.name} has no_ack: it would not say what it stored",
                hint="js.streams.update(name, no_ack=False)",
            )

    def _plain(self) -> PlainSending:
        return PlainSending(self._api, self._options, self._window, self._prefix.encode())

    def _ordered(self, stream: StreamInfo) -> OrderedSending:
        is_replicated = (stream.config.replicas or 1) > 1
        guard = Alone() if is_replicated else MessageIdGuard()
        prefix = self._prefix.encode()
        return OrderedSending(self._api, self._options, self._window, prefix, guard)

    # What the connection tells.

    def _on_acks(self, frames: list[Frame]) -> None:
        if self._sending is not None:
            self._sending.on_acks(frames)

    def _on_connection(self) -> None:
        if self._sending is not None:
            self._sending.on_connection()

    def _on_denied(self, event: PermissionDenied) -> None:
        if self._sending is not None and event.operation == "publish":
            self._sending.on_denied(event)

    def _on_inbox_denied(self, error: PermissionDeniedError) -> None:
        """No ack can come: fail what is under way, and take nothing more."""
        self._refusal = error
        if self._sending is not None:
            self._sending.close(error)
            self._sending = None
        self._window.wake()

    def _close(self) -> None:
        self._is_left = True
        self._unwatch()
        self._unwatch_denied()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        sending, self._sending = self._sending, None
        if sending is not None:
            sending.close(ConnectionLostError("the publisher was left before the ack came"))
        self._window.wake()


def _pass() -> None:
    """Raise nothing: `send_many` tells failures with their index."""


def _not_open() -> ConfigError:
    return ConfigError("the publisher is not open", hint="use it with 'async with'")
