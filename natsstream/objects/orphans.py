"""Which chunks a store's objects point to, for the sweep.

Law: whatever could point to chunks counts. Where a description can not be read the sweep ends:
nobody knows what it points to.
"""

from __future__ import annotations

from natsstream.objects.meta_store import MetaStore, held_in

# An object that is renamed during a walk may be under neither name when the walk comes there.
_WALKS_MAX = 3


async def pointed_subjects(metas: MetaStore) -> set[str]:
    """Return the subjects of all chunks that a store's objects point to.

    Deleted objects and links point to none.

    Raises:
        ObjectMetaError: What is stored of an object can not be read.
        NatsStreamError: What reading the stream raises.

    Cost: a walk through all that the store says, in memory as one text for each object; up to
    three where it is written meanwhile.
    """
    pointed: set[str] = set()
    revision = (await metas.stream.info()).state.last_seq
    for _ in range(_WALKS_MAX):
        before = revision
        await _walk(metas, pointed)
        revision = (await metas.stream.info()).state.last_seq
        if revision == before:
            break
    return pointed


async def _walk(metas: MetaStore, pointed: set[str]) -> None:
    """Add what the objects of this moment point to."""
    place = metas.place
    async with metas.stream.latest(filters=(place.meta_filter,)) as heads:
        async for message in heads.initial():
            name = place.name_of(message.subject) or message.subject
            held = held_in(message, place, name)
            if held.error is not None:
                raise held.error
            if held.live is not None and held.live.nuid:
                pointed.add(place.chunk_subject(held.live.nuid))
