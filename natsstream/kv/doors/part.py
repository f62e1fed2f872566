"""What every part of a bucket's surface stands on."""

from __future__ import annotations

from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream


class Part:
    """One part of `KeyValue`; the parts share the bucket's place, its stream and its connection."""

    def __init__(self, js: JetStreamContext, stream: Stream, place: BucketSubjects) -> None:
        self._js = js
        self._stream = stream
        self._place = place
        self.name: str = place.bucket
