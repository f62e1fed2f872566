"""Finds the object that a name stands for: itself, or where its links lead.

Law: links are followed a bounded number of times; a circle is told and not run round in.
Source: ADR-20; nats.go jetstream/object.go Get.
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.errors import ObjectLinkError, StreamNotFoundError, UsageError
from natsstream.objects.info import ObjectInfo
from natsstream.objects.meta_store import MetaStore
from natsstream.objects.names import check_bucket_name, check_object_name
from natsstream.objects.store_subjects import StoreSubjects
from natsstream.streams.jetstream import JetStreamContext

# Clients refuse to make links to links, so one is what there should be.
_LINKS_MAX = 8


@dataclass(frozen=True, slots=True)
class ResolvedObject:
    """An object with bytes of its own.

    Attributes:
        metas: The store that has it.
        info: What that store says of it.
    """

    metas: MetaStore
    info: ObjectInfo


async def find_object(js: JetStreamContext, metas: MetaStore, name: str) -> ResolvedObject | None:
    """Return the object of a name, through links; None where it, or what it leads to, is not there.

    Args:
        js: The connection.
        metas: The store that has the name.
        name: A legal name.

    Raises:
        ObjectMetaError: What is stored can not be read.
        ObjectLinkError: A link leads to a whole store, or links lead on and on.
        TransportError: The server did not answer in time.

    Cost: one round trip; two more for each link.
    """
    for _ in range(_LINKS_MAX + 1):
        held = await metas.read(name)
        if held.error is not None:
            raise held.error
        if held.live is None:
            return None
        link = held.live.link
        if link is None:
            return ResolvedObject(metas, held.live)
        if not link.name:
            raise ObjectLinkError(
                f"object {name!r} of store {metas.place.bucket} is a link to the store "
                f"{link.bucket!r}, which has no bytes",
                hint=f"open the store: await js.objects.get({link.bucket!r})",
            )
        try:
            place = StoreSubjects(check_bucket_name(link.bucket))
            target = check_object_name(link.name, place)
        except UsageError as error:  # Another client has written it, the caller has not.
            raise ObjectLinkError(
                f"object {name!r} of store {metas.place.bucket} is a link to no legal name",
                detail=error.message,
                hint="delete the link",
            ) from error
        name = target
        if place != metas.place:
            try:
                stream = await js.streams.get(place.stream)
            except StreamNotFoundError:
                return None
            metas = MetaStore(js, stream, place)
    raise ObjectLinkError(
        f"links from object {name!r} of store {metas.place.bucket} lead through more than "
        f"{_LINKS_MAX} others",
        hint="do they lead in a circle? link to the object itself",
    )
