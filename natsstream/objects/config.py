"""What an object store is, and the stream that holds it: one configuration in two languages.

Law: what is made here is what nats.go makes, field by field, so that anybody's create over it is
idempotent. What a stream has beyond that stays in `extra`: there and back nothing is lost.
Source: ADR-20; nats.go jetstream/object.go prepareObjectStoreConfig.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from natsstream.api.stream_config import StreamConfig
from natsstream.objects.kind import STORE
from natsstream.objects.store_subjects import StoreSubjects
from natsstream.streams.views.config import ViewConfig
from natsstream.streams.views.kind import Kind

# What nats.go sends for every store, by names that are the stream's and the server's alike.
_CONVENTIONS = {
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs": -1,
    "discard": "new",
    "allow_direct": True,
    "allow_rollup_hdrs": True,
}
# Its defaults of what a store's fields are about, by the stream's Python names.
_DEFAULTS = {"max_bytes": -1, "storage": "file", "replicas": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectBucketConfig(ViewConfig):
    """What an object store keeps, for how long, and where.

    None in a field means the default where a store is made, and "as it is" where one is changed.
    Durations are seconds or timedelta. Where a field is a class of its own, a mapping with the
    server's field names is taken as well, and an empty one gives up what there was.

    Attributes:
        name: Letters, digits, `-` and `_`.
        description: At most 4 KiB.
        ttl: Seconds after which an object is forgotten; 0, the default, is never.
        max_bytes: Bytes of the whole store, beyond which writes are refused; -1, the default, is
            no limit.
        storage: "file" (default) or "memory".
        replicas: 1 to 5; default 1.
        placement: Cluster and tags.
        compression: True compresses on disk (2.10).
        metadata: Free text by key; `_nats.` keys belong to the server.
        extra: Fields of the stream, by the server's names, that are other than in the stores of
            every client, such as `{"republish": {...}}`.
    """

    kind: ClassVar[Kind] = STORE

    def to_stream(self) -> StreamConfig:
        """Return the stream of a new store, as nats.go makes it.

        Cost: no request.
        """
        subjects = StoreSubjects(self.name)
        subjects = [subjects.chunk_filter, subjects.meta_filter]
        return self._stream({"subjects": subjects, **_CONVENTIONS, **_DEFAULTS, **self._given()})

    @classmethod
    def _usual(cls, config: StreamConfig) -> dict[str, object]:
        del config
        return dict(_CONVENTIONS)
