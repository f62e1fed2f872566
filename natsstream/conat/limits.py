"""The limits that writers of a core stream enforce, because servers do not have them; pure rules.

Law: a refused message changes nothing, so all refusals are found before anything is removed. That
is the one difference to Conat, which checks `max_msg_size` last.
Source: Conat persist/storage.ts `enforceLimits`; core-stream.md sections 4.2 and 5.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from natsstream.conat.configuration import Configuration
from natsstream.errors import RejectedError


class Usage(Protocol):
    """The content of a stream in numbers; tombstones count too."""

    @property
    def count(self) -> int:
        """Number of messages."""
        ...

    @property
    def size(self) -> int:
        """Sum of their logical sizes."""
        ...

    def recent(self) -> tuple[int, int]:
        """Return number and logical size of the messages of the last second."""
        ...

    def sizes(self) -> Iterable[int]:
        """Return the logical sizes, the oldest message's first."""
        ...


def refusal(config: Configuration, size: int, usage: Usage) -> RejectedError | None:
    """Return why a new message is refused; None if it is not.

    Args:
        config: The stream's configuration.
        size: The message's logical size.
        usage: The content of the stream, without the message.
    """
    if (too_large := oversize(config, size)) is not None:
        return too_large
    if config.max_msgs_per_second > 0 or config.max_bytes_per_second > 0:
        recent = zip(("max_msgs_per_second", "max_bytes_per_second"), usage.recent(), strict=True)
        for limit, used in recent:
            if 0 < getattr(config, limit) < used:
                return _rejected(limit, f"{limit} exceeded", retryable=True)
    if config.discard_policy == "new":
        if 0 < config.max_msgs <= usage.count:
            return _rejected("max_msgs", "max_msgs limit reached")
        if config.max_bytes >= 0 and usage.size + size > config.max_bytes:
            return _rejected("max_bytes", "max_bytes limit reached")
    return None


def oversize(config: Configuration, size: int) -> RejectedError | None:
    """Return why a message of a logical size is always refused; None if it is not."""
    if 0 <= config.max_msg_size < size:
        return _rejected("max_msg_size", f"max_msg_size of {config.max_msg_size} bytes exceeded")
    return None


def surplus(config: Configuration, usage: Usage, size: int | None = None) -> int:
    """Return how many of the oldest messages must go.

    Args:
        config: The stream's configuration.
        usage: The content of the stream, without the new message.
        size: The new message's logical size; None if there is none.
    """
    if config.discard_policy == "new":
        return 0
    count, total = usage.count, usage.size + (size or 0)
    gone = 0
    if config.max_msgs > 0:
        gone = min(count, max(0, count + (size is not None) - config.max_msgs))
    if config.max_bytes < 0 or total <= config.max_bytes:
        return gone
    for index, each in enumerate(usage.sizes()):
        if index >= gone and total <= config.max_bytes:
            return index
        total -= each
    return count


def _rejected(limit: str, message: str, *, retryable: bool = False) -> RejectedError:
    error = RejectedError(
        message, hint=f"see {limit} in the stream's configuration", retryable=retryable
    )
    error.limit = limit
    return error
