"""Bytes of an attached connection: wherever the lane takes over, nats-py gets each of them once."""

from __future__ import annotations

import asyncio
import random
from typing import Any, cast

import nats
import pytest

from natsstream._wire.attach import attach_nats
from natsstream._wire.connection_state import ConnectionState
from natsstream._wire.parser import FrameParser
from natsstream._wire.watchdog import Watchdog
from tests.support.frames import hmsg, msg
from tests.support.peers import Peer, scripted

pytestmark = pytest.mark.asyncio

SEEDS = 24
HEADER = b"NATS/1.0\r\nA: b\r\n\r\n"
ERROR = b"-ERR 'Permissions Violation for Publish to \"x%d\"'\r\n"
# What comes between messages, and how large those are and the pieces they come in.
BETWEEN = (b"", b"", b"", b"PING\r\n", b"+OK\r\n", b'INFO {"server_id":"x"}\r\n', ERROR)
SMALL = ((0, 1, 30, 300, 2_000), (1, 3, 10, 100, 1_000))
LARGE = ((0, 300, 5_000, 70_000, 300_000), (1_000, 20_000, 65_536, 200_000))


async def greets(peer: Peer) -> None:
    await peer.greet()
    await peer.answer_pings()


def listener() -> ConnectionState:
    watchdog = Watchdog(
        interval_s=60, missed_max=2, ping=lambda: None, give_up=lambda _: None, unsent=lambda: 0
    )
    return ConnectionState(watchdog, lambda _: None)


def script(draw: random.Random, sid: bytes, sizes: tuple[int, ...]) -> tuple[bytes, list[bytes]]:
    """Return what a server sends, and the payloads in it."""
    wire, payloads = b"", list[bytes]()
    for number in range(draw.randint(1, 25)):
        payload = (b"%d " % number).ljust(draw.choice(sizes), b".") + b"\r\nMSG a 1 3\r\n"
        payloads.append(payload)
        headed = hmsg(b"a", sid, HEADER, payload)
        wire += draw.choice((headed, msg(b"a", sid, payload)))
        between = draw.choice(BETWEEN)
        wire += between % number if between is ERROR else between
    return wire, payloads


def receive(transport: asyncio.Transport, data: bytes) -> int:
    """Do what a transport does with bytes from its socket; returns how many it took."""
    protocol = transport.get_protocol()
    if not isinstance(protocol, asyncio.BufferedProtocol):
        cast("asyncio.Protocol", protocol).data_received(data)
        return len(data)
    buffer = memoryview(protocol.get_buffer(-1))
    count = min(len(buffer), len(data))
    buffer[:count] = data[:count]
    protocol.buffer_updated(count)
    return count


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.sampled
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_each_byte_reaches_nats_py_once_wherever_the_lane_takes_over(seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - No secret.
    errors: list[Exception] = []

    async def note(error: Exception) -> None:
        errors.append(error)
        await turns(draw.randint(0, 4))  # In it nats-py has a line in its buffer.

    async with scripted(greets) as url:
        application = await cast("Any", nats).connect(url, error_cb=note)
        inbox = await application.subscribe("a", pending_bytes_limit=0)
        transport = cast("asyncio.Transport", application._transport._io_writer.transport)
        sizes, pieces = draw.choice((SMALL, LARGE))
        wire, payloads = script(draw, b"%d" % inbox._id, sizes)
        link = None
        while wire:
            step = draw.random()
            if step < 0.25 and link is None:
                link = attach_nats(application, FrameParser(), listener())
            elif step < 0.25 and link is not None:
                link.discard()
                link = None
            elif step < 0.5 or not transport.is_reading():
                await turns(draw.randint(1, 3))
            else:
                wire = wire[receive(transport, wire[: draw.choice(pieces)]) :]
        if link is not None:
            link.discard()
        await turns(200)

        received = [inbox._pending_queue.get_nowait().data for _ in range(inbox.pending_msgs)]
        assert received == payloads
        assert len(errors) == len(set(map(str, errors))), "an error was told twice"
        await application.close()
