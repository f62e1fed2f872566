"""Makes, finds and deletes object stores: `js.objects`.

Law: what was given is changed, and nothing else: a store that another client made keeps every field
that was not named.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

from natsstream.api.diff import ConfigChange
from natsstream.objects.config import ObjectBucketConfig
from natsstream.objects.kind import STORE
from natsstream.objects.meta_store import MetaStore
from natsstream.objects.store import ObjectStore
from natsstream.objects.store_listing import EVERY_STORE, ObjectStoreListing
from natsstream.objects.store_subjects import StoreSubjects
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream
from natsstream.streams.views.manager import ViewManager


class ObjectStoreManager(ViewManager[ObjectBucketConfig, ObjectStore]):
    """The object stores of an account; `js.objects`."""

    def __init__(self, js: JetStreamContext) -> None:
        super().__init__(js, ObjectBucketConfig)

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
        return await self._create(config, fields)

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
        return await self._update(config, fields)

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
        return await self._ensure(config, fields)

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
        return await self._diff(config, fields)

    async def get(self, name: str) -> ObjectStore:
        """Return an object store that exists.

        Raises:
            BucketNameError: No client would take the name; nothing was sent.
            BucketNotFoundError: It does not exist.
            NotABucketError: The stream of this name is no object store.
            TransportError: The server did not answer in time.

        Cost: one round trip.
        """
        return await self._get(name)

    async def delete(self, name: str) -> None:
        """Delete an object store with all that is in it, also a sealed one.

        Raises:
            BucketNameError: No client would take the name; nothing was sent.
            BucketNotFoundError: It does not exist.
            NotABucketError: The stream of this name is no object store; it stays.
            TransportError: There was no answer; whether it was deleted is not known.

        Cost: two round trips.
        """
        await self._delete(name)

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
        async for name in self._names(EVERY_STORE):
            yield name

    async def _open(self, stream: Stream) -> ObjectStore:
        subjects = StoreSubjects(STORE.name_of(stream.name))
        return ObjectStore(MetaStore(self._js, stream, subjects))
