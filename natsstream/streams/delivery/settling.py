"""How verdicts reach the server: in bulk, or as a request with an answer; and the keepalive.

What lives here: the outgoing verdicts of one consumer's messages. What must not: what a verdict
means (`verdicts.py`), and whether a message may still get one (`delivered.py`).

Law: no task and no future for an ack. What was said in one turn of the loop leaves in one write, in
its order for each message, and never later than `FLUSH_AT` acks; what could not be sent is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from natsstream._wire import api as subjects
from natsstream.errors import (
    ConnectionLostError,
    ConsumerDeletedError,
    NatsStreamError,
    NoRespondersError,
    NotFoundError,
    RequestTimeoutError,
    TransportError,
)
from natsstream.streams.delivery.verdicts import IN_PROGRESS

if TYPE_CHECKING:
    from natsstream.streams.delivery.delivered import DeliveredMessage
    from natsstream.streams.delivery.source import ConsumerSource

_log = logging.getLogger(__name__)

FLUSH_AT = 64
"""Acks that leave at once; the server works on them while the reader goes on."""
_ACK_STOP = b" 4\r\n+ACK\r\n"
_ACK_BETWEEN = b" 4\r\n+ACK\r\nPUB "
# The first repeat comes soon: an ack that is lost with a leader costs little to ask for again.
_ATTEMPT_S = 1.0
_ATTEMPT_MAX_S = 4.0
_RETRY_WAIT_S = 0.1


class AckNext(Protocol):
    """Settles a message and gets the next one; what pulls offers it."""

    def __call__(
        self, message: DeliveredMessage, *, timeout: float
    ) -> Awaitable[DeliveredMessage | None]: ...


class Settling:
    """Sends the verdicts of one consumer's messages; a handle of a consumer has one.

    Attributes:
        source: The consumer.
        acks: Ack subjects whose plain acks wait for the loop's turn; for `DeliveredMessage` alone.
        ack_next: How to settle a message and get the next one; None where messages are pushed.
    """

    def __init__(self, source: ConsumerSource) -> None:
        self.source: ConsumerSource = source
        self.acks: list[bytes] = []
        self.ack_next: AckNext | None = None
        self._others: list[bytes] = []
        self._is_scheduled = False
        self._kept: set[DeliveredMessage] = set()
        self._timer: asyncio.TimerHandle | None = None

    # Verdicts that nobody waits for.

    def begin(self) -> None:
        """See to it that what is added now leaves in this turn of the loop.

        Raises:
            ConnectionClosedError: The connection was closed: nothing leaves any more.
        """
        if self._is_scheduled:
            return
        client = self.source.api.client
        if client.is_closed:
            raise client.closing_error()
        self._is_scheduled = True
        asyncio.get_running_loop().call_soon(self._flush_soon)

    def say(self, reply: bytes, body: bytes) -> None:
        """Send any verdict in this turn of the loop.

        Raises:
            ConnectionClosedError: The connection was closed.
        """
        self.begin()
        self._others.append(b"PUB %b %d\r\n%b\r\n" % (reply, len(body), body))

    def flush(self) -> None:
        """Send what waits for the loop's turn."""
        acks, others = self.acks, self._others
        if not acks and not others:
            return
        commands = b"".join(others)
        if acks:
            commands += b"PUB " + _ACK_BETWEEN.join(acks) + _ACK_STOP
        count = len(acks) + len(others)
        acks.clear()
        others.clear()
        if self.source.ack_policy == "none":
            return  # Nobody listens for them.
        try:
            self.source.api.client.write(commands)
        except NatsStreamError as error:
            _log.warning(
                "%d verdicts on messages of %s could not be sent, these come again: %s",
                count,
                self.source.what,
                error.message,
            )

    def _flush_soon(self) -> None:
        self._is_scheduled = False
        self.flush()

    # Verdicts with an answer.

    async def ask(self, reply: bytes, body: bytes, *, timeout: float | None) -> None:
        """Send a verdict and wait until the server has it; ask again while it is away.

        Raises:
            ConsumerDeletedError: The consumer is gone.
            RequestTimeoutError: No answer within `timeout` seconds, None for `request_timeout`.
            ConnectionLostError: The connection broke and did not come back in that time.
            ConnectionClosedError: The connection was closed.
        """
        self.flush()
        client = self.source.api.client
        timeout = client.options.request_timeout if timeout is None else timeout
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        subject, attempt_s = reply.decode("utf-8", "surrogateescape"), _ATTEMPT_S
        while True:
            left = max(deadline - loop.time(), 0.001)
            try:
                await client.wait_connected(left)
                left = max(deadline - loop.time(), 0.001)
                await client.request(subject, body, timeout=min(left, attempt_s))
            except (NoRespondersError, ConnectionLostError, RequestTimeoutError) as error:
                if isinstance(error, NoRespondersError):
                    await self.check_exists(deadline - loop.time())
                if deadline - loop.time() <= _RETRY_WAIT_S:
                    raise self._unanswered(error, timeout) from error
            else:
                return
            attempt_s = min(2 * attempt_s, _ATTEMPT_MAX_S)
            await asyncio.sleep(_RETRY_WAIT_S)

    async def check_exists(self, timeout: float) -> dict[str, object] | None:
        """Ask whether the consumer is still there; silence is taken for yes.

        Returns:
            What the server says of it; None for nothing.

        Raises:
            ConsumerDeletedError: It is not, or its stream is not.
        """
        source = self.source
        subject = subjects.consumer_info(source.stream, source.consumer)
        try:
            return await source.api.read(
                subject, None, what=source.what, timeout=max(timeout, 0.001)
            )
        except NotFoundError as error:
            raise deleted_error(source, error) from error
        except TransportError as error:
            if not error.retryable:
                raise
        return None

    def _unanswered(self, error: TransportError, timeout: float) -> TransportError:
        if isinstance(error, ConnectionLostError):
            return error
        return RequestTimeoutError(
            f"{self.source.what} did not confirm a verdict within {timeout:g} s",
            detail=error.message,
            hint="confirm it again; the message may come again meanwhile",
            retryable=True,
        )

    # Messages that are being worked on.

    def keep_alive(self, message: DeliveredMessage) -> None:
        """Tell the server twice in each lease that a message is being worked on, until `let_go`."""
        self._kept.add(message)
        if self._timer is None:
            self._arm()

    def let_go(self, message: DeliveredMessage) -> None:
        """Tell the server no more."""
        self._kept.discard(message)
        if not self._kept and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.source.lease_s / 2, self._remind)

    def _remind(self) -> None:
        self._timer = None
        if not self._kept or self.source.api.client.is_closed:
            return
        for message in self._kept:
            if not message.is_settled:
                self.say(message.reply, IN_PROGRESS)
        self._arm()


def deleted_error(
    source: ConsumerSource, cause: NatsStreamError | None = None
) -> ConsumerDeletedError:
    """Return the error for those who read a consumer that is gone."""
    return ConsumerDeletedError(
        f"{source.what} was deleted",
        detail=cause.message if cause is not None else "",
        hint="create it with consumers.ensure(); an ephemeral consumer, or one with "
        "inactive_threshold, is deleted by the server when nobody asks it for that long",
    )
