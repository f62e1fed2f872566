"""What comes of bytes that are cut in bulk, beside what comes of them frame by frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from natsstream._wire.acks import ack_numbers
from natsstream._wire.deliveries import Deliveries, DeliveryCutter
from natsstream.errors import ProtocolError

if TYPE_CHECKING:
    from natsstream._wire.parser import Block, Frame

Row: TypeAlias = "tuple[bytes, bytes, bytes, tuple[int, int, int] | bytes]"
"""Subject, header block, payload; sequence, time and pending, or a reply without these."""


def row(frame: Frame) -> Row:
    """Return a frame that was read the plain way."""
    subject, reply, header, payload = frame
    try:
        sequence, _, time_ns, pending = ack_numbers(reply)
    except ProtocolError:
        return subject, header, payload, reply
    return subject, header, payload, (sequence, time_ns, pending)


def rows(found: Deliveries) -> list[Row]:
    """Return frames that were cut in bulk."""
    lists = zip(
        found.subjects,
        found.header_blocks,
        found.payloads,
        found.sequences,
        found.times_ns,
        found.pending,
        strict=True,
    )
    return [
        (subject.encode("utf-8", "surrogateescape"), header, payload, (seq, time_ns, int(pending)))
        for subject, header, payload, seq, time_ns, pending in lists
    ]


class BulkSink:
    """A block sink that tries to cut whatever comes.

    Attributes:
        rows: What came.
        blocks: How many blocks of it were cut.
    """

    bytes_min = 0
    wants_full = False

    def __init__(self, sid: bytes) -> None:
        self.rows: list[Row] = []
        self.blocks = 0
        self._sid = sid
        self._cutter = DeliveryCutter()

    def take(self, data: bytes, start: int) -> Deliveries | None:
        return self._cutter.cut(data, start, self._sid)

    def put(self, block: Block) -> None:
        assert isinstance(block, Deliveries)
        self.rows += rows(block)
        self.blocks += 1

    def put_frames(self, frames: list[Frame]) -> None:
        """Take what was not cut; the frame sink of the same subscription."""
        self.rows += map(row, frames)
