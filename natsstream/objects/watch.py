"""Watches and lists the infos of a store.

Law: each stored meta is yielded once, in the order of revisions. One that cannot be read is counted
and kept in `unreadable`, or raised; it never ends a watch for good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial
from typing import Literal, Self

from natsstream.api.message import Message
from natsstream.arguments import check_bool, check_choice
from natsstream.errors import NatsStreamError, ObjectMetaError
from natsstream.foreign_names import answers_names
from natsstream.iteration import Calls, Flattened
from natsstream.objects.info import ObjectInfo
from natsstream.objects.kind import STORE
from natsstream.objects.meta_store import MetaStore, StoredMeta, parse_meta
from natsstream.objects.store_subjects import StoreSubjects
from natsstream.read.read_events import OrderedReport, ReadEvent
from natsstream.streams.views.watching import Watching

OnUnreadable = Literal["report", "raise"]
UNREADABLE_MAX = 256
"""Errors kept; `unreadable_count` counts all."""


class _MetaReader:
    """Reads messages as metas, and keeps the errors of those that cannot be read."""

    def __init__(
        self, subjects: StoreSubjects, *, ignore_deletes: bool, on_unreadable: OnUnreadable
    ) -> None:
        check_choice(on_unreadable, "on_unreadable", ("report", "raise"))
        self._subjects = subjects
        self._ignores_deletes = ignore_deletes
        self._raises = on_unreadable == "raise"
        self.unreadable: deque[ObjectMetaError] = deque(maxlen=UNREADABLE_MAX)
        self.unreadable_count = 0

    def read(self, message: Message) -> tuple[StoredMeta, ObjectInfo | None]:
        """Return a message's meta, and the info to yield, or None to skip it."""
        name = self._subjects.name_of(message.subject)
        if name is None:
            shown = message.subject.removeprefix(self._subjects.meta_filter[:-1])
            error = ObjectMetaError(
                f"store {self._subjects.bucket}: {shown[:80]!r} is no object's name in base64",
                name="",
                revision=message.sequence,
                hint="no client of object stores writes such a subject",
            )
            stored = StoredMeta(message.sequence, error=error)
        else:
            stored = parse_meta(message, self._subjects, name)
        if stored.error is None:
            return stored, stored.live if self._ignores_deletes else stored.info
        self.unreadable.append(stored.error)
        self.unreadable_count += 1
        if self._raises:
            raise stored.error
        return stored, None


@answers_names("object_watch", calls=False)
class ObjectWatch:
    """Follows an object store; made by `ObjectStore.watch`.

    Iterate it in `async with`: leaving the block deletes its consumer on the server. One task reads
    at a time. A new loop continues a loop that was left or cancelled, with the next info.

    After a lost connection, a server restart, a leader change or a deleted consumer the watch
    resumes on its own, for readers of any speed; `events()` and `report` report it.
    """

    def __init__(
        self,
        meta_store: MetaStore,
        *,
        include_history: bool,
        ignore_deletes: bool,
        updates_only: bool,
        resume_after: int | None,
        created_ns: int | None,
        on_unreadable: OnUnreadable,
    ) -> None:
        check_bool(ignore_deletes, "ignore_deletes")
        subjects = meta_store.subjects
        self._reader = _MetaReader(
            subjects, ignore_deletes=ignore_deletes, on_unreadable=on_unreadable
        )
        self._watching = Watching(
            STORE,
            meta_store.stream,
            call="box.watch()",
            item="info",
            filters=[subjects.meta_filter],
            include_history=include_history,
            updates_only=updates_only,
            resume_after=resume_after,
            created_ns=created_ns,
        )

    async def __aenter__(self) -> Self:
        """Find the start and create the first consumer.

        Raises:
            BucketNotFoundError: The store was deleted.
            StreamRecreatedError: The store is not the one of `created_ns`, or has not reached
                `resume_after`: it was deleted and created again.
            PermissionDeniedError: The user may not read it.
            TransportError: The server did not answer in time.
        """
        await self._watching.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Delete the consumer and free everything; waiting loops end. Closing twice is fine."""
        await self._watching.latest.close()

    # State.

    @property
    def revision(self) -> int:
        """The last revision taken: `resume_after` of a watch that continues here."""
        return self._watching.opened().next_seq - 1

    @property
    def created_ns(self) -> int:
        """The store's identity: a store that was created again has another one."""
        return self._watching.opened().created_ns

    @property
    def is_caught_up(self) -> bool:
        """True once every info that was stored when the block was entered has been taken."""
        return self._watching.opened().is_caught_up

    @property
    def report(self) -> OrderedReport:
        """The watch so far: messages received, and why consumers were created again."""
        return self._watching.latest.report

    @property
    def unreadable(self) -> tuple[ObjectMetaError, ...]:
        """The errors of metas that could not be read and were skipped, the newest 256."""
        return tuple(self._reader.unreadable)

    @property
    def unreadable_count(self) -> int:
        """How many metas could not be read."""
        return self._reader.unreadable_count

    # Reading.

    def __aiter__(self) -> Self:
        """Iterate infos: the rest of an earlier loop, then new ones."""
        return self

    async def __anext__(self) -> ObjectInfo:
        """Wait for the next info and return it.

        Raises:
            StopAsyncIteration: The watch was closed.
            ObjectMetaError: A meta cannot be read and `on_unreadable` is "raise"; the next call
                continues behind it.
            BucketNotFoundError: The store was deleted.
            StreamRecreatedError: The store was deleted and created again, or lost its end.
            ConnectionLostError: The connection did not come back within its `reconnect_timeout`, if
                it has one; the next call tries again.

        Cost: none for infos that have arrived.
        """
        while True:
            with self._watching.errors():
                message = await anext(self._watching.opened())
            _, info = self._reader.read(message)
            if info is not None:
                return info

    def initial(self) -> AsyncGenerator[ObjectInfo]:
        """Yield the infos that were stored when the block was entered, then end.

        It ends at once in an empty store. An object that is written meanwhile is yielded with its
        newer info, or with both. Later infos are for the next loop.

        Raises:
            NatsStreamError: As for `__anext__`.
        """
        messages = self._watching.opened().initial()

        async def take() -> ObjectInfo | None:
            with self._watching.errors():
                async for message in messages:
                    _, info = self._reader.read(message)
                    if info is not None:
                        return info
            return None

        return Calls(take, messages)

    def events(self) -> AsyncGenerator[ReadEvent]:
        """Return the watch's events, `Recreated` and `HeartbeatsMissed`; they end on close.

        Events happen while a task reads infos. The newest 256 are kept;
        `report.events_dropped` counts the others. Two loops share the events.
        """
        return self._watching.opened().events()

    def __repr__(self) -> str:
        return f"<ObjectWatch {self._watching.name}>"


class ObjectListing:
    """The infos of a store's objects, read with `async for`; made by `ObjectStore.list`.

    Each loop reads the store again.
    """

    def __init__(
        self, meta_store: MetaStore, *, include_deleted: bool, on_unreadable: OnUnreadable
    ) -> None:
        self._meta_store = meta_store
        self._new_reader = partial(
            _MetaReader,
            meta_store.subjects,
            ignore_deletes=not check_bool(include_deleted, "include_deleted"),
            on_unreadable=on_unreadable,
        )
        self._reader = self._new_reader()

    @property
    def unreadable(self) -> tuple[ObjectMetaError, ...]:
        """The errors of metas that the loop could not read and skipped, the newest 256."""
        return tuple(self._reader.unreadable)

    @property
    def unreadable_count(self) -> int:
        """How many metas the loop could not read."""
        return self._reader.unreadable_count

    def __aiter__(self) -> AsyncIterator[ObjectInfo]:
        return self.infos()

    def infos(self) -> AsyncGenerator[ObjectInfo]:
        """Yield the infos of a loop over the listing; `aclose()` frees everything at once."""
        return Flattened(self._infos(), iter)

    async def _infos(self) -> AsyncGenerator[list[ObjectInfo]]:
        subjects = self._meta_store.subjects
        reader = self._reader = self._new_reader()
        latest = self._meta_store.stream.latest(filters=[subjects.meta_filter], consistent=True)
        with STORE.translate_errors(subjects.bucket):
            async with latest:
                async for messages in latest.batches(until_caught_up=True):
                    infos: list[ObjectInfo] = []
                    try:
                        for message in messages:
                            stored, info = reader.read(message)
                            if info is not None and not await self._is_moved(stored, info.name):
                                infos.append(info)
                    except NatsStreamError:  # Before it, what could be read.
                        yield infos
                        raise
                    yield infos

    async def _is_moved(self, stored: StoredMeta, name: str) -> bool:
        """Return True for the old meta of a killed rename, which is no object."""
        return bool(stored.renamed_to) and (await self._meta_store.read(name)).info is None

    def __repr__(self) -> str:
        return f"<ObjectListing {self._meta_store.subjects.bucket}>"
