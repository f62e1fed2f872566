"""The outcome of an atomic batch whose commit was not answered.

Law: the outcome is "not stored" only if the batch cannot be stored later either, and nothing was
removed where it would be.

A batch that is found is stored. Otherwise:

1. The server forgets the batch: a message with a wrong number leaves a gap in it. A commit that
   comes later finds no batch; one that came earlier was handled before this answer. On a stream
   with one replica that is all: what is handled is stored.
2. With replicas a handled batch may still be in flight through the stream's log. A publish that
   expects an impossible sequence is refused with the sequence that the leader has given out, the
   log's included; the stream is waited for until it has come to it.
3. A leader that was deposed without knowing it may have answered all this. So the stream's info
   must say that a majority was in touch with this leader after it had forgotten the batch.
4. The messages since the stream was opened here are searched for the batch's id.
5. A stream of a cluster with one replica may hold only the first messages of a batch. So its last
   one has to be there as well.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from dataclasses import dataclass

from natsstream._wire.headers import HeaderName, Headers
from natsstream._wire.parser import Frame
from natsstream.api.cluster_info import ClusterInfo
from natsstream.api.requests import Api, decode
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import get_message, stream_info
from natsstream.errors import (
    BatchOutcomeUnknownError,
    NatsStreamError,
    ServerError,
    TransportError,
    WrongLastSequenceError,
)
from natsstream.publish.batches.atomic_rules import BatchAck, abort_block, may_stay_in_part
from natsstream.publish.outgoing import add_header
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec

_RETRY_WAIT_S = 0.1
# No stream comes to it; the server reads the header as a signed number.
_IMPOSSIBLE_SEQUENCE = 2**63 - 1
_NS_PER_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class LostCommit:
    """A batch that is looked for.

    Attributes:
        stream: The stream, as it was before the batch began.
        batch_id: Its id.
        count: Its messages.
        anchor: A subject of the stream.
        subject: Where its last message went.
        is_known: Whether the stream has answered its first message. If not, its commit is its first
            message and would begin the batch whenever it arrives (servers before 2.14).
    """

    stream: StreamInfo
    batch_id: str
    count: int
    anchor: str
    subject: str
    is_known: bool = True


async def find_outcome(api: Api, lost: LostCommit, timeout: float) -> BatchAck | None:
    """Return the ack of a batch that is stored, None of one that is not and never will be.

    Raises:
        BatchOutcomeUnknownError: It cannot be told.
    """
    cause: NatsStreamError | None = None
    try:
        async with asyncio.timeout(timeout):
            while True:
                try:
                    return await _look(api, lost)
                except NatsStreamError as error:
                    if isinstance(error, BatchOutcomeUnknownError) or not error.retryable:
                        raise
                    cause = error  # A leader that is away, mostly; all of it can be done again.
                await asyncio.sleep(_RETRY_WAIT_S)
    except TimeoutError:
        pass
    except BatchOutcomeUnknownError:
        raise
    except NatsStreamError as error:
        cause = error
    raise BatchOutcomeUnknownError(
        f"batch {lost.batch_id}: stream {lost.stream.name} did not tell within {timeout:g} s "
        "whether it is stored",
        detail=cause.message if cause is not None else "",
        hint="ask again with outcome() when the stream has a leader",
        retryable=True,
    ) from cause


async def _look(api: Api, lost: LostCommit) -> BatchAck | None:
    # A message that the leader has is stored; only a missing one needs proof.
    found = await _last_of(api, lost) or await _search(api, lost, await _settle(api, lost))
    if found is not None and may_stay_in_part(lost.stream):
        last = await get_message(api, lost.stream.name, found.sequence)
        if last is None or last.headers.get(HeaderName.BATCH_ID) != lost.batch_id:
            raise _unknown(
                lost,
                "only its first messages are there: the server was killed while it stored them, or "
                f"the last one was removed; it would stand at {found.sequence}",
            )
    return found


async def _settle(api: Api, lost: LostCommit) -> StreamInfo:
    """Wait until the batch is stored, or cannot be stored any more; return the stream then."""
    loop = asyncio.get_running_loop()
    await _refused(api, lost.anchor, abort_block(lost.batch_id))
    forgotten_at = loop.time()
    given_out: int | None = None
    while True:
        asked_at = loop.time()
        info = await stream_info(api, lost.stream.name)
        if info.created_ns != lost.stream.created_ns:
            raise _unknown(lost, "the stream was deleted and made again")
        if (info.config.replicas or 1) == 1:
            return info
        within_ns = int((asked_at - forgotten_at) * _NS_PER_SECOND)
        is_there = given_out is not None and info.state.last_seq >= given_out
        if is_there and is_confirmed(info.cluster, within_ns=within_ns):
            return info
        if info.config.allow_msg_counter:  # Counters refuse every expectation, for other reasons.
            raise _unknown(lost, "a replicated stream of counters does not tell what is in flight")
        last_seq = await _given_out(api, lost)
        given_out = last_seq if given_out is None else min(given_out, last_seq)
        await asyncio.sleep(_RETRY_WAIT_S)


async def _refused(api: Api, subject: str, block: bytes) -> ServerError:
    """Publish what the stream refuses until it has, and return its refusal."""
    while True:
        try:
            await api.client.wait_connected(api.client.options.request_timeout)
            frame = await _ask(api, subject, block)
            decode(frame[3], f"publish to {subject}")
        except ServerError as error:
            if not error.retryable:
                return error
        except TransportError as error:
            if not error.retryable:
                raise
        await asyncio.sleep(_RETRY_WAIT_S)


async def _ask(api: Api, subject: str, block: bytes) -> Frame:
    # Short, and again: a leader that goes may take the question with it. Asking twice is harmless.
    return await api.client.request(
        subject, headers=block, timeout=min(2.0, api.client.options.request_timeout)
    )


async def _given_out(api: Api, lost: LostCommit) -> int:
    """Return the sequence that the stream's leader has given out, stored or in flight."""
    block = add_header(b"", HeaderName.EXPECTED_LAST_SEQUENCE, _IMPOSSIBLE_SEQUENCE)
    error = await _refused(api, lost.anchor, block)
    if isinstance(error, WrongLastSequenceError) and error.last_seq is not None:
        return error.last_seq
    raise _unknown(lost, f"the stream does not tell what is in flight: {error.message}")


def is_confirmed(cluster: ClusterInfo | None, *, within_ns: int) -> bool:
    """Return True if a majority of a stream's servers was in touch with the leader that answered.

    Args:
        cluster: Those servers, as the leader sees them; None for a server alone.
        within_ns: How long ago that may be, in nanoseconds.
    """
    if cluster is None:
        return True
    heard = 1  # Itself.
    for each in cluster.replicas:
        heard += 0 < each.active_s * _NS_PER_SECOND < within_ns and not each.is_offline
    return heard > (len(cluster.replicas) + 1) // 2


async def _search(api: Api, lost: LostCommit, info: StreamInfo) -> BatchAck | None:
    """Look for the batch among what was stored since it may have begun."""
    found = await _last_of(api, lost)
    if found is not None:
        return found
    first, last = lost.stream.state.last_seq + 1, info.state.last_seq
    if last < first + lost.count - 1:
        return _not_stored(lost)
    # Where nothing was removed, a look at one subject is enough; else each sequence counts.
    is_plain = _is_whole(info, first) and info.config.subject_transform is None
    filters = (lost.subject,) if is_plain else ()
    begin = max(first, info.state.first_seq)
    if begin > last:
        raise _unknown(lost, "messages were removed from where it would stand")
    spec = RangeSpec(
        stream=lost.stream.name,
        first_seq=begin,
        last_seq=last,
        filters=filters,
        created_ns=info.created_ns,
        on_loss="report",
    )
    seen = 0
    async with aclosing(aiter(StreamRange(api, spec))) as messages:
        async for message in messages:
            seen += 1
            found = _ack_of(message.sequence, message.headers, lost)
            if found is not None:
                return found
    if filters:
        is_proof = _is_whole(await stream_info(api, lost.stream.name), first)
    else:
        is_proof = last - first + 1 - seen < lost.count
    if not is_proof:
        raise _unknown(lost, "messages were removed from where it would stand")
    return _not_stored(lost)


def _not_stored(lost: LostCommit) -> None:
    if not lost.is_known:
        raise _unknown(lost, "its commit is its only message, and may be stored when it arrives")


def _is_whole(info: StreamInfo, first: int) -> bool:
    """Return True if a stream has each message from a sequence on."""
    return info.state.first_seq <= first and not info.state.num_deleted


async def _last_of(api: Api, lost: LostCommit) -> BatchAck | None:
    """Return the batch's ack if the newest message of its last subject belongs to it."""
    if lost.stream.config.subject_transform is not None:
        return None
    message = await get_message(api, lost.stream.name, last_by_subject=lost.subject)
    return None if message is None else _ack_of(message.sequence, message.headers, lost)


def _ack_of(sequence: int, headers: Headers, lost: LostCommit) -> BatchAck | None:
    """Return the ack of the batch that a stored message belongs to, if it is this one."""
    if headers.get(HeaderName.BATCH_ID) != lost.batch_id:
        return None
    number = headers.get(HeaderName.BATCH_SEQUENCE, "")
    if not re.fullmatch(r"[0-9]{1,20}", number) or not 1 <= int(number) <= lost.count:
        return None
    last = sequence + lost.count - int(number)  # They stand together.
    return BatchAck(lost.stream.name, last, lost.count, lost.batch_id)


def _unknown(lost: LostCommit, why: str) -> BatchOutcomeUnknownError:
    return BatchOutcomeUnknownError(
        f"batch {lost.batch_id}: whether stream {lost.stream.name} has it cannot be told",
        detail=why,
        hint="give one of its messages a msg_id or an expectation, then sending it again is safe",
    )
