"""Reading a stream through any of its replicas."""

from __future__ import annotations

from natsstream.read.direct.reads import DirectReads
from natsstream.streams.doors.part import Part


class Direct(Part):
    """Gives direct reads."""

    @property
    def direct(self) -> DirectReads:
        """Reads that any replica answers: fast, spread over the cluster, and possibly stale."""
        return DirectReads(self._api, self.cached)
