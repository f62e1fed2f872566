"""What an object store is and how full it is, at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.api.stream_info import StreamInfo
from natsstream.objects.config import ObjectBucketConfig
from natsstream.streams.views.status import ViewStatus
from natsstream.units import NS_PER_SECOND, duration_ns


@dataclass(frozen=True, slots=True)
class ObjectStoreStatus(ViewStatus):
    """An object store at one moment.

    Attributes:
        name: Its name.
        config: Its configuration.
        stream: Its stream's info, whole, with the servers that hold it.
    """

    config: ObjectBucketConfig

    @classmethod
    def from_stream(cls, info: StreamInfo) -> ObjectStoreStatus:
        """Return the status of a store by its stream's info."""
        config = ObjectBucketConfig.from_stream(info.config)
        return cls(config.name, config, info)

    @property
    def size(self) -> int:
        """Bytes that its stream holds: chunks, what it says of its objects, and bookkeeping."""
        return self.stream.state.bytes

    @property
    def messages(self) -> int:
        """Messages that its stream holds: chunks, and one for each object, also a deleted one."""
        return self.stream.state.messages

    @property
    def description(self) -> str:
        """Free text; empty for none."""
        return self.config.description or ""

    @property
    def ttl(self) -> float | None:
        """Seconds after which an object is forgotten; None for never."""
        return duration_ns(self.config.ttl or 0) / NS_PER_SECOND or None

    @property
    def is_sealed(self) -> bool:
        """True where nothing can be stored or removed any more."""
        return bool(self.stream.config.sealed)
