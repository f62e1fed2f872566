"""Schedules as the server reads them, and those that it would take for something else."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream import ConfigError, Schedule
from natsstream._wire.headers import Headers, encode_headers
from natsstream.api.features import SCHEDULES, SCHEDULES_REPEATED
from natsstream.errors import SubjectError
from natsstream.publish.schedule import read_schedule
from natsstream.units import parse_rfc3339

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("schedule", "pattern"),
    [
        (
            Schedule.at(datetime(2030, 1, 2, 3, 4, 5, 6, UTC), target="t"),
            "@at 2030-01-02T03:04:05.000006000Z",
        ),
        (
            Schedule.at(datetime(2030, 1, 2, 3, tzinfo=timezone(timedelta(hours=2))), target="t"),
            "@at 2030-01-02T01:00:00.000000000Z",
        ),
        (Schedule.at(10**18 + 1, target="t"), "@at 2001-09-09T01:46:40.000000001Z"),
        (Schedule.every(60, target="t"), "@every 60s"),
        (Schedule.every(1.0, target="t"), "@every 1s"),
        (Schedule.every(timedelta(hours=2), target="t"), "@every 7200s"),
        (Schedule.cron("0 */5 9-17 * JAN-MAR MON,FRI", target="t"), "0 */5 9-17 * JAN-MAR MON,FRI"),
        (Schedule.cron("@hourly", target="t"), "@hourly"),
    ],
)
def test_pattern_is_the_servers(schedule: Schedule, pattern: str) -> None:
    assert schedule.pattern == pattern


def test_delay_counts_from_now() -> None:
    before = time.time_ns()
    schedule = Schedule.after(timedelta(seconds=30), target="t")
    moment = parse_rfc3339(schedule.pattern.removeprefix("@at "))

    assert before <= moment - 30 * 10**9 <= time.time_ns()


def test_headers_say_all_that_was_asked() -> None:
    schedule = Schedule.cron(
        "@daily", target="t", source="s", ttl=timedelta(hours=1), rollup="subject", time_zone="UTC"
    )

    assert schedule.headers() == {
        "Nats-Schedule": "@daily",
        "Nats-Schedule-Target": "t",
        "Nats-Schedule-Source": "s",
        "Nats-Schedule-TTL": "3600",
        "Nats-Schedule-Rollup": "sub",
        "Nats-Schedule-Time-Zone": "UTC",
    }


@given(
    pattern=st.sampled_from(["@hourly", "@every 5s", "0 0 * * * *", "@at 2030-01-01T00:00:00Z"]),
    source=st.sampled_from([None, "s"]),
    ttl=st.sampled_from([None, 5.0, "never"]),
    rollup=st.sampled_from([None, "subject"]),
)
def test_schedule_is_read_back_as_it_was_written(
    pattern: str, source: Any, ttl: Any, rollup: Any
) -> None:
    schedule = Schedule(pattern=pattern, target="t", source=source, ttl=ttl, rollup=rollup)

    assert read_schedule(Headers(encode_headers(schedule.headers()))) == schedule


def test_schedule_of_another_client_is_read_as_it_is() -> None:
    read = read_schedule(
        {"Nats-Schedule": "@every 1.5s", "Nats-Schedule-Target": "t", "Nats-Schedule-TTL": "1h"}
    )

    assert read is not None
    assert (read.pattern, read.ttl) == ("@every 1.5s", 3600)
    assert Schedule(pattern="@every 1h30m", target="t").is_repeated
    assert read_schedule({}) is None


@pytest.mark.parametrize(
    ("text", "ttl"),
    [("90", 90), ("90s", 90), ("1m30s", 90), ("1h2m3.5s", 3723), ("never", "never")],
)
def test_life_time_of_another_client_is_seconds_and_is_published_again(
    text: str, ttl: object
) -> None:
    """nats.go writes `1m30s`, nats.js `90s`, natsstream `90`."""
    written = {"Nats-Schedule": "@every 1m30s", "Nats-Schedule-Target": "t"}
    read = read_schedule({**written, "Nats-Schedule-TTL": text})

    assert read is not None
    assert read.ttl == ttl
    assert replace(read, source="s").headers() == {
        **written,
        "Nats-Schedule-Source": "s",
        "Nats-Schedule-TTL": str(ttl),
    }


def test_features_are_those_of_the_first_server_that_reads_it() -> None:
    at = Schedule.at(0, target="t")

    assert at.features() == (SCHEDULES,)
    assert Schedule.at(0, target="t", ttl=5).features() == (SCHEDULES,)
    for young in (
        Schedule.every(5, target="t"),
        Schedule.cron("@daily", target="t"),
        Schedule.at(0, target="t", source="s"),
        Schedule.at(0, target="t", rollup="subject"),
    ):
        assert young.features() == (SCHEDULES_REPEATED,)
    assert (at.is_repeated, Schedule.every(5, target="t").is_repeated) == (False, True)


MADE: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: Schedule.at(datetime(2030, 1, 1), target="t"), ConfigError, "time zone"),  # noqa: DTZ001 - What is tested.
    (lambda: Schedule.at(datetime(1, 1, 1, tzinfo=UTC), target="t"), ConfigError, "1970"),
    (lambda: Schedule.at(1_800_000_000, target="t"), ConfigError, "of 1970, in nanoseconds"),
    (lambda: Schedule.at(10**5000, target="t"), ConfigError, "1970"),
    (lambda: Schedule.at("now", target="t"), ConfigError, "datetime"),  # pyright: ignore[reportArgumentType] - What is tested.
    (lambda: Schedule.at(True, target="t"), ConfigError, "datetime"),  # noqa: FBT003 - What is tested.
    (lambda: Schedule.after(-1, target="t"), ConfigError, "negative"),
    (lambda: Schedule.after(float("inf"), target="t"), ConfigError, "finite"),
    (lambda: Schedule.every(0.999, target="t"), ConfigError, "whole number of seconds"),
    (lambda: Schedule.every(1.5, target="t"), ConfigError, "would round it"),
    (lambda: Schedule.every(1e11, target="t"), ConfigError, "292 years"),
    (lambda: Schedule.every(True, target="t"), ConfigError, "True"),  # noqa: FBT003 - What is tested.
    (lambda: Schedule.after(-(10**5000), target="t"), ConfigError, "negative"),
    (lambda: Schedule(pattern="@at 0001-01-01T00:00:00Z", target="t"), ConfigError, "1970"),
    (lambda: Schedule(pattern="@at tomorrow", target="t"), ConfigError, "RFC 3339"),
    (lambda: Schedule(pattern="@every 1.5s", target="t"), ConfigError, "whole seconds"),
    (lambda: Schedule(pattern="@every 900ms", target="t"), ConfigError, "whole seconds"),
    (lambda: Schedule(pattern="@every ", target="t"), ConfigError, "whole seconds"),
    (lambda: Schedule(pattern="@every 0s", target="t"), ConfigError, "whole seconds"),
    (lambda: Schedule.every(5, target=""), SubjectError, "empty"),
    (lambda: Schedule.every(5, target="t.*"), SubjectError, "wildcard"),
    (lambda: Schedule.every(5, target=None), ConfigError, "target is None"),  # pyright: ignore[reportArgumentType] - What is tested.
    (lambda: Schedule.every(5, target="t", source="t"), ConfigError, "same subject"),
    (lambda: Schedule.every(5, target="t", source="s.>"), SubjectError, "wildcard"),
    (lambda: Schedule.every(5, target="t", ttl=0.5), ConfigError, "whole number"),
    (lambda: Schedule.every(5, target="t", rollup="all"), ConfigError, "subject"),  # pyright: ignore[reportArgumentType] - What is tested.
    (lambda: Schedule.cron("* * * * *", target="t"), ConfigError, "0 before the others"),
    (lambda: Schedule.cron("", target="t"), ConfigError, "six fields"),
    (lambda: Schedule.cron("0 0 0 * * $", target="t"), ConfigError, "six fields"),
    (lambda: Schedule.cron("@hourli", target="t"), ConfigError, "@hourly"),
    (lambda: Schedule.cron("@every 5s", target="t"), ConfigError, "Schedule.every"),
    (lambda: Schedule.cron("@daily", target="t", time_zone=""), ConfigError, "time_zone"),
    (lambda: Schedule(pattern="@every 5s", target="t", time_zone="UTC"), ConfigError, "time_zone"),
]


@pytest.mark.parametrize(("make", "error", "words"), MADE)
def test_schedule_that_the_server_would_misread_is_refused(
    make: Callable[[], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error) as caught:
        make()
    assert words in str(caught.value)
