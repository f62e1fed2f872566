"""The connections of a fault proxy: bytes from one socket to another, and what may go wrong."""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from natsstream.testing.ports import HOST

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

CHUNK_BYTES_MAX = 64 * 1024
# A link of 20 ms that carries 50 MB/s has 1 MB in flight.
HELD_BYTES_MAX = 1024 * 1024
# The server's kernel may be slow to accept, as when the server is paused.
CONNECT_WAIT_S = 10.0
# How long the end of a truncated connection stays, so that the last bytes arrive before it.
LINGER_S = 1.0
# A limited rate is handed out in pieces of this many seconds.
RATE_SLICE_S = 0.05
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@dataclass(slots=True)
class Faults:
    """The faults of one direction of a proxy, and its byte count.

    Attributes:
        delay_s: Seconds from the arrival of a chunk until it is sent.
        is_stalled: True if nothing is sent.
        bytes_per_s: Most bytes a second of one connection; 0 is no limit.
        bytes_left: Bytes until a connection is truncated; None is no truncation.
        n_bytes: Bytes forwarded since the proxy started.
    """

    delay_s: float = 0.0
    is_stalled: bool = False
    bytes_per_s: int = 0
    bytes_left: int | None = None
    n_bytes: int = 0

    def heal(self) -> None:
        """End all faults; the byte count stays."""
        self.delay_s, self.is_stalled, self.bytes_per_s, self.bytes_left = 0.0, False, 0, None


class Pipe:
    """One direction of one connection."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        source: socket.socket,
        sink: socket.socket,
        faults: Faults,
        connection: Connection,
    ) -> None:
        self._loop = loop
        self._source = source
        self._sink = sink
        self._faults = faults
        self._connection = connection
        self._held: deque[tuple[float, memoryview]] = deque()
        self._n_held = 0
        self._next_send = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._reads = False
        self._waits_for_sink = False
        self._source_has_ended = False
        self.is_done: bool = False

    @property
    def n_held(self) -> int:
        """Bytes that were read and not sent yet."""
        return self._n_held

    def pump(self) -> None:
        """Send what may go now, and wait for what the next step needs; run on the loop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.is_done:
            return
        waits_for_sink = False
        while self._held and not self._faults.is_stalled:
            wait_s = self._seconds_until_due()
            if wait_s > 0:
                self._timer = self._loop.call_later(wait_s, self.pump)
                break
            try:
                n_sent = self._sink.send(self._next_piece())
            except (BlockingIOError, InterruptedError):
                waits_for_sink = True
                break
            except OSError:
                self._connection.abort()
                return
            if self._account(n_sent):
                self._connection.truncate(self._source, self._sink)
                return
        self._watch_sink(waits_for_sink=waits_for_sink)
        self._listen_or_end()

    def inject(self, data: bytes) -> None:
        """Send bytes that nobody wrote, behind those that are held; a closed pipe sends nothing."""
        if not self.is_done and not self._source_has_ended:
            self._held.append((self._loop.time(), memoryview(data)))
            self._n_held += len(data)
            self.pump()

    def close(self) -> None:
        """Forget what is held and wait for nothing more; the sockets stay open."""
        if self.is_done:
            return
        self.is_done = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._held.clear()
        self._n_held = 0
        self._watch_source(is_wanted=False)
        self._watch_sink(waits_for_sink=False)

    def _listen_or_end(self) -> None:
        if self._source_has_ended:
            if not self._held and not self._faults.is_stalled:
                self.close()
                with contextlib.suppress(OSError):
                    self._sink.shutdown(socket.SHUT_WR)
                self._connection.close_when_done()
        else:
            has_room = self._n_held < HELD_BYTES_MAX
            self._watch_source(is_wanted=has_room and not self._faults.is_stalled)

    def _watch_source(self, *, is_wanted: bool) -> None:
        # Changing what the selector watches costs more than the send itself.
        if is_wanted == self._reads:
            return
        self._reads = is_wanted
        if is_wanted:
            self._loop.add_reader(self._source, self._on_readable)
        else:
            self._loop.remove_reader(self._source)

    def _watch_sink(self, *, waits_for_sink: bool) -> None:
        if waits_for_sink == self._waits_for_sink:
            return
        self._waits_for_sink = waits_for_sink
        if waits_for_sink:
            self._loop.add_writer(self._sink, self.pump)
        else:
            self._loop.remove_writer(self._sink)

    def _on_readable(self) -> None:
        try:
            data = self._source.recv(CHUNK_BYTES_MAX)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._connection.abort()
            return
        if data:
            self._held.append((self._loop.time(), memoryview(data)))
            self._n_held += len(data)
        else:
            self._source_has_ended = True
            self._watch_source(is_wanted=False)
        self.pump()

    def _seconds_until_due(self) -> float:
        arrived = self._held[0][0]
        due = arrived + self._faults.delay_s
        if self._faults.bytes_per_s:
            due = max(due, self._next_send)
        return due - self._loop.time()

    def _next_piece(self) -> memoryview:
        piece = self._held[0][1]
        if self._faults.bytes_per_s:
            piece = piece[: max(1, int(self._faults.bytes_per_s * RATE_SLICE_S))]
        if self._faults.bytes_left is not None:
            piece = piece[: self._faults.bytes_left]
        return piece

    def _account(self, n_sent: int) -> bool:
        """Remove sent bytes from the buffer; return True if the connection is to be truncated."""
        arrived, chunk = self._held.popleft()
        if n_sent < len(chunk):
            self._held.appendleft((arrived, chunk[n_sent:]))
        self._n_held -= n_sent
        faults = self._faults
        faults.n_bytes += n_sent
        if faults.bytes_per_s:
            self._next_send = self._loop.time() + n_sent / faults.bytes_per_s
        if faults.bytes_left is None:
            return False
        faults.bytes_left -= n_sent
        if faults.bytes_left > 0:
            return False
        faults.bytes_left = None
        return True


class Connection:
    """A client's connection and the one to the server behind it."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        client: socket.socket,
        to_server: Faults,
        to_client: Faults,
        on_closed: Callable[[Connection], None],
    ) -> None:
        """Take over an accepted socket, which does not block.

        Args:
            loop: The loop that all methods run on.
            client: The accepted socket.
            to_server: Faults of the bytes from the client.
            to_client: Faults of the bytes from the server.
            on_closed: Called once when both sockets are closed.
        """
        self._loop = loop
        self._client = client
        self._server = socket.socket()
        self._server.settimeout(0)
        for end in (client, self._server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pipes = (
            Pipe(loop, client, self._server, to_server, self),
            Pipe(loop, self._server, client, to_client, self),
        )
        self._on_closed = on_closed
        self._timer: asyncio.TimerHandle | None = loop.call_later(CONNECT_WAIT_S, self.abort)
        self._is_connecting = False
        self._is_connected = False
        self._is_closed = False

    @property
    def n_held(self) -> int:
        """Bytes of both directions that were read and not sent yet."""
        return sum(pipe.n_held for pipe in self._pipes)

    def connect(self, port: int) -> None:
        """Begin to connect to the server, once; forwarding begins when that is done.

        A connection that does not get there within 10 s of its beginning is reset.
        """
        if self._is_connecting or self._is_closed:
            return
        self._is_connecting = True
        code = self._server.connect_ex((HOST, port))
        if code in {0, errno.EINPROGRESS}:
            self._loop.add_writer(self._server, self._on_connected)
        else:
            self.abort()

    def pump(self) -> None:
        """Let both directions see that their faults have changed."""
        if self._is_connected:
            for pipe in self._pipes:
                pipe.pump()

    def inject(self, data: bytes, *, to_server: bool) -> None:
        """Send bytes in one direction that its sender did not write."""
        if self._is_connected:
            self._pipes[0 if to_server else 1].inject(data)

    def abort(self) -> None:
        """Close both sockets at once, as a crash would: the other ends see a reset."""
        for end in (self._client, self._server):
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self._close()

    def close_when_done(self) -> None:
        """Close both sockets when both directions have come to their end."""
        if all(pipe.is_done for pipe in self._pipes):
            self._close()

    def truncate(self, source: socket.socket, sink: socket.socket) -> None:
        """End the connection so that the receiver gets all bytes that were sent, and no more.

        A reset would throw away what the receiver has not got yet, so its side ends in good order,
        and is closed a second later; the sender's side is reset at once.
        """
        for pipe in self._pipes:
            pipe.close()
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            source.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        source.close()
        self._timer = self._loop.call_later(LINGER_S, self.abort)

    def _on_connected(self) -> None:
        self._loop.remove_writer(self._server)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not _is_connected_to_another(self._server):
            self.abort()
            return
        self._is_connected = True
        self.pump()

    def _close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if not self._is_connected:
            self._loop.remove_writer(self._server)
        for pipe in self._pipes:
            pipe.close()
        self._client.close()
        self._server.close()
        self._on_closed(self)


def _is_connected_to_another(end: socket.socket) -> bool:
    """Return True if a connection attempt went well, and not to itself.

    Where nobody listens, the kernel may give a socket the very port that it dials as its own end,
    and TCP then connects it to itself.
    """
    if end.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        return False
    try:
        return end.getsockname() != end.getpeername()
    except OSError:
        return False  # It was reset meanwhile.
