"""Which consumer messages come from, and what of its configuration matters to who reads them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from natsstream._wire.acks import parse_ack_subject
from natsstream._wire.permission_violations import denied_error
from natsstream.api.consumer_config import ConsumerConfig
from natsstream.api.consumer_info import ConsumerInfo
from natsstream.api.consumer_requests import consumer_info
from natsstream.api.requests import Api
from natsstream.consume.delivery.tuning import DEFAULT_TUNING, ReaderTuning
from natsstream.errors import (
    ConsumerDeletedError,
    NatsStreamError,
    NotFoundError,
    PermissionDeniedError,
    ServerError,
    StreamNotFoundError,
    TransportError,
    UsageError,
)
from natsstream.events import PermissionDenied
from natsstream.units import NS_PER_SECOND, duration_ns

_ACK_WAIT_S = 30.0
_WHY_TIMEOUT_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSource:
    """One consumer, as those who read it see it. Durations are integer nanoseconds, 0 is unset.

    Attributes:
        api: The connection.
        stream: Name of the stream.
        consumer: Name of the consumer.
        ack_policy: "explicit", "all" or "none".
        ack_wait_ns: How long a message may be out before it comes again.
        backoff_ns: Replaces `ack_wait_ns`, one for each delivery; may be empty.
        max_deliver: Deliveries of one message; -1 is no limit.
        priority_group: The only priority group, empty for none.
        priority_policy: "none", "overflow", "pinned_client" or "prioritized".
        max_batch: Messages that a pull may ask for; 0 is no limit.
        max_expires_ns: How long a pull may wait.
        max_bytes: Bytes that a pull may ask for; 0 is no limit.
        deliver_subject: Where a push consumer delivers; empty for a pull consumer.
        created_ns: Unix nanoseconds of its creation; another one means another consumer.
        tuning: How long its readers wait for what may still come.
    """

    api: Api
    stream: str
    consumer: str
    ack_policy: str = "explicit"
    ack_wait_ns: int = 0
    backoff_ns: tuple[int, ...] = ()
    max_deliver: int = -1
    priority_group: str = ""
    priority_policy: str = "none"
    max_batch: int = 0
    max_expires_ns: int = 0
    max_bytes: int = 0
    deliver_subject: str = ""
    created_ns: int = 0
    tuning: ReaderTuning = DEFAULT_TUNING

    @classmethod
    def of(cls, api: Api, info: ConsumerInfo) -> Self:
        """Return the source that a consumer's info describes."""
        config = info.config
        return cls(
            api=api,
            stream=info.stream,
            consumer=info.name,
            ack_policy=config.ack_policy or "none",
            ack_wait_ns=duration_ns(config.ack_wait or 0),
            backoff_ns=tuple(map(duration_ns, config.backoff or ())),
            max_deliver=config.max_deliver or -1,
            priority_group=next(iter(config.priority_groups or ()), ""),
            priority_policy=config.priority_policy or "none",
            max_batch=config.max_batch or 0,
            max_expires_ns=duration_ns(config.max_expires or 0),
            max_bytes=config.max_bytes or 0,
            deliver_subject=config.deliver_subject or "",
            created_ns=info.created_ns,
        )

    @property
    def lease_s(self) -> float:
        """Shortest time in seconds in which a message must be settled or kept alive."""
        shortest = min(self.backoff_ns, default=self.ack_wait_ns)
        return shortest / NS_PER_SECOND if shortest > 0 else _ACK_WAIT_S

    @property
    def what(self) -> str:
        """Its name in error texts."""
        return f"consumer {self.consumer} of stream {self.stream}"

    async def info(self, timeout: float | None = None) -> ConsumerInfo:
        """Return the server's info of the consumer.

        Args:
            timeout: Seconds to wait; None is `request_timeout`.

        Raises:
            NotFoundError: The consumer, or its stream, does not exist.
            TransportError: The server did not answer in time.
        """
        return await consumer_info(self.api, self.stream, self.consumer, timeout=timeout)

    async def check_exists(self, timeout: float) -> ConsumerInfo | None:
        """Return the consumer's info; None when the server did not answer in time.

        Raises:
            ConsumerDeletedError: The consumer, or its stream, does not exist.
        """
        try:
            return await self.info(max(timeout, 0.001))
        except NotFoundError as error:
            raise self.deleted_error(error) from error
        except TransportError as error:
            if not error.retryable:
                raise
        return None

    def ack_refusal(self, event: PermissionDenied) -> PermissionDeniedError | None:
        """Return the error of a reader whose user may not ack; None for any other denial."""
        acked = parse_ack_subject(event.subject) if event.operation == "publish" else None
        if acked is None or (acked.stream, acked.consumer) != (self.stream, self.consumer):
            return None
        error = denied_error(event)
        error.name_call(self.what)
        error.detail = "the server takes no ack, nak or in_progress: its messages come again"
        return error

    def take_ack_refusal(self) -> PermissionDeniedError | None:
        """Return the error of the last refused ack; None once it was taken."""
        client = self.api.client
        event = client.refused_acks.pop((self.stream, self.consumer), None)
        return None if event is None else self.ack_refusal(event)

    async def why_deleted(self) -> ConsumerDeletedError:
        """Return the error of a consumer that a server calls deleted: it, or the whole stream.

        Cost: one round trip; at most a second while the server does not answer.
        """
        with suppress(TransportError):
            try:
                await self.info(_WHY_TIMEOUT_S)
            except ServerError as error:
                return self.deleted_error(error)
        return self.deleted_error()

    def deleted_error(self, cause: NatsStreamError | None = None) -> ConsumerDeletedError:
        """Return the error for the readers of a consumer that was deleted."""
        if isinstance(cause, StreamNotFoundError):
            return ConsumerDeletedError(
                f"stream {self.stream} was deleted, and consumer {self.consumer} with it",
                detail=cause.message,
                hint="create both: js.streams.ensure(), then stream.consumers.ensure()",
            )
        return ConsumerDeletedError(
            f"{self.what} was deleted",
            detail=cause.message if cause is not None else "",
            hint="create it with consumers.ensure(); the server deletes an ephemeral consumer, or "
            "one with inactive_threshold, when it is not pulled from for that long",
        )


@dataclass(frozen=True, slots=True)
class PushState:
    """A push consumer at one moment.

    Attributes:
        deliver_subject: Where it delivers.
        is_bound: True while somebody listens there.
        consumer_seq: The number of its last delivery.
    """

    deliver_subject: str
    is_bound: bool
    consumer_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSource:
    """One push consumer, as its reader sees it.

    Attributes:
        consumer: The consumer.
        group: Its deliver group; empty for none.
        heartbeat_ns: Its idle heartbeat in nanoseconds; 0 for none.
    """

    consumer: ConsumerSource
    group: str
    heartbeat_ns: int

    @classmethod
    def of(cls, source: ConsumerSource, config: ConsumerConfig) -> Self:
        """Return the source of a push consumer.

        Raises:
            UsageError: The consumer does not push, or delivers to other streams.
        """
        if not config.is_push:
            raise _no_push(source)
        if config.ack_policy == "flow_control":
            raise UsageError(
                f"{source.what} is for streams that mirror or source this one",
                hint="read with a consumer of your own",
            )
        return cls(
            consumer=source,
            group=config.deliver_group or "",
            heartbeat_ns=duration_ns(config.idle_heartbeat or 0),
        )

    async def look(self) -> PushState:
        """Ask the server for the consumer.

        Raises:
            UsageError: It does not push.
            ConsumerNotFoundError: It is gone.
            StreamNotFoundError: Its stream is gone.
            TransportError: There was no answer in time.
        """
        info = await self.consumer.info()
        deliver_subject = info.config.deliver_subject or ""
        if not deliver_subject:
            raise _no_push(self.consumer)
        return PushState(deliver_subject, info.is_push_bound, info.delivered.consumer_seq)


def _no_push(source: ConsumerSource) -> UsageError:
    return UsageError(
        f"{source.what} does not push", hint="consume(), fetch() and next() pull from it"
    )
