"""Opens nats-py connections with the fast lane in front; the only file that imports nats-py.

What lives here: what is particular to nats-py 2.16, private names included. What must not: anything
that outlives a change of client library.

Law: nats-py's errors do not leave this file. `tests/unit/wire/test_nats_py.py` fails when one of
the private names that are used here has changed.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import Any, Protocol, cast

from nats.aio.client import Client as NatsPyClient
from nats.aio.transport import TcpTransport
from nats.errors import Error as NatsPyError
from nats.errors import NoServersError

from natsstream._wire.lane import FastLane, behind
from natsstream._wire.login import (
    demand_tls,
    login_arguments,
    silence_hint,
    tls_failure,
)
from natsstream._wire.parser import LINE_BYTES_MAX, FrameParser
from natsstream._wire.refusals import is_about_credentials
from natsstream.errors import (
    AuthenticationError,
    ConfigError,
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
# Credentials that every server has refused this often in a row are given up (ADR-40).
_REFUSALS_MAX = 2
# The watchdog pings; nats-py's own timer can not leave a peer that has frozen.
_NEVER_S = 1 << 24
_CLOSE_TIMEOUT_S = 2.0


class Host(Protocol):
    """Whom to tell what happens to the connection."""

    def on_heard(self) -> None: ...
    async def on_error(self, error: Exception) -> None: ...
    async def on_connected(self) -> None: ...
    async def on_disconnected(self) -> None: ...
    async def on_closed(self) -> None: ...
    async def on_lame_duck(self) -> None: ...
    async def on_servers(self) -> None: ...
    def on_broken(self, error: NatsStreamError) -> None: ...
    def on_refused(self, error: NatsStreamError) -> None: ...


class Link(Protocol):
    """What a client holds of its connection."""

    @property
    def nats(self) -> Any:
        """nats-py's client."""
        ...

    @property
    def has_lane(self) -> bool:
        """True while frames come through the fast lane."""
        ...

    @property
    def transport(self) -> asyncio.Transport | None:
        """Where bytes may be written past nats-py; None where they must not."""
        ...

    def abort(self) -> None:
        """Drop the socket now, with all that is still to be written; a reconnect follows."""
        ...

    async def close(self) -> None:
        """Give the connection up in good order."""
        ...

    def discard(self) -> None:
        """Free what `close` could not, without a wait."""
        ...


class LanedClient(NatsPyClient):
    """nats-py's client that installs the lane whenever a handshake is done."""

    def __init__(self, parser: FrameParser, host: Host) -> None:
        super().__init__()
        self._natsstream = (parser, host)
        self._refusals = 0

    async def _process_connect_init(self) -> None:
        # nats-py forgets the tasks of a connection that broke between PONG and the first flush.
        mine = cast("Any", self)
        for task in (mine._reading_task, mine._ping_interval_task, mine._flusher_task):
            if task is not None:
                task.cancel()
        try:
            # A server of a large cluster greets with more than asyncio's limit for a line.
            mine._transport._io_reader._limit = LINE_BYTES_MAX
            await super()._process_connect_init()
            install_lane(self, *self._natsstream)
        except (OSError, NatsPyError, TimeoutError) as error:
            self.abort()  # nats-py forgets the socket.
            self._count_refusal(error)
            raise
        # Anything: what a stranger sends breaks nats-py in many ways, and all but these two would
        # end its attempts to reconnect for good.
        except Exception as error:
            self.abort()
            raise NatsPyError(f"nats: no NATS handshake: {error!r}") from error
        self._refusals = 0

    def _count_refusal(self, error: Exception) -> None:
        """End the attempts to reconnect with credentials that are refused again and again."""
        text = str(error).removeprefix("nats: ")
        self._refusals = self._refusals + 1 if is_about_credentials(text) else 0
        # At first, `open_nats` tells the caller at once.
        if not self.options["allow_reconnect"]:
            return
        if self._refusals > _REFUSALS_MAX * len(self._server_pool):
            self._natsstream[1].on_refused(
                AuthenticationError(
                    "the servers refuse the credentials that they took before",
                    detail=text,
                    hint="have they expired or been revoked? Connect again with new ones",
                )
            )
            raise NoServersError

    async def _attempt_reconnect(self) -> None:
        # nats-py waits until the old socket is closed, which a peer that has frozen with bytes on
        # their way delays until the kernel gives up, a quarter of an hour.
        self.abort()
        pool = self._server_pool
        random.shuffle(pool)
        # The server that was lost comes last: connecting to a frozen one costs a whole timeout.
        pool.sort(key=lambda server: server is self._current_server)
        await super()._attempt_reconnect()

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - nats-py's signature.
        if initial_connection and "tls" in self.options and not self.options["tls_handshake_first"]:
            demand_tls(info)
        await super()._process_info(info, initial_connection)
        if not initial_connection:
            # A reload changes limits; nats-py goes on with the old ones.
            self._server_info.update(info)
            self._max_payload = info.get("max_payload", self._max_payload)

    async def _process_err(self, err_msg: str) -> None:
        # The host knows it by the lane already. nats-py would close the connection for good; the
        # server does so where it means to, and then there are others.
        del err_msg

    @property
    def nats(self) -> Any:
        """This client itself."""
        return self

    @property
    def has_lane(self) -> bool:
        """True: without a lane there is no connection."""
        return True

    @property
    def transport(self) -> asyncio.Transport | None:
        """The socket's transport."""
        return cast("Any", self._transport)._io_writer.transport

    def abort(self) -> None:
        """Drop the socket now, with all that is still to be written."""
        abort_transport(self._transport)

    def discard(self) -> None:
        """Drop the socket, if `close` could not."""
        self.abort()


def install_lane(nats: Any, parser: FrameParser, host: Host) -> None:
    """Put the lane in front of a connection whose handshake is done.

    Raises:
        ProtocolError: It is a WebSocket.
        ConnectionResetError: The server has hung up.
    """
    # Called between nats-py's handshake and its first read; nothing has been awaited since its
    # read task was made, so no byte can have been taken yet.
    if not isinstance(nats._transport, TcpTransport):
        raise ProtocolError("the fast lane needs a TCP connection, not a WebSocket")
    streams = cast("Any", nats._transport)
    transport = cast("asyncio.Transport", streams._io_writer.transport)
    received = cast("bytearray", streams._io_reader._buffer)
    early = bytes(received)
    received.clear()
    if streams._io_reader.at_eof():
        raise ConnectionResetError("the server hung up after the handshake")
    lane = FastLane(parser, behind(transport), host.on_broken, host.on_heard)
    lane.install(transport, early)


def abort_transport(streams: object) -> None:
    """Abort the socket under nats-py's transport, if it has one."""
    writer = getattr(streams, "_io_writer", None)
    if writer is not None:
        writer.transport.abort()


async def open_nats(
    url: str, options: ConnectOptions, parser: FrameParser, host: Host
) -> LanedClient:
    """Connect to one server, once; later breaks are followed by reconnects to any of them.

    Raises:
        ConnectError: It can not be reached, or is no NATS server.
        AuthenticationError: It refused the credentials.
        ConfigError: A file with credentials or certificates holds none.
        RequestTimeoutError: The handshake took too long.
        TlsError: TLS is asked for and there is none, or a certificate is not trusted.
    """
    login = login_arguments(options)
    nats = LanedClient(parser, host)
    causes: list[Exception] = []

    async def note(error: Exception) -> None:
        causes.append(error)
        await host.on_error(error)

    try:
        # nats-py bounds each step of the handshake; this bounds all of them.
        async with asyncio.timeout(2 * options.connect_timeout):
            await nats.connect(
                servers=[url],
                name=options.name,
                connect_timeout=cast("int", options.connect_timeout),
                # The first connection is tried once: a wrong address shall be told at once.
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=cast("int", RECONNECT_WAIT_S),
                dont_randomize=True,
                ping_interval=_NEVER_S,
                pending_size=PENDING_BYTES_MAX,
                error_cb=note,
                disconnected_cb=host.on_disconnected,
                reconnected_cb=host.on_connected,
                closed_cb=host.on_closed,
                discovered_server_cb=host.on_servers,
                lame_duck_mode_cb=host.on_lame_duck,
                **login,
            )
            if not nats.is_connected:
                raise NatsPyError("nats: no PONG came back")
    except asyncio.CancelledError:
        nats.abort()
        raise
    except TimeoutError:
        await _discard(nats)
        raise RequestTimeoutError(
            f"no NATS handshake with {public_url(url)} within {options.connect_timeout:g} s",
            hint=silence_hint(options),
        ) from None
    except Exception as error:  # noqa: BLE001 - What a stranger sends breaks nats-py in many ways.
        info: object = nats.nats._server_info
        await _discard(nats)
        failure = _failure(url, causes[-1] if causes else error, options, info)
        raise failure from None if isinstance(failure, ConfigError) else error
    nats.options["allow_reconnect"] = True
    nats.options["max_reconnect_attempts"] = -1
    discovered = [server.geturl() for server in nats.discovered_servers]
    # The new pool forgets whose certificate a server that was told of by its address has.
    names = {server.uri.netloc: server.tls_name for server in nats.nats._server_pool}
    nats.set_server_pool([*options.servers, *discovered])
    for server in nats.nats._server_pool:
        server.tls_name = names.get(server.uri.netloc)
    return nats


def _failure(url: str, cause: Exception, options: ConnectOptions, info: object) -> NatsStreamError:
    """Return what it means that a first connection did not come about."""
    for each in (cause, cause.__cause__):
        if isinstance(each, ConfigError):
            return each
    text = str(cause).removeprefix("nats: ") or repr(cause)
    # The server says only in words that it is about credentials.
    if is_about_credentials(text):
        return AuthenticationError(
            f"{public_url(url)} refused the credentials",
            detail=text,
            hint="check user, token or creds, and that the account may connect",
        )
    no_tls = tls_failure(url, cause, options, info)
    return no_tls or ConnectError(f"no NATS server at {public_url(url)}", detail=text)


async def _discard(nats: LanedClient) -> None:
    # It never was a connection: what it meets while it closes concerns nobody. nats-py would wait
    # for ever for the end of a TLS handshake that failed.
    nats.abort()
    nats.nats._transport = None
    with suppress(Exception, TimeoutError):
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await nats.close()
