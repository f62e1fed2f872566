"""Writing a chain: each message says which one the writer sent before it.

Law: one link is under way at a time, and the next is made only when it is known whether the last
one is stored. A second process with the same writer id is refused, not merged.

How a second process is found: each link carries a message id made of writer and number. Within the
stream's duplicate window the server takes the second link of a number for a copy of the first, and
the writer looks whether that was its own. After half of the window without a write, the writer
looks for foreign links first. What slips through that is named by `verify_chain`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Self, cast

from natsstream._wire.headers import Headers, HeaderValues, encode_headers
from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.errors import (
    ChainForkedError,
    ConfigError,
    ConnectionLostError,
    HeaderError,
    NoRespondersError,
    RequestTimeoutError,
    ServerError,
    UsageError,
    WrongLastSequenceError,
)
from natsstream.publish.outgoing import Expect, Payload, Prepared, payload_bytes, prepare
from natsstream.publish.pub_ack import PubAck
from natsstream.publish.publish import publish
from natsstream.streams.chain.finding import LinkFinder, check_stream
from natsstream.streams.chain.links import (
    CHAIN_HEADERS,
    ChainHead,
    ChainLink,
    is_same_hash,
    link_hash,
)

_TRIES_MAX = 4
_WINDOW_S = 120.0
_RETRY_WAIT_S = 0.1
# Headers that tell servers what to do: they replace, expire, count and schedule messages.
_FOR_THE_SERVER = "Nats-"
_NO_ANSWER = (RequestTimeoutError, ConnectionLostError, NoRespondersError)


class ChainedPublisher:
    """Publishes the links of one writer; made by `Stream.chained`, used with `async with`."""

    def __init__(
        self,
        api: Api,
        stream: str,
        *,
        writer: str,
        key: bytes | None,
        filters: Sequence[str],
        exclusive: bool,
        resume: ChainHead | None,
    ) -> None:
        self._api = api
        self._stream = stream
        self._writer = writer
        self._key = key
        self._finder = LinkFinder(api, stream, writer, key, filters)
        self._exclusive = exclusive
        self._resume = resume
        self._head = ChainHead(writer)
        self._subject = ""
        self._info: StreamInfo | None = None
        self._looked_up_to = 0
        self._attempts: set[str] = set()
        self._is_sure = False
        self._has_ended = False
        self._window_s = _WINDOW_S
        self._written_at = 0.0
        self._lock = asyncio.Lock()

    @property
    def head(self) -> ChainHead:
        """The newest link that is known to be stored; keep it elsewhere to notice a lost end."""
        return self._head

    async def open(self) -> Self:
        """Look for the writer's last link, and go on behind it.

        Raises:
            ConfigError: The stream changes, drops or does not acknowledge messages.
            ChainBrokenError: The last link is not what its writer made, or the key is another; or
                the head that was given is not in the stream.
            StreamNotFoundError: The stream does not exist.
        """
        if self._info is not None or self._has_ended:
            raise ConfigError("a chained publisher is opened once", hint="chained() again")
        info = await stream_info(self._api, self._stream)
        check_stream(info)
        if info.config.duplicate_window:
            self._window_s = cast("float", info.config.duplicate_window)
        if self._resume is not None:
            self._head = self._resume
            self._looked_up_to = self._resume.sequence
            message = await self._finder.at_head(info, self._resume)
            self._subject = message.subject if message is not None else ""
            await self._look_ahead(info)
        else:
            found = await self._finder.last(info)
            if found is not None:
                self._take_found(*found)
            self._looked_up_to = max(self._looked_up_to, info.state.last_seq)
        self._info = info
        self._is_sure = True
        self._written_at = asyncio.get_running_loop().time()
        return self

    async def close(self) -> None:
        """Take no more messages; closing twice is fine."""
        self._has_ended = True

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def send(
        self,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        timeout: float | None = None,
    ) -> PubAck:
        """Publish the next link and wait for its ack; it is sent again where no ack comes.

        Args:
            subject: Where to; no wildcards.
            data: The payload.
            headers: Header values by name; none of the chain's own, and none that begins with
                `Nats-`, which are for servers.
            timeout: Seconds to wait for the ack of each of 4 tries; None is `request_timeout`.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.
            SubjectError: The subject can not be published to; nothing was sent.
            HeaderError: A header is the chain's own or for servers, or would break the wire;
                nothing was sent.
            UsageError: It is not open.
            ChainForkedError: Somebody else writes with this writer id; this link is not stored.
            ServerError: The stream refused the message; the chain goes on with the next one.
            TransportError: No ack after all tries. The next `send` finds out whether the link is
                stored, and goes on behind it.

        Cost: one round trip a link, and the stream's replication; links are not pipelined.
        """
        if self._info is None or self._has_ended:
            raise UsageError(
                "the chained publisher is not open",
                hint="async with stream.chained(writer=...) as chain: await chain.send(...)",
            )
        payload = payload_bytes(data)
        own = self._own_headers(headers)
        prepare(subject, payload, own)  # Refused before a number is given to it.
        async with self._lock:
            loop = asyncio.get_running_loop()
            if not self._is_sure or loop.time() - self._written_at > self._window_s / 2:
                await self._look_ahead(await stream_info(self._api, self._stream))
                self._is_sure = True
            return await self._send(subject, payload, own, timeout)

    def _own_headers(self, headers: HeaderValues | None) -> dict[str, str | Sequence[str]]:
        block = encode_headers(headers) if headers else b""
        own: dict[str, str | Sequence[str]] = {}
        for name, value in Headers(block).items_all():
            if name in CHAIN_HEADERS or name.startswith(_FOR_THE_SERVER):
                raise HeaderError(
                    f"header {name} can not be in a link",
                    hint="leave it out: the chain gives each link its number and id, and what a "
                    "server shall do with it, such as a rollup, would take links out of the chain",
                )
            own[name] = [*own.get(name, ()), value]
        return own

    async def _send(
        self,
        subject: str,
        data: bytes,
        headers: dict[str, str | Sequence[str]],
        timeout: float | None,
    ) -> PubAck:
        """Make the next link, and send it until it is known to be stored."""
        own = dict(headers)
        last, count = self._head, self._head.count + 1
        own["Nats-Msg-Id"] = f"chain.{self._writer}.{count}"
        content = (subject, Headers(encode_headers(own)), data)
        mine = link_hash(self._writer, count, last.hash, content, self._key)
        values = (self._writer, str(count), last.hash, mine)
        for name, value in zip(CHAIN_HEADERS, values, strict=True):
            own[name.value] = value
        expect = None
        if self._exclusive and last.sequence and self._subject:
            expect = Expect(subject=self._subject, last_subject_seq=last.sequence)
        message = prepare(subject, data, own, None, expect)
        self._attempts.add(mine)
        self._is_sure = False  # Until an answer tells, also when this is cancelled.
        ack = await self._publish(message, mine, timeout)
        if ack.duplicate and not await self._is_stored(ack.sequence, mine):
            return await self._send(subject, data, headers, timeout)
        self._take(ChainHead(self._writer, count, mine, ack.sequence), subject)
        return ack

    async def _publish(self, message: Prepared, mine: str, timeout: float | None) -> PubAck:
        tries = _TRIES_MAX
        while True:
            tries -= 1
            try:
                return await publish(self._api, message, stream=self._info, timeout=timeout)
            except _NO_ANSWER:
                if not tries:
                    raise
                await self._api.client.wait_connected(self._api.client.options.reconnect_timeout)
            except ServerError as error:
                if error.retryable and tries:
                    # Another write is on its way, perhaps an earlier try of this link.
                    await asyncio.sleep(_RETRY_WAIT_S)
                    continue
                if not isinstance(error, WrongLastSequenceError):
                    raise
                # Either an earlier try of this link is stored, or another one's link is.
                before = self._head
                await self._look_ahead(await stream_info(self._api, self._stream))
                if self._head.hash == mine:
                    return PubAck(self._stream, self._head.sequence, duplicate=True)
                if self._head != before:
                    raise  # An earlier link of ours came late; the next one goes behind it.
                raise self._forked(0) from error

    async def _is_stored(self, sequence: int, mine: str) -> bool:
        """Look which link of our number is stored: this one, or an earlier one of ours.

        Raises:
            ChainForkedError: It is somebody else's.
        """
        for message, link in await self._finder.between(sequence, sequence):
            if link.hash in self._attempts:
                if is_same_hash(link.hash, mine):
                    return True
                # A link whose ack was given up came late: go on behind it.
                self._take_found(message, link)
                return False
        self._has_ended = True
        raise self._forked(sequence)

    def _take(self, head: ChainHead, subject: str) -> None:
        self._head = head
        self._subject = subject
        self._looked_up_to = max(self._looked_up_to, head.sequence)
        self._attempts.clear()
        self._is_sure = True
        self._written_at = asyncio.get_running_loop().time()

    def _take_found(self, message: Message, link: ChainLink) -> None:
        head = ChainHead(self._writer, link.count, link.hash, message.sequence)
        self._take(head, message.subject)

    async def _look_ahead(self, info: StreamInfo) -> None:
        """Find what was stored of this writer since the last look: our own, or somebody's."""
        first = self._looked_up_to + 1
        for message, link in await self._finder.between(first, info.state.last_seq):
            if link.count <= self._head.count:
                continue  # A copy of what is known: for `verify_chain` to name.
            is_resumed = self._info is None
            is_next = link.count == self._head.count + 1 and link.previous == self._head.hash
            if not is_next or not (is_resumed or link.hash in self._attempts):
                self._has_ended = True
                raise self._forked(message.sequence)
            self._finder.check_hash(message, link)
            self._take_found(message, link)
        self._looked_up_to = max(self._looked_up_to, info.state.last_seq)

    def _forked(self, sequence: int) -> ChainForkedError:
        return ChainForkedError(
            f"somebody else writes to stream {self._stream} as {self._writer!r}: this publisher's "
            f"last link is {self._head.count} at sequence {self._head.sequence}",
            writer=self._writer,
            sequence=sequence,
            hint="give each process its own writer id; open a new one to go on behind the other",
        )

    def __repr__(self) -> str:
        return f"<ChainedPublisher {self._stream} {self._writer!r} at link {self._head.count}>"
