"""The messages of `Consumer.consume`, as their readers see them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Self

from natsstream.arguments import check_int
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.pull.requests import BATCH_MAX, ConsumeOptions
from natsstream.consume.pull.session import ConsumeSession
from natsstream.errors import UsageError
from natsstream.read.read_events import ReadEvent


class ConsumerMessages:
    """Messages of a pull consumer; made by `Consumer.consume`, used with `async with`.

    Iterate it: each message goes to one of the tasks that iterate. It survives reconnects, leader
    changes and server restarts. A loop that was left can be resumed.

    Leaving the block withdraws the open pulls and naks buffered messages, so that the server
    redelivers them at once. Each of these counts for `max_deliver`: where that is low, use a small
    `max_messages`.
    """

    def __init__(self, ack_sender: AckSender, options: ConsumeOptions) -> None:
        self._ack_sender = ack_sender
        self._options = options
        self._session: ConsumeSession | None = None
        # The engine's own list: a message costs no look at the engine.
        self._rest: list[DeliveredMessage] = []

    async def __aenter__(self) -> Self:
        """Send the first pulls; waits for no answer.

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

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End it, and give back its pin; see `stop` and `unpin`.

        Raises:
            PermissionDeniedError: The server has refused an ack, and no loop was told.
        """
        await self.stop()
        await self.unpin()
        if kind is None and self._session is not None:
            self._session.raise_refusal()

    # Reading.

    def __aiter__(self) -> Self:
        """Iterate messages."""
        return self

    async def __anext__(self) -> DeliveredMessage:
        """Return the next message, and wait for it.

        Raises:
            StopAsyncIteration: It was stopped or drained, or has handed out `stop_after` messages.
            ConsumerDeletedError: The consumer, or its stream, was deleted.
            ConnectionLostError: The consumer was away for longer than the connection's
                `reconnect_timeout`, if it has one; iterating again retries.
            PermissionDeniedError: This user may not pull from the consumer, or not ack.
            UsageError: It is a push consumer.
            ServerError: The server refuses the pulls.

        Cost: a buffered message is returned without waiting.
        """
        rest = self._rest
        if not rest and not await self._opened().fill_rest():
            raise StopAsyncIteration
        return rest.pop()

    def take_ready(self) -> DeliveredMessage | None:
        """Return the next message if it arrived together with the last one, else None."""
        return self._rest.pop() if self._rest else None

    def events(self) -> AsyncGenerator[ReadEvent]:
        """Yield events: the classes in `natsstream.consume.delivery.events`.

        Events occur while a task reads messages. The newest 256 are kept; `events_dropped` counts
        the rest. Two loops share the events.
        """
        session = self._opened()
        session.check_loop()
        return session.events.events()

    def resize(self, max_messages: int) -> None:
        """Change `max_messages` from now on.

        Raises:
            ConfigError: It is no number of messages from 1 on.
        """
        check_int(max_messages, "max_messages", minimum=1, maximum=BATCH_MAX)
        self._opened().resize(max_messages)

    # State.

    @property
    def waiting(self) -> int:
        """Buffered messages."""
        return self._session.waiting if self._session is not None else 0

    def buffered(self) -> list[DeliveredMessage]:
        """Return the buffered messages, such as to send `in_progress` for them."""
        return list(self._session.buffered()) if self._session is not None else []

    @property
    def returned(self) -> int:
        """Buffered messages that its end has nak'ed."""
        return self._session.returned if self._session is not None else 0

    @property
    def events_dropped(self) -> int:
        """Events dropped because they were not read in time."""
        return self._session.events.dropped if self._session is not None else 0

    @property
    def is_stopped(self) -> bool:
        """True once it was stopped, drained or left."""
        return self._session is not None and self._session.is_ended

    # Ends.

    async def drain(self) -> None:
        """Withdraw the open pulls; loops get the buffered messages, then end.

        Returns when the server sends no more. Draining twice is fine.

        Cost: one round trip; where pulls are open one or two more with 20 ms between them, and up
        to a quarter of a second while the consumer delivers. Two seconds more while the server does
        not answer.
        """
        session = self._opened()
        session.check_loop()
        await session.drain()

    async def hand_over(self, last_delivery: int | None) -> None:
        """Withdraw the open pulls and nak what is buffered; loops get what is kept, then end.

        For a reader that must not give all back, such as a worker: the server counts deliveries.

        Args:
            last_delivery: Messages at this delivery, or a later one, are kept; None keeps none.

        Raises:
            ConfigError: It is no number from 1 on; nothing has ended.

        Cost: as for `drain`.
        """
        if last_delivery is not None:
            check_int(last_delivery, "last_delivery", minimum=1)
        session = self._opened()
        session.check_loop()
        await session.hand_over(last_delivery)

    async def stop(self) -> None:
        """End now: loops end, and buffered messages are nak'ed.

        With ack policy "none" buffered messages are lost: they are not redelivered. Stopping twice
        is fine.

        Cost: as for `drain`.
        """
        if self._session is not None:
            self._session.check_loop()
            await self._session.stop()

    async def unpin(self) -> None:
        """Give back the pin of a pinned priority group: the next reader that pulls is pinned.

        Leaving the block does it, and so does the end of a worker, after its last handler. Between
        `stop` and that this reader stays pinned, as its messages are still being handled. Without
        the pin it does nothing. A failure is logged: another reader is then pinned only after the
        consumer's `priority_timeout`.

        Cost: two round trips, a second at most.
        Source: ADR-42.
        """
        if self._session is not None:
            self._session.check_loop()
            await self._session.unpin()

    def _opened(self) -> ConsumeSession:
        if self._session is None:
            raise UsageError(
                "the flow is not open",
                hint="async with consumer.consume() as messages: async for message in messages",
            )
        return self._session

    def __repr__(self) -> str:
        return f"<Messages of {self._ack_sender.source.what}, {self.waiting} waiting>"
