"""The parts of a snapshot: in order and to the end, or not at all."""

from __future__ import annotations

import pytest

from natsstream.errors import BackupError
from natsstream.streams.snapshots.parts import PartOrder


def part(number: int, payload: bytes = b"xyz", size: int = 3) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the frame of a part that asks for an answer."""
    return b"inbox", b"$JS.SNAPSHOT.ACK.S.id.%d.%d" % (size, number), b"", payload


def end(header: bytes = b"") -> tuple[bytes, bytes, bytes, bytes]:
    """Return the frame that ends a snapshot."""
    return b"inbox", b"", header, b""


@pytest.mark.parametrize("header", [b"", b"NATS/1.0 204\r\n\r\n"])
def test_parts_in_order_make_a_whole(header: bytes) -> None:
    order = PartOrder("S")

    assert order.take(part(1)) == (b"xyz", "$JS.SNAPSHOT.ACK.S.id.3.1")
    assert order.take((b"inbox", b"", b"", b"last")) == (b"last", "")
    assert not order.is_complete
    assert order.take(end(header)) == (b"", "")
    assert (order.is_complete, order.count) == (True, 2)


@pytest.mark.parametrize(
    "frames",
    [
        [part(2)],
        [part(1), part(3)],
        [part(1), part(1)],
        [part(1, size=4)],
        [part(1), end(b"NATS/1.0 500 broken disk\r\n\r\n")],
        [end(b"NATS/1.0 408 No Flow Response\r\n\r\n")],
    ],
)
def test_hole_or_error_ends_the_backup(
    frames: list[tuple[bytes, bytes, bytes, bytes]],
) -> None:
    order = PartOrder("S")

    *before, last = frames
    for frame in before:
        order.take(frame)
    with pytest.raises(BackupError) as caught:
        order.take(last)

    assert caught.value.retryable
    assert not order.is_complete
