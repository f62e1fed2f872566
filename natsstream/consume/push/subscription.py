"""Reading a push consumer: its messages in a block, answered flow control, and events.

Law: memory is bounded; a request for flow control is answered when what came before it was taken.
A message that nobody has taken is given back when the block is left. There is no task but a look
for the consumer (`heartbeats.py`), which only a reader that waits begins.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from typing import Self

from natsstream._wire.client import Subscription
from natsstream._wire.parser import Frame
from natsstream.arguments import check_int, check_seconds
from natsstream.consume.delivery.ack_kinds import nak_body
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.events import ConsumerDeleted, DeliverSubjectChanged, Reconnected
from natsstream.consume.delivery.source import PushSource, PushState
from natsstream.consume.push.buffer import PushBuffer
from natsstream.consume.push.heartbeats import HeartbeatMonitor
from natsstream.consume.push.sink import PushSink
from natsstream.core.subject_reader import ended_error
from natsstream.errors import ConflictError, NatsStreamError, NotFoundError, UsageError
from natsstream.events import PermissionDenied
from natsstream.foreign_names import answers_names
from natsstream.read.event_stream import EventStream
from natsstream.read.read_events import HeartbeatsMissed, ReadEvent
from natsstream.units import NS_PER_SECOND

_log = logging.getLogger("natsstream.consumer")

MAX_PENDING = 65_536
# The server's window of flow control grows to 32 MiB, so with it this is never reached.
MAX_PENDING_BYTES = 64 << 20
_HEARTBEATS = 2.5
"""Two heartbeats missed, and half of one for a busy machine."""
# The members of a group share the heartbeats too, so silence means little.
_GROUP_SILENCE_S = 5.0
# A reader that has just left counts for the server for some more milliseconds.
_FREE_WAIT_S = 1.0
_FREE_POLL_S = 0.02


@answers_names("sub", calls=False)
class PushMessages:
    """The messages of a push consumer; made by `Consumer.subscribe`.

    `async with` subscribes, `async for` yields the messages in order of arrival. Leaving the block
    naks buffered messages. One task reads at a time.

    """

    def __init__(
        self,
        source: PushSource,
        *,
        max_pending: int = MAX_PENDING,
        max_pending_bytes: int = MAX_PENDING_BYTES,
    ) -> None:
        check_int(max_pending, "max_pending", minimum=1)
        check_int(max_pending_bytes, "max_pending_bytes", minimum=1)
        self._source = source
        self._client = source.consumer.api.client
        self._ack_sender = AckSender(source.consumer)
        self._events = EventStream(source.consumer.what)
        buffer = PushBuffer[DeliveredMessage](max_count=max_pending, max_bytes=max_pending_bytes)
        self._sink = PushSink(source, self._ack_sender, self._events, buffer)
        self._monitor = HeartbeatMonitor(_silence_s(source))
        self._subject = source.consumer.deliver_subject
        self._subscription: Subscription | None = None
        self._failure: NatsStreamError | None = None
        self._has_ended = False
        self._is_end_told = False
        self._is_open = False
        self._may_ack = True
        self._is_told = False
        self._wake: asyncio.Future[None] | None = None
        self._is_read = False
        self._connections = 0
        self._unwatch: Callable[[], None] = lambda: None
        self._unwatch_denied: Callable[[], None] = lambda: None

    # State.

    @property
    def pending_count(self) -> int:
        """Buffered messages."""
        return len(self._sink.buffer.queue)

    @property
    def dropped(self) -> int:
        """Messages dropped: the reader was too slow for a consumer without flow control.

        With acks they are redelivered after `ack_wait`.
        """
        return self._sink.buffer.queue.dropped

    @property
    def missed(self) -> int:
        """Deliveries that did not arrive, as while the connection was broken.

        They are not counted in a deliver group, whose members do not see each other's.
        """
        return self._sink.count.missed

    # Opening and closing.

    async def open(self) -> Self:
        """Subscribe; `close` ends it. When it returns, the server sends.

        Raises:
            UsageError: It is no push consumer, or was opened before.
            ConflictError: Another client reads it, still after a second, and it has no group.
            ConsumerNotFoundError: It does not exist.
            PermissionDeniedError: The user may not subscribe to the deliver subject.
            TransportError: The server did not answer in time.
        """
        if self._subscription is not None or self._has_ended:
            raise UsageError("a push consumer's block opens once", hint="call subscribe() again")
        held = await self._find_free()
        if not self._source.group:
            self._sink.count.begin(held.consumer_seq)
        self._subject = held.deliver_subject
        client = self._client
        self._connections = client.connections
        self._monitor.hear()
        self._unwatch = client.watch(self._on_connection)
        self._unwatch_denied = client.watch_denied(self._on_denied)
        try:
            await self._listen()
            # A denial comes before the answer to the ping.
            await client.flush(client.options.request_timeout, what=self._source.consumer.what)
            if self._failure is not None:
                raise self._failure
        except BaseException:
            self._free()
            self._unwatch_denied()
            raise
        self._is_open = True
        return self

    async def _find_free(self) -> PushState:
        """Return the consumer's state once nobody else reads it, or share it in a group."""
        now, deadline = asyncio.get_running_loop().time, 0.0
        while (held := await self._source.look()).is_bound and not self._source.group:
            # From the first answer on: a slow server tells late of what has been free for long.
            deadline = deadline or now() + _FREE_WAIT_S
            if now() >= deadline:
                raise ConflictError(
                    f"{self._source.consumer.what} is read by another client already",
                    hint="readers share a consumer that has a deliver_group; one that has just "
                    "crashed counts until the server notices",
                    retryable=True,  # As after a partition, where the other one was this one.
                )
            await asyncio.sleep(_FREE_POLL_S)
        return held

    async def drain(self) -> None:
        """Unsubscribe; the loop gets the buffered messages, then ends.

        Raises:
            TransportError: The server did not confirm in time; it is ended still.
        """
        self._client.check_loop()
        subscription = self._subscription
        if subscription is None or self._has_ended:
            return
        subscription.stop()
        try:
            # Messages sent before the server knew come before its PONG.
            await self._client.flush(self._client.options.request_timeout)
        finally:
            self._free()

    async def close(self) -> None:
        """End it and nak buffered messages; closing twice is fine.

        Waits for one round trip, a second at most, to nak messages in flight as well. Messages that
        the server had queued and not sent yet are redelivered after `ack_wait`.
        """
        self._client.check_loop()
        await self._client.endings.run(self._end())

    async def _end(self) -> None:
        client = self._client
        gives_back = self._source.consumer.ack_policy != "none"
        try:
            if self._is_open and gives_back and client.is_connected:
                if self._subscription is not None:
                    self._subscription.stop()
                self._ack_sender.flush()
                with suppress(NatsStreamError):
                    await client.flush(self._source.consumer.tuning.flush_s)
        finally:
            self._is_open = False
            self._free()
            self._unwatch_denied()
            left = self._sink.buffer.take_all()
            if gives_back and self._may_ack and not client.is_closed:
                for message in left:
                    self._ack_sender.send(message.reply, nak_body(None))
                self._ack_sender.flush()
            await self._monitor.close()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End it; see `close`.

        Raises:
            PermissionDeniedError: The server has refused an ack, and no loop was told.
        """
        await self.close()
        if kind is None and not self._may_ack and not self._is_told and self._failure is not None:
            raise self._failure

    # Reading.

    def __aiter__(self) -> Self:
        """Iterate the messages."""
        return self

    async def __anext__(self) -> DeliveredMessage:
        """Return the next message, and wait for it.

        Raises:
            StopAsyncIteration: It was closed or drained.
            ConsumerDeletedError: The consumer, or its stream, was deleted.
            SlowReaderError: Messages were dropped before this one; the next call continues.
            PermissionDeniedError: This user may not ack.
            ConnectionLostError: The server did not come back within the connection's
                `reconnect_timeout`, if it has one.
            ConnectionClosedError: The connection was closed.
        """
        while True:
            message = self._take()
            if message is not None:
                return message
            slow = self._sink.slow()
            if slow is not None:
                raise slow
            if self._failure is not None:
                self._is_told = True
                raise self._failure.with_traceback(None)
            if self._has_ended:
                raise StopAsyncIteration
            self._check_open()
            await self._wait()

    def _take(self) -> DeliveredMessage | None:
        """Return a message that has arrived and can be acked."""
        return self._sink.take() if self._may_ack else None

    async def next(self, *, timeout: float) -> DeliveredMessage | None:
        """Return the next message, None when none came within `timeout` seconds.

        None comes at once, and once, when it was closed or drained and everything is taken.

        Raises:
            UsageError: A call before has told its end.
            NatsStreamError: As for `__anext__`.
        """
        check_seconds(timeout, "timeout", may_be_zero=True)
        message = self._take()  # Without waiting, also when the time is over already.
        if message is not None:
            return message
        try:
            async with asyncio.timeout(timeout):
                return await anext(self)
        except TimeoutError:
            return None
        except StopAsyncIteration:
            if self._is_end_told:
                raise ended_error(self._source.consumer.what) from None
            self._is_end_told = True
            return None

    def events(self) -> AsyncGenerator[ReadEvent]:
        """Yield events: `HeartbeatsMissed`, `Reconnected`, `DeliveriesMissed`,
        `DeliverSubjectChanged`, `ConsumerDeleted`; ends when the block is left.

        The newest 256 are kept. Two loops share the events.
        """
        self._client.check_loop()
        if not self._has_ended:
            self._check_open()
        return self._events.events()

    def _check_open(self) -> None:
        if self._subscription is None:
            raise UsageError(
                f"{self._source.consumer.what} is not subscribed to",
                hint="async with consumer.subscribe() as messages: async for m in messages",
            )

    # Waiting.

    async def _wait(self) -> None:
        """Wait for a message; look for the consumer while none comes."""
        if self._is_read:
            raise UsageError("another task reads this push consumer", hint="one task reads")
        self._client.check_loop()
        self._is_read = True
        try:
            client = self._client
            if not client.is_connected:
                await client.wait_connected(client.options.running_reconnect_s)
            if self._connections != client.connections:
                self._connections = client.connections
                self._events.put(Reconnected())
                self._monitor.want()
            wait_s = self._monitor.wait_s
            if wait_s == 0:
                self._monitor.begin(self._look, self._notify)
                wait_s = None
            self._wake = asyncio.get_running_loop().create_future()
            with suppress(TimeoutError):  # The next round looks for the consumer.
                async with asyncio.timeout(wait_s):
                    await self._wake
        finally:
            self._is_read, self._wake = False, None

    async def _look(self, is_silent: bool) -> None:  # noqa: FBT001 - what `HeartbeatMonitor` calls.
        """See whether the consumer is still there, and delivers to where we listen."""
        source = self._source.consumer
        if is_silent and self._source.heartbeat_ns and not self._source.group:
            self._events.put(HeartbeatsMissed(seconds=self._monitor.silence_s))
        try:
            held = await self._source.look()
            if held.deliver_subject != self._subject and self._subscription is not None:
                self._subscription.close()
                self._subject = held.deliver_subject
                await self._listen()
                self._events.put(DeliverSubjectChanged(subject=self._subject))
        except NotFoundError as error:
            self._events.put(ConsumerDeleted(consumer=source.consumer))
            self._fail(source.deleted_error(error))
        except NatsStreamError as error:
            if error.retryable:
                _log.info("%s could not be looked for: %s", source.what, error.message)
            else:
                self._fail(error)

    # Sinks: they must not wait and must not raise.

    def _on_frames(self, frames: list[Frame]) -> None:
        self._monitor.hear()
        self._sink.accept(frames)
        self._notify()

    async def _listen(self) -> None:
        self._subscription = await self._client.subscribe(
            self._subject,
            self._on_frames,
            queue=self._source.group,
            on_denied=self._fail,
            what=self._source.consumer.what,
        )

    def _on_connection(self) -> None:
        if self._client.is_closed:
            self._fail(self._client.closing_error(self._source.consumer.what))
        self._notify()

    def _on_denied(self, event: PermissionDenied) -> None:
        refusal = self._source.consumer.ack_refusal(event)
        if refusal is not None:
            self._may_ack = False
            self._source.consumer.take_ack_refusal()  # This reader tells it.
            self._fail(refusal)

    def _fail(self, error: NatsStreamError) -> None:
        self._failure = error
        self._notify()

    def _notify(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _free(self) -> None:
        self._unwatch()
        self._monitor.stop()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
        self._has_ended = True
        self._events.close()
        self._notify()

    def __repr__(self) -> str:
        return f"<PushMessages {self._source.consumer.what}: {self.pending_count} pending>"


def _silence_s(source: PushSource) -> float:
    """Return how long nothing may come until the consumer is looked for."""
    heartbeat_s = source.heartbeat_ns / NS_PER_SECOND
    if not heartbeat_s:
        # No heartbeat tells that the consumer was deleted.
        return source.consumer.tuning.silence_s
    return max(_HEARTBEATS * heartbeat_s, _GROUP_SILENCE_S if source.group else 0.0)
