"""How verdicts reach the server in bulk, and the keepalive.

Law: no task and no future for an ack. What was said in one turn of the loop leaves in one write, in
its order for each message, and never later than `FLUSH_AT` acks; what could not be sent is told.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from natsstream._wire import subjects
from natsstream._wire.encode import ack_commands, is_word, verdict_command
from natsstream.consume.delivery.ack_kinds import IN_PROGRESS
from natsstream.consume.delivery.confirming import Confirming
from natsstream.errors import (
    ConsumerDeletedError,
    NatsStreamError,
    NotFoundError,
    SubjectError,
    TransportError,
)
from natsstream.fields import Fields

if TYPE_CHECKING:
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.consume.delivery.source import ConsumerSource

_log = logging.getLogger(__name__)

FLUSH_AT = 64
"""Acks that leave at once; the server works on them while the reader goes on."""


class AckNext(Protocol):
    """Settles a message and gets the next one; what pulls offers it."""

    def __call__(
        self, message: DeliveredMessage, *, timeout: float
    ) -> Awaitable[DeliveredMessage | None]: ...


class AckSender:
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
        self._confirming: Confirming | None = None

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

    def send(self, reply: bytes, body: bytes) -> None:
        """Send any verdict in this turn of the loop.

        Raises:
            ConnectionClosedError: The connection was closed.
            SubjectError: The message came with a reply subject to which nothing can go.
        """
        command = verdict_command(reply, body)
        self.begin()
        self._others.append(command)

    def flush(self) -> None:
        """Send what waits for the loop's turn."""
        acks, others = self.acks, self._others
        if not acks and not others:
            return
        commands = b"".join(others)
        if acks:
            commands += self._acks(acks)
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

    def _acks(self, acks: list[bytes]) -> bytes:
        try:
            return ack_commands(acks)
        except SubjectError as error:
            # The message said that it was acked: no caller is left to tell.
            sendable = [each for each in acks if is_word(each)]
            count = len(acks) - len(sendable)
            what = self.source.what
            _log.warning("%d acks of messages of %s can not be sent: %s", count, what, error)
            return ack_commands(sendable) if sendable else b""

    def _flush_soon(self) -> None:
        self._is_scheduled = False
        self.flush()

    # Verdicts with an answer.

    async def request(
        self, message: DeliveredMessage, body: bytes, *, timeout: float | None
    ) -> None:
        """Send a verdict and wait until the server has it; see `Confirming.ask`.

        Raises:
            ConsumerDeletedError: The consumer is gone.
            TransportError: There was no answer in time, or none can come.
        """
        self.flush()
        if self._confirming is None:
            self._confirming = Confirming(self.source, self.check_exists)
        await self._confirming.ask(message.reply, message.sequence, body, timeout=timeout)

    async def check_exists(self, timeout: float) -> Fields | None:
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
                with suppress(SubjectError):  # Its verdict will tell.
                    self.send(message.reply, IN_PROGRESS)
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
