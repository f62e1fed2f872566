"""What a store says of single objects: read it, change it, give another name, delete the object."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from natsstream.arguments import check_bool
from natsstream.errors import (
    ObjectExistsError,
    ObjectNameError,
    ObjectNotFoundError,
    ServerError,
    StreamFullError,
    WrongLastSequenceError,
)
from natsstream.objects.describing import (
    ObjectHeaders,
    check_description,
    check_headers,
    check_metadata,
)
from natsstream.objects.doors.part import Part
from natsstream.objects.info import ObjectInfo
from natsstream.objects.meta_store import StoredMeta, new_marker

_T = TypeVar("_T")

_RENAMES_MAX = 16
_PAUSE_S = 0.02


class Metadata(Part):
    """Reads and changes what a store says of an object."""

    async def info(self, name: str, *, include_deleted: bool = False) -> ObjectInfo | None:
        """Return what the store says of an object, or None where it has none.

        A link is not followed.

        Args:
            name: The object's name.
            include_deleted: Also return the marker of a deleted object; its `deleted` is True.

        Raises:
            ObjectNameError: It is no legal name; nothing was sent.
            ConfigError: `include_deleted` is neither True nor False; nothing was sent.
            ObjectMetaError: What is stored can not be read; put the object again, or delete it.
            BucketNotFoundError: The store was deleted.
            TransportError: The server did not answer in time.

        Cost: one round trip to the stream's leader, so it sees every acknowledged write.
        Source: ADR-20; nats.go jetstream/object.go GetInfo.
        """
        check_bool(include_deleted, "include_deleted")
        held = await self._metas.read(self._named(name))
        if held.error is not None:
            raise held.error
        return held.info if include_deleted else held.live

    async def update(
        self,
        name: str,
        *,
        new_name: str | None = None,
        description: str | None = None,
        headers: ObjectHeaders | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Change what the store says of an object; its bytes stay as they are.

        What is not given stays as it is; "" or {} clears it. With a new name the object is never
        lost: a process that is killed in the middle leaves it under both names, and the next call
        that writes the old one removes that. Links to the old name lead nowhere then.

        Args:
            name: The object's name.
            new_name: Another name for it.
            description: Free text.
            headers: All headers: values, or lists of values, by name.
            metadata: All metadata: texts by key.

        Returns:
            What the store says now.

        Raises:
            ObjectNameError: One of the names is not legal; nothing was sent.
            ConfigError: A value is no such text; nothing was sent.
            ObjectNotFoundError: There is no such object, or it is deleted.
            ObjectExistsError: There is an object of the new name.
            ObjectMetaError: What is stored can not be read.
            StreamSealedError: The store is sealed.
            TransportError: No answer; it may be done or not.

        Cost: two round trips; with a new name five. In a store with a `ttl` the object's bytes
        expire when they would have, so before what is said of them here; reads find nothing then,
        or raise ObjectExpiredError.
        Source: ADR-20; nats.go jetstream/object.go UpdateMeta.
        """
        old = self._named(name)
        described = _Description(description, headers, metadata)
        if new_name is not None and self._named(new_name, "the object's new name") != old:
            return await self._rename(old, new_name, described)

        def decide(held: StoredMeta) -> ObjectInfo:
            return described.of(self._live(old, held))

        return (await self._metas.change(old, decide))[1]

    async def rename(self, name: str, new_name: str) -> ObjectInfo:
        """Give an object another name; see `update`.

        Raises:
            ObjectNameError: One of the names is not legal, or they are the same; nothing was sent.
            ObjectNotFoundError: There is no such object, or it is deleted.
            ObjectExistsError: There is an object of the new name.
            ObjectMetaError: What is stored can not be read.
            TransportError: No answer; it may be done or not. Repeat it.

        Cost: five round trips.
        """
        if self._named(new_name, "the object's new name") == self._named(name):
            raise ObjectNameError(f"object {name!r} has this name", hint="give another one")
        return await self.update(name, new_name=new_name)

    async def delete(self, name: str) -> None:
        """Delete an object: its bytes are gone, a marker says that it was there.

        A link is deleted, not what it leads to. One that is deleted already stays so.

        Raises:
            ObjectNameError: It is no legal name; nothing was sent.
            ObjectNotFoundError: There never was such an object.
            StreamSealedError: The store is sealed.
            TransportError: No answer; it may be done or not. Repeat it.

        Cost: three round trips.
        Source: ADR-20; nats.go jetstream/object.go Delete.
        """
        self._named(name)

        def decide(held: StoredMeta) -> ObjectInfo:
            if held.info is None and not held.error:
                raise self._not_found(name)
            if held.info is None:  # It can not be read: nobody knows what its chunks are.
                return new_marker(name, self._place)
            return replace(held.info, deleted=True, size=0, chunks=0, digest="")

        try:
            held, _ = await self._metas.change(name, decide)
        except StreamFullError:
            # No room for the marker before the bytes are gone.
            await self._metas.release(await self._metas.read(name, settle=True))
            held, _ = await self._metas.change(name, decide)
        await self._metas.release(held)

    async def _rename(self, old: str, new: str, described: _Description) -> ObjectInfo:
        """Give an object another name, again where another writer was faster; see `metas.py`."""
        for attempt in range(_RENAMES_MAX):
            source = await self._metas.read(old, settle=True)
            self._live(old, source)
            try:
                return await self._rename_once(old, source, new, described)
            except WrongLastSequenceError:
                if attempt == _RENAMES_MAX - 1:
                    raise
                await asyncio.sleep(_PAUSE_S * attempt)
        raise AssertionError("unreachable")

    async def _rename_once(
        self, old: str, source: StoredMeta, new: str, described: _Description
    ) -> ObjectInfo:
        """Write the three messages of a rename.

        Raises:
            WrongLastSequenceError: Somebody else has written one of the metas.
        """
        info = self._live(old, source)
        target = await self._metas.read(new, settle=True)
        self._refuse_existing(new, target)
        if source.renamed_from:  # Of an earlier rename, which is finished here at the latest.
            await self._metas.read(source.renamed_from, settle=True)
        marked = await self._metas.write(info, revision=source.revision, renamed_to=new)
        renamed = replace(described.of(info), name=new)
        try:
            stored = await self._metas.write(renamed, revision=target.revision, renamed_from=old)
        except ServerError:
            # Somebody has taken the name, or the store is full: the object keeps the one it has.
            with suppress(ServerError):
                await self._metas.write(info, revision=marked.revision)
            raise
        if not await self._metas.remove(old, marked.revision):
            await self._refuse_shared(old, stored)
        return stored

    async def _refuse_shared(self, old: str, renamed: ObjectInfo) -> None:
        """Undo a rename whose old name another client has written, not knowing of the mark.

        Raises:
            WrongLastSequenceError: Both names point to the same chunks, and the new one is gone.
        """
        held = await self._metas.read(old)
        if held.live is not None and held.live.nuid == renamed.nuid:
            await self._metas.remove(renamed.name, renamed.revision)
            raise WrongLastSequenceError(
                f"object {old!r} of store {self.name} is written again and again",
                hint="repeat the rename",
            )

    def _live(self, name: str, held: StoredMeta) -> ObjectInfo:
        """Return the object that a store has, or raise why it has none."""
        if held.error is not None:
            raise held.error
        if held.live is None:
            raise self._not_found(name)
        return held.live

    def _refuse_existing(self, name: str, held: StoredMeta) -> None:
        if held.error is not None or held.live is not None:
            raise ObjectExistsError(
                f"store {self.name} has an object {name!r}", hint="delete it, or give another name"
            )

    def _not_found(self, name: str) -> ObjectNotFoundError:
        return ObjectNotFoundError(
            f"store {self.name} has no object {name!r}", hint="names() yields those that it has"
        )


class _Description:
    """What is to be said of an object; None leaves what there is."""

    def __init__(
        self,
        description: str | None,
        headers: ObjectHeaders | None,
        metadata: Mapping[str, str] | None,
    ) -> None:
        self._description = None if description is None else check_description(description)
        self._headers = None if headers is None else check_headers(headers)
        self._metadata = None if metadata is None else check_metadata(metadata)

    def of(self, info: ObjectInfo) -> ObjectInfo:
        """Return what is said of an object with this in it."""
        return replace(
            info,
            description=_or(self._description, info.description),
            headers=_or(self._headers, info.headers),
            metadata=_or(self._metadata, info.metadata),
        )


def _or(given: _T | None, held: _T) -> _T:
    return held if given is None else given
