"""A watch of a bucket: the newest entries of its keys, then every change.

Law: each revision in the bucket is delivered once, in the order of the revisions. The error that
ends a watch is raised.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Generic, Literal, Self

from natsstream.api.message import Message
from natsstream.arguments import check_bool, check_choice
from natsstream.errors import CodecError
from natsstream.foreign_names import answers_names
from natsstream.iteration import Calls
from natsstream.kv.bucket import Bucket
from natsstream.kv.codecs import T
from natsstream.kv.conventions import BUCKET
from natsstream.kv.entry import Entry, entry_of
from natsstream.kv.formats import ValueFormat
from natsstream.read.read_events import OrderedReport, ReadEvent
from natsstream.streams.views.watching import Watching


@answers_names("watch", calls=False)
class Watch(Generic[T]):
    """Follows keys of a bucket; made by `KeyValue.watch`.

    Iterate it in `async with`: leaving the block deletes its consumer on the server. One task reads
    at a time. A loop that was left or cancelled can be continued by another loop.

    A watch resumes after a lost connection, a restart of the server, a change of leaders and a
    deleted consumer, however slow the reader is. `events()` and `report` show it.

    Every call that asks the server raises `TransportError` when no answer comes in time.
    """

    def __init__(
        self,
        bucket: Bucket,
        form: ValueFormat[T],
        filters: Sequence[str],
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_after: int | None = None,
        created_ns: int | None = None,
        on_unreadable: Literal["raise", "hand_out"] = "raise",
    ) -> None:
        self._subjects = bucket.subjects
        self._form = form
        self._ignores_deletes = check_bool(ignore_deletes, "ignore_deletes")
        self._has_value = not check_bool(meta_only, "meta_only")
        self._raises = check_on_unreadable(on_unreadable) == "raise"
        self._watching = Watching(
            BUCKET,
            bucket.stream,
            call="kv.watch()",
            item="entry",
            filters=bucket.read_filters(filters),
            include_history=include_history,
            updates_only=updates_only,
            headers_only=meta_only,
            resume_after=resume_after,
            created_ns=created_ns,
        )

    async def __aenter__(self) -> Self:
        """Find the start and make the first consumer.

        Raises:
            BucketNotFoundError: The bucket does not exist.
            StreamRecreatedError: The bucket is not the one of `created_ns`, or has no revision
                `resume_after` yet: it was deleted and made again, or the number is wrong.
            PermissionDeniedError: The user may not read it.
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
        """The last revision taken: `resume_after` of a watch that continues this one.

        It is right at any moment, also among the initial entries.
        """
        return self._watching.opened().next_seq - 1

    @property
    def created_ns(self) -> int:
        """The bucket's identity; with `revision` it is a position in this bucket alone."""
        return self._watching.opened().created_ns

    @property
    def is_caught_up(self) -> bool:
        """True when every entry that the bucket held on entering the block has been taken."""
        return self._watching.opened().is_caught_up

    @property
    def report(self) -> OrderedReport:
        """Counts so far: revisions received, and why consumers were made again."""
        return self._watching.latest.report

    async def is_current(self) -> bool:
        """Ask the bucket's leader whether every entry that it holds now has been taken.

        Raises:
            BucketNotFoundError: The bucket was deleted.
            StreamRecreatedError: The bucket was deleted and made again.

        Cost: one round trip for each filter; one in all if there are many and nothing is new.
        """
        with self._watching.errors():
            return await self._watching.opened().is_current()

    # Reading.

    def __aiter__(self) -> Self:
        """Iterate entries: those that the last loop has left, then new ones."""
        return self

    async def __anext__(self) -> Entry[T]:
        """Wait for the next entry and return it.

        Raises:
            StopAsyncIteration: The watch was closed.
            BucketNotFoundError: The bucket was deleted.
            StreamRecreatedError: The bucket was deleted and made again, or lost its end.
            ConnectionLostError: The server did not come back within the connection's
                `reconnect_timeout`, if it has one; iterating again retries.
            CodecError: The entry cannot be decoded, and `on_unreadable` is "raise"; iterating again
                continues behind it.

        Cost: an entry that has arrived is returned without waiting.
        """
        while (entry := self.take_ready()) is None:
            with self._watching.errors():
                message = await anext(self._watching.opened())
            entry = self._entry(message)
            if entry is not None:
                break
        return entry

    def take_ready(self) -> Entry[T] | None:
        """Return the next entry if it arrived together with the last one, else None.

        Raises:
            CodecError: As for `__anext__`.
        """
        while (message := self._watching.latest.take_ready()) is not None:
            entry = self._entry(message)
            if entry is not None:
                return entry
        return None

    def initial(self) -> AsyncGenerator[Entry[T]]:
        """Yield the entries that the bucket held on entering the block, then end.

        It ends at once in an empty bucket. A key that is written meanwhile may come with its newer
        entry as well, or with that alone. The next loop yields later entries.

        Raises:
            NatsStreamError: As for `__anext__`.
        """
        messages = self._watching.opened().initial()

        async def take() -> Entry[T] | None:
            with self._watching.errors():
                async for message in messages:
                    entry = self._entry(message)
                    if entry is not None:
                        return entry
            return None

        return Calls(take, messages)

    def batches(self, *, until_caught_up: bool = False) -> AsyncGenerator[list[Entry[T]]]:
        """Yield lists of entries as they arrive together; no list is empty.

        Args:
            until_caught_up: End where `initial` ends, instead of waiting for more.

        Raises:
            NatsStreamError: As for `__anext__`.

        Cost: a list holds about a megabyte.
        """
        batches = self._watching.opened().batches(until_caught_up=until_caught_up)

        async def take() -> list[Entry[T]] | None:
            with self._watching.errors():
                async for batch in batches:
                    entries = self._entries(batch)
                    if entries:
                        return entries
            return None

        return Calls(take, batches)

    def events(self) -> AsyncGenerator[ReadEvent]:
        """Return the watch's events, `Recreated` and `HeartbeatsMissed`; they end on close.

        Events happen while a task reads entries. The newest 256 are kept, and
        `report.events_dropped` counts the others. Two loops share the events.
        """
        return self._watching.opened().events()

    def _entries(self, batch: list[Message]) -> list[Entry[T]]:
        """Return the entries of messages, up to one that raises."""
        entries: list[Entry[T]] = []
        for index, message in enumerate(batch):
            try:
                entry = self._entry(message)
            except CodecError:
                # Raised when those before it have been taken; those behind it are not lost.
                self._watching.latest.give_back(batch[index:] if entries else batch[index + 1 :])
                if entries:
                    break
                raise
            if entry is not None:
                entries.append(entry)
        return entries

    def _entry(self, message: Message) -> Entry[T] | None:
        entry = entry_of(
            self._subjects,
            message,
            self._form,
            delta=message.pending,
            has_value=self._has_value,
            raises=self._raises,
        )
        return None if self._ignores_deletes and entry.is_deleted else entry

    def __repr__(self) -> str:
        return f"<Watch {self._subjects.bucket}>"


def check_on_unreadable(value: object) -> str:
    """Return a value of `on_unreadable`, or raise ConfigError."""
    return check_choice(value, "on_unreadable", ("raise", "hand_out"))
