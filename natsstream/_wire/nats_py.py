"""Opens nats-py connections with the fast lane in front; the only file that imports nats-py.

What lives here: what is particular to nats-py 2.16, private names included. What must not: anything
that outlives a change of client library.

Law: nats-py's errors do not leave this file. `tests/unit/wire/test_nats_py.py` fails when one of
the private names that are used here has changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from nats.aio.client import Client as NatsPyClient
from nats.aio.transport import TcpTransport
from nats.errors import Error as NatsPyError

from natsstream._wire.lane import FastLane, behind
from natsstream._wire.parser import FrameParser
from natsstream.errors import (
    AuthenticationError,
    ConnectError,
    NatsStreamError,
    ProtocolError,
    RequestTimeoutError,
)
from natsstream.options import ConnectOptions, public_url

# A lost server is tried again five times a second; nats-py's default of 2 s is what users of a
# rolling restart notice.
RECONNECT_WAIT_S = 0.2
PENDING_BYTES_MAX = 8 << 20
_PING_INTERVAL_S = 20
_CLOSE_TIMEOUT_S = 2.0
_AUTH_WORDS = ("authorization", "authentication", "user credentials")


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Whom to tell what happens to the connection."""

    on_error: Callable[[Exception], Awaitable[None]]
    on_connected: Callable[[], Awaitable[None]]
    on_disconnected: Callable[[], Awaitable[None]]
    on_closed: Callable[[], Awaitable[None]]
    on_broken: Callable[[NatsStreamError], None]


class LanedClient(NatsPyClient):
    """nats-py's client that installs the lane whenever a handshake is done."""

    def __init__(self, parser: FrameParser, on_broken: Callable[[NatsStreamError], None]) -> None:
        super().__init__()
        self._natsstream = (parser, on_broken)

    async def _process_connect_init(self) -> None:
        # nats-py forgets the tasks of a connection that broke between PONG and the first flush.
        mine = cast("Any", self)
        for task in (mine._reading_task, mine._ping_interval_task, mine._flusher_task):
            if task is not None:
                task.cancel()
        try:
            await super()._process_connect_init()
            self._install_lane()
        except (OSError, NatsPyError):
            self.abort()  # nats-py forgets the socket.
            raise
        # Anything: what a stranger sends breaks nats-py in many ways, and all but these two would
        # end its attempts to reconnect for good.
        except Exception as error:
            self.abort()
            raise NatsPyError(f"nats: no NATS handshake: {error!r}") from error

    def _install_lane(self) -> None:
        # Called between nats-py's handshake and its first read; nothing has been awaited since its
        # read task was made, so no byte can have been taken yet.
        if not isinstance(self._transport, TcpTransport):
            raise ProtocolError("the fast lane needs a TCP connection, not a WebSocket")
        streams = cast("Any", self._transport)
        transport = cast("asyncio.Transport", streams._io_writer.transport)
        received = cast("bytearray", streams._io_reader._buffer)
        early = bytes(received)
        received.clear()
        if streams._io_reader.at_eof():
            raise ConnectionResetError("the server hung up after the handshake")
        lane = FastLane(self._natsstream[0], behind(transport), self._natsstream[1])
        lane.install(transport, early)

    async def _attempt_reconnect(self) -> None:
        # nats-py waits until the old socket is closed, which a peer that has frozen with bytes on
        # their way delays until the kernel gives up, a quarter of an hour.
        self.abort()
        await super()._attempt_reconnect()

    def abort(self) -> None:
        """Drop the socket now, with all that is still to be written."""
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()


async def open_nats(
    url: str, options: ConnectOptions, parser: FrameParser, callbacks: Callbacks
) -> Any:
    """Connect to one server, once; later breaks are followed by reconnects to any of them.

    Raises:
        ConnectError: It can not be reached, or is no NATS server.
        AuthenticationError: It refused the credentials.
        RequestTimeoutError: The handshake took too long.
    """
    nats = LanedClient(parser, callbacks.on_broken)
    causes: list[Exception] = []

    async def note(error: Exception) -> None:
        causes.append(error)
        await callbacks.on_error(error)

    try:
        # nats-py bounds each step of the handshake; this bounds all of them.
        async with asyncio.timeout(2 * options.connect_timeout):
            await nats.connect(
                servers=[url],
                name=options.name,
                user=options.user,
                password=options.password,
                token=options.token,
                user_credentials=str(options.creds) if options.creds else None,
                connect_timeout=cast("int", options.connect_timeout),
                # The first connection is tried once: a wrong address shall be told at once.
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=cast("int", RECONNECT_WAIT_S),
                ping_interval=_PING_INTERVAL_S,
                pending_size=PENDING_BYTES_MAX,
                error_cb=note,
                disconnected_cb=callbacks.on_disconnected,
                reconnected_cb=callbacks.on_connected,
                closed_cb=callbacks.on_closed,
            )
            if not nats.is_connected:
                raise NatsPyError("nats: no PONG came back")
    except asyncio.CancelledError:
        nats.abort()
        raise
    except TimeoutError:
        await _discard(nats)
        raise RequestTimeoutError(
            f"no NATS handshake with {public_url(url)} within {options.connect_timeout:g} s"
        ) from None
    # Anything: what a stranger sends, or stands in a credentials file, breaks nats-py in many ways.
    except Exception as error:
        cause = causes[-1] if causes else error
        text = str(cause).removeprefix("nats: ") or repr(cause)
        await _discard(nats)
        # The server says only in words that it is about credentials.
        if any(word in text.lower() for word in _AUTH_WORDS):
            raise AuthenticationError(
                f"{public_url(url)} refused the credentials",
                detail=text,
                hint="check user, token or creds, and that the account may connect",
            ) from error
        raise ConnectError(f"no NATS server at {public_url(url)}", detail=text) from error
    nats.options["allow_reconnect"] = True
    nats.options["max_reconnect_attempts"] = -1
    discovered = [server.geturl() for server in nats.discovered_servers]
    nats.set_server_pool([*options.servers, *discovered])
    return nats


async def _discard(nats: LanedClient) -> None:
    # It never was a connection: what it meets while it closes concerns nobody.
    with suppress(Exception, TimeoutError):
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await nats.close()
    nats.abort()
