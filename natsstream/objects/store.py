"""One object store: the parts of its surface, put together."""

from __future__ import annotations

from natsstream.objects.doors.linking import Linking
from natsstream.objects.doors.metadata import Metadata
from natsstream.objects.doors.part import Part
from natsstream.objects.doors.transfers import Transfers
from natsstream.objects.doors.upkeep import Upkeep
from natsstream.objects.doors.watching import Watching


class ObjectStore(Linking, Metadata, Transfers, Upkeep, Watching, Part):
    """An object store; made by `js.objects`.

    Attributes:
        name: Its name.
        stream: The stream that holds it, for backups, step-downs and the like.
        config: Its configuration when it was opened.
        change: What the call that gave it has done: made it, changed fields, or nothing.
    """

    def __repr__(self) -> str:
        return f"<ObjectStore {self.name}>"
