"""The fate of a message after its handler ended; pure rules.

Law: a message is given up only when it was handled, rejected, or tried as often as the caller said;
with dead letters it is kept even then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from natsstream.consume.dead_letters.envelope import DeadReason, described_error, one_line
from natsstream.consume.delivery.ack_kinds import Reject, Retry
from natsstream.consume.delivery.backoff import Backoff

Action: TypeAlias = Literal["ack", "dead", "give_up", "nak", "term"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a worker treats failures.

    Attributes:
        backoff: Delays after failures.
        max_attempts: Deliveries after which a failing message is dead; None is no limit.
        max_deliver: Deliveries after which the server gives a message up; None is no limit.
        has_letters: Whether dead messages are stored.
    """

    backoff: Backoff
    max_attempts: int | None
    max_deliver: int | None
    has_letters: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The fate of a message.

    Attributes:
        action: "ack", "nak" with `delay_s`, "dead": store it and terminate, "term", or "give_up":
            the server will not deliver it again.
        delay_s: Seconds until it is delivered again, if it is.
        reason: Why it is dead.
        text: The error or reason, one line.
    """

    action: Action
    delay_s: float = 0
    reason: DeadReason = "unknown"
    text: str = ""


def is_abandoned(delivered: int, policy: Policy) -> bool:
    """Return True if a message was delivered more often than it may be tried.

    The worker that had it last died before it could ack it.
    """
    return policy.max_attempts is not None and delivered > policy.max_attempts


def last_delivery(policy: Policy) -> int | None:
    """Return the delivery after which another one is too many; None where none is.

    A message that is given back then is given up without a handler that has seen it.
    """
    limits = (policy.max_attempts, policy.max_deliver)
    return min((limit for limit in limits if limit is not None), default=None)


def decide(error: BaseException | None, *, delivered: int, policy: Policy) -> Decision:
    """Return the fate of a message.

    Args:
        error: The exception of its handler; None if it returned.
        delivered: How often the message was delivered, from 1.
        policy: How the worker treats failures.
    """
    if error is None:
        return Decision(action="ack")
    if isinstance(error, Reject):
        return _dead("rejected", _reason(error), policy)
    last = last_delivery(policy) if policy.has_letters else policy.max_attempts
    if last is not None and delivered >= last:
        return _dead("attempts", _text(error), policy)
    delay_s = getattr(error, "delay_s", None) if isinstance(error, Retry) else None
    if delay_s is None:
        delay_s = policy.backoff.delay_s(delivered)
    if policy.max_deliver is not None and delivered >= policy.max_deliver:
        # Where the limit was raised since the last look, the server delivers it again all the same.
        is_beyond = delivered > policy.max_deliver
        return Decision(action="give_up", delay_s=delay_s if is_beyond else 0, text=_text(error))
    return Decision(action="nak", delay_s=delay_s, text=_text(error))


def fate(decision: Decision) -> str:
    """Return what happens to a message whose handler failed, in words."""
    if decision.action == "nak":
        return f"it is redelivered after {decision.delay_s:g} s"
    if decision.action == "dead":
        return "that was the last attempt, and it becomes a dead letter"
    if decision.action == "give_up":
        return (
            "that was the last delivery, the consumer's max_deliver: the server gives it up, and a "
            "work queue keeps it (dead_letter= stores and removes it)"
        )
    return "that was the last attempt, and it is terminated without a dead letter"


def abandoned(delivered: int, policy: Policy) -> Decision:
    """Return the fate of a message that was delivered more often than it may be tried."""
    text = (
        f"delivered {delivered} times, more than {policy.max_attempts}; its workers gave no reason"
    )
    return _dead("abandoned", text, policy)


def _dead(reason: DeadReason, text: str, policy: Policy) -> Decision:
    return Decision(action="dead" if policy.has_letters else "term", reason=reason, text=text)


def _text(error: BaseException) -> str:
    if isinstance(error, Retry):
        return _reason(error) or "Retry"
    return described_error(error)


def _reason(error: Reject | Retry) -> str:
    """Return the reason as text, whatever a caller or a subclass has made of it."""
    reason: object = getattr(error, "reason", "")
    try:
        return one_line(str(reason))
    except Exception:  # noqa: BLE001 - what was given may fail to describe itself.
        return type(reason).__name__
