"""A block in which a message is handled, and that settles it by how it ends."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from natsstream.consume.delivery.ack_kinds import AckKind, outcome_of
from natsstream.consume.delivery.backoff import Backoff, backoff_from_ns

if TYPE_CHECKING:
    from natsstream.consume.delivery.ack_sender import AckSender
    from natsstream.consume.delivery.delivered import DeliveredMessage


class Processing:
    """Settles one message by how its block ends; made by `DeliveredMessage.processing`."""

    def __init__(
        self,
        message: DeliveredMessage,
        settling: AckSender,
        *,
        keepalive: bool,
        backoff: Backoff | None,
        confirm: bool,
    ) -> None:
        self._message = message
        self._settling = settling
        self._keepalive = keepalive
        self._backoff = backoff
        self._confirm = confirm

    async def __aenter__(self) -> DeliveredMessage:
        if self._keepalive:
            self._settling.keep_alive(self._message)
        return self._message

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        message = self._message
        self._settling.let_go(message)
        backoff = self._backoff or backoff_from_ns(self._settling.source.backoff_ns)
        outcome = outcome_of(error, delivered=message.delivered, backoff=backoff)
        if message.is_settled:
            return outcome.is_told
        if outcome.verdict is AckKind.ACK:
            await message.ack(confirm=self._confirm)
        elif outcome.verdict is AckKind.TERM:
            await message.term(reason=outcome.reason)
        else:
            await message.nak(delay=outcome.delay_s)
        return outcome.is_told
