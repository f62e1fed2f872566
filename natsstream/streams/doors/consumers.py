"""The consumers of a stream."""

from __future__ import annotations

from natsstream.streams.consumers.manager import ConsumerManager
from natsstream.streams.doors.part import Part


class Consumers(Part):
    """Leads to the consumers of a stream."""

    @property
    def consumers(self) -> ConsumerManager:
        """Makes, finds and changes the stream's consumers."""
        return ConsumerManager(self._api, self.name)
