"""One consumer, as `stream.consumers` returns it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.api.consumer_requests import consumer_info
from natsstream.api.diff import ConfigChange
from natsstream.api.requests import Api
from natsstream.api.step_down import StepDownTarget, step_down
from natsstream.arguments import check_bool
from natsstream.consume.delivery.backoff import Backoff
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.source import ConsumerSource, PushSource
from natsstream.consume.pull.fetching import FetchedMessages, Fetcher
from natsstream.consume.pull.messages import ConsumerMessages
from natsstream.consume.pull.requests import (
    EXPIRES_S,
    MAX_MESSAGES,
    THRESHOLD,
    TIMEOUT_S,
    ConsumeOptions,
    Duration,
    consume_options,
    fetch_options,
    group_options,
)
from natsstream.consume.push.subscription import MAX_PENDING, MAX_PENDING_BYTES, PushMessages
from natsstream.consume.work.handlers import ErrorSink, Handler, check_handler
from natsstream.consume.work.options import CONCURRENCY, STOP_TIMEOUT_S, WorkOptions
from natsstream.consume.work.worker import Worker
from natsstream.foreign_names import answers_names


@answers_names("consumer")
class Consumer:
    """A consumer of a stream; made by `stream.consumers`.

    Every call raises `ConsumerNotFoundError` or `ConsumerDeletedError` when the consumer was
    deleted, and `TransportError` when the server does not answer in time.

    Attributes:
        name: The consumer's name.
        stream: Name of its stream.
        cached: Its info when it was opened; `info()` returns a fresh one.
        change: Whether the call that returned it created the consumer, changed fields, or did
            nothing.
    """

    def __init__(self, api: Api, cached: ConsumerInfo, change: ConfigChange | None = None) -> None:
        self._api = api
        self.name: str = cached.name
        self.stream: str = cached.stream
        self.cached: ConsumerInfo = cached
        self.change: ConfigChange = change or ConfigChange(cached.name, "unchanged")

    def __repr__(self) -> str:
        return f"<Consumer {self.name} of {self.stream}>"

    # Info.

    async def info(self) -> ConsumerInfo:
        """Return the consumer's configuration and progress now.

        Raises:
            ConsumerNotFoundError: It was deleted, also by the server after `inactive_threshold`.
            StreamNotFoundError: Its stream was deleted.

        Cost: one round trip to the consumer's leader.
        """
        return await consumer_info(self._api, self.stream, self.name)

    # Pulling.

    async def next(
        self,
        *,
        timeout: Duration = TIMEOUT_S,
        heartbeat: Duration | None = None,
        group: str | None = None,
        priority: int | None = None,
        min_pending: int | None = None,
        min_ack_pending: int | None = None,
    ) -> DeliveredMessage | None:
        """Return the next message, or None when the server reports that none came in time.

        A cancelled call loses no message: the next call on this handle returns it, or it is nak'd
        within a tenth of a second.

        Args:
            timeout: Seconds to wait; 0 takes only a message that is ready, and raises at once while
                the server is away.
            heartbeat: Seconds between the server's heartbeats; two and a half without one count as
                a break. None is a fifth of `timeout`, at most 2, for waits of 5 s and more.
            group: Priority group; None is the consumer's, if it has one.
            priority: 0 (first) to 9, of a "prioritized" consumer.
            min_pending: Of an "overflow" consumer: only while that many messages are pending.
            min_ack_pending: Of an "overflow" consumer: only while that many acks are pending.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.
            UsageError: It is a push consumer; nothing was sent.
            ConsumerDeletedError: The consumer was deleted, before the call or during it.
            PullLimitError: The consumer has as many open pulls as it allows (retryable). With a
                heartbeat it is raised after two and a half of them.
            PermissionDeniedError: This user may not pull from it.
            ConnectionLostError: The connection, or the consumer's leader, did not come back.
            RequestTimeoutError: The server said nothing at all, whatever the timeout; raised one to
                three seconds after it. The next call pulls anew.

        Cost: one round trip. `consume` is many times faster for more than a few.
        Source: ADR-37; nats.go jetstream/consumer.go Next.
        """
        found = await self.fetch(
            1,
            timeout=timeout,
            heartbeat=heartbeat,
            group=group,
            priority=priority,
            min_pending=min_pending,
            min_ack_pending=min_ack_pending,
        )
        return found[0] if found else None

    async def fetch(
        self,
        n: int,
        *,
        timeout: Duration = TIMEOUT_S,
        max_bytes: int | None = None,
        no_wait: bool = False,
        heartbeat: Duration | None = None,
        group: str | None = None,
        priority: int | None = None,
        min_pending: int | None = None,
        min_ack_pending: int | None = None,
    ) -> FetchedMessages:
        """Return `n` messages as soon as they are there, or the fewer that came in time.

        Reconnects and leader changes are waited out within the time. Calls may run side by side on
        one handle. A cancelled call loses no messages, as for `next`.

        Args:
            n: Messages at most; more than the consumer's `max_batch` are pulled in parts.
            timeout: Seconds to wait for all of them; 0 is `no_wait`.
            max_bytes: Bytes of all of them at most, subjects and headers included.
            no_wait: Take only the messages that are ready. While the server is away it waits for
                `timeout`, at most for `request_timeout`.
            heartbeat: Seconds between the server's heartbeats; two and a half without one count as
                a break. None is a fifth of `timeout`, at most 2, for waits of 5 s and more.
            group: Priority group; None is the consumer's, if it has one.
            priority: 0 (first) to 9, of a "prioritized" consumer.
            min_pending: Of an "overflow" consumer: only while that many messages are pending.
            min_ack_pending: Of an "overflow" consumer: only while that many acks are pending.

        Returns:
            The messages; none when the server says that none came in time. `complete` is True when
            all came, and `error` is what went wrong after the last one, such as a silent server.

        Raises:
            PullLimitError: It requests more than the consumer allows, or the next message is larger
                than `max_bytes`.
            NatsStreamError: As for `next`; raised only when no message came.

        Cost: one round trip for all of them.
        Source: ADR-37; nats.go jetstream/pull.go Fetch, FetchBytes, FetchNoWait.
        """
        source = self._fetcher.ack_sender.source
        options = fetch_options(
            source,
            n,
            timeout=timeout,
            max_bytes=max_bytes,
            no_wait=no_wait,
            heartbeat=heartbeat,
            group=group_options(
                source,
                group=group,
                priority=priority,
                min_pending=min_pending,
                min_ack_pending=min_ack_pending,
            ),
        )
        return await self._fetcher.fetch(options)

    def consume(
        self,
        *,
        max_messages: int = MAX_MESSAGES,
        max_bytes: int | None = None,
        threshold: float = THRESHOLD,
        expires: Duration = EXPIRES_S,
        heartbeat: Duration | None = None,
        stop_after: int | None = None,
        group: str | None = None,
        priority: int | None = None,
        min_pending: int | None = None,
        min_ack_pending: int | None = None,
    ) -> ConsumerMessages:
        """Return a steady flow of messages, to be used with `async with` and `async for`.

        It resumes after reconnects, changes of the consumer's leader and server restarts.

        Args:
            max_messages: Messages requested or buffered at most; with 1 each message is requested
                when the reader wants it.
            max_bytes: The same in bytes. A message larger than a pull's share comes alone.
            threshold: Request more when this share of the limits, or less, is requested or
                buffered; from 0 to below 1.
            expires: Seconds that a pull waits at the server; new ones follow by themselves.
            heartbeat: Seconds between the server's heartbeats while no message comes; two and a
                half without one count as a break. None is 2, at most half of `expires`.
            stop_after: End the loop after exactly this many messages.
            group: Priority group; None is the consumer's, if it has one.
            priority: 0 (first) to 9, of a "prioritized" consumer.
            min_pending: Of an "overflow" consumer: only while that many messages are pending.
            min_ack_pending: Of an "overflow" consumer: only while that many acks are pending.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.

        Cost: a pull for each half window; a message costs no round trip.
        Source: ADR-37; nats.go jetstream/pull.go Messages.
        """
        ack_sender = self._fetcher.ack_sender
        options = consume_options(
            max_messages=max_messages,
            max_bytes=max_bytes,
            threshold=threshold,
            expires=expires,
            heartbeat=heartbeat,
            stop_after=stop_after,
            group=group_options(
                ack_sender.source,
                group=group,
                priority=priority,
                min_pending=min_pending,
                min_ack_pending=min_ack_pending,
            ),
        )
        return ConsumerMessages(ack_sender, options)

    # Push.

    def subscribe(
        self, *, max_pending: int = MAX_PENDING, max_pending_bytes: int = MAX_PENDING_BYTES
    ) -> PushMessages:
        """Return the messages of a push consumer, to be used with `async with` and `async for`.

        Members of a `deliver_group` share the messages. With `flow_control` the server waits for
        the reader; without it, messages beyond the limits are dropped and `SlowReaderError` is
        raised. New applications pull: `consume()` does the same with less to set up.

        Args:
            max_pending: Messages that may wait for the reader.
            max_pending_bytes: Bytes that may wait for the reader.

        Raises:
            UsageError: It is not a push consumer, or `ack_policy` is "flow_control".
            ConfigError: A limit is below 1.

        Source: nats.go js.go Subscribe; the server's consumer.go for flow control.
        """
        source = PushSource.of(ConsumerSource.of(self._api, self.cached), self.cached.config)
        return PushMessages(source, max_pending=max_pending, max_pending_bytes=max_pending_bytes)

    # Handlers.

    async def run(
        self,
        handler: Handler,
        *,
        concurrency: int = CONCURRENCY,
        dead_letter: str | None = None,
        backoff: Sequence[float | timedelta] | Backoff | None = None,
        max_attempts: int | None = None,
        on_error: ErrorSink | None = None,
        keepalive: bool = True,
        prefetch: int | None = None,
        confirm: bool = False,
        stop_timeout: float = STOP_TIMEOUT_S,
        until_empty: bool = False,
    ) -> None:
        """Handle messages until the call is cancelled, or cannot continue.

        A message is acked when its handler returns. When the handler raises, the message is nak'd
        and redelivered after the backoff's delay for this delivery. `Reject` terminates the message
        at once; `Retry(delay=...)` has it redelivered. A message that has failed `max_attempts`
        times is stored as a dead letter, then terminated. A handler may also ack, nak or terminate
        its message itself.

        Handlers run side by side, so they end in any order. A message may be handled twice: after a
        crash, or when the server heard nothing from its worker for `ack_wait`.

        When the call is cancelled, running handlers get `stop_timeout` seconds to finish, and
        unstarted messages are nak'd. A second cancellation cancels the handlers at once.

        Args:
            handler: A coroutine function that takes a message; a plain one in the blocking API.
            concurrency: Handlers that run at the same time.
            dead_letter: The dead-letter stream; it is created when it does not exist.
            backoff: Seconds until a failed message is redelivered, after its first, second, ...
                delivery; the last value repeats. None is the consumer's own, or 1, 2, 4, ... 60.
            max_attempts: Deliveries after which a failing message is dead; None is no limit, but
                with `dead_letter` the consumer's `max_deliver`, else 5. Without `dead_letter` a
                dead message is only terminated, and one that fails at the consumer's `max_deliver`
                stays in the stream, not delivered again.
            on_error: `on_error(error, message)`, called with each failure (a `BaseException`) and
                its `DeliveredMessage`: exceptions of the handler, `Reject` and `Retry` too, failed
                acks and failed dead letters. It may be a coroutine function. None logs them.
            keepalive: Tell the server that messages are in progress, three times in each
                `ack_wait`, so that a handler may take longer.
            prefetch: Messages requested before a handler is free. None is as many as are handled
                in a tenth of a second, from `concurrency` to 512; slow handlers leave the rest to
                other workers. It stays at `concurrency` while many messages are redelivered.
            confirm: Wait until the server has each ack; `DeliveredMessage.ack` says what that
                promises. An ack that a killed server forgot is reported to `on_error` as
                `DeliveryForgottenError`, counted in `report.unconfirmed`, and its message is
                redelivered.
            stop_timeout: Seconds that running handlers get at the end.
            until_empty: Return when the consumer has no message left, those of other workers and
                those that wait for their redelivery included.

        Raises:
            ConfigError: The handler is not a coroutine function, or an option does not fit the
                consumer; no message was taken.
            ConsumerDeletedError: The consumer was deleted; running handlers have finished.
            ConnectionLostError: The connection has a `reconnect_timeout`, and the server was away
                for longer. Without one the call outlives any outage.
            NatsStreamError: Another failure makes it impossible to continue.

        Cost: for each message that of `consume` and of its ack, and a task switch.
        """
        check_bool(until_empty, "until_empty")
        async with self.worker(
            handler,
            concurrency=concurrency,
            dead_letter=dead_letter,
            backoff=backoff,
            max_attempts=max_attempts,
            on_error=on_error,
            keepalive=keepalive,
            prefetch=prefetch,
            confirm=confirm,
            stop_timeout=stop_timeout,
        ) as worker:
            await (worker.wait_until_empty() if until_empty else worker.wait())

    def worker(
        self,
        handler: Handler,
        *,
        concurrency: int = CONCURRENCY,
        dead_letter: str | None = None,
        backoff: Sequence[float | timedelta] | Backoff | None = None,
        max_attempts: int | None = None,
        on_error: ErrorSink | None = None,
        keepalive: bool = True,
        prefetch: int | None = None,
        confirm: bool = False,
        stop_timeout: float = STOP_TIMEOUT_S,
    ) -> Worker:
        """Return a worker, to be used with `async with`; arguments as in `run`.

        The block starts and ends it: `stop`, `drain` and `wait` end it earlier, `report` counts.

        Raises:
            ConfigError: As for `run`.
        """
        options = WorkOptions(
            concurrency=concurrency,
            dead_letter=dead_letter,
            backoff=backoff,
            max_attempts=max_attempts,
            on_error=on_error,
            keepalive=keepalive,
            prefetch=prefetch,
            confirm=confirm,
            stop_timeout=stop_timeout,
        )
        # Not the fetcher's: each worker sends and confirms acks of its own.
        ack_sender = AckSender(ConsumerSource.of(self._api, self.cached))
        group = group_options(ack_sender.source)

        def open_incoming(window: int) -> ConsumerMessages:
            return ConsumerMessages(ack_sender, ConsumeOptions(max_messages=window, group=group))

        return Worker(ack_sender, open_incoming, check_handler(handler), options)

    # Operations.

    async def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        wait: bool = True,
        timeout: float | None = None,
    ) -> str | None:
        """Make the consumer's leader step down, and return the name of the next one.

        Readers continue; messages that are not acked may be redelivered. A consumer with one
        replica keeps its leader.

        Args:
            preferred: Name of the server to lead next; it must have a replica. While that one
                is not current, another may lead: the result tells.
            cluster: Name of the cluster of the next leader.
            tags: Tags of the next leader's server.
            wait: Wait for the next leader; without it the result is None.
            timeout: Seconds to wait in all; None is `request_timeout`.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.
            ServerError: The server is not in a cluster, or no replica fits; the leader stays.
            UnsupportedServerError: A choice was made, and the server is older than 2.11.
            RequestTimeoutError: No answer, or no leader in time. It may have stepped down.

        Cost: a round trip, an election, and one info each 50 ms until it is over.
        Source: nats CLI `nats consumer cluster step-down`.
        """
        return await step_down(
            StepDownTarget.of_consumer(self._api, self.stream, self.name),
            preferred=preferred,
            cluster=cluster,
            tags=tags,
            wait=wait,
            timeout=timeout,
        )

    @cached_property
    def _fetcher(self) -> Fetcher:
        """Made with the first pull: a handle that never pulls costs nothing."""
        return Fetcher(AckSender(ConsumerSource.of(self._api, self.cached)))
