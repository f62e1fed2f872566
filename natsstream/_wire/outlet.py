"""The way out of one connection: bytes to the socket, or to the next one; pings and their flushes.

What lives here: writing in order, taking back what waits, waiting for room and for the server. What
must not: what the bytes mean, answers (`requests.py`), and the state of the connection (`life.py`).

Law: bytes leave in the order in which they were written, also around nats-py's own queue; what
waits for a server has a limit; each flush settles, by its PONG or by the end of the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from natsstream._wire.life import PENDING_BYTES_MAX, Life
from natsstream.errors import ConnectionLostError, RequestTimeoutError

if TYPE_CHECKING:
    from natsstream._wire.nats_py import Link

# asyncio's own high-water mark, above which it asks writers to wait.
_CONGESTED_BYTES = 64 << 10


class Outlet:
    """Writes to whatever server is connected, by nats-py's transport."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._link: Link | None = None
        self._nats: Any = None
        self._flushes: set[asyncio.Future[None]] = set()

    def open(self, link: Link) -> None:
        """Write to this connection from now on."""
        self._link = link
        self._nats = link.nats

    @property
    def has_server(self) -> bool:
        """True while what is written goes to a server, and not into the queue for the next one."""
        # nats-py and the life of the connection learn of a broken socket some steps after it.
        transport = self._link.transport if self._link is not None else None
        is_leaving = transport is not None and transport.is_closing()
        return self._life.is_connected and self._nats.is_connected and not is_leaving

    @property
    def is_congested(self) -> bool:
        """True while written bytes wait for room in the socket."""
        transport = self._link.transport if self._link is not None else None
        return transport is not None and transport.get_write_buffer_size() > _CONGESTED_BYTES

    def write(self, commands: bytes) -> bool:
        """Send protocol bytes, in order, now or after a reconnect; see `Client.write`."""
        nats = self._nats
        transport = self._link.transport if self._link is not None else None
        is_leaving = transport is not None and transport.is_closing()
        if transport and not is_leaving and self._life.is_connected and nats.is_connected:
            # nats-py's own way costs a task switch; the transport keeps the order. What nats-py
            # has queued goes first: its flusher may wait for room in the socket.
            if nats._pending:
                transport.writelines(nats._pending)
                nats._pending = []
                nats._pending_data_size = 0
            transport.write(commands)
            return True
        self._life.check_open()
        if nats._pending_data_size + len(commands) > PENDING_BYTES_MAX:
            raise ConnectionLostError(
                "not connected, and 8 MiB of writes wait for a server already",
                hint="write less while no server is there: js.events() tells of it",
                retryable=True,
            )
        nats._pending.append(commands)
        nats._pending_data_size += len(commands)
        if nats.is_connected and not is_leaving and nats._flush_queue.empty():
            nats._flush_queue.put_nowait(asyncio.get_running_loop().create_future())
        return False

    def take_back(self, command: bytes) -> None:
        """Forget a command that still waits for a connection: nobody waits for its answer.

        Otherwise a server that comes back would do what its caller has long been told has failed.
        """
        nats = self._nats
        for index, waiting in enumerate(nats._pending):
            if waiting is command:
                del nats._pending[index]
                nats._pending_data_size -= len(command)
                return

    async def drain(self, timeout: float) -> None:
        """Wait until the socket has room; see `Client.drain`."""
        if not self._life.is_connected:
            return
        with suppress(OSError):  # A broken connection shows itself by its own event.
            try:
                async with asyncio.timeout(timeout):
                    await self._nats._transport.drain()
            except TimeoutError:
                raise ConnectionLostError(
                    "the server reads nothing", hint="is it paused or overloaded?", retryable=True
                ) from None

    def ping(self, on_pong: Callable[[], None]) -> None:
        """Send a PING; what is given is called when its PONG comes, or never comes."""
        # nats-py gets a future of its own: it breaks when one of its list is done before.
        pong: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        pong.add_done_callback(lambda _: on_pong())
        self.write(b"PING\r\n")
        self._nats._pongs.append(pong)  # Behind it: one without its PING would be answered late.

    async def flush(self, timeout: float) -> None:
        """Wait until the server has handled all that was written; see `Client.flush`."""
        self._life.check_open()
        if not self.has_server:
            raise self._life.broken()
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._flushes.add(done)
        try:
            self.ping(lambda: None if done.done() else done.set_result(None))
            async with asyncio.timeout(timeout):
                await done
        except TimeoutError:
            raise RequestTimeoutError(
                f"{self._life.url} did not answer a ping within {timeout:g} s", retryable=True
            ) from None
        finally:
            self._flushes.discard(done)

    def lose(self) -> None:
        """End the flushes under way: the connection broke."""
        for flush in self._flushes:
            if not flush.done():
                flush.set_exception(self._life.broken())
