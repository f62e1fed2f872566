"""One stream: the parts of its surface, put together."""

from __future__ import annotations

from natsstream.streams.doors.batching import Batching
from natsstream.streams.doors.chains import Chains
from natsstream.streams.doors.chunking import Chunking
from natsstream.streams.doors.consumers import Consumers
from natsstream.streams.doors.contents import Contents
from natsstream.streams.doors.counts import Counts
from natsstream.streams.doors.direct import Direct
from natsstream.streams.doors.inspection import Inspection
from natsstream.streams.doors.latest import LatestReads
from natsstream.streams.doors.operations import Operations
from natsstream.streams.doors.reads import Reads
from natsstream.streams.doors.removals import Removals
from natsstream.streams.doors.schedules import Schedules
from natsstream.streams.doors.writes import Writes


class Stream(
    Batching,
    Chains,
    Chunking,
    Consumers,
    Contents,
    Counts,
    Direct,
    Inspection,
    LatestReads,
    Operations,
    Reads,
    Removals,
    Schedules,
    Writes,
):
    """A stream of the server; made by `js.streams`.

    Attributes:
        name: Its name.
        cached: Its info when it was opened; `info()` asks for a fresh one.
        change: What the call that gave it has done: made it, changed fields, or nothing.
    """

    def __repr__(self) -> str:
        return f"<Stream {self.name}>"
