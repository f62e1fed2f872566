"""What every part of an object store's surface stands on."""

from __future__ import annotations

from natsstream.api.diff import ConfigChange
from natsstream.objects.config import ObjectBucketConfig
from natsstream.objects.kind import STORE
from natsstream.objects.meta_store import MetaStore
from natsstream.objects.names import check_object_name
from natsstream.objects.store_subjects import StoreSubjects
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream
from natsstream.streams.views.comparing import view_change


class Part:
    """One part of `ObjectStore`; the parts share the store's place, stream and connection."""

    def __init__(self, js: JetStreamContext, stream: Stream, place: StoreSubjects) -> None:
        self._js = js
        self._stream = stream
        self._place = place
        self._metas = MetaStore(js, stream, place)
        self.name: str = place.bucket
        self.stream: Stream = stream
        self.config: ObjectBucketConfig = ObjectBucketConfig.from_stream(stream.cached.config)
        self.change: ConfigChange = view_change(STORE, stream.change)

    def _named(self, name: object, what: str = "the object's name") -> str:
        """Return the name of an object, or raise ObjectNameError."""
        return check_object_name(name, self._place, what)
