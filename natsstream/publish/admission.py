"""Checks of a message that need the servers or the stream, before it is sent.

Law: an expectation of the last message id never reaches a stream with replicas. There each server
compares it when it applies the message, and nats-server 2.14 to 2.15.1 is out of step after one
that is wrong: every later write to the stream waits for ever (seen live). One that is in flight
while a stream gets replicas does the same: 5 of 5 streams broke, each scaled from one replica to
three under a run of such messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import find_streams, stream_info
from natsstream.errors import ConfigError, ConnectionLostError, NatsStreamError
from natsstream.publish.outgoing import Prepared
from natsstream.publish.pub_ack import no_stream

T = TypeVar("T")

_WAIT_S = 0.25


async def check_with_stream(
    api: Api,
    message: Prepared,
    *,
    stream: StreamInfo | None = None,
    timeout: float | None = None,
) -> StreamInfo | None:
    """Refuse a message that the servers or its stream would not store as meant.

    Args:
        api: The connection.
        message: The message, by `outgoing.prepare`.
        stream: Its stream, if known; its replicas are read again.
        timeout: Seconds for each request; None is `request_timeout`.

    Returns:
        The stream, if it was read.

    Raises:
        ConnectionLostError: The message was not sent, and the error says so.
        UnsupportedServerError: The servers lack a feature of the message.
        ConfigError: It expects a last message id, and the stream has replicas.
        NoRespondersError: It expects a last message id, and no stream captures the subject.

    Cost: nothing for a message that asks for nothing; the API level once for each connection; one
    or two round trips for an expected message id, each time, for a stream may get replicas.
    """
    try:
        return await _checked(api, message, stream, timeout)
    except ConnectionLostError as error:
        raise unsent(f"publish to {message.subject}", error) from error


def unsent(what: str, error: ConnectionLostError) -> ConnectionLostError:
    """Return the error of a message that was not sent, as what is asked before it was not answered.

    Args:
        what: The operation.
        error: The error of the question.
    """
    told = ConnectionLostError(
        f"{what}: {error.message}; it was not sent",
        detail=error.detail,
        hint="check the servers, and send it again",
        retryable=True,
    )
    told.is_unsent = True
    return told


async def _checked(
    api: Api, message: Prepared, stream: StreamInfo | None, timeout: float | None
) -> StreamInfo | None:
    if message.needs:
        await api.require(*message.needs)
    if message.expects_last_id:
        if stream is not None:
            name = stream.name
        else:
            name = await find_stream(api, message.subject, timeout=timeout)
        found = await stream_info(api, name, timeout=timeout)
        replicas = found.config.replicas or 1
        if replicas > 1:
            raise ConfigError(
                f"expect: last_msg_id on stream {name}, which has {replicas} replicas",
                detail="a wrong one would break the stream for good: nats-server up to 2.15.1 "
                "takes no write after it",
                hint="expect last_seq or last_subject_seq",
            )
        return found
    return None


async def find_stream(api: Api, subject: str, *, timeout: float | None = None) -> str:
    """Return the name of the stream that captures a subject, which a template may make now.

    Args:
        api: The connection.
        subject: The subject.
        timeout: Seconds for each question, while the server is away as well; None is
            `request_timeout`.

    Raises:
        NoRespondersError: None does.

    Cost: one round trip where there is one.
    """
    names = await find_streams(api, subject, timeout=timeout)
    make = api.make_stream
    if not names and make is not None and await insist(lambda: make(subject), timeout or 0.0):
        names = await find_streams(api, subject, timeout=timeout)
    if not names:
        raise no_stream(subject)
    return names[0]


async def insist(ask: Callable[[], Awaitable[T]], for_s: float) -> T:
    """Return an answer; repeat retryable errors for a while.

    Args:
        ask: One attempt, with a deadline of its own.
        for_s: Seconds after which there is no further attempt.

    Raises:
        NatsStreamError: The error of the last attempt.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + for_s
    while True:
        try:
            return await ask()
        except NatsStreamError as error:
            if not error.retryable or loop.time() + _WAIT_S >= deadline:
                raise
        await asyncio.sleep(_WAIT_S)


def is_unclustered(stream: StreamInfo) -> bool:
    """Return True if a stream is on a server outside of clusters, where it can get no replica."""
    cluster = stream.cluster
    return (stream.config.replicas or 1) == 1 and (cluster is None or not cluster.name)
