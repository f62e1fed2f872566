"""The engine of a steady flow: keeps pulls open, takes what comes, and goes on after breaks.

Law: the sinks never wait; what needs an answer of the server is done by the reader that waits, so
there is no task. What was asked for is counted by pull and forgotten with it. Whoever waits is
woken by every message, break and end. Readers are let go at the end only when the server sends no
more: what is still on its way is handed out, or given back.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from natsstream._wire.permission_violations import denied_error
from natsstream.consume.delivery.ack_kinds import AckKind
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.event_stream import EventStream
from natsstream.consume.delivery.events import (
    ConsumerDeleted,
    HeartbeatsMissed,
    LeaderChanged,
    LimitExceeded,
    Pinned,
    Unpinned,
)
from natsstream.consume.pull.open_pulls import SILENT_HEARTBEATS
from natsstream.consume.pull.outcomes import (
    PullOutcome,
    PullStatus,
    limit_error,
    push_error,
    refusal,
)
from natsstream.consume.pull.pull_requests import PullRequests, pin_of
from natsstream.consume.pull.recovery import Cause, Recovery
from natsstream.consume.pull.subscription import PullSubscription
from natsstream.consume.pull.window import PullWindow
from natsstream.errors import NatsStreamError, RequestTimeoutError

if TYPE_CHECKING:
    from natsstream.consume.pull.requests import ConsumeOptions
    from natsstream.events import PermissionDenied

# Pulls that are just being filled are not withdrawn: in a cluster, what is on its way when the
# interest ends is lost until ack_wait.
_BUSY_S = 0.02
_BUSY_MAX_S = 0.25
_FLUSH_TIMEOUT_S = 1.0
_CROWDED_WAIT_S = 0.25


class ConsumeSession:
    """One flow.

    Attributes:
        settling: Settles its messages.
        events: What happened to it.
        is_ended: True once it asks for nothing more.
        rest: Of the run that is being handed out, the last one first.
    """

    def __init__(self, settling: AckSender, options: ConsumeOptions) -> None:
        self.settling: AckSender = settling
        self.events: EventStream = EventStream()
        self.is_ended: bool = False
        self.rest: list[DeliveredMessage] = []
        source = settling.source
        self._heartbeat_s = options.heartbeat_s
        self._window = PullWindow(
            options.max_messages,
            max_bytes=options.max_bytes,
            threshold=options.threshold,
            stop_after=options.stop_after,
            max_batch=source.max_batch,
            bytes_limit=source.max_bytes,
        )
        self._requests = PullRequests(options, source)
        self._subscription = self._new_lane()
        self._runs: deque[tuple[list[DeliveredMessage], int]] = deque()
        self._recovery = Recovery(self)
        self._failure: NatsStreamError | None = None
        self._is_dropping = False
        self._refused_limits: set[str] = set()
        self._wake = asyncio.Event()
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._tick: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._unwatch = lambda: None
        self._unwatch_denied = lambda: None

    # Life.

    async def open(self) -> None:
        """Subscribe and ask for the first messages."""
        if self.settling.source.deliver_subject:
            raise push_error(self.settling.source)
        client = self.settling.source.api.client
        self._unwatch = client.watch(self._on_connection)
        self._unwatch_denied = client.watch_denied(self._on_denied)
        try:
            await self._subscription.open()
            if client.is_connected:
                self.refill()
            else:
                self._recovery.begin(Cause.CONNECTION_LOST)
            self._arm()
        except BaseException:
            self._close()
            raise

    async def renew_lane(self) -> None:
        """Begin with a new subscription: what older pulls still bring is not waited for."""
        if self.is_ended:
            return  # Nobody would close it.
        self._subscription.close()
        self._subscription = self._new_lane()
        await self._subscription.open()

    def _new_lane(self) -> PullSubscription:
        return PullSubscription(
            self.settling,
            on_messages=self._on_messages,
            on_status=self._on_status,
            on_failed=self.fail,
        )

    @property
    def waiting(self) -> int:
        """Messages that arrived and are in no reader's hands."""
        return len(self.rest) + self._window.waiting

    def buffered(self) -> Iterator[DeliveredMessage]:
        """Yield what arrived and no reader has taken; nothing may wait meanwhile."""
        yield from reversed(self.rest)
        for run, _ in self._runs:
            yield from run

    async def drain(self) -> None:
        """Withdraw the open pulls; what arrived stays for the readers."""
        if self.is_ended:
            await self._closed.wait()  # Whoever is ending it has a limit in time.
            return
        self.is_ended = True
        self._recovery.end()
        # An end that is cancelled waits for nothing; what is on its way is given back.
        lingers = True
        try:
            lingers = not await self._withdraw()
        finally:
            self._close(lingers=lingers)

    async def stop(self) -> None:
        """End now, and give back what was not handed out."""
        was_dropping, self._is_dropping = self._is_dropping, True
        if was_dropping:
            await self._closed.wait()
            return
        # Not a moment later: a reader that does not wait would go on to take what is there.
        rest = self.rest[::-1]
        self.rest.clear()
        self._wake.set()
        try:
            await self.drain()
        finally:
            self._close(lingers=True)
            rest += [message for run, _ in self._runs for message in run]
            self._runs.clear()
            self._window.waiting = 0
            give_back(self.settling, rest)

    async def _withdraw(self) -> bool:
        """Ask for no more; False when the server, which is there, has not said that it heard it."""
        lane, now = self._subscription, self._loop.time
        until = now() + _BUSY_MAX_S
        while lane.pulls.left(now()) and now() < until:
            if lane.pulls.delivered_at <= now() - _BUSY_S:
                break
            await asyncio.sleep(_BUSY_S / 4)
        lane.stop()
        try:
            await self.settling.source.api.client.flush(_FLUSH_TIMEOUT_S)
        except RequestTimeoutError:
            return False
        except NatsStreamError:  # Without a server there is nothing under way.
            pass
        return True

    def _close(self, *, lingers: bool = False) -> None:
        """Free everything here and on the server, without waiting; closing twice is fine."""
        if self._closed.is_set():
            return
        self.is_ended = True
        self._recovery.end()
        self._unwatch()
        self._unwatch_denied()
        for timer in (self._tick, self._retry):
            if timer is not None:
                timer.cancel()
        self._tick = self._retry = None
        if lingers:
            self._subscription.linger()
        else:
            self._subscription.close()
        self.events.close()
        self._closed.set()
        self._wake.set()

    # Readers.

    async def fill_rest(self) -> bool:
        """Put messages that arrived together into `rest`; False at the end.

        Cancelling it loses nothing.
        """
        self._window.finish()
        while not self.rest:  # Another reader may get some while this one waits.
            if self._is_dropping or self._window.to_hand == 0:
                return False
            if self._runs:
                self._take()
                break
            if self._failure is not None:
                raise self._failure.with_traceback(None)
            if self._closed.is_set():
                return False
            if self.is_ended:
                await self.sleep_until_woken()
                continue
            if self._recovery.is_needed:
                await self._recovery.mend()
                continue
            self.refill()
            if not self._recovery.is_needed and self._failure is None:
                await self.sleep_until_woken()
        return True

    def _take(self) -> None:
        run, size = self._runs.popleft()
        left = self._window.to_hand
        if left is not None and left < len(run):
            # More came than was asked for, after a break; it is given back at the end.
            self._runs.appendleft((run[left:], 0))
            run = run[:left]
        self._window.take(len(run), size)
        self.rest += run[::-1]
        self.refill()

    # Pulls.

    def refill(self) -> None:
        """Ask for more where the window has room."""
        if self.is_ended or self._failure is not None or self._recovery.is_needed:
            return
        if self._retry is not None:
            return
        lane, flow, asking = self._subscription, self._window, self._requests
        pulls = lane.pulls
        while count := flow.want(pulls.believed, pulls.bytes_believed if flow.counts_bytes else 0):
            if asking.is_pinning and not asking.pin_id and pulls.believed:
                return  # The server pins one pull; the others follow with its id.
            max_bytes = 0 if flow.is_single else flow.share_bytes
            body = asking.body(count, max_bytes)
            try:
                lane.pull(count, body, times=asking.times, max_bytes=max_bytes)
            except NatsStreamError as error:
                if error.retryable:
                    self._recovery.begin(Cause.CONNECTION_LOST)
                else:
                    self.fail(error)
                return

    def resize(self, max_messages: int) -> None:
        """Go on with another window."""
        self._window.resize(max_messages)
        self.refill()

    def adapt(self, *, max_batch: int, max_bytes: int, max_expires_ns: int) -> None:
        """Take over the consumer's limits, as the server has them now; 0 is no limit."""
        self._window.limit(max_batch=max_batch, max_bytes=max_bytes)
        self._requests.limit_expires(max_expires_ns)

    # Sinks of the fast lane: they must not wait and must not raise.

    def _on_messages(self, messages: list[DeliveredMessage]) -> None:
        if self._closed.is_set():
            give_back(self.settling, messages)
            return
        flow, share = self._window, self._window.share
        if self._requests.is_pinning:
            pin_id = pin_of(messages[-1])
            if pin_id and self._requests.set_pin(pin_id):
                self.events.put(Pinned(pin_id=pin_id))
        count = len(messages)
        runs = (messages,)
        if count > share:
            runs = [messages[start : start + share] for start in range(0, count, share)]
        for run in runs:
            size = sum([each.wire_bytes for each in run]) if flow.counts_bytes else 0
            flow.arrive(len(run), size)
            self._runs.append((run, size))
        if self._refused_limits:
            self._refused_limits.clear()
        self._recovery.reset()
        self.refill()
        self._wake.set()

    def _on_status(self, said: PullStatus) -> None:
        end, source = said.end, self.settling.source
        if end is PullOutcome.HEARTBEAT:
            self._recovery.reset()
            return
        if end in (PullOutcome.COMPLETED, PullOutcome.EMPTY):
            self._recovery.reset()
        elif end is PullOutcome.TOO_LARGE:
            # It never fits, so it is asked for alone.
            self._window.is_single = self._window.is_single or said.is_oversized
        elif end is PullOutcome.LEADER_CHANGED:
            self.events.put(LeaderChanged(reason=said.words))
            self._recovery.begin(Cause.LEADER_CHANGED)
        elif end is PullOutcome.NO_RESPONDERS:
            self._recovery.begin(Cause.NO_RESPONDERS)
        elif end is PullOutcome.CONSUMER_DELETED:
            self.lose_consumer(source.deleted_error())
        elif end is PullOutcome.WRONG_PIN:
            if self._requests.set_pin(""):
                self.events.put(Unpinned())
        elif end is PullOutcome.TOO_MANY_PULLS:
            self._tell_limit(said)
            if self._retry is None:
                self._retry = self._loop.call_later(_CROWDED_WAIT_S, self._try_again)
        elif end is PullOutcome.LIMIT and said.limit not in self._refused_limits:
            # Somebody has changed the consumer since it was looked at.
            self._tell_limit(said)
            self._recovery.begin(Cause.LIMITS_CHANGED)
        elif end is PullOutcome.LIMIT:
            self.fail(limit_error(said, source))
        else:
            self.fail(refusal(said, source))
        self.refill()
        self._wake.set()

    def _tell_limit(self, said: PullStatus) -> None:
        if said.limit not in self._refused_limits:
            self.events.put(LimitExceeded(limit=said.limit, reason=said.words))
        self._refused_limits.add(said.limit)

    def _try_again(self) -> None:
        self._retry = None
        self.refill()

    # What goes wrong.

    def fail(self, error: NatsStreamError) -> None:
        """End it with an error, which readers get after what has arrived."""
        if self._failure is None:
            self._failure = error
        self._wake.set()

    def lose_consumer(self, error: NatsStreamError) -> None:
        """End it: the consumer is gone."""
        if self._failure is None:
            self.events.put(ConsumerDeleted(consumer=self.settling.source.consumer))
        self.fail(error)

    async def sleep_until_woken(self) -> None:
        """Wait for anything to happen."""
        self._wake.clear()
        await self._wake.wait()

    def wake(self) -> None:
        """Let those who wait look again."""
        self._wake.set()

    def _on_connection(self) -> None:
        client = self.settling.source.api.client
        if client.is_closed:
            self.fail(client.closing_error())
        elif not client.is_connected:
            # A pin stays ours: the server knows it by its id, and not by the connection.
            self._subscription.pulls.forget()
            self._recovery.begin(Cause.CONNECTION_LOST)

    def _on_denied(self, event: PermissionDenied) -> None:
        if event.operation == "publish" and self._subscription.is_about(event.subject):
            self.fail(denied_error(event))

    def _arm(self) -> None:
        self._tick = self._loop.call_later(self._heartbeat_s, self._on_tick)

    def _on_tick(self) -> None:
        """Look for pulls of which nothing was heard for too long."""
        self._arm()
        if not self._recovery.is_needed and self._subscription.pulls.falls_silent(
            self._loop.time()
        ):
            silence_s = SILENT_HEARTBEATS * self._requests.times.heartbeat_s
            self.events.put(HeartbeatsMissed(seconds=silence_s))
            self._recovery.begin(Cause.MISSED_HEARTBEATS)
        self.refill()


def give_back(settling: AckSender, messages: list[DeliveredMessage]) -> None:
    """Give messages back that nobody took, for others to get at once."""
    if settling.source.ack_policy == "none":
        return
    with suppress(NatsStreamError):  # On a closed connection they come again by themselves.
        for message in messages:
            if not message.is_settled:
                settling.send(message.reply, b"-NAK")
                message.begin_verdict(AckKind.NAK)
        settling.flush()
