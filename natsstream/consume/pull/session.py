"""The session behind `Consumer.consume`: keeps pulls open, buffers messages, recovers from breaks.

Law: the sinks never wait; a waiting reader does what needs an answer of the server, so there is no
task. Every message, break and close wakes all waiting readers. It closes only when the server sends
no more: messages in flight are handed out, or nak'ed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from enum import Enum

from natsstream._wire.permission_violations import denied_error
from natsstream.api.consumer_info import ConsumerInfo
from natsstream.api.consumer_requests import unpin_consumer
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.events import (
    ConsumerDeleted,
    ConsumerRecreated,
    LeaderChanged,
    LimitExceeded,
    Pinned,
    Reconnected,
    Unpinned,
)
from natsstream.consume.delivery.look import LOOK_TIMEOUT_S
from natsstream.consume.pull.buffer import MessageBuffer
from natsstream.consume.pull.limit_look import look_while
from natsstream.consume.pull.open_pulls import SILENT_HEARTBEATS
from natsstream.consume.pull.outcomes import (
    PullOutcome,
    PullStatus,
    is_crowded,
    limit_error,
    push_error,
    refusal,
)
from natsstream.consume.pull.requests import ConsumeOptions, PullRequests, pin_of
from natsstream.consume.pull.subscription import PullSubscription
from natsstream.consume.pull.window import PullWindow
from natsstream.consume.pull.withdrawal import flush_acks, give_back, withdraw
from natsstream.errors import (
    ConnectionLostError,
    ConsumerDeletedError,
    NatsStreamError,
    NotFoundError,
)
from natsstream.events import PermissionDenied
from natsstream.read.event_stream import EventStream
from natsstream.read.read_events import HeartbeatsMissed
from natsstream.read.recovery import Recovery
from natsstream.units import duration_ns

_log = logging.getLogger("natsstream.consumer")

_CROWDED_WAIT_S = 0.25


class Cause(Enum):
    """Causes of a break, the worst last."""

    LEADER_CHANGED = "the consumer's leader gave it up"
    LIMITS_CHANGED = "the consumer's limits have changed"
    NO_RESPONDERS = "no server responds for the consumer"
    MISSED_HEARTBEATS = "heartbeats were missed"
    CONNECTION_LOST = "the connection was lost"


class ConsumeSession:
    """One flow.

    Attributes:
        events: Its events.
        is_ended: True once it asks for nothing more.
        rest: Of the run that is being handed out, the last one first.
        returned: Messages that its end has given back.
    """

    def __init__(self, ack_sender: AckSender, options: ConsumeOptions) -> None:
        self.events: EventStream = EventStream(ack_sender.source.what)
        self.is_ended: bool = False
        self.returned: int = 0
        self._ack_sender = ack_sender
        self._source = source = ack_sender.source
        self._client = client = source.api.client
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
        self._subscription = self._new_subscription()
        self._buffer = MessageBuffer(self._window)
        self.rest: list[DeliveredMessage] = self._buffer.rest
        self._recovery = Recovery[Cause](client.options.running_reconnect_s, severity=tuple(Cause))
        self._scope: asyncio.Timeout | None = None
        self._created_ns = source.created_ns
        self._failure: NatsStreamError | None = None
        self._is_dropping = False
        self._is_held = False
        self._may_ack = True
        self._is_told = False
        self._has_to_look = False
        self._refused_limits: set[str] = set()
        self._is_crowded = False
        self._wake = asyncio.Event()
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._waits_since = self._loop.time()
        self._tick: asyncio.TimerHandle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._unwatch = lambda: None
        self._unwatch_denied = lambda: None

    # Life.

    async def open(self) -> None:
        """Subscribe and ask for the first messages."""
        if self._source.deliver_subject:
            raise push_error(self._source)
        self._unwatch = self._client.watch(self._on_connection)
        self._unwatch_denied = self._client.watch_denied(self._on_denied)
        try:
            await self._subscription.open()
            if self._client.is_connected:
                self.refill()
            else:
                self._break(Cause.CONNECTION_LOST)
            self._arm()
        except BaseException:
            self._close()
            self._unwatch_denied()
            raise

    def _new_subscription(self) -> PullSubscription:
        return PullSubscription(
            self._ack_sender,
            on_messages=self._on_messages,
            on_status=self._on_status,
            on_failed=self.fail,
        )

    @property
    def waiting(self) -> int:
        """Messages that arrived and are in no reader's hands."""
        return len(self._buffer)

    def buffered(self) -> Iterator[DeliveredMessage]:
        """Iterate what arrived and no reader has taken; nothing may wait meanwhile."""
        return iter(self._buffer)

    def check_loop(self) -> None:
        """Raise EventLoopError on another event loop than the connection's."""
        self._client.check_loop()

    async def drain(self) -> None:
        """Withdraw the open pulls; what arrived stays for the readers."""
        if self.is_ended:
            await self._closed.wait()  # The task that ends it has a time limit.
            return
        self.is_ended = True
        self._end_recovery()
        # A cancelled end waits for nothing; messages in flight are nak'ed.
        lingers = True
        try:
            lingers = not await withdraw(self._subscription, self._ack_sender)
        finally:
            self._close(lingers=lingers)

    async def hand_over(self, last_delivery: int | None) -> None:
        """End, and give back what no reader has taken.

        Args:
            last_delivery: Messages at this delivery, or a later one, stay for the readers; None
                keeps none.
        """
        # Else readers give back what arrives meanwhile, and the open pulls bring it again at once.
        self._is_held = True
        self._buffer.put_back()
        try:
            await self.drain()
        finally:
            self._is_held = False
            self._wake.set()
        self._give_back(last_delivery)

    async def stop(self) -> None:
        """End now, and give back what was not handed out."""
        was_dropping, self._is_dropping = self._is_dropping, True
        if was_dropping:
            await self._closed.wait()
            return
        # Not a moment later: a reader that does not wait would go on to take what is there.
        self._buffer.put_back()
        self._wake.set()
        was_drained = self.is_ended
        try:
            await self.drain()
            if was_drained:  # Acks that were sent since may be refused.
                await flush_acks(self._ack_sender)
        finally:
            self._close(lingers=True)
            self._unwatch_denied()
            self._give_back()

    def _give_back(self, last_delivery: int | None = None) -> None:
        removed = self._buffer.remove(below=last_delivery)
        if self._may_ack:
            self.returned += give_back(self._ack_sender, removed)

    async def unpin(self) -> None:
        """Give the pin of the priority group back, if this reader has it."""
        api, source, group = self._source.api, self._source, self._requests.group
        if not self._requests.pin_id or not self._client.is_connected:
            return
        try:
            async with asyncio.timeout(source.tuning.flush_s):
                # By now another reader may be pinned, whose pin is not ours to take. One that is
                # pinned between the two requests loses it, as the server takes a group alone.
                groups = (await source.info()).priority_groups
                if any(each.pinned_client_id == self._requests.pin_id for each in groups):
                    await unpin_consumer(api, source.stream, source.consumer, group)
        except NotFoundError:
            pass  # The consumer is gone, and its pin with it.
        except (NatsStreamError, TimeoutError) as error:
            _log.warning(
                "%s: the pin of group %s could not be given back, so another reader gets messages "
                "only after the consumer's priority_timeout: %s",
                source.what,
                group,
                error if isinstance(error, NatsStreamError) else "no answer in time",
            )
        self._requests.set_pin("")

    def raise_refusal(self) -> None:
        """Raise the error of a refused ack, unless a reader has raised it."""
        if not self._may_ack and not self._is_told:
            self._raise_failure()

    def _close(self, *, lingers: bool = False) -> None:
        """Free everything here and on the server, without waiting; closing twice is fine."""
        if self._closed.is_set():
            return
        self.is_ended = True
        self._end_recovery()
        self._unwatch()
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
            self.raise_refusal()
            if self._is_dropping or self._window.to_hand == 0:
                return False
            if self._is_held:  # Kept messages are handed out before the end, or a failure.
                await self._sleep_until_woken()
                continue
            if self._buffer.has_run and self._may_ack:
                self._take()
                break
            if self._failure is not None:
                if isinstance(self._failure, ConsumerDeletedError) and not self._failure.detail:
                    self._failure = await self._source.why_deleted()
                self._raise_failure()
            if self._closed.is_set():
                return False
            if self.is_ended:
                await self._sleep_until_woken()
                continue
            if self._recovery.cause:
                await self._recover()
                continue
            self.refill()
            if not self._recovery.cause and self._failure is None:
                await self._sleep_until_woken()
        return True

    def _take(self) -> None:
        self.check_loop()
        self._buffer.take()
        self.refill()

    # Pulls.

    def refill(self) -> None:
        """Ask for more where the window has room."""
        if self.is_ended or self._failure is not None or self._recovery.cause:
            return
        if self._retry is not None:
            return
        subscription, window, requests = self._subscription, self._window, self._requests
        pulls = subscription.pulls
        while count := window.want(
            pulls.believed, pulls.bytes_believed if window.counts_bytes else 0
        ):
            if requests.is_pinning and not requests.pin_id and pulls.believed:
                return  # The server pins one pull; the others follow with its id.
            max_bytes = 0 if window.is_single else window.share_bytes
            body = requests.body(count, max_bytes)
            try:
                subscription.pull(count, body, times=requests.times, max_bytes=max_bytes)
            except NatsStreamError as error:
                if error.retryable:
                    self._break(Cause.CONNECTION_LOST)
                else:
                    self.fail(error)
                return

    def resize(self, max_messages: int) -> None:
        """Go on with another window."""
        self._window.resize(max_messages)
        self.refill()

    # Sinks of the fast subscription: they must not wait and must not raise.

    def _on_messages(self, messages: list[DeliveredMessage]) -> None:
        if self._closed.is_set():
            give_back(self._ack_sender, messages)
            return
        if self._requests.is_pinning:
            pin_id = pin_of(messages[-1])
            if pin_id and self._requests.set_pin(pin_id):
                self.events.put(Pinned(pin_id=pin_id))
        self._buffer.add(messages)
        self._forget_refusals()
        self._is_crowded = False
        self.refill()
        self._wake.set()

    def _on_status(self, said: PullStatus) -> None:
        end = said.end
        if end is PullOutcome.HEARTBEAT:
            self._forget_refusals()
            return
        if end in (PullOutcome.COMPLETED, PullOutcome.EMPTY):
            self._forget_refusals()
        elif end is PullOutcome.TOO_LARGE:
            # It never fits, so it is asked for alone.
            self._window.is_single = self._window.is_single or said.is_oversized
        elif end is PullOutcome.LEADER_CHANGED:
            self.events.put(LeaderChanged(reason=said.words))
            self._break(Cause.LEADER_CHANGED)
        elif end is PullOutcome.NO_RESPONDERS:
            self._break(Cause.NO_RESPONDERS)
        elif end is PullOutcome.CONSUMER_DELETED:
            self._lose_consumer()
        elif end is PullOutcome.WRONG_PIN:
            if self._requests.set_pin(""):
                self.events.put(Unpinned())
        elif end is PullOutcome.TOO_MANY_PULLS:
            if not self._is_crowded:
                self._tell_limit(said)
            self._is_crowded = True
            if self._retry is None:
                self._retry = self._loop.call_later(_CROWDED_WAIT_S, self._try_again)
        elif end is PullOutcome.LIMIT:
            self._meet_limit(said)
        else:
            self.fail(refusal(said, self._source))
        self.refill()
        self._wake.set()

    def _forget_refusals(self) -> None:
        self._recovery.reset()
        # The server takes pulls as they are asked for now.
        if self._refused_limits:
            self._refused_limits.clear()

    def _meet_limit(self, said: PullStatus) -> None:
        if said.limit not in self._refused_limits:
            # The consumer was updated since its info was read.
            self._refused_limits.add(said.limit)
            self._tell_limit(said)
            self._break(Cause.LIMITS_CHANGED)
        elif not self._recovery.cause:  # Else it was sent before the new limits are known.
            self.fail(limit_error(said, self._source))

    def _tell_limit(self, said: PullStatus) -> None:
        self.events.put(LimitExceeded(limit=said.limit, reason=said.words))

    def _try_again(self) -> None:
        self._retry = None
        self.refill()

    # Failures.

    def fail(self, error: NatsStreamError) -> None:
        """End it with an error, which readers get after the messages that they can ack."""
        if self._failure is None:
            self._failure = error
        self._wake.set()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            self._is_told = True
            raise self._failure.with_traceback(None)

    def _lose_consumer(self, cause: NatsStreamError | None = None) -> None:
        if self._failure is None:
            self.events.put(ConsumerDeleted(consumer=self._source.consumer))
        self.fail(self._source.deleted_error(cause))

    async def _sleep_until_woken(self) -> None:
        self.check_loop()
        self._wake.clear()
        if self._has_to_look:
            self._has_to_look = False
            await look_while(self._wake.wait(), self._ack_sender, self.events.put)
        else:
            await self._wake.wait()

    # Recovery.

    def _break(self, cause: Cause) -> None:
        self._recovery.note(cause)
        self._wake.set()

    def _end_recovery(self) -> None:
        """Wake the reader that recovers a flow which has ended."""
        self._recovery.cause = None
        if self._scope is not None and not self._scope.expired():
            self._scope.reschedule(self._loop.time())

    async def _recover(self) -> None:
        """Recover from a break; one reader does it, the others wait.

        Raises:
            ConnectionLostError: It took longer than `reconnect_timeout`.
        """
        if self._scope is not None:
            await self._sleep_until_woken()
            return
        try:
            # It has its own deadlines; `_end_recovery` makes this one.
            async with asyncio.timeout(None) as self._scope:
                await self._wait_for_attempt()
                await self._attempt()
        except TimeoutError:
            if not self.is_ended:
                raise
        finally:
            self._scope = None
            self._wake.set()

    async def _wait_for_attempt(self) -> None:
        recovery, now = self._recovery, self._loop.time
        cause = recovery.cause
        try:
            await self._client.wait_connected(max(recovery.left_s(now()), 0.001))
            wait_s = recovery.next_wait(now())
            if wait_s is None:
                raise ConnectionLostError("the time is over")
        except ConnectionLostError as lost:
            recovery.reset()
            raise ConnectionLostError(
                f"{self._source.what} was away for {recovery.limit_s:g} s",
                detail=cause.value if cause is not None else lost.message,
                hint="iterate again, or start the worker again; without reconnect_timeout it waits "
                "for the server without a limit",
                retryable=True,
            ) from lost
        await asyncio.sleep(wait_s)

    async def _attempt(self) -> None:
        client, cause = self._client, self._recovery.cause
        if cause is not Cause.LEADER_CHANGED and not await self._look():
            return
        if self.is_ended:
            return
        if cause is Cause.CONNECTION_LOST:
            connection = client.connections
            # A new subscription: what older pulls still bring is not waited for.
            self._subscription.close()
            self._subscription = self._new_subscription()
            await self._subscription.open()
            if not client.is_connected or client.connections != connection:
                return
            self.events.put(Reconnected())
        if cause is Cause.LIMITS_CHANGED:
            self._subscription.pulls.forget()  # One of before may be refused only now.
        if self._recovery.cause is cause:
            self._recovery.cause = None
        self.refill()

    async def _look(self) -> bool:
        """Ask the server about the consumer; True when it exists."""
        try:
            info = await self._source.info(LOOK_TIMEOUT_S)
            if info.created_ns != self._created_ns:
                self.events.put(ConsumerRecreated(consumer=self._source.consumer))
            self._created_ns = info.created_ns
            self._adapt(info)
        except NotFoundError as error:
            self._recovery.cause = None
            self._lose_consumer(error)
            return False
        except NatsStreamError as error:
            if not error.retryable:
                self._recovery.cause = None
                self.fail(error)
            return False
        return True

    def _adapt(self, info: ConsumerInfo) -> None:
        """Follow the consumer's limits as the server has them now."""
        if self._recovery.cause is Cause.MISSED_HEARTBEATS and is_crowded(info):
            reason = f"{info.num_waiting} pulls wait already"
            self.events.put(LimitExceeded(limit="max_waiting", reason=reason))
            self._recovery.reset()  # The consumer exists, and has no room.
        config = info.config
        self._window.limit(max_batch=config.max_batch or 0, max_bytes=config.max_bytes or 0)
        self._requests.limit_expires(duration_ns(config.max_expires or 0))

    # The connection.

    def _on_connection(self) -> None:
        if self._client.is_closed:
            self.fail(self._client.closing_error(self._source.what))
        elif not self._client.is_connected:
            # A pin stays ours: the server knows it by its id, and not by the connection.
            self._subscription.pulls.forget()
            self._break(Cause.CONNECTION_LOST)

    def _on_denied(self, event: PermissionDenied) -> None:
        refusal = self._source.ack_refusal(event)
        if refusal is not None:
            # Messages that have arrived would only be handled twice.
            self._may_ack = False
            self.rest.clear()
            self._source.take_ack_refusal()  # This flow tells it.
            self.fail(refusal)
        elif event.operation == "publish" and self._subscription.is_about(event.subject):
            self.fail(denied_error(event))

    def _arm(self) -> None:
        self._tick = self._loop.call_later(self._heartbeat_s, self._on_tick)

    def _on_tick(self) -> None:
        """Look for pulls of which nothing was heard for too long."""
        self._arm()
        self._look_after_silence()
        if not self._recovery.cause and self._subscription.pulls.falls_silent(self._loop.time()):
            silence_s = SILENT_HEARTBEATS * self._requests.times.heartbeat_s
            self.events.put(HeartbeatsMissed(seconds=silence_s))
            self._break(Cause.MISSED_HEARTBEATS)
        self.refill()

    def _look_after_silence(self) -> None:
        """Let a reader that has waited for long look whether the server waits for acks."""
        now = self._loop.time()
        if self._wake.is_set():  # No reader waits.
            self._waits_since = now
        since = max(self._waits_since, self._subscription.pulls.delivered_at)
        is_due = now >= self._ack_sender.limit_watch.look_at(since)
        self._has_to_look = is_due and not (self._recovery.cause or self.is_ended)
        if self._has_to_look:
            self._wake.set()
