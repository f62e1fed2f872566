"""Deletes the part of a batch that a killed server has kept; a mark in front of each batch tells.

A server stores an atomic batch one message after another. One that is killed in between stores the
rest when it starts again, but a server of a cluster leaves the rest out where the stream has one
replica in files (nats-server 2.12 to 2.15). Its first messages stay then, and are none of the
producer's: no state record counts them.

Law: there a mark is the first message of each batch and the state record the last. A mark without a
record behind it has such messages; they are deleted before anything else is stored. A mark
expects the one before it, so no instance writes over a mark that it has not read.
"""

from __future__ import annotations

import logging
from contextlib import suppress

from natsstream.api.headers import HeaderName
from natsstream.api.message import Message
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import delete_message, get_message, stream_info
from natsstream.arguments import counted
from natsstream.errors import MessageNotFoundError, NotPermittedError, ProducerFailedError
from natsstream.producer.messages import Placement
from natsstream.producer.records import BatchMark
from natsstream.publish.batches.atomic_rules import may_stay_in_part
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec

_log = logging.getLogger("natsstream.producer")


async def delete_partial_batch(
    api: Api, stream: StreamInfo, placement: Placement
) -> tuple[int, ...]:
    """Delete what is left of a producer's last batch, if its state record is missing.

    Returns:
        The sequences of the marks that the next state record replaces, the newest last.

    Raises:
        ControlRecordError: The mark cannot be read.
        ProducerFailedError: There are messages to delete, and the stream has `deny_delete`.
        TransportError: The server did not answer in time.

    Cost: nothing where no part may stay, else two round trips; a few more and one for each message
    where there are some to delete.
    """
    if not may_stay_in_part(stream):
        return ()
    found = await get_message(api, stream.name, last_by_subject=placement.mark)
    if found is None:
        return ()
    mark = BatchMark.from_json(found.data)
    if await _has_record(api, stream, placement.state, found.sequence):
        return (found.sequence,)
    await _delete_part(api, stream, found, mark.count)
    return (*mark.before, found.sequence)


async def _has_record(api: Api, stream: StreamInfo, subject: str, mark_seq: int) -> bool:
    """Return True if a state record stands behind a mark.

    It need not be that of the mark's batch: only a newer one replaces a record, also while this
    reads. Empty messages are no records; see `SharedWriter.read`.
    """
    while True:
        record = await get_message(api, stream.name, mark_seq + 1, next_by_subject=subject)
        if record is None or record.data:
            return record is not None
        mark_seq = record.sequence


async def _delete_part(api: Api, stream: StreamInfo, mark: Message, count: int) -> None:
    batch_id = mark.headers.get(HeaderName.BATCH_ID)
    state = (await stream_info(api, stream.name)).state
    spec = RangeSpec(
        stream=stream.name,
        first_seq=mark.sequence + 1,
        last_seq=min(mark.sequence + count, state.last_seq),
        created_ns=stream.created_ns,
        on_loss="report",
        headers_only=True,
    )
    deleted = 0
    async for message in StreamRange(api, spec):
        if message.headers.get(HeaderName.BATCH_ID) == batch_id:
            await _delete(api, stream, message.sequence)
            deleted += 1
    if deleted:
        _log.warning(
            "stream %s: deleted %s of a batch of %d behind sequence %d: the server was "
            "killed in the middle of it, and has left the rest out",
            stream.name,
            counted(deleted, "message"),
            count,
            mark.sequence,
        )


async def _delete(api: Api, stream: StreamInfo, sequence: int) -> None:
    try:
        with suppress(MessageNotFoundError):  # Another instance does the same.
            await delete_message(api, stream.name, sequence)
    except NotPermittedError as error:
        raise ProducerFailedError(
            f"stream {stream.name}: its server was killed in the middle of a batch, and has kept "
            f"message {sequence} without the rest; deny_delete does not let it be deleted",
            hint="write to a stream with three replicas, where batches are whole",
        ) from error
