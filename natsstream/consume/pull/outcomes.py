"""How a pull ended, from the server's status; pure rules."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from natsstream._wire.headers import HeaderName
from natsstream._wire.status import PullEnd, Status, StatusCode
from natsstream.api.consumer_info import ConsumerInfo
from natsstream.errors import NatsStreamError, PullLimitError, ServerError, UsageError

if TYPE_CHECKING:
    from natsstream.consume.delivery.source import ConsumerSource


class PullOutcome(Enum):
    """The meaning of a status for its pull."""

    HEARTBEAT = auto()
    """The pull is open, and there is nothing at the moment."""
    COMPLETED = auto()
    """Its time or its bytes are over: ask again for the rest."""
    EMPTY = auto()
    """There is nothing, and it did not want to wait."""
    TOO_LARGE = auto()
    """The next message does not fit into what is left of its bytes."""
    LEADER_CHANGED = auto()
    """The consumer moves to another server: ask again."""
    NO_RESPONDERS = auto()
    """No responders: the consumer has no leader at the moment, or was deleted."""
    CONSUMER_DELETED = auto()
    """The consumer is gone."""
    LIMIT = auto()
    """It asks for more than the consumer allows."""
    TOO_MANY_PULLS = auto()
    """The consumer has as many pulls open as it allows: ask again later."""
    WRONG_PIN = auto()
    """Another client of the priority group is pinned: ask again without the id."""
    REFUSED = auto()
    """The pull is invalid; see `refusal`."""


_CONFLICTS: dict[PullEnd, PullOutcome] = {
    PullEnd.BATCH_COMPLETED: PullOutcome.COMPLETED,
    PullEnd.MESSAGE_TOO_LARGE: PullOutcome.TOO_LARGE,
    PullEnd.LEADERSHIP_CHANGE: PullOutcome.LEADER_CHANGED,
    PullEnd.SERVER_SHUTDOWN: PullOutcome.LEADER_CHANGED,
    PullEnd.CONSUMER_DELETED: PullOutcome.CONSUMER_DELETED,
    PullEnd.TOO_MANY_PULLS: PullOutcome.TOO_MANY_PULLS,
    PullEnd.BATCH_LIMIT: PullOutcome.LIMIT,
    PullEnd.EXPIRES_LIMIT: PullOutcome.LIMIT,
    PullEnd.BYTES_LIMIT: PullOutcome.LIMIT,
}
_CODES: dict[int, PullOutcome] = {
    StatusCode.CONTROL: PullOutcome.HEARTBEAT,
    StatusCode.NOT_FOUND: PullOutcome.EMPTY,
    StatusCode.TIMEOUT: PullOutcome.COMPLETED,
    StatusCode.WRONG_PIN: PullOutcome.WRONG_PIN,
    StatusCode.NO_RESPONDERS: PullOutcome.NO_RESPONDERS,
}
_LIMITS: dict[PullEnd, str] = {
    PullEnd.TOO_MANY_PULLS: "max_waiting",
    PullEnd.BATCH_LIMIT: "max_batch",
    PullEnd.EXPIRES_LIMIT: "max_expires",
    PullEnd.BYTES_LIMIT: "max_bytes",
}


@dataclass(frozen=True, slots=True)
class PullStatus:
    """A status about a pull.

    Attributes:
        end: Its meaning.
        words: The server's description.
        limit: The consumer's field for LIMIT and TOO_MANY_PULLS.
        is_oversized: True for TOO_LARGE when all of the pull's bytes are left: the message never
            fits.
        status: The status itself.
    """

    end: PullOutcome
    words: str
    limit: str
    is_oversized: bool
    status: Status


def read_status(status: Status, *, asked_bytes: int = 0) -> PullStatus:
    """Return what a status means for its pull, which asked for so many bytes."""
    conflict = status.pull_end
    if conflict is not None:
        end = _CONFLICTS.get(conflict, PullOutcome.REFUSED)
    else:
        end = _CODES.get(status.code, PullOutcome.REFUSED)
    return PullStatus(
        end,
        status.description,
        _LIMITS.get(conflict, "") if conflict is not None else "",
        end is PullOutcome.TOO_LARGE and status.number(HeaderName.PENDING_BYTES) == asked_bytes,
        status,
    )


def limit_error(said: PullStatus, source: ConsumerSource) -> PullLimitError:
    """Return the error for a pull that exceeds a limit."""
    hint = f"ask for less, or raise the consumer's {said.limit}"
    error = _limit_error(source, said.words, said.limit, hint)
    error.code, error.description = said.status.code, said.words
    return error


def is_crowded(info: ConsumerInfo) -> bool:
    """Return True if the consumer has `max_waiting` open pulls already.

    The server ignores further pulls that have heartbeats.
    """
    return info.num_waiting >= (info.config.max_waiting or 0) > 0


def crowded_error(source: ConsumerSource) -> PullLimitError:
    """Return the error for a pull that finds as many open as the consumer allows."""
    return _limit_error(source, "max_waiting pulls are open already", "max_waiting", "")


def oversized_error(source: ConsumerSource, max_bytes: int) -> PullLimitError:
    """Return the error for a message that is larger than all that the caller wants."""
    what = f"the next message is larger than max_bytes={max_bytes}"
    return _limit_error(source, what, "max_bytes", "raise max_bytes")


def _limit_error(source: ConsumerSource, what: str, limit: str, hint: str) -> PullLimitError:
    is_crowded = limit == "max_waiting"
    error = PullLimitError(
        f"pull from {source.what}: {what}",
        code=StatusCode.CONFLICT,
        hint="use fewer readers, or raise the consumer's max_waiting" if is_crowded else hint,
        retryable=is_crowded,
    )
    error.limit = limit
    return error


def refusal(said: PullStatus, source: ConsumerSource) -> NatsStreamError:
    """Return the error for an invalid pull."""
    if said.status.pull_end is PullEnd.PUSH_CONSUMER:
        return push_error(source)
    return ServerError(
        f"pull from {source.what}: {said.words or 'refused'}",
        code=said.status.code,
        description=said.words,
        hint="name the consumer's priority group: group=..." if "riority" in said.words else "",
    )


def push_error(source: ConsumerSource) -> UsageError:
    """Return the error for pulling from a consumer that pushes."""
    return UsageError(
        f"{source.what} is a push consumer: nothing can be pulled from it",
        hint="use consumer.subscribe(), or create a consumer without deliver_subject",
    )
