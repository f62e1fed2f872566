"""The status of a bucket at one moment.

Law: every number is the server's, and its whole answer is in `stream`.
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.api.cluster_info import SourceInfo
from natsstream.api.stream_info import StreamInfo
from natsstream.kv.config import BucketConfig
from natsstream.streams.views.status import ViewStatus
from natsstream.units import NS_PER_SECOND, duration_ns


@dataclass(frozen=True, slots=True)
class BucketStatus(ViewStatus):
    """The status of a bucket at one moment.

    Attributes:
        name: Its name.
        config: Its configuration.
        stream: Its stream's info, with the servers that hold it.
    """

    config: BucketConfig

    @classmethod
    def from_stream(cls, info: StreamInfo) -> BucketStatus:
        """Return the status of a bucket by its stream's info."""
        config = BucketConfig.from_stream(info.config)
        return cls(config.name, config, info)

    @property
    def values(self) -> int:
        """Revisions held: of every key, with markers."""
        return self.stream.state.messages

    @property
    def keys(self) -> int:
        """Keys held, with deleted ones whose marker is still there."""
        return self.stream.state.num_subjects

    @property
    def bytes(self) -> int:
        """Bytes stored, the server's bookkeeping included."""
        return self.stream.state.bytes

    @property
    def history(self) -> int:
        """Revisions kept of each key."""
        return self.config.history or 0

    @property
    def ttl(self) -> float:
        """Seconds after which a revision expires; 0 is never."""
        return duration_ns(self.config.ttl or 0) / NS_PER_SECOND

    @property
    def limit_marker_ttl(self) -> float:
        """Seconds that markers of expired keys stay; 0 if there are none."""
        return duration_ns(self.config.limit_marker_ttl or 0) / NS_PER_SECOND

    @property
    def mirror(self) -> SourceInfo | None:
        """The progress of a mirror; None for a bucket that is no mirror."""
        return self.stream.mirror

    @property
    def sources(self) -> tuple[SourceInfo, ...]:
        """The progress of each source."""
        return self.stream.sources

    def __repr__(self) -> str:
        return (
            f"<BucketStatus {self.name}: {self.values} revisions of {self.keys} keys, "
            f"{self.bytes} bytes, history {self.history}, revision {self.revision}>"
        )
