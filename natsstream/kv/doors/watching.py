"""Watching a bucket and listing what it has: its keys, their entries, their history."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Literal

from natsstream.api.message import Message
from natsstream.arguments import check_bool, check_choice, check_int
from natsstream.errors import CodecError, ConfigError
from natsstream.kv.buckets.conventions import BUCKET
from natsstream.kv.doors.part import Part
from natsstream.kv.entry import Entry, entry_of, operation_of
from natsstream.kv.listing import KeysOnce
from natsstream.kv.watch import Watch
from natsstream.read.latest.latest import Latest
from natsstream.read.start_position import SEQUENCE_MAX, TIME_NS_MAX


class Watching(Part):
    """Follows and lists keys."""

    def watch(
        self,
        *filters: str,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_after: int | None = None,
        created_ns: int | None = None,
    ) -> Watch:
        """Describe a watch: the newest entry of each key, then every change.

        Use it as `async with kv.watch("orders.*") as watch: async for entry in watch`. In the
        block, `async for entry in watch.initial()` ends when all that was there has come.

        Args:
            filters: Keys, or filters with wildcards: `*` is one token, a final `>` the rest; none
                is all keys, 1,000 at most. They may overlap: each entry comes once.
            include_history: Begin with all revisions that the bucket keeps, not the newest alone.
            ignore_deletes: Leave out markers: what was deleted, purged or has expired.
            meta_only: Leave out the values, which are `b""` then.
            updates_only: Begin with what is written from now on; nothing is initial.
            resume_after: Begin with what was written behind this revision: `revision` of an earlier
                watch, also of another process.
            created_ns: The bucket's identity, `created_ns` of the earlier watch: refuse another
                bucket of this name. Without it, one that has not come to the revision is refused.

        Returns:
            A watch; nothing is sent before its block is entered.

        Raises:
            KeyNameError: A filter is not legal.
            ConfigError: Two starts are given, there are too many filters, or a value can not work.

        Cost: one consumer on the server, while the block lasts; memory of at most 16 MiB of entries
        on their way.
        Source: ADR-8 watch; nats.go jetstream/kv.go WatchFiltered.
        """
        check_bool(ignore_deletes, "ignore_deletes")
        check_bool(meta_only, "meta_only")
        if resume_after is not None:
            check_int(resume_after, "resume_after", minimum=0, maximum=SEQUENCE_MAX - 1)
        if created_ns is not None:
            check_int(created_ns, "created_ns", minimum=1, maximum=TIME_NS_MAX)
        # Told here in the words of a bucket.
        starts = {
            "include_history": check_bool(include_history, "include_history"),
            "updates_only": check_bool(updates_only, "updates_only"),
            "resume_after": resume_after is not None,
        }
        given = [name for name, is_given in starts.items() if is_given]
        if len(given) > 1:
            raise ConfigError(
                f"{' and '.join(given)} are two starts",
                hint="give one of them, or none for the newest entry of each key",
            )
        latest = self._stream.latest(
            filters=self._subjects(filters),
            include_history=include_history,
            updates_only=updates_only,
            headers_only=meta_only,
            first=None if resume_after is None else resume_after + 1,
            created_ns=created_ns,
        )
        return Watch(latest, self._place, ignore_deletes=ignore_deletes, meta_only=meta_only)

    async def keys(
        self, *filters: str, on_unreadable: Literal["raise", "leave_out"] = "raise"
    ) -> AsyncGenerator[str]:
        """Yield the keys that have a value, each once, in the order of their newest revisions.

        A key that has one from the beginning to the end of the loop is among them; one that is
        written or deleted meanwhile may be. What was acknowledged before is known: a key that was
        deleted is not listed. Collect them with `[key async for key in kv.keys()]`.

        Args:
            filters: As for `watch`.
            on_unreadable: What becomes of a key that is not of the bucket's codec's form, as none
                of the application's is.

        Raises:
            KeyNameError: A filter is not legal; nothing was sent.
            ConfigError: `on_unreadable` has no legal value; nothing was sent.
            BucketNotFoundError: There is no such bucket.
            TransportError: The server did not come back in time.
            CodecError: A key is not of the bucket's codec's form, and `on_unreadable` is "raise".

        Cost: the headers of each key's newest entry, and no values. Memory: the 16 MiB of `watch`,
        and 8 bytes a key; 80 where others write meanwhile. One consumer, deleted when the loop ends
        or is left; on a replicated bucket a few before it, until one comes to the leader.
        """
        check_choice(on_unreadable, "on_unreadable", ("raise", "leave_out"))
        values = self._newest_values(
            filters, headers_only=True, leaves_out=on_unreadable == "leave_out"
        )
        async with aclosing(values) as batches:
            async for batch in batches:
                for key, _ in batch:
                    yield key

    async def entries(self, *filters: str) -> AsyncGenerator[Entry]:
        """Yield the newest entry of each key that has a value, in the order of their revisions.

        Each key comes once, with the entry that it had when it was its turn: the newest one at the
        beginning of the loop, or one that was written meanwhile.

        Args:
            filters: As for `watch`.

        Raises:
            KeyNameError: A filter is not legal; nothing was sent.
            BucketNotFoundError: There is no such bucket.
            TransportError: The server did not come back in time.
            CodecError: An entry is not of the bucket's codec's form.

        Cost: as for `keys`, with the values.
        """
        async with aclosing(self._newest_values(filters)) as batches:
            async for batch in batches:
                for _, message in batch:
                    yield entry_of(self._place, message, delta=message.pending)

    async def history(self, *filters: str) -> AsyncGenerator[Entry]:
        """Yield all revisions that the bucket keeps of a key, oldest first, markers too.

        Args:
            filters: A key, or as for `watch`: revisions of several keys come in the order in which
                they were written.

        Raises:
            KeyNameError: A filter is not legal; nothing was sent.
            BucketNotFoundError: There is no such bucket.
            TransportError: The server did not come back in time.
            CodecError: An entry is not of the bucket's codec's form.

        Cost: one consumer, deleted when the loop ends or is left; memory as for `watch`.
        """
        async with (
            self.watch(*filters, include_history=True) as watch,
            aclosing(watch.initial()) as entries,
        ):
            async for entry in entries:
                yield entry

    async def _newest_values(
        self, filters: Sequence[str], *, headers_only: bool = False, leaves_out: bool = False
    ) -> AsyncGenerator[list[tuple[str, Message]]]:
        """Yield keys with their newest values as they arrive together, each key once.

        The newest value is that of the beginning, or one that was written meanwhile.
        `leaves_out` leaves out keys that can not be decoded.
        """
        latest = self._newest(filters, headers_only=headers_only)
        async with _batches_of(latest, self.name) as batches:
            once = KeysOnce(latest.horizon)
            async for batch in batches:
                values = [each for each in batch if operation_of(each) == "PUT"]
                if leaves_out:
                    values = [each for each in values if self._is_readable(each)]
                if not values:
                    continue
                names = [self._place.key_of(each.subject) for each in values]
                chosen = once.choose(names, first=values[0].sequence)
                yield [(names[index], values[index]) for index in chosen]

    def _newest(self, filters: Sequence[str], *, headers_only: bool = False) -> Latest:
        return self._stream.latest(
            filters=self._subjects(filters), headers_only=headers_only, consistent=True
        )

    def _is_readable(self, message: Message) -> bool:
        try:
            self._place.key_of(message.subject)
        except CodecError:
            return False
        return True

    def _subjects(self, filters: Sequence[str]) -> list[str]:
        if not filters:
            # Not through the codec, which may take no wildcards.
            return [f"{self._place.read_prefix}>"]
        return [self._place.read_filter(each) for each in filters]


@asynccontextmanager
async def _batches_of(latest: Latest, bucket: str) -> AsyncGenerator[AsyncGenerator[list[Message]]]:
    """Open a read, and yield what was there as it arrives together."""
    with BUCKET.translate_errors(bucket):
        async with latest, aclosing(latest.batches(until_caught_up=True)) as batches:
            yield batches
