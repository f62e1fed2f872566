"""`JetStream`, held by users as `js`: the context of streams, and the views on it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from natsstream.streams.jetstream import JetStreamContext

if TYPE_CHECKING:
    from natsstream.conat.layers import AKVs, AStreams, DKOs, DKVs, DStreams, Inventories
    from natsstream.conat.manager import CoreStreams
    from natsstream.kv.manager import KeyValueManager
    from natsstream.objects.manager import ObjectStoreManager
    from natsstream.producer.manager import Producers


class JetStream(JetStreamContext):
    """JetStream over one connection; made by `natsstream.connect`."""

    @cached_property
    def kv(self) -> KeyValueManager:
        """Creates, finds and deletes key-value buckets."""
        from natsstream.kv.manager import KeyValueManager  # noqa: PLC0415 - Loaded on first use.

        return KeyValueManager(self, self._client.endings)

    @cached_property
    def objects(self) -> ObjectStoreManager:
        """Creates, finds and deletes object stores."""
        from natsstream.objects.manager import ObjectStoreManager  # noqa: PLC0415 - As above.

        return ObjectStoreManager(self, self._client.endings)

    @cached_property
    def producer(self) -> Producers:
        """Opens idempotent producers: `await js.producer("ORDERS", "order-service-1")`.

        `help(js.producer)` shows the arguments.
        """
        from natsstream.producer.manager import Producers  # noqa: PLC0415 - As above.

        return Producers(self, self._api)

    @cached_property
    def core_stream(self) -> CoreStreams:
        """Opens core streams: `await js.core_stream("chat")`.

        `help(js.core_stream)` shows the arguments.
        """
        from natsstream.conat.manager import CoreStreams  # noqa: PLC0415 - As above.

        return CoreStreams(self)

    @cached_property
    def dstream(self) -> DStreams:
        """Opens logs that are written here first: `await js.dstream("chat")`."""
        from natsstream.conat.layers import DStreams  # noqa: PLC0415 - As above.

        return DStreams(self.core_stream)

    @cached_property
    def dkv(self) -> DKVs:
        """Opens maps that are written here first: `await js.dkv("settings")`."""
        from natsstream.conat.layers import DKVs  # noqa: PLC0415 - As above.

        return DKVs(self.core_stream)

    @cached_property
    def dko(self) -> DKOs:
        """Opens maps of objects that are saved field by field: `await js.dko("users")`."""
        from natsstream.conat.layers import DKOs  # noqa: PLC0415 - As above.

        return DKOs(self.dkv)

    @cached_property
    def akv(self) -> AKVs:
        """Opens maps of which nothing is loaded: `await js.akv("settings")`."""
        from natsstream.conat.layers import AKVs  # noqa: PLC0415 - As above.

        return AKVs(self)

    @cached_property
    def astream(self) -> AStreams:
        """Opens logs of which nothing is loaded: `await js.astream("chat")`."""
        from natsstream.conat.layers import AStreams  # noqa: PLC0415 - As above.

        return AStreams(self)

    @cached_property
    def inventory(self) -> Inventories:
        """Opens lists of maps and logs with their sizes: `await js.inventory()`."""
        from natsstream.conat.layers import Inventories  # noqa: PLC0415 - As above.

        return Inventories(self.dkv, self.dko, self.dstream)
