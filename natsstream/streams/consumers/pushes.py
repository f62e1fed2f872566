"""Reading a push consumer."""

from __future__ import annotations

from natsstream.consume.delivery.source import PushSource
from natsstream.consume.push.subscription import (
    MAX_PENDING,
    MAX_PENDING_BYTES,
    PushMessages,
)
from natsstream.errors import UsageError
from natsstream.streams.consumers.part import ConsumerPart
from natsstream.units import duration_ns


class Pushes(ConsumerPart):
    """Takes what a push consumer sends."""

    def subscribe(
        self, *, max_pending: int = MAX_PENDING, max_pending_bytes: int = MAX_PENDING_BYTES
    ) -> PushMessages:
        """Return what a push consumer sends, to be used with `async with` and `async for`.

        Members of a `deliver_group` share the messages. With `flow_control` the server waits for
        the reader; without it, what does not fit into the limits is dropped and `SlowReaderError`
        says so. New applications pull: `consume()` does the same with less to set up.

        Args:
            max_pending: Messages that may wait for the reader.
            max_pending_bytes: Bytes that may wait for the reader.

        Raises:
            UsageError: It is no push consumer, or `ack_policy` is "flow_control".
            ConfigError: A limit is below 1.

        Source: nats.go js.go Subscribe; the server's consumer.go for flow control.
        """
        config = self.cached.config
        if not config.is_push:
            raise UsageError(
                f"consumer {self.name} of stream {self.stream} does not push",
                hint="consume(), fetch() and next() pull from it",
            )
        if config.ack_policy == "flow_control":
            raise UsageError(
                f"consumer {self.name} of stream {self.stream} is for streams that mirror or "
                "source this one",
                hint="read with a consumer of your own",
            )
        source = PushSource(
            consumer=self._source(),
            group=config.deliver_group or "",
            heartbeat_ns=duration_ns(config.idle_heartbeat or 0),
        )
        return PushMessages(source, max_pending=max_pending, max_pending_bytes=max_pending_bytes)
