"""A feed of what is stored in a core stream and what is removed, from a moment on.

A core stream that loads nothing older brings what is stored, complete and in order. Deletions of
older messages come by the announcements of the clients that made them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from natsstream.conat.changes import Changes
from natsstream.conat.core_stream import CoreStream
from natsstream.conat.feed import Announcement
from natsstream.conat.names import StreamNames
from natsstream.conat.views import Change
from natsstream.core.subscription import CoreSubscription
from natsstream.errors import NatsStreamError, ProtocolError, UsageError
from natsstream.streams.jetstream import JetStreamContext


@dataclass(frozen=True, slots=True)
class FeedChange:
    """A change in a changefeed.

    Attributes:
        op: "set" for a stored message, "delete" for removed ones.
        mesg: The value; None for a tombstone and for a removal.
        headers: The user's headers; None for none.
        seq: The sequence of the stored message; 0 for a removal.
        time: When it was stored, in UTC; None for a removal.
        key: Its key; None for none.
        seqs: The sequences that were removed one by one.
        last_seq: All messages up to this sequence were removed; 0 for none.
    """

    op: Literal["set", "delete"]
    mesg: Any = None
    headers: Any = None
    seq: int = 0
    time: datetime | None = None
    key: str | None = None
    seqs: tuple[int, ...] = ()
    last_seq: int = 0


class ChangeFeed:
    """The changes of a core stream, for one `async for`; made by `AStream.changefeed`.

    Args:
        js: The JetStream context.
        names: The core stream's names.
        follow: Opens a core stream that loads only messages behind the present ones.
    """

    def __init__(
        self,
        js: JetStreamContext,
        names: StreamNames,
        follow: Callable[[], Awaitable[CoreStream]],
    ) -> None:
        self._js = js
        self._names = names
        self._follow = follow
        self._changes: Changes[FeedChange] = Changes()
        self._reader: AsyncGenerator[FeedChange] = self._changes.read()
        self._core: CoreStream | None = None
        self._subscription: CoreSubscription | None = None
        self._task: asyncio.Task[None] | None = None
        self.is_closed: bool = False

    async def open(self) -> Self:
        """Follow the stream; what is stored from now on comes."""
        try:
            self._subscription = await self._js.core.subscribe(self._names.control).open()
            self._core = await self._follow()
            self._core.on("change", self._on_change)
            self._core.on("closed", self._changes.close)
            self._task = asyncio.create_task(self._read_notes(self._subscription, self._core))
            self._task.add_done_callback(self._on_end)
        except BaseException:
            await self.close()
            raise
        return self

    async def close(self) -> None:
        """End the feed; closing twice is fine."""
        self.is_closed = True
        self._changes.close()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        if self._subscription is not None:
            await self._subscription.close()
        if self._core is not None:
            await self._core.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FeedChange:
        """Return the next change; ends when the feed is closed.

        Raises:
            NatsStreamError: The error that ended the feed.
            SlowReaderError: More than 65,536 changes waited; the next read resumes behind them.
        """
        if self._core is None:
            raise UsageError("the changefeed is not open", hint="await stream.changefeed()")
        return await anext(self._reader)

    def __repr__(self) -> str:
        return f"<ChangeFeed {self._names.path}>"

    def _on_end(self, task: asyncio.Task[None]) -> None:
        """Tell the reader that deletions may be missing from here on."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, NatsStreamError):
            self._changes.close(error)

    def _on_change(self, change: Change) -> None:
        if change.is_removal:
            self._changes.emit(FeedChange("delete", seqs=(change.seq,)))
            return
        raw = change.raw
        self._changes.emit(
            FeedChange("set", change.mesg, raw.headers, raw.seq, change.time, raw.key)
        )

    async def _read_notes(self, subscription: CoreSubscription, core: CoreStream) -> None:
        first_seq = core.start_seq or 1
        async for message in subscription:
            with suppress(ProtocolError):  # Another program wrote it.
                older = _older(Announcement.from_json(message.data), first_seq)
                if older is not None:
                    self._changes.emit(older)


def _older(note: Announcement, first_seq: int) -> FeedChange | None:
    """Return what a note says of messages before a sequence; None for nothing."""
    ranges = [(first, min(last, first_seq - 1)) for first, last in note.deleted]
    seqs = tuple(seq for first, last in ranges for seq in range(first, last + 1))
    last_seq = min(note.purged, first_seq - 1)
    if not seqs and last_seq < 1:
        return None
    return FeedChange("delete", seqs=seqs, last_seq=max(last_seq, 0))
