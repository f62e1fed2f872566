"""The configuration of an object store, as a store's fields and as its stream.

Law: a new stream is nats.go's, field by field; see `streams/views/config.py`.
Source: ADR-20; nats.go jetstream/object.go prepareObjectStoreConfig.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from natsstream.api.stream_config import StreamConfig
from natsstream.constructors import answers_arguments
from natsstream.objects.kind import STORE
from natsstream.objects.store_subjects import StoreSubjects
from natsstream.streams.views.config import ViewConfig
from natsstream.streams.views.kind import Kind

# The fields that nats.go sends for every store, by the server's names.
_CONVENTIONS = {
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs": -1,
    "discard": "new",
    "allow_direct": True,
    "allow_rollup_hdrs": True,
}
# nats.go's defaults of a store's fields, by the server's names.
_DEFAULTS = {"max_bytes": -1, "storage": "file", "num_replicas": 1}


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ObjectBucketConfig(ViewConfig):
    """The configuration of an object store.

    None in a field means the default in a create, and "leave it" in an update. Durations are
    seconds or timedelta. A field with a class of its own also takes a mapping with the server's
    field names; an empty mapping clears it.

    Attributes:
        name: Letters, digits, `-` and `_`.
        description: At most 4 KiB.
        ttl: Seconds after which an object expires; 0, the default, is never.
        max_bytes: Bytes of the whole store, above which writes are refused; -1, the default, is
            no limit.
        storage: "file" (default) or "memory".
        replicas: 1 to 5; default 1.
        placement: Cluster and tags.
        compression: True compresses on disk (2.10).
        metadata: Free text by key. Keys of the server (`_nats.`) and of this library stay.
        extra: Fields of the stream that differ from every client's, by the server's names, such
            as `{"republish": {...}}`.
    """

    kind: ClassVar[Kind] = STORE

    def to_stream(self) -> StreamConfig:
        """Return the stream of a new store, as nats.go creates it.

        Cost: no request.
        """
        subjects = StoreSubjects(self.name)
        subjects = [subjects.chunk_filter, subjects.meta_filter]
        return self._stream({"subjects": subjects, **_CONVENTIONS, **_DEFAULTS, **self.to_json()})

    @classmethod
    def _usual(cls, config: StreamConfig) -> dict[str, object]:
        del config
        return dict(_CONVENTIONS)
