"""Pulling from a consumer: `next`, `fetch` and `consume`."""

from __future__ import annotations

from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.pull.fetching import FetchedMessages, Fetcher
from natsstream.consume.pull.messages import ConsumerMessages
from natsstream.consume.pull.requests import (
    EXPIRES_S,
    MAX_MESSAGES,
    THRESHOLD,
    TIMEOUT_S,
    Duration,
    consume_options,
    fetch_options,
    group_options,
)
from natsstream.streams.consumers.part import ConsumerPart


class Pulls(ConsumerPart):
    """Reads a pull consumer."""

    # Made with the first pull: a handle that never pulls costs nothing.
    _fetcher: Fetcher | None = None

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
        """Return the next message, or None when the server says that none came in time.

        A call that is cancelled takes no message away: what arrives then is for the next call of
        this handle, or is given back to the server within a tenth of a second.

        Args:
            timeout: Seconds to wait; 0 takes only what is there.
            heartbeat: Seconds between the server's signs of life, whose silence is taken for a
                break; None is a fifth of `timeout`, at most 2, for waits of 5 s and more.
            group: Priority group; None is the consumer's, if it has one.
            priority: 0 (first) to 9, of a "prioritized" consumer.
            min_pending: Of an "overflow" consumer: only while that many messages are pending.
            min_ack_pending: Of an "overflow" consumer: only while that many are out.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.
            UsageError: It is a push consumer; nothing was sent.
            ConsumerDeletedError: The consumer is gone, or was deleted while this waited.
            PullLimitError: The consumer has as many pulls open as it allows (retryable); told after
                two and a half heartbeats where the wait has any.
            PermissionDeniedError: This user may not pull from it.
            ConnectionLostError: The connection, or the consumer's leader, did not come back.
            RequestTimeoutError: The server says nothing, not even that there is nothing, whatever
                the timeout; raised one to three seconds after it. The next call pulls anew.

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
        """Return up to `n` messages, as soon as there are so many, else what came in time.

        Reconnects and changes of the leader are waited out within the time. Calls may run side by
        side on one handle. A call that is cancelled takes no messages away, as for `next`.

        Args:
            n: Messages at most; more than the consumer's `max_batch` are pulled in parts.
            timeout: Seconds to wait for all of them; 0 is `no_wait`.
            max_bytes: Bytes of all of them at most, subjects and headers included.
            no_wait: Take only what is there.
            heartbeat: Seconds between the server's signs of life, whose silence is taken for a
                break; None is a fifth of `timeout`, at most 2, for waits of 5 s and more.
            group: Priority group; None is the consumer's, if it has one.
            priority: 0 (first) to 9, of a "prioritized" consumer.
            min_pending: Of an "overflow" consumer: only while that many messages are pending.
            min_ack_pending: Of an "overflow" consumer: only while that many are out.

        Returns:
            The messages; none when the server says that none came in time. `complete` tells whether
            all came, `error` what went wrong behind the last one, such as the server's silence.

        Raises:
            PullLimitError: It asks for more than the consumer allows, or the next message is larger
                than `max_bytes`.
            NatsStreamError: As for `next`; raised only when no message came.

        Cost: one round trip for all of them.
        Source: ADR-37; nats.go jetstream/pull.go Fetch, FetchBytes, FetchNoWait.
        """
        fetcher = self._pulling()
        source = fetcher.ack_sender.source
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
        return await fetcher.fetch(options)

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

        It goes on over reconnects, changes of the consumer's leader and restarts.

        Args:
            max_messages: Messages under way, or here and not handed out; 1 is fine, and fetches a
                message only when the reader asks for it.
            max_bytes: The same in bytes. A message larger than a pull's share comes alone.
            threshold: Share of these, from 0 to below 1: when no more than that is under way or
                here, more is asked for.
            expires: Seconds that a pull waits at the server; the flow sends new ones.
            heartbeat: Seconds between the server's signs of life while nothing comes; None is 2, at
                most half of `expires`. Silence of two and a half is taken for a break.
            stop_after: Messages after which the loop ends, exactly that many.
            group: Priority group; None is the consumer's, if it has one.
            priority: 0 (first) to 9, of a "prioritized" consumer.
            min_pending: Of an "overflow" consumer: only while that many messages are pending.
            min_ack_pending: Of an "overflow" consumer: only while that many are out.

        Raises:
            ConfigError: An argument has no legal value; nothing was sent.

        Cost: a pull for each half window; a message costs no round trip.
        Source: ADR-37; nats.go jetstream/pull.go Messages.
        """
        ack_sender = self._pulling().ack_sender
        group_of = group_options(
            ack_sender.source,
            group=group,
            priority=priority,
            min_pending=min_pending,
            min_ack_pending=min_ack_pending,
        )
        options = consume_options(
            max_messages=max_messages,
            max_bytes=max_bytes,
            threshold=threshold,
            expires=expires,
            heartbeat=heartbeat,
            stop_after=stop_after,
            group=group_of,
        )
        return ConsumerMessages(ack_sender, options)

    def _pulling(self) -> Fetcher:
        if self._fetcher is None:
            self._fetcher = Fetcher(AckSender(self._source()))
        return self._fetcher
