"""A message that a consumer delivered, to be settled."""

from __future__ import annotations

from datetime import timedelta

from natsstream._wire.acks import ack_deliveries
from natsstream._wire.parser import Frame
from natsstream.api.message import Message
from natsstream.consume.delivery.ack_kinds import (
    ACK,
    IN_PROGRESS,
    AckKind,
    nak_body,
    term_body,
)
from natsstream.consume.delivery.ack_sender import FLUSH_AT, AckSender
from natsstream.consume.delivery.backoff import Backoff
from natsstream.consume.delivery.meta import DeliveryMeta, read_meta
from natsstream.consume.delivery.processing import Processing
from natsstream.errors import MessageSettledError, UsageError

_NEXT_TIMEOUT_S = 5.0


class DeliveredMessage(Message):
    """One delivery of a message: settle it with `ack`, `nak` or `term`.

    The first of these settles it here: another one raises `MessageSettledError`, because the server
    would ignore it. What is not settled within the consumer's `ack_wait` is delivered again. With
    ack policy "none" there is nothing to settle.

    A verdict without `confirm` is written in the same turn of the loop, together with others, and
    nobody waits for it: should the connection break just then, the message is delivered again. With
    `confirm=True` the server answers, and then the message is not delivered again, with one
    exception: a consumer with one replica answers up to a tenth of a second before it writes its
    state, and a server that is killed (SIGKILL, power loss) in between forgets the verdict. A
    consumer with replicas answers when most of them have it.
    """

    __slots__ = ("_settling", "_verdict")

    def __init__(self, frame: Frame, settling: AckSender) -> None:  # pyright: ignore[reportMissingSuperCall] - a call for each message.
        self._frame = frame
        self._numbers = None
        self._settling = settling
        self._verdict: AckKind | None = None

    # What it says.

    @property
    def meta(self) -> DeliveryMeta:
        """Stream, consumer, sequences, deliveries, time and what is pending.

        Cost: 2 microseconds each time; `sequence` and `delivered` alone cost less.
        """
        return read_meta(self._frame[1])

    @property
    def delivered(self) -> int:
        """How often the message was delivered, from 1."""
        return ack_deliveries(self._frame[1])

    @property
    def reply(self) -> bytes:
        """The ack subject, as it stood on the wire."""
        return self._frame[1]

    @property
    def header_block(self) -> bytes:
        """The headers, as they stood on the wire; empty for none."""
        return self._frame[2]

    @property
    def wire_bytes(self) -> int:
        """Bytes that the server counts for it: subject, reply, headers and payload."""
        subject, reply, header, data = self._frame
        return len(subject) + len(reply) + len(header) + len(data)

    @property
    def verdict(self) -> AckKind | None:
        """How it was settled; None while it is not."""
        return self._verdict

    @property
    def is_settled(self) -> bool:
        """True once it was acked, given back or terminated."""
        return self._verdict is not None

    @property
    def lease_s(self) -> float:
        """Seconds within which it must be settled or kept alive."""
        return self._settling.source.lease_s

    # Verdicts.

    async def ack(self, *, confirm: bool = False, timeout: float | None = None) -> None:
        """Say that it is done.

        Args:
            confirm: Wait until the server has the ack ("double ack"); it is asked again while the
                server is away. With one replica a server that is killed within the next tenth of
                a second forgets it, and delivers the message again.
            timeout: Seconds to wait for that; None is `request_timeout`.

        Raises:
            MessageSettledError: It is settled already.
            ConsumerDeletedError: With `confirm`: the consumer is gone.
            DeliveryForgottenError: With `confirm`: the server was killed or replaced, and does not
                know of this delivery. It is not settled, and is delivered again.
            TransportError: With `confirm`: no answer in time. It is not settled then, and can be
                confirmed again.
            ConnectionClosedError: The connection was closed.

        Cost: without `confirm` less than a microsecond and no round trip; with it one, and on a
        replicated consumer a round of its group.
        Source: ADR-15; nats.go jetstream/message.go Ack, DoubleAck.
        """
        if confirm:
            await self._ask(AckKind.ACK, ACK, timeout)
            return
        if self._verdict is not None:
            raise self._settled_error()
        settling = self._settling
        acks = settling.acks
        if not acks:
            settling.begin()
        self._verdict = AckKind.ACK
        acks.append(self._frame[1])
        if len(acks) >= FLUSH_AT:
            settling.flush()

    async def nak(
        self,
        *,
        delay: float | timedelta | None = None,
        confirm: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Give it back: it is delivered again, to anybody.

        The consumer's `backoff` does not count for a message that was given back, and each delivery
        counts for `max_deliver`: give a delay, or a failing message is used up in milliseconds.

        Args:
            delay: Seconds until it is delivered again; None is at once.
            confirm: Wait until the server has it, as for `ack`.
            timeout: Seconds to wait for that; None is `request_timeout`.

        Raises:
            ConfigError: The delay has no legal value; nothing was sent.
            NatsStreamError: As for `ack`.
        """
        await self._settle(AckKind.NAK, nak_body(delay), timeout, confirm=confirm)

    async def term(
        self, *, reason: str = "", confirm: bool = False, timeout: float | None = None
    ) -> None:
        """Say that it is never to be delivered again, though it was not done.

        Args:
            reason: Why, for the advisory `MSG_TERMINATED`: one line of at most 1,024 bytes. Servers
                before 2.10.4 do not know it.
            confirm: Wait until the server has it, as for `ack`.
            timeout: Seconds to wait for that; None is `request_timeout`.

        Raises:
            ConfigError: The reason has a line end, or is too long; nothing was sent.
            NatsStreamError: As for `ack`.
        """
        await self._settle(AckKind.TERM, term_body(reason), timeout, confirm=confirm)

    async def in_progress(self) -> None:
        """Say that it is being worked on: its `ack_wait` begins again.

        Raises:
            MessageSettledError: It is settled already.
            ConnectionClosedError: The connection was closed.
        """
        if self._verdict is not None:
            raise self._settled_error()
        self._settling.send(self._frame[1], IN_PROGRESS)

    async def ack_next(self, *, timeout: float = _NEXT_TIMEOUT_S) -> DeliveredMessage | None:
        """Say that it is done and return the next message, in one round trip (`+NXT`).

        Args:
            timeout: Seconds to wait for the next message.

        Returns:
            The next message; None when none came in time. The ack was sent either way.

        Raises:
            MessageSettledError: It is settled already.
            UsageError: It came from a push consumer, or the ack policy is "none".
            ConsumerDeletedError: The consumer is gone.
            TransportError: The ack could not be sent, and it is not settled.
        """
        if self._verdict is not None:
            raise self._settled_error()
        if self._settling.ack_next is None:
            raise UsageError(
                "a push consumer sends the next message by itself", hint="use ack() instead"
            )
        return await self._settling.ack_next(self, timeout=timeout)

    def processing(
        self, *, keepalive: bool = True, backoff: Backoff | None = None, confirm: bool = False
    ) -> Processing:
        """Return a block that settles it by how the block ends.

        Leaving it acks the message; an exception gives it back, with the delay that the backoff has
        for this delivery, and goes on; `Reject` terminates it and `Retry` gives it back, and both
        end there. A cancelled block gives it back at once. What the block has settled itself stays.

        Args:
            keepalive: Tell the server twice in each `ack_wait` that it is being worked on; all
                messages of a consumer share one timer.
            backoff: Delays after failures; None is the consumer's, or 1, 2, 4, ... 60 seconds.
            confirm: Wait until the server has the ack; see `ack`.
        """
        return Processing(
            self, self._settling, keepalive=keepalive, backoff=backoff, confirm=confirm
        )

    # For who pulls.

    def begin_verdict(self, verdict: AckKind) -> None:
        """Count it as settled, before the verdict is sent.

        Raises:
            MessageSettledError: It is settled already.
        """
        if self._verdict is not None:
            raise self._settled_error()
        self._verdict = verdict

    def take_verdict_back(self) -> None:
        """Count it as not settled: the verdict did not reach the server."""
        self._verdict = None

    async def _settle(
        self, verdict: AckKind, body: bytes, timeout: float | None, *, confirm: bool
    ) -> None:
        if confirm:
            await self._ask(verdict, body, timeout)
            return
        if self._verdict is not None:
            raise self._settled_error()
        self._settling.send(self._frame[1], body)
        self._verdict = verdict

    async def _ask(self, verdict: AckKind, body: bytes, timeout: float | None) -> None:
        if self._settling.source.ack_policy == "none":
            raise UsageError(
                f"{self._settling.source.what} has ack policy none: nothing confirms a verdict",
                hint="leave confirm out, or create the consumer with ack_policy='explicit'",
            )
        self.begin_verdict(verdict)
        try:
            await self._settling.request(self, body, timeout=timeout)
        except BaseException:
            # Not known to be settled: it may be tried again, or comes again by itself.
            self.take_verdict_back()
            raise

    def _settled_error(self) -> MessageSettledError:
        said = self._verdict.value if self._verdict is not None else "settled"
        return MessageSettledError(
            f"message {self.sequence} of {self._settling.source.what} is {said} already",
            hint="settle each delivery once: the server ignores all but the first verdict",
        )

    def __repr__(self) -> str:
        state = f" {self._verdict.value}" if self._verdict is not None else ""
        return f"<DeliveredMessage {self.sequence} {self.subject!r} {len(self.data)} bytes{state}>"
