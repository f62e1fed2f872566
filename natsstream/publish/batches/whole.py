"""Stores a list of messages as one atomic batch, in one write and one round trip.

Law: the server checks a batch at its commit, so nothing is awaited before it. A lost answer leaves
open whether the batch is stored; expectations in it make sending it again safe.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from natsstream._wire.parser import Frame
from natsstream._wire.requests import check_responders
from natsstream.api.requests import Api
from natsstream.errors import BatchIncompleteError, ServerError
from natsstream.publish.batches.atomic_rules import (
    BatchAck,
    batch_mark,
    committing,
    marked,
    read_batch_ack,
    read_staged,
)
from natsstream.publish.batches.atomic_sender import AtomicSender
from natsstream.publish.destination import check_teller
from natsstream.publish.outgoing import Prepared, too_large

# Short, since each stored message carries it; 48 random bits tell a stream's open batches apart.
_ID_BYTES = 6


async def store_together(
    api: Api, stream: str, messages: Sequence[Prepared], *, timeout: float
) -> BatchAck:
    """Store messages together or not at all; return the stream's ack.

    Args:
        api: The connection.
        stream: The stream that captures the subjects.
        messages: Two or more, at most as many as the server takes in a batch.
        timeout: Seconds to wait for the ack.

    Raises:
        PayloadTooLargeError: A message exceeds the server's limit; nothing is stored.
        PermissionDeniedError: This user may not publish one of them; nothing is stored.
        ServerError: The stream refused the batch; nothing of it is stored.
        WrongStreamError: Another stream has stored the batch.
        TransportError: No answer came: the batch may be stored or not.

    Cost: one round trip, and a few milliseconds in a file store with one replica.
    """
    client, batch_id = api.client, secrets.token_urlsafe(_ID_BYTES)
    # The first message has a reply subject: why a batch cannot begin is said to it alone.
    reply, answer = client.requests.expect(messages[0].subject)
    sender = AtomicSender(client, stream, batch_id)
    mark, largest = batch_mark(batch_id), client.max_payload_bytes
    *others, final = messages
    is_over = False
    try:
        # It is written in parts, so that the server works on the first ones meanwhile.
        for number, (subject, data, given, _, _) in enumerate(others, 1):
            block = marked(given, mark, number)
            _check_size(subject, len(block) + len(data), largest)
            sender.put(subject, data, block, reply=reply if number == 1 else "")
        block = committing(marked(final.block, mark, len(messages)))
        _check_size(final.subject, len(block) + len(final.data), largest)
        sender.check()
        frame = await sender.commit(final.subject, final.data, block, timeout)
        try:
            ack = read_batch_ack(frame, final.subject, batch_id)
        except ServerError as error:
            is_over = True
            if isinstance(error, BatchIncompleteError):
                sender.raise_denied(error)
                if answer.done():
                    _raise_refusal(answer.result(), messages[0].subject, stream)
            raise
        is_over = True
        check_teller(final.subject, ack.stream, ack.sequence, stream)
        return ack
    finally:
        client.requests.forget(reply)
        if is_over:
            sender.close()
        else:
            sender.end()


def _check_size(subject: str, size: int, largest: int) -> None:
    if size > largest:
        raise too_large(f"message to {subject}, with the batch's headers,", size, largest)


def _raise_refusal(frame: Frame, subject: str, stream: str) -> None:
    """Raise why the batch could not begin, if the answer to its first message says so."""
    check_responders(frame, subject)
    read_staged(frame, f"batch into {stream}, message 1")
