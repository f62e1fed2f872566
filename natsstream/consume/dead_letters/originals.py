"""The message that a letter is about, in its own stream: reading it, and letting go of it.

Law: only the message that is meant is touched. Its sequence alone does not say which it is, since
a stream that was made again gives the same sequences to other messages: the time says it.
"""

from __future__ import annotations

from collections.abc import Callable

from natsstream._wire import subjects
from natsstream.api import stream_requests
from natsstream.api.consumer_requests import consumer_info
from natsstream.api.message import Message
from natsstream.api.message_query import SEQUENCE_MAX
from natsstream.api.requests import Api
from natsstream.api.stream_requests import get_message, stream_info
from natsstream.consume.dead_letters.replaying import evicts
from natsstream.errors import (
    ConsumerNotFoundError,
    MessageNotFoundError,
    NoRespondersError,
    PermissionDeniedError,
    StreamNotFoundError,
)


async def find_original(
    api: Api, stream: str, sequence: int, is_meant: Callable[[int], bool]
) -> Message | None:
    """Return the message at a sequence of a stream, or None when it is gone.

    Args:
        api: The connection's API.
        stream: The stream; one that does not exist any more has no messages.
        sequence: The sequence there.
        is_meant: Tells by the time at which it was stored whether it is the message that is meant.

    Raises:
        TransportError: The server did not answer in time.

    Cost: one round trip.
    """
    if not 1 <= sequence <= SEQUENCE_MAX:
        return None  # A letter of another client may name anything.
    try:
        found = await get_message(api, stream, sequence)
    except StreamNotFoundError:
        return None
    return found if found is not None and is_meant(found.time_ns) else None


async def let_go(
    api: Api, stream: str, consumer: str, sequence: int, is_meant: Callable[[int], bool]
) -> bool:
    """Settle a message for the consumer that could not handle it.

    A message that was delivered as often as a consumer allows stays in a work-queue or interest
    stream, stuck, until somebody settles or deletes it. One whose worker died between the copy and
    its ack would be redelivered.

    An acknowledgement names the message by its sequence, so it can be given without a delivery; on
    interest streams it takes nothing from other consumers. Where the consumer is gone, the message
    is deleted from a work-queue stream, where it would wait for the next consumer.

    Returns:
        True when there was something to settle.

    Raises:
        ServerError: The server refused, such as a stream that denies deletion.
        TransportError: The server did not answer in time.

    Cost: two to four round trips.
    """
    if await find_original(api, stream, sequence, is_meant) is None:
        return False
    try:
        info = await consumer_info(api, stream, consumer)
    except (ConsumerNotFoundError, StreamNotFoundError):
        return await _delete_from_queue(api, stream, sequence)
    if info.config.ack_policy != "explicit":
        return False  # An acknowledgement would settle all before it, or nothing.
    subject = subjects.settle_message(stream, consumer, sequence)
    timeout = api.client.options.request_timeout
    try:
        await api.client.request(subject, b"+ACK", timeout=timeout, retries=2)
    except NoRespondersError:
        return await _delete_from_queue(api, stream, sequence)
    return True


async def _delete_from_queue(api: Api, stream: str, sequence: int) -> bool:
    try:
        info = await stream_info(api, stream)
    except StreamNotFoundError:
        return False
    if info.config.retention != "workqueue":
        return False
    return await delete_message(api, stream, sequence)


async def keeps_until_acked(api: Api, stream: str) -> bool:
    """Return True if a stream deletes a message only when it is acked, or by request.

    False also where the stream is gone, or this user may not see it.

    Raises:
        TransportError: The server did not answer in time.

    Cost: one round trip.
    """
    try:
        config = (await stream_info(api, stream)).config
    except (PermissionDeniedError, StreamNotFoundError):
        return False
    others = (
        config.max_age,
        config.allow_msg_ttl,
        config.allow_rollup_hdrs,
        (config.max_msgs_per_subject or 0) > 0,
        evicts(config),
    )
    return config.retention in ("workqueue", "interest") and not any(others)


async def delete_message(api: Api, stream: str, sequence: int) -> bool:
    """Delete one message; False when it was gone already.

    Raises:
        ServerError: The server refused, such as a stream that denies deletion.
        TransportError: There was no answer; whether it was deleted is not known.

    Cost: one round trip, plus the stream's replication.
    """
    try:
        await stream_requests.delete_message(api, stream, sequence)
    except MessageNotFoundError:
        return False
    return True


def header_block_of(message: Message) -> bytes:
    """Return a message's header block as it was stored."""
    return message.header_block
