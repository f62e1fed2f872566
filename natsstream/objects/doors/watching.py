"""Many objects at once: listing them, and following what changes."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from natsstream.arguments import check_bool, check_choice, check_int
from natsstream.objects.doors.part import Part
from natsstream.objects.watch import ON_UNREADABLE, ObjectListing, ObjectWatch, OnUnreadable


class Watching(Part):
    """Lists and follows a store's objects."""

    def watch(
        self,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        updates_only: bool = False,
        resume_after: int | None = None,
        created_ns: int | None = None,
        on_unreadable: OnUnreadable = "report",
    ) -> ObjectWatch:
        """Describe a watch: what the store says of each object now, then every change.

        Use it as `async with box.watch() as watch: async for info in watch`; `watch.initial()` ends
        when everything that was there has come, also where there was nothing. It tells of infos,
        not of bytes: `open` reads those. After a rename an info of the new name comes, with
        `renamed_from`; nothing comes for the old one.

        Args:
            include_history: Begin with all infos that the stream holds. Clients keep one for each
                object, so this finds more only where something else has written.
            ignore_deletes: Leave out the markers of deleted objects.
            updates_only: Begin with what is stored from now on.
            resume_after: Go on behind this revision: `revision` of an earlier watch.
            created_ns: The store's identity, `created_ns` of an earlier watch: refuse another store
                of this name.
            on_unreadable: "report" passes over what can not be read, and keeps why in
                `watch.unreadable`; "raise" raises it, and the next loop goes on behind it.

        Returns:
            A watch; nothing is sent before its block is entered.

        Raises:
            ConfigError: Two starts are given, or a value can not work.

        Cost: one ephemeral consumer; memory of at most 16 MiB of messages on their way.
        Source: ADR-20; nats.go jetstream/object.go Watch.
        """
        check_bool(ignore_deletes, "ignore_deletes")
        check_choice(on_unreadable, "on_unreadable", ON_UNREADABLE)
        first = None
        if resume_after is not None:
            first = check_int(resume_after, "resume_after", minimum=0) + 1
        latest = self._stream.latest(
            filters=[self._place.meta_filter],
            include_history=include_history,
            updates_only=updates_only,
            first=first,
            created_ns=created_ns,
        )
        return ObjectWatch(
            latest, self._place, ignore_deletes=ignore_deletes, on_unreadable=on_unreadable
        )

    def list(
        self, *, include_deleted: bool = False, on_unreadable: OnUnreadable = "report"
    ) -> ObjectListing:
        """Return what the store says of each of its objects, links among them.

        Read it with `async for`; a store without objects yields nothing. One that is written
        meanwhile may come twice, with its newer info last.

        Args:
            include_deleted: Also the markers of deleted objects.
            on_unreadable: "report" passes over what can not be read, and keeps why in the result's
                `unreadable`; "raise" ends the loop with it.

        Raises:
            ConfigError: A value can not work.
            ObjectMetaError: One can not be read and shall be raised; from the loop.
            BucketNotFoundError: The store was deleted; from the loop.
            TransportError: The server did not answer in time; from the loop.

        Cost: one ephemeral consumer for each loop; memory of at most 16 MiB of messages on their
        way, however many objects there are.
        Source: ADR-20; nats.go jetstream/object.go List.
        """
        check_bool(include_deleted, "include_deleted")
        check_choice(on_unreadable, "on_unreadable", ON_UNREADABLE)
        return ObjectListing(
            self._metas, include_deleted=include_deleted, on_unreadable=on_unreadable
        )

    async def names(self) -> AsyncGenerator[str]:
        """Yield the names of the store's objects, links among them, as `list` does.

        Raises:
            BucketNotFoundError: The store was deleted.
            TransportError: The server did not answer in time.

        Cost: as for `list`.
        """
        async with aclosing(self.list().infos()) as infos:
            async for info in infos:
                yield info.name
