"""Writes a chain: each message has the hash of the writer's message before it.

Law: one link is in flight at a time, and the next is made only once it is known whether the last
one is stored. A second process with the same writer id is refused, not merged.

A second process is detected by a message id of writer and number. Within the stream's duplicate
window the server drops the second link of a number as a copy of the first, and the writer checks
whether the first was its own. After half of the window without a write, the writer first reads
foreign links. `verify_chain` reports all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self, cast

from natsstream._wire.headers import Headers, HeaderValues, encode_headers
from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.arguments import check_bool
from natsstream.errors import (
    ChainForkedError,
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
    check_chain_filters,
    check_head,
    check_key,
    check_writer,
    is_same_hash,
    link_hash,
)

_TRIES_MAX = 4
_WINDOW_S = 120.0
_RETRY_WAIT_S = 0.1
# The prefix of headers for servers: they replace, expire, count and schedule messages.
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
        self._writer = check_writer(writer)
        self._key = check_key(key)
        self._finder = LinkFinder(api, stream, writer, key, check_chain_filters(filters))
        self._exclusive = check_bool(exclusive, "exclusive")
        self._resume = None if resume is None else check_head(resume, writer)
        self._head = ChainHead(writer)
        self._subject = ""
        self._info: StreamInfo | None = None
        self._read_up_to = 0
        self._attempts: set[str] = set()
        self._is_sure = False
        self._has_ended = False
        self._window_s = _WINDOW_S
        self._written_at = 0.0
        self._lock = asyncio.Lock()

    @property
    def head(self) -> ChainHead:
        """The newest link known to be stored; keep it elsewhere to detect a lost end."""
        return self._head

    async def open(self) -> Self:
        """Find the writer's last link, and continue behind it.

        Raises:
            ConfigError: The stream changes, drops or does not acknowledge messages.
            ChainBrokenError: The last link is not as its writer made it, or the key is wrong; or
                the given head is not in the stream.
            StreamNotFoundError: The stream does not exist.
        """
        if self._info is not None or self._has_ended:
            raise UsageError("a chained publisher is opened once", hint="chained() again")
        info = await stream_info(self._api, self._stream)
        check_stream(info)
        if info.config.duplicate_window:
            self._window_s = cast("float", info.config.duplicate_window)
        if self._resume is not None:
            self._head = self._resume
            self._read_up_to = self._resume.sequence
            message = await self._finder.at_head(info, self._resume)
            self._subject = message.subject if message is not None else ""
            await self._read_new(info)
        else:
            newest = await self._finder.last(info)
            if newest is not None:
                self._continue_after(*newest)
            self._read_up_to = max(self._read_up_to, info.state.last_seq)
        self._info = info
        self._is_sure = True
        self._written_at = asyncio.get_running_loop().time()
        return self

    async def close(self) -> None:
        """Refuse further messages; closing twice is fine."""
        self._has_ended = True

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(
        self,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        timeout: float | None = None,
    ) -> PubAck:
        """Publish the next link and wait for its ack; it is sent again without one.

        Args:
            subject: The subject, without wildcards.
            data: The payload.
            headers: Header values by name; none of the chain's own, and none with the prefix
                `Nats-`, which are for servers.
            timeout: Seconds to wait for the ack of each of 4 tries; None is `request_timeout`.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.
            SubjectError: The subject is not legal; nothing was sent.
            HeaderError: A header is the chain's own or for servers, or is not legal; nothing was
                sent.
            UsageError: The publisher is not open.
            ChainForkedError: Another process has this writer id; this link is not stored.
            ServerError: The stream refused the message; the next `send` continues the chain.
            TransportError: No ack after all tries. The next `send` finds out whether the link is
                stored, and continues behind it.

        Cost: one round trip a link, and the stream's replication; links are not pipelined.
        """
        if self._has_ended:
            raise UsageError(
                "the chained publisher is closed: its block has ended, or it was forked",
                hint="stream.chained(writer=...) opens another one",
            )
        if self._info is None:
            raise UsageError(
                "the chained publisher is not open",
                hint="async with stream.chained(writer=...) as chain: await chain.send(...)",
            )
        payload = payload_bytes(data)
        own = self._own_headers(headers)
        prepare(subject, payload, own)  # Refused before it gets a number.
        async with self._lock:
            loop = asyncio.get_running_loop()
            if not self._is_sure or loop.time() - self._written_at > self._window_s / 2:
                await self._read_new(await stream_info(self._api, self._stream))
                self._is_sure = True
            return await self._send(subject, payload, own, timeout)

    def _own_headers(self, headers: HeaderValues | None) -> dict[str, str | Sequence[str]]:
        block = encode_headers(headers) if headers else b""
        own: dict[str, str | Sequence[str]] = {}
        for name, value in Headers(block).items_all():
            if name in CHAIN_HEADERS or name.startswith(_FOR_THE_SERVER):
                raise HeaderError(
                    f"header {name} cannot be in a link",
                    hint="leave it out: the chain sets each link's number and id, and a request to "
                    "the server, such as a rollup, would remove links from the chain",
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
        """Make the next link, and send it until it is known to be stored or not."""
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
        self._is_sure = False  # Until an ack comes, also if this is cancelled.
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
                await self._api.client.wait_connected(self._api.client.options.bounded_reconnect_s)
            except ServerError as error:
                if error.retryable and tries:
                    # Another write is in flight, perhaps an earlier try of this link.
                    await asyncio.sleep(_RETRY_WAIT_S)
                    continue
                if not isinstance(error, WrongLastSequenceError):
                    raise
                # An earlier try of this link is stored, or a foreign link.
                before = self._head
                await self._read_new(await stream_info(self._api, self._stream))
                if self._head.hash == mine:
                    return PubAck(self._stream, self._head.sequence, duplicate=True)
                if self._head != before:
                    raise  # An earlier link of ours arrived late; the next one follows it.
                raise self._forked(0) from error

    async def _is_stored(self, sequence: int, mine: str) -> bool:
        """Return True if this link is stored under our number, False if an earlier one of ours is.

        Raises:
            ChainForkedError: A foreign link is stored.
        """
        for message, link in await self._finder.between(sequence, sequence):
            if link.hash in self._attempts:
                if is_same_hash(link.hash, mine):
                    return True
                # An earlier link arrived late, after its ack was given up: continue behind it.
                self._continue_after(message, link)
                return False
        self._has_ended = True
        raise self._forked(sequence)

    def _take(self, head: ChainHead, subject: str) -> None:
        self._head = head
        self._subject = subject
        self._read_up_to = max(self._read_up_to, head.sequence)
        self._attempts.clear()
        self._is_sure = True
        self._written_at = asyncio.get_running_loop().time()

    def _continue_after(self, message: Message, link: ChainLink) -> None:
        head = ChainHead(self._writer, link.count, link.hash, message.sequence)
        self._take(head, message.subject)

    async def _read_new(self, info: StreamInfo) -> None:
        """Read the writer's links that were stored since the last read, ours or foreign."""
        first = self._read_up_to + 1
        for message, link in await self._finder.between(first, info.state.last_seq):
            if link.count <= self._head.count:
                continue  # A copy of a known link, which `verify_chain` reports.
            is_resumed = self._info is None
            is_next = link.count == self._head.count + 1 and link.previous == self._head.hash
            if not is_next or not (is_resumed or link.hash in self._attempts):
                self._has_ended = True
                raise self._forked(message.sequence)
            self._finder.check_hash(message, link)
            self._continue_after(message, link)
        self._read_up_to = max(self._read_up_to, info.state.last_seq)

    def _forked(self, sequence: int) -> ChainForkedError:
        return ChainForkedError(
            f"another process writes to stream {self._stream} as {self._writer!r}: the last link "
            f"of this publisher is {self._head.count} at sequence {self._head.sequence}",
            writer=self._writer,
            sequence=sequence,
            hint="give each process its own writer id; open a new publisher to continue behind",
        )

    def __repr__(self) -> str:
        return f"<ChainedPublisher {self._stream} {self._writer!r} at link {self._head.count}>"
