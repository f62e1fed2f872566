"""Stores the batches of a shared producer: one atomic batch for the messages and the state.

Law: the state record expects the token of the one before it, so the server takes each batch once
and refuses an instance that was replaced. The first message of a batch expects the stream to be
open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from natsstream.api.headers import HeaderName
from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import get_message, stream_info
from natsstream.errors import ConfigError, NoRespondersError, WrongLastSequenceError
from natsstream.producer.batches import Found, Stored, Write
from natsstream.producer.messages import Placement
from natsstream.producer.partial_batches import delete_partial_batch
from natsstream.producer.records import BatchMark, StateRecord
from natsstream.publish.batches.atomic_rules import may_stay_in_part
from natsstream.publish.batches.whole import store_together
from natsstream.publish.destination import captures
from natsstream.publish.outgoing import Expect, Prepared, add_header, prepare
from natsstream.publish.publish import publish
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec
from natsstream.streams.closing.end import EndOfStream

# So many sequences before the end are read at first, to find the last message.
_LOOKED_AT = 50


class SharedWriter:
    """Reads and writes the stream for a producer that shares it with others.

    Args:
        api: The connection.
        stream: The stream.
        placement: Where messages and records go.
        has_guard: Whether each batch expects the stream to be open.
    """

    def __init__(
        self, api: Api, stream: StreamInfo, placement: Placement, *, has_guard: bool
    ) -> None:
        self._api = api
        self._stream = stream
        self._placement = placement
        self._has_guard = has_guard
        # A mark stands in front of each batch; see `partial_batches`.
        self._has_marks = may_stay_in_part(stream)
        # Whether an instance at work stored a batch between the last read and the claim.
        self._is_outrun = False

    async def read(self) -> Found:
        """Return the producer's state, as the leader has it.

        An instance at work stores faster than another one can read and claim. A mark behind its
        record refuses its next batch: it has to read the state then, as this one does.
        """
        marks = await delete_partial_batch(self._api, self._stream, self._placement)
        if self._is_outrun and _keeps_marks(self._placement.config):
            await self._publish(prepare(self._placement.state))
        last_seq = (await stream_info(self._api, self._stream.name)).state.last_seq
        found = await read_state(self._api, self._stream, self._placement)
        return replace(found, marks=marks, last_seq=last_seq)

    async def write(self, write: Write) -> Stored:
        """Store a write; return where it stands."""
        messages = [] if write.batch is None else list(write.batch.messages())
        if write.end is not None:
            messages.append(self._placement.end(write.end, Expect(last_subject_seq=0)))
        if messages and self._has_guard and (write.end is None or len(messages) > 1):
            messages[0] = self._guarded(messages[0])
        expect = Expect(last_subject_seq=write.token)
        messages.append(self._placement.record(write.record, expect))
        count = len(messages)
        if self._has_marks:
            expect = Expect(last_subject_seq=write.marks[-1] if write.marks else 0)
            mark = BatchMark(count, tuple(write.marks))
            messages.insert(0, self._placement.mark_of(mark, expect))
        try:
            sequence = await self._store(messages)
        except WrongLastSequenceError:
            self._is_outrun = write.batch is None
            raise
        except NoRespondersError:
            await check_captured(self._api, self._stream, [each.subject for each in messages])
            raise
        if write.batch is None:
            self._is_outrun = False
        last_seq = sequence - 1
        if write.end is not None:
            last_seq = await last_before(self._api, self._stream, self._placement, last_seq)
        return Stored(sequence, last_seq, sequence - count if self._has_marks else 0)

    async def _store(self, messages: Sequence[Prepared]) -> int:
        """Store messages together; return the sequence of the last one."""
        if len(messages) == 1:
            return await self._publish(messages[0])
        timeout = self._api.client.options.request_timeout
        stored = await store_together(self._api, self._stream.name, messages, timeout=timeout)
        return stored.sequence

    async def _publish(self, message: Prepared) -> int:
        timeout = self._api.client.options.request_timeout
        ack = await publish(
            self._api, message, stream=self._stream, timeout=timeout, retry_attempts=0
        )
        return ack.sequence

    def _guarded(self, message: Prepared) -> Prepared:
        about = HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT
        block = add_header(message.block, HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE, 0)
        block = add_header(block, about, self._placement.control.end)
        return message._replace(block=block)

    async def close(self) -> None:
        """Nothing is open between two writes."""


async def read_state(api: Api, stream: StreamInfo, placement: Placement) -> Found:
    """Return the state and the end of a stream, by questions to its leader.

    Raises:
        ControlRecordError: One of them cannot be read.
        StreamNotFoundError: The stream does not exist.

    Cost: two round trips, one more where an instance has marked that it wants to claim.
    """
    # The end first: a state that is read later knows of the batch that ended the stream.
    end = await get_message(api, stream.name, last_by_subject=placement.control.end)
    state = await get_message(api, stream.name, last_by_subject=placement.state)
    final = 0 if end is None else await last_before(api, stream, placement, end.sequence)
    token = _sequence(state)
    if state is not None and not state.data:  # A mark: the record is the first on its subject.
        state = await get_message(api, stream.name, 1, next_by_subject=placement.state)
    has_record = state is not None and bool(state.data)
    return Found(
        record=StateRecord.from_json(state.data) if state is not None and has_record else None,
        token=token,
        record_seq=_sequence(state) if has_record else 0,
        end=None if end is None else EndOfStream.from_json(end.data),
        final_offset=final,
    )


async def check_captured(api: Api, stream: StreamInfo, subjects: Iterable[str]) -> None:
    """Look why nobody has answered a write: refuse subjects that the stream has lost.

    Raises:
        ConfigError: The stream does not capture one of them any more.
        NatsStreamError: The stream did not answer.
    """
    config = (await stream_info(api, stream.name)).config
    for subject in dict.fromkeys(subjects):
        if not captures(config, subject):
            raise ConfigError(
                f"stream {config.name} does not capture {subject} any more",
                hint=f"its subjects are {', '.join(config.subjects or ())}: an update has removed "
                "it; a program that calls streams.ensure() must name the producer's subjects too",
            )


async def last_before(api: Api, stream: StreamInfo, placement: Placement, end_seq: int) -> int:
    """Return the sequence of the last message before the end of a stream; 0 for none.

    Control records stand between them, and gaps where such records were replaced.

    Cost: one read of a few messages; more where more records and gaps are.
    """
    last, count = end_seq - 1, _LOOKED_AT
    while last > 0:
        first = max(last - count + 1, 1)
        spec = RangeSpec(
            stream=stream.name,
            first_seq=first,
            last_seq=last,
            created_ns=stream.created_ns,
            on_loss="report",
        )
        found = 0
        async for message in StreamRange(api, spec):
            if not placement.control.has(message.subject):
                found = message.sequence
        if found:
            return found
        last, count = first - 1, count * 10
    return 0


def _keeps_marks(config: StreamConfig) -> bool:
    """Return True if a record stays beside marks, and goes with them at the next record."""
    return not config.deny_purge and (config.max_msgs_per_subject or 0) <= 0


def _sequence(message: Message | None) -> int:
    return 0 if message is None else message.sequence
