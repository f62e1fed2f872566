"""The status of a view, as far as every kind has it.

Law: `stream` has the server's answer whole; no number is counted here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from natsstream.api.metadata import user_metadata
from natsstream.api.stream_info import StreamInfo
from natsstream.notebook import NotebookTable
from natsstream.streams.views.config import ViewConfig


@dataclass(frozen=True, slots=True)
class ViewStatus(NotebookTable):
    """The status of a view at one moment.

    Attributes:
        name: The view's name.
        config: The view's configuration.
        stream: The whole info of its stream, with the servers that store it.
    """

    name: str
    config: ViewConfig
    stream: StreamInfo

    @property
    def revision(self) -> int:
        """The last sequence; 0 before the first write."""
        return self.stream.state.last_seq

    @property
    def storage(self) -> Literal["file", "memory"]:
        """Where its messages are stored."""
        return self.config.storage or "file"

    @property
    def replicas(self) -> int:
        """How many servers store it."""
        return self.config.replicas or 1

    @property
    def is_compressed(self) -> bool:
        """True if it is compressed on disk."""
        return bool(self.config.compression)

    @property
    def metadata(self) -> Mapping[str, str]:
        """Free text by key, without the server's own keys."""
        return user_metadata(self.config.metadata)

    @property
    def backing_store(self) -> str:
        """The kind of storage, as other clients report it: always JetStream."""
        return "JetStream"
