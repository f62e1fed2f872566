"""Creates, opens and deletes views of one kind; the base of `js.kv` and `js.objects`.

Law: a view of another client is opened as it is, and no call changes a field that was not given.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar, cast

from natsstream.api.change_plan import changed, created
from natsstream.api.diff import ConfigChange
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_rules import STREAM_RULES
from natsstream.errors import BucketNotFoundError, InvalidConfigError, StreamExistsError
from natsstream.iteration import Calls
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.nearest import hint_at_nearest
from natsstream.streams.stream import Stream
from natsstream.streams.views.config import ViewConfig
from natsstream.streams.views.kind import Kind

ConfigT = TypeVar("ConfigT", bound=ViewConfig)
ViewT = TypeVar("ViewT")


class ViewManager(ABC, Generic[ConfigT, ViewT]):
    """The views of one kind in an account.

    Args:
        js: The JetStream context.
        configs: The class of the views' configurations.
    """

    def __init__(self, js: JetStreamContext, configs: type[ConfigT]) -> None:
        self._js = js
        self._configs: type[ConfigT] = configs
        self._kind: Kind = configs.kind

    async def _create(self, config: ConfigT | str, fields: Mapping[str, object]) -> ViewT:
        wanted = self._configs.from_call(config, fields)
        await self._check_new(wanted)
        try:
            stream = await self._created(wanted)
        except StreamExistsError as error:
            stream = await self._existing(wanted, error)
        return await self._open(stream)

    async def _update(self, config: ConfigT | str, fields: Mapping[str, object]) -> ViewT:
        wanted = self._configs.from_call(config, fields)
        async with self._hint(wanted.name):
            return await self._changed(await self._stream(wanted.name), wanted)

    async def _ensure(self, config: ConfigT | str, fields: Mapping[str, object]) -> ViewT:
        wanted = self._configs.from_call(config, fields)
        try:
            stream = await self._stream(wanted.name)
        except BucketNotFoundError:
            await self._check_new(wanted)
            try:
                return await self._open(await self._created(wanted))
            except StreamExistsError:  # Another client was faster, with another configuration.
                stream = await self._stream(wanted.name)
        return await self._changed(stream, wanted)

    async def _diff(self, config: ConfigT | str, fields: Mapping[str, object]) -> ConfigChange:
        wanted = self._configs.from_call(config, fields)
        try:
            held = (await self._stream(wanted.name)).cached
        except BucketNotFoundError:
            return wanted.renamed(created(wanted.to_stream()))
        return wanted.renamed(_changes(wanted, held))

    async def _get(self, name: str) -> ViewT:
        async with self._hint(name):
            return await self._open(await self._stream(name))

    async def _delete(self, name: str) -> None:
        async with self._hint(name):
            with self._kind.translate_errors(name):
                await (await self._stream(name)).delete()

    def _hint(self, name: str) -> AbstractAsyncContextManager[None]:
        return hint_at_nearest(name, self._js.streams.names, self._kind.prefix)

    def _names(self, subject: str | None = None) -> AsyncGenerator[str]:
        kind, streams = self._kind, self._js.streams.names(subject=subject)

        async def take() -> str | None:
            async for name in streams:
                if kind.is_named(name):
                    return kind.name_of(name)
            return None

        return Calls(take, streams)

    async def _stream(self, name: str) -> Stream:
        """Return the stream of an existing view."""
        with self._kind.translate_errors(name):
            stream = await self._js.streams.get(self._kind.stream_of(name))
        self._kind.check_stream(stream.cached.config)
        return stream

    async def _changed(self, stream: Stream, wanted: ConfigT) -> ViewT:
        if _changes(wanted, stream.cached):
            changes = wanted.to_changes(stream.cached.config)
            await self._check_change(wanted, stream.cached.config, changes)
            held = stream.cached.config
            try:
                with self._kind.translate_errors(wanted.name):
                    stream = await self._js.streams.update(changes)
            except InvalidConfigError as error:
                if changes.storage not in (None, held.storage) and "storage" in error.description:
                    way = self._kind.elsewhere.format(name=wanted.name)
                    error.hint = f"storage is chosen at creation: {way}"
                raise
        return await self._open(stream)

    async def _created(self, wanted: ConfigT) -> Stream:
        """Return the stream of a new view; a name that doubles the prefix is logged."""
        stream = await self._js.streams.create(wanted.to_stream())
        kind, name = self._kind, wanted.name
        meant = name.removeprefix(kind.prefix)
        if meant not in ("", name):
            # No error: other clients make such views, too.
            logging.getLogger(kind.manager.replace("js", "natsstream", 1)).warning(
                "%s %s is stream %s: names begin without %s, so %r was probably meant",
                kind.noun,
                name,
                kind.stream_of(name),
                kind.prefix,
                meant,
            )
        return stream

    @abstractmethod
    async def _open(self, stream: Stream) -> ViewT:
        """Return the view of a stream."""

    async def _check_new(self, wanted: ConfigT) -> None:
        """Refuse a new view that would do harm."""

    async def _check_change(
        self, wanted: ConfigT, held: StreamConfig, changes: StreamConfig
    ) -> None:
        """Refuse a change that would do harm."""

    async def _existing(self, wanted: ConfigT, error: StreamExistsError) -> Stream:
        """Return the existing stream if no field of the view differs, else raise."""
        stream = await self._stream(wanted.name)
        differences = wanted.differences(stream.cached.config)
        if differences:
            raise self._kind.exists(wanted.name, differences, error) from error
        return stream

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._js.url}>"


def _changes(wanted: ViewConfig, held: StreamInfo) -> ConfigChange:
    """Return the changes that a configuration makes to a stream."""
    body = cast("Mapping[str, object]", held.raw["config"])
    return changed(STREAM_RULES, wanted.to_changes(held.config), body)
