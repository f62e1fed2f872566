"""Getting a bounded number of messages: `next`, `fetch` and `ack_next`.

Law: a call returns the messages that came, and the error behind them; it takes no longer than its
timeout and the server's last status. The server says that there is no message, at the end of a
pull; silence is an error. Leader changes and reconnects are waited out within that time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from math import inf

from natsstream._wire.acks import ack_text
from natsstream.api.consumer_info import ConsumerInfo
from natsstream.arguments import counted
from natsstream.consume.delivery.ack_kinds import NEXT, AckKind
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.events import LimitExceeded
from natsstream.consume.delivery.limit_watch import is_held_up
from natsstream.consume.pull.inbox_pool import FetchInbox, InboxPool
from natsstream.consume.pull.limit_look import look_while
from natsstream.consume.pull.outcomes import (
    PullOutcome,
    PullStatus,
    crowded_error,
    is_crowded,
    limit_error,
    oversized_error,
    push_error,
    refusal,
)
from natsstream.consume.pull.requests import (
    FetchOptions,
    group_options,
    pin_of,
    pull_body,
    seconds,
)
from natsstream.errors import (
    ConnectionLostError,
    NatsStreamError,
    PermissionDeniedError,
    RequestTimeoutError,
    UsageError,
)

_log = logging.getLogger("natsstream.consumer")

_RETRY_WAIT_S = 0.1
_SHORTEST_PULL_S = 0.005
_LAST_LOOK_S = 0.05
# A pull that does not wait is answered after a round trip. After so long, and twice that, the
# consumer is asked whether it is the acks that it waits for.
_QUIET_S = 0.25


class FetchedMessages(list[DeliveredMessage]):
    """The messages of one fetch, in the order of delivery.

    Attributes:
        error: The error that ended the fetch early, behind the messages; None without one. A fetch
            without messages raises it instead.
        complete: True if `n` messages came, or `max_bytes` are used up.
    """

    def __init__(
        self,
        messages: Iterable[DeliveredMessage] = (),
        *,
        error: NatsStreamError | None = None,
        complete: bool = False,
    ) -> None:
        super().__init__(messages)
        self.error: NatsStreamError | None = error
        self.complete: bool = complete

    def __repr__(self) -> str:
        end = "complete" if self.complete else "not complete"
        failed = f", {type(self.error).__name__}" if self.error is not None else ""
        return f"<Fetched {counted(len(self), 'message')}, {end}{failed}>"


class Fetcher:
    """Fetches for one handle of a consumer; its calls may run side by side.

    Attributes:
        ack_sender: Settles the messages.
        pool: The handle's inboxes.
        pin_id: The pin of this handle in a pinned priority group.
    """

    def __init__(self, ack_sender: AckSender) -> None:
        self.ack_sender: AckSender = ack_sender
        self.pool: InboxPool = InboxPool(ack_sender)
        self.pin_id: str = ""
        self._source = ack_sender.source
        ack_sender.ack_next = self.ack_next

    def close(self) -> None:
        """Free what waits for another fetch; it is made again when there is one."""
        self.pool.close()

    def tell(self, event: LimitExceeded) -> None:
        """Log why nothing is handed out."""
        _log.warning("%s: %s", self._source.what, event.describe())

    async def fetch(self, options: FetchOptions) -> FetchedMessages:
        """Return what a fetch brings.

        Raises:
            NatsStreamError: No message came, and something went wrong.
        """
        if self._source.deliver_subject:
            raise push_error(self._source)
        features = options.group.features()
        if features:
            await self._source.api.require(*features)
        return await _Call(self, options).run()

    async def ack_next(self, message: DeliveredMessage, timeout: float) -> DeliveredMessage | None:
        """Settle a message and return the next one.

        Raises:
            UsageError: The consumer has ack policy "none": nobody listens for verdicts.
        """
        if self._source.ack_policy == "none":
            raise UsageError(
                f"{self._source.what} has ack policy none: it takes no verdicts",
                hint="use consumer.next(), or consume() for a steady flow",
            )
        group = group_options(self._source)
        timeout_s = seconds(timeout, "timeout")
        options = FetchOptions(count=1, timeout_s=timeout_s, no_wait=timeout_s == 0, group=group)
        found = await _Call(self, options, settles=message).run()
        return found[0] if found else None


class _Call:
    """One call of `fetch`."""

    def __init__(
        self, owner: Fetcher, options: FetchOptions, *, settles: DeliveredMessage | None = None
    ) -> None:
        self._owner = owner
        self._options = options
        # With its ack the first pull travels; None once that was heard.
        self._settles = settles
        self._source = owner.ack_sender.source
        self._client = owner.ack_sender.source.api.client
        self._got: list[DeliveredMessage] = []
        self._inbox: FetchInbox | None = None
        self._complete = False
        self._has_pulled = False
        # The server has ended the last pull, and nothing else went wrong since.
        self._is_told = False
        self._loop = asyncio.get_running_loop()
        self._began = now = self._loop.time()
        self._watch = owner.ack_sender.limit_watch
        answer_s = self._client.options.request_timeout
        # A call that takes only what is there waits for a server as any other request does.
        wait_s = min(options.timeout_s, answer_s) if options.no_wait else options.timeout_s
        self._deadline = now + wait_s
        # A server that is not to wait is asked anew after breaks until then.
        self._answer_s = max(options.timeout_s, answer_s) if options.no_wait else options.timeout_s
        self._answer_by = now + max(options.timeout_s, answer_s)
        self._quiet_s = _QUIET_S

    async def run(self) -> FetchedMessages:
        """Return what came."""
        error: NatsStreamError | None = None
        try:
            try:
                await self._collect()
            except NatsStreamError as failed:
                error = failed
            except BaseException:
                # Cancelled: what came goes back into the inbox, for the next fetch.
                if self._inbox is not None:
                    self._inbox.messages[:0] = self._got
                raise
        finally:
            if self._got:
                self._watch.waited_s = 0.0
            elif not self._options.no_wait:
                self._watch.waited_s += self._loop.time() - self._began
            if self._inbox is not None:
                self._owner.pool.put(self._inbox)
        if error is not None and not self._got:
            raise error
        is_full = len(self._got) >= self._options.count
        return FetchedMessages(self._got, error=error, complete=is_full or self._complete)

    async def _collect(self) -> None:
        options, owner = self._options, self._owner
        while True:
            inbox = await self._connected_inbox()
            self._got += inbox.take(options.count - len(self._got))
            if len(self._got) >= options.count:
                break
            if inbox.failure is not None:
                self._source.take_ack_refusal()  # If it is one, this call tells it.
                raise inbox.failure.with_traceback(None)
            if inbox.statuses:
                if await self._is_over(inbox.statuses.popleft()):
                    break
                continue
            pulls, now = inbox.subscription.pulls, self._loop.time()
            if self._has_time:
                if pulls.is_due(now):
                    self._pull(inbox, min(options.count - len(self._got), options.batch_max))
            elif self._is_told and not pulls.left(now):
                break
            if await self._wait(inbox):
                await self._withdraw(inbox)
                break
        if self._got and options.group.group:
            owner.pin_id = pin_of(self._got[-1]) or owner.pin_id

    def _left_s(self) -> float:
        return self._deadline - self._loop.time()

    @property
    def _has_time(self) -> bool:
        """True while a pull may be sent: however short the time, the server is asked once."""
        if self._options.no_wait and self._loop.time() < self._answer_by:
            return True
        return self._left_s() > _SHORTEST_PULL_S or not self._has_pulled

    async def _connected_inbox(self) -> FetchInbox:
        """Return the inbox, another one after a break; waits for a connection.

        Raises:
            ConnectionLostError: There was none in time.
        """
        inbox, client = self._inbox, self._client
        if inbox is not None and (inbox.messages or inbox.failure is not None):
            return inbox
        if inbox is None or not client.is_connected:
            try:
                await client.wait_connected(max(self._left_s(), 0.001), what=self._source.what)
            except ConnectionLostError as error:
                more = "timeout and request_timeout" if self._options.no_wait else "timeout"
                error.hint = f"check the servers, or raise {more}"
                raise
        if inbox is not None and inbox.options is not None and inbox.is_broken:
            self._owner.pool.discard(inbox)
            self._inbox = inbox = None
        if inbox is None:
            pool = self._owner.pool
            is_first = self._settles is None
            self._inbox = inbox = await (
                pool.get(self._options, self._deadline) if is_first else pool.new()
            )
        return inbox

    def _pull(self, inbox: FetchInbox, count: int) -> None:
        options, self._has_pulled, self._is_told = self._options, True, False
        answer_s = max(self._answer_by - self._loop.time(), _RETRY_WAIT_S)
        times = options.times(answer_s if options.no_wait else self._left_s())
        body = pull_body(
            count,
            times,
            max_bytes=options.max_bytes,
            no_wait=options.no_wait,
            group=options.group,
            pin_id=self._owner.pin_id,
        )
        message = self._settles
        if message is None:
            inbox.pull(options, count, body, times)
            return
        self._owner.ack_sender.flush()
        if not message.is_settled:
            message.begin_verdict(AckKind.ACK)
        subject = ack_text(message.reply)
        try:
            inbox.pull(options, count, NEXT + b" " + body, times, subject)
        except BaseException:
            message.take_verdict_back()
            raise

    def _quiet_at(self, delivered_at: float) -> float:
        """Return when to ask why there is no message."""
        watch = self._watch
        if self._options.no_wait:
            return self._loop.time() + self._quiet_s if watch.may_look else inf
        return watch.look_at(max(self._began - watch.waited_s, delivered_at))

    async def _is_held_up(self, inbox: FetchInbox) -> bool:
        """Ask why there is no answer; True if none comes until messages are acked."""
        self._quiet_s *= 2
        try:
            info = await self._check_exists()
        except PermissionDeniedError:  # It is logged each time.
            self._watch.may_look = False
            return False
        if info is None or inbox.messages or inbox.statuses:
            return False
        if event := self._watch.find(info, self._loop.time()):
            self._owner.tell(event)
        return is_held_up(info)

    async def _withdraw(self, inbox: FetchInbox) -> None:
        """End the pull: once messages are acked, it would take those that the next call wants."""
        self._inbox = None
        try:
            inbox.subscription.stop()
            with suppress(NatsStreamError):
                await self._client.flush(self._source.tuning.flush_s)
            self._got += inbox.take(self._options.count - len(self._got))
        except BaseException:
            inbox.messages[:0] = self._got
            raise
        finally:
            self._owner.pool.discard(inbox)

    async def _wait(self, inbox: FetchInbox) -> bool:
        """Wait until something comes, or until what was asked for is not believed any more.

        Returns:
            True if the call does not wait, and the server answers only once messages are acked.

        Raises:
            NatsStreamError: The server says nothing, and it is known why.
        """
        pulls, now = inbox.subscription.pulls, self._loop.time
        # A call that has only taken over a pull asks once itself when that says nothing in time.
        deadline = self._deadline if self._has_pulled else inf
        look_at, quiet_at = pulls.next_look(now(), deadline), self._quiet_at(pulls.delivered_at)
        if quiet_at <= now() < look_at:
            wait = inbox.wait(look_at - now())
            has_come = await look_while(wait, self._owner.ack_sender, self._owner.tell)
        else:
            has_come = await inbox.wait(max(min(look_at, quiet_at) - now(), 0.001))
        if has_come:
            return False
        if pulls.left(now()):
            is_quiet = self._options.no_wait and quiet_at < look_at
            return is_quiet and await self._is_held_up(inbox)
        self._is_told = False
        if not self._has_time or self._options.no_wait:
            await self._look_into_silence(inbox)
            return False
        info = await self._check_exists()
        if info is not None and is_crowded(info):
            raise crowded_error(self._source)
        return False

    async def _look_into_silence(self, inbox: FetchInbox) -> None:
        """Find out why the server says nothing, not even that there is nothing.

        Returns when it has said something after all: it, or this process, has stood still.

        Raises:
            ConsumerDeletedError: Behind a leaf node nobody else tells that there is no consumer.
            NatsStreamError: It is there and says nothing.
        """
        info = await self._check_exists()
        if info is not None and is_crowded(info):
            raise crowded_error(self._source)
        # An answer to this, and to the pull, may be in flight, or here and not read yet.
        if await inbox.wait(self._source.tuning.grace_s if info is not None else _LAST_LOOK_S):
            return
        raise RequestTimeoutError(
            f"{self._source.what} did not answer a pull within {self._answer_s:g} s",
            hint="is the server paused or overloaded? Has the stream a leader?",
            retryable=True,
        )

    async def _is_over(self, said: PullStatus) -> bool:
        """Do what a pull's end asks for; True when the call is at its end as well.

        Raises:
            NatsStreamError: The end is an error.
        """
        end, options = said.end, self._options
        if end not in (PullOutcome.NO_RESPONDERS, PullOutcome.LEADER_CHANGED):
            self._settles = None  # Its ack arrived with the pull.
        if end is PullOutcome.COMPLETED:
            self._is_told = True
            # Only a pull that is bounded by bytes ends by a conflict.
            self._complete = said.status.pull_end is not None
            return self._complete or options.no_wait or self._left_s() <= _SHORTEST_PULL_S
        if end is PullOutcome.EMPTY:
            return True
        if end is PullOutcome.TOO_LARGE:
            if not self._got:
                raise oversized_error(self._source, options.max_bytes)
            self._complete = True
            return True
        if end is PullOutcome.WRONG_PIN:
            self._owner.pin_id = ""
            return False
        if end in (PullOutcome.LEADER_CHANGED, PullOutcome.NO_RESPONDERS):
            await self._wait_for_leader(said)
            return False
        if end is PullOutcome.CONSUMER_DELETED:
            raise await self._source.why_deleted()
        if end in (PullOutcome.LIMIT, PullOutcome.TOO_MANY_PULLS):
            raise limit_error(said, self._source)
        raise refusal(said, self._source)

    async def _wait_for_leader(self, said: PullStatus) -> None:
        if said.end is PullOutcome.NO_RESPONDERS:
            await self._check_exists()
        if self._left_s() > _RETRY_WAIT_S:
            await asyncio.sleep(_RETRY_WAIT_S)
            if self._has_time:  # A busy loop wakes late.
                return
        raise ConnectionLostError(
            f"{self._source.what} has no leader",
            detail=said.words,
            hint="try again in a moment",
            retryable=True,
        )

    async def _check_exists(self) -> ConsumerInfo | None:
        """Ask about the consumer, within the time that is left, and a moment at least."""
        with suppress(RequestTimeoutError):
            return await self._source.check_exists(max(self._left_s(), self._source.tuning.grace_s))
        return None
