"""Publishing one message into a stream, and waiting for its ack.

Law: a message whose ack was returned is stored. It is sent again only if the server has
answered that there are no responders, and only until its deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.arguments import check_int, check_seconds
from natsstream.errors import ConnectionLostError, NoRespondersError, RequestTimeoutError
from natsstream.publish.admission import check_with_stream
from natsstream.publish.destination import Destination, captures, check_acks, check_teller
from natsstream.publish.outgoing import Prepared
from natsstream.publish.pub_ack import PubAck, no_stream, read_ack

# ADR-22: while a stream's leader changes, its subjects have no responders for a moment.
RETRY_ATTEMPTS = 2
RETRY_WAIT_S = 0.25
_ATTEMPTS_ON_NEW = 8

_NOT_TAKEN = "no answer in time whether the stream takes it; the message was not sent"
_NOT_FOUND = "no answer in time which stream captures it; the message was not sent"
_NOT_MADE = "no stream captures it, and none was created in time; the message was not stored"


async def publish(
    api: Api,
    message: Prepared,
    *,
    stream: StreamInfo | None = None,
    timeout: float | None = None,
    retry_attempts: int = RETRY_ATTEMPTS,
    retry_wait: float = RETRY_WAIT_S,
) -> PubAck:
    """Publish one message and wait for the stream's ack; see `JetStream.publish`.

    Args:
        api: The connection.
        message: The message, by `outgoing.prepare`.
        stream: The stream to publish into, None for any; no template creates another one.
        timeout: Seconds in all; None is `request_timeout`.
        retry_attempts: Retries if there are no responders.
        retry_wait: Seconds between two attempts.
    """
    given = api.client.options.request_timeout if timeout is None else timeout
    wait_s = check_seconds(given, "timeout")
    check_int(retry_attempts, "retry_attempts", minimum=0)
    check_seconds(retry_wait, "retry_wait", may_be_zero=True)
    if stream is not None:
        check_acks(stream.config)
    subject = message.subject
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    if message.needs or message.expects_last_id:
        async with _within(api, deadline, subject, _NOT_TAKEN):
            left = max(deadline - loop.time(), 0.001)
            await check_with_stream(api, message, stream=stream, timeout=left)
    if stream is not None and not captures(stream.config, subject):
        async with _within(api, deadline, subject, _NOT_FOUND):
            await Destination(api, stream).check(subject)
    is_made = stream is not None
    while True:
        try:
            frame = await api.client.request(
                subject,
                message.data,
                headers=message.block,
                timeout=max(deadline - loop.time(), 0.001),
                what=f"publish to {subject}",
            )
            ack = read_ack(frame, subject)
            if stream is not None:
                check_teller(subject, ack.stream, ack.sequence, stream.name)
            return ack
        except NoRespondersError as error:
            if not is_made and api.make_stream is not None:
                async with _within(api, deadline, subject, _NOT_MADE):
                    is_made = await api.make_stream(subject)
                if is_made:
                    # The servers need a moment until all know its subjects.
                    retry_attempts = max(retry_attempts, _ATTEMPTS_ON_NEW)
                    continue
            if retry_attempts <= 0 or loop.time() + retry_wait >= deadline:
                raise no_stream(subject) from error
            retry_attempts -= 1
            await asyncio.sleep(retry_wait)
            if loop.time() >= deadline:  # A busy loop woke up late: the deadline has passed.
                raise no_stream(subject) from error
        except ConnectionLostError as error:
            if error.is_unsent:
                raise
            raise lost_error(f"publish to {subject}", error.detail) from error
        except RequestTimeoutError as error:
            raise overdue_error(subject, wait_s, error.detail) from error


@asynccontextmanager
async def _within(api: Api, deadline: float, subject: str, what: str) -> AsyncGenerator[None]:
    """Bound what precedes the message.

    Raises:
        ConnectionLostError: The time is over, and there is no connection; the message was not sent.
        RequestTimeoutError: The time is over.
    """
    now = asyncio.get_running_loop().time
    began = now()
    try:
        async with asyncio.timeout_at(deadline):
            yield
    except TimeoutError:
        if not api.client.is_connected:
            lost = api.client.unsent_error(now() - began, "timeout or request_timeout")
            lost.name_call(f"publish to {subject}")
            raise lost from None
        raise RequestTimeoutError(f"publish to {subject}: {what}", retryable=True) from None


def lost_error(what: str, cause: str = "") -> ConnectionLostError:
    """Return the error of a message whose connection broke; `cause` is its detail."""
    return ConnectionLostError(
        f"{what}: connection lost before the ack came; the message may be stored or not",
        detail=cause,
        hint="send it again with the same msg_id or expectation; js.publisher(retry_for=...) does "
        "so by itself",
        retryable=True,
    )


def overdue_error(subject: str, wait_s: float, cause: str = "") -> RequestTimeoutError:
    """Return the error of a message whose ack did not come; `cause` is its detail."""
    return RequestTimeoutError(
        f"publish to {subject}: no ack within {wait_s:g} s; the message may be stored or not",
        detail=cause,
        hint="send it again with the same msg_id or expectation; a stream with no_ack sends no ack",
        retryable=True,
    )
