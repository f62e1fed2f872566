"""Acks messages by how their handlers ended, and stores dead letters.

Law: a dead message is terminated only when its letter is stored. A failure is reported, and the
message is redelivered.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import traceback
from contextlib import suppress

from natsstream.consume.dead_letters.captured import OWN_TERM
from natsstream.consume.dead_letters.envelope import FailureRecord, described_error
from natsstream.consume.dead_letters.storing import store_letter
from natsstream.consume.delivery.ack_kinds import Reject, Retry, printable_reason
from natsstream.consume.delivery.delivered import DeliveredMessage
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.work.in_progress import InProgressTimer
from natsstream.consume.work.options import WorkOptions, make_policy, renew_policy
from natsstream.consume.work.report import WorkReport
from natsstream.consume.work.rules import Decision, Policy, abandoned, decide, fate
from natsstream.consume.work.unconfirmed import UnconfirmedVerdicts
from natsstream.errors import (
    ConnectionClosedError,
    LeaseLostError,
    NatsStreamError,
    PermissionDeniedError,
)

_log = logging.getLogger("natsstream.worker")

# A letter that cannot be stored now, such as in a full stream, is not tried again at once.
_UNSTORED_DELAY_S = 1.0
_UNSTORED_DELAY_MAX_S = 10.0


class Outcomes:
    """Settles the messages of one worker.

    Attributes:
        policy: How failures are treated.
        unconfirmed: Those that may not be settled; the worker's end logs what is left.
    """

    def __init__(
        self,
        source: ConsumerSource,
        options: WorkOptions,
        report: WorkReport,
        in_progress: InProgressTimer,
    ) -> None:
        self._source = source
        self._options = options
        self.policy: Policy = make_policy(options, source)
        self._report = report
        self._in_progress = in_progress
        self.unconfirmed: UnconfirmedVerdicts = UnconfirmedVerdicts(source.what)

    def renew(self, source: ConsumerSource) -> None:
        """Take the changed settings of the consumer over."""
        self._source = source
        self.policy = renew_policy(self.policy, self._options, source)

    async def settle(
        self, message: DeliveredMessage, error: BaseException | None, delivered: int
    ) -> None:
        """Settle a message whose handler has ended.

        Raises:
            ConnectionClosedError: Nothing can be settled any more.
        """
        report = self._report
        if self._in_progress.is_lost(message):
            await self._tell(self._lease_lost(message), message)
        if error is None and not message.is_settled and not self._options.confirm:
            # The short way of nearly every message.
            await message.ack()
            report.acked += 1
            return
        decision = None
        if not message.is_settled:
            decision = decide(error, delivered=delivered, policy=self.policy)
        is_failure = error is not None and not isinstance(error, Reject | Retry)
        report.failures += is_failure
        is_end = decision is not None and decision.action in ("give_up", "term")
        is_told = is_failure or (is_end and isinstance(error, Retry))
        if error is not None and is_told and self._options.on_error is None:
            self._log_failure(error, message, decision, delivered)
        if decision is None:
            report.settled_by_handler += 1
        else:
            await self._try(message, decision, delivered)
        if error is not None and self._options.on_error is not None:
            await self._tell(error, message)

    async def abandon(self, message: DeliveredMessage, delivered: int) -> None:
        """Settle a message that was delivered more often than it may be tried.

        Raises:
            ConnectionClosedError: Nothing can be settled any more.
        """
        decision = abandoned(delivered, self.policy)
        end = "a dead letter" if decision.action == "dead" else "terminated without a dead letter"
        told = (message.sequence, self._source.what, decision.text, end)
        _log.warning("message %d of %s: %s; it is %s", *told)
        await self._try(message, decision, delivered)

    async def give_back(self, message: DeliveredMessage) -> None:
        """Nak a message at once, without a failure."""
        if not message.is_settled:
            self._report.returned += 1
            with suppress(NatsStreamError):
                await message.nak()

    async def _try(self, message: DeliveredMessage, decision: Decision, delivered: int) -> None:
        try:
            await self._do(message, decision, delivered)
        except ConnectionClosedError:
            raise
        except NatsStreamError as failure:
            # It may not have reached the server; then the message is redelivered. A refused one is
            # counted where the denials of all are.
            is_refused = isinstance(failure, PermissionDeniedError)
            self._report.unconfirmed += not (is_refused and failure.operation == "publish")
            if self._options.on_error is None:
                self.unconfirmed.add(message.sequence, failure)
            else:
                await self._tell(failure, message)

    async def _do(self, message: DeliveredMessage, decision: Decision, delivered: int) -> None:
        report = self._report
        if decision.action == "ack":
            await message.ack(confirm=self._options.confirm)
            report.acked += 1
        elif decision.action == "nak":
            await message.nak(delay=decision.delay_s)
            report.retried += 1
        elif decision.action == "give_up":
            # So that the server reports it now, not after ack_wait.
            await message.nak(delay=decision.delay_s or None)
            report.given_up += 1
        elif decision.action == "term":
            await message.term(reason=printable_reason(decision.text))
            report.terminated += 1
        else:
            await self._bury(message, decision, delivered)

    async def _bury(self, message: DeliveredMessage, decision: Decision, delivered: int) -> None:
        """Store the letter, then terminate the message."""
        queue = self._options.dead_letter or ""
        meta = message.meta
        failure = FailureRecord(
            subject=message.subject,
            time_ns=meta.time_ns,
            stream=meta.stream,
            consumer=meta.consumer,
            sequence=meta.stream_seq,
            deliveries=delivered,
            reason=decision.reason,
            error=decision.text,
        )
        while (is_new := await self._store(message, failure)) is None:
            delay_s = max(self.policy.backoff.delay_s(delivered), _UNSTORED_DELAY_S)
            if not 0 < self._source.max_deliver <= delivered:
                await message.nak(delay=delay_s)
                return
            # Given back it would not come again: it is held until it is stored.
            await asyncio.sleep(min(delay_s, _UNSTORED_DELAY_MAX_S))
        # Counted before the message is terminated: whatever becomes of that, the letter is there.
        if is_new:
            self._report.dead_lettered += 1
        else:
            self._report.letters_found += 1
        _log.warning(
            "message %d of %s is a dead letter in %s: %s",
            message.sequence,
            self._source.what,
            queue,
            # A letter that is there keeps the reason that was stored with it.
            printable_reason(decision.text) if is_new else "its letter was there already",
        )
        reason = printable_reason(f"{OWN_TERM}{queue}: {decision.text}")
        await message.term(reason=reason, confirm=self._options.confirm)

    async def _store(self, message: DeliveredMessage, failure: FailureRecord) -> bool | None:
        """Store a letter; True if it is new, None if it could not be stored, which is reported."""
        api, queue = self._source.api, self._options.dead_letter or ""
        timeout = api.client.options.request_timeout
        try:
            return await store_letter(
                api, queue, failure, message.header_block, message.data, timeout=timeout
            )
        except NatsStreamError as error:
            self._report.unstored += 1
            _log.error("%s: a dead letter could not be stored: %s", self._source.what, error)
            await self._tell(error, message)
            if api.client.is_closed:
                raise api.client.closing_error(self._source.what) from error
            return None

    async def _tell(self, error: BaseException, message: DeliveredMessage) -> None:
        """Report an error to `on_error`, or log it; a failure of `on_error` is logged."""
        sink = self._options.on_error
        if sink is None:
            named, text = f"message {message.sequence} of {self._source.what}: ", str(error)
            _log.warning("%s%s", "" if text.startswith(named) else named, text)
            return
        try:
            answer = sink(error, message)
            if inspect.isawaitable(answer):
                await answer
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001 - whatever it raises, the messages go on.
            _log.warning("on_error failed for message %d", message.sequence, exc_info=True)

    def _log_failure(
        self,
        error: BaseException,
        message: DeliveredMessage,
        decision: Decision | None,
        delivered: int,
    ) -> None:
        """Log a handler's error: where, with which message, and what happens to that next."""
        _log.warning(
            "handler failed on message %d (%s) of %s, attempt %d: %s; %s",
            message.sequence,
            message.subject,
            self._source.what,
            delivered,
            printable_reason(described_error(error)),
            "the handler had settled it" if decision is None else fate(decision),
            # Handlers of logs lose a line that they cannot encode.
            exc_info=error if _is_encodable(error) else None,
        )

    def _lease_lost(self, message: DeliveredMessage) -> LeaseLostError:
        blocked_s = self._in_progress.blocked_s(message)
        if blocked_s:
            return LeaseLostError(
                f"message {message.sequence} of {self._source.what}: the event loop was blocked "
                f"for {blocked_s:.1f} s, so no in_progress reached the server within ack_wait "
                f"({self._source.lease_s:g} s), and it may be redelivered",
                hint="an async handler calls something that does not await, such as time.sleep "
                "(call it with await asyncio.to_thread(...)), or the process was frozen or starved",
            )
        return LeaseLostError(
            f"message {message.sequence} of {self._source.what}: no in_progress reached the "
            f"server for {self._source.lease_s:g} s, and it may be redelivered",
            hint="expect it to be handled twice; raise ack_wait, or shorten the handler where "
            "keepalive is off",
        )


def _is_encodable(error: BaseException) -> bool:
    text = "".join(traceback.format_exception(error))
    return not any("\ud800" <= each <= "\udfff" for each in text)
