"""A watch of a bucket: the newest entries of its keys, then every change, for as long as wanted.

Law: each revision that is in the bucket is handed over once, in the order of the revisions; what
ends a watch is raised.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Literal, Self

from natsstream.api.message import Message
from natsstream.arguments import check_choice
from natsstream.errors import CodecError, UsageError
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.kv.buckets.conventions import BUCKET
from natsstream.kv.entry import Entry, any_entry_of, entry_of
from natsstream.read.latest.latest import Latest
from natsstream.read.read_events import OrderedReport, ReadEvent

UNREADABLE = ("raise", "hand_out")
"""What can become of an entry that can not be read."""


class Watch:
    """Follows keys of a bucket; made by `KeyValue.watch`.

    Iterate it in `async with`: leaving the block deletes its consumer on the server. One task reads
    at a time. A loop that was left or cancelled can be taken up again, with the next entry.

    It goes on by itself after a lost connection, a restart of the server, a change of leaders and a
    deleted consumer, however slow the reader is; `events()` and `report` tell of that.
    """

    def __init__(
        self,
        latest: Latest,
        place: BucketSubjects,
        *,
        ignore_deletes: bool = False,
        meta_only: bool = False,
    ) -> None:
        self._latest = latest
        self._place = place
        self._ignores_deletes = ignore_deletes
        self._has_value = not meta_only
        self._is_entered = False

    async def __aenter__(self) -> Self:
        """Find the start and make the first consumer.

        Raises:
            BucketNotFoundError: There is no such bucket.
            StreamRecreatedError: The bucket is not the one of `created_ns`, or has not come to
                `resume_after`: it was deleted and made again.
            PermissionDeniedError: The user may not read it.
            TransportError: There was no answer in time.
        """
        if self._is_entered:
            raise UsageError("a watch opens once", hint="call kv.watch() again")
        self._is_entered = True
        with BUCKET.translate_errors(self._place.bucket):
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
        """Where to go on: `resume_after` for another watch behind all that has been taken.

        It is true at any moment, also among the initial entries.
        """
        return self._open().next_seq - 1

    @property
    def created_ns(self) -> int:
        """The bucket's identity; with `revision` it is a place that only this bucket has."""
        return self._open().created_ns

    @property
    def is_caught_up(self) -> bool:
        """True when everything that was in the bucket when the block was entered has been taken."""
        return self._open().is_caught_up

    @property
    def report(self) -> OrderedReport:
        """What was done so far: revisions received, and why consumers were made again."""
        return self._latest.report

    async def is_current(self) -> bool:
        """Ask the bucket's leader whether every entry that it holds now has been taken.

        Raises:
            BucketNotFoundError: The bucket was deleted.
            StreamRecreatedError: The bucket was deleted and made again.
            TransportError: There was no answer in time.

        Cost: one round trip for each filter; one in all where there are many and nothing is new.
        """
        with BUCKET.translate_errors(self._place.bucket):
            return await self._open().is_current()

    # Reading.

    def __aiter__(self) -> Self:
        """Iterate entries: of what the loop before has left, then what comes."""
        return self

    async def __anext__(self) -> Entry:
        """Return the next entry, and wait for it.

        Raises:
            StopAsyncIteration: It was closed.
            BucketNotFoundError: The bucket was deleted.
            StreamRecreatedError: The bucket was deleted and made again.
            ConnectionLostError: The server did not come back within `reconnect_timeout`; iterating
                again goes on trying.
            CodecError: The entry is not of the bucket's codec's form; iterating again goes on
                behind it.

        Cost: what has arrived is taken without waiting.
        """
        while (entry := self.take_ready()) is None:
            with BUCKET.translate_errors(self._place.bucket):
                message = await anext(self._open())
            entry = self._entry(message)
            if entry is not None:
                break
        return entry

    def take_ready(self) -> Entry | None:
        """Return the next entry if it came together with the last one; None if it did not."""
        while (message := self._latest.take_ready()) is not None:
            entry = self._entry(message)
            if entry is not None:
                return entry
        return None

    async def initial(self) -> AsyncGenerator[Entry]:
        """Yield what was in the bucket when the block was entered, then end.

        It ends at once when there is nothing. Each key that had an entry then and has one still
        has come when it ends; of one that was written meanwhile a newer entry may have come too, or
        alone. What comes later is for the next loop.

        Raises:
            NatsStreamError: As for `__anext__`.
        """
        messages = self._open().initial()
        try:
            while True:
                with BUCKET.translate_errors(self._place.bucket):
                    message = await anext(messages, None)
                if message is None:
                    return
                entry = self._entry(message)
                if entry is not None:
                    yield entry
        finally:
            await messages.aclose()

    async def batches(
        self,
        *,
        until_caught_up: bool = False,
        on_unreadable: Literal["raise", "hand_out"] = "raise",
    ) -> AsyncGenerator[list[Entry]]:
        """Yield lists of entries, as they arrive together; none is empty.

        Args:
            until_caught_up: End where `initial` does, instead of waiting for more.
            on_unreadable: What becomes of an entry that is not of the codec's form. "raise": the
                iteration raises, and another one goes on behind it. "hand_out": it comes as an
                `UnreadableEntry`.

        Raises:
            ConfigError: `on_unreadable` has no legal value.
            NatsStreamError: As for `__anext__`.

        Cost: a list holds a megabyte or so.
        """
        check_choice(on_unreadable, "on_unreadable", UNREADABLE)
        entries_of = self._entries if on_unreadable == "raise" else self._all_entries
        batches = self._open().batches(until_caught_up=until_caught_up)
        try:
            while True:
                with BUCKET.translate_errors(self._place.bucket):
                    batch = await anext(batches, None)
                if batch is None:
                    return
                entries = entries_of(batch)
                if entries:
                    yield entries
        finally:
            await batches.aclose()

    async def events(self) -> AsyncGenerator[ReadEvent]:
        """Yield what happens to the watch: `Recreated` and `HeartbeatsMissed`; ends on close.

        Events happen while somebody reads entries. The newest 256 are kept;
        `report.events_dropped` counts the others. Two loops share the events.
        """
        events = self._latest.events()
        try:
            async for event in events:
                yield event
        finally:
            await events.aclose()

    def _entries(self, batch: list[Message]) -> list[Entry]:
        """Return the entries of messages, up to one that can not be decoded."""
        entries: list[Entry] = []
        for index, message in enumerate(batch):
            try:
                entry = self._entry(message)
            except CodecError:
                # Told when those before it have been taken; those behind it are not lost.
                self._latest.give_back(batch[index:] if entries else batch[index + 1 :])
                if entries:
                    break
                raise
            if entry is not None:
                entries.append(entry)
        return entries

    def _all_entries(self, batch: list[Message]) -> list[Entry]:
        """Return the entries of messages, those that can not be decoded as such."""
        entries = (
            any_entry_of(self._place, each, delta=each.pending, has_value=self._has_value)
            for each in batch
        )
        return [each for each in entries if not (self._ignores_deletes and each.is_deleted)]

    def _open(self) -> Latest:
        if not self._is_entered:
            raise UsageError(
                "the watch is not open",
                hint="async with kv.watch() as watch: async for entry in watch",
            )
        return self._latest

    def _entry(self, message: Message) -> Entry | None:
        entry = entry_of(self._place, message, delta=message.pending, has_value=self._has_value)
        return None if self._ignores_deletes and entry.is_deleted else entry

    def __repr__(self) -> str:
        return f"<Watch {self._place.bucket}>"
