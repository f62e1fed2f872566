"""The limits that writers of a core stream enforce, because servers do not have them; pure rules.

Law: a refused message changes nothing, so all refusals are found before anything is removed. That
is the one difference to Conat, which checks `max_msg_size` last. `max_msgs` is the server's own.
Source: Conat persist/storage.ts `enforceLimits`; core-stream.md sections 4.2 and 5.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from natsstream.conat.configuration import Configuration
from natsstream.errors import LimitExceededError, RejectedError


class Content(Protocol):
    """The content of a stream in numbers; tombstones count too."""

    @property
    def size(self) -> int:
        """Sum of the logical sizes."""
        ...

    def recent(self) -> tuple[int, int]:
        """Return number and logical size of the messages of the last second."""
        ...


def refusal(config: Configuration, size: int, content: Content | None) -> RejectedError | None:
    """Return why a new message is refused; None if it is not.

    Args:
        config: The stream's configuration.
        size: The message's logical size.
        content: The content of the stream, without the message; None if nobody knows it.
    """
    if 0 <= config.max_msg_size < size:
        return _rejected("max_msg_size", f"max_msg_size of {config.max_msg_size} bytes exceeded")
    if content is None:
        return None
    if config.max_msgs_per_second > 0 or config.max_bytes_per_second > 0:
        recent = zip(("max_msgs_per_second", "max_bytes_per_second"), content.recent(), strict=True)
        for limit, used in recent:
            if 0 < getattr(config, limit) < used:
                return _rejected(limit, f"{limit} exceeded", retryable=True)
    is_full = 0 <= config.max_bytes < content.size + size
    if is_full and config.discard_policy == "new":
        return _rejected("max_bytes", "max_bytes limit reached")
    return None


def surplus(config: Configuration, size: int, sizes: Iterable[int]) -> int:
    """Return how many of the oldest messages must go.

    Args:
        config: The stream's configuration.
        size: Sum of the messages' logical sizes.
        sizes: These sizes, the oldest message's first; as many are read as must go.
    """
    if config.discard_policy == "new" or config.max_bytes < 0:
        return 0
    count = 0
    oldest = iter(sizes)
    while size > config.max_bytes and (each := next(oldest, None)) is not None:
        size -= each
        count += 1
    return count


def rejected_by_server(error: LimitExceededError) -> RejectedError:
    """Return a server's refusal of a message, at `max_msgs` or a size, as one of a core stream."""
    return RejectedError(
        error.message,
        detail=error.detail,
        hint="see max_msgs, max_msg_size and discard_policy in `await stream.config()`; "
        "`stream.config({...})` sets them",
    )


def _rejected(limit: str, message: str, *, retryable: bool = False) -> RejectedError:
    error = RejectedError(
        message, hint=f"see {limit} in the stream's configuration", retryable=retryable
    )
    error.limit = limit
    return error
