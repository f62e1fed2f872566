"""The inboxes of one handle's fetches: a spare one, and those that a fetch has left.

Law: no delivery is lost. A fetch that ends before its pull, as by cancelling, leaves its inbox open
for a moment. The next fetch of this handle takes it over; otherwise the pull is withdrawn and its
messages are nak'ed, so that the server redelivers them at once. An unused inbox is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque

from natsstream._wire.permission_violations import denied_error
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.pull.open_pulls import PullTimes
from natsstream.consume.pull.outcomes import PullOutcome, PullStatus
from natsstream.consume.pull.requests import FetchOptions
from natsstream.consume.pull.subscription import PullSubscription
from natsstream.consume.pull.withdrawal import give_back
from natsstream.errors import NatsStreamError
from natsstream.events import PermissionDenied

# So long a pull that was left is kept at most while messages still arrive.
_LINGER_MAX_S = 1.0


class FetchInbox:
    """One subscription with what came on it.

    Attributes:
        subscription: The subscription and its pull.
        messages: Buffered messages.
        statuses: How pulls ended, the first one first.
        options: Options of the last pull; None before the first.
        failure: Why nothing can come; None while something can.
        connection: Number of the connection that its pull went over.
    """

    def __init__(self, ack_sender: AckSender) -> None:
        self.subscription: PullSubscription = PullSubscription(
            ack_sender,
            on_messages=self._on_messages,
            on_status=self._on_status,
            on_failed=self.fail,
        )
        self.messages: list[DeliveredMessage] = []
        self.statuses: deque[PullStatus] = deque()
        self.options: FetchOptions | None = None
        self.failure: NatsStreamError | None = None
        self.connection: int = 0
        self._client = ack_sender.source.api.client
        self._wake: asyncio.Future[None] | None = None

    @property
    def is_broken(self) -> bool:
        """True when a break of the connection lies behind its pull."""
        return self.failure is not None or self.connection != self._client.connections

    def pull(
        self,
        options: FetchOptions,
        count: int,
        body: bytes,
        times: PullTimes,
        subject: str | None = None,
    ) -> None:
        """Ask for messages on it."""
        self.options = options
        self.connection = self._client.connections
        max_bytes = options.max_bytes
        self.subscription.pull(count, body, times=times, max_bytes=max_bytes, subject=subject)

    def take(self, count: int) -> list[DeliveredMessage]:
        """Return up to so many messages that wait here."""
        taken, self.messages = self.messages[:count], self.messages[count:]
        return taken

    async def wait(self, timeout: float) -> bool:
        """Wait for a message, a status or a break; False when none came in time."""
        if self.messages or self.statuses or self.failure is not None:
            return True
        self._wake = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                await self._wake
        except TimeoutError:
            return False
        finally:
            self._wake = None
        return True

    def fail(self, error: NatsStreamError) -> None:
        """Let whoever waits know that nothing comes."""
        if self.failure is None:
            self.failure = error
        self.notify()

    def notify(self) -> None:
        """Wake whoever waits."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _on_messages(self, messages: list[DeliveredMessage]) -> None:
        self.messages += messages
        self.notify()

    def _on_status(self, said: PullStatus) -> None:
        if said.end is not PullOutcome.HEARTBEAT:
            self.statuses.append(said)
            self.notify()


class InboxPool:
    """The inboxes of one handle of a consumer."""

    def __init__(self, ack_sender: AckSender) -> None:
        self._ack_sender = ack_sender
        self._client = ack_sender.source.api.client
        self._tuning = ack_sender.source.tuning
        self._spare: FetchInbox | None = None
        self._spare_timer: asyncio.TimerHandle | None = None
        self._left: list[FetchInbox] = []
        self._used: set[FetchInbox] = set()
        self._stop_watching = lambda: None
        self._is_watching = False

    async def get(self, options: FetchOptions, deadline: float) -> FetchInbox:
        """Return an inbox for a fetch: one that was left with a pull that suits, a spare, or new.

        Args:
            options: The fetch's.
            deadline: When its time is over, on the loop's clock.

        Raises:
            PermissionDeniedError: An ack was refused since the last call; told once.
            ConnectionClosedError: The connection was closed.
            ConnectionLostError: There is none, and too much waits for one.
        """
        refusal = self._ack_sender.source.take_ack_refusal()
        if refusal is not None:
            raise refusal
        for inbox in self._left:
            if self._suits(inbox, options, deadline):
                self._left.remove(inbox)
                self._used.add(inbox)
                return inbox
        return await self.new()

    async def new(self) -> FetchInbox:
        """Return an inbox without a pull; as for `get`."""
        inbox = self._take_spare()
        if inbox is None:
            inbox = FetchInbox(self._ack_sender)
            await inbox.subscription.open()
        self._watch()
        # Statuses of earlier pulls do not answer the next one.
        inbox.statuses.clear()
        self._used.add(inbox)
        return inbox

    def put(self, inbox: FetchInbox) -> None:
        """Take back an inbox that a fetch is done with, whatever state it is in."""
        self._used.discard(inbox)
        loop = asyncio.get_running_loop()
        if inbox.failure is not None or self._client.is_closed or not self._client.is_connected:
            self._drop(inbox)
        elif inbox.subscription.pulls.left(loop.time()) or inbox.messages:
            self._left.append(inbox)
            until = loop.time() + _LINGER_MAX_S
            loop.call_later(self._tuning.linger_s, self._end_linger, inbox, until)
        elif inbox.subscription.pulls.has_doubts:
            self._withdraw(inbox)
        elif self._spare is None:
            self._spare = inbox
            self._spare_timer = loop.call_later(self._tuning.spare_s, self._drop_spare)
        else:
            self._drop(inbox)
        self._unwatch_if_idle()

    def discard(self, inbox: FetchInbox) -> None:
        """Close an inbox that a break has made useless."""
        self._used.discard(inbox)
        self._drop(inbox)
        self._unwatch_if_idle()

    def close(self) -> None:
        """Close all that no fetch uses, and give back what is there."""
        left, self._left = self._left, []
        for inbox in left:
            self._drop(inbox)
        self._drop_spare()

    def _suits(self, inbox: FetchInbox, options: FetchOptions, deadline: float) -> bool:
        """Return True if a fetch can take over the pull of another one."""
        asked = inbox.options
        if asked is None or inbox.is_broken or inbox.statuses:
            return False
        # A pull that outlives the fetch would not say to it that there is nothing.
        if inbox.subscription.pulls.expires_at > deadline:
            return False
        # A larger pull suits as well: what is too much is for the next one, or given back.
        has_other_rules = asked.no_wait or options.no_wait or asked.group != options.group
        return not (has_other_rules or asked.max_bytes or options.max_bytes)

    def _end_linger(self, inbox: FetchInbox, until: float) -> None:
        if inbox not in self._left:
            return  # Another fetch has it.
        loop = asyncio.get_running_loop()
        now = loop.time()
        pulls = inbox.subscription.pulls
        is_busy = pulls.left(now) > 0 and now - pulls.delivered_at < self._tuning.busy_s
        if is_busy and now < until and self._client.is_connected:
            loop.call_later(self._tuning.busy_s, self._end_linger, inbox, until)
            return
        self._left.remove(inbox)
        if pulls.left(now) or pulls.has_doubts:
            self._withdraw(inbox)
        else:
            self._drop(inbox)
        self._unwatch_if_idle()

    def _withdraw(self, inbox: FetchInbox) -> None:
        """Withdraw its pulls; messages in flight by then are nak'ed."""
        self._give_back(inbox)
        inbox.subscription.linger(lambda: self._drop(inbox))

    def _drop(self, inbox: FetchInbox) -> None:
        inbox.subscription.close()
        self._give_back(inbox)

    def _give_back(self, inbox: FetchInbox) -> None:
        messages, inbox.messages = inbox.messages, []
        if messages:
            give_back(self._ack_sender, messages)

    def _take_spare(self) -> FetchInbox | None:
        if self._spare_timer is not None:
            self._spare_timer.cancel()
        self._spare_timer = None
        spare, self._spare = self._spare, None
        return spare

    def _drop_spare(self) -> None:
        spare = self._take_spare()
        if spare is not None:
            self._drop(spare)
        self._unwatch_if_idle()

    # Breaks.

    def _watch(self) -> None:
        if self._is_watching:
            return
        unwatch = self._client.watch(self._on_connection)
        undeny = self._client.watch_denied(self._on_denied)
        self._stop_watching = lambda: (unwatch(), undeny())
        self._is_watching = True

    def _unwatch_if_idle(self) -> None:
        if self._is_watching and not self._used and not self._left and self._spare is None:
            self._stop_watching()
            self._is_watching = False

    def _on_connection(self) -> None:
        for inbox in self._used:
            if self._client.is_closed:
                inbox.fail(self._client.closing_error(self._ack_sender.source.what))
            inbox.notify()
        if not self._client.is_connected:
            self.close()

    def _on_denied(self, event: PermissionDenied) -> None:
        refusal = self._ack_sender.source.ack_refusal(event)
        for inbox in self._used:
            if refusal is not None:
                inbox.fail(refusal)
            elif event.operation == "publish" and inbox.subscription.is_about(event.subject):
                inbox.fail(denied_error(event))
