"""The form of a rule: a class, a hint, and whether sending again may help."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from natsstream import errors
from natsstream._wire.error_codes import ErrorCode


class Rule(NamedTuple):
    """The error class and hint of a code.

    Attributes:
        error: The class to raise.
        hint: The next thing to do; empty where the server's own words say it.
        retryable: True when the same call may succeed later without a change.
    """

    error: type[errors.ServerError]
    hint: str
    retryable: bool


NamedRules: TypeAlias = tuple[Rule, tuple[ErrorCode, ...]]


def rule(
    error: type[errors.ServerError], codes: str, hint: str = "", *, retryable: bool = False
) -> NamedRules:
    """Give the codes, named with spaces between, one rule; an unknown name fails at import."""
    return Rule(error, hint, retryable), tuple(ErrorCode[name] for name in codes.split())
