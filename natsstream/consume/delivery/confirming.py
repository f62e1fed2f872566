"""Verdicts that the server confirms: asked for again while it is away, given up once it forgot.

Law: a verdict can be asked for any number of times, and the first counts. An answer is waited for
only while one can come: whoever is silent is looked at, and so is whoever was away a moment ago,
before it is asked. Many verdicts share one look.
"""

from __future__ import annotations

import asyncio

from natsstream._wire.acks import ack_text
from natsstream.arguments import check_seconds
from natsstream.consume.delivery.knowledge import Knowledge, is_forgotten, read_knowledge
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.errors import (
    ConnectionClosedError,
    ConnectionLostError,
    ConsumerDeletedError,
    DeliveryForgottenError,
    NatsStreamError,
    NoRespondersError,
    PermissionDeniedError,
    RequestTimeoutError,
    TransportError,
)

# An answer takes some milliseconds; where it takes longer, it is asked for twice at first.
_ATTEMPT_S = 0.25
_ATTEMPT_FIRST_MAX_S = 1.0
_ATTEMPT_MAX_S = 4.0
_RETRY_WAIT_S = 0.1
# Messages in flight when the server went away have been handled by then.
_DOUBT_S = 2.0


class Confirming:
    """Sends the verdicts of one consumer's messages, and waits for their answers."""

    def __init__(self, source: ConsumerSource) -> None:
        self._source = source
        self._client = source.api.client
        self._attempt_s = _ATTEMPT_S
        self._connections = self._client.connections
        self._doubt_until = 0.0
        self._may_look = True
        self._looking = asyncio.Lock()
        self._known: Knowledge | None = None
        self._known_since = 0.0

    async def ask(self, reply: bytes, sequence: int, body: bytes, *, timeout: float | None) -> None:
        """Send a verdict and wait until the server has it; ask again while it is away.

        Args:
            reply: The ack subject.
            sequence: The message's, in its stream.
            body: The verdict.
            timeout: Seconds in all; None is `request_timeout`.

        Raises:
            ConfigError: The timeout is no number of seconds above 0; nothing was sent.
            ConsumerDeletedError: The consumer is gone.
            DeliveryForgottenError: The server does not know of the delivery any more.
            RequestTimeoutError: No answer within `timeout` seconds.
            ConnectionLostError: The connection broke and did not come back in that time.
            ConnectionClosedError: The connection was closed.
        """
        client, loop = self._client, asyncio.get_running_loop()
        given = client.options.request_timeout if timeout is None else timeout
        timeout = check_seconds(given, "timeout")
        deadline = loop.time() + timeout
        subject, attempt_s = ack_text(reply), self._attempt_s
        before: Knowledge | None = None
        while True:
            try:
                await client.wait_connected(
                    max(deadline - loop.time(), 0.001), what=self._source.what
                )
                if self._is_in_doubt(loop.time()):
                    before = await self._check(sequence, before, min(deadline, loop.time() + 1))
                left = max(deadline - loop.time(), 0.001)
                await client.request(
                    subject, body, timeout=min(left, attempt_s), what=self._source.what
                )
            except (NoRespondersError, ConnectionLostError, RequestTimeoutError) as error:
                if deadline - loop.time() <= _RETRY_WAIT_S:
                    raise self._unanswered(error, timeout) from error
                self._doubt(loop.time())
                if isinstance(error, RequestTimeoutError):
                    attempt_s = min(2 * attempt_s, _ATTEMPT_MAX_S)
                else:
                    await asyncio.sleep(_RETRY_WAIT_S)
            else:
                # A far or busy server is given more time from now on.
                self._attempt_s = min(max(self._attempt_s, attempt_s), _ATTEMPT_FIRST_MAX_S)
                return

    # Doubt: the server may have forgotten what it delivered.

    def _is_in_doubt(self, now: float) -> bool:
        if self._connections != self._client.connections:
            self._connections = self._client.connections
            self._doubt(now)
        return now < self._doubt_until

    def _doubt(self, now: float) -> None:
        self._doubt_until = now + _DOUBT_S

    async def _check(
        self, sequence: int, before: Knowledge | None, deadline: float
    ) -> Knowledge | None:
        """Return what the server knew first and still does, to be compared with later.

        Raises:
            DeliveryForgottenError: It has forgotten the delivery.
            ConsumerDeletedError: The consumer is gone.
        """
        now = await self._ask_what_is_known(deadline)
        if now is None:
            return before
        if is_forgotten(sequence, before, now):
            self._doubt(now.at_s)
            raise DeliveryForgottenError(
                f"message {sequence} of {self._source.what}: the server does not know of this "
                f"delivery, and has delivered none above {now.last_seq}",
                hint="the message is delivered again; a server that is killed forgets the last "
                "tenth of a second, more replicas remember it",
            )
        is_same = before is not None and before.leader == now.leader and before.last_seq < sequence
        return before if is_same else now

    async def _ask_what_is_known(self, deadline: float) -> Knowledge | None:
        """Return what the server knows now, or later; None where it does not say so in time."""
        if not self._may_look:
            return None
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            async with asyncio.timeout_at(deadline), self._looking:
                if self._known_since < since:
                    began = loop.time()
                    info = await self._source.check_exists(deadline - began)
                    self._known = None if info is None else read_knowledge(info, began)
                    self._known_since = began
                return self._known
        except (ConnectionClosedError, ConsumerDeletedError):
            raise
        except PermissionDeniedError:
            self._may_look = False
        except (NatsStreamError, TimeoutError):  # The verdict has its own deadline.
            pass
        return None

    def _unanswered(self, error: TransportError, timeout: float) -> TransportError:
        if isinstance(error, ConnectionLostError):
            return error
        return RequestTimeoutError(
            f"{self._source.what} did not confirm a verdict within {timeout:g} s",
            # The message of a timeout names the last attempt's, a part of this one.
            detail=error.detail if isinstance(error, RequestTimeoutError) else error.message,
            hint="confirm it again; the message may come again meanwhile",
            retryable=True,
        )
