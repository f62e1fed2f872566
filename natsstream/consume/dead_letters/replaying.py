"""Replaying a dead message once: the note of a replay in flight, and finding what was sent.

Law: the note is stored before the message is sent. A replay that finds a note looks for the message
in the stream that it was sent to, because that stream remembers a message id only within its
duplicate window. A message that is gone there may never have been sent, and is sent again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from natsstream._wire.headers import HeaderName
from natsstream.api.features import GET_BY_TIME
from natsstream.api.message import Message
from natsstream.api.names import check_subject
from natsstream.api.requests import Api
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_requests import find_streams, get_message, purge, stream_info
from natsstream.consume.dead_letters.subjects import LetterKey, note_subject
from natsstream.errors import (
    ServerError,
    StreamNotFoundError,
    SubjectError,
    UnsupportedServerError,
    WrongLastSequenceError,
)
from natsstream.publish.destination import check_teller
from natsstream.publish.outgoing import Prepared, add_header
from natsstream.publish.pub_ack import PubAck
from natsstream.publish.publish import publish
from natsstream.read.ranges import StreamRange
from natsstream.read.reader import RangeSpec

# How far the clocks of the leaders of two streams may be apart.
_SLACK_NS = 5_000_000_000
# Messages of a work-queue stream that are looked at, a round trip each.
_STEPS_MAX = 2_000


def evicts(config: StreamConfig) -> bool:
    """Return True if a full stream drops its oldest messages for new ones."""
    limits = (config.max_msgs, config.max_bytes)
    return config.discard != "new" and any(limit and limit > 0 for limit in limits)


async def find_sent(
    api: Api, queue: str, key: LetterKey, subject: str, id_: str, *, first: int
) -> PubAck | None:
    """Note that a message is sent again, or find it where that was noted and done before.

    Args:
        api: The connection's API.
        queue: The dead-letter stream.
        key: Which message.
        subject: Where it is sent to.
        id_: The message id that it is sent with.
        first: Sequence of the letter in the dead-letter stream: an older note is another letter's,
            of the same message, which is gone.

    Returns:
        Where it was stored before; None when it is to be sent.

    Raises:
        TransportError: The server did not answer in time; nothing was sent.

    Cost: one round trip; after an interrupted replay three more, and reading what the stream has
    taken on the subject since then.
    """
    noted = note_subject(queue, key)
    headers = add_header(b"", HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE, 0)
    body = subject.encode("utf-8", "surrogateescape")
    try:
        note = Prepared(noted, body, headers, (), expects_last_id=False)
        ack = await publish(api, note, timeout=None)
        check_teller(noted, ack.stream, ack.sequence, queue)
    except WrongLastSequenceError:
        pass
    except ServerError:  # A full stream must let its letters go: within the duplicate window, then.
        return None
    else:
        return None
    note = await get_message(api, queue, last_by_subject=noted)
    if note is None or note.sequence < first:
        return None
    try:
        was_sent_to = check_subject(note.data.decode())
    except (UnicodeDecodeError, SubjectError):  # Another program wrote it.
        return None
    for stream in await find_streams(api, was_sent_to):
        ack = await _find(api, stream, was_sent_to, note.time_ns - _SLACK_NS, id_)
        if ack is not None:
            return ack
    return None


async def _find(api: Api, stream: str, subject: str, since_ns: int, id_: str) -> PubAck | None:
    start: int | None = max(since_ns, 0)
    try:
        await api.require(GET_BY_TIME)
    except UnsupportedServerError:  # Then all messages of the subject are looked at.
        start = None
    spec = RangeSpec(stream=stream, filters=[subject], start_time_ns=start, on_loss="report")
    try:
        is_queue = (await stream_info(api, stream)).config.retention == "workqueue"
        found = _step(api, stream, subject, start) if is_queue else aiter(StreamRange(api, spec))
        async with aclosing(found) as messages:
            async for message in messages:
                if message.headers.get(HeaderName.MSG_ID) == id_:
                    return PubAck(stream, message.sequence, duplicate=True)
    except StreamNotFoundError:
        pass
    return None


async def _step(
    api: Api, stream: str, subject: str, start_time: int | None
) -> AsyncGenerator[Message]:
    """Yield messages one by one: a work-queue stream gives them in bulk only to who acks them."""
    sequence = 1 if start_time is None else None
    for _ in range(_STEPS_MAX):
        try:
            message = await get_message(
                api, stream, sequence, next_by_subject=subject, start_time=start_time
            )
        except ServerError:
            return
        if message is None:
            return
        yield message
        sequence, start_time = message.sequence + 1, None


async def forget_note(api: Api, queue: str, key: LetterKey) -> None:
    """Delete the note of a message, if there is one and the stream allows it.

    Raises:
        TransportError: There was no answer; whether it was deleted is not known.

    Cost: one round trip, plus the stream's replication.
    """
    with suppress(ServerError):  # One that stays is older than any letter to come.
        await purge(api, queue, subject=note_subject(queue, key))
