"""Links: objects that stand for another object, or for a whole store."""

from __future__ import annotations

from natsstream.arguments import described
from natsstream.errors import (
    ConfigError,
    ObjectExistsError,
    ObjectLinkError,
    ObjectNotFoundError,
)
from natsstream.objects.doors.part import Part
from natsstream.objects.info import ObjectInfo, ObjectLink, ObjectOptions
from natsstream.objects.kind import STORE
from natsstream.objects.meta_store import MetaStore, StoredMeta
from natsstream.objects.names import check_bucket_name, check_object_name, new_nuid
from natsstream.objects.store_subjects import StoreSubjects


class Linking(Part):
    """Makes links."""

    async def link(self, name: str, target: str | ObjectInfo) -> ObjectInfo:
        """Make a link: reading it reads what the target holds at that time.

        Args:
            name: The link's name. A link of this name is replaced.
            target: The name of an object in this store, or the info of one in any store.

        Returns:
            What the store says of the link.

        Raises:
            ObjectNameError: A name is not legal; nothing was sent.
            ConfigError: The target is neither a name nor an info; nothing was sent.
            BucketNotFoundError: The target's store does not exist.
            ObjectNotFoundError: The target does not exist, or is deleted.
            ObjectLinkError: The target is a link itself.
            ObjectExistsError: There is an object of the link's name that is no link.
            StreamSealedError: The store is sealed.
            TransportError: No answer; it may be done or not. Repeat it.

        Cost: three round trips, four where the target is in another store.
        Source: ADR-20; nats.go jetstream/object.go AddLink.
        """
        self._named(name, "the link's name")
        bucket, wanted = self._target(target)
        where = f"object {wanted!r} of store {bucket}"
        metas = self._metas
        if bucket != self.name:
            place = StoreSubjects(bucket)
            with STORE.translate_errors(bucket):
                metas = MetaStore(self._js, await self._js.streams.get(place.stream), place)
        held = await metas.read(wanted)
        if held.error is not None:
            raise held.error
        if held.live is None:
            raise ObjectNotFoundError(f"link {name!r} -> {where}: there is no such object")
        if held.live.link is not None:
            raise ObjectLinkError(
                f"link {name!r} -> {where}: that is a link itself",
                hint="link to what it leads to: info(name).link says it",
            )
        return await self._store_link(name, ObjectLink(bucket, wanted))

    async def link_bucket(self, name: str, bucket: str) -> ObjectInfo:
        """Make a link to a whole store, as a folder has one to another folder.

        It has no bytes: who reads it gets ObjectLinkError, and opens the store.

        Args:
            name: The link's name. A link of this name is replaced.
            bucket: The other store's name.

        Returns:
            What the store says of the link.

        Raises:
            ObjectNameError: The name is not legal; nothing was sent.
            BucketNameError: The other store's name is not legal; nothing was sent.
            BucketNotFoundError: The other store does not exist.
            ObjectExistsError: There is an object of the link's name that is no link.
            StreamSealedError: The store is sealed.
            TransportError: No answer; it may be done or not. Repeat it.

        Cost: three round trips.
        Source: ADR-20; nats.go jetstream/object.go AddBucketLink.
        """
        self._named(name, "the link's name")
        check_bucket_name(bucket)
        with STORE.translate_errors(bucket):
            await self._js.streams.get(StoreSubjects(bucket).stream)
        return await self._store_link(name, ObjectLink(bucket))

    def _target(self, target: object) -> tuple[str, str]:
        """Return store and name of what a link shall lead to."""
        what = "the target's name"
        if isinstance(target, str):
            return self.name, self._named(target, what)
        if not isinstance(target, ObjectInfo):
            raise ConfigError(
                f"the link's target is {described(target)}",
                hint="give the name of an object in this store, or an ObjectInfo of another one's",
            )
        bucket = check_bucket_name(target.bucket)
        return bucket, check_object_name(target.name, StoreSubjects(bucket), what)

    async def _store_link(self, name: str, link: ObjectLink) -> ObjectInfo:
        def decide(held: StoredMeta) -> ObjectInfo:
            if held.error is not None or (held.live is not None and held.live.link is None):
                raise ObjectExistsError(
                    f"store {self.name} has an object {name!r}, which is no link",
                    hint="delete it, or give another name",
                )
            options = ObjectOptions(link=link)
            return ObjectInfo(name=name, bucket=self.name, nuid=new_nuid(), options=options)

        _, stored = await self._metas.change(name, decide)
        return stored
