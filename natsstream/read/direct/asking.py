"""Asks for several messages at once, which come one by one on an inbox.

Law: an answer that does not end in time, or that a lost connection cuts off, is an error, never a
shorter answer.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Mapping

from natsstream._wire import subjects
from natsstream._wire.parser import Frame
from natsstream._wire.permission_violations import denied_error
from natsstream._wire.requests import check_responders
from natsstream.api.requests import Api
from natsstream.errors import NatsStreamError, NoRespondersError
from natsstream.events import PermissionDenied
from natsstream.read.direct.answers import DirectBatch, Run


async def ask_batch(
    api: Api, stream: str, body: Mapping[str, object], *, what: str, timeout: float
) -> DirectBatch:
    """Return the messages that one question is answered with.

    Raises:
        IncompleteReadError: The answer broke off.
        NoRespondersError: No replica answers: the stream has no `allow_direct`, or is away.
        ServerError: The server refuses the question.
        TransportError: No connection.
    """
    client = api.client
    frames: deque[Frame] = deque()
    failures: list[NatsStreamError] = []
    wake = asyncio.Event()

    def on_frames(some: list[Frame]) -> None:
        frames.extend(some)
        wake.set()

    def on_failure(error: NatsStreamError) -> None:
        failures.append(error)
        wake.set()

    def on_connection() -> None:
        on_failure(run.broken("the connection broke"))

    run = Run(what)
    await client.wait_connected(timeout)
    inbox = client.new_inbox()
    subject = api.subject(subjects.direct_get(stream))

    def on_denied(event: PermissionDenied) -> None:
        if event.operation == "publish" and subjects.is_same_request(subject, event.subject):
            on_failure(denied_error(event))

    unwatch_denied = client.watch_denied(on_denied)
    unwatch = client.watch(on_connection)
    subscription = await client.subscribe(inbox, on_frames, on_denied=on_failure)
    try:
        question = json.dumps(body).encode()
        client.write(client.publish_command(subject, inbox, b"", question))
        async with asyncio.timeout(timeout):
            while True:
                while frames:
                    frame = frames.popleft()
                    check_responders(frame, subject)
                    batch = run.add(frame)
                    if batch is not None:
                        return batch
                if failures:
                    raise failures[0]
                wake.clear()
                await wake.wait()
    except TimeoutError:
        raise run.broken(f"it did not end within {timeout:g} s") from None
    except NoRespondersError as error:
        raise nobody(stream, what) from error
    finally:
        unwatch()
        unwatch_denied()
        subscription.close()


def nobody(stream: str, what: str) -> NoRespondersError:
    """Return the error for a stream whose replicas do not answer direct reads."""
    return NoRespondersError(
        f"{what}: no replica of stream {stream} answers direct reads",
        hint="does the stream exist, and have allow_direct? "
        f"js.streams.update({stream!r}, allow_direct=True), or read it through its leader",
        retryable=True,
    )
