"""The lane between a socket and nats-py, with a transport and a protocol that only note down."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from natsstream._wire.framing import FrameBlock, cut_block
from natsstream._wire.lane import BLOCK_BYTES, FastLane, behind
from natsstream._wire.parser import Block, Frame, FrameParser
from natsstream.errors import NatsStreamError, ProtocolError
from tests.support.eventually import eventually_async
from tests.support.frames import ack, msg

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.asyncio

SID = b"7"


class NotedProtocol(asyncio.Protocol):
    """Stands for nats-py's protocol."""

    def __init__(self) -> None:
        self.heard: list[str | bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        del transport
        self.heard.append("made")

    def data_received(self, data: bytes) -> None:
        self.heard.append(data)

    def eof_received(self) -> bool:
        self.heard.append("eof")
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self.heard.append(f"lost {exc}")

    def pause_writing(self) -> None:
        self.heard.append("pause")

    def resume_writing(self) -> None:
        self.heard.append("resume")


class NotedTransport(asyncio.Transport):
    """Stands for a socket's transport."""

    def __init__(self, protocol: asyncio.BaseProtocol) -> None:
        super().__init__()
        self.protocol = protocol
        self.is_aborted = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self.protocol

    def abort(self) -> None:
        self.is_aborted = True


class Blocks:
    """A block sink that cuts and keeps."""

    bytes_min = 0
    wants_full = True

    def __init__(self) -> None:
        self.sequences: list[int] = []

    def take(self, data: bytes, start: int) -> FrameBlock | None:
        return cut_block(data, start, SID)

    def put(self, block: Block) -> None:
        assert isinstance(block, FrameBlock)
        self.sequences += block.sequence.tolist()


@dataclass
class Bench:
    """A lane with everything around it.

    Attributes:
        parser: The parser, with a sink for one subscription.
        protocol: What stands behind the lane.
        transport: What stands before it.
        frames: What the sink got.
        broken: What `on_broken` was called with.
        lane: The lane.
    """

    parser: FrameParser = field(default_factory=FrameParser)
    protocol: NotedProtocol = field(default_factory=NotedProtocol)
    frames: list[Frame] = field(default_factory=list[Frame])
    broken: list[NatsStreamError] = field(default_factory=list[NatsStreamError])

    def __post_init__(self) -> None:
        self.parser.sinks[SID] = self.frames.extend
        self.transport = NotedTransport(self.protocol)
        self.lane = FastLane(self.parser, behind(self.transport), self.broken.append, lambda: None)

    def receive(self, data: bytes, *, step: int = 64 << 10) -> None:
        """Do what a transport does with bytes from the socket."""
        rest = memoryview(data)
        while rest:
            buffer = self.lane.get_buffer(-1)
            assert len(buffer) > 0
            count = min(len(buffer), len(rest), step)
            buffer[:count] = rest[:count]
            self.lane.buffer_updated(count)
            rest = rest[count:]

    def payloads(self) -> list[bytes]:
        """Return what the sink got."""
        return [frame[3] for frame in self.frames]


@pytest.fixture
def bench() -> Bench:
    """A lane that is installed."""
    made = Bench()
    made.lane.install(made.transport, b"")
    return made


@pytest.fixture
def blocks(bench: Bench) -> Iterator[Blocks]:
    """Block mode for the subscription."""
    sink = Blocks()
    bench.parser.blocks[SID] = sink
    yield sink
    bench.parser.blocks.clear()


def numbered(first: int, count: int, payload: bytes) -> bytes:
    """Return messages of a consumer."""
    numbers = range(first, first + count)
    return b"".join(msg(b"a", SID, payload, reply=ack(at, at)) for at in numbers)


async def test_install_takes_the_transport_over(bench: Bench) -> None:
    assert bench.transport.protocol is bench.lane


async def test_bytes_that_came_before_the_lane_are_parsed_first() -> None:
    bench = Bench()
    bench.lane.install(bench.transport, msg(b"a", SID, b"early") + b"PING\r\nMSG a 7 ")

    bench.receive(b"4\r\nlate\r\n")

    assert bench.payloads() == [b"early", b"late"]
    assert bench.protocol.heard == [b"PING\r\n"]


async def test_more_early_bytes_than_a_block_are_parsed() -> None:
    bench = Bench()
    bench.lane.install(bench.transport, msg(b"a", SID, b"x" * (3 * BLOCK_BYTES)))

    assert [len(payload) for payload in bench.payloads()] == [3 * BLOCK_BYTES]


async def test_own_frames_go_to_the_sink_and_all_else_to_nats_py(bench: Bench) -> None:
    foreign = msg(b"b", b"8", b"\r\nMSG a 7 1\r\nx\r\n")
    bench.receive(b"PING\r\n" + msg(b"a", SID, b"x") + foreign + b"+OK\r\n" + msg(b"a", SID, b"y"))

    assert bench.payloads() == [b"x", b"y"]
    assert b"".join(each for each in bench.protocol.heard if isinstance(each, bytes)) == (
        b"PING\r\n" + foreign + b"+OK\r\n"
    )


@pytest.mark.parametrize("step", [1, 7, 4096, 1 << 20])
async def test_every_size_of_read_gives_the_same(bench: Bench, step: int) -> None:
    payloads = [b"x" * size for size in (0, 1, 5, 300, 0, 5_000, 2)]

    bench.receive(b"".join(msg(b"a", SID, each) for each in payloads), step=step)

    assert bench.payloads() == payloads
    assert bench.protocol.heard == []


async def test_buffer_grows_for_a_frame_and_takes_small_ones_after_it(bench: Bench) -> None:
    payloads = [b"a", b"b" * (8 << 20), b"c", b"d" * (3 << 20), b"e"]

    bench.receive(b"".join(msg(b"a", SID, each) for each in payloads))

    assert list(map(len, bench.payloads())) == list(map(len, payloads))
    assert bench.payloads() == payloads
    # One more byte does not make it double again.
    assert len(bench.lane._buffer) < 9 << 20  # pyright: ignore[reportPrivateUsage]


async def test_memory_grows_with_what_comes_and_not_with_what_is_claimed(bench: Bench) -> None:
    bench.receive(b"MSG a 7 %d\r\n" % (60 << 20) + b"x" * (3 << 20))

    assert len(bench.lane._buffer) <= 8 << 20  # pyright: ignore[reportPrivateUsage]
    assert bench.broken == []


async def test_claim_that_no_server_makes_ends_the_connection_at_once(bench: Bench) -> None:
    bench.receive(b"MSG a 7 999999999\r\n")

    assert [type(each) for each in bench.broken] == [ProtocolError]
    assert len(bench.lane._buffer) == BLOCK_BYTES  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("step", [1, 700, 1 << 20])
async def test_what_came_before_nonsense_is_handed_over(bench: Bench, step: int) -> None:
    before = msg(b"a", SID, b"x") + b"PONG\r\n"
    bench.receive(before + b"GET / HTTP/1.1\r\n" + msg(b"a", SID, b"y"), step=step)

    assert bench.payloads() == [b"x"]
    assert bench.protocol.heard == [b"PONG\r\n"]
    assert bench.transport.is_aborted


async def test_block_mode_waits_for_more_and_flushes_by_itself(
    bench: Bench, blocks: Blocks
) -> None:
    bench.receive(numbered(1, 3, b"x"))
    assert blocks.sequences == []

    async def is_flushed() -> bool:
        return blocks.sequences == [1, 2, 3]

    await eventually_async(is_flushed)


async def test_sink_that_wants_no_full_block_is_not_kept_waiting(
    bench: Bench, blocks: Blocks
) -> None:
    blocks.wants_full = False

    bench.receive(numbered(1, 3, b"x"))

    assert blocks.sequences == [1, 2, 3]


async def test_block_mode_parses_a_full_block_at_once(bench: Bench, blocks: Blocks) -> None:
    count = 5_000
    wire = numbered(1, count, b"x" * 256)
    assert len(wire) > BLOCK_BYTES

    bench.receive(wire)
    held = len(blocks.sequences)
    assert BLOCK_BYTES // 400 < held < count

    async def is_flushed() -> bool:
        return len(blocks.sequences) == count

    await eventually_async(is_flushed)
    assert blocks.sequences == list(range(1, count + 1))


async def test_block_mode_gives_what_is_no_block_to_the_frame_sink(
    bench: Bench, blocks: Blocks
) -> None:
    bench.receive(
        numbered(1, 1, b"x") + msg(b"a", SID, b"status") + numbered(2, 1, b"x") + b"PONG\r\n"
    )
    bench.lane.eof_received()

    assert blocks.sequences == [1, 2]
    assert bench.payloads() == [b"status"]
    assert bench.protocol.heard == [b"PONG\r\n", "eof"]


async def test_leaving_block_mode_does_not_hold_bytes_back(bench: Bench, blocks: Blocks) -> None:
    bench.receive(numbered(1, 1, b"x"))
    bench.parser.blocks.clear()
    bench.receive(msg(b"a", SID, b"y"))

    assert blocks.sequences == []
    assert bench.payloads() == [b"x", b"y"]


@pytest.mark.parametrize("error", [None, ConnectionResetError("reset")])
async def test_lost_connection_parses_the_rest_before_it_tells_nats_py(
    bench: Bench, blocks: Blocks, error: Exception | None
) -> None:
    bench.receive(numbered(1, 2, b"x") + b"PING\r\nMSG a 7 5\r\nhal")

    bench.lane.connection_lost(error)

    assert blocks.sequences == [1, 2]
    assert bench.protocol.heard == [b"PING\r\n", f"lost {error}"]
    assert bench.payloads() == []


async def test_garbage_aborts_the_connection_once(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        bench.receive(b"MSG what is this now\r\n" * 3)
        bench.receive(b"MSG what is this now\r\n" * 3)

    assert [type(each) for each in bench.broken] == [ProtocolError]
    assert bench.transport.is_aborted
    assert len(caplog.records) == 1


async def test_nats_py_learns_of_the_end_after_garbage(bench: Bench) -> None:
    bench.receive(b"MSG what is this now\r\n")
    bench.lane.connection_lost(None)

    assert bench.protocol.heard == ["lost None"]


async def test_sink_that_raises_breaks_the_connection_and_gets_no_frame_twice(
    bench: Bench,
) -> None:
    def fail(frames: list[Frame]) -> None:
        bench.frames.extend(frames)
        raise RuntimeError("a bug")

    bench.parser.sinks[SID] = fail

    bench.receive(msg(b"a", SID, b"x"))
    bench.receive(msg(b"a", SID, b"y"))
    bench.lane.connection_lost(None)

    assert bench.payloads() == [b"x"]
    assert "a bug" in bench.broken[0].detail
    assert bench.transport.is_aborted
    assert bench.protocol.heard == ["lost None"]


async def test_back_pressure_of_writes_reaches_nats_py(bench: Bench) -> None:
    bench.lane.pause_writing()
    bench.lane.resume_writing()

    assert bench.protocol.heard == ["pause", "resume"]


async def test_end_of_stream_keeps_the_answer_of_nats_py(bench: Bench) -> None:
    assert bench.lane.eof_received() is True
    assert bench.protocol.heard == ["eof"]
