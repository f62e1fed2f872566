"""Cutting in bulk: the result equals reading one frame after another, whatever payloads say."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire import deliveries
from natsstream._wire.deliveries import Deliveries, DeliveryCutter
from natsstream._wire.parser import FrameParser
from tests.support.bulk import BulkSink, Row, row, rows
from tests.support.deliveries import SID, STRANGERS, V1, Run, Sequences, blocks, build
from tests.support.frames import NASTY, ack, hmsg, msg

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream._wire.parser import Frame


@pytest.fixture(scope="module", autouse=True)
def always_bulk() -> Iterator[None]:
    """Cut in bulk again behind each failure, instead of some frames later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliveries, "_PLAIN_FRAMES", 0)
        yield


def plain(data: bytes) -> list[Row]:
    """Return the frames of the subscription, read one after another."""
    found: list[Frame] = []
    parser = FrameParser()
    parser.sinks[SID] = found.extend
    parser.parse(data)
    return list(map(row, found))


def check(data: bytes, start: int = 0) -> Deliveries | None:
    """Assert that a cut is what the plain way reads, and return it."""
    cut = DeliveryCutter().cut(data, start, SID)
    if cut is not None:
        assert rows(cut) == plain(data[start : cut.stop])
    return cut


@given(blocks)
def test_every_message_of_a_run_is_cut_once(block: Run) -> None:
    data = build(block)
    sink = BulkSink(SID)
    parser = FrameParser()
    parser.sinks[SID], parser.blocks[SID] = sink.put_frames, sink

    assert parser.parse(data).consumed == len(data)

    assert sink.rows == plain(data)
    assert len(sink.rows) == len(block[2])


@given(blocks, st.randoms(use_true_random=False), st.integers(0, 6))
def test_every_split_gives_the_same(block: Run, chance: random.Random, count: int) -> None:
    data = build(block)
    sink = BulkSink(SID)
    parser = FrameParser()
    parser.sinks[SID], parser.blocks[SID] = sink.put_frames, sink
    cuts = [*sorted(chance.randint(0, len(data)) for _ in range(count)), len(data)]

    shown = 0
    for end in cuts:
        shown += parser.parse(data[shown:end]).consumed

    assert shown == len(data)
    assert sink.rows == plain(data)


@given(blocks, st.floats(0, 1))
def test_truncated_runs_equal_the_plain_way(block: Run, share: float) -> None:
    data = build(block)
    whole = plain(data[: int(len(data) * share)])
    sink = BulkSink(SID)
    parser = FrameParser()
    parser.sinks[SID], parser.blocks[SID] = sink.put_frames, sink

    parser.parse(data[: int(len(data) * share)])

    assert sink.rows == whole


@given(blocks, st.sampled_from(STRANGERS), blocks, st.sampled_from([b"", *NASTY]))
def test_a_stranger_ends_the_cut(before: Run, stranger: bytes, after: Run, earlier: bytes) -> None:
    run = build(before)

    cut = check(earlier + run + stranger + build(after), len(earlier))

    assert cut is None or cut.stop <= len(earlier) + len(run)


def numbered(count: int, payload: bytes, *, header: bytes = b"") -> bytes:
    """Return messages of one consumer."""
    numbers = Sequences(0, 0)
    frames = [numbers.frame(0, (V1, b""), header, payload, b"a.b") for _ in range(count)]
    return b"".join(frames)


@pytest.mark.parametrize("header", [b"", b"NATS/1.0\r\nA: b\r\n\r\n"], ids=["plain", "headers"])
@pytest.mark.parametrize("payload", [b"", b"x" * 256, b"\r\n" * 9], ids=["empty", "text", "lines"])
def test_run_without_surprises_is_one_cut(payload: bytes, header: bytes) -> None:
    data = numbered(40, payload, header=header)

    cut = check(data)

    assert cut is not None
    assert (len(cut), cut.stop) == (40, len(data))
    assert (cut.first_delivery, cut.last_delivery) == (1, 40)


@pytest.mark.parametrize("stranger", STRANGERS)
def test_cut_ends_at_the_stranger_and_not_before(stranger: bytes) -> None:
    run = numbered(20, b"x" * 256)

    cut = check(run + stranger + numbered(20, b"x"))

    assert cut is not None
    assert cut.stop == len(run)


def test_window_grows_while_the_run_goes_on() -> None:
    """A short run is not paid for with a look at all that came behind it."""
    data = numbered(5_000, b"x" * 256)
    cutter = DeliveryCutter()
    sizes: list[int] = []
    start = 0
    while (cut := cutter.cut(data, start, SID)) is not None:
        sizes.append(cut.stop - start)
        start = cut.stop
        if start == len(data):
            break

    assert start == len(data)
    assert sizes[0] <= 16 << 10
    assert max(sizes) > 128 << 10


def test_subscriptions_that_take_turns_are_read_the_plain_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deliveries, "_PLAIN_FRAMES", 32)
    pair = msg(b"a", SID, b"x" * 256, reply=ack(1, 1)) + msg(b"b", b"8", b"x" * 256)
    sink = BulkSink(SID)
    parser = FrameParser()
    parser.sinks[SID], parser.blocks[SID] = sink.put_frames, sink
    parser.sinks[b"8"] = lambda _: None

    parser.parse(pair * 330)

    assert len(sink.rows) == 330
    assert sink.blocks == 10


@pytest.mark.parametrize(
    "bad",
    [
        msg(b"a", SID, b"x", reply=ack(2, 2, prefix=V1[:-1] + b"2", suffix=b".x")),
        b"MSG a 7 " + ack(2, 2, prefix=V1) + b" 2\r\nx!y\n",
        b"MSG a 7 " + ack(2, 2, prefix=V1) + b" 1\r\nxyz\r\n",
        b"HMSG a 7 " + ack(2, 2, prefix=V1) + b" 6 5\r\nhello\r\n",
        b"HMSG a 7 " + ack(2, 2, prefix=V1) + b" 5\r\nhello\r\n",
        b"MSG a 7 " + ack(2, 2, prefix=V1) + b" 5 5\r\nhello\r\n",
        b"MSG a\r\nPING 7 " + ack(2, 2, prefix=V1) + b" 5\r\nhello\r\n",
        b"MSG a 7 " + V1 + b".2.2.99999999999999999999.0 1\r\nx\r\n",
    ],
)
def test_frame_that_is_not_usual_is_left_to_the_plain_way(bad: bytes) -> None:
    good = numbered(1, b"x")

    cut = check(good + bad + numbered(9, b"y"))

    assert cut is None or cut.stop <= len(good + bad)


def test_large_messages_are_left_to_the_plain_way() -> None:
    """It jumps over payloads, and an expression looks at each of their bytes."""
    assert check(numbered(9, b"x" * 3_000)) is None


def test_headers_are_cut_from_payloads() -> None:
    header = b"NATS/1.0\r\nA: b\r\n\r\n"
    mixed = [
        hmsg(b"a", SID, header, b"x", reply=ack(1, 1, prefix=V1)),
        msg(b"a", SID, b"y", reply=ack(2, 2, prefix=V1)),
        hmsg(b"a", SID, header, b"", reply=ack(3, 3, prefix=V1)),
    ]

    cut = check(b"".join(mixed))

    assert cut is not None
    assert cut.header_blocks == [header, b"", header]
    assert cut.payloads == [b"x", b"y", b""]


@given(blocks, st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=5))
def test_damaged_bytes_are_read_as_the_plain_way_reads_them(
    block: Run, damage: list[tuple[float, int]]
) -> None:
    data = bytearray(build(block))
    for at, value in damage:
        data[int(at * len(data))] = value
    sink = BulkSink(SID)
    parsers = [FrameParser(), FrameParser()]
    found: list[Frame] = []
    parsers[0].sinks[SID] = found.extend
    parsers[1].sinks[SID], parsers[1].blocks[SID] = sink.put_frames, sink

    ends = [parser.parse(bytes(data)) for parser in parsers]

    assert ends[0][:3] == ends[1][:3]
    assert str(ends[0].failure) == str(ends[1].failure)
    assert [each[:3] for each in sink.rows] == [each[:3] for each in map(row, found)]
