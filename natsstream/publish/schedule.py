"""When a message is to be published by the server: once at a moment, or again and again.

Law: what the server would take for another schedule, or for a plain message, is refused here.

A schedule is a message of its own, on a subject of its own, in the stream that holds the target
too: its payload and headers are what the server publishes to the target. A later message on the
schedule's subject takes its place.

Source: ADR-51; nats-server's scheduler.go parseMsgSchedule.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, cast

from natsstream._wire.headers import HeaderName
from natsstream.api.features import SCHEDULES, SCHEDULES_REPEATED, Feature
from natsstream.api.names import check_subject
from natsstream.arguments import check_choice, check_text, described
from natsstream.constructors import answers_arguments
from natsstream.errors import ConfigError
from natsstream.units import (
    NS_PER_SECOND,
    check_nanoseconds,
    duration_ns,
    format_rfc3339,
    parse_duration,
    parse_life_time,
    parse_rfc3339,
    time_to_ns,
)

Ttl: TypeAlias = float | timedelta | Literal["never"]

_PRESETS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_CRON_FIELDS = 6
_CRON_FIELD = re.compile(r"[0-9A-Za-z*?/,-]+")
_AT = "@at "
_EVERY = "@every "
# The server keeps durations and moments as nanoseconds in 64 bits.
_NS_MAX = 2**63 - 1
_SECONDS_MAX = _NS_MAX // NS_PER_SECOND


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When the server publishes a message, and where to; give it to `publish(schedule=...)`.

    Make one with `at`, `after`, `every` or `cron`. The stream needs `allow_msg_schedules` and must
    capture the target; the server must be 2.12, and 2.14 for all that is not `at` or `after`.

    Until it fires, a schedule is a message of the stream like any other: a consumer without filters
    gets it, the stream's `max_age` ends it, and a stream of the retention `interest` drops it.

    Attributes:
        pattern: As the server reads it: `@at <RFC 3339>`, `@every 90s`, six cron fields of which
            the first is seconds, or a name such as `@daily`.
        target: The subject that the server publishes to; not the schedule's own.
        source: Publish a copy of this subject's last message instead of the schedule's own payload
            (2.14).
        ttl: Life time of what is published: whole seconds or "never"; needs `allow_msg_ttl`.
        rollup: "subject" lets what is published replace all earlier messages of the target (2.14).
        time_zone: Name of the time zone in which cron fields are meant, such as `Europe/Berlin`;
            None is UTC (2.14). The server needs the time zone data.
    """

    pattern: str
    target: str
    source: str | None = None
    ttl: Ttl | None = None
    rollup: Literal["subject"] | None = None
    time_zone: str | None = None

    def __post_init__(self) -> None:
        check_text(self.pattern, "pattern")
        check_subject(check_text(self.target, "target"))
        if self.source is not None:
            check_subject(check_text(self.source, "source"))
            if self.source == self.target:
                raise ConfigError(
                    f"source and target are the same subject {self.target!r}",
                    hint="give the copies a subject of their own",
                )
        if self.ttl is not None:
            ttl_text(self.ttl)
        if self.rollup is not None:
            check_choice(self.rollup, "rollup of a schedule", ("subject",))
        _check_pattern(self.pattern)
        if self.time_zone is not None:
            _check_time_zone(self.time_zone, self.pattern)

    @classmethod
    def at(
        cls,
        moment: datetime | int,
        *,
        target: str,
        source: str | None = None,
        ttl: Ttl | None = None,
        rollup: Literal["subject"] | None = None,
    ) -> Schedule:
        """Publish once, at a moment; one that is over means now.

        Args:
            moment: A datetime with a time zone, or Unix nanoseconds.
            target: The subject that the server publishes to.
            source: As in `Schedule`.
            ttl: As in `Schedule`.
            rollup: As in `Schedule`.

        Raises:
            ConfigError: The moment has no time zone or is of Unix seconds, or an argument has no
                legal value.
        """
        check_nanoseconds(moment, "moment")
        pattern = f"{_AT}{format_rfc3339(_moment_ns(moment))}"
        return cls(pattern=pattern, target=target, source=source, ttl=ttl, rollup=rollup)

    @classmethod
    def after(
        cls,
        delay: float | timedelta,
        *,
        target: str,
        source: str | None = None,
        ttl: Ttl | None = None,
        rollup: Literal["subject"] | None = None,
    ) -> Schedule:
        """Publish once, some seconds from now by this machine's clock.

        Args:
            delay: Seconds or a timedelta.
            target: The subject that the server publishes to.
            source: As in `Schedule`.
            ttl: As in `Schedule`.
            rollup: As in `Schedule`.

        Raises:
            ConfigError: An argument has no legal value.
        """
        moment = time.time_ns() + duration_ns(delay)
        return cls.at(moment, target=target, source=source, ttl=ttl, rollup=rollup)

    @classmethod
    def every(
        cls,
        interval: float | timedelta,
        *,
        target: str,
        source: str | None = None,
        ttl: Ttl | None = None,
        rollup: Literal["subject"] | None = None,
    ) -> Schedule:
        """Publish again and again, for the first time after one interval.

        Intervals begin at whole seconds: the first one half a second early or late at most.

        Args:
            interval: Whole seconds, at least one, or a timedelta of them. Servers would round
                what has a fraction, each time: 1.5 seconds become 2.
            target: The subject that the server publishes to.
            source: As in `Schedule`.
            ttl: As in `Schedule`.
            rollup: As in `Schedule`.

        Raises:
            ConfigError: The interval is no whole number of seconds, or an argument has no legal
                value.
        """
        pattern = f"{_EVERY}{_whole_seconds(interval)}s"
        return cls(pattern=pattern, target=target, source=source, ttl=ttl, rollup=rollup)

    @classmethod
    def cron(
        cls,
        expression: str,
        *,
        target: str,
        time_zone: str | None = None,
        source: str | None = None,
        ttl: Ttl | None = None,
        rollup: Literal["subject"] | None = None,
    ) -> Schedule:
        """Publish when the clock shows a time.

        Args:
            expression: Second, minute, hour, day of month, month, day of week, such as
                `0 30 9 * * MON-FRI`; or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.
            target: The subject that the server publishes to.
            time_zone: The time zone that is meant; None is UTC.
            source: As in `Schedule`.
            ttl: As in `Schedule`.
            rollup: As in `Schedule`.

        Raises:
            ConfigError: The expression has not six fields, or an argument has no legal value.
        """
        if check_text(expression, "expression").startswith((_AT, _EVERY)):
            raise ConfigError(
                f"{expression!r} is no cron expression", hint="use Schedule.at or Schedule.every"
            )
        return cls(
            pattern=expression,
            target=target,
            source=source,
            ttl=ttl,
            rollup=rollup,
            time_zone=time_zone,
        )

    @property
    def is_repeated(self) -> bool:
        """False when it fires once and is gone."""
        return not self.pattern.startswith(_AT)

    def headers(self) -> dict[str, str]:
        """Return the headers that say so."""
        values = {
            HeaderName.SCHEDULE: self.pattern,
            HeaderName.SCHEDULE_TARGET: self.target,
            HeaderName.SCHEDULE_SOURCE: self.source,
            HeaderName.SCHEDULE_TTL: None if self.ttl is None else ttl_text(self.ttl),
            HeaderName.SCHEDULE_ROLLUP: None if self.rollup is None else "sub",
            HeaderName.SCHEDULE_TIME_ZONE: self.time_zone,
        }
        return {name.value: value for name, value in values.items() if value is not None}

    def features(self) -> tuple[Feature, ...]:
        """Return what the server must have; 2.12 knows nothing but one moment."""
        is_young = self.is_repeated or self.source or self.rollup or self.time_zone
        return (SCHEDULES_REPEATED,) if is_young else (SCHEDULES,)


def read_schedule(headers: Mapping[str, str]) -> Schedule | None:
    """Return the schedule in a message's headers; None where there is none.

    Nothing is checked: other clients write what the server takes and we would refuse. Life times
    are seconds, or "never", in whatever form they were written: `90`, `90s` and `1m30s` are 90.
    """
    pattern = headers.get(HeaderName.SCHEDULE)
    if not pattern:
        return None
    ttl = headers.get(HeaderName.SCHEDULE_TTL)
    rollup = headers.get(HeaderName.SCHEDULE_ROLLUP)
    values: dict[str, object] = {
        "pattern": pattern,
        "target": headers.get(HeaderName.SCHEDULE_TARGET, ""),
        "source": headers.get(HeaderName.SCHEDULE_SOURCE),
        "ttl": None if ttl is None else _read_ttl(ttl),
        "rollup": "subject" if rollup == "sub" else rollup,
        "time_zone": headers.get(HeaderName.SCHEDULE_TIME_ZONE),
    }
    schedule = object.__new__(Schedule)
    for name, value in values.items():
        object.__setattr__(schedule, name, value)
    return schedule


def _read_ttl(text: str) -> Ttl:
    seconds = parse_life_time(text)
    if seconds is None:  # An illegal text stays as it is; the server refuses it.
        return cast("Ttl", text)
    return "never" if seconds < 0 else float(seconds)


def ttl_text(ttl: Ttl) -> str:
    """Return the value of Nats-TTL.

    Raises:
        ConfigError: The server knows no such life time: it counts whole seconds, from 1, and cuts
            off what is beyond them.
    """
    if isinstance(ttl, str):
        if ttl == "never":
            return "never"
        raise ConfigError(f"ttl {ttl!r} is neither seconds nor 'never'", hint="give 60 or 'never'")
    if isinstance(ttl, bool):
        raise ConfigError(f"ttl is {described(ttl)}", hint="give whole seconds or 'never'")
    seconds, rest = divmod(duration_ns(ttl), NS_PER_SECOND)
    if rest or not 1 <= seconds <= _SECONDS_MAX:
        raise ConfigError(
            f"ttl {described(ttl, with_type=False)} is not a whole number of seconds from 1 on",
            hint="the server counts whole seconds and would cut off the rest; round it",
        )
    return str(seconds)


def _check_pattern(pattern: str) -> None:
    if pattern.startswith(_AT):
        _moment_ns(parse_rfc3339(pattern.removeprefix(_AT)))
        return
    if pattern.startswith(_EVERY):
        interval_ns = parse_duration(pattern.removeprefix(_EVERY))
        if not interval_ns or interval_ns % NS_PER_SECOND:
            raise ConfigError(
                f"{pattern[:80]!r} is no interval of whole seconds",
                hint="use Schedule.every(90), or write it like 1h30m or 90s",
            )
        return
    if pattern in _PRESETS:
        return
    fields = pattern.split()
    if pattern.startswith("@"):
        names = " ".join(_PRESETS)
        raise ConfigError(f"no schedule is called {pattern!r}", hint=f"there are {names}")
    if len(fields) != _CRON_FIELDS or not all(map(_CRON_FIELD.fullmatch, fields)):
        seconds = " with 0 before the others" if len(fields) == _CRON_FIELDS - 1 else ""
        raise ConfigError(
            f"cron expression {pattern[:80]!r} has not six fields",
            hint=f"second minute hour day month weekday{seconds}, such as '0 30 9 * * MON-FRI'",
        )


def _check_time_zone(time_zone: str, pattern: str) -> None:
    if pattern.startswith((_AT, _EVERY)):
        raise ConfigError(
            f"time_zone {time_zone!r} with {pattern!r}",
            hint="time zones are for cron expressions; a datetime has its own",
        )
    if not check_text(time_zone, "time_zone").strip() or time_zone != time_zone.strip():
        raise ConfigError(f"time_zone {time_zone!r} is no name", hint="such as Europe/Berlin")


def _moment_ns(moment: object) -> int:
    if not isinstance(moment, int | datetime) or isinstance(moment, bool):
        raise ConfigError(f"moment is {described(moment)}", hint="give a datetime with a time zone")
    time_ns = time_to_ns(moment)
    # Go's zero time, of the year 1, would be no schedule at all: a plain message.
    if not 0 <= time_ns <= _NS_MAX:
        raise ConfigError(
            f"moment {described(moment)} is not between 1970 and 2262",
            hint="give a moment in the future, before 2262",
        )
    return time_ns


def _whole_seconds(interval: float | timedelta) -> int:
    """Return an interval that servers keep as it is."""
    seconds, rest = divmod(duration_ns(interval), NS_PER_SECOND)
    if rest or not 1 <= seconds <= _SECONDS_MAX:
        raise ConfigError(
            f"interval {described(interval, with_type=False)} is not a whole number of seconds "
            "from 1 on",
            hint="servers would round it each time; they take one second to 292 years",
        )
    return seconds
