"""The messages of a publisher that wait for their acks.

Law: every message that enters leaves once, with an ack or an error, and lets in those that wait for
room. First come, first served: nothing goes past one that waits, or was let in and has not entered.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Generator
from copy import copy
from typing import Any

from natsstream.errors import NatsStreamError
from natsstream.publish.pub_ack import PubAck, QuickAck


class AckFuture(asyncio.Future[PubAck]):
    """A message that waits for its ack, and the future of that ack, which it makes when asked.

    Attributes:
        subject: The message's subject.
        size: Its bytes.
        deadline: Deadline of this attempt's ack, on the loop's clock.
        give_up: Time from which it is not sent again.
        command: The bytes that publish it; empty once it is over.
        is_over: True once it has its ack or error, also if the future was cancelled.
        is_seen: True once the ack or error was read.
    """

    __slots__ = ("_made", "command", "deadline", "give_up", "is_over", "is_seen", "size", "subject")

    # `PipelinedSender.add` sets them: a call for each message would cost more than they do.
    subject: str
    size: int
    deadline: float
    give_up: float
    command: bytes
    is_over: bool
    is_seen: bool
    _made: PubAck | None

    def result(self) -> PubAck:
        self.is_seen = self.done()
        return self._ack_of(super().result())

    def exception(self) -> BaseException | None:
        self.is_seen = self.done()
        return super().exception()

    def settle(self, ack: PubAck | QuickAck) -> None:
        """Set the ack, whole or still to be made."""
        self._made = None
        self.set_result(ack)  # pyright: ignore[reportArgumentType] - No reader sees a `QuickAck`.

    def fail(self, error: NatsStreamError) -> None:
        """Set an error without asyncio's warning: the publisher raises it."""
        self.set_exception(error)
        super().exception()

    @property
    def error(self) -> BaseException | None:
        """The error without marking it as read; None for none."""
        return super().exception() if self.done() and not self.cancelled() else None

    def __await__(self) -> Generator[Any, None, PubAck]:
        try:
            return self._ack_of((yield from super().__await__()))
        except NatsStreamError:
            self.is_seen = True
            raise

    def _ack_of(self, ack: PubAck | QuickAck) -> PubAck:
        if self._made is None:
            self._made = ack if isinstance(ack, PubAck) else PubAck(*ack)
        return self._made


class AckWindow:
    """Counts the messages that wait for acks, and completes them.

    Args:
        count_max: Messages that may wait.
        size_max: Their bytes.
        is_hidden: Whether errors say nothing of the call that raises them.

    Attributes:
        count: Number of messages.
        size: Their bytes.
    """

    def __init__(self, count_max: int, size_max: int, *, is_hidden: bool = False) -> None:
        self._is_hidden = is_hidden
        self.count: int = 0
        self.size: int = 0
        self._count_max = count_max
        self._size_max = size_max
        # Those that wait for room, with their sizes. A dict would find its first only behind all
        # that were deleted.
        self._waiting: OrderedDict[asyncio.Future[None], int] = OrderedDict()
        # Room that is kept for those that were let in.
        self._held_count = 0
        self._held_size = 0
        # The number of both: a later one goes behind them.
        self._ahead = 0
        self._left = asyncio.Event()
        self._failed: list[AckFuture] = []

    @property
    def failures(self) -> int:
        """Failures that `raise_failure` has not gone through yet."""
        return len(self._failed)

    def has_room(self, size: int) -> bool:
        """Return True if one more message may enter at once; an empty window takes any size."""
        # Asked for each message, so not through `_fits`: nothing is held where none is ahead.
        if self._ahead or self.count >= self._count_max:
            return False
        return self.size + size <= self._size_max or not self.count

    def _fits(self, size: int) -> bool:
        count = self.count + self._held_count
        if count >= self._count_max:
            return False
        return self.size + self._held_size + size <= self._size_max or not count

    async def wait_for_room(self, size: int) -> None:
        """Wait until a message may enter, behind all that came before; each has a deadline.

        The room is kept until this returns. The caller enters, or raises, before it waits again.
        """
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting[turn] = size
        self._ahead += 1
        try:
            await turn
        finally:
            self._ahead -= 1
            if self._waiting.pop(turn, None) is None:
                self._held_count -= 1
                self._held_size -= size
            if self._waiting and not self._held_count:
                # A caller that is cancelled or raises passes its room on; any other has entered.
                loop.call_soon(self.wake)

    async def wait_for(self, entries: list[AckFuture]) -> None:
        """Wait until all of these have left."""
        for entry in entries:
            while not entry.is_over:
                self._left.clear()
                await self._left.wait()

    def enter(self, entry: AckFuture) -> None:
        """Add a message."""
        self.count += 1
        self.size += entry.size

    def settle(self, entry: AckFuture, ack: PubAck | QuickAck) -> None:
        """Complete a message with its ack; call `wake` after the last one."""
        self.count -= 1
        self.size -= entry.size
        entry.is_over = True
        entry.command = b""  # Its reader may keep it for long.
        if not entry.done():
            entry.settle(ack)

    def fail(self, entry: AckFuture, error: NatsStreamError) -> None:
        """Complete a message with an error, which is raised once."""
        self.count -= 1
        self.size -= entry.size
        entry.is_over = True
        entry.command = b""
        if not entry.done():
            entry.fail(error)
            self._failed.append(entry)

    def wake(self) -> None:
        """Let in as many of those that wait as there is room for."""
        self._left.set()
        while self._waiting and self._fits(next(iter(self._waiting.values()))):
            self._let_in()

    def wake_all(self) -> None:
        """Let in all that wait, where no message is taken any more: each has its error."""
        self._left.set()
        while self._waiting:
            self._let_in()

    def _let_in(self) -> None:
        turn, size = self._waiting.popitem(last=False)
        self._held_count += 1
        self._held_size += size
        if not turn.done():  # Else it is cancelled, and passes its room on.
            turn.set_result(None)

    def raise_failure(self) -> None:
        """Raise the first failure whose future was not read; forget the others.

        Raises:
            NatsStreamError: The error of the message.
        """
        if not self._failed:
            return
        failed, self._failed = self._failed, []
        for future in failed:
            if not future.is_seen:
                future.result()

    def raise_earlier(self) -> None:
        """As `raise_failure`, for a call that then sends nothing, which the error says."""
        if not self._failed:
            return
        try:
            self.raise_failure()
        except NatsStreamError as error:
            if self._is_hidden:
                raise
            told = copy(error)  # The future keeps its own.
            own = "it is the error of an earlier message; this call has sent nothing"
            told.detail = f"{error.detail}; {own}" if error.detail else own
            told.index = None
            try:
                raise told from error
            finally:
                del told  # Its traceback holds this frame.
