"""Attaching to a connection that the application has opened with nats-py.

The lane is installed on the running connection, and again after each reconnect. On a WebSocket,
which has no lane, frames come through nats-py's parser: slower, and `Client.has_lane` is False.

Law: the application's subscriptions, callbacks and options work as before, also after `close`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, cast

from natsstream._wire.lane import FastLane, behind
from natsstream._wire.nats_py import (
    ConnectionListener,
    NatsPyClient,
    NatsPyError,
    NatsPyLink,
    TcpTransport,
    abort_transport,
    add_subscription,
)
from natsstream._wire.parser import FrameParser
from natsstream._wire.server_info import settle_info
from natsstream.errors import ConfigError, ProtocolError

_log = logging.getLogger("natsstream.connection")

_CRLF_SIZE = 2
# The state of nats-py's parser in which it waits for a line, and not for a payload.
_AWAITING_LINE = 1
# Lines that stay in nats-py's buffer while its callbacks for them run; all others are taken out
# before. A whole one at the start is being handled, since nats-py never waits behind one.
_BEING_HANDLED = re.compile(rb"(?:-ERR|INFO)[^\r\n]*\r\n")
_CALLBACKS = {
    "_error_cb": "on_error",
    "_disconnected_cb": "on_disconnected",
    "_reconnected_cb": "on_connected",
    "_closed_cb": "on_closed",
    "_discovered_server_cb": "on_servers",
    "_lame_duck_mode_cb": "on_lame_duck",
}
# The methods of nats-py that this file replaces, by name.
_METHODS = (
    "_process_connect_init",
    "_attempt_reconnect",
    "_process_op_err",
    "_process_info",
    "_process_msg",
    "_process_err",
)


def check_client(nats: object) -> NatsPyClient:
    """Return a client of nats-py, connected or not.

    Raises:
        ConfigError: It is none.
    """
    if isinstance(nats, NatsPyClient):
        return nats
    raise ConfigError(
        f"attach takes a client of nats-py, not {type(nats).__name__}",
        hint="nc = await nats.connect(...); natsstream.attach(nc)",
    )


def attach_nats(nats: object, parser: FrameParser, listener: ConnectionListener) -> NatsPyLink:
    """Hook into a connected client of nats-py.

    Raises:
        ConfigError: The object is no client of nats-py, not connected, of another event loop, or
            attached already.
        ProtocolError: The server's INFO is invalid.
    """
    nats = check_client(nats)
    if not nats.is_connected:
        raise ConfigError(
            "the client of nats-py is not connected", hint="await nats.connect() first"
        )
    reading: asyncio.Task[None] | None = cast("Any", nats)._reading_task
    if reading is not None and reading.get_loop() is not asyncio.get_running_loop():
        raise ConfigError(
            "the client of nats-py belongs to another event loop",
            hint="attach on the loop of the client, or open a connection with natsstream.connect()",
        )
    settle_info(cast("Any", nats)._server_info)
    if hasattr(nats, "_natsstream"):
        raise ConfigError(
            "natsstream is attached to this connection already", hint="use one context for it"
        )
    return _Attachment(nats, parser, listener)


class _Attachment:
    """A link to the application's client; see `nats_py.Link`."""

    def __init__(self, nats: Any, parser: FrameParser, listener: ConnectionListener) -> None:
        self._nats = nats
        self._parser = parser
        self._listener = listener
        self._lane: FastLane | None = None
        self.transport: asyncio.Transport | None = None
        self._is_attached = True
        self._has_warned = False
        self._kept = {name: getattr(nats, name) for name in _CALLBACKS}
        nats._natsstream = self
        for name, method in _CALLBACKS.items():
            setattr(nats, name, _both(getattr(listener, method), self._kept[name]))
        # Instance attributes hide the class's methods, for this client alone.
        self._own: dict[str, Any] = {
            name: vars(nats)[name] for name in _METHODS if name in vars(nats)
        }
        self._methods = {name: getattr(nats, name) for name in _METHODS}
        for name in _METHODS:
            setattr(nats, name, getattr(self, name))
        self._install()

    # Called by nats-py instead of its own methods.

    async def _process_connect_init(self) -> None:
        await self._methods["_process_connect_init"]()
        self._install()

    async def _attempt_reconnect(self) -> None:
        # As for a connection of our own: a frozen peer is not waited for.
        self.abort()
        await self._methods["_attempt_reconnect"]()

    async def _process_op_err(self, e: Exception) -> None:
        # As for a connection of our own: nats-py reports an end of file, but no reset.
        await self._listener.on_error(e)
        await self._methods["_process_op_err"](e)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - nats-py's signature.
        try:
            settle_info(info)
        except ProtocolError as error:
            # After a lane it is known to be one; in a handshake nats-py tries the next server.
            raise NatsPyError(f"nats: {error.message}") from error
        await self._methods["_process_info"](info, initial_connection)

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None
    ) -> None:
        self._listener.on_heard()
        name = str(sid).encode()
        if name not in self._parser.sinks:
            await self._methods["_process_msg"](sid, subject, reply, data, headers)
            return
        # Only without a lane: the frame is put together again for our own parser.
        header = headers or b""
        fields = [b"HMSG" if header else b"MSG", subject, name]
        fields += [reply] if reply else []
        fields += [b"%d" % len(header)] if header else []
        fields.append(b"%d" % (len(header) + len(data)))
        parsed = self._parser.parse(b"%b\r\n%b%b\r\n" % (b" ".join(fields), header, data))
        if parsed.failure is not None:
            self._listener.on_broken(parsed.failure)
            self.abort()

    async def _process_err(self, err_msg: str) -> None:
        if not self.has_lane:
            # nats-py has made it lower case; as it came, it is still at the buffer's start.
            line = bytes(self._nats._ps.buf).partition(b"\r\n")[0]
            self._parser.tell_error(line[len(b"-ERR") :].decode(errors="surrogateescape"))
        await self._methods["_process_err"](err_msg)

    # Link.

    @property
    def nats(self) -> Any:
        """The application's client."""
        return self._nats

    @property
    def has_lane(self) -> bool:
        """True while frames come through the fast lane."""
        return self._lane is not None

    def abort(self) -> None:
        """Drop the socket now; nats-py reconnects as the application has told it to."""
        abort_transport(self._nats._transport)
        web = getattr(self._nats._transport, "_ws", None)
        if web is not None and (own := web.get_extra_info("socket")) is not None:
            with suppress(OSError):  # The peer has hung up already.
                own.shutdown(socket.SHUT_RDWR)

    def add_subscription(self, subject: str, queue: str) -> bytes:
        """Number a subscription that nats-py makes again after each reconnect."""
        return add_subscription(self._nats, subject, queue)

    def remove_subscription(self, sid: bytes) -> None:
        """Do not make it again."""
        self._nats._remove_sub(int(sid))

    async def close(self) -> None:
        """Leave the application's client as it was before."""
        self.discard()

    def discard(self) -> None:
        """Do so without a wait; the socket is the application's."""
        if not self._is_attached:
            return
        self._is_attached = False
        nats = self._nats
        for name, kept in self._kept.items():
            setattr(nats, name, kept)
        for name in _METHODS:
            delattr(nats, name)
        for name, own in self._own.items():
            setattr(nats, name, own)
        del nats._natsstream
        if self._lane is not None:
            self._lane.uninstall()
            self._lane, self.transport = None, None

    def _install(self) -> None:
        """Put the lane in front of the connection, in the middle of whatever it receives."""
        nats = self._nats
        self._lane, self.transport = None, None
        if not isinstance(nats._transport, TcpTransport):
            if not self._has_warned:
                _log.warning(
                    "natsstream has no fast lane on a %s: messages come through nats-py's parser",
                    type(nats._transport).__name__,
                )
            self._has_warned = True  # Once, not at each reconnect.
            return
        streams = cast("Any", nats._transport)
        transport = cast("asyncio.Transport", streams._io_writer.transport)
        received, parsed = streams._io_reader._buffer, nats._ps.buf
        # In the middle of a payload its rest is nats-py's; a line that has begun is taken back.
        is_payload = nats._ps.state != _AWAITING_LINE
        rest = max(0, nats._ps.needed + _CRLF_SIZE - len(parsed)) if is_payload else 0
        early = bytes(received)
        received.clear()
        if not is_payload:
            handled = _BEING_HANDLED.match(parsed)
            early = bytes(parsed[handled.end() if handled else 0 :]) + early
            parsed.clear()
        listener = self._listener
        self._parser.allow(nats.max_payload)
        self._lane = FastLane(
            self._parser, behind(transport), listener.on_broken, listener.on_heard
        )
        self._lane.install(transport, early, passing=rest)
        self.transport = transport


def _both(
    first: Callable[..., Awaitable[None]], second: Callable[..., Awaitable[None]] | None
) -> Callable[..., Awaitable[None]]:
    """Return a callback that calls ours, then the application's."""
    if second is None:
        return first

    @functools.wraps(second)
    async def call(*args: Any) -> None:
        try:
            await first(*args)
        except Exception:  # noqa: BLE001 - the application's callback is called whatever ours does.
            _log.exception("natsstream failed in a callback of nats-py")
        await second(*args)

    return call
