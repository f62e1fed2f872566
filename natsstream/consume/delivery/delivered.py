"""A message that a consumer delivered, and how it is settled: acks, naks, keepalives.

Law: no task and no future for an ack. The acks of one turn of the loop leave in one write, at the
latest after `FLUSH_AT` of them; a failed write is logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TypeAlias

from natsstream._wire.acks import ack_deliveries, ack_numbers
from natsstream._wire.encode import ack_commands, is_word, verdict_command
from natsstream._wire.parser import Frame
from natsstream.api.message import Message
from natsstream.arguments import check_bool
from natsstream.consume.delivery.ack_kinds import (
    ACK,
    IN_PROGRESS,
    AckKind,
    nak_body,
    outcome_of,
    term_body,
)
from natsstream.consume.delivery.backoff import Backoff, backoff_from_ns, make_backoff
from natsstream.consume.delivery.confirming import Confirming
from natsstream.consume.delivery.lease_look import LOOK_EVERY_S, LeaseLook
from natsstream.consume.delivery.limit_watch import LimitWatch
from natsstream.consume.delivery.meta import DeliveryMeta, read_meta
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.errors import (
    MessageSettledError,
    NatsStreamError,
    PermissionDeniedError,
    SubjectError,
    UsageError,
)
from natsstream.foreign_names import answers_names

_log = logging.getLogger("natsstream.consumer")

_NEXT_TIMEOUT_S = 5.0
FLUSH_AT = 64
"""Acks that leave at once; the server works on them while the reader handles more."""


# Not `ack`, which is called for each message.
@answers_names("message", calls=("nak", "term", "in_progress"))
class DeliveredMessage(Message):
    """One delivery of a message: settle it with `ack`, `nak` or `term`.

    Only the first of these counts: another one raises `MessageSettledError`, because the server
    would ignore it. A message not acked within the consumer's `ack_wait` is redelivered. With ack
    policy "none" there is nothing to ack.

    An ack without `confirm` is written in the same turn of the event loop, batched with others. If
    the connection breaks at that moment, the message is redelivered. With `confirm=True` the server
    confirms the ack, and the message is not redelivered. One exception: a consumer with one replica
    confirms up to a tenth of a second before it stores its state, so a server that is killed
    (SIGKILL, power loss) in between forgets the ack. A replicated consumer confirms once a majority
    has the ack.
    """

    __slots__ = ("_ack_sender", "_frame", "_numbers", "_verdict")

    def __init__(self, frame: Frame, ack_sender: AckSender) -> None:  # pyright: ignore[reportMissingSuperCall] - a call for each message.
        self._frame = frame
        self._numbers: tuple[int, int, int, int] | None = None
        self._ack_sender = ack_sender
        self._verdict: AckKind | None = None

    # Properties. Other than in a `Message`, fields are read on access: an ack needs none of them,
    # and not every reply that looks like an ack subject is one.

    @property
    def subject(self) -> str:
        """The subject under which it is stored."""
        return self._frame[0].decode("utf-8", "surrogateescape")

    @property
    def data(self) -> bytes:
        """The payload, as stored."""
        return self._frame[3]

    @property
    def sequence(self) -> int:
        """Its sequence in the stream, from 1."""
        return self._ack_numbers()[0]

    @property
    def time_ns(self) -> int:
        """When the stream stored it, in Unix nanoseconds."""
        return self._ack_numbers()[2]

    @property
    def pending(self) -> int:
        """Messages that its consumer had yet to deliver after it."""
        return self._ack_numbers()[3]

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
        """How it was acked; None while it is not."""
        return self._verdict

    @property
    def is_settled(self) -> bool:
        """True once it was acked, nak'ed or terminated."""
        return self._verdict is not None

    @property
    def lease_s(self) -> float:
        """Seconds until the server redelivers it, unless it is acked or `in_progress` is sent."""
        return self._ack_sender.source.lease_s

    # Acks.

    async def ack(self, *, confirm: bool = False, timeout: float | None = None) -> None:
        """Ack the message.

        Args:
            confirm: Wait until the server confirms the ack ("double ack"); the request is retried
                while the server is away.
            timeout: Seconds to wait for the confirmation; None is `request_timeout`.

        Raises:
            ConsumerDeletedError: With `confirm`: the consumer was deleted.
            DeliveryForgottenError: With `confirm`: the server was killed or replaced, and does not
                know this delivery. The message is not settled, and is redelivered.
            TransportError: With `confirm`: no answer in time. The message is not settled then, and
                can be acked again.
            ConnectionClosedError: The connection was closed.
            EventLoopError: The connection belongs to another event loop; nothing was sent.

        Cost: without `confirm` less than a microsecond and no round trip; with it one, and on a
        replicated consumer a round of its group.
        Source: ADR-15; nats.go jetstream/message.go Ack, DoubleAck.
        """
        if confirm:
            check_bool(confirm, "confirm")
            await self._ask(AckKind.ACK, ACK, timeout)
            return
        if self._verdict is not None:
            raise self._settled_error()
        ack_sender = self._ack_sender
        if asyncio.get_running_loop() is not ack_sender.loop:
            ack_sender.source.api.client.check_loop()
        acks = ack_sender.acks
        if not acks:
            ack_sender.begin()
        self._verdict = AckKind.ACK
        acks.append(self._frame[1])
        if len(acks) >= FLUSH_AT:
            ack_sender.flush()

    async def nak(
        self,
        *,
        delay: float | timedelta | None = None,
        confirm: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Nak the message: the server redelivers it, to any reader of the consumer.

        A newer message that the server is about to deliver comes first, also without a delay. The
        consumer's `backoff` does not apply to a nak, and each delivery counts for `max_deliver`:
        without a delay a failing message uses up its deliveries in milliseconds.

        Args:
            delay: Seconds until it is redelivered; None is at once.
            confirm: Wait until the server confirms the nak, as for `ack`.
            timeout: Seconds to wait for the confirmation; None is `request_timeout`.

        Raises:
            ConfigError: The delay has no legal value; nothing was sent.
            NatsStreamError: As for `ack`.
        """
        await self._settle(AckKind.NAK, nak_body(delay), timeout, confirm=confirm)

    async def term(
        self, *, reason: str = "", confirm: bool = False, timeout: float | None = None
    ) -> None:
        """Terminate the message: the server never redelivers it.

        Args:
            reason: Why, for the advisory `MSG_TERMINATED`: one line of at most 1,024 bytes. Servers
                before 2.10.4 ignore it.
            confirm: Wait until the server confirms it, as for `ack`.
            timeout: Seconds to wait for the confirmation; None is `request_timeout`.

        Raises:
            ConfigError: The reason has a line end, or is too long; nothing was sent.
            NatsStreamError: As for `ack`.
        """
        await self._settle(AckKind.TERM, term_body(reason), timeout, confirm=confirm)

    async def in_progress(self) -> None:
        """Reset the message's `ack_wait`, because it is still being handled.

        Raises:
            ConnectionClosedError: The connection was closed.
            EventLoopError: The connection belongs to another event loop; nothing was sent.
        """
        if self._verdict is not None:
            raise self._settled_error()
        self._ack_sender.send(self._frame[1], IN_PROGRESS)

    async def ack_next(self, *, timeout: float = _NEXT_TIMEOUT_S) -> DeliveredMessage | None:
        """Ack the message and return the next one, in one round trip (`+NXT`).

        Args:
            timeout: Seconds to wait for the next message.

        Returns:
            The next message; None when none came in time. The ack was sent either way.

        Raises:
            UsageError: It came from a push consumer, or the ack policy is "none".
            ConsumerDeletedError: The consumer was deleted.
            TransportError: The ack could not be sent; the message is not settled.
        """
        if self._verdict is not None:
            raise self._settled_error()
        if self._ack_sender.ack_next is None:
            raise UsageError(
                "a push consumer sends the next message by itself", hint="use ack() instead"
            )
        return await self._ack_sender.ack_next(self, timeout)

    def processing(
        self,
        *,
        keepalive: bool = True,
        backoff: Sequence[float | timedelta] | Backoff | None = None,
        confirm: bool = False,
    ) -> Processing:
        """Return a block that acks the message when it ends, or naks it on an exception.

        An exception naks the message with the backoff's delay, and is raised again. `Reject`
        terminates the message and `Retry` naks it; neither is raised again. A cancelled block naks
        the message at once. A message that the block has settled itself is left alone.

        Args:
            keepalive: Send `in_progress` twice in each `ack_wait`, and each 5 s; all messages of a
                consumer share one timer.
            backoff: Seconds until it is delivered again, after its first, second, ... delivery;
                None is the consumer's, or 1, 2, 4, ... 60.
            confirm: Wait until the server confirms the ack; see `ack`.

        Raises:
            ConfigError: The backoff is no list of durations.
        """
        return Processing(
            self,
            self._ack_sender,
            keepalive=check_bool(keepalive, "keepalive"),
            backoff=make_backoff(backoff),
            confirm=check_bool(confirm, "confirm"),
        )

    # For pulls.

    def begin_verdict(self, verdict: AckKind) -> None:
        """Mark it as settled, before the ack is sent."""
        if self._verdict is not None:
            raise self._settled_error()
        self._verdict = verdict

    def take_verdict_back(self) -> None:
        """Mark it as not settled: the ack did not reach the server."""
        self._verdict = None

    async def _settle(
        self, verdict: AckKind, body: bytes, timeout: float | None, *, confirm: bool
    ) -> None:
        if confirm:
            check_bool(confirm, "confirm")
            await self._ask(verdict, body, timeout)
            return
        if self._verdict is not None:
            raise self._settled_error()
        self._ack_sender.send(self._frame[1], body)
        self._verdict = verdict

    async def _ask(self, verdict: AckKind, body: bytes, timeout: float | None) -> None:
        if self._ack_sender.source.ack_policy == "none":
            raise UsageError(
                f"{self._ack_sender.source.what} has ack policy none: the server confirms no ack",
                hint="leave confirm out, or create the consumer with ack_policy='explicit'",
            )
        self.begin_verdict(verdict)
        try:
            await self._ack_sender.request(self, body, timeout=timeout)
        except BaseException:
            # Not known to be settled: it can be acked again, or is redelivered.
            self.take_verdict_back()
            raise

    def _ack_numbers(self) -> tuple[int, int, int, int]:
        if self._numbers is None:
            self._numbers = ack_numbers(self._frame[1])
        return self._numbers

    def _settled_error(self) -> MessageSettledError:
        said = self._verdict.value if self._verdict is not None else "settled"
        return MessageSettledError(
            f"message {self.sequence} of {self._ack_sender.source.what} is {said} already",
            hint="settle each delivery once: the server ignores all but the first ack",
        )

    def __repr__(self) -> str:
        state = f" {self._verdict.value}" if self._verdict is not None else ""
        return f"<DeliveredMessage {self.sequence} {self.subject!r} {len(self.data)} bytes{state}>"


class Processing:
    """Settles one message by how its block ends; made by `DeliveredMessage.processing`."""

    def __init__(
        self,
        message: DeliveredMessage,
        ack_sender: AckSender,
        *,
        keepalive: bool,
        backoff: Backoff | None,
        confirm: bool,
    ) -> None:
        self._message = message
        self._ack_sender = ack_sender
        self._keepalive = keepalive
        self._backoff = backoff
        self._confirm = confirm

    async def __aenter__(self) -> DeliveredMessage:
        if self._keepalive:
            self._ack_sender.keep_alive(self._message)
        return self._message

    async def __aexit__(self, _kind: object, error: BaseException | None, *_: object) -> bool:
        message = self._message
        self._ack_sender.let_go(message)
        backoff = self._backoff or backoff_from_ns(self._ack_sender.source.backoff_ns)
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


class AckSender:
    """Sends the acks of one consumer's messages; a handle of a consumer has one.

    Attributes:
        source: The consumer.
        loop: The event loop of its connection.
        acks: Ack subjects whose plain acks wait for the loop's turn; for `DeliveredMessage` alone.
        ack_next: How to settle a message and get the next one; None where messages are pushed.
        limit_watch: When readers that pull look whether the consumer waits for acks.
        lease_look: Finds a changed `ack_wait`, for those who send `in_progress`.
        renewed: Called with the new `source` after the consumer was changed.
    """

    def __init__(self, source: ConsumerSource) -> None:
        self.source: ConsumerSource = source
        self.loop: asyncio.AbstractEventLoop = source.api.client.loop
        self.acks: list[bytes] = []
        self.ack_next: AckNext | None = None
        self.limit_watch: LimitWatch = LimitWatch(source.tuning.quiet_s)
        self.lease_look: LeaseLook = LeaseLook(source, self.limit_watch, self._renew)
        self.renewed: Callable[[ConsumerSource], None] = lambda _: None
        self._others: list[bytes] = []
        self._is_scheduled = False
        self._kept: set[DeliveredMessage] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._confirming: Confirming | None = None

    # Acks without confirmation.

    def begin(self) -> None:
        """Schedule a flush at the end of this turn of the loop.

        Raises:
            ConnectionClosedError: The connection was closed: nothing leaves any more.
        """
        if self._is_scheduled:
            return
        client = self.source.api.client
        if client.is_closed:
            raise client.closing_error(self.source.what)
        self._is_scheduled = True
        asyncio.get_running_loop().call_soon(self._flush_soon)

    def send(self, reply: bytes, body: bytes) -> None:
        """Send an ack of any kind in this turn of the loop.

        Raises:
            ConnectionClosedError: The connection was closed.
            EventLoopError: The connection belongs to another event loop.
            SubjectError: The message came with a reply subject to which nothing can go.
        """
        self.source.api.client.check_loop()
        command = verdict_command(reply, body)
        self.begin()
        self._others.append(command)

    def flush(self) -> None:
        """Send the acks of this turn now."""
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
            return  # The server ignores them.
        try:
            self.source.api.client.write(commands)
        except NatsStreamError as error:
            _log.warning(
                "%d acks of messages of %s could not be sent, they are redelivered: %s",
                count,
                self.source.what,
                error.message,
            )

    def _acks(self, acks: list[bytes]) -> bytes:
        try:
            return ack_commands(acks)
        except SubjectError as error:
            # The message counts as acked: no caller is left to raise to.
            sendable = [each for each in acks if is_word(each)]
            count = len(acks) - len(sendable)
            what = self.source.what
            _log.warning("%d acks of messages of %s cannot be sent: %s", count, what, error)
            return ack_commands(sendable) if sendable else b""

    def _flush_soon(self) -> None:
        self._is_scheduled = False
        self.flush()

    async def request(
        self, message: DeliveredMessage, body: bytes, *, timeout: float | None
    ) -> None:
        """Send an ack and wait until the server confirms it; see `Confirming.ask`."""
        self.source.api.client.check_loop()
        self.flush()
        if self._confirming is None:
            self._confirming = Confirming(self.source)
        try:
            await self._confirming.ask(message.reply, message.sequence, body, timeout=timeout)
        except PermissionDeniedError:
            self.source.take_ack_refusal()  # This call tells it.
            raise

    # Messages that are being handled.

    def keep_alive(self, message: DeliveredMessage) -> None:
        """Send `in_progress` for a message twice in each lease, and each 5 s, until `let_go`."""
        self._kept.add(message)
        self.lease_look.begin()  # Short blocks may end before each reminder.
        if self._timer is None:
            self._arm()

    def let_go(self, message: DeliveredMessage) -> None:
        """Send `in_progress` for it no more."""
        self._kept.discard(message)
        if not self._kept and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(min(self.source.lease_s / 2, LOOK_EVERY_S), self._remind)

    def _renew(self, source: ConsumerSource) -> None:
        self.source = source
        if self._timer is not None:
            self._timer.cancel()
            self._remind()
        self.renewed(source)

    def _remind(self) -> None:
        self._timer = None
        if not self._kept or self.source.api.client.is_closed:
            return
        self.lease_look.begin()
        for message in self._kept:
            if not message.is_settled:
                with suppress(SubjectError):  # Its ack raises it.
                    self.send(message.reply, IN_PROGRESS)
        self._arm()


AckNext: TypeAlias = Callable[[DeliveredMessage, float], Awaitable[DeliveredMessage | None]]
"""Acks a message and returns the next one, within so many seconds."""
