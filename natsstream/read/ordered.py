"""An ordered consumer as its reader sees it: messages, batches, events, and a block to leave.

Law: a message that nobody has taken is kept. Cancelling a reader, or leaving its loop, loses none;
the next loop begins with the next message.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from typing import ClassVar, Self

from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.errors import UsageError
from natsstream.foreign_names import answers_names
from natsstream.iteration import Calls
from natsstream.read.event_stream import EventStream
from natsstream.read.follower import Follower
from natsstream.read.read_events import OrderedReport, ReadEvent
from natsstream.read.start_position import OrderedSpec


@answers_names("ordered", calls=False)
class OrderedConsumer:
    """Follows a stream in order, each message once; made by `Stream.ordered`.

    Iterate it in `async with`: leaving the block deletes its consumer on the server. One task reads
    at a time. A loop that was left or cancelled can be resumed with the next message.

    It uses pull consumers that cost the server little (ephemeral, in memory, without acks). When
    one breaks, another is created behind the last delivered message.

    Attributes:
        report: Counts so far: messages, gaps, and why consumers were recreated.
    """

    # This reader, and the call that makes it, as errors name them.
    _noun: ClassVar[str] = "ordered consumer"
    _call: ClassVar[str] = "stream.ordered()"

    def __init__(self, api: Api, spec: OrderedSpec, *, report: OrderedReport | None = None) -> None:
        self._spec = spec
        self.report: OrderedReport = report or OrderedReport()
        self._check_loop = api.client.check_loop
        self._follower = Follower(api, spec, report=self.report, on_event=self._on_event)
        self._events = EventStream(f"ordered read of stream {spec.stream}")
        # Arrived together and not taken yet, the last one first.
        self._rest: list[Message] = []
        self._is_entered = False
        self._is_open = False
        self._is_closed = False
        self._scope: asyncio.Timeout | None = None

    async def __aenter__(self) -> Self:
        """Find the start and make the first consumer.

        Raises:
            StreamNotFoundError: There is no such stream.
            StreamRecreatedError: The stream is not the one of `created_ns`.
            PermissionDeniedError: The user may not read it.
            TransportError: There was no answer in time.
        """
        if self._is_entered or self._is_closed:
            raise UsageError(f"this {self._noun} opens once", hint=f"call {self._call} again")
        self._is_entered = True
        await self._follower.open()
        self._is_open = True
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Delete the consumer and free everything; loops that wait end. Closing twice is fine.

        Waits a second at most for the server to say that it is done; a server that is away deletes
        the consumer by itself, after a minute.
        """
        self._check_loop()
        if self._is_closed:
            return
        self._is_closed = True
        self._events.close()
        self._rest.clear()
        if self._scope is not None:
            self._scope.reschedule(asyncio.get_running_loop().time())
        await self._follower.close()

    # State.

    @property
    def next_seq(self) -> int:
        """The `first_seq` with which another `ordered` continues behind everything taken."""
        self._check_open()
        return self._rest[-1].sequence if self._rest else self._follower.progress.next_seq

    @property
    def created_ns(self) -> int:
        """The stream's identity; together with `next_seq` it is a position to resume at."""
        self._check_open()
        return self._follower.info.created_ns

    @property
    def end_seq(self) -> int | None:
        """Sequence of the record that has ended the stream, once the read has come to it."""
        self._check_open()
        return self._follower.end_seq

    @property
    def is_caught_up(self) -> bool:
        """True when all messages that existed when the block was entered have been taken.

        On a replicated stream the leader is asked first, when the next message is waited for.
        """
        self._check_open()
        follower = self._follower
        has_reached_end = not self._rest and (follower.has_reached_end or follower.is_ended)
        return follower.is_caught_up or has_reached_end

    # Reading.

    def __aiter__(self) -> Self:
        """Iterate messages: of what the loop before has left, then what comes."""
        return self

    async def __anext__(self) -> Message:
        """Return the next message, and wait for it.

        Raises:
            StopAsyncIteration: It was closed.
            StreamNotFoundError: The stream was deleted.
            StreamRecreatedError: The stream was deleted and created again, or lost its end.
            MessagesLostError: Messages are lost and `on_loss` is "raise".
            ConnectionLostError: The server did not come back within the connection's
                `reconnect_timeout`, if it has one; iterating again retries.

        Cost: a buffered message is returned without waiting.
        """
        if not self._rest:
            batch = await self._next_batch()
            if batch is None:
                raise StopAsyncIteration
            self._rest = batch[::-1]
        return self._rest.pop()

    def take_ready(self) -> Message | None:
        """Return the next message if it arrived together with the last one, else None."""
        return self._rest.pop() if self._rest else None

    def initial(self) -> AsyncGenerator[Message]:
        """Yield the messages that existed when the block was entered, then end.

        It ends at once when there are none. Later messages are for the next loop. With
        `deliver_policy="last_per_subject"` a newer message may stand for one of these, and comes
        later.

        Raises:
            ConnectionLostError: The server did not come back within `reconnect_timeout`, or 30 s.
            NatsStreamError: As for `__anext__`.
        """
        has_begun = False

        async def take() -> Message | None:
            nonlocal has_begun
            if not (has_begun and self._rest):
                batch = await self._next_batch(until_caught_up=True)
                has_begun = batch is not None
                if batch is None:
                    return None
                # Taken one by one, so that a loop that is left keeps the others.
                self._rest = batch[::-1]
            return self._rest.pop()

        return Calls(take)

    def batches(self, *, until_caught_up: bool = False) -> AsyncGenerator[list[Message]]:
        """Yield lists of messages, as they arrive together.

        Args:
            until_caught_up: End when all messages that existed when the block was entered have
                been taken, instead of waiting for more.

        Raises:
            NatsStreamError: As for `__anext__`.

        Cost: a tenth less CPU than one message at a time. A list holds a megabyte or so.
        """
        return Calls(partial(self._next_batch, until_caught_up=until_caught_up))

    def events(self) -> AsyncGenerator[ReadEvent]:
        """Yield `Recreated`, `HeartbeatsMissed`, `GapFound` and `EndFound`; ends on close.

        Events happen while somebody reads. The newest 256 are kept; `report.events_dropped` counts
        the others. Two loops share the events.
        """
        self._check_open()
        self._check_loop()
        return self._events.events()

    async def _next_batch(self, *, until_caught_up: bool = False) -> list[Message] | None:
        """Return the next messages; None when it is closed, or has caught up."""
        self._check_open()
        if self._scope is not None:
            raise UsageError(f"another task reads from this {self._noun}", hint="open one for each")
        if self._is_closed or (until_caught_up and self.is_caught_up):
            return None
        if self._rest:
            batch, self._rest = self._rest[::-1], []
            return batch
        self._check_loop()
        try:
            # It has no deadline; closing makes it one.
            async with asyncio.timeout(None) as self._scope:
                while not (self._is_closed or self._follower.is_ended):
                    batch = await self._follower.advance(is_bounded=until_caught_up)
                    if batch and until_caught_up and self._follower.is_caught_up:
                        # It lies behind the end, and is for the next loop.
                        self._rest = batch[::-1]
                        return None
                    if batch:
                        return batch
                    if until_caught_up and self.is_caught_up:
                        return None
        except TimeoutError:
            if not self._is_closed:
                raise
        finally:
            self._scope = None
        return None

    def _check_open(self) -> None:
        if not self._is_open:
            raise UsageError(
                f"the {self._noun} is not open",
                hint=f"async with {self._call} as tail: async for message in tail",
            )

    def _on_event(self, event: ReadEvent) -> None:
        self._events.put(event)
        self.report.events_dropped = self._events.dropped

    def __repr__(self) -> str:
        return f"<OrderedConsumer {' '.join((self._spec.stream, *self._spec.filters))}>"
