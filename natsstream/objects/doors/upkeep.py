"""The store as a whole: how full it is, and closing it for ever."""

from __future__ import annotations

from natsstream.objects.doors.part import Part
from natsstream.objects.kind import STORE
from natsstream.objects.status import ObjectStoreStatus


class Upkeep(Part):
    """Looks after a store."""

    async def status(self) -> ObjectStoreStatus:
        """Return how full the store is, and its configuration, now.

        Raises:
            BucketNotFoundError: The store was deleted.
            TransportError: The server did not answer in time.

        Cost: one round trip to the stream's leader.
        Source: nats.go jetstream/object.go Status.
        """
        with STORE.translate_errors(self.name):
            return ObjectStoreStatus.from_stream(await self._stream.info())

    async def seal(self) -> ObjectStoreStatus:
        """Forbid all writes and removals for ever; the store itself can still be deleted.

        The server also takes back `ttl`. It can not be undone.

        Returns:
            What the store is now.

        Raises:
            BucketNotFoundError: The store was deleted.
            InvalidConfigError: The server refused it.
            TransportError: No answer; it may be done or not.

        Cost: two round trips.
        Source: nats.go jetstream/object.go Seal.
        """
        with STORE.translate_errors(self.name):
            return ObjectStoreStatus.from_stream(await self._stream.seal())
