"""Durations and times of users, as the integer nanoseconds that are used inside.

Law: times inside are Unix nanoseconds as `int`; a `datetime` exists only at the surface, always
with a time zone.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from natsstream.arguments import described
from natsstream.errors import ConfigError

NS_PER_SECOND = 1_000_000_000
NS_PER_MS = 1_000_000
DURATION_NS_MAX = 2**63 - 1
_POSITION_NS_MAX = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Today's Unix seconds, milliseconds and microseconds, taken as nanoseconds, are all of 1970.
_YEAR_1971_NS = 365 * 86_400 * NS_PER_SECOND
# Go's units; the micro sign and the Greek letter are both in use.
_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,
    "\u03bcs": 1_000,
    "ms": 1_000_000,
    "s": NS_PER_SECOND,
    "m": 60 * NS_PER_SECOND,
    "h": 3_600 * NS_PER_SECOND,
}
_GO_PART = re.compile(r"(?=\.?[0-9])([0-9]*)(?:\.([0-9]*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)")
# More than any client writes, and few enough for int().
_DURATION_CHARS_MAX = 128
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)"
)


def duration_ns(value: float | timedelta) -> int:
    """Return a duration in nanoseconds.

    Args:
        value: Seconds, or a timedelta.

    Raises:
        ConfigError: It is negative, longer than a server's 292 years, or no number, as True and
            False are none.
    """
    if isinstance(value, timedelta):
        microseconds = value // timedelta(microseconds=1)
        nanoseconds = microseconds * 1000
    else:
        try:
            if isinstance(value, bool):
                raise TypeError
            # The sum refuses text; the product would repeat it to a gigabyte.
            nanoseconds = round((value + 0) * NS_PER_SECOND)
        except (OverflowError, ValueError, TypeError):
            raise ConfigError(
                f"duration {described(value)} is not a finite number of seconds",
                hint="give seconds as a number, or a timedelta",
            ) from None
    if nanoseconds < 0:
        shown = described(value, with_type=False)
        raise ConfigError(f"duration {shown} is negative", hint="give seconds >= 0")
    # As a float the longest duration is the next number, and servers hold it for "never".
    if nanoseconds > DURATION_NS_MAX + 1:
        shown = described(value, with_type=False)
        raise ConfigError(
            f"duration {shown} is longer than 292 years",
            hint="give seconds, or a timedelta; nanoseconds are too many",
        )
    return min(nanoseconds, DURATION_NS_MAX)


def parse_duration(text: str) -> int | None:
    """Return the nanoseconds of a duration in Go's form, such as `1h2m3.5s`.

    None for what is none, for a negative one, and for one longer than 292 years.

    Source: Go's time.ParseDuration.
    """
    text = text.removeprefix("+")
    if text == "0":
        return 0
    if not text or len(text) > _DURATION_CHARS_MAX:
        return None
    position, nanoseconds = 0, 0
    while position < len(text):
        part = _GO_PART.match(text, position)
        if part is None:
            return None
        whole, fraction, unit = part.groups()
        scale = _UNITS_NS[unit]
        nanoseconds += int(whole or 0) * scale
        if fraction:
            nanoseconds += int(fraction) * scale // 10 ** len(fraction)
        position = part.end()
    return nanoseconds if nanoseconds <= DURATION_NS_MAX else None


def format_duration(nanoseconds: int) -> str:
    """Return a duration in Go's form: `2m0s`, `1.5s`, `200ms`; 0 is `0s`.

    Source: Go's time.Duration.String.
    """
    if nanoseconds < NS_PER_SECOND:
        for unit in ("ms", "us", "ns"):
            if nanoseconds >= _UNITS_NS[unit]:
                return f"{_decimal(nanoseconds, _UNITS_NS[unit])}{unit}"
        return "0s"
    minutes, rest = divmod(nanoseconds, _UNITS_NS["m"])
    seconds = f"{_decimal(rest, NS_PER_SECOND)}s"
    if not minutes:
        return seconds
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{seconds}" if hours else f"{minutes}m{seconds}"


def _decimal(count: int, scale: int) -> str:
    whole, fraction = divmod(count, scale)
    digits = len(str(scale)) - 1
    return f"{whole}.{fraction:0{digits}d}".rstrip("0").rstrip(".")


def parse_life_time(text: str) -> int | None:
    """Return the whole seconds of a TTL header, as the server reads it; -1 is never.

    It is a number of seconds, a duration as Go writes it, or "never"; None for what is none.

    Source: ADR-43; nats-server's stream.go parseMessageTTL.
    """
    if text.lower() == "never":
        return -1
    if text.isascii() and text.isdigit():
        seconds = int(text) if len(text) <= _DURATION_CHARS_MAX else 0
        return seconds if 0 < seconds <= DURATION_NS_MAX // NS_PER_SECOND else None
    nanoseconds = parse_duration(text)
    return None if nanoseconds is None else nanoseconds // NS_PER_SECOND or None


def time_from_ns(time_ns: int) -> datetime:
    """Return Unix nanoseconds as a UTC datetime; digits below a microsecond are cut."""
    return _EPOCH + timedelta(microseconds=time_ns // 1000)


def moment_ns(value: datetime | int | None) -> int | None:
    """Return a caller's moment in Unix nanoseconds; None stays None.

    Raises:
        ConfigError: The datetime has no time zone, or the number is of Unix seconds.
    """
    check_nanoseconds(value, "time")
    return None if value is None else time_to_ns(value)


def is_of_1970(time_ns: int) -> bool:
    """Return True for a moment of 1970 after its first: seconds that are taken as nanoseconds."""
    return 0 < time_ns < _YEAR_1971_NS


def check_nanoseconds(value: object, name: str) -> None:
    """Refuse a number that is of Unix seconds, where one of nanoseconds is meant.

    Raises:
        ConfigError: As nanoseconds, it is a moment of 1970.
    """
    if isinstance(value, int) and not isinstance(value, bool) and is_of_1970(value):
        raise ConfigError(
            f"{name} {value} is of 1970, in nanoseconds",
            hint="times are datetimes or nanoseconds: of seconds, datetime.fromtimestamp(n, UTC), "
            "or n * 10**9",
        )


def time_to_ns(value: datetime | int) -> int:
    """Return a moment in Unix nanoseconds.

    Args:
        value: A datetime with a time zone, or Unix nanoseconds.

    Raises:
        ConfigError: The datetime has no time zone, so it names no moment.
    """
    if isinstance(value, int):
        return value
    # Callers may be untyped.
    if not isinstance(value, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(
            f"time {value!r} is of type {type(value).__name__}",
            hint="give a datetime with a time zone, or Unix nanoseconds",
        )
    if value.tzinfo is None:
        raise ConfigError(
            f"time {value.isoformat()} has no time zone", hint="use datetime.now(UTC) or tzinfo=UTC"
        )
    # A Timestamp of pandas is a datetime with nanoseconds.
    finer_ns: int = getattr(value, "nanosecond", 0)
    return (value - _EPOCH) // timedelta(microseconds=1) * 1000 + finer_ns


def position_text(time_ns: int) -> str:
    """Return a moment at which a read begins or ends, as RFC 3339.

    Servers count nanoseconds in 64 bits: moments before 1677 and after 2262 would be others there.
    They become the first and the last one that servers hold, as `datetime.max` is given for no end.

    Raises:
        ConfigError: As for `format_rfc3339`.
    """
    format_rfc3339(time_ns)
    return format_rfc3339(min(max(time_ns, -_POSITION_NS_MAX - 1), _POSITION_NS_MAX))


def parse_rfc3339(text: str) -> int:
    """Return the Unix nanoseconds of an RFC 3339 time.

    Raises:
        ConfigError: The text is no such time.
    """
    found = _RFC3339.fullmatch(text.strip())
    if found is None:
        raise ConfigError(
            f"time {text!r} is not RFC 3339", hint="write it like 2026-11-21T05:00:00Z"
        )
    day, clock, fraction, zone = found.groups()
    zone = "+00:00" if zone in "Zz" else zone
    try:
        whole = datetime.fromisoformat(f"{day}T{clock}{zone}")
        time_ns = time_to_ns(whole) + int((fraction or "").ljust(9, "0"))
        time_from_ns(time_ns)  # A zone may move it out of the years 1 to 9999.
    except (ValueError, OverflowError) as error:
        raise ConfigError(f"time {text!r} is not on the calendar") from error
    return time_ns


def format_rfc3339(time_ns: int) -> str:
    """Return Unix nanoseconds as RFC 3339 in UTC with all nine digits.

    Raises:
        ConfigError: The moment is not between the years 1 and 9999.
    """
    seconds, fraction = divmod(time_ns, NS_PER_SECOND)
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        raise ConfigError(
            f"time {described(time_ns, with_type=False)} is not between the years 1 and 9999",
            hint="times as numbers are Unix nanoseconds",
        ) from None
    return f"{moment.replace(tzinfo=None).isoformat()}.{fraction:09d}Z"
