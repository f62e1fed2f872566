"""Values too large for one message."""

from __future__ import annotations

from collections.abc import AsyncIterator

from natsstream.streams.chunks.chunks import Chunks
from natsstream.streams.doors.part import Part
from natsstream.streams.doors.subject_pages import subject_pages


class Chunking(Part):
    """Gives values in chunks."""

    @property
    def chunks(self) -> Chunks:
        """Values that are too large for one message, as chunks under a subject of their own."""
        limit = self.cached.config.max_msg_size
        return Chunks(self._api, self.name, self._held, message_bytes_max=limit)

    async def _held(self, subject: str) -> AsyncIterator[str]:
        async for page in subject_pages(self._api, self.name, subject):
            for name in page.counts:
                yield name
