"""The options of a producer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from natsstream.arguments import (
    check_bool,
    check_choice,
    check_int,
    check_plain,
    check_seconds,
    check_utf8,
)
from natsstream.errors import ConfigError, NatsStreamError

Mode = Literal["shared", "exclusive"]
ProducerEncoding = Literal["bytes", "json"]

EPOCH_MAX = 2**53 - 1
"""Epochs are JSON numbers, which other languages read as floats: 53 bits."""
BATCH_MESSAGES_MAX = 997
"""A server's atomic batch has 1,000 messages; a mark, the stream's end and the state are three."""
_PRODUCER_ID_BYTES_MAX = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """The options of `JetStream.producer`, which explains them."""

    producer_id: str
    subject: str | None = None
    epoch: int | None = None
    auto_claim: bool = False
    mode: Mode = "shared"
    encoding: ProducerEncoding = "bytes"
    max_batch_bytes: int = 1 << 20
    max_batch_messages: int = BATCH_MESSAGES_MAX
    linger: float = 0.005
    max_in_flight: int = 5
    max_buffered_bytes: int = 64 << 20
    delivery_timeout: float = 60.0
    max_claims: int = 3
    eof_guard: bool = True
    on_error: Callable[[NatsStreamError], object] | None = None

    def __post_init__(self) -> None:
        size = len(check_utf8(self.producer_id, "producer_id").encode())
        if not 0 < size <= _PRODUCER_ID_BYTES_MAX:
            raise ConfigError(
                f"producer_id has {size} bytes, 1 to {_PRODUCER_ID_BYTES_MAX} are allowed",
                hint="give a stable name such as 'order-service-1'",
            )
        if self.epoch is not None and check_int(self.epoch, "epoch", minimum=0) > EPOCH_MAX:
            raise ConfigError(f"epoch {self.epoch} exceeds {EPOCH_MAX}", hint="leave epoch out")
        check_choice(self.mode, "mode", ("shared", "exclusive"))
        check_choice(self.encoding, "encoding", ("bytes", "json"))
        for name in ("max_batch_bytes", "max_in_flight", "max_buffered_bytes", "max_claims"):
            check_int(getattr(self, name), name, minimum=1)
        check_int(self.max_batch_messages, "max_batch_messages", minimum=1)
        if self.max_batch_messages > BATCH_MESSAGES_MAX:
            raise ConfigError(
                f"max_batch_messages {self.max_batch_messages} exceeds {BATCH_MESSAGES_MAX}",
                detail="a server takes 1,000 messages in an atomic batch, two of them are the "
                "producer's",
            )
        check_seconds(self.linger, "linger", may_be_zero=True)
        check_seconds(self.delivery_timeout, "delivery_timeout")
        check_bool(self.auto_claim, "auto_claim")
        check_bool(self.eof_guard, "eof_guard")
        if self.on_error is not None:
            check_plain(self.on_error, "on_error", takes="an error", count=1)
        if self.mode == "exclusive" and self.epoch is not None:
            raise ConfigError(
                "an exclusive producer with an epoch of its own",
                detail="it always claims the next epoch when it opens",
                hint="leave epoch out, or take mode='shared'",
            )
