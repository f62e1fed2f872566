"""The fast lane: an asyncio protocol between a socket and nats-py.

nats-py opens the connection, speaks TLS and CONNECT, and reconnects. Once it is connected the lane
takes the transport's protocol over: frames of subscriptions with a sink go straight to the sink,
all other bytes go to nats-py's own stream reader as if the lane were not there.

Law: one copy from the socket's buffer, no task and no future for a message.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from natsstream._wire.parser import FrameParser
from natsstream.errors import NatsStreamError, ProtocolError

_log = logging.getLogger("natsstream.connection")

# 1 MiB is where framing with numpy is cheapest: 64 KiB costs five times as much a message, 4 MiB
# falls out of the second-level cache. One buffer a connection.
BLOCK_BYTES = 1 << 20
# How long received bytes may wait for a block to fill while columns are read. A pull's last bytes
# always wait that long, so it is far below anything that a person or a Spark batch notices.
BLOCK_WAIT_S = 0.001


class FastLane(asyncio.BufferedProtocol):
    """Receives for one connection; stands in front of the protocol that nats-py made.

    Args:
        parser: Holds the sinks; it outlives this object, which is made anew for each reconnect.
        behind: nats-py's protocol, which gets all bytes that are for no sink.
        on_broken: Called once when the peer sends what is not NATS; the connection is aborted.
        on_heard: Called whenever bytes arrive.
    """

    def __init__(
        self,
        parser: FrameParser,
        behind: asyncio.Protocol,
        on_broken: Callable[[NatsStreamError], None],
        on_heard: Callable[[], None],
    ) -> None:
        self._parser = parser
        self._behind = behind
        self._on_broken = on_broken
        self._on_heard = on_heard
        self._buffer = bytearray(BLOCK_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self._needed = 1
        self._passing = 0
        self._flush: asyncio.TimerHandle | None = None
        self._transport: asyncio.Transport | None = None
        self._is_broken = False

    def install(self, transport: asyncio.Transport, early: bytes, *, passing: int = 0) -> None:
        """Take over a transport whose handshake is done.

        Args:
            transport: The connection's transport.
            early: Bytes that nats-py's reader has received but nobody has read.
            passing: Bytes from here on that belong to a frame that nats-py has begun to read.
        """
        self._transport = transport
        self._passing = passing
        transport.set_protocol(self)
        if early:
            self._grow(len(early))
            self._view[: len(early)] = early
            self.buffer_updated(len(early))

    def uninstall(self) -> None:
        """Give the transport back to nats-py, with the part of a frame that has arrived."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        rest, self._filled = bytes(self._view[: self._filled]), 0
        if self._transport is not None and not self._transport.is_closing():
            self._transport.set_protocol(self._behind)
            if rest:
                self._behind.data_received(rest)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the free part of the buffer; never empty."""
        del sizehint
        if self._filled == len(self._buffer):
            # By what has come, not by what a frame claims to be; no further than a frame needs.
            doubled = 2 * self._filled
            self._grow(min(doubled, self._needed) if self._needed > self._filled else doubled)
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Parse what has arrived, now or once a block is full."""
        self._on_heard()
        self._filled += nbytes
        if self._filled < self._needed:
            return
        if self._filled < BLOCK_BYTES and self._parser.wants_full_blocks:
            if self._flush is None:
                self._flush = asyncio.get_running_loop().call_later(BLOCK_WAIT_S, self._parse)
            return
        self._parse()

    def _parse(self) -> None:
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        if self._filled < self._needed or self._is_broken:
            return
        if self._passing:
            self._pass()
            return
        data = bytes(self._view[: self._filled])
        try:
            consumed, self._needed, passed, failure = self._parser.parse(data)
        except Exception as error:  # noqa: BLE001 - told to the client, who reconnects.
            # A sink failed, and some frames of `data` may have been handed out: never twice.
            self._break(ProtocolError("a frame could not be handled", detail=repr(error)))
            return
        rest = self._filled - consumed
        self._view[:rest] = self._view[consumed : self._filled]
        self._filled = rest
        if passed:
            self._behind.data_received(passed)
        if failure is not None:
            self._break(failure)

    def _pass(self) -> None:
        """Hand the rest of a frame to nats-py, and go on behind it."""
        count = min(self._passing, self._filled)
        rest = bytes(self._view[count : self._filled])
        self._behind.data_received(bytes(self._view[:count]))
        self._passing -= count
        self._view[: len(rest)] = rest
        self._filled = len(rest)
        if rest:
            self._parse()

    def _grow(self, size: int) -> None:
        if size <= len(self._buffer):
            return
        grown = bytearray(size)
        grown[: self._filled] = self._view[: self._filled]
        self._buffer, self._view = grown, memoryview(grown)

    def _break(self, error: NatsStreamError) -> None:
        self._is_broken = True
        _log.error("connection aborted: %s", error)
        self._on_broken(error)
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Tell nats-py's protocol; asyncio does not call this on `set_protocol`."""
        self._behind.connection_made(transport)

    def eof_received(self) -> bool | None:
        """Parse what is left, then tell nats-py."""
        self._parse()
        keep_open = self._behind.eof_received()
        # asyncio's TLS knows no half of a connection, and warns of whoever keeps one open.
        is_tls = self._transport is not None and self._transport.get_extra_info("sslcontext")
        return None if is_tls else keep_open

    def connection_lost(self, exc: Exception | None) -> None:
        """Parse what is left, then tell nats-py."""
        self._parse()
        self._behind.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass the transport's back-pressure on to nats-py's writer."""
        self._behind.pause_writing()

    def resume_writing(self) -> None:
        """Pass the transport's back-pressure on to nats-py's writer."""
        self._behind.resume_writing()


def behind(transport: asyncio.Transport) -> asyncio.Protocol:
    """Return the protocol that receives for a transport now."""
    # A StreamReaderProtocol: nats-py reads through asyncio streams.
    return cast("asyncio.Protocol", transport.get_protocol())
