"""The status of an object store: its size and its configuration."""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.api.stream_info import StreamInfo
from natsstream.arguments import counted
from natsstream.objects.config import ObjectBucketConfig
from natsstream.streams.views.status import ViewStatus
from natsstream.units import NS_PER_SECOND, duration_ns


@dataclass(frozen=True, slots=True)
class ObjectStoreStatus(ViewStatus):
    """The status of an object store at one moment.

    Attributes:
        name: The store's name.
        config: The store's configuration.
        stream: The whole info of its stream, with the servers that store it.
    """

    config: ObjectBucketConfig

    @classmethod
    def from_stream(cls, info: StreamInfo) -> ObjectStoreStatus:
        """Return the status of a store from its stream's info."""
        config = ObjectBucketConfig.from_stream(info.config)
        return cls(config.name, config, info)

    @property
    def size(self) -> int:
        """Bytes stored: chunks, metas, and the server's bookkeeping."""
        return self.stream.state.bytes

    @property
    def messages(self) -> int:
        """Messages stored: chunks, and a meta for each object, deleted ones included."""
        return self.stream.state.messages

    @property
    def description(self) -> str:
        """Free text, or empty."""
        return self.config.description or ""

    @property
    def ttl(self) -> float | None:
        """Seconds after which an object expires; None is never."""
        return duration_ns(self.config.ttl or 0) / NS_PER_SECOND or None

    @property
    def is_sealed(self) -> bool:
        """True if writes and removals are refused forever."""
        return bool(self.stream.config.sealed)

    def __repr__(self) -> str:
        messages = counted(self.messages, "message")
        return f"<ObjectStoreStatus {self.name}: {messages}, {self.size} bytes>"
