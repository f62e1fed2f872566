"""One revision of a key, as reads and watches hand it out.

What lives here: what a stored message says of its key. What must not: reading it.

Law: what a server's delete marker says (`Nats-Marker-Reason`, ADR-43) is as good as a client's own
`KV-Operation` (ADR-8): a key that has expired is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from natsstream.units import time_from_ns

Operation = Literal["PUT", "DEL", "PURGE"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One revision of a key.

    Attributes:
        bucket: The bucket's name.
        key: The key.
        value: The bytes as stored; empty for a marker.
        revision: The stream's sequence of this revision.
        created_ns: When it was stored, in Unix nanoseconds.
        operation: "PUT" for a value, "DEL" for a deletion, "PURGE" where the history went too,
            also where the server has let the key expire.
        delta: How many revisions a watch or history still had to deliver behind this one; 0 for
            other reads.
    """

    bucket: str
    key: str
    value: bytes
    revision: int
    created_ns: int
    operation: Operation
    delta: int = 0

    @property
    def created(self) -> datetime:
        """When it was stored, in UTC, cut to microseconds."""
        return time_from_ns(self.created_ns)

    @property
    def is_deleted(self) -> bool:
        """True for a marker: the key has no value."""
        return self.operation != "PUT"
