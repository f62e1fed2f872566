"""Links: objects that point to another object, or to a whole store.

Law: a read follows a bounded number of links, so a circle of links raises.
Source: ADR-20; nats.go jetstream/object.go Get, AddLink, AddBucketLink.
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.arguments import described
from natsstream.errors import (
    ConfigError,
    ObjectExistsError,
    ObjectLinkError,
    ObjectNotFoundError,
    StreamNotFoundError,
    UsageError,
)
from natsstream.objects.info import ObjectInfo, ObjectLink, ObjectOptions, new_nuid
from natsstream.objects.kind import STORE
from natsstream.objects.meta_store import MetaStore, StoredMeta
from natsstream.objects.store_subjects import StoreSubjects

# Clients refuse links to links, so one is usual.
_LINKS_MAX = 8


@dataclass(frozen=True, slots=True)
class ResolvedObject:
    """An object with bytes of its own.

    Attributes:
        meta_store: The metas of the store that holds it.
        info: Its info in that store.
    """

    meta_store: MetaStore
    info: ObjectInfo


async def find_object(meta_store: MetaStore, name: str) -> ResolvedObject | None:
    """Return the object of a name, through links; None if it or its target does not exist.

    Args:
        meta_store: The metas of the store that has the name.
        name: A legal name.

    Raises:
        ObjectMetaError: A meta cannot be read.
        ObjectLinkError: A link leads to a whole store, or there are too many links.
        TransportError: The server did not answer in time.

    Cost: one round trip; two more for each link.
    """
    for _ in range(_LINKS_MAX + 1):
        live = (await meta_store.read(name)).readable().live
        if live is None:
            return None
        link, bucket = live.link, meta_store.subjects.bucket
        if link is None:
            return ResolvedObject(meta_store, live)
        if not link.name:
            raise ObjectLinkError(
                f"object {name!r} of store {bucket} is a link to the store {link.bucket!r}, which "
                "has no bytes",
                hint=f"open the store: await js.objects.get({link.bucket!r})",
            )
        try:
            STORE.check_name(link.bucket)
            target = StoreSubjects(link.bucket).check_object_name(link.name)
        except UsageError as error:  # Another client has written it, not the caller.
            raise ObjectLinkError(
                f"object {name!r} of store {bucket} links to an illegal name",
                detail=error.message,
                hint="delete the link",
            ) from error
        name = target
        try:
            meta_store = await meta_store.of_store(link.bucket)
        except StreamNotFoundError:
            return None
    raise ObjectLinkError(
        f"links from object {name!r} of store {meta_store.subjects.bucket} lead through more than "
        f"{_LINKS_MAX} others",
        hint="do they lead in a circle? link to the object itself",
    )


async def link_object(meta_store: MetaStore, name: str, target: str | ObjectInfo) -> ObjectInfo:
    """Store a link to an object; see `ObjectStore.link`."""
    bucket, target_name = _target_of(target, meta_store.subjects)
    where = f"link {name!r} -> object {target_name!r} of store {bucket}"
    with STORE.translate_errors(bucket):
        target_store = await meta_store.of_store(bucket)
    live = (await target_store.read(target_name)).readable().live
    if live is None:
        raise ObjectNotFoundError(f"{where}: the target does not exist")
    if live.link is not None:
        raise ObjectLinkError(
            f"{where}: the target is a link itself",
            hint="link to its target: info(name).link",
        )
    return await _store_link(meta_store, name, ObjectLink(bucket, target_name))


async def link_store(meta_store: MetaStore, name: str, bucket: str) -> ObjectInfo:
    """Store a link to a whole store; see `ObjectStore.link_bucket`."""
    STORE.check_name(bucket)
    with STORE.translate_errors(bucket):
        await meta_store.of_store(bucket)
    return await _store_link(meta_store, name, ObjectLink(bucket))


def _target_of(target: object, own: StoreSubjects) -> tuple[str, str]:
    """Return the store and the name of a link's target."""
    what = "the target's name"
    if isinstance(target, str):
        return own.bucket, own.check_object_name(target, what)
    if not isinstance(target, ObjectInfo):
        raise ConfigError(
            f"the link's target is {described(target)}",
            hint="give the name of an object in this store, or an ObjectInfo of another store",
        )
    bucket = STORE.check_name(target.bucket)
    return bucket, StoreSubjects(bucket).check_object_name(target.name, what)


async def _store_link(meta_store: MetaStore, name: str, link: ObjectLink) -> ObjectInfo:
    bucket = meta_store.subjects.bucket

    def decide(stored: StoredMeta) -> ObjectInfo:
        if stored.error is not None or (stored.live is not None and stored.live.link is None):
            raise ObjectExistsError(
                f"store {bucket} has an object {name!r}, which is no link",
                hint="delete it, or give another name",
            )
        options = ObjectOptions(link=link)
        return ObjectInfo(name=name, bucket=bucket, nuid=new_nuid(), options=options)

    return (await meta_store.change(name, decide))[1]
