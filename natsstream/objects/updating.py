"""Changes the meta of an object: its texts, its name, and whether it exists.

Law: an object keeps its bytes through an update and a rename; see `meta_store.py` for the three
writes of a rename.
Source: ADR-20; nats.go jetstream/object.go UpdateMeta, Delete.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

from natsstream.errors import (
    ObjectExistsError,
    ServerError,
    StreamFullError,
    WrongLastSequenceError,
)
from natsstream.objects.describing import Description
from natsstream.objects.info import ObjectInfo
from natsstream.objects.meta_store import (
    MetaStore,
    StoredMeta,
    new_marker,
    object_not_found,
    until_first,
)


async def update_object(
    meta_store: MetaStore, name: str, description: Description, new_name: str
) -> ObjectInfo:
    """Change the texts of an object, and its name if that is another one."""
    if new_name != name:
        return await until_first(partial(_rename, meta_store, name, new_name, description))

    def decide(stored: StoredMeta) -> ObjectInfo:
        return description.apply(_live(meta_store, name, stored))

    return (await meta_store.change(name, decide))[1]


async def delete_object(meta_store: MetaStore, name: str) -> None:
    """Store a marker, then remove the chunks."""

    def decide(stored: StoredMeta) -> ObjectInfo:
        if stored.info is None and not stored.error:
            raise object_not_found(meta_store.subjects.bucket, name)
        if stored.info is None:  # It cannot be read: its chunks are not known.
            return new_marker(name, meta_store.subjects)
        return replace(stored.info, deleted=True, size=0, chunks=0, digest="")

    try:
        replaced, _ = await meta_store.change(name, decide)
    except StreamFullError:
        # No room for the marker before the bytes are gone.
        await meta_store.remove_chunks(await meta_store.read(name, finish_rename=True))
        replaced, _ = await meta_store.change(name, decide)
    await meta_store.remove_chunks(replaced)


async def _rename(
    meta_store: MetaStore, old: str, new: str, description: Description
) -> ObjectInfo:
    """Write the three messages of a rename.

    Raises:
        WrongLastSequenceError: Another writer has written one of the metas.
    """
    stored = await meta_store.read(old, finish_rename=True)
    info, bucket = _live(meta_store, old, stored), meta_store.subjects.bucket
    target = await meta_store.read(new, finish_rename=True)
    if target.error is not None or target.live is not None:
        raise ObjectExistsError(
            f"store {bucket} has an object {new!r}", hint="delete it, or give another name"
        )
    if stored.renamed_from:  # An earlier rename, which ends here at the latest.
        await meta_store.read(stored.renamed_from, finish_rename=True)
    marked = await meta_store.write(info, revision=stored.revision, renamed_to=new)
    try:
        renamed = await meta_store.write(
            replace(description.apply(info), name=new), revision=target.revision, renamed_from=old
        )
    except ServerError:
        # Another writer has taken the name, or the store is full: the object keeps its name.
        with suppress(ServerError):
            await meta_store.write(info, revision=marked.revision)
        raise
    if not await meta_store.remove(old, marked.revision):
        # Another client, which does not know the mark, has written the old name.
        now = (await meta_store.read(old)).live
        if now is not None and now.nuid == renamed.nuid:
            await meta_store.remove(new, renamed.revision)
            raise WrongLastSequenceError(
                f"object {old!r} of store {bucket} is written again and again",
                hint="repeat the rename",
            )
    return renamed


def _live(meta_store: MetaStore, name: str, stored: StoredMeta) -> ObjectInfo:
    """Return the info of an object that must exist."""
    live = stored.readable().live
    if live is None:
        raise object_not_found(meta_store.subjects.bucket, name)
    return live
