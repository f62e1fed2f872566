"""The kind of view that an object store is; pure rules.

Source: ADR-20; nats.go jetstream/object.go.
"""

from __future__ import annotations

from natsstream.api.stream_config import StreamConfig
from natsstream.objects.store_subjects import STREAM_PREFIX, StoreSubjects
from natsstream.streams.views.kind import Kind


def _mismatch(config: StreamConfig) -> str:
    subjects = StoreSubjects(STORE.name_of(config.name))
    if {subjects.chunk_filter, subjects.meta_filter} <= set(config.subjects or ()):
        return ""
    return f"it captures {', '.join(config.subjects or ()) or 'no subjects'}"


STORE: Kind = Kind(
    noun="object store",
    manager="js.objects",
    prefix=STREAM_PREFIX,
    mismatch=_mismatch,
    requirement="a store captures its chunks and metas",
    elsewhere="await store.stream.backup(folder), await js.objects.delete({name!r}), then "
    "await js.streams.restore(folder, storage=...)",
    derived=frozenset({"subjects"}),
)
"""The kind of view that an object store is."""
