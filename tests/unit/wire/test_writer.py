"""How commands leave: in order, in few calls of the system, and not at all once taken back."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from natsstream._wire.writer import SocketWriter
from natsstream.errors import ConnectionClosedError

pytestmark = pytest.mark.asyncio


class Transport:
    """A socket's side of asyncio that notes each call."""

    def __init__(self) -> None:
        self.calls: list[bytes] = []
        self.is_broken = False

    def is_closing(self) -> bool:
        return self.is_broken

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def writelines(self, lines: list[bytes]) -> None:
        self.calls.append(b"".join(lines))


class Life:
    """A connection that is up until it is told otherwise."""

    is_connected = True
    is_closed = False

    def check_open(self) -> None:
        if self.is_closed:
            raise ConnectionClosedError("closed")


class Way:
    """An outlet, and what stands around it."""

    def __init__(self) -> None:
        self.transport, self.life = Transport(), Life()
        self.nats = SimpleNamespace(
            is_connected=True,
            _pending=list[bytes](),
            _pending_data_size=0,
            _flush_queue=asyncio.Queue[object](),
        )
        self.outlet = SocketWriter(cast("Any", self.life))
        self.outlet.open(cast("Any", SimpleNamespace(nats=self.nats, transport=self.transport)))


async def test_first_command_of_a_turn_leaves_at_once_and_the_others_in_one_call() -> None:
    way = Way()

    for number in range(5):
        way.outlet.write_together(b"%d" % number)
    assert way.transport.calls == [b"0"]
    await asyncio.sleep(0)
    assert way.transport.calls == [b"0", b"1234"]

    way.outlet.write_together(b"5")
    assert way.transport.calls[2:] == [b"5"]


async def test_what_is_written_directly_does_not_overtake() -> None:
    way = Way()

    for number in range(3):
        way.outlet.write_together(b"%d" % number)
    way.outlet.write(b"direct")
    way.outlet.write_together(b"3")
    await asyncio.sleep(0)

    assert way.transport.calls == [b"0", b"12", b"direct", b"3"]


async def test_not_more_than_64_kib_are_held_back() -> None:
    way = Way()

    for _ in range(5):
        way.outlet.write_together(b"x" * (30 << 10))

    assert [len(call) >> 10 for call in way.transport.calls] == [30, 90]
    await asyncio.sleep(0)
    assert [len(call) >> 10 for call in way.transport.calls] == [30, 90, 30]


async def test_command_that_is_taken_back_never_leaves() -> None:
    way = Way()
    first, second, third = (bytes([byte]) for byte in b"abc")
    held = [bytes(bytearray(b"same")) for _ in range(2)]

    way.outlet.write_together(first)
    for command in (second, *held, third):
        way.outlet.write_together(command)
    way.outlet.take_back(second)
    way.outlet.take_back(held[0])
    way.outlet.take_back(b"unknown")
    await asyncio.sleep(0)

    assert way.transport.calls == [b"a", b"samec"]


async def test_commands_of_a_turn_in_which_the_socket_dies_wait_for_the_next_server() -> None:
    way = Way()
    commands = [b"command %d" % number for number in range(4)]
    for command in commands[:3]:
        way.outlet.write_together(command)

    way.transport.is_broken = True
    way.outlet.write_together(commands[3])
    await asyncio.sleep(0)
    way.outlet.take_back(commands[2])

    assert way.transport.calls == commands[:1]
    assert way.nats._pending == [commands[1], commands[3]]
    assert way.nats._pending_data_size == len(commands[1] + commands[3])


async def test_closed_connection_refuses_each_command() -> None:
    way = Way()
    way.outlet.write_together(b"0")
    way.life.is_connected, way.life.is_closed = False, True

    for _ in range(2):
        with pytest.raises(ConnectionClosedError):
            way.outlet.write_together(b"1")


async def test_nothing_is_held_back_where_somebody_else_writes_too() -> None:
    way = Way()
    way.outlet.gathers = False

    for number in range(3):
        way.outlet.write_together(b"%d" % number)

    assert way.transport.calls == [b"0", b"1", b"2"]
