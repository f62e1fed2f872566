"""Checks of arguments: type and range, at the public methods.

Law: an error shows the argument's name, its value and type, and what to give instead. A legal value
is returned as it is.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeGuard

from natsstream.errors import ConfigError, UsageError

_SHOWN_CHARS_MAX = 60


def check_text(
    value: object, name: str, *, error: type[UsageError] = ConfigError, hint: str = "give a text"
) -> str:
    """Return a text.

    Args:
        value: The given value.
        name: The argument's name, for the message.
        error: Class of the error.
        hint: The way out, for anything but bytes.

    Raises:
        UsageError: The value is no text; the class is `error`.
    """
    if isinstance(value, str):
        return value
    way = "decode it: value.decode()" if isinstance(value, bytes) else hint
    raise error(f"{name} is {described(value)}", hint=way)


def check_utf8(value: object, name: str) -> str:
    """Return a text that UTF-8 can encode, as everything stored must be.

    Raises:
        ConfigError: The value is no text, or has half of a surrogate pair.
    """
    text = check_text(value, name)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{name} is {described(text, with_type=False)}",
            detail=str(error),
            hint="give text that UTF-8 can encode",
        ) from None
    return text


def check_texts(
    values: object, name: str, *, error: type[UsageError] = ConfigError
) -> tuple[str, ...]:
    """Return several texts.

    Args:
        values: A list or another sequence of texts, not one text.
        name: The argument's name, for the message.
        error: Class of the error for a member that is no text.

    Raises:
        ConfigError: The value is one text, or not iterable.
        UsageError: A member is no text; the class is `error`.
    """
    if isinstance(values, str):
        raise ConfigError(f"{name} is one string", hint=f"give a list: {name}=[{values!r}]")
    if not _is_iterable(values) or isinstance(values, bytes):
        raise ConfigError(f"{name} is {described(values)}", hint="give a list of texts")
    return tuple(
        check_text(value, f"{name}[{index}]", error=error) for index, value in enumerate(values)
    )


def check_bytes(value: object, name: str) -> bytes:
    """Return bytes, as a copy if they are mutable.

    Raises:
        ConfigError: The value holds no bytes.
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
    value: object,
    name: str,
    *,
    minimum: int | None = None,
    maximum: int | None = None,
    unit: str = "",
) -> int:
    """Return a whole number.

    Args:
        value: The given value; a bool is refused.
        name: The argument's name, for the message.
        minimum: Smallest legal value.
        maximum: Largest legal value.
        unit: The unit in the plural, such as "milliseconds"; empty for a plain number.

    Raises:
        ConfigError: The value is no whole number, or out of range.
    """
    lowest = "" if minimum is None else f" from {minimum}"
    kind = f"a whole number of {unit}" if unit else "a whole number"
    allowed = f"{kind}{lowest}{'' if maximum is None else f' to {maximum}'}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigError(f"{name} is {described(value)}", hint=f"give {allowed}")
    if (minimum is not None and value < minimum) or (maximum is not None and value > maximum):
        shown = described(value, with_type=False)
        raise ConfigError(f"{name} is {shown}", hint=f"give {allowed}")
    return value


def check_bool(value: object, name: str) -> bool:
    """Return a bool.

    Raises:
        ConfigError: The value is no bool.
    """
    if isinstance(value, bool):
        return value
    raise ConfigError(f"{name} is {described(value)}", hint="give True or False")


def check_seconds(
    value: object, name: str, *, may_be_zero: bool = False, maximum: float | None = None
) -> float:
    """Return a number of seconds.

    Args:
        value: The given value.
        name: The argument's name, for the message.
        may_be_zero: Whether 0 is legal.
        maximum: Largest legal value; None is no limit.

    Raises:
        ConfigError: The value is no number, not finite, or out of range.
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
    if maximum is not None and value > maximum:
        raise ConfigError(
            f"{name} is {described(value, with_type=False)}",
            hint=f"give seconds, not milliseconds; at most {maximum:,}",
        )
    return value


def check_choice(value: object, name: str, choices: Sequence[str]) -> str:
    """Return one of several words.

    Raises:
        ConfigError: The value is none of them; the hint shows the nearest.
    """
    if isinstance(value, str):
        if value in choices:
            return value
        hint = f"{did_you_mean(value, choices)}give one of {', '.join(choices)}"
        raise ConfigError(f"{name} is {described(value, with_type=False)}", hint=hint)
    raise ConfigError(f"{name} is {described(value)}", hint=f"give one of {', '.join(choices)}")


def check_names(
    given: Iterable[str],
    known: Iterable[str],
    what: str,
    *,
    hint: str = "",
    aliases: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Refuse unknown keywords.

    Args:
        given: The keywords.
        known: The legal ones.
        what: Kind of the keywords, for the message, such as `stream field`.
        hint: The place where they are described.
        aliases: The text to write here, by the names that keywords have elsewhere.

    Raises:
        ConfigError: A keyword is unknown; the hint shows what it is here, or the nearest.
    """
    names = list(known)
    for name in sorted(set(given) - set(names)):
        way = f"in natsstream: {aliases[name]}" if name in aliases else did_you_mean(name, names)
        if not way and not hint:
            way = f"give one of {', '.join(names)}"
        between = "; " if name in aliases and hint else ""
        raise ConfigError(f"no {what} {name!r}", hint=f"{way}{between}{hint}".strip())


def check_callable(
    value: object, name: str, *, takes: str = "a message", count: int | None = None
) -> Callable[..., object]:
    """Return a callable.

    Args:
        value: The callable.
        name: The argument's name.
        takes: Its arguments in words, for the hint.
        count: How many values that are; None does not look.

    Raises:
        ConfigError: The value is not callable, or not with so many values.
    """
    if not callable(value):
        raise ConfigError(
            f"{name} is {described(value)}", hint=f"give a function that takes {takes}"
        )
    if count is not None and (wrong := misfit(value, count)):
        raise ConfigError(
            f"{name} is {described(value)}: {wrong}", hint=f"give a function that takes {takes}"
        )
    return value


def check_plain(
    value: object, name: str, *, takes: str, count: int | None = None
) -> Callable[..., object]:
    """Return a callable that is not async: it is called, and never awaited.

    Raises:
        ConfigError: As for `check_callable`, and where it is async.
    """
    function = check_callable(value, name, takes=takes, count=count)
    called = getattr(type(function), "__call__", None)  # noqa: B004 - Of an object, not a class.
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        raise ConfigError(
            f"{name} is {described(function)}, which is async",
            hint=f"give a plain function that takes {takes}; it must not wait",
        )
    return function


def misfit(function: Callable[..., object], count: int) -> str:
    """Return why a function cannot be called with so many values; empty where it can."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # Some callables do not tell.
        return ""
    try:
        signature.bind(*range(count))
    except TypeError as error:
        return str(error)
    return ""


# Where a consumer starts; "latest" is what comes from now on there, not the last message.
_POLICIES = frozenset(("all", "last", "new"))
_OF_KAFKA = {"earliest": "all", "latest": "new"}


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question with the nearest known word; empty for none."""
    words = list(known)
    same = [each for each in words if each.casefold() == word.casefold()]
    other = _OF_KAFKA.get(word)
    if other is not None and _POLICIES.issubset(words):
        return f"did you mean {other}? "
    close = same or difflib.get_close_matches(word, words, n=1)
    return f"did you mean {close[0]}? " if close else ""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 message`, `2 batches`."""
    ending = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count} {noun}{ending}"


def described(value: object, *, with_type: bool = True) -> str:
    """Return a value as a message shows it: cut when it is long, with its type."""
    if value is None:
        return "None"
    try:
        shown = repr(value)
    except ValueError:  # A number of more digits than Python writes.
        shown = "a number of more than 4,300 digits"
    except RecursionError:
        shown = "a value that nests too deep"
    if len(shown) > _SHOWN_CHARS_MAX:
        shown = f"{shown[:_SHOWN_CHARS_MAX]}..."
    return f"{shown} (of type {type_name(value)})" if with_type else shown


def type_name(value: object) -> str:
    """Return the name of a value's class; nats-py has classes of the same names as ours."""
    kind = type(value)
    is_theirs = kind.__module__.partition(".")[0] == "nats"
    return f"nats-py's {kind.__name__}" if is_theirs else kind.__name__


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # A whole number that no float can hold.
        return False


def _is_iterable(values: object) -> TypeGuard[Iterable[object]]:
    return isinstance(values, Iterable)
