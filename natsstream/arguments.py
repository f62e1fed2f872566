"""Arguments of the wrong type or outside of what is allowed: refused here, in the caller's words.

Law: whoever gives a wrong value reads its name, the value, its type and what to give instead, and
nothing was sent; a value that is right comes back as it is.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeGuard

from natsstream.errors import ConfigError, UsageError

_SHOWN_CHARS_MAX = 60


def check_text(value: object, name: str, *, error: type[UsageError] = ConfigError) -> str:
    """Return a text.

    Args:
        value: What was given.
        name: The argument's name, for the message.
        error: What to raise.

    Raises:
        UsageError: It is something else; the class is `error`.
    """
    if isinstance(value, str):
        return value
    hint = "decode it: value.decode()" if isinstance(value, bytes) else "give a text"
    raise error(f"{name} is {described(value)}", hint=hint)


def check_utf8(value: object, name: str) -> str:
    """Return a text that UTF-8 can write, as everything that is stored must be.

    Raises:
        ConfigError: It is something else, or has half of a surrogate pair.
    """
    text = check_text(value, name)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{name} is {described(text, with_type=False)}",
            detail=str(error),
            hint="give text that UTF-8 can write",
        ) from None
    return text


def check_texts(
    values: object, name: str, *, error: type[UsageError] = ConfigError
) -> tuple[str, ...]:
    """Return several texts.

    Args:
        values: A list or another sequence of texts, not one text.
        name: The argument's name, for the message.
        error: What to raise for a member that is no text.

    Raises:
        ConfigError: It is one text, or not iterable.
        UsageError: A member is something else; the class is `error`.
    """
    if isinstance(values, str):
        raise ConfigError(f"{name} is one string", hint=f"give a list: {name}=[{values!r}]")
    if not _is_iterable(values) or isinstance(values, bytes):
        raise ConfigError(f"{name} is {described(values)}", hint="give a list of texts")
    return tuple(
        check_text(value, f"{name}[{index}]", error=error) for index, value in enumerate(values)
    )


def check_bytes(value: object, name: str) -> bytes:
    """Return bytes, a copy where they could be changed.

    Raises:
        ConfigError: It is nothing that holds bytes.
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, memoryview):
        return value.tobytes()
    way = f"{name}.encode()" if isinstance(value, str) else "text.encode(), json.dumps().encode()"
    raise ConfigError(f"{name} is {described(value)}", hint=f"give bytes: {way}")


def check_int(
    value: object, name: str, *, minimum: int | None = None, maximum: int | None = None
) -> int:
    """Return a whole number.

    Args:
        value: What was given; a bool is none.
        name: The argument's name, for the message.
        minimum: The least that it may be.
        maximum: The most that it may be.

    Raises:
        ConfigError: It is no whole number, or outside of these.
    """
    lowest = "" if minimum is None else f" from {minimum}"
    allowed = f"a whole number{lowest}{'' if maximum is None else f' to {maximum}'}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} is {described(value)}", hint=f"give {allowed}")
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        shown = described(value, with_type=False)
        raise ConfigError(f"{name} is {shown}", hint=f"give {allowed}")
    return value


def check_bool(value: object, name: str) -> bool:
    """Return True or False; nothing else is taken for one.

    Raises:
        ConfigError: It is something else.
    """
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{name} is {described(value)}", hint="give True or False")


def check_seconds(value: object, name: str, *, may_be_zero: bool = False) -> float:
    """Return a number of seconds that a wait can have.

    Args:
        value: What was given.
        name: The argument's name, for the message.
        may_be_zero: Whether 0 is taken, for what need not wait.

    Raises:
        ConfigError: It is no number, not finite, or too small.
    """
    least = "0 or more" if may_be_zero else "above 0"
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ConfigError(
            f"{name} is {described(value)}", hint=f"give seconds as a number, {least} and finite"
        )
    if not _is_finite(value) or value < 0 or not (value or may_be_zero):
        shown = described(value, with_type=False)
        raise ConfigError(
            f"{name} must be {least} seconds and finite, got {shown}",
            hint="give seconds as a number",
        )
    return value


def check_choice(value: object, name: str, choices: Sequence[str]) -> str:
    """Return one of several words.

    Raises:
        ConfigError: It is none of them; the hint names the one that was probably meant.
    """
    if isinstance(value, str):
        if value in choices:
            return value
        hint = f"{did_you_mean(value, choices)}it is one of {', '.join(choices)}"
        raise ConfigError(f"{name} is {described(value, with_type=False)}", hint=hint)
    raise ConfigError(f"{name} is {described(value)}", hint=f"it is one of {', '.join(choices)}")


def check_names(given: Iterable[str], known: Iterable[str], what: str, *, hint: str = "") -> None:
    """Refuse keywords that nothing is called.

    Args:
        given: The keywords.
        known: Those that there are.
        what: The thing that has them, for the message, such as `stream field`.
        hint: Where to look them up.

    Raises:
        ConfigError: One of them is not known; the hint names the one that was probably meant.
    """
    names = list(known)
    for name in sorted(set(given) - set(names)):
        raise ConfigError(f"no {what} {name!r}", hint=f"{did_you_mean(name, names)}{hint}".strip())


def check_callable(value: object, name: str, *, takes: str = "a message") -> Callable[..., object]:
    """Return what can be called.

    Raises:
        ConfigError: It can not be called.
    """
    if callable(value):
        return value
    raise ConfigError(f"{name} is {described(value)}", hint=f"give a function that takes {takes}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return the question with the known word that is most like another one; empty if none is."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"did you mean {close[0]}? " if close else ""


def described(value: object, *, with_type: bool = True) -> str:
    """Return a value as a message shows it: cut when it is long, with its type."""
    if value is None:
        return "None"
    try:
        shown = repr(value)
    except ValueError:  # A number of more digits than Python writes.
        shown = "a number of more than 4,300 digits"
    if len(shown) > _SHOWN_CHARS_MAX:
        shown = f"{shown[:_SHOWN_CHARS_MAX]}..."
    return f"{shown} (of type {type(value).__name__})" if with_type else shown


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # A whole number that no float can hold.
        return False


def _is_iterable(values: object) -> TypeGuard[Iterable[object]]:
    return isinstance(values, Iterable)
