"""A watch of a bucket: the newest entries of its keys, then every change.

Law: each revision in the bucket is delivered once, in the order of the revisions. The error that
ends a watch is raised.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Generic, Literal, Self

from natsstream.api.message import Message
from natsstream.arguments import check_bool, check_choice, check_int
from natsstream.errors import CodecError, ConfigError, UsageError
from natsstream.foreign_names import answers_names
from natsstream.iteration import Calls
from natsstream.kv.bucket import Bucket
from natsstream.kv.codecs import T
from natsstream.kv.conventions import BUCKET
from natsstream.kv.entry import Entry, entry_of
from natsstream.kv.formats import ValueFormat
from natsstream.read.latest.latest import Latest
from natsstream.read.read_events import OrderedReport, ReadEvent
from natsstream.read.start_position import SEQUENCE_MAX


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
        first_seq = None
        if resume_after is not None:
            maximum = SEQUENCE_MAX - 1
            first_seq = check_int(resume_after, "resume_after", minimum=0, maximum=maximum) + 1
            if include_history or updates_only:
                raise ConfigError(
                    f"{'include_history' if include_history else 'updates_only'} and resume_after "
                    "are two starts",
                    hint="give one of them, or none for the newest entry of each key",
                )
        self._subjects = bucket.subjects
        self._form = form
        self._ignores_deletes = check_bool(ignore_deletes, "ignore_deletes")
        self._has_value = not check_bool(meta_only, "meta_only")
        self._raises = check_on_unreadable(on_unreadable) == "raise"
        self._is_entered = False
        self._latest = bucket.stream.latest(
            filters=bucket.read_filters(filters),
            include_history=include_history,
            updates_only=updates_only,
            headers_only=meta_only,
            first_seq=first_seq,
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
        if self._is_entered:
            raise UsageError("a watch opens once", hint="call kv.watch() again")
        self._is_entered = True
        with BUCKET.translate_errors(self._subjects.bucket):
            try:
                await self._latest.__aenter__()
            except BaseException:
                await self.close()
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Delete the consumer and free everything; waiting loops end. Closing twice is fine."""
        await self._latest.close()

    # State.

    @property
    def revision(self) -> int:
        """The last revision taken: `resume_after` of a watch that continues this one.

        It is right at any moment, also among the initial entries.
        """
        return self._open().next_seq - 1

    @property
    def created_ns(self) -> int:
        """The bucket's identity; with `revision` it is a position in this bucket alone."""
        return self._open().created_ns

    @property
    def is_caught_up(self) -> bool:
        """True when every entry that the bucket held on entering the block has been taken."""
        return self._open().is_caught_up

    @property
    def report(self) -> OrderedReport:
        """Counts so far: revisions received, and why consumers were made again."""
        return self._latest.report

    async def is_current(self) -> bool:
        """Ask the bucket's leader whether every entry that it holds now has been taken.

        Raises:
            BucketNotFoundError: The bucket was deleted.
            StreamRecreatedError: The bucket was deleted and made again.

        Cost: one round trip for each filter; one in all if there are many and nothing is new.
        """
        with BUCKET.translate_errors(self._subjects.bucket):
            return await self._open().is_current()

    # Reading.

    def __aiter__(self) -> Self:
        """Iterate entries: those that the last loop has left, then new ones."""
        return self

    async def __anext__(self) -> Entry[T]:
        """Wait for the next entry and return it.

        Raises:
            StopAsyncIteration: The watch was closed.
            BucketNotFoundError: The bucket was deleted.
            StreamRecreatedError: The bucket was deleted and made again.
            ConnectionLostError: The server did not come back within the connection's
                `reconnect_timeout`, if it has one; iterating again retries.
            CodecError: The entry cannot be decoded, and `on_unreadable` is "raise"; iterating again
                continues behind it.

        Cost: an entry that has arrived is returned without waiting.
        """
        while (entry := self.take_ready()) is None:
            with BUCKET.translate_errors(self._subjects.bucket):
                message = await anext(self._open())
            entry = self._entry(message)
            if entry is not None:
                break
        return entry

    def take_ready(self) -> Entry[T] | None:
        """Return the next entry if it arrived together with the last one, else None.

        Raises:
            CodecError: As for `__anext__`.
        """
        while (message := self._latest.take_ready()) is not None:
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
        messages = self._open().initial()

        async def take() -> Entry[T] | None:
            with BUCKET.translate_errors(self._subjects.bucket):
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
        batches = self._open().batches(until_caught_up=until_caught_up)

        async def take() -> list[Entry[T]] | None:
            with BUCKET.translate_errors(self._subjects.bucket):
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
        return self._open().events()

    def _entries(self, batch: list[Message]) -> list[Entry[T]]:
        """Return the entries of messages, up to one that raises."""
        entries: list[Entry[T]] = []
        for index, message in enumerate(batch):
            try:
                entry = self._entry(message)
            except CodecError:
                # Raised when those before it have been taken; those behind it are not lost.
                self._latest.give_back(batch[index:] if entries else batch[index + 1 :])
                if entries:
                    break
                raise
            if entry is not None:
                entries.append(entry)
        return entries

    def _open(self) -> Latest:
        if not self._is_entered:
            raise UsageError(
                "the watch is not open",
                hint="async with kv.watch() as watch: async for entry in watch",
            )
        return self._latest

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
