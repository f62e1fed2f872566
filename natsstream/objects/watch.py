"""Following a store: what it says of its objects now, then every change.

Law: each meta that is in the store is handed over once, in the order of the revisions. One that can
not be read is counted and kept in `unreadable`, or raised, as the caller wants; it never ends a
watch for good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from types import TracebackType
from typing import Literal, Self

from natsstream.api.message import Message
from natsstream.errors import ObjectMetaError
from natsstream.objects.info import ObjectInfo
from natsstream.objects.kind import STORE
from natsstream.objects.meta_store import MetaStore, StoredMeta, held_in
from natsstream.objects.store_subjects import StoreSubjects
from natsstream.read.latest.latest import Latest
from natsstream.read.read_events import OrderedReport, ReadEvent

OnUnreadable = Literal["report", "raise"]
ON_UNREADABLE = ("report", "raise")
UNREADABLE_MAX = 256
"""Errors that are kept; `unreadable_count` counts all."""


class _Reader:
    """Reads messages as infos, and keeps what can not be read."""

    def __init__(
        self, place: StoreSubjects, *, ignore_deletes: bool, on_unreadable: OnUnreadable
    ) -> None:
        self._place = place
        self._ignores_deletes = ignore_deletes
        self._raises = on_unreadable == "raise"
        self.unreadable: deque[ObjectMetaError] = deque(maxlen=UNREADABLE_MAX)
        self.unreadable_count = 0

    def read(self, message: Message) -> tuple[StoredMeta, ObjectInfo | None]:
        """Return what a message says, and the info to hand over; None for none."""
        name = self._place.name_of(message.subject)
        if name is None:
            shown = message.subject.removeprefix(self._place.meta_filter[:-1])
            error = ObjectMetaError(
                f"store {self._place.bucket}: {shown[:80]!r} is no object's name in base64",
                name="",
                revision=message.sequence,
                hint="no client of object stores writes such a subject",
            )
            return self._failed(StoredMeta(message.sequence, error=error), error)
        held = held_in(message, self._place, name)
        if held.error is not None:
            return self._failed(held, held.error)
        return held, held.live if self._ignores_deletes else held.info

    def _failed(self, held: StoredMeta, error: ObjectMetaError) -> tuple[StoredMeta, None]:
        self.unreadable.append(error)
        self.unreadable_count += 1
        if self._raises:
            raise error
        return held, None


class ObjectWatch:
    """Follows an object store; made by `ObjectStore.watch`.

    Iterate it in `async with`: leaving the block deletes its consumer on the server. One task reads
    at a time. A loop that was left or cancelled can be taken up again, with the next info.

    It goes on by itself after a lost connection, a restart of the server, a change of leaders and a
    deleted consumer, however slow the reader is; `events()` and `report` tell of that.
    """

    def __init__(
        self,
        latest: Latest,
        place: StoreSubjects,
        *,
        ignore_deletes: bool,
        on_unreadable: OnUnreadable,
    ) -> None:
        self._latest = latest
        self._place = place
        self._reader = _Reader(place, ignore_deletes=ignore_deletes, on_unreadable=on_unreadable)

    async def __aenter__(self) -> Self:
        """Find the start and make the first consumer.

        Raises:
            BucketNotFoundError: There is no such store.
            StreamRecreatedError: The store is not the one of `created_ns`, or has not come to
                `resume_after`: it was deleted and made again.
            PermissionDeniedError: The user may not read it.
            TransportError: There was no answer in time.
        """
        with STORE.translate_errors(self._place.bucket):
            await self._latest.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Delete the consumer and free everything; loops that wait end. Closing twice is fine."""
        await self._latest.close()

    # State.

    @property
    def revision(self) -> int:
        """Where to go on: `resume_after` for another watch behind all that has been taken."""
        return self._latest.next_seq - 1

    @property
    def created_ns(self) -> int:
        """The store's identity; with `revision` it is a place that only this store has."""
        return self._latest.created_ns

    @property
    def is_caught_up(self) -> bool:
        """True when everything that was in the store when the block was entered has been taken."""
        return self._latest.is_caught_up

    @property
    def report(self) -> OrderedReport:
        """What was done so far: messages received, and why consumers were made again."""
        return self._latest.report

    @property
    def unreadable(self) -> tuple[ObjectMetaError, ...]:
        """What could not be read and was passed over, the newest 256."""
        return tuple(self._reader.unreadable)

    @property
    def unreadable_count(self) -> int:
        """How many could not be read."""
        return self._reader.unreadable_count

    # Reading.

    def __aiter__(self) -> Self:
        """Iterate infos: of what the loop before has left, then what comes."""
        return self

    async def __anext__(self) -> ObjectInfo:
        """Return the next info, and wait for it.

        Raises:
            StopAsyncIteration: It was closed.
            ObjectMetaError: One can not be read, and `on_unreadable` is "raise"; iterating again
                goes on behind it.
            BucketNotFoundError: The store was deleted.
            StreamRecreatedError: The store was deleted and made again.
            ConnectionLostError: The server did not come back within `reconnect_timeout`; iterating
                again goes on trying.

        Cost: what has arrived is taken without waiting.
        """
        while True:
            with STORE.translate_errors(self._place.bucket):
                message = await anext(self._latest)
            _, info = self._reader.read(message)
            if info is not None:
                return info

    async def initial(self) -> AsyncGenerator[ObjectInfo]:
        """Yield what was in the store when the block was entered, then end.

        It ends at once when there is nothing. Each object that had an info then and has one still
        has come when it ends; of one that was written meanwhile a newer info may have come too, or
        alone. What comes later is for the next loop.

        Raises:
            NatsStreamError: As for `__anext__`.
        """
        found = _initial(self._latest, self._reader, self._place.bucket)
        async with aclosing(found):
            async for _, info in found:
                yield info

    async def events(self) -> AsyncGenerator[ReadEvent]:
        """Yield what happens to the watch: `Recreated` and `HeartbeatsMissed`; ends on close.

        Events happen while somebody reads infos. The newest 256 are kept;
        `report.events_dropped` counts the others. Two loops share the events.
        """
        async with aclosing(self._latest.events()) as events:
            async for event in events:
                yield event

    def __repr__(self) -> str:
        return f"<ObjectWatch {self._place.bucket}>"


class ObjectListing:
    """The infos of a store's objects, to be read with `async for`; made by `ObjectStore.list`.

    Each loop asks anew.
    """

    def __init__(
        self, metas: MetaStore, *, include_deleted: bool, on_unreadable: OnUnreadable
    ) -> None:
        self._metas = metas
        self._includes_deleted = include_deleted
        self._on_unreadable: OnUnreadable = on_unreadable
        self._reader = self._new_reader()

    @property
    def unreadable(self) -> tuple[ObjectMetaError, ...]:
        """What could not be read and was passed over in the loop so far, the newest 256."""
        return tuple(self._reader.unreadable)

    @property
    def unreadable_count(self) -> int:
        """How many could not be read in the loop so far."""
        return self._reader.unreadable_count

    def __aiter__(self) -> AsyncIterator[ObjectInfo]:
        return self.infos()

    async def infos(self) -> AsyncGenerator[ObjectInfo]:
        """Yield what a loop over the listing yields; `aclose()` frees everything at once."""
        place = self._metas.place
        reader = self._reader = self._new_reader()
        latest = self._metas.stream.latest(filters=[place.meta_filter], consistent=True)
        with STORE.translate_errors(place.bucket):
            await latest.__aenter__()
        try:
            async with aclosing(_initial(latest, reader, place.bucket)) as found:
                async for held, info in found:
                    if held.renamed_to:  # What a killed rename has left is no object.
                        fresh = await self._metas.read(info.name)
                        if fresh.info is None:
                            continue
                    yield info
        finally:
            await latest.close()

    def _new_reader(self) -> _Reader:
        return _Reader(
            self._metas.place,
            ignore_deletes=not self._includes_deleted,
            on_unreadable=self._on_unreadable,
        )

    def __repr__(self) -> str:
        return f"<ObjectListing {self._metas.place.bucket}>"


async def _initial(
    latest: Latest, reader: _Reader, bucket: str
) -> AsyncGenerator[tuple[StoredMeta, ObjectInfo]]:
    """Yield what a read of the newest infos begins with."""
    async with aclosing(latest.initial()) as messages:
        while True:
            with STORE.translate_errors(bucket):
                message = await anext(messages, None)
            if message is None:
                return
            held, info = reader.read(message)
            if info is not None:
                yield held, info
