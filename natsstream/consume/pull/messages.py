"""A steady flow of messages from a pull consumer, as its readers see it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self

from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.pull.requests import ConsumeOptions
from natsstream.consume.pull.session import ConsumeSession
from natsstream.errors import UsageError
from natsstream.read.read_events import ReadEvent


class ConsumerMessages:
    """A flow of messages; made by `Consumer.consume`, used with `async with`.

    Iterate it: each message is handed out once, to one of the tasks that iterate. It goes on over
    reconnects, changes of the consumer's leader and restarts of servers. A loop that was left can
    be taken up again.

    Leaving the block withdraws what was asked for, and gives back what arrived and was not handed
    out, so that others get it at once. Each of these was delivered, and counts for `max_deliver`:
    where few deliveries are allowed, use a small `max_messages`.
    """

    def __init__(self, ack_sender: AckSender, options: ConsumeOptions) -> None:
        self._ack_sender = ack_sender
        self._options = options
        self._session: ConsumeSession | None = None
        # The engine's own list: a message costs no look at the engine.
        self._rest: list[DeliveredMessage] = []

    async def __aenter__(self) -> Self:
        """Ask for the first messages; waits for no answer.

        Raises:
            UsageError: It was open already.
            UnsupportedServerError: The servers lack what a priority group needs.
            ConnectionClosedError: The connection was closed.
        """
        if self._session is not None:
            raise UsageError("a flow opens once", hint="call consumer.consume() again")
        features = self._options.group.features()
        if features:
            await self._ack_sender.source.api.require(*features)
        self._session = ConsumeSession(self._ack_sender, self._options)
        self._rest = self._session.rest
        await self._session.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    # Reading.

    def __aiter__(self) -> Self:
        """Iterate messages."""
        return self

    async def __anext__(self) -> DeliveredMessage:
        """Return the next message, and wait for it.

        Raises:
            StopAsyncIteration: It was stopped or drained, or has handed out `stop_after` messages.
            ConsumerDeletedError: The consumer, or its stream, was deleted.
            ConnectionLostError: The consumer was away for longer than `reconnect_timeout`;
                iterating again goes on trying.
            PermissionDeniedError: This user may not pull from the consumer.
            UsageError: It is a push consumer.
            ServerError: The server refuses the pulls.

        Cost: what has arrived is taken without waiting.
        """
        rest = self._rest
        if not rest and not await self._opened().fill_rest():
            raise StopAsyncIteration
        return rest.pop()

    def take_ready(self) -> DeliveredMessage | None:
        """Return the next message if it came together with the last one; None if it did not."""
        return self._rest.pop() if self._rest else None

    async def events(self) -> AsyncGenerator[ReadEvent]:
        """Yield what happens: the classes in `natsstream.consume.delivery.events`.

        Events happen while somebody reads messages. The newest 256 are kept; `events_dropped`
        counts the others. Two loops share the events.
        """
        async for event in self._opened().events.events():
            yield event

    def resize(self, max_messages: int) -> None:
        """Ask for more or fewer messages at once from now on; for those who measure."""
        self._opened().resize(max_messages)

    # State.

    @property
    def waiting(self) -> int:
        """Messages that arrived and were not handed out."""
        return self._session.waiting if self._session is not None else 0

    def buffered(self) -> list[DeliveredMessage]:
        """Return what arrived and was not handed out, such as to keep it alive."""
        return list(self._session.buffered()) if self._session is not None else []

    @property
    def events_dropped(self) -> int:
        """Events that nobody took in time."""
        return self._session.events.dropped if self._session is not None else 0

    @property
    def is_stopped(self) -> bool:
        """True once it was stopped, drained or left."""
        return self._session is not None and self._session.is_ended

    # Ends.

    async def drain(self) -> None:
        """Ask for no more; loops go on to the end of what has arrived, then end.

        Returns when the server sends no more. Draining twice is fine.

        Cost: one round trip; while messages are arriving, until the open pulls are filled, a
        quarter of a second at most.
        """
        await self._opened().drain()

    async def stop(self) -> None:
        """End it: loops end now, and what was not handed out is given back to the server.

        With ack policy "none" nothing can be given back: what had arrived is not delivered again.
        Stopping twice is fine.

        Cost: as for `drain`.
        """
        if self._session is not None:
            await self._session.stop()

    def _opened(self) -> ConsumeSession:
        if self._session is None:
            raise UsageError(
                "the flow is not open",
                hint="async with consumer.consume() as messages: async for message in messages",
            )
        return self._session

    def __repr__(self) -> str:
        return f"<Messages of {self._ack_sender.source.what}, {self.waiting} waiting>"
