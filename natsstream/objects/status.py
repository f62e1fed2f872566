"""What an object store is and how full it is, at one moment.

What lives here: the shape, read from a stream's info. What must not: asking for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from natsstream.objects.config import ObjectBucketConfig
from natsstream.streams.config import user_metadata
from natsstream.streams.info import StreamInfo
from natsstream.units import NS_PER_SECOND, duration_ns


@dataclass(frozen=True, slots=True)
class ObjectStoreStatus:
    """An object store at one moment.

    Attributes:
        name: Its name.
        config: Its configuration.
        stream: Its stream's info, whole, with the servers that hold it.
    """

    name: str
    config: ObjectBucketConfig
    stream: StreamInfo

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
    def revision(self) -> int:
        """The newest sequence; 0 for a store that was never written to."""
        return self.stream.state.last_seq

    @property
    def description(self) -> str:
        """Free text; empty for none."""
        return self.config.description or ""

    @property
    def ttl(self) -> float | None:
        """Seconds after which an object is forgotten; None for never."""
        return duration_ns(self.config.ttl or 0) / NS_PER_SECOND or None

    @property
    def storage(self) -> Literal["file", "memory"]:
        """Where it is kept."""
        return self.config.storage or "file"

    @property
    def replicas(self) -> int:
        """On how many servers it is kept."""
        return self.config.replicas or 1

    @property
    def is_sealed(self) -> bool:
        """True where nothing can be stored or removed any more."""
        return bool(self.stream.config.sealed)

    @property
    def is_compressed(self) -> bool:
        """True where it is compressed on disk."""
        return bool(self.config.compression)

    @property
    def metadata(self) -> Mapping[str, str]:
        """Free text by key, without the server's own keys."""
        return user_metadata(self.config.metadata or {})

    @property
    def backing_store(self) -> str:
        """What keeps it: always JetStream."""
        return "JetStream"
