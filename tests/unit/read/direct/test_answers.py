"""Answers to direct reads: whole runs are taken, runs with a hole are refused."""

from __future__ import annotations

import pytest

from natsstream.errors import IncompleteReadError, ProtocolError, ServerError
from natsstream.read.direct.answers import DirectBatch, Run, read_stored

TIME = "2026-01-01T00:00:00.000000001Z"


def stored(sequence: int, previous: int, pending: int = 0, own: bytes = b"") -> tuple[bytes, ...]:
    """Return the frame of a message."""
    block = (
        b"NATS/1.0%b\r\nNats-Stream: S\r\nNats-Subject: s.1\r\nNats-Sequence: %d\r\n"
        b"Nats-Time-Stamp: %b\r\nNats-Num-Pending: %d\r\nNats-Last-Sequence: %d\r\n\r\n"
    ) % (own, sequence, TIME.encode(), pending, previous)
    return b"inbox", b"", block, b"x"


def end(last: int, pending: int = 0) -> tuple[bytes, ...]:
    """Return the frame that ends a run."""
    block = (
        b"NATS/1.0 204 EOB\r\nNats-Num-Pending: %d\r\nNats-Last-Sequence: %d\r\n"
        b"Nats-UpTo-Sequence: 9\r\n\r\n"
    ) % (pending, last)
    return b"inbox", b"", block, b""


def status(line: bytes) -> tuple[bytes, ...]:
    """Return the frame of a status."""
    return b"inbox", b"", b"NATS/1.0 %b\r\n\r\n" % line, b""


def feed(*frames: tuple[bytes, ...]) -> DirectBatch | None:
    """Return what a run makes of frames."""
    run, batch = Run("a read"), None
    for frame in frames:
        batch = run.add(frame)  # pyright: ignore[reportArgumentType] - Four parts, as frames have.
    return batch


def test_whole_run_is_a_batch() -> None:
    batch = feed(stored(2, 0, 1), stored(5, 2), end(5, 4))

    assert batch is not None
    assert [each.sequence for each in batch.messages] == [2, 5]
    assert (batch.num_pending, batch.last_seq, batch.up_to_seq) == (4, 5, 9)
    assert batch.messages[0].time_ns % 10**9 == 1


@pytest.mark.parametrize(
    "frames",
    [
        [stored(2, 1)],
        [stored(2, 0), stored(5, 3)],
        [stored(2, 0), end(3)],
        [end(3)],
    ],
)
def test_hole_is_refused(frames: list[tuple[bytes, ...]]) -> None:
    with pytest.raises(IncompleteReadError) as caught:
        feed(*frames)

    assert caught.value.retryable


def test_run_without_its_end_is_not_over() -> None:
    assert feed(stored(2, 0), stored(5, 2)) is None


def test_nothing_there_is_an_empty_batch() -> None:
    assert feed(status(b"404 Message Not Found")) == DirectBatch(())


@pytest.mark.parametrize("line", [b"408 Bad Request", b"413 Too Many Results", b"500 broken"])
def test_refusal_is_an_error_with_its_code(line: bytes) -> None:
    with pytest.raises(ServerError) as caught:
        feed(status(line))

    assert caught.value.code == int(line[:3])


def test_status_of_a_stored_message_is_not_believed() -> None:
    batch = feed(stored(2, 0, own=b" 404 Forged"), end(2))

    assert batch is not None
    assert len(batch) == 1


def test_headers_of_the_message_are_its_own() -> None:
    frame = stored(2, 0, own=b"\r\nA: 1\r\nNats-Stream: OTHER\r\nNats-Sequence: 77")
    found = read_stored(frame, "a read")  # pyright: ignore[reportArgumentType]

    assert found.message.sequence == 2
    assert found.message.headers.source == (
        b"NATS/1.0\r\nA: 1\r\nNats-Stream: OTHER\r\nNats-Sequence: 77\r\n\r\n"
    )


def test_frame_that_says_nothing_is_no_message() -> None:
    with pytest.raises(ProtocolError):
        read_stored((b"inbox", b"", b"NATS/1.0\r\nA: 1\r\n\r\n", b"x"), "a read")
