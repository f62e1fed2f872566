"""The verdicts on a delivered message: their bytes, and which outcome of a handler means which."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

from natsstream.arguments import check_text, described
from natsstream.consume.delivery.backoff import Backoff
from natsstream.errors import ConfigError
from natsstream.units import NS_PER_SECOND, duration_ns

ACK = b"+ACK"
IN_PROGRESS = b"+WPI"
NEXT = b"+NXT"
REASON_BYTES_MAX = 1_024
"""Bytes of a reason to terminate: it is for people, and stands in one line of an advisory."""


class AckKind(Enum):
    """How a message was acked."""

    ACK = "acked"
    NAK = "given back"
    TERM = "terminated"


class Reject(Exception):  # noqa: N818 - it is a verdict of the caller's, and no failure.
    """Raised by whoever handles a message: it is never to be delivered again.

    Attributes:
        reason: Why, for the advisory and for dead letters.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason: str = reason


class Retry(Exception):  # noqa: N818 - it is a verdict of the caller's, and no failure.
    """Raised by whoever handles a message: deliver it again.

    In a worker it counts as an attempt, as every delivery does: at the last one the message is
    dead. Give a worker a high `max_attempts` if its handlers wait for others by `Retry`.

    Attributes:
        reason: Why, for the error that is reported.
        delay_s: Seconds until then; None leaves it to the backoff.

    Raises:
        ConfigError: The delay is illegal, or given by place.
    """

    def __init__(self, reason: str = "", *, delay: float | timedelta | None = None) -> None:
        if isinstance(reason, int | float | timedelta):
            raise ConfigError(
                f"the reason of Retry is {described(reason)}", hint=f"Retry(delay={reason!r})"
            )
        super().__init__(reason)
        self.reason: str = reason
        self.delay_s: float | None = None if delay is None else _delay_ns(delay) / NS_PER_SECOND

    def __repr__(self) -> str:
        delay = "" if self.delay_s is None else f", delay={self.delay_s:g}"
        return f"Retry({self.reason!r}{delay})"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a message is acked after its handler ended.

    Attributes:
        verdict: How the message is settled.
        delay_s: Seconds until it is delivered again; for NAK.
        reason: Why; for TERM.
        is_told: True when the exception was the verdict itself, and ends here.
    """

    verdict: AckKind
    delay_s: float = 0
    reason: str = ""
    is_told: bool = False


def outcome_of(error: BaseException | None, *, delivered: int, backoff: Backoff) -> Outcome:
    """Return how a message is acked after its handler ended.

    Args:
        error: The exception that it raised; None if it returned.
        delivered: How often the message was delivered, from 1.
        backoff: Delays after failures.

    Returns:
        An ack for None; the verdict of `Reject` and `Retry`; a nak at once for a cancelled handler,
        which says nothing against the message, or for one that ended with the program; else a nak
        with the delay of the backoff.
    """
    if error is None:
        return Outcome(AckKind.ACK)
    if isinstance(error, Reject):
        return Outcome(AckKind.TERM, reason=printable_reason(error.reason), is_told=True)
    if isinstance(error, Retry):
        delay = backoff.delay_s(delivered) if error.delay_s is None else error.delay_s
        return Outcome(AckKind.NAK, delay_s=delay, is_told=True)
    if not isinstance(error, Exception):  # CancelledError, KeyboardInterrupt, SystemExit.
        return Outcome(AckKind.NAK)
    return Outcome(AckKind.NAK, delay_s=backoff.delay_s(delivered))


def nak_body(delay: float | timedelta | None = None) -> bytes:
    """Return the body that gives a message back.

    Args:
        delay: Seconds until it is delivered again; None or 0 is at once.

    Raises:
        ConfigError: The delay is negative or not finite.
    """
    nanoseconds = 0 if delay is None else _delay_ns(delay)
    return b'-NAK {"delay": %d}' % nanoseconds if nanoseconds else b"-NAK"


def _delay_ns(delay: float | timedelta) -> int:
    try:
        return duration_ns(delay)
    except ConfigError as error:
        raise ConfigError(f"delay: {error.message}", hint=error.hint) from None


def term_body(reason: str = "") -> bytes:
    """Return the body that ends the deliveries of a message.

    Raises:
        ConfigError: The reason is no text that UTF-8 can write, has a line end, or is longer than
            1,024 bytes.
    """
    if not reason and isinstance(reason, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types.
        return b"+TERM"
    text = check_text(reason, "reason")
    if "\r" in text or "\n" in text:
        raise ConfigError(
            f"the reason {text[:60]!r} has a line end", hint="give one line: text.splitlines()[0]"
        )
    try:
        # An error's text may have bytes of a file or a message that are no UTF-8.
        raw = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"the reason {text[:60]!r} is not valid text",
            detail=str(error),
            hint="give text that UTF-8 can write",
        ) from None
    if len(raw) > REASON_BYTES_MAX:
        raise ConfigError(
            f"the reason has {len(raw)} bytes, at most {REASON_BYTES_MAX} are taken",
            hint="cut it, and store the rest in a dead letter",
        )
    return b"+TERM " + raw


def printable_reason(text: object) -> str:
    """Return any text as a legal reason: in one line, and cut."""
    line = " ".join(str(text).split())
    raw = line.encode("utf-8", "replace")[:REASON_BYTES_MAX]
    return raw.decode("utf-8", "ignore")
