"""Creates, opens and deletes object stores: `js.objects`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal, Unpack

from natsstream.api.config_fields import ObjectBucketFields
from natsstream.api.diff import ConfigChange
from natsstream.api.listing import Listing
from natsstream.api.settings.keywords import shows_fields
from natsstream.foreign_names import answers_names
from natsstream.objects.config import ObjectBucketConfig
from natsstream.objects.kind import STORE
from natsstream.objects.meta_store import MetaStore
from natsstream.objects.status import ObjectStoreStatus
from natsstream.objects.store import ObjectStore
from natsstream.objects.store_subjects import StoreSubjects
from natsstream.streams.endings import Endings
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream
from natsstream.streams.views.listing import view_listing
from natsstream.streams.views.manager import ViewManager

# The subjects that nats.go lists stores by; each store captures some of them.
_EVERY_STORE = StoreSubjects("*").chunk_filter


@answers_names("js.objects")
class ObjectStoreManager(ViewManager[ObjectBucketConfig, ObjectStore]):
    """The object stores of an account; `js.objects`.

    A call without an answer in time raises TransportError: a store may be created, changed or
    deleted then, or not. An update keeps every field that it does not name, of any client's store.
    """

    def __init__(self, js: JetStreamContext, endings: Endings) -> None:
        super().__init__(js, ObjectBucketConfig)
        self._endings = endings

    @shows_fields(ObjectBucketFields)
    async def create(
        self, config: ObjectBucketConfig | str, **fields: Unpack[ObjectBucketFields]
    ) -> ObjectStore:
        """Create an object store, or return an existing one with this configuration.

        Args:
            config: A configuration, or a name with `ObjectBucketConfig`'s fields as keywords.
            fields: Fields of `ObjectBucketConfig`.

        Raises:
            BucketExistsError: A store of this name has another configuration; `differences` has the
                fields.
            NotABucketError: A stream of the store's name exists, and is no object store.
            SubjectOverlapError: Another stream captures the store's subjects.
            InvalidConfigError: The server refuses a field.
            ConfigError: A field has no legal value; nothing was sent.
            BucketNameError: The name is not legal in every client; nothing was sent.

        Cost: one round trip, on a cluster with an election.
        Source: ADR-20; nats.go jetstream/object.go CreateObjectStore.
        """
        return await self._create(config, fields)

    @shows_fields(ObjectBucketFields)
    async def update(
        self, config: ObjectBucketConfig | str, **fields: Unpack[ObjectBucketFields]
    ) -> ObjectStore:
        """Change the given fields and leave all others as they are on the server.

        The store's `change` has the fields that differed.

        Raises:
            BucketNotFoundError: The store does not exist.
            NotABucketError: The stream of this name is no object store.
            InvalidConfigError: The server refuses a change.
            ConfigError: A field has no legal value; nothing was sent.

        Cost: three round trips, or one if no field differs.
        """
        return await self._update(config, fields)

    @shows_fields(ObjectBucketFields)
    async def ensure(
        self, config: ObjectBucketConfig | str, **fields: Unpack[ObjectBucketFields]
    ) -> ObjectStore:
        """Return the store with at least this configuration: create, update or leave it.

        The store's `change` has the action and its fields.

        Raises:
            NotABucketError: A stream of the store's name exists, and is no object store.
            SubjectOverlapError: Another stream captures the store's subjects.
            InvalidConfigError: The server refuses a field or a change.
            ConfigError: A field has no legal value; nothing was sent.

        Cost: one round trip if no field differs, else two or three.
        """
        return await self._ensure(config, fields)

    @shows_fields(ObjectBucketFields)
    async def diff(
        self, config: ObjectBucketConfig | str, **fields: Unpack[ObjectBucketFields]
    ) -> ConfigChange:
        """Return the changes that `ensure` would make, and make none.

        Returns:
            Each field that differs, with the server's value, the wanted one, and the reason if
            servers are known to refuse the change; `print` shows it as a table.

        Raises:
            NotABucketError: A stream of the store's name exists, and is no object store.
            ConfigError: A field has no legal value; nothing was sent.

        Cost: one round trip.
        """
        return await self._diff(config, fields)

    async def get(self, name: str) -> ObjectStore:
        """Return an existing object store.

        Raises:
            BucketNameError: The name is not legal in every client; nothing was sent.
            BucketNotFoundError: The store does not exist.
            NotABucketError: The stream of this name is no object store.

        Cost: one round trip.
        """
        return await self._get(name)

    async def delete(self, name: str) -> None:
        """Delete an object store with all its objects, also a sealed one.

        Raises:
            BucketNameError: The name is not legal in every client; nothing was sent.
            BucketNotFoundError: The store does not exist.
            NotABucketError: The stream of this name is no object store; it stays.

        Cost: two round trips.
        """
        await self._delete(name)

    def list(
        self, *, on_missing: Literal["raise", "report"] = "raise"
    ) -> Listing[ObjectStoreStatus]:
        """Return the status of each object store; read it with `async for`.

        Streams with a name in `OBJ_` that are no object stores are skipped.

        Args:
            on_missing: Servers name streams that they cannot describe now, because those have no
                leader or need newer servers. "raise" raises an error after all others; "report"
                keeps the stores among them in the result's `missing` and `offline`.

        Raises:
            ConfigError: `on_missing` has no legal value.
            UnavailableError: Stores are missing; from the loop.

        Cost: one round trip for each 256 stores.
        """
        status = ObjectStoreStatus.from_stream
        return view_listing(self._js, STORE, status, on_missing, _EVERY_STORE)

    def names(self) -> AsyncGenerator[str]:
        """Yield the names of all object stores.

        Cost: one round trip for each 1,024 names.
        """
        return self._names(_EVERY_STORE)

    async def _open(self, stream: Stream) -> ObjectStore:
        subjects = StoreSubjects(STORE.name_of(stream.name))
        return ObjectStore(MetaStore(self._js, stream, subjects, self._endings))
