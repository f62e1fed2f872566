"""Publishing into a stream: one message with its ack, or many with a window of acks under way.

Law: a message whose ack was returned is in the stream; every future settles, with the ack, with
the server's refusal, or with an error that says that nothing is known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from natsstream._wire.client import Subscription, check_responders
from natsstream._wire.headers import HeaderName, encode_headers
from natsstream._wire.parser import Frame
from natsstream.errors import (
    ConfigError,
    ConnectionLostError,
    NatsStreamError,
    NoRespondersError,
    ProtocolError,
    RequestTimeoutError,
)
from natsstream.streams.api import Api, decode
from natsstream.streams.names import check_subject

HeaderValues = Mapping[str, str | Sequence[str]]

MAX_PENDING = 4_096
"""Default window: at 256 bytes a message it hides a round trip of 20 ms at 200,000 messages/s."""
# Commands gathered within one turn of the loop go out as one write, at most this large.
_WRITE_BYTES = 256 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """What must hold when the message reaches the stream; otherwise it is refused.

    Attributes:
        stream: The stream that captures the subject.
        last_seq: Sequence of the stream's last message; 0 for an empty stream.
        last_subject_seq: Sequence of the last message of the same subject; 0 for none.
        last_msg_id: Message id of the stream's last message.
    """

    stream: str | None = None
    last_seq: int | None = None
    last_subject_seq: int | None = None
    last_msg_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("last_seq", "last_subject_seq"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ConfigError(f"{name} must be 0 or more, got {value}")

    def headers(self) -> dict[str, str]:
        """Return the headers that say so."""
        values = {
            HeaderName.EXPECTED_STREAM: self.stream,
            HeaderName.EXPECTED_LAST_SEQUENCE: self.last_seq,
            HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE: self.last_subject_seq,
            HeaderName.EXPECTED_LAST_MSG_ID: self.last_msg_id,
        }
        return {str(name): str(value) for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class PubAck:
    """The stream's word that it has a message.

    Attributes:
        stream: The stream.
        sequence: The message's sequence; for a duplicate, that of the first copy.
        duplicate: True when a message with the same id was stored before.
    """

    stream: str
    sequence: int
    duplicate: bool = False


def message_headers(
    headers: HeaderValues | None, msg_id: str | None, expect: Expect | None
) -> bytes:
    """Return the header block of a message; empty when it needs none."""
    if not headers and msg_id is None and expect is None:
        return b""
    merged: dict[str, str | Sequence[str]] = dict(headers or {})
    if msg_id is not None:
        merged[HeaderName.MSG_ID] = msg_id
    if expect is not None:
        merged.update(expect.headers())
    return encode_headers(merged)


def read_ack(frame: Frame, subject: str) -> PubAck:
    """Return the ack in an answer, or raise what it says instead."""
    what = f"publish to {subject}"
    try:
        check_responders(frame, subject)
    except NoRespondersError as error:
        raise _no_stream(subject) from error
    answer = decode(frame[3], what)
    stream, sequence = answer.get("stream"), answer.get("seq")
    if not isinstance(stream, str) or not isinstance(sequence, int):
        raise ProtocolError(f"{what}: the answer is no ack of a stream", detail=repr(answer))
    return PubAck(stream, sequence, bool(answer.get("duplicate", False)))


async def publish(
    api: Api,
    subject: str,
    data: bytes,
    *,
    headers: bytes,
    timeout: float | None = None,
) -> PubAck:
    """Publish one message and wait for the stream's ack; see `JetStream.publish`."""
    check_subject(subject)
    wait_s = api.client.options.request_timeout if timeout is None else timeout
    try:
        frame = await api.client.request(subject, data, headers=headers, timeout=wait_s)
    except NoRespondersError as error:
        raise _no_stream(subject) from error
    return read_ack(frame, subject)


def _no_stream(subject: str) -> NoRespondersError:
    return NoRespondersError(
        f"publish to {subject}: no stream captures the subject",
        hint="create one: await js.streams.ensure(name, subjects=[...])",
        retryable=True,
    )


class _AckFuture(asyncio.Future[PubAck]):
    """The future of an ack; knows whether somebody was told how it failed."""

    is_seen = False

    def result(self) -> PubAck:
        self.is_seen = self.done()
        return super().result()

    def exception(self) -> BaseException | None:
        self.is_seen = self.done()
        return super().exception()

    def fail(self, error: NatsStreamError) -> None:
        """Settle with an error, of which asyncio need not complain: the publisher tells it."""
        self.set_exception(error)
        super().exception()

    def __await__(self) -> Generator[Any, None, PubAck]:
        try:
            return (yield from super().__await__())
        except NatsStreamError:
            self.is_seen = True
            raise


@dataclass(frozen=True, slots=True)
class _Pending:
    subject: str
    future: _AckFuture
    deadline: float


class Publisher:
    """Publishes without waiting for each ack; made by `JetStream.publisher`.

    Messages leave in the order of `send`. At most `max_pending` acks are under way. Leaving the
    context waits for all of them and raises the first failure that nobody has looked at.
    """

    def __init__(self, api: Api, *, max_pending: int, ack_timeout: float) -> None:
        if max_pending < 1:
            raise ConfigError(f"max_pending must be 1 or more, got {max_pending}")
        if not ack_timeout > 0:
            raise ConfigError(f"ack_timeout must be above 0 seconds, got {ack_timeout}")
        self._api = api
        self._max_pending = max_pending
        self._ack_timeout = ack_timeout
        self._pending: dict[bytes, _Pending] = {}
        self._sent = 0
        self._commands: list[bytes] = []
        self._commands_bytes = 0
        self._subscription: Subscription | None = None
        self._room = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._failed: list[_AckFuture] = []
        self._unwatch = lambda: None

    @property
    def pending_count(self) -> int:
        """Messages whose ack is under way."""
        return len(self._pending)

    async def __aenter__(self) -> Self:
        client = self._api.client
        self._prefix = f"{client.new_inbox()}."
        self._subscription = await client.subscribe(f"{self._prefix}*", self._on_acks)
        self._unwatch = client.watch(self._on_connection)
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
        data: bytes,
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
    ) -> asyncio.Future[PubAck]:
        """Send a message; waits only while the window is full.

        Returns:
            The future of its ack. It need not be awaited: leaving the context tells failures.

        Raises:
            SubjectError: The subject can not be published to; nothing was sent.
            HeaderError: A header would break the wire; nothing was sent.
            PayloadTooLargeError: The message exceeds the server's limit; nothing was sent.
            NatsStreamError: An earlier message failed and nobody looked at its future.
        """
        check_subject(subject)
        block = message_headers(headers, msg_id, expect)
        while self._subscription is not None and len(self._pending) >= self._max_pending:
            self._flush_commands()
            self._room.clear()
            await self._room.wait()
        if self._subscription is None:
            raise ConfigError("the publisher is not open", hint="use it with 'async with'")
        self._raise_failure()
        reply = f"{self._prefix}{self._sent:x}"
        command = self._api.client.publish_command(subject, reply, block, data)
        loop = asyncio.get_running_loop()
        future = _AckFuture(loop=loop)
        deadline = loop.time() + self._ack_timeout
        self._pending[reply.encode()] = _Pending(subject, future, deadline)
        self._sent += 1
        if not self._commands:
            loop.call_soon(self._flush_commands)
        self._commands.append(command)
        self._commands_bytes += len(command)
        if self._commands_bytes >= _WRITE_BYTES:
            self._flush_commands()
            await self._api.client.drain()
        if self._timer is None:
            self._timer = loop.call_later(self._ack_timeout, self._expire)
        return future

    async def flush(self) -> None:
        """Wait for the acks of everything sent so far.

        Raises:
            NatsStreamError: The first failure that nobody has looked at.
        """
        self._flush_commands()
        waiting = [each.future for each in self._pending.values()]
        if waiting:
            # Every future settles by its ack, its deadline or the connection's end.
            await asyncio.wait(waiting)
        self._raise_failure()

    def _raise_failure(self) -> None:
        failed, self._failed = self._failed, []
        for future in failed:
            if not future.is_seen:
                future.result()

    def _flush_commands(self) -> None:
        if not self._commands:
            return
        commands, self._commands, self._commands_bytes = b"".join(self._commands), [], 0
        try:
            self._api.client.write(commands)
        except NatsStreamError as error:
            self._fail_all(error)

    def _on_acks(self, frames: list[Frame]) -> None:
        for frame in frames:
            pending = self._pending.pop(frame[0], None)
            if pending is None:
                continue
            try:
                ack = read_ack(frame, pending.subject)
            except NatsStreamError as error:
                self._fail(pending, error)
            else:
                if not pending.future.done():
                    pending.future.set_result(ack)
        self._make_room()

    def _on_connection(self) -> None:
        if not self._api.client.is_connected:
            self._fail_all(
                ConnectionLostError(
                    "connection lost before the ack came; the message may be stored or not",
                    hint="send it again with the same msg_id or expectation",
                    retryable=True,
                )
            )

    def _expire(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        now = loop.time()
        while self._pending:
            reply, oldest = next(iter(self._pending.items()))
            if oldest.deadline > now:
                self._timer = loop.call_at(oldest.deadline, self._expire)
                break
            del self._pending[reply]
            text = f"publish to {oldest.subject}: no ack within {self._ack_timeout:g} s"
            hint = "send it again with the same msg_id or expectation"
            self._fail(oldest, RequestTimeoutError(text, hint=hint, retryable=True))
        self._make_room()

    def _fail_all(self, error: NatsStreamError) -> None:
        pending, self._pending = self._pending, {}
        for each in pending.values():
            self._fail(each, error)
        self._make_room()

    def _fail(self, pending: _Pending, error: NatsStreamError) -> None:
        if pending.future.done():
            return
        pending.future.fail(error)
        self._failed.append(pending.future)

    def _make_room(self) -> None:
        if len(self._pending) < self._max_pending:
            self._room.set()

    def _close(self) -> None:
        self._unwatch()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        self._commands, self._commands_bytes = [], 0
        self._fail_all(ConnectionLostError("the publisher was left before the ack came"))
