"""How long the readers of a consumer wait for what may still come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderTuning:
    """Waits of a consumer's readers, in seconds; tests give others.

    Attributes:
        linger_s: How long a pull that a fetch has left is kept for the next fetch.
        spare_s: How long an unused subscription is kept.
        busy_s: A silence after which a pull is perhaps not being filled any more. If it is
            withdrawn earlier, messages in flight are redelivered, which counts as a delivery, and
            in a cluster only after `ack_wait`.
        busy_max_s: How long a reader that ends waits while its consumer delivers.
        flush_s: How long a reader that ends waits for the consumer's info, and then until the
            server has heard of its end.
        withdrawn_s: How long the subscription of withdrawn pulls is kept. A server that answers no
            ping for so long has lost what it had sent, or is lost itself.
        grace_s: How long the answer to a pull may be in flight after its time.
        quiet_s: A reader looks after this silence whether the consumer is at `max_ack_pending`.
        silence_s: A push consumer without heartbeats is looked for after this silence.
    """

    linger_s: float = 0.1
    spare_s: float = 2.0
    busy_s: float = 0.02
    busy_max_s: float = 0.25
    flush_s: float = 1.0
    withdrawn_s: float = 30.0
    grace_s: float = 1.0
    quiet_s: float = 5.0
    silence_s: float = 30.0


DEFAULT_TUNING = ReaderTuning()
