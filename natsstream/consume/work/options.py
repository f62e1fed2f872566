"""How a worker works: its options, checked before anything is asked of a server; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from natsstream.api.names import check_stream_name
from natsstream.arguments import check_bool, check_callable, check_int, check_seconds, check_text
from natsstream.consume.delivery.backoff import Backoff, backoff_from_ns, make_backoff
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.work.handlers import ErrorSink
from natsstream.consume.work.rules import Policy
from natsstream.errors import ConfigError

CONCURRENCY = 16
CONCURRENCY_MAX = 10_000
PREFETCH_MAX = 100_000
STOP_TIMEOUT_S = 30.0
# Where nobody says how often: a letter loses nothing, a message that fails for ever stops the rest.
ATTEMPTS_BEFORE_LETTER = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOptions:
    """How a worker works.

    Attributes:
        concurrency: Handlers that run at the same time.
        dead_letter: The dead-letter stream for messages that fail for good; None for none.
        backoff: Seconds until a failed message is delivered again, after its first, second, ...
            delivery; None is the consumer's own, or 1, 2, 4, ... 60.
        max_attempts: Deliveries after which a failing message is dead; None is no limit, or with
            `dead_letter` the consumer's `max_deliver`, else 5.
        on_error: Called with each failure and its message; it may be a coroutine function.
        keepalive: Send `in_progress` while handlers run, so that `ack_wait` bounds the silence of a
            worker and not the time of a handler.
        prefetch: Messages asked for before a handler is free; None is as many as are handled in
            a tenth of a second, from `concurrency` to 512.
        confirm: Wait until the server has each ack; `DeliveredMessage.ack` says what it promises.
        stop_timeout: Seconds that running handlers get when the worker is stopped.
    """

    concurrency: int = CONCURRENCY
    dead_letter: str | None = None
    backoff: Sequence[float | timedelta] | Backoff | None = None
    max_attempts: int | None = None
    on_error: ErrorSink | None = None
    keepalive: bool = True
    prefetch: int | None = None
    confirm: bool = False
    stop_timeout: float = STOP_TIMEOUT_S

    def __post_init__(self) -> None:
        check_int(self.concurrency, "concurrency", minimum=1, maximum=CONCURRENCY_MAX)
        if self.dead_letter is not None:
            check_stream_name(check_text(self.dead_letter, "dead_letter"))
        make_backoff(self.backoff)
        if self.max_attempts is not None:
            check_int(self.max_attempts, "max_attempts", minimum=1)
        if self.on_error is not None:
            check_callable(self.on_error, "on_error", takes="an error and a message", count=2)
        check_bool(self.keepalive, "keepalive")
        if self.prefetch is not None:
            check_int(self.prefetch, "prefetch", minimum=1, maximum=PREFETCH_MAX)
        check_bool(self.confirm, "confirm")
        check_seconds(self.stop_timeout, "stop_timeout", may_be_zero=True)

    @property
    def window(self) -> int:
        """Messages asked for before a handler is free, to begin with."""
        return self.concurrency if self.prefetch is None else self.prefetch


def make_policy(options: WorkOptions, source: ConsumerSource) -> Policy:
    """Return what a worker of this consumer does with its outcomes.

    Raises:
        ConfigError: The consumer's configuration and the options do not fit together.
    """
    what = source.what
    if options.dead_letter == source.stream:
        raise ConfigError(
            f"{what} cannot have its dead letters in the stream that it reads: each would come "
            "back as a new message",
            hint=f"name another stream, such as {source.stream}_DLQ",
        )
    if source.deliver_subject:
        raise ConfigError(
            f"{what} is a push consumer: it delivers at its own pace, not at the worker's",
            hint="create a pull consumer: one without deliver_subject",
        )
    if source.ack_policy != "explicit":
        raise ConfigError(
            f"{what} has ack policy {source.ack_policy!r}: handlers that run side by side settle "
            "one message each",
            hint="make a consumer with ack_policy='explicit', the default",
        )
    limit = _limit(source)
    attempts = options.max_attempts
    if attempts is not None and limit is not None and attempts > limit:
        raise ConfigError(
            f"max_attempts is {attempts}, and {what} delivers a message {limit} times",
            hint="raise the consumer's max_deliver above max_attempts",
        )
    if attempts is None and options.dead_letter is not None:
        attempts = limit or ATTEMPTS_BEFORE_LETTER
    return Policy(
        backoff=_backoff(options, source),
        max_attempts=attempts,
        max_deliver=limit,
        has_letters=bool(options.dead_letter),
    )


def renew_policy(policy: Policy, options: WorkOptions, source: ConsumerSource) -> Policy:
    """Return the policy after the consumer was changed.

    Attempts that follow its `max_deliver` are raised and never lowered: messages that are here may
    have been delivered more often than a lowered one allows.
    """
    limit, attempts = _limit(source), policy.max_attempts
    if options.max_attempts is None and attempts is not None:
        attempts = max(attempts, limit or ATTEMPTS_BEFORE_LETTER)
    return replace(
        policy, backoff=_backoff(options, source), max_attempts=attempts, max_deliver=limit
    )


def _limit(source: ConsumerSource) -> int | None:
    return source.max_deliver if source.max_deliver > 0 else None


def _backoff(options: WorkOptions, source: ConsumerSource) -> Backoff:
    return make_backoff(options.backoff) or backoff_from_ns(source.backoff_ns)
