"""What a view is at one moment, as far as every kind has it.

Law: what the server said is kept whole in `stream`; nothing here is counted by us.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from natsstream.api.stream_config import user_metadata
from natsstream.api.stream_info import StreamInfo
from natsstream.streams.views.config import ViewConfig


@dataclass(frozen=True, slots=True)
class ViewStatus:
    """A view at one moment.

    Attributes:
        name: Its name.
        config: Its configuration.
        stream: Its stream's info, whole, with the servers that hold it.
    """

    name: str
    config: ViewConfig
    stream: StreamInfo

    @property
    def revision(self) -> int:
        """The newest sequence; 0 where nothing was ever written."""
        return self.stream.state.last_seq

    @property
    def storage(self) -> Literal["file", "memory"]:
        """Where it is kept."""
        return self.config.storage or "file"

    @property
    def replicas(self) -> int:
        """On how many servers it is kept."""
        return self.config.replicas or 1

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
        """What keeps it, as other clients show it too: always JetStream."""
        return "JetStream"
