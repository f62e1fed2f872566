"""Batches into one stream."""

from __future__ import annotations

from typing import Literal

from natsstream.publish.batches.atomic import AtomicBatch
from natsstream.publish.batches.atomic_rules import IDLE_TIMEOUT_S, MAX_MESSAGES
from natsstream.publish.batches.fast import ACK_TIMEOUT_S, FLOW_MAX, OUTSTANDING, FastIngest
from natsstream.streams.doors.part import Part


class Batching(Part):
    """Stores many messages at a time."""

    def batch(
        self, *, max_messages: int = MAX_MESSAGES, idle_timeout: float = IDLE_TIMEOUT_S
    ) -> AtomicBatch:
        """Describe an atomic batch: messages that the stream stores together, or not at all.

        Use it as `async with stream.batch() as tx`, with `tx.add(...)` and `tx.commit()`. The
        stream needs `allow_atomic`, the server 2.12.

        Args:
            max_messages: Most messages of a batch; raise it where the server's configuration does.
            idle_timeout: Seconds for which the server keeps a batch to which nothing is added;
                change it where the server's configuration does.

        Raises:
            ConfigError: A value can not work. Entering the block raises it too, for a stream
                with `no_ack`, a mirror and one with `persist_mode="async"`.
            BatchDisabledError: By entering the block: the stream has no `allow_atomic`.
            UnsupportedServerError: By entering the block: the server is older than 2.12.

        Cost: messages of a batch wait on the server, 50 batches a stream at most. A commit into a
        file store with one replica takes some milliseconds, as the batch is a file of its own.
        Source: ADR-50.
        """
        return AtomicBatch(
            self._api, self.cached, max_messages=max_messages, idle_timeout=idle_timeout
        )

    def ingest(
        self,
        *,
        on_gap: Literal["fail", "ok"] = "fail",
        ack_every: int = FLOW_MAX,
        max_outstanding_acks: int = OUTSTANDING,
        ack_timeout: float = ACK_TIMEOUT_S,
        idle_timeout: float = IDLE_TIMEOUT_S,
    ) -> FastIngest:
        """Describe a fast ingest: the fastest way to store many messages in order.

        Use it as `async with stream.ingest() as fast`, with `fast.send(...)`. One ack of the server
        is for hundreds of messages, and it says how fast it wants them. Messages are stored as
        they come, not as a whole. The stream needs `allow_batched`, the server 2.14.

        Args:
            on_gap: What happens when a message is lost on the way or refused. "fail" ends the
                batch there: what is stored is an unbroken run from the first message. "ok" goes
                on, and the report tells the gaps.
            ack_every: An ack is asked for each so many messages; the server may give them more
                often, and does so while others ingest into the stream.
            max_outstanding_acks: Acks that may be under way; `send` waits beyond that. A long way
                to the server asks for more than 2.
            ack_timeout: Seconds without any progress after which waits give up.
            idle_timeout: Seconds for which the server keeps a batch to which nothing comes; change
                it where the server's configuration does. A ping keeps it alive each third of it.

        Raises:
            ConfigError: A value can not work. Entering the block raises it too, for a stream
                with `no_ack` and for a mirror.
            BatchDisabledError: By entering the block: the stream has no `allow_batched`.
            UnsupportedServerError: By entering the block: the server is older than 2.14.

        Cost: entering and leaving the block a round trip each, the first message one.
        Source: ADR-50.
        """
        return FastIngest(
            self._api,
            self.cached,
            on_gap=on_gap,
            ack_every=ack_every,
            max_outstanding_acks=max_outstanding_acks,
            ack_timeout=ack_timeout,
            idle_timeout=idle_timeout,
        )
