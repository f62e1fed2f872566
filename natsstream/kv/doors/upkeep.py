"""A bucket as a whole: its configuration, what it holds, the stream that it is."""

from __future__ import annotations

from natsstream.api.diff import ConfigChange
from natsstream.kv.buckets.config import BucketConfig
from natsstream.kv.buckets.conventions import BUCKET
from natsstream.kv.buckets.status import BucketStatus
from natsstream.kv.doors.part import Part
from natsstream.streams.stream import Stream
from natsstream.streams.views.comparing import view_change


class Upkeep(Part):
    """Looks after a bucket."""

    @property
    def config(self) -> BucketConfig:
        """Its configuration when it was opened; `status()` asks for a fresh one."""
        return BucketConfig.from_stream(self._stream.cached.config)

    @property
    def change(self) -> ConfigChange:
        """What the call that gave the bucket has done: made it, changed fields, or nothing."""
        return view_change(BUCKET, self._stream.change)

    @property
    def stream(self) -> Stream:
        """The stream that holds it, for what buckets do not offer: backup, step-down, reading."""
        return self._stream

    async def status(self) -> BucketStatus:
        """Return what the bucket holds now, and its configuration.

        Raises:
            BucketNotFoundError: It was deleted.
            TransportError: The server did not answer in time.

        Cost: one round trip to the stream's leader.
        Source: ADR-8; nats.go jetstream/kv.go Status.
        """
        with BUCKET.translate_errors(self.name):
            return BucketStatus.from_stream(await self._stream.info())
