"""Publishing one message into a stream, and waiting for its ack.

Law: a message whose ack was returned is in the stream; it is sent again only where the server has
said that nobody took it.
"""

from __future__ import annotations

import asyncio

from natsstream.errors import ConfigError, NoRespondersError, RequestTimeoutError
from natsstream.streams.api import Api
from natsstream.streams.names import check_subject
from natsstream.streams.publishing.outgoing import Payload, payload_bytes
from natsstream.streams.publishing.pub_ack import PubAck, no_stream, read_ack

# ADR-22: while a stream's leader changes, nobody listens on its subjects for a moment.
RETRY_ATTEMPTS = 2
RETRY_WAIT_S = 0.25


async def publish(
    api: Api,
    subject: str,
    data: Payload,
    *,
    headers: bytes,
    timeout: float | None = None,
    retry_attempts: int = RETRY_ATTEMPTS,
    retry_wait: float = RETRY_WAIT_S,
) -> PubAck:
    """Publish one message and wait for the stream's ack; see `JetStream.publish`."""
    check_subject(subject)
    payload = payload_bytes(data)
    wait_s = api.client.options.request_timeout if timeout is None else timeout
    for name, value in (("retry_attempts", retry_attempts), ("retry_wait", retry_wait)):
        if value < 0:
            raise ConfigError(f"{name} must be 0 or more, got {value}")
    if not wait_s > 0:
        raise ConfigError(f"timeout must be above 0 seconds, got {wait_s}")
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while True:
        try:
            frame = await api.client.request(
                subject, payload, headers=headers, timeout=max(deadline - loop.time(), 0.001)
            )
            return read_ack(frame, subject)
        except NoRespondersError as error:
            if retry_attempts <= 0 or loop.time() + retry_wait >= deadline:
                raise no_stream(subject) from error
            retry_attempts -= 1
        except RequestTimeoutError as error:
            raise _no_ack_in_time(subject, wait_s) from error
        await asyncio.sleep(retry_wait)


def _no_ack_in_time(subject: str, wait_s: float) -> RequestTimeoutError:
    return RequestTimeoutError(
        f"publish to {subject}: no ack within {wait_s:g} s; the message may be stored or not",
        hint="send it again with the same msg_id or expectation; a stream with no_ack never tells",
        retryable=True,
    )
