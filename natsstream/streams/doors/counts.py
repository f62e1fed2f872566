"""Counting in one stream."""

from __future__ import annotations

from natsstream.streams.counters.counters import Counters
from natsstream.streams.doors.part import Part


class Counts(Part):
    """Leads to the counters of a stream."""

    @property
    def counters(self) -> Counters:
        """Adds to the stream's counters and reads them; it needs `allow_msg_counter`."""
        return Counters(self._api, self.name)
