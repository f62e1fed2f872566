"""Requests to JetStream's API: one question, one JSON answer, one deadline.

Law: a request that only reads is asked again while the server is away, within its deadline; one
that changes something is asked once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import cast

from natsstream._wire.client import Client
from natsstream._wire.errors_map import server_error
from natsstream.errors import (
    ConnectionLostError,
    JetStreamNotEnabledError,
    NoRespondersError,
    ProtocolError,
    RequestTimeoutError,
    ServerError,
    TransportError,
)

# A server that restarts has no responders for some tens of milliseconds (ADR-22 waits 250 ms).
_RETRY_WAIT_S = 0.1


class Api:
    """JetStream's API over one connection."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def change(
        self, subject: str, body: Mapping[str, object] | None, *, what: str
    ) -> dict[str, object]:
        """Ask once for something that changes the server.

        Raises:
            ServerError: The server refused.
            JetStreamNotEnabledError: The server has no JetStream.
            TransportError: There was no answer; whether it was done is not known.
        """
        return await self._ask(subject, body, what, self.client.options.request_timeout)

    async def read(
        self,
        subject: str,
        body: Mapping[str, object] | None,
        *,
        what: str,
        timeout: float | None = None,
    ) -> dict[str, object]:
        """Ask for something that only reads, again while the server is away.

        Args:
            subject: The API's subject.
            body: The JSON of the request.
            what: The thing that is asked for, for errors.
            timeout: Seconds in all; None is `request_timeout`.

        Raises:
            ServerError: The server refused.
            JetStreamNotEnabledError: The server has no JetStream.
            TransportError: There was no answer in time.
        """
        timeout = self.client.options.request_timeout if timeout is None else timeout
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while True:
            left = deadline - loop.time()
            try:
                await self.client.wait_connected(max(left, 0.001))
                return await self._ask(subject, body, what, max(left, 0.001))
            except (TransportError, ServerError) as error:
                # A timeout has used the deadline up; the others may be over in a moment.
                left = deadline - loop.time() - _RETRY_WAIT_S
                if not error.retryable or isinstance(error, RequestTimeoutError) or left <= 0:
                    raise
            await asyncio.sleep(_RETRY_WAIT_S)

    async def _ask(
        self, subject: str, body: Mapping[str, object] | None, what: str, timeout: float
    ) -> dict[str, object]:
        payload = json.dumps(body).encode() if body else b""
        try:
            frame = await self.client.request(subject, payload, timeout=timeout)
        except NoRespondersError as error:
            if not self.client.server_info.get("jetstream", False):
                raise JetStreamNotEnabledError(
                    f"{self.client.url} has no JetStream",
                    hint="start it with: nats-server -js",
                ) from error
            raise NoRespondersError(
                f"{what}: JetStream does not answer at {self.client.url}",
                hint="is the account enabled for JetStream, and has the cluster a leader?",
                retryable=True,
            ) from error
        return decode(frame[3], what)


def decode(payload: bytes, what: str) -> dict[str, object]:
    """Return the JSON object of an answer, or raise the error that it carries.

    Raises:
        ServerError: The answer is an error.
        ProtocolError: The answer is no JSON object.
    """
    try:
        answer: object = json.loads(payload)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise ProtocolError(
            f"{what}: the answer is not JetStream's",
            detail=repr(payload[:80]),
            hint="does some other program listen on the subject?",
        )
    answer = cast("dict[str, object]", answer)
    error = answer.get("error")
    if isinstance(error, dict):
        raise server_error(cast("dict[str, object]", error), what=what)
    return answer


def is_break(error: Exception) -> bool:
    """Tell whether an error means that the server is away now, not that it refused."""
    return isinstance(error, ConnectionLostError | RequestTimeoutError | NoRespondersError)
