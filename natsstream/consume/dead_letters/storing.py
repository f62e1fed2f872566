"""Storing a letter: once, for certain, before its message is given up.

Law: when it returns, the letter is in the stream; when it raises, it may not be. It is never there
twice, however often and by whichever worker it is stored again. The stream refuses a second one by
the sequence that it expects of the letter's own subject; a message id alone would be forgotten
after the duplicate window.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from natsstream._wire.headers import HeaderName
from natsstream.api.requests import Api
from natsstream.api.stream_requests import get_message
from natsstream.consume.dead_letters.envelope import FailureRecord, encode
from natsstream.consume.dead_letters.subjects import LetterKey, letter_subject
from natsstream.errors import (
    MessageTooLargeError,
    NatsStreamError,
    NoRespondersError,
    PayloadTooLargeError,
    ServerError,
    StreamFullError,
    TransportError,
    UnavailableError,
    WrongLastSequenceError,
)
from natsstream.publish.destination import check_teller
from natsstream.publish.outgoing import Prepared, add_header
from natsstream.publish.publish import publish

_RETRY_WAIT_S = 0.1
# An ack may be lost with a stream's leader; asking again is safe.
_ATTEMPT_S = 5.0


async def store_letter(
    api: Api,
    queue: str,
    failure: FailureRecord,
    block: bytes,
    payload: bytes,
    *,
    timeout: float,
) -> bool:
    """Store one letter, and wait for the ack of the stream.

    Args:
        api: The connection's API.
        queue: The dead-letter stream.
        failure: Why and where the message died.
        block: The message's header block.
        payload: The message's payload.
        timeout: Seconds in all.

    Returns:
        True when it was stored now, for certain; False when it was there already, also in a stream
        that takes nothing more, and where the ack of storing it was lost.

    Raises:
        PayloadTooLargeError: Message and envelope together exceed the server's `max_payload`, also
            without the error's text; nothing was sent.
        MessageTooLargeError: The same of the stream's `max_msg_size`.
        WrongStreamError: Another stream captures the letter's subject, and has stored it.
        ServerError: The stream refuses it, such as a full one.
        TransportError: There was no answer in time; the letter may be stored or not, and storing it
            again is safe.

    Cost: one round trip, plus the stream's replication.
    """
    key = LetterKey(failure.stream, failure.consumer, failure.sequence, failure.time_ns)
    subject = letter_subject(queue, key)
    headers = _headers(failure, block, with_error=True)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        left = max(deadline - loop.time(), 0.001)
        try:
            await api.client.wait_connected(left)
            left = max(deadline - loop.time(), 0.001)
            letter = Prepared(subject, payload, headers, (), expects_last_id=False)
            ack = await publish(api, letter, timeout=min(left, _ATTEMPT_S))
            check_teller(subject, ack.stream, ack.sequence, queue)
        except WrongLastSequenceError:
            # The first one may not be stored yet, on a replicated stream: only a look tells.
            if await get_message(api, queue, last_by_subject=subject) is not None:
                return False
            if loop.time() + _RETRY_WAIT_S >= deadline:
                raise
        except (PayloadTooLargeError, MessageTooLargeError) as error:
            smaller = _headers(failure, block, with_error=False)
            if len(smaller) >= len(headers):
                if isinstance(error, MessageTooLargeError):
                    error.hint = f"raise max_msg_size of stream {queue} by a few KiB; until then "
                    error.hint += "the message stays with its consumer"
                    raise
                raise _too_large(queue, failure, error) from error
            headers = smaller
            continue
        except (TransportError, UnavailableError) as error:
            if not error.retryable or loop.time() + _RETRY_WAIT_S >= deadline:
                _explain(queue, error)
                raise
        except ServerError as error:
            # Some servers look at the limits first, and at what is expected later.
            if await _is_there(api, queue, subject):
                return False
            _explain(queue, error)
            raise
        else:
            return True
        await asyncio.sleep(_RETRY_WAIT_S)


async def _is_there(api: Api, queue: str, subject: str) -> bool:
    with suppress(NatsStreamError):  # The refusal says more.
        return await get_message(api, queue, last_by_subject=subject) is not None
    return False


def _headers(failure: FailureRecord, block: bytes, *, with_error: bool) -> bytes:
    headers = encode(block, failure, with_error=with_error)
    return add_header(headers, HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE, 0)


def _explain(queue: str, error: NatsStreamError) -> None:
    """Say what is to be done about a stream that is full or not there."""
    if isinstance(error, StreamFullError):
        error.hint = f"drop or replay letters of {queue}, or raise its limits; until then the "
        error.hint += "message stays with its consumer"
    if isinstance(error, NoRespondersError):
        error.hint = f"is there a dead-letter stream {queue}? js.dead_letters.ensure({queue!r}) "
        error.hint += "makes it"


def _too_large(
    queue: str, failure: FailureRecord, error: PayloadTooLargeError
) -> PayloadTooLargeError:
    return PayloadTooLargeError(
        f"message {failure.sequence} of stream {failure.stream} does not fit into an envelope for "
        f"{queue}",
        detail=error.message,
        hint="raise max_payload in the server's configuration by a few KiB; until then the message "
        "stays with its consumer",
    )
