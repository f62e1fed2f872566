"""Stores the batches of an exclusive producer: each message expects the one before it.

Law: every message names the sequence behind which it must stand, so a message of anybody else ends
the run. The messages of a batch that are stored are its first ones: a fast batch ends at its first
refused message, and without fast batches one message is in flight.

Each message carries the producer's token, the epoch and its number. After a doubt the stream is
read from where the batch began: that tells how many of its messages are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from natsstream.api.headers import HeaderName
from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.errors import (
    NoRespondersError,
    StreamRecreatedError,
    WrongLastSequenceError,
)
from natsstream.fields import parse_json
from natsstream.producer.batches import Found, Stored, Write
from natsstream.producer.messages import Placement
from natsstream.producer.partial_batches import delete_partial_batch
from natsstream.producer.queue import Batch, Group
from natsstream.producer.records import Instance, StateRecord
from natsstream.producer.shared_writer import check_captured, last_before, read_state
from natsstream.publish.batches.run import StoredRun
from natsstream.publish.outgoing import Expect, Prepared, add_header, prepare
from natsstream.publish.publish import publish
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec
from natsstream.values import to_json

# A new instance reads all messages behind the newest state record.
_RECORD_EVERY = 10_000
# The limits of a stream evict the record: it is written anew after such a part of them.
_LIMIT_PART = 4
# No producer's token has a dollar sign.
_FENCE = "$fence"


@dataclass(frozen=True, slots=True)
class Identity:
    """The writer of a message, and its number.

    Attributes:
        token: The producer's id as a token.
        epoch: The epoch.
        number: Messages of the producer before it, of all epochs.
    """

    token: str
    epoch: int
    number: int

    @classmethod
    def of(cls, message: Message) -> Identity | None:
        """Return the identity in a message's header; None for a message of anybody else."""
        token, _, rest = message.headers.get(HeaderName.PRODUCER, "").partition(" ")
        epoch, _, number = rest.partition(" ")
        if not (epoch.isdecimal() and number.isdecimal()):
            return None
        return cls(token, int(epoch), int(number))


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A batch that was sent: by whom, the number of its first message, and its place."""

    batch: Batch
    instance: Instance
    number: int
    after_seq: int


class ExclusiveWriter:
    """Reads and writes the stream for a producer that has it for itself.

    Args:
        api: The connection.
        stream: The stream.
        placement: Where messages and records go.
        token: The producer's id as a token.
        in_flight: Messages that are sent without an ack, at most; None for one, where the servers
            or the stream take no fast batches.
    """

    def __init__(
        self,
        api: Api,
        stream: StreamInfo,
        placement: Placement,
        token: str,
        *,
        in_flight: int | None,
    ) -> None:
        self._api = api
        self._stream = stream
        self._placement = placement
        self._token = token
        self._run = None if in_flight is None else StoredRun(api, stream, in_flight)
        self._attempt: _Attempt | None = None
        self._record: StateRecord | None = None
        self._record_seq = 0
        # Whether something was stored between the last read and the claim.
        self._is_outrun = False
        # Bytes of the messages behind the record.
        self._bytes_behind = 0

    async def read(self) -> Found:
        """Return the producer's state, as the leader has it."""
        await delete_partial_batch(self._api, self._stream, self._placement)
        tail = await self._tail()
        if (lost := self._lost_end(tail)) is not None:
            return Found(lost=lost)
        found = await read_state(self._api, self._stream, self._placement)
        found = replace(found, last_seq=tail)
        record, attempt = found.record, self._attempt
        if record is None:
            return found
        after_seq = found.record_seq or found.token
        if attempt is not None:
            if record.instance.is_same(attempt.instance):
                # All batches before this one are stored, whatever the record knew.
                seq = max(record.seq, attempt.batch.seq - 1)
                record = replace(record, instance=replace(record.instance, seq=seq))
                after_seq = attempt.after_seq
            else:
                after_seq = min(attempt.after_seq, after_seq)
        found = await self._with_messages(found, record, after_seq)
        heir = None if attempt is None else record.heir_of(attempt.instance)
        if attempt is None or heir is None:
            return found
        # It has counted what is stored; records of claims that were replaced leave holes there.
        stored = min(max(heir.first - attempt.number, 0), attempt.batch.count)
        return replace(found, stored=stored)

    def _lost_end(self, tail: int) -> StreamRecreatedError | None:
        """Return the error for a stream that ends before what this instance has stored, or None.

        The batches before an attempt count as stored, whatever the record knows.
        """
        if self._attempt is None or tail >= self._attempt.after_seq:
            return None
        return StreamRecreatedError(
            f"stream {self._stream.name} ends at {tail}, before {self._attempt.after_seq}, where "
            "this producer has stored: it lost its end, or was created again",
            detail="a server that comes back with an older disk loses it",
            hint="open the producer again: js.producer(...) has the checkpoint that is stored",
        )

    async def write(self, write: Write) -> Stored:
        """Store a write; return where it stands."""
        try:
            return await self._write(write)
        except NoRespondersError:
            subjects = [self._placement.state]
            if write.batch is not None:
                subjects += [each.subject for each in write.batch.messages()]
            await check_captured(self._api, self._stream, subjects)
            raise

    async def _write(self, write: Write) -> Stored:
        record, last_seq = write.record, write.last_seq
        if write.batch is None:
            self._attempt = None
            await self._claim(record, last_seq)
            return Stored(self._record_seq, self._record_seq - 1)
        number = record.count - write.batch.count
        self._attempt = _Attempt(write.batch, record.instance, number, last_seq)
        messages = self._messages(write.batch.groups, record.epoch, number, last_seq)
        if write.end is not None:
            expect = Expect(last_seq=last_seq + len(messages))
            messages.append(self._placement.end(write.end, expect))
        if messages:
            last_seq = await self._store(messages)
            self._bytes_behind += write.batch.size + len(messages) * len(messages[0].block)
        if write.end is None and (not messages or self._is_record_due(last_seq)):
            await self._write_record(record, last_seq)
        if write.end is not None:
            last_seq = await last_before(self._api, self._stream, self._placement, last_seq)
        self._attempt = None
        return Stored(self._record_seq, last_seq)

    async def close(self) -> None:
        """Stop listening to the server's answers."""
        if self._run is not None:
            self._run.close()

    # Writing.

    def _messages(
        self, groups: Sequence[Group], epoch: int, number: int, last_seq: int
    ) -> list[Prepared]:
        """Return the messages with their place and identity."""
        start = f"NATS/1.0\r\n{HeaderName.EXPECTED_LAST_SEQUENCE.value}: ".encode()
        middle = f"\r\n{HeaderName.PRODUCER.value}: {self._token} {epoch} ".encode()
        made: list[Prepared] = []
        for group in groups:
            for subject, data, given, needs, _ in group.messages:
                rest = given[10:] if given else b"\r\n"
                block = b"%b%d%b%d\r\n%b" % (start, last_seq, middle, number, rest)
                if group.checkpoint is not None:
                    position = to_json(group.checkpoint, ascii_only=True)
                    block = add_header(block, HeaderName.PRODUCER_CHECKPOINT, position)
                made.append(Prepared(subject, data, block, needs, expects_last_id=False))
                last_seq, number = last_seq + 1, number + 1
        return made

    async def _store(self, messages: Sequence[Prepared]) -> int:
        """Store messages one behind the other; return the last one's sequence."""
        if self._run is not None and len(messages) > 1:
            return await self._run.store(messages)
        last_seq = 0
        for message in messages:
            last_seq = await self._publish(message)
        return last_seq

    async def _publish(self, message: Prepared) -> int:
        timeout = self._api.client.options.request_timeout
        ack = await publish(
            self._api, message, stream=self._stream, timeout=timeout, retry_attempts=0
        )
        return ack.sequence

    async def _claim(self, record: StateRecord, last_seq: int) -> None:
        try:
            await self._write_record(record, last_seq)
        except WrongLastSequenceError:
            self._is_outrun = True
            raise
        self._is_outrun = False

    async def _tail(self) -> int:
        """Return the last sequence; make all who write begin again where they outran a claim.

        An instance at work stores faster than another one can read and claim. A message in its way
        refuses its next one: it has to read the stream then, as this one does.
        """
        if not self._is_outrun:
            return (await stream_info(self._api, self._stream.name)).state.last_seq
        return await self._publish(prepare(self._placement.control.state(_FENCE)))

    async def _write_record(self, record: StateRecord, last_seq: int) -> None:
        message = self._placement.record(record, Expect(last_seq=last_seq))
        self._record_seq = await self._publish(message)
        self._record, self._bytes_behind = record, 0

    def _is_record_due(self, last_seq: int) -> bool:
        """Return True if the record is so far behind that it is slow to find, or may be evicted."""
        config, count = self._placement.config, last_seq - self._record_seq
        messages_max = (config.max_msgs or 0) // _LIMIT_PART
        bytes_max = (config.max_bytes or 0) // _LIMIT_PART
        return (
            count >= _RECORD_EVERY
            or 0 < messages_max <= count
            or 0 < bytes_max <= self._bytes_behind
        )

    # Reading.

    async def _with_messages(self, found: Found, record: StateRecord, after_seq: int) -> Found:
        """Return what was found, with the producer's messages behind a sequence counted in."""
        attempt = self._attempt
        count, checkpoint = record.count, record.checkpoint
        if attempt is not None and after_seq == attempt.after_seq:
            count = max(count, attempt.number)
        stored, stored_seq, first_held = 0, None, 0
        spec = RangeSpec(
            stream=self._stream.name,
            first_seq=after_seq + 1,
            last_seq=found.last_seq,
            created_ns=self._stream.created_ns,
            on_loss="report",
        )
        if after_seq < found.last_seq:
            async for message in StreamRange(self._api, spec):
                first_held = first_held or message.sequence
                identity = Identity.of(message)
                if identity is None or identity.token != self._token:
                    continue
                count = max(count, identity.number + 1)
                position = message.headers.get(HeaderName.PRODUCER_CHECKPOINT)
                if position is not None:
                    checkpoint = parse_json(position, "a checkpoint")
                if attempt is not None and identity.epoch == attempt.instance.epoch:
                    stored = max(stored, identity.number + 1 - attempt.number)
                    stored_seq = message.sequence
        # Where the first message would stand there must be one, whoever's it is.
        is_told = first_held == after_seq + 1 or after_seq >= found.last_seq or stored > 0
        return replace(
            found,
            record=replace(record, count=count, checkpoint=checkpoint),
            batch=None if attempt is None else attempt.batch,
            stored=stored if is_told else None,
            stored_seq=stored_seq,
        )
