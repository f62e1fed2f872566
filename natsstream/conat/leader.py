"""A core stream of which nothing is loaded: each read asks the stream's leader.

Law: a message is hidden from its exact moment of expiry on, by the server's clock, also if the
server still holds it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Literal

from natsstream.api.message import Message
from natsstream.api.stream_info import StreamInfo
from natsstream.arguments import check_utf8
from natsstream.conat.attempts import retried
from natsstream.conat.blobs import SWEEP_EVERY_S, Blobs
from natsstream.conat.configuration import Configuration, config_fields
from natsstream.conat.feed import Announcement
from natsstream.conat.headers import Blob, is_big
from natsstream.conat.naming import naming
from natsstream.conat.opening import CoreStreamOptions, StreamOpener
from natsstream.conat.record import Record
from natsstream.conat.views import Codec
from natsstream.conat.writer import PublishItem, PublishOptions, PublishResult, Stored, Writer
from natsstream.errors import MessageNotFoundError, TransportError, UsageError
from natsstream.iteration import Flattened
from natsstream.own_loop import OwnLoop
from natsstream.read.ranges import StreamRange
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream
from natsstream.units import NS_PER_MS, time_from_ns

# A sweep that has begun may end while its object is closed.
_SWEEP_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message as the leader holds it.

    Attributes:
        mesg: The value.
        seq: Its sequence.
        time: When it was stored, in UTC.
        key: Its key; None for none.
        headers: The user's headers, and as in Conat `seq`, `time` (Unix milliseconds) and `key`.
    """

    mesg: Any
    seq: int
    time: datetime
    key: str | None
    headers: Mapping[str, object]


class LeaderStream:
    """Reads and writes one core stream, and keeps nothing.

    Args:
        js: The JetStream context.
        options: How it is opened.

    Attributes:
        stream: The stream.
        config: Its configuration, when it was last asked for.
        gone_hint: The way back if no stream captures its messages.
    """

    stream: Stream
    config: Configuration
    gone_hint: str = (
        "its stream is gone, or has no leader now: open it again, which makes a stream that is "
        "gone; then publish again"
    )

    def __init__(self, js: JetStreamContext, options: CoreStreamOptions) -> None:
        self.options = options
        self._js = js
        self._names = options.names
        self._codec = Codec(options.names)
        self._opener = StreamOpener(js, options)
        self._blobs = Blobs(js, options.names, lambda: self.stream)
        self._writer = Writer(js, options.names, self, self._blobs, options.encoding)
        self._clock_offset_ns = 0
        self._is_closed = False
        self._own_loop = OwnLoop()
        self._sweep: asyncio.Task[None] | None = None
        self._swept_s = -math.inf

    async def open(self) -> None:
        """Create the stream if it is missing; waits for a server as long as for a reconnect.

        Raises:
            NatsStreamError: No retry mends it, such as missing permission (403).
            ConnectionLostError: No server came back in time (503).
        """
        with naming(self._names):
            self.stream = await retried(self._opener.open, self._js.bounded_reconnect_s)
            await self._look()

    async def close(self) -> None:
        """End the object: every call raises `UsageError` from now on.

        Cost: at most 10 s if this client has stored big values and the server does not answer.
        """
        self._own_loop.check()
        self._is_closed = True
        if self._sweep is not None:
            await asyncio.wait([self._sweep], timeout=_SWEEP_WAIT_S)
            self._sweep.cancel()
            await asyncio.wait([self._sweep])
        await self._blobs.close()

    def check(self) -> None:
        """Raise an error after the end."""
        if self._is_closed:
            raise UsageError(f"{self._names.path} is closed", hint="open it again")

    # Reading.

    async def get(self, place: int | str) -> StoredMessage | None:
        """Return the message at a sequence, or the newest one of a key; None for none.

        A tombstone is no message.
        """
        self.check()
        subject = "" if isinstance(place, int) else self._subject_of(place)
        while True:
            with naming(self._names):
                if isinstance(place, int):
                    found = await self.stream.get(place)
                else:
                    found = await self.stream.get(last_by_subject=subject)
            record = None if found is None else self._live(found)
            if record is None:
                return None
            for whole in await self._blobs.whole([record]):
                return self._stored(whole)
            # Its chunks are gone because it was overwritten or deleted meanwhile.

    def read(
        self, first_seq: int | None, last_seq: int | None, filters: Sequence[str] = ()
    ) -> AsyncGenerator[StoredMessage]:
        """Yield a range of messages in order, without tombstones."""
        self.check()
        span = self.stream.read(first_seq=first_seq, last_seq=last_seq, filters=filters)
        return Flattened(self._whole_runs(span), self._shown)

    def _shown(self, records: Sequence[Record]) -> Iterator[StoredMessage]:
        return (self._stored(each) for each in records if not self._is_expired(each))

    async def _whole_runs(self, span: StreamRange) -> AsyncGenerator[Sequence[Record]]:
        async with aclosing(span.runs()) as runs:
            async for run in runs:
                live = [record for each in run if (record := self._live(each)) is not None]
                for are_big, records in groupby(live, lambda each: is_big(each.headers)):
                    if not are_big:
                        yield [*records]
                        continue
                    for record in records:  # Each may be as large as the memory has room for.
                        yield await self._blobs.whole([record])

    async def keys(self) -> list[str]:
        """Return the keys that have a value, by the sequences of their values."""
        self.check()
        newest: dict[str, str | None] = {}
        async for message in self.stream.read(filters=[self._names.keys_filter]):
            record = self._live(message)
            newest.pop(message.subject, None)
            newest[message.subject] = None if record is None else self._codec.key(record)
        return [key for key in newest.values() if key is not None]

    async def last_seq(self) -> int:
        """Return the sequence of the newest message that was ever stored; 0 for none."""
        self.check()
        return (await self._look()).state.last_seq

    async def stored_ns(self, seq: int) -> int | None:
        """Return when a message was stored, in Unix nanoseconds; None if it is gone."""
        found = await self.stream.get(seq)
        return None if found is None else found.time_ns

    # Writing.

    async def publish(self, mesg: Any, options: PublishOptions) -> Stored | None:
        """Store one message; None if this object has published its id before."""
        self.check()
        with naming(self._names):
            before = await self._big_value(options.key)
            stored = await self._writer.publish(mesg, options)
            if before is not None and stored is not None and stored.seq > before.seq:
                await self._blobs.remove(self._blobs.of([before]))
        self._sweep_soon()
        return stored

    async def publish_many(self, items: Sequence[PublishItem]) -> list[PublishResult]:
        """Store messages, pipelined and in order; each has a result or an error of its own."""
        self.check()
        results = await self._writer.publish_many(items)
        self._sweep_soon()
        return results

    async def delete_key(self, key: str, options: PublishOptions) -> Stored | None:
        """Store a tombstone, which expires."""
        return await self.publish(
            None, self._writer.tombstone(key, options, self.options.tombstone_ttl)
        )

    async def delete(self, seq: int) -> int:
        """Delete one message; returns how many there were."""
        self.check()
        before = await self.stream.get(seq) if await self._blobs.may_exist() else None
        try:
            await self.stream.delete_message(seq)
        except MessageNotFoundError:
            return 0
        await self._announce(Announcement(deleted=((seq, seq),)))
        if before is not None:
            await self._blobs.remove(self._blobs.of([self._record(before)]))
        return 1

    async def purge(self, last_seq: int | None) -> int:
        """Delete all messages up to a sequence, or those that there are; returns how many."""
        self.check()
        held = (await self._look()).state.last_seq
        last = held if last_seq is None else min(last_seq, held)
        if last < 1:
            return 0
        big = await self._big_values(last) if await self._blobs.may_exist() else []
        count = await self.stream.purge(last_seq=last)
        await self._announce(Announcement(purged=last))
        await self._blobs.remove(big)
        return count

    async def set_config(self, changes: Mapping[str, object] | None) -> Configuration:
        """Set some fields of the configuration, and return all of it."""
        self.check()
        with naming(self._names):
            if fields := config_fields(changes):
                self.stream = await self._opener.set_config(fields)
                await self._announce(Announcement(is_config_changed=True))
            await self._look()
        return self.config

    # Internals.

    async def _look(self) -> StreamInfo:
        began = time.time_ns()
        info = await self.stream.info()
        if info.time_ns:
            self._clock_offset_ns = info.time_ns - (began + time.time_ns()) // 2
        self.config = Configuration.from_stream(info.config)
        return info

    async def _announce(self, note: Announcement) -> None:
        with suppress(TransportError):  # The others find out by comparing with the stream.
            await self._js.core.publish(self._names.control, note.to_json())

    def _subject_of(self, key: str) -> str:
        return self._names.subject_of(check_utf8(key, "a key"))

    async def _big_value(self, key: str | None) -> Record | None:
        """Return the newest message of a key if its value is big; None for others."""
        if key is None or not await self._blobs.may_exist():
            return None
        found = await self.stream.get(last_by_subject=self._subject_of(key))
        return None if found is None else self._record(found)

    async def _big_values(
        self, last_seq: int, on_loss: Literal["raise", "report"] = "report"
    ) -> list[Blob]:
        heads = self.stream.read(last_seq=last_seq, headers_only=True, on_loss=on_loss)
        return [each async for head in heads for each in self._blobs.of([self._record(head)])]

    def _sweep_soon(self) -> None:
        """Sweep big values in the background: only their writers leave chunks behind."""
        now_s = asyncio.get_running_loop().time()
        if self._blobs.has_put and now_s - self._swept_s >= SWEEP_EVERY_S and not self._is_closed:
            self._swept_s = now_s
            self._sweep = asyncio.create_task(self._blobs.sweep(self._used_blobs))

    async def _used_blobs(self) -> list[Blob]:
        last_seq = (await self._look()).state.last_seq
        return await self._big_values(last_seq, on_loss="raise") if last_seq else []

    def _record(self, message: Message) -> Record:
        subject = message.subject
        key_subject = subject if self._names.is_keyed(subject) else ""
        block = message.headers.source
        return Record(message.sequence, message.time_ns, key_subject, block, message.data)

    def _live(self, message: Message) -> Record | None:
        record = self._record(message)
        return None if record.is_tombstone or self._is_expired(record) else record

    def _stored(self, record: Record) -> StoredMessage:
        key = self._codec.key(record)
        headers: dict[str, object] = {**(self._codec.user(record) or {})}
        headers |= {"seq": record.seq, "time": record.time_ns // NS_PER_MS}
        if key is not None:
            headers["key"] = key
        value = self._codec.value(record)
        return StoredMessage(value, record.seq, time_from_ns(record.time_ns), key, headers)

    def _is_expired(self, record: Record) -> bool:
        now_ns = time.time_ns() + self._clock_offset_ns
        max_age_ns = self.config.max_age * NS_PER_MS
        is_old = max_age_ns > 0 and record.time_ns + max_age_ns <= now_ns
        return is_old or (record.expires_ns is not None and record.expires_ns <= now_ns)
