"""What an object store is among the views of streams; pure rules.

Source: ADR-20; nats.go jetstream/object.go.
"""

from __future__ import annotations

from natsstream.api.stream_config import StreamConfig
from natsstream.objects.store_subjects import STREAM_PREFIX, StoreSubjects
from natsstream.streams.views.kind import Kind


def _is_store(config: StreamConfig) -> bool:
    """Tell whether a stream is an object store: by its name, and by what it captures."""
    if not STORE.is_named(config.name):
        return False
    subjects = StoreSubjects(STORE.name_of(config.name))
    return {subjects.chunk_filter, subjects.meta_filter} <= set(config.subjects or ())


STORE: Kind = Kind(
    noun="object store",
    plural="object stores",
    door="js.objects",
    prefix=STREAM_PREFIX,
    absent="there is no object store {name}",
    absent_hint="make it: await js.objects.create({name!r})",
    is_one=_is_store,
    seen=lambda config: f"it captures {', '.join(config.subjects or ()) or 'nothing'}",
    trait="a store captures its chunks and metas",
    # Python name of a store's field -> that of the stream's field which holds it.
    fields={
        "description": "description",
        "ttl": "max_age",
        "max_bytes": "max_bytes",
        "storage": "storage",
        "replicas": "replicas",
        "placement": "placement",
        "compression": "compression",
        "metadata": "metadata",
    },
    own=frozenset({"subjects"}),
    filled_in={"max_msgs_per_subject": -1, "max_msg_size": -1, "compression": "none"},
)
"""What an object store is among the views of streams."""
