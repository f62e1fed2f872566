"""Stores a list of messages as one atomic batch, in one write and one round trip.

Law: the server checks a batch at its commit, so nothing is awaited before it. A lost answer leaves
open whether the batch is stored; expectations in it make sending it again safe.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress

from natsstream._wire.client import Client
from natsstream._wire.encode import publish_command, publish_start
from natsstream._wire.parser import Frame
from natsstream._wire.requests import check_responders
from natsstream.api.requests import Api
from natsstream.errors import (
    BatchIncompleteError,
    ConnectionLostError,
    NatsStreamError,
    ServerError,
)
from natsstream.publish.batches.atomic_rules import (
    BatchAck,
    abort_block,
    batch_mark,
    committing,
    marked,
    read_batch_ack,
    read_staged,
)
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
        PayloadTooLargeError: A message exceeds the server's limit; nothing was sent.
        ServerError: The stream refused the batch; nothing of it is stored.
        WrongStreamError: Another stream has stored the batch.
        TransportError: No answer came: the batch may be stored or not.

    Cost: one round trip, and a few milliseconds in a file store with one replica.
    """
    client, batch_id = api.client, secrets.token_urlsafe(_ID_BYTES)
    reply, answer = client.requests.expect(messages[0].subject)
    is_over = False
    try:
        run, last = _encoded(client, messages, batch_id, reply)
        if not client.write_now(run):
            raise ConnectionLostError(
                f"batch into {stream}: no server is connected", retryable=True
            )
        *_, final = messages
        frame = await client.request(final.subject, final.data, headers=last, timeout=timeout)
        try:
            ack = read_batch_ack(frame, final.subject, batch_id)
        except ServerError as error:
            is_over = True
            if isinstance(error, BatchIncompleteError) and answer.done():
                _raise_refusal(answer.result(), messages[0].subject, stream)
            raise
        is_over = True
        check_teller(final.subject, ack.stream, ack.sequence, stream)
        return ack
    finally:
        client.requests.forget(reply)
        if not is_over:
            _abort(client, messages[0].subject, batch_id)


def _encoded(
    client: Client, messages: Sequence[Prepared], batch_id: str, reply: str
) -> tuple[bytes, bytes]:
    """Return the commands of all messages but the last, and the last one's header block.

    The first message has a reply subject: why a batch cannot begin is said to it alone.
    """
    mark, largest = batch_mark(batch_id), client.max_payload_bytes
    commands: list[bytes] = []
    starts: dict[str, bytes] = {}
    block = b""
    for number, message in enumerate(messages, 1):
        block = marked(message.block, mark, number)
        if number == len(messages):
            block = committing(block)
        if len(block) + len(message.data) > largest:
            what = f"message to {message.subject}, with the batch's headers,"
            raise too_large(what, len(block) + len(message.data), largest)
        if number == 1:
            start = publish_start(message.subject, reply)
        else:
            start = starts.get(message.subject, b"")
            if not start:
                start = starts[message.subject] = publish_start(message.subject, "")
        if number < len(messages):
            commands.append(publish_command(start, b"", block, message.data))
    return b"".join(commands), block


def _raise_refusal(frame: Frame, subject: str, stream: str) -> None:
    """Raise why the batch could not begin, if the answer to its first message says so."""
    check_responders(frame, subject)
    read_staged(frame, f"batch into {stream}, message 1")


def _abort(client: Client, subject: str, batch_id: str) -> None:
    """Let the server forget the batch: it would count for 10 s among the open ones."""
    with suppress(NatsStreamError):
        command = publish_command(publish_start(subject, ""), b"", abort_block(batch_id), b"")
        client.write_now(command)
