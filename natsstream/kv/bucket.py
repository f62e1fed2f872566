"""One bucket: the parts of its surface, put together."""

from __future__ import annotations

from natsstream.kv.doors.codecs import Codecs
from natsstream.kv.doors.locking import Locking
from natsstream.kv.doors.reads import Reads
from natsstream.kv.doors.removals import Removals
from natsstream.kv.doors.upkeep import Upkeep
from natsstream.kv.doors.values import Values
from natsstream.kv.doors.watching import Watching
from natsstream.kv.doors.writes import Writes


# Values and Locking come first: they stand on some of the others.
class KeyValue(Values, Locking, Codecs, Reads, Removals, Upkeep, Watching, Writes):
    """A key-value bucket; made by `js.kv`.

    Attributes:
        name: Its name.
    """

    def __repr__(self) -> str:
        return f"<KeyValue {self.name}>"
