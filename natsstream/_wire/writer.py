"""Writes to the socket of one connection, or to the next one; pings and flushes.

Law: bytes are sent in the order of the writes, also around nats-py's own queue. Bytes that wait for
a server have a limit. Each flush ends, by its PONG or by the end of the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from natsstream._wire.connection_state import PENDING_BYTES_MAX, ConnectionState
from natsstream.errors import ConnectionLostError, NatsStreamError, RequestTimeoutError

if TYPE_CHECKING:
    from natsstream._wire.nats_py import NatsPyLink

# asyncio's own high-water mark, above which it asks writers to wait; more is not gathered either.
_CONGESTED_BYTES = 64 << 10


class SocketWriter:
    """Writes to whatever server is connected, by nats-py's transport.

    Attributes:
        gathers: Whether `write_together` may hold bytes back until the turn of the loop is over.
            False where somebody else writes to the same socket.
    """

    def __init__(self, state: ConnectionState) -> None:
        self.gathers: bool = True
        self._state = state
        self._link: NatsPyLink | None = None
        self._nats: Any = None
        self._flushes: set[asyncio.Future[None]] = set()
        self._gathered: list[bytes] = []
        self._gathered_bytes = 0
        self._turn: asyncio.Handle | None = None

    def open(self, link: NatsPyLink) -> None:
        """Write to this connection from now on."""
        self._link = link
        self._nats = link.nats

    @property
    def has_server(self) -> bool:
        """True while what is written goes to a server, and not into the queue for the next one."""
        # nats-py and the life of the connection learn of a broken socket some steps after it.
        transport = self._link.transport if self._link is not None else None
        is_leaving = transport is not None and transport.is_closing()
        return self._state.is_connected and self._nats.is_connected and not is_leaving

    @property
    def is_congested(self) -> bool:
        """True while written bytes wait for room in the socket."""
        transport = self._link.transport if self._link is not None else None
        return transport is not None and transport.get_write_buffer_size() > _CONGESTED_BYTES

    def write(self, commands: bytes) -> bool:
        """Send protocol bytes, in order, now or after a reconnect; see `Client.write`."""
        if self._gathered:
            self._send_gathered()
        nats = self._nats
        transport = self._link.transport if self._link is not None else None
        is_leaving = transport is not None and transport.is_closing()
        if transport and not is_leaving and self._state.is_connected and nats.is_connected:
            # nats-py's own way costs a task switch; the transport keeps the order. Commands that
            # nats-py has queued go first: its flusher may wait for room in the socket.
            if nats._pending:
                transport.writelines(nats._pending)
                nats._pending = []
                nats._pending_data_size = 0
            transport.write(commands)
            return True
        self._state.check_open()
        if nats._pending_data_size + len(commands) > PENDING_BYTES_MAX:
            raise ConnectionLostError(
                "not connected, and 8 MiB of writes wait for a reconnect already",
                hint="write less while disconnected: js.events() reports it",
                retryable=True,
            )
        nats._pending.append(commands)
        nats._pending_data_size += len(commands)
        if nats.is_connected and not is_leaving and nats._flush_queue.empty():
            nats._flush_queue.put_nowait(asyncio.get_running_loop().create_future())
        return False

    def write_together(self, command: bytes) -> None:
        """Write a command: the first in a turn of the loop at once, the others in one piece.

        Raises:
            NatsStreamError: As `write`.

        Cost: a write is a system call, half of the cost of a request. Requests of many tasks share
        one.
        """
        if self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._end_turn)
        elif self.gathers and self.has_server:
            self._gathered.append(command)
            self._gathered_bytes += len(command)
            if self._gathered_bytes > _CONGESTED_BYTES:
                self._send_gathered()
            return
        self.write(command)

    def _end_turn(self) -> None:
        self._turn = None
        if self._gathered:
            self._send_gathered()

    def _send_gathered(self) -> None:
        run, self._gathered, self._gathered_bytes = self._gathered, [], 0
        if self.has_server:
            self.write(b"".join(run))
            return
        for command in run:
            # One by one, so that each can still be taken back; its caller gets the error.
            with suppress(NatsStreamError):
                self.write(command)

    def take_back(self, command: bytes) -> bool:
        """Forget a command that still waits for a connection: nobody waits for its answer.

        Otherwise a server that comes back would do what its caller has long been told has failed.

        Returns:
            True if it was there: it was never sent.
        """
        nats = self._nats
        if _removed(self._gathered, command):
            self._gathered_bytes -= len(command)
            return True
        if _removed(nats._pending, command):
            nats._pending_data_size -= len(command)
            return True
        return False

    async def drain(self, timeout: float) -> None:
        """Wait until the socket has room; see `Client.drain`."""
        if not self._state.is_connected:
            return
        with suppress(OSError):  # A broken connection shows itself by its own event.
            try:
                async with asyncio.timeout(timeout):
                    await self._nats._transport.drain()
            except TimeoutError:
                raise ConnectionLostError(
                    "the server does not read", hint="is it paused or overloaded?", retryable=True
                ) from None

    def ping(self, on_pong: Callable[[], None]) -> None:
        """Send a PING; call back when its PONG comes, or never comes."""
        # nats-py gets a future of its own: it breaks when one of its list is done before.
        pong: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        pong.add_done_callback(lambda _: on_pong())
        self.write(b"PING\r\n")
        self._nats._pongs.append(pong)  # Behind it: one without its PING would be answered late.

    async def flush(self, timeout: float) -> None:
        """Wait until the server has handled all that was written; see `Client.flush`."""
        self._state.check_open()
        if not self.has_server:
            raise self._state.broken()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushes.add(done)
        try:
            self.ping(lambda: None if done.done() else done.set_result(None))
            async with asyncio.timeout(timeout):
                await done
        except TimeoutError:
            raise RequestTimeoutError(
                f"{self._state.url} did not answer a ping within {timeout:g} s", retryable=True
            ) from None
        finally:
            self._flushes.discard(done)

    def when_flushed(self, then: Callable[[], None]) -> bool:
        """Call back, once, where `flush` would return or raise; see `Client.when_flushed`."""
        if not self.has_server:
            return False
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushes.add(done)

        def end(_: asyncio.Future[None]) -> None:
            self._flushes.discard(done)
            done.exception()  # Looked at: a break is an end as well.
            then()

        done.add_done_callback(end)
        self.ping(lambda: None if done.done() else done.set_result(None))
        return True

    def lose(self) -> None:
        """End the flushes in flight: the connection broke."""
        for flush in self._flushes:
            if not flush.done():
                flush.set_exception(self._state.broken())


def _removed(commands: list[bytes], command: bytes) -> bool:
    """Remove this very command, not an equal one; return True if it was there."""
    for index, waiting in enumerate(commands):
        if waiting is command:
            del commands[index]
            return True
    return False
