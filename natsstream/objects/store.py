"""One object store: `ObjectStore`."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta

from natsstream.api.diff import ConfigChange
from natsstream.arguments import check_bool
from natsstream.errors import ConfigError, ObjectNameError
from natsstream.foreign_names import answers_names
from natsstream.iteration import Calls
from natsstream.objects.config import ObjectBucketConfig
from natsstream.objects.describing import Description, ObjectHeaders
from natsstream.objects.downloading import check_path, download_object
from natsstream.objects.info import ObjectInfo
from natsstream.objects.kind import STORE
from natsstream.objects.links import link_object, link_store
from natsstream.objects.meta_store import MetaStore
from natsstream.objects.putting import RETRY_FOR_S, ObjectPut
from natsstream.objects.reader import ObjectReader, read_object
from natsstream.objects.status import ObjectStoreStatus
from natsstream.objects.updating import delete_object, update_object
from natsstream.objects.watch import ObjectListing, ObjectWatch, OnUnreadable
from natsstream.streams.chunks.sources import Source
from natsstream.streams.chunks.sweeping import SILENCE_S, SweepReport
from natsstream.streams.chunks.value import Progress
from natsstream.streams.stream import Stream

_PATH_FIRST = "the path comes first: box.put_file(path, name)"


@answers_names("box")
class ObjectStore:
    """An object store: values of any size under names, as chunks in one stream.

    `js.objects` makes and opens stores. Every call can raise BucketNotFoundError when the store was
    deleted, and TransportError when the server does not answer in time: a write may be stored or
    not then, and can be repeated. Calls with a name raise ObjectNameError before anything is sent
    if it is not a legal name, which is any text whose subject is short enough.

    Attributes:
        name: The store's name.
        stream: The store's stream, for backups, step-downs and the like.
        config: The store's configuration when it was opened.
        change: The change by the call that returned the store: created, updated or none.
    """

    def __init__(self, meta_store: MetaStore) -> None:
        self._meta_store = meta_store
        self._checked = meta_store.subjects.check_object_name
        stream = meta_store.stream
        self.name: str = meta_store.subjects.bucket
        self.stream: Stream = stream
        self.config: ObjectBucketConfig = ObjectBucketConfig.from_stream(stream.cached.config)
        self.change: ConfigChange = ObjectBucketConfig.renamed(stream.change)

    # Bytes.

    async def put(
        self,
        name: str,
        source: Source,
        *,
        description: str = "",
        headers: ObjectHeaders | None = None,
        metadata: Mapping[str, str] | None = None,
        chunk_size: int | None = None,
        retry_for: float = RETRY_FOR_S,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Store an object, and replace the one of this name.

        The old object stays readable until the new one is complete. Of two concurrent puts the one
        that ends last wins. A put that fails or is cancelled removes its chunks; `sweep` removes
        those that it cannot, because the server is away.

        Args:
            name: The object's name.
            source: Bytes, a path, an open binary file, an object with an async `read`, or an
                iterable of bytes, async or not. Blocking sources are read in a thread. An open file
                is read from its position and stays open. Text is refused: encode it.
            description: Free text.
            headers: A value, or a list of values, by name.
            metadata: Texts by key.
            chunk_size: Bytes of a message, at most the server's `max_payload`. None is 131,072, or
                `max_payload` or the stream's `max_msg_size` if that is smaller.
            retry_for: Seconds in which a failed put is retried. Bytes and paths are read again from
                the start; for other sources only the steps after the bytes are retried. 0 is never.
                Without a server it waits for so long, and for one `request_timeout` at least.
            progress: Called on the loop with the bytes stored and the bytes in all (None if not
                known); it must not block. A retry starts at 0.

        Returns:
            The object's info, without the time, which acks do not have; see `info`.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.
            StreamFullError: The store has no room; the old object is unchanged.
            StreamSealedError: The store is sealed.
            ChunksDamagedError: A sweep or the store's `ttl` removed chunks during the put; the old
                object is unchanged.
            Exception: The error of the source itself, such as OSError.

        Cost: four round trips and the bytes; 8 MiB in flight. For a moment the store holds the
        bytes of both the old and the new object.
        Source: ADR-20; nats.go jetstream/object.go Put.
        """
        info = ObjectInfo(name=self._checked(name), bucket=self.name, nuid="")
        put = ObjectPut(
            self._meta_store,
            Description(description, headers, metadata).apply(info),
            chunk_size=chunk_size,
            retry_for=retry_for,
            progress=progress,
        )
        return await put.run(source)

    async def put_file(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        *,
        description: str = "",
        headers: ObjectHeaders | None = None,
        metadata: Mapping[str, str] | None = None,
        chunk_size: int | None = None,
        retry_for: float = RETRY_FOR_S,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Store a file; see `put`.

        Args:
            path: The file.
            name: The object's name; None is the path as given, as in the nats CLI.
            description: Free text.
            headers: A value, or a list of values, by name.
            metadata: Texts by key.
            chunk_size: Bytes of a message; see `put`.
            retry_for: Seconds in which a failed put is retried.
            progress: Called with the bytes stored and the bytes in all.

        Raises:
            OSError: The file cannot be read.
            NatsStreamError: As for `put`.
        """
        file = check_path(path)
        if isinstance(name, os.PathLike):
            raise ConfigError("name is a path", hint=_PATH_FIRST)
        try:
            return await self.put(
                os.fspath(path) if name is None else name,
                file,
                description=description,
                headers=headers,
                metadata=metadata,
                chunk_size=chunk_size,
                retry_for=retry_for,
                progress=progress,
            )
        except FileNotFoundError as error:
            error.add_note(_PATH_FIRST)
            raise

    async def get(self, name: str) -> bytes | None:
        """Return all bytes of an object, verified; None if it does not exist or is deleted.

        Links are followed. An object that is replaced during the read is read again.

        Raises:
            ChunksDamagedError: The stored bytes are not those that were put.
            ObjectExpiredError: The store has a `ttl`, and the bytes have expired.
            ObjectLinkError: The object links to a store, or there are too many links.
            ObjectMetaError: The object's meta cannot be read.
            ObjectChangedError: The object was replaced again and again.
            ConnectionLostError: The connection did not come back within `reconnect_timeout`.

        Cost: the object in memory, twice while its chunks are joined; use `open` for large ones.
        Source: ADR-20; nats.go jetstream/object.go GetBytes.
        """
        return await read_object(self._meta_store, self._checked(name))

    async def get_file(
        self,
        name: str,
        path: str | os.PathLike[str],
        *,
        resume: bool = True,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Write an object into a file, which is replaced in one step once all bytes are verified.

        Bytes are collected in a file beside it that ends in `.part`. After an error or a kill that
        file stays, and the same call resumes the download if the object is still the same.

        Args:
            name: The object's name.
            path: The file; an existing one is replaced.
            resume: Resume an earlier download, and leave the `.part` file for a later one.
            progress: Called on the loop with the bytes written and the bytes in all; it must not
                block.

        Returns:
            The object's info; for a link, its target's.

        Raises:
            ObjectNotFoundError: The object does not exist; nothing was written.
            OSError: The file cannot be written.
            NatsStreamError: As for `get`.

        Cost: memory as for `open`. A resumed download reads and hashes the `.part` file again.
        """
        return await download_object(
            self._meta_store, self._checked(name), path, resume=resume, progress=progress
        )

    def open(self, name: str, *, offset: int = 0, length: int | None = None) -> ObjectReader:
        """Return a reader of an object, or of a part of it: `async with box.open(name) as reader`.

        Links are followed. Each byte is proved to be at its offset before it is returned, by the
        number of chunks in the store. The last bytes of a whole object also wait for its size and
        digest. A part has no digest: only a read of the whole object finds a foreign message in the
        place of a deleted chunk. A read from behind the object's end returns no bytes.

        Args:
            name: The object's name.
            offset: The first byte, from 0.
            length: Bytes at most; None is all that follow.

        Raises:
            ConfigError: A number is negative, or no number.

        Cost: nothing is sent before the block is entered; then a round trip for each link and the
        object. Up to 16 MiB are in flight. A part costs six more round trips for any size of
        object, and some more if other messages stand between its chunks. If another client's
        chunks vary in size, the server sends the headers of all chunks up to the part's end.
        Source: ADR-20; nats.go jetstream/object.go Get.
        """
        return ObjectReader(self._meta_store, self._checked(name), offset=offset, length=length)

    # Infos.

    async def info(self, name: str, *, include_deleted: bool = False) -> ObjectInfo | None:
        """Return the info of an object, or None if it does not exist.

        Links are not followed.

        Args:
            name: The object's name.
            include_deleted: Also return the marker of a deleted object; its `deleted` is True.

        Raises:
            ConfigError: `include_deleted` is neither True nor False; nothing was sent.
            ObjectMetaError: The meta cannot be read; put the object again, or delete it.

        Cost: one round trip to the stream's leader, so it sees every acknowledged write.
        Source: ADR-20; nats.go jetstream/object.go GetInfo.
        """
        check_bool(include_deleted, "include_deleted")
        stored = (await self._meta_store.read(self._checked(name))).readable()
        return stored.info if include_deleted else stored.live

    async def update(
        self,
        name: str,
        *,
        new_name: str | None = None,
        description: str | None = None,
        headers: ObjectHeaders | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Change the texts or the name of an object; its bytes stay as they are.

        Fields that are not given stay as they are; "" or {} clears one. A rename never loses the
        object: a process killed during it leaves the object under both names, and the next write to
        the old name removes that one. Links to the old name find no object after a rename.

        Args:
            name: The object's name.
            new_name: The object's new name.
            description: Free text.
            headers: All headers: a value, or a list of values, by name.
            metadata: All metadata: texts by key.

        Returns:
            The object's new info.

        Raises:
            ConfigError: A value is not such a text; nothing was sent.
            ObjectNotFoundError: The object does not exist, or is deleted.
            ObjectExistsError: The new name is taken.
            ObjectMetaError: The meta cannot be read.
            StreamSealedError: The store is sealed.

        Cost: two round trips; five for a rename. In a store with a `ttl` the bytes still expire
        when they would have, before the new info: reads then find no object, or raise
        ObjectExpiredError.
        Source: ADR-20; nats.go jetstream/object.go UpdateMeta.
        """
        given = Description(description, headers, metadata)
        new_name = name if new_name is None else self._checked(new_name, "the object's new name")
        return await update_object(self._meta_store, self._checked(name), given, new_name)

    async def rename(self, name: str, new_name: str) -> ObjectInfo:
        """Give an object another name; see `update`.

        Raises:
            ObjectNameError: Both names are the same, or one is not legal; nothing was sent.
            ObjectNotFoundError: The object does not exist, or is deleted.
            ObjectExistsError: The new name is taken.
            ObjectMetaError: The meta cannot be read.

        Cost: five round trips.
        """
        new_name = self._checked(new_name, "the object's new name")
        if new_name == name:
            raise ObjectNameError(f"object {name!r} has this name", hint="give another one")
        return await self.update(name, new_name=new_name)

    async def delete(self, name: str) -> None:
        """Delete an object: its bytes are removed, and a marker replaces its info.

        Deleting a link leaves its target. Deleting a deleted object changes nothing.

        Raises:
            ObjectNotFoundError: The object never existed.
            StreamSealedError: The store is sealed.

        Cost: three round trips.
        Source: ADR-20; nats.go jetstream/object.go Delete.
        """
        await delete_object(self._meta_store, self._checked(name))

    # Links.

    async def link(self, name: str, target: str | ObjectInfo) -> ObjectInfo:
        """Make a link to an object: a read of the link reads the target as it is then.

        Args:
            name: The link's name. A link of this name is replaced.
            target: The name of an object in this store, or the info of one in any store.

        Returns:
            The link's info.

        Raises:
            ConfigError: The target is neither a name nor an info; nothing was sent.
            BucketNotFoundError: The target's store does not exist.
            ObjectNotFoundError: The target does not exist, or is deleted.
            ObjectLinkError: The target is a link itself.
            ObjectExistsError: The name belongs to an object that is no link.
            StreamSealedError: The store is sealed.

        Cost: three round trips, four for a target in another store.
        Source: ADR-20; nats.go jetstream/object.go AddLink.
        """
        return await link_object(self._meta_store, self._checked(name, "the link's name"), target)

    async def link_bucket(self, name: str, bucket: str) -> ObjectInfo:
        """Make a link to a whole store, as a folder links to another folder.

        The link has no bytes: a read of it raises ObjectLinkError. Open the store instead.

        Args:
            name: The link's name. A link of this name is replaced.
            bucket: The other store's name.

        Returns:
            The link's info.

        Raises:
            BucketNameError: The other store's name is not legal; nothing was sent.
            BucketNotFoundError: The other store does not exist.
            ObjectExistsError: The name belongs to an object that is no link.
            StreamSealedError: The store is sealed.

        Cost: three round trips.
        Source: ADR-20; nats.go jetstream/object.go AddBucketLink.
        """
        return await link_store(self._meta_store, self._checked(name, "the link's name"), bucket)

    # All objects.

    def list(
        self, *, include_deleted: bool = False, on_unreadable: OnUnreadable = "report"
    ) -> ObjectListing:
        """Return the infos of all objects, links included; read them with `async for`.

        An object that is written during the loop may be listed twice, with its newer info last.

        Args:
            include_deleted: Also list the markers of deleted objects.
            on_unreadable: "report" skips metas that cannot be read and keeps their errors in the
                result's `unreadable`; "raise" raises the first.

        Raises:
            ConfigError: A value is not legal.
            ObjectMetaError: A meta cannot be read and `on_unreadable` is "raise"; from the loop.

        Cost: one ephemeral consumer for each loop; at most 16 MiB of messages in memory for any
        number of objects.
        Source: ADR-20; nats.go jetstream/object.go List.
        """
        return ObjectListing(
            self._meta_store, include_deleted=include_deleted, on_unreadable=on_unreadable
        )

    def names(self) -> AsyncGenerator[str]:
        """Yield the names of all objects, links included.

        Cost: as for `list`.
        """
        infos = self.list().infos()

        async def take() -> str | None:
            info = await anext(infos, None)
            return None if info is None else info.name

        return Calls(take, infos)

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
        """Return a watch: the info of each object now, then every change.

        Use it as `async with box.watch() as watch: async for info in watch`. `watch.initial()` ends
        when every object of the store has been yielded, also in an empty store. A watch yields
        infos without bytes: use `open`. A rename yields the info of the new name with
        `renamed_from`, and nothing for the old name.

        Args:
            include_history: Start with all infos in the stream. Clients keep one for each object,
                so this finds more only if another program has written to the stream.
            ignore_deletes: Skip the markers of deleted objects.
            updates_only: Skip the infos that are stored already.
            resume_after: Start behind this revision: `revision` of an earlier watch.
            created_ns: The store's identity, `created_ns` of an earlier watch: refuse another store
                of this name.
            on_unreadable: "report" skips metas that cannot be read and keeps their errors in
                `watch.unreadable`; "raise" raises them, and the next loop continues behind.

        Returns:
            A watch; nothing is sent before its block is entered.

        Raises:
            ConfigError: Two starts are given, or a value is not legal.

        Cost: one ephemeral consumer; at most 16 MiB of messages in memory.
        Source: ADR-20; nats.go jetstream/object.go Watch.
        """
        return ObjectWatch(
            self._meta_store,
            include_history=include_history,
            ignore_deletes=ignore_deletes,
            updates_only=updates_only,
            resume_after=resume_after,
            created_ns=created_ns,
            on_unreadable=on_unreadable,
        )

    # The store.

    async def status(self) -> ObjectStoreStatus:
        """Return the store's status: its size and configuration now.

        Cost: one round trip to the stream's leader.
        Source: nats.go jetstream/object.go Status.
        """
        with STORE.translate_errors(self.name):
            return ObjectStoreStatus.from_stream(await self.stream.info())

    async def seal(self) -> ObjectStoreStatus:
        """Refuse all writes and removals forever; the store itself can still be deleted.

        The server also clears `ttl`. Sealing cannot be undone.

        Returns:
            The store's status after it.

        Raises:
            InvalidConfigError: The server refused it.

        Cost: two round trips.
        Source: nats.go jetstream/object.go Seal.
        """
        with STORE.translate_errors(self.name):
            return ObjectStoreStatus.from_stream(await self.stream.seal())

    async def sweep(
        self, *, older_than: float | timedelta = SILENCE_S, dry_run: bool = False
    ) -> SweepReport:
        """Remove chunks of dead writers that no object points to, such as those of killed puts.

        It removes the chunks of any client. The chunks of a put in progress are young. A put whose
        source is silent for longer than `older_than` loses its chunks: our own put then raises
        ChunksDamagedError and the old object stays; other clients store an object without bytes.
        Our put stores its last chunk when its source ends, so the chunks of a stored object are
        young, with one exception: the put was silent for longer than `older_than`, and then ended,
        meta included, in the round trip in which the sweep removed its chunks.

        Args:
            older_than: Seconds without a new chunk after which a writer counts as dead, by the
                server's clock.
            dry_run: Only count.

        Raises:
            ConfigError: `older_than` is no duration; nothing was sent.
            ObjectMetaError: A meta cannot be read, so its chunks are not known; nothing was
                removed.
            StreamSealedError: The store is sealed.

        Cost: one read of all metas; for each orphan one read of the headers of its chunks.
        """
        subjects, used = self._meta_store.subjects.chunk_filter, self._meta_store.used_chunks
        with STORE.translate_errors(self.name):
            return await self.stream.chunks.sweep(
                subjects, used, older_than=older_than, dry_run=dry_run
            )

    def __repr__(self) -> str:
        return f"<ObjectStore {self.name}>"
