"""The root of all errors: what failed, why, and what to do next."""

from __future__ import annotations


class NatsStreamError(Exception):
    """The root: catching it catches everything that natsstream raises on purpose.

    Attributes:
        message: What failed, on what, with which values.
        detail: More of the cause, such as the server's own words; may be empty.
        hint: The next command or argument to try; may be empty.
        retryable: True when the same call may succeed later without a change.
        index: Which of several messages given in one call it is about, from 0; else None.
    """

    index: int | None = None

    def __init__(
        self, message: str, *, detail: str = "", hint: str = "", retryable: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.retryable = retryable

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)
