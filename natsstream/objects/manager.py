"""Makes, finds and deletes object stores: `js.objects`.

What lives here: the door. What must not: a store's configuration (`config.py`) and what it can do
(`store.py`).

Law: what was given is changed, and nothing else: a store that another client made keeps every field
that was not named.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, cast

from natsstream.errors import BucketNotFoundError, StreamExistsError
from natsstream.objects.config import (
    ObjectBucketConfig,
    differences,
    store_change,
    store_config,
)
from natsstream.objects.names import check_bucket_name
from natsstream.objects.place import STREAM_PREFIX, Place
from natsstream.objects.refusals import check_is_store, store_exists, told_of_store
from natsstream.objects.store import ObjectStore
from natsstream.objects.store_listing import EVERY_STORE, ObjectStoreListing
from natsstream.streams.diff import ConfigChange, stream_changed, stream_created
from natsstream.streams.info import StreamInfo
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream


class ObjectStoreManager:
    """The object stores of an account; `js.objects`."""

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js

    async def create(self, config: ObjectBucketConfig | str, **fields: Any) -> ObjectStore:
        """Create an object store; one that is there with this configuration already is returned.

        Args:
            config: A configuration, or a name with `ObjectBucketConfig`'s fields as keywords.
            fields: Fields of `ObjectBucketConfig`.

        Raises:
            BucketExistsError: A store of this name has another configuration; `differences` says
                which fields.
            NotABucketError: A stream of the store's name is there, and no object store.
            SubjectOverlapError: Another stream captures the store's subjects.
            InvalidConfigError: The server refuses a field.
            ConfigError: A field has no legal value; nothing was sent.
            BucketNameError: No client would take the name; nothing was sent.
            TransportError: There was no answer; whether it was made is not known.

        Cost: one round trip, on a cluster with an election.
        Source: ADR-20; nats.go jetstream/object.go CreateObjectStore.
        """
        wanted = store_config(config, fields)
        try:
            return self._open(await self._js.streams.create(wanted.to_stream()))
        except StreamExistsError as error:
            held = (await self._stream(wanted.name)).cached.config
            raise store_exists(wanted.name, differences(wanted, held), error) from error

    async def update(self, config: ObjectBucketConfig | str, **fields: Any) -> ObjectStore:
        """Change the fields that are given and leave all others as the server has them.

        The store's `change` says what differed.

        Raises:
            BucketNotFoundError: It does not exist.
            NotABucketError: The stream of this name is no object store.
            InvalidConfigError: The server refuses a change.
            ConfigError: A field has no legal value; nothing was sent.
            TransportError: There was no answer; whether it was changed is not known.

        Cost: three round trips, or one where nothing differs.
        """
        wanted = store_config(config, fields)
        return await self._changed(await self._stream(wanted.name), wanted)

    async def ensure(self, config: ObjectBucketConfig | str, **fields: Any) -> ObjectStore:
        """Return the store with at least this configuration: create, update or leave it.

        The store's `change` says which, and of what field.

        Raises:
            NotABucketError: A stream of the store's name is there, and no object store.
            SubjectOverlapError: Another stream captures the store's subjects.
            InvalidConfigError: The server refuses a field or a change.
            ConfigError: A field has no legal value; nothing was sent.
            TransportError: There was no answer; whether something was done is not known.

        Cost: one round trip where nothing differs, else two or three.
        """
        wanted = store_config(config, fields)
        try:
            stream = await self._stream(wanted.name)
        except BucketNotFoundError:
            try:
                return self._open(await self._js.streams.create(wanted.to_stream()))
            except StreamExistsError:  # Somebody else was faster, with another configuration.
                stream = await self._stream(wanted.name)
        return await self._changed(stream, wanted)

    async def diff(self, config: ObjectBucketConfig | str, **fields: Any) -> ConfigChange:
        """Return what `ensure` would do, and do nothing.

        Returns:
            Each field that differs, with the server's value, the wanted one, and why servers would
            refuse the change, where they are known to; `print` shows it as a table.

        Raises:
            NotABucketError: A stream of the store's name is there, and no object store.
            ConfigError: A field has no legal value; nothing was sent.
            TransportError: The server did not answer in time.

        Cost: one round trip.
        """
        wanted = store_config(config, fields)
        try:
            held = (await self._stream(wanted.name)).cached
        except BucketNotFoundError:
            return store_change(stream_created(wanted.to_stream()))
        return store_change(_changes(wanted, held))

    async def get(self, name: str) -> ObjectStore:
        """Return an object store that exists.

        Raises:
            BucketNameError: No client would take the name; nothing was sent.
            BucketNotFoundError: It does not exist.
            NotABucketError: The stream of this name is no object store.
            TransportError: The server did not answer in time.

        Cost: one round trip.
        """
        return self._open(await self._stream(name))

    async def delete(self, name: str) -> None:
        """Delete an object store with all that is in it, also a sealed one.

        Raises:
            BucketNameError: No client would take the name; nothing was sent.
            BucketNotFoundError: It does not exist.
            NotABucketError: The stream of this name is no object store; it stays.
            TransportError: There was no answer; whether it was deleted is not known.

        Cost: two round trips.
        """
        with told_of_store(name):
            await (await self._stream(name)).delete()

    def list(self, *, on_missing: Literal["raise", "report"] = "raise") -> ObjectStoreListing:
        """Return the status of each object store; read it with `async for`.

        Streams whose name begins with `OBJ_` and that are no object stores are left out.

        Args:
            on_missing: Servers name streams that they can not describe now, having no leader or
                being too new for the servers. "raise" ends the loop with an error when all others
                are read; "report" leaves the stores among them in the result's `missing` and
                `offline`.

        Raises:
            ConfigError: `on_missing` has no legal value.
            UnavailableError: Stores are missing; from the loop.
            TransportError: The server did not answer in time; from the loop.

        Cost: one round trip for each 256 stores.
        """
        return ObjectStoreListing(self._js, on_missing)

    async def names(self) -> AsyncIterator[str]:
        """Yield the names of all object stores.

        Raises:
            TransportError: The server did not answer in time.

        Cost: one round trip for each 1,024 names.
        """
        async for name in self._js.streams.names(subject=EVERY_STORE):
            if name.startswith(STREAM_PREFIX):
                yield name.removeprefix(STREAM_PREFIX)

    async def _stream(self, bucket: str) -> Stream:
        """Return the stream of a store that exists."""
        with told_of_store(bucket):
            stream = await self._js.streams.get(Place(check_bucket_name(bucket)).stream)
        check_is_store(stream.cached.config)
        return stream

    def _open(self, stream: Stream) -> ObjectStore:
        return ObjectStore(self._js, stream, Place(stream.name.removeprefix(STREAM_PREFIX)))

    async def _changed(self, stream: Stream, wanted: ObjectBucketConfig) -> ObjectStore:
        if _changes(wanted, stream.cached):
            with told_of_store(wanted.name):
                changes = wanted.to_changes(stream.cached.config)
                stream = await self._js.streams.update(changes)
        return self._open(stream)

    def __repr__(self) -> str:
        return f"<ObjectStoreManager {self._js.url}>"


def _changes(wanted: ObjectBucketConfig, held: StreamInfo) -> ConfigChange:
    """Return what a configuration changes of a store's stream."""
    body = cast("Mapping[str, object]", held.raw["config"])
    return stream_changed(wanted.to_changes(held.config), body)
