"""A worker: handlers that run side by side over the messages of one consumer.

Law: as many handlers run as were asked for, never more. When it has ended, no handler runs any
more, and every message that was not handled is back with the server, or will be after `ack_wait`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Self, TypeAlias, cast

from natsstream.arguments import check_seconds, counted
from natsstream.consume.dead_letters.manager import DeadLetters
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.pull.messages import ConsumerMessages
from natsstream.consume.work.handlers import Handler, NotBegunError, check_result
from natsstream.consume.work.in_progress import InProgressTimer
from natsstream.consume.work.options import WorkOptions
from natsstream.consume.work.outcomes import Outcomes
from natsstream.consume.work.prefetch import PrefetchWindow
from natsstream.consume.work.report import WorkReport
from natsstream.consume.work.rules import is_abandoned, last_delivery
from natsstream.errors import (
    ConnectionClosedError,
    ConsumerDeletedError,
    NatsStreamError,
    NotFoundError,
    PermissionDeniedError,
    SubjectOverlapError,
    TransportError,
    UnavailableError,
    UsageError,
)
from natsstream.events import PermissionDenied

_log = logging.getLogger("natsstream.worker")

# A handler that is cancelled gets this long to end, and is cancelled again in between.
_CANCEL_WAIT_S = 1.0
_CANCELS_MAX = 10
# How often a consumer is asked if it is empty.
_EMPTY_PAUSE_MIN_S = 0.05
_EMPTY_PAUSE_MAX_S = 1.0
# Set in a handler, and so in its thread and in the tasks that it begins.
_message_here: ContextVar[DeliveredMessage | None] = ContextVar("message_here", default=None)

OpenMessages: TypeAlias = Callable[[int], ConsumerMessages]
"""Describes the messages, with how many may wait for a free task."""


class Worker:
    """Handlers that run side by side; made by `Consumer.worker`.

    `async with` begins, and ends with `stop`; `wait` waits until it has ended by itself.

    Attributes:
        report: Its counts so far, and the error that has ended it.
        options: How it works.
    """

    def __init__(
        self,
        ack_sender: AckSender,
        open_messages: OpenMessages,
        handler: Handler,
        options: WorkOptions,
    ) -> None:
        self.report: WorkReport = WorkReport()
        self.options: WorkOptions = options
        self._source = ack_sender.source
        ack_sender.renewed = self._renew
        self._open_messages = open_messages
        self._handler = handler
        self._in_progress = InProgressTimer(ack_sender, self.report, is_kept=options.keepalive)
        self._outcomes = Outcomes(self._source, options, self.report, self._in_progress)
        self._incoming: ConsumerMessages | None = None
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_told = False
        self._has_left = False
        self._prefetch: PrefetchWindow | None = None
        self._is_opened = False
        self._is_ending = False
        self._unwatch_denied: Callable[[], None] = lambda: None
        self._refused: set[str] = set()
        # The end that a handler has begun.
        self._ending: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """True while it takes messages, or handlers still run."""
        return any(not task.done() for task in self._tasks)

    async def open(self) -> Self:
        """Begin to work; `stop` or `drain` ends it.

        Raises:
            ConfigError: `dead_letter` names a stream that is something else.
            UsageError: It was opened before.
            ConsumerDeletedError: The consumer is gone.
            TransportError: The server did not answer in time.

        Cost: with `dead_letter` one round trip, three where the stream is made.
        """
        if self._is_opened:
            raise UsageError("a worker is opened once", hint="make another one")
        self._is_opened = True
        await self._ensure_letters()
        self._incoming = self._open_messages(self.options.window)
        await self._incoming.__aenter__()
        self._in_progress.open(self._incoming.buffered)
        self._unwatch_denied = self._source.api.client.watch_denied(self._on_denied)
        if self.options.prefetch is None:
            self._prefetch = PrefetchWindow(self.options.window, time.monotonic())
        messages = aiter(self._incoming)
        self._tasks = {
            asyncio.create_task(self._occupy(messages), name=f"{self._source.what}, task {index}")
            for index in range(self.options.concurrency)
        }
        _log.info("worker of %s started, concurrency %d", self._source.what, len(self._tasks))
        return self

    async def wait(self) -> None:
        """Wait until it has ended: it was stopped or drained, or has failed.

        Without a call, leaving the block raises the same.

        Raises:
            UsageError: It was never opened.
            ConsumerDeletedError: The consumer was deleted.
            NatsStreamError: Another failure ended it.
        """
        self._check_opened()
        ended: set[asyncio.Task[None]] = set()
        running = self._tasks
        # FIRST_EXCEPTION does not end at a task that was cancelled.
        while running and not any(
            task.cancelled() or task.exception() is not None for task in ended
        ):
            ended, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if self._ending is not None:
            await asyncio.shield(self._ending)
        self._raise_failure()

    async def wait_until_empty(self) -> None:
        """Wait until its consumer has no message that is not settled, or as `wait`.

        Messages that other workers of the consumer have count too, and so do those that wait for
        their redelivery, and new ones.

        Raises:
            NatsStreamError: As for `wait`; an outage is waited out.

        Cost: one round trip each 50 ms, and each second after a while.
        """
        self._check_opened()
        pause_s = _EMPTY_PAUSE_MIN_S
        while self._tasks:
            ended, _ = await asyncio.wait(
                self._tasks, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED
            )
            if ended:
                break
            # A consumer that is gone ends the worker too, which tells why.
            with suppress(TransportError, UnavailableError, NotFoundError):
                if not (await self._source.info()).lag:
                    return None
            pause_s = min(1.5 * pause_s, _EMPTY_PAUSE_MAX_S)
        return await self.wait()

    async def stop(self, *, timeout: float | None = None) -> None:
        """Take no more messages, let running handlers finish, nak the rest.

        Of the messages that have arrived those at their last attempt are handled as well: given
        back, they would be given up unseen.

        In a handler, or a task that it has begun, the call does not wait for the handlers while
        that one runs: it cannot wait for itself. The worker ends as otherwise, and `wait` returns
        when it has. The limit of the first such call counts.

        Args:
            timeout: Seconds until handlers are cancelled and their messages nak'ed; None is
                `stop_timeout`.

        A call that is cancelled cancels the handlers at once. Calling it again is fine.

        Raises:
            UsageError: It was never opened.
        """
        self._check_opened()
        await self._end(timeout, is_drain=False)

    async def drain(self, *, timeout: float | None = None) -> None:
        """Stop pulling, handle the buffered messages, then end; in a handler as `stop`.

        Args:
            timeout: As in `stop`.

        Raises:
            UsageError: It was never opened.
        """
        self._check_opened()
        await self._end(timeout, is_drain=True)

    async def __aenter__(self) -> Self:
        try:
            return await self.open()
        except BaseException:
            await self._leave()
            raise

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.stop()
        if kind is None and not self._is_told:
            self._raise_failure()

    # Beginning and ending.

    def _check_opened(self) -> None:
        self._source.api.client.check_loop()
        if not self._is_opened:
            raise UsageError(
                "the worker is not open",
                hint="async with consumer.worker(handler) as worker: await worker.wait()",
            )

    async def _ensure_letters(self) -> None:
        name = self.options.dead_letter
        if name is None:
            return
        letters, source = DeadLetters(self._source.api), self._source
        try:
            await letters.ensure(name, stream=source.stream, consumer=source.consumer)
        except (SubjectOverlapError, PermissionDeniedError) as error:
            # Another stream captures the advisories, or this user may not change this one. Workers
            # store their letters all the same.
            _log.warning("%s; %s stores only what its workers give up", error.message, name)
            await letters.ensure(name)

    async def _end(self, timeout: float | None, *, is_drain: bool) -> None:
        limit_s = self.options.stop_timeout if timeout is None else timeout
        check_seconds(limit_s, "timeout", may_be_zero=True)
        if not self._in_progress.has(_message_here.get()):
            await self._finish(limit_s, is_drain=is_drain)
            return
        await self._take_no_more(is_drain=is_drain)
        if self._ending is None:
            self._ending = asyncio.create_task(self._finish(limit_s, is_drain=is_drain))

    async def _finish(self, limit_s: float, *, is_drain: bool) -> None:
        try:
            async with asyncio.timeout(limit_s):
                if self._ending not in (None, asyncio.current_task()):
                    await asyncio.shield(self._ending)
                elif self.is_running and not self._has_left:
                    await self._take_no_more(is_drain=is_drain)
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            _log.warning("%s: handlers did not end within %g s", self._source.what, limit_s)
        finally:
            self._is_ending = True
            await self._leave()

    async def _take_no_more(self, *, is_drain: bool) -> None:
        if self._incoming is None:
            return
        if is_drain:
            await self._incoming.drain()
        else:
            self._is_ending = True
            await self._incoming.hand_over(last_delivery(self._outcomes.policy))

    async def _leave(self) -> None:
        """End what still runs; a caller that is cancelled meanwhile is cancelled afterwards."""
        if self._has_left:  # A handler that does not end is waited for once.
            return
        self._has_left = True
        cancelled: asyncio.CancelledError | None = None
        for _ in range(_CANCELS_MAX):
            running = {task for task in self._tasks if not task.done()}
            if not running:
                break
            for task in running:
                task.cancel()
            try:
                await asyncio.wait(running, timeout=_CANCEL_WAIT_S)
            except asyncio.CancelledError as error:
                cancelled = error
        left = sum(not task.done() for task in self._tasks)
        if left:
            _log.error(
                "%s: after a cancel there is still %s that does not end",
                self._source.what,
                counted(left, "handler"),
            )
        if self._is_told:
            self._failures()  # The first was raised; asyncio would log the others at any time.
        self._in_progress.close()
        self._outcomes.unconfirmed.log()
        incoming, self._incoming = self._incoming, None
        try:
            if incoming is not None:
                await incoming.stop()  # The last refusals come before it returns.
                await incoming.unpin()
        finally:
            if incoming is not None:
                self.report.returned += incoming.returned
            self._unwatch_denied()
        if self._tasks and self.report.failure is None:
            _log.info("worker of %s ended", self._source.what)
        if cancelled is not None:
            raise cancelled

    # One slot.

    async def _occupy(self, messages: AsyncIterator[DeliveredMessage]) -> None:
        """Keep one task at work, and replace it when others cancel it.

        A handler can give away the task that it runs in, and a late cancel comes between two
        messages. A cancel of the slot's own task, by others than the worker, ends the worker.
        """
        slot = _this_task()
        while True:
            try:
                await asyncio.create_task(self._work(messages, slot), name=slot.get_name())
            except asyncio.CancelledError:
                if not slot.cancelling():
                    continue
                if not self._has_left:
                    self._fail(_task_cancelled(self._source.what))
                raise
            return

    async def _work(
        self, messages: AsyncIterator[DeliveredMessage], slot: asyncio.Task[None]
    ) -> None:
        """Handle one message after another until there are no more."""
        task = _this_task()
        while True:
            message = await self._next(messages)
            if message is None:
                return
            try:
                await self._handle(message, slot)
            except ConnectionClosedError as error:
                self._fail(error)
                return
            if task.cancelling():
                raise asyncio.CancelledError  # The next message is not what was cancelled.

    async def _next(self, messages: AsyncIterator[DeliveredMessage]) -> DeliveredMessage | None:
        incoming = self._incoming
        if incoming is not None and not self._is_ending and self.report.failure is None:
            # Measured: waiting for one's turn costs more than the rest of a message.
            ready = incoming.take_ready()
            if ready is not None:
                return ready
        async with self._turn:
            if self.report.failure is not None:
                return None
            try:
                message = await anext(messages)
            except StopAsyncIteration:
                return None
            except NatsStreamError as error:
                self._fail(error)
                return None
        if self._is_ending:
            last = last_delivery(self._outcomes.policy)
            if last is None or message.delivered < last:
                # Handed out while it was stopped: nothing has begun.
                self.report.returned += 1
                with suppress(NatsStreamError):
                    await message.nak()
        return message

    def _raise_failure(self) -> None:
        """Raise what ended it, if anything but its end did."""
        self._is_told = True
        if failures := self._failures():
            raise failures[0]
        failure = self.report.failure
        if failure is not None:
            raise failure

    def _failures(self) -> list[BaseException]:
        return [
            error
            for task in self._tasks
            if task.done() and not task.cancelled() and (error := task.exception()) is not None
        ]

    def _fail(self, error: NatsStreamError) -> None:
        if self.report.failure is None:
            self.report.failure = error
            is_gone = isinstance(error, ConsumerDeletedError)
            _log.error(
                "worker of %s ended: %s%s",
                self._source.what,
                error.message.removeprefix(f"{self._source.what}: "),
                "" if is_gone else "; its messages wait until a worker is started",
            )

    def _on_denied(self, event: PermissionDenied) -> None:
        refusal = self._source.ack_refusal(event)
        if refusal is None:
            return
        # Not each `in_progress` of one message.
        self.report.unconfirmed += event.subject not in self._refused
        self._refused.add(event.subject)
        self._source.take_ack_refusal()  # This worker tells it.
        self._fail(refusal)

    async def _handle(self, message: DeliveredMessage, slot: asyncio.Task[None]) -> None:
        if message.is_settled:
            return
        report, delivered = self.report, message.delivered
        report.received += 1
        self._in_progress.begin(message)
        _message_here.set(message)
        try:
            if is_abandoned(delivered, self._outcomes.policy):
                await self._outcomes.abandon(message, delivered)
                return
            error: BaseException | None = None
            report.running += 1
            try:
                result = await self._handler(message)
                if result is not None:
                    check_result(result, self._handler)
            except asyncio.CancelledError as caught:
                if slot.cancelling():
                    raise
                error = caught  # Not the end of the worker, but of this message alone.
            except NotBegunError as caught:
                raise ConnectionClosedError(caught.message, hint=caught.hint) from None
            except Exception as caught:  # noqa: BLE001 - whatever a handler raises is its outcome.
                error = caught
            finally:
                report.running -= 1
            await self._outcomes.settle(message, error, delivered)
            prefetch = self._prefetch
            if prefetch is not None and prefetch.count(delivered):
                self._resize(prefetch)
        except BaseException:
            await self._outcomes.give_back(message)
            raise
        finally:
            self._in_progress.end(message)

    def _renew(self, source: ConsumerSource) -> None:
        self._in_progress.renew(source)
        self._outcomes.renew(source)

    def _resize(self, prefetch: PrefetchWindow) -> None:
        before, incoming = prefetch.window, self._incoming
        if prefetch.measure(time.monotonic()) != before and incoming is not None:
            incoming.resize(prefetch.window)

    def __repr__(self) -> str:
        state = "running" if self.is_running else "ended" if self._is_opened else "not open"
        return f"<Worker of {self._source.what}, {state}, {self.report}>"


def _this_task() -> asyncio.Task[None]:
    # The cast says that a coroutine of the event loop runs in a task.
    return cast("asyncio.Task[None]", asyncio.current_task())


def _task_cancelled(what: str) -> UsageError:
    return UsageError(
        f"{what}: a task of the worker was cancelled, as with all tasks of the event loop",
        hint="await worker.stop() first, or cancel only the task that waits for the worker",
    )
