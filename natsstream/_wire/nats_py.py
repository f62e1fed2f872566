"""Opens nats-py connections with the fast lane in front; the only file that imports nats-py.

Law: nats-py's errors do not leave this file. `tests/unit/wire/test_nats_py.py` fails when one of
the private names that are used here has changed.
"""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from natsstream._wire.auth import (
    UNREACHABLE_HINT,
    auth_arguments,
    demand_tls,
    silence_hint,
    tls_failure,
)
from natsstream._wire.connection_state import CLOSE_TIMEOUT_S, PENDING_BYTES_MAX
from natsstream._wire.lane import FastLane, behind
from natsstream._wire.lazy_aiohttp import aiohttp_on_use
from natsstream._wire.parser import LINE_BYTES_MAX, FrameParser
from natsstream._wire.permission_violations import is_about_credentials
from natsstream._wire.server_info import settle_info
from natsstream.errors import (
    AuthenticationError,
    ConfigError,
    ConnectError,
    NatsStreamError,
    ProtocolError,
    RequestTimeoutError,
)
from natsstream.options import ConnectOptions, has_sign_in, public_url

with aiohttp_on_use():
    from nats.aio.client import Client as NatsPyClient
    from nats.aio.subscription import Subscription
    from nats.aio.transport import TcpTransport
    from nats.errors import Error as NatsPyError
    from nats.errors import NoServersError

# A lost server is tried again five times a second; nats-py's default of 2 s is what users of a
# rolling restart notice.
RECONNECT_WAIT_S = 0.2
DEFAULT_PORT = 4222
# Credentials that the servers have refused more often than this, each, are given up (ADR-40).
_REFUSALS_MAX = 2
# The watchdog pings; nats-py's own timer cannot leave a peer that has frozen.
_NEVER_S = 1 << 24
_ACKS = b"$JS.ACK."
# Between two cancellations of what has swallowed the first.
_CANCEL_AGAIN_S = 0.02
# A loop that ends cancels all tasks; by then it is closed.
_RENEW_WAIT_S = 0.1


class ConnectionListener(Protocol):
    """Whom to tell what happens to the connection."""

    def on_heard(self) -> None: ...
    async def on_error(self, error: Exception) -> None: ...
    async def on_connected(self) -> None: ...
    async def on_disconnected(self) -> None: ...
    async def on_closed(self) -> None: ...
    async def on_lame_duck(self) -> None: ...
    async def on_servers(self) -> None: ...
    def on_broken(self, error: NatsStreamError) -> None: ...
    def on_unsent(self, count: int) -> None: ...
    def on_refused(self, error: NatsStreamError) -> None: ...


class NatsPyLink(Protocol):
    """A connection, as the client uses it."""

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

    def add_subscription(self, subject: str, queue: str) -> bytes:
        """Number a subscription that is made again after each reconnect; the caller sends SUB."""
        ...

    def remove_subscription(self, sid: bytes) -> None:
        """Do not make it again."""
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
    """nats-py's client that installs the lane whenever a handshake is done.

    Attributes:
        transport: The socket's transport, of the last one while there is none.
    """

    def __init__(self, parser: FrameParser, listener: ConnectionListener) -> None:
        super().__init__()
        self._natsstream = (parser, listener)
        self._refusals = 0
        self._is_over = False
        self.transport: asyncio.Transport | None = None

    async def _close(self, status: int, do_cbs: bool = True) -> None:  # noqa: FBT001, FBT002 - nats-py's signature.
        # A cancellation may be lost in `wait_for` of Python 3.11, and nats-py cancels only once:
        # its attempts to reconnect would outlive the connection, or forget a socket.
        self._is_over = True
        self._drop_waiting()
        tasks = {*self._tasks(), cast("Any", self)._reconnection_task}
        tasks -= {None, asyncio.current_task()}
        while pending := {task for task in tasks if task is not None and not task.done()}:
            for task in pending:
                task.cancel()
            await asyncio.wait(pending, timeout=_CANCEL_AGAIN_S)
        self._drop_waiting()  # Readers that end write as well.
        await super()._close(status, do_cbs)

    def _drop_waiting(self) -> None:
        """Drop what waits for a server that will not come.

        nats-py would write it to a socket that is gone: the error would end its close before it
        calls back.
        """
        if self.is_connected or self.is_closed:
            return
        mine = cast("Any", self)
        waiting, mine._pending, mine._pending_data_size = mine._pending, [], 0
        if count := count_messages(waiting):
            self._natsstream[1].on_unsent(count)

    async def _process_connect_init(self) -> None:
        # nats-py forgets the tasks of a connection that broke between PONG and the first flush.
        mine = cast("Any", self)
        for task in self._tasks():
            if task is not None:
                task.cancel()
        try:
            self._check_wanted()
            # A server of a large cluster greets with more than asyncio's limit for a line.
            mine._transport._io_reader._limit = LINE_BYTES_MAX
            mine._transport.readline = _past_pings(mine._transport)
            await super()._process_connect_init()
            self._check_wanted()
            self.transport = install_lane(self, *self._natsstream)
            for task in self._tasks():
                self._keep(task)
        except (OSError, NatsPyError, TimeoutError) as error:
            self.abort()  # nats-py forgets the socket.
            self._count_refusal(error)
            raise
        except asyncio.CancelledError:
            self.abort()
            raise
        # Anything: what a stranger sends breaks nats-py in many ways, and all but these two would
        # end its attempts to reconnect for good.
        except Exception as error:
            self.abort()
            raise NatsPyError(f"nats: no NATS handshake: {error!r}") from error
        self._refusals = 0

    def _check_wanted(self) -> None:
        """Leave a connection that was closed while it was made."""
        if self._is_over:
            self.discard()
            raise asyncio.CancelledError

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
                    "the servers refuse credentials that they accepted before",
                    detail=text,
                    hint="they may be expired or revoked: connect again with new ones",
                )
            )
            raise NoServersError

    async def _attempt_reconnect(self) -> None:
        # nats-py waits until the old socket is closed, which a peer that has frozen with bytes on
        # their way delays until the kernel gives up, a quarter of an hour. Cancelled in that wait,
        # it would break the wait of `close` too, which awaits the same future.
        self.abort()
        self._transport = None
        pool = self._server_pool
        random.shuffle(pool)
        # The server that was lost comes last: connecting to a frozen one costs a whole timeout.
        pool.sort(key=lambda server: server is self._current_server)
        await super()._attempt_reconnect()
        if self._is_over:
            self.discard()

    async def _read_loop(self) -> None:
        await super()._read_loop()
        # Unexpected input ends nats-py's loop; the server's pings would get no PONG.
        task = asyncio.current_task()
        is_cancelled = task is not None and task.cancelling() > 0  # nats-py swallows it.
        if self.is_connected and task is self._tasks()[0] and not is_cancelled:
            await self._process_op_err(NatsPyError("nats: what the server sent cannot be read"))

    async def _process_op_err(self, e: Exception) -> None:
        # nats-py reports an end of file, but no reset.
        await self._natsstream[1].on_error(e)
        before = cast("Any", self)._reconnection_task
        await super()._process_op_err(e)
        task = cast("Any", self)._reconnection_task
        if task is not before:  # Else one more error of an outage.
            self._keep(task)

    def _keep(self, task: asyncio.Task[None] | None) -> None:
        """Begin a task again that is cancelled, as by programs that cancel all but their own.

        Without it nothing would be read, or no server be tried again.
        """
        if task is not None:
            task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if self._missed(task):
            asyncio.get_running_loop().call_later(_RENEW_WAIT_S, self._renew, task)

    def _renew(self, task: asyncio.Task[None]) -> None:
        for name, begin in self._missed(task).items():
            setattr(self, name, asyncio.ensure_future(begin()))
            self._keep(getattr(self, name))

    def _missed(
        self, task: asyncio.Task[None]
    ) -> dict[str, Callable[[], Coroutine[Any, Any, None]]]:
        """Return how to begin a task that has ended and is needed; nothing for any other."""
        needed = {"_reconnection_task": self._attempt_reconnect}
        if self.is_connected:
            needed = {
                "_reading_task": self._read_loop,
                "_ping_interval_task": self._ping_interval,
                "_flusher_task": self._flusher,
            }
        elif not self.is_reconnecting:
            return {}
        is_over = self._is_over
        return {
            name: begin
            for name, begin in needed.items()
            if not is_over and getattr(self, name) is task
        }

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - nats-py's signature.
        settle_info(info)
        if told := cast("list[str] | None", info.get("connect_urls")):
            info["connect_urls"] = self._unknown_urls(told)
        if initial_connection and "tls" in self.options and not self.options["tls_handshake_first"]:
            demand_tls(info)
        await super()._process_info(info, initial_connection)
        if not initial_connection:
            # A reload changes limits; nats-py keeps the old ones.
            self._server_info.update(info)
            self._max_payload = info.get("max_payload", self._max_payload)

    def _unknown_urls(self, told: list[str]) -> list[str]:
        """Forget servers that have left the cluster; return those that are not known yet."""
        pool = self._server_pool
        given = {address_of(server.uri.netloc) for server in pool if not server.discovered}
        found = {url: address for url in told if (address := address_of(url))}
        # In place: nats-py may be in the middle of a round through it.
        pool[:] = [
            server
            for server in pool
            if not server.discovered
            or server is self._current_server
            or not found
            or server.uri.netloc in found
        ]
        known = {server.uri.netloc for server in pool}
        return [url for url, address in found.items() if address not in given and url not in known]

    async def _process_err(self, err_msg: str) -> None:
        # The lane has reported it already. nats-py would close the connection for good; the
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

    def abort(self) -> None:
        """Drop the socket now, with all that is still to be written."""
        abort_transport(self._transport)

    def add_subscription(self, subject: str, queue: str) -> bytes:
        """Number a subscription that is made again after each reconnect."""
        return add_subscription(self, subject, queue)

    def remove_subscription(self, sid: bytes) -> None:
        """Do not make it again."""
        self._remove_sub(int(sid))

    def discard(self) -> None:
        """Drop the socket and nats-py's tasks, if `close` could not."""
        mine = cast("Any", self)
        self._is_over = True
        mine._status = NatsPyClient.CLOSED
        for task in (*self._tasks(), mine._reconnection_task):
            if task is not None:
                task.cancel()
        self.abort()

    def _tasks(self) -> list[asyncio.Task[None] | None]:
        mine = cast("Any", self)
        return [mine._reading_task, mine._ping_interval_task, mine._flusher_task]


def add_subscription(nats: Any, subject: str, queue: str) -> bytes:
    """Note a subscription in nats-py's client, and return its number.

    nats-py's own `subscribe` waits for its flusher, which a frozen server holds up without an end,
    and swallows the cancellation of whoever waits.
    """
    nats._sid += 1
    nats._subs[nats._sid] = Subscription(nats, nats._sid, subject, queue)
    return b"%d" % nats._sid


def count_messages(commands: Sequence[bytes]) -> int:
    """Return how many commands publish a message without a reply subject, acks not counted.

    A request that waits for its answer fails by itself, and a message without its ack is delivered
    again.
    """
    count = 0
    for command in commands:
        kind, *words = command.partition(b"\r\n")[0].split()
        is_plain = (kind, len(words)) in ((b"PUB", 2), (b"HPUB", 3))
        count += is_plain and not words[0].startswith(_ACKS)
    return count


def address_of(netloc: str) -> tuple[str, int] | None:
    """Return host and port of an address such as `10.0.0.1:4222`; None for what is none."""
    try:
        parts = urlsplit(f"nats://{netloc}")
        return (parts.hostname, parts.port or DEFAULT_PORT) if parts.hostname else None
    except ValueError:
        return None


def install_lane(nats: Any, parser: FrameParser, listener: ConnectionListener) -> asyncio.Transport:
    """Put the lane in front of a connection whose handshake is done; return its transport.

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
    parser.allow(nats.max_payload)
    lane = FastLane(parser, behind(transport), listener.on_broken, listener.on_heard)
    lane.install(transport, early)
    return transport


def _past_pings(transport: Any) -> Callable[[], Awaitable[bytes]]:
    """Return a transport's `readline` that answers the server's pings by itself.

    nats-server pings two seconds after CONNECT, also one whose own PING it has not read yet because
    one of the two stood still. nats-py would take that line for the end of the handshake.
    """
    read: Callable[[], Awaitable[bytes]] = transport.readline

    async def readline() -> bytes:
        while (line := await read()) == b"PING\r\n":
            transport.write(b"PONG\r\n")
        return line

    return readline


def _has_socket(nats: Any) -> bool:
    """Return True if nats-py has come as far as a TCP connection."""
    return getattr(nats._transport, "_io_writer", None) is not None


def abort_transport(streams: object) -> None:
    """Abort the socket under nats-py's transport, if it has one."""
    writer = getattr(streams, "_io_writer", None)
    if writer is not None:
        writer.transport.abort()


async def open_nats(
    url: str, options: ConnectOptions, parser: FrameParser, listener: ConnectionListener
) -> LanedClient:
    """Connect to one server, once; later breaks are followed by reconnects to any of them.

    Raises:
        ConnectError: The server cannot be reached, or is no NATS server.
        AuthenticationError: The server refused the credentials.
        ConfigError: A file has no valid credentials or certificates.
        RequestTimeoutError: The handshake took too long.
        TlsError: The server has no TLS, or its certificate is not trusted.
    """
    auth = auth_arguments(options)
    nats = LanedClient(parser, listener)
    causes: list[Exception] = []

    async def note(error: Exception) -> None:
        causes.append(error)
        await listener.on_error(error)

    try:
        # nats-py bounds each step of the handshake; this bounds all of them.
        task = asyncio.current_task()
        cancelled = task.cancelling() if task is not None else 0
        async with asyncio.timeout(2 * options.connect_timeout):
            await nats.connect(
                servers=[url],
                name=options.name,
                connect_timeout=cast("int", options.connect_timeout),
                # The first connection is tried once: a wrong address fails at once.
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=cast("int", RECONNECT_WAIT_S),
                dont_randomize=True,
                ping_interval=_NEVER_S,
                pending_size=PENDING_BYTES_MAX,
                error_cb=note,
                disconnected_cb=listener.on_disconnected,
                reconnected_cb=listener.on_connected,
                closed_cb=listener.on_closed,
                discovered_server_cb=listener.on_servers,
                lame_duck_mode_cb=listener.on_lame_duck,
                **auth,
            )
            if task is not None and task.cancelling() > cancelled:
                raise asyncio.CancelledError  # nats-py has swallowed it.
            if not nats.is_connected:
                raise NatsPyError("nats: no PONG came back")
    except asyncio.CancelledError:
        nats.discard()
        raise
    except TimeoutError:
        is_connected = _has_socket(nats.nats)
        await _discard(nats)
        wait = f"within {options.connect_timeout:g} s"
        if not is_connected:
            raise RequestTimeoutError(
                f"no TCP connection to {public_url(url)} {wait}",
                hint=UNREACHABLE_HINT,
                retryable=True,
            ) from None
        raise RequestTimeoutError(
            f"no NATS handshake with {public_url(url)} {wait}",
            hint=silence_hint(options),
            retryable=True,
        ) from None
    except Exception as error:  # noqa: BLE001 - What a stranger sends breaks nats-py in many ways.
        info: object = nats.nats._server_info
        await _discard(nats)
        failure = _failure(url, causes[-1] if causes else error, options, info)
        raise failure from None if isinstance(failure, ConfigError) else error
    nats.nats._error_cb = listener.on_error  # `note` would keep every error of an outage.
    nats.options["allow_reconnect"] = True
    nats.options["max_reconnect_attempts"] = -1
    _fill_pool(nats.nats, options.servers)
    return nats


def _fill_pool(nats: Any, given: Sequence[str]) -> None:
    """Let a connection that was made to one server know the others."""
    addresses = {address_of(url.rpartition("://")[2]) for url in given}
    told = [each for each in nats._server_pool if each.discovered]
    told = [each for each in told if address_of(each.uri.netloc) not in addresses]
    nats.set_server_pool([*given, *(each.uri.geturl() for each in told)])
    # The new pool forgets which servers the cluster announced, and their certificate names.
    names = {each.uri.netloc: each.tls_name for each in told}
    for each in nats._server_pool:
        each.discovered = each.uri.netloc in names
        each.tls_name = names.get(each.uri.netloc)


def _failure(url: str, cause: Exception, options: ConnectOptions, info: object) -> NatsStreamError:
    """Return what it means that a first connection did not come about."""
    for each in (cause, cause.__cause__):
        if isinstance(each, ConfigError):
            return each
    text = str(cause).removeprefix("nats: ") or repr(cause)
    # The server says only in words that it is about credentials.
    if is_about_credentials(text):
        if not has_sign_in(options, url):
            return AuthenticationError(
                f"{public_url(url)} requires credentials, and none were given",
                detail=text,
                hint="give user= and password=, token=, creds= or nkey=",
            )
        return AuthenticationError(
            f"{public_url(url)} refused the credentials",
            detail=text,
            hint="check user, token or creds, and that the account may connect",
        )
    no_tls = tls_failure(url, cause, options, info)
    hint = ""
    if isinstance(cause, socket.gaierror):
        hint = (
            f"no address is known for the host {urlsplit(url).hostname}: is it misspelt, or known "
            "only in another network, such as a container's?"
        )
    elif not info and not isinstance(cause, OSError):
        # The port for monitoring hangs up after 5 s, which may be before `connect_timeout`.
        hint = silence_hint(options)
    # A server that is away, or not started yet, may be there later; a misspelt host will not.
    may_come = isinstance(cause, OSError) and not isinstance(cause, socket.gaierror)
    return no_tls or ConnectError(
        f"no NATS server at {public_url(url)}", detail=text, hint=hint, retryable=may_come
    )


async def _discard(nats: LanedClient) -> None:
    # It never was a connection: what it meets while it closes concerns nobody. nats-py would wait
    # for ever for the end of a TLS handshake that failed.
    nats.abort()
    nats.nats._transport = None
    with suppress(Exception, TimeoutError):
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await nats.close()
