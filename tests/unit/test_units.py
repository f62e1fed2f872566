"""Durations and times: users' values in, integer nanoseconds out, and back."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.errors import ConfigError
from natsstream.units import (
    DURATION_NS_MAX,
    NS_PER_SECOND,
    duration_ns,
    format_duration,
    format_rfc3339,
    moment_ns,
    parse_duration,
    parse_life_time,
    parse_rfc3339,
    position_text,
    time_from_ns,
    time_to_ns,
)

# From the year 1 to the end of 9999, which is all that RFC 3339 can write.
FIRST_NS = -62_135_596_800 * NS_PER_SECOND
LAST_NS = 253_402_300_800 * NS_PER_SECOND - 1


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        (0, 0),
        (1, NS_PER_SECOND),
        (0.1, 100_000_000),
        (1e-9, 1),
        (2.5, 2_500_000_000),
        (timedelta(days=365), 365 * 86_400 * NS_PER_SECOND),
        (timedelta(microseconds=1), 1_000),
        (timedelta(days=36_500, microseconds=1), 36_500 * 86_400 * NS_PER_SECOND + 1_000),
    ],
)
def test_durations_become_nanoseconds(value: float | timedelta, nanoseconds: int) -> None:
    assert duration_ns(value) == nanoseconds


def go_text(nanoseconds: int) -> str:
    """Return what Go's Duration.String writes, here as a second, slower way to the same."""
    if nanoseconds < NS_PER_SECOND:
        for unit, scale in (("ms", 10**6), ("\u00b5s", 10**3)):
            if nanoseconds >= scale:
                return f"{nanoseconds / scale:.9f}".rstrip("0").rstrip(".") + unit
        return f"{nanoseconds}ns" if nanoseconds else "0s"
    minutes, rest_ns = divmod(nanoseconds, 60 * NS_PER_SECOND)
    seconds, fraction = divmod(rest_ns, NS_PER_SECOND)
    text = f"{seconds}.{fraction:09d}".rstrip("0").rstrip(".") + "s"
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + text


@given(st.integers(0, 2**63 - 1) | st.integers(0, 10**10))
def test_durations_of_go_are_read_to_the_nanosecond(nanoseconds: int) -> None:
    assert parse_duration(go_text(nanoseconds)) == nanoseconds


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1h2m3.5s", 3_723_500_000_000),
        ("1m30s", 90 * NS_PER_SECOND),
        ("30s1m", 90 * NS_PER_SECOND),
        ("90000ms", 90 * NS_PER_SECOND),
        (".5s", 500_000_000),
        ("5.s", 5 * NS_PER_SECOND),
        ("+1us", 1_000),
        ("1\u03bcs", 1_000),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_durations_are_read_in_every_form_of_go(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", "90", "-1s", "s", ".s", "1", "1x", "1 s", "1s ", "1e3s", "never", "1h" * 99]
)
def test_texts_that_are_no_durations_of_go_are_none(text: str) -> None:
    assert parse_duration(text) is None
    assert parse_duration("9" * 30 + "s") is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("1m30s", 90),
        ("1.9s", 1),
        ("never", -1),
        ("NEVER", -1),
        ("0", None),
        ("900ms", None),
        ("", None),
        ("-1", None),
        ("\u0661", None),
        ("9" * 5000, None),
        ("soon", None),
    ],
)
def test_life_times_are_whole_seconds_or_never(text: str, seconds: int | None) -> None:
    assert parse_life_time(text) == seconds


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -0.1,
        float("nan"),
        float("inf"),
        -float("inf"),
        timedelta(seconds=-1),
        pytest.param(-(10**5000), id="huge"),
    ],
)
def test_durations_that_can_not_be_are_a_config_error(value: float | timedelta) -> None:
    with pytest.raises(ConfigError, match="duration"):
        duration_ns(value)


@pytest.mark.parametrize("value", ["1h", "5", None, [1], True])
def test_durations_of_another_type_are_a_config_error(value: object) -> None:
    with pytest.raises(ConfigError, match="seconds"):
        duration_ns(cast("Any", value))


@given(st.integers(0, 2**50))
def test_nanoseconds_survive_as_seconds_for_13_days(nanoseconds: int) -> None:
    assert duration_ns(nanoseconds / NS_PER_SECOND) == nanoseconds


@given(st.integers(FIRST_NS, LAST_NS))
def test_times_survive_as_text(time_ns: int) -> None:
    assert parse_rfc3339(format_rfc3339(time_ns)) == time_ns


@given(st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30))])))
def test_datetimes_survive_as_nanoseconds(value: datetime) -> None:
    assert time_from_ns(time_to_ns(value)) == value


def test_timestamp_of_pandas_keeps_its_nanoseconds() -> None:
    pandas: Any = importlib.import_module("pandas")
    moment = pandas.Timestamp("2026-11-29T00:00:00.123456789Z")

    assert time_to_ns(moment) % NS_PER_SECOND == 123_456_789


def test_text_has_nine_digits_and_a_z() -> None:
    assert format_rfc3339(1_700_000_000_000_000_001) == "2023-11-14T22:13:20.000000001Z"


@pytest.mark.parametrize(
    ("time_ns", "text"),
    [
        (1_700_000_000_000_000_001, "2023-11-14T22:13:20.000000001Z"),
        (LAST_NS, "2262-04-11T23:47:16.854775807Z"),
        (2**63, "2262-04-11T23:47:16.854775807Z"),
        (FIRST_NS, "1677-09-21T00:12:43.145224192Z"),
    ],
)
def test_positions_are_moments_that_servers_hold(time_ns: int, text: str) -> None:
    assert position_text(time_ns) == text


def test_early_years_have_four_digits() -> None:
    assert format_rfc3339(FIRST_NS) == "0001-01-01T00:00:00.000000000Z"


@pytest.mark.parametrize("time_ns", [FIRST_NS - 1, LAST_NS + 1, 10**30, -(10**30)])
def test_moments_beyond_the_calendar_are_a_config_error(time_ns: int) -> None:
    with pytest.raises(ConfigError, match="9999"):
        format_rfc3339(time_ns)


@pytest.mark.parametrize(
    ("text", "time_ns"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.5Z", 500_000_000),
        ("1970-01-01t00:00:00.000000001z", 1),
        ("1970-01-01 00:00:00Z", 0),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("2023-11-14T22:13:20.1234567899Z", 1_700_000_000_123_456_789),
    ],
)
def test_times_that_servers_write_are_read(text: str, time_ns: int) -> None:
    assert parse_rfc3339(text) == time_ns


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2023-11-14",
        "2023-11-14T22:13:20",
        "2023-02-30T00:00:00Z",
        "2023-11-14T25:00:00Z",
        "2023-11-14T22:13:60Z",
    ],
)
def test_what_is_no_time_is_a_config_error(text: str) -> None:
    with pytest.raises(ConfigError, match="time"):
        parse_rfc3339(text)


@given(st.text(max_size=40))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        parse_rfc3339(text)
    except ConfigError:
        return


def test_a_datetime_without_a_zone_names_no_moment() -> None:
    naive = datetime(2023, 1, 1, tzinfo=UTC).replace(tzinfo=None)

    with pytest.raises(ConfigError, match="no time zone"):
        time_to_ns(naive)


@pytest.mark.parametrize("value", [1_800_000_000, 1_800_000_000_000, 1_800_000_000_000_000])
def test_seconds_are_not_taken_for_nanoseconds(value: int) -> None:
    """Nor are milliseconds and microseconds: all would be moments of 1970."""
    with pytest.raises(ConfigError, match="of 1970, in nanoseconds") as caught:
        moment_ns(value)

    assert "n * 10**9" in caught.value.hint
    assert moment_ns(0) == 0
    assert moment_ns(10**18) == 10**18


def test_nanoseconds_are_taken_as_they_are() -> None:
    assert time_to_ns(1_700_000_000_123_456_789) == 1_700_000_000_123_456_789


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5us"),
        (200_000_000, "200ms"),
        (1_500_000_000, "1.5s"),
        (120_000_000_000, "2m0s"),
        (86_400_000_000_000, "24h0m0s"),
    ],
)
def test_durations_are_written_as_go_writes_them(nanoseconds: int, text: str) -> None:
    assert format_duration(nanoseconds) == text


@given(st.integers(0, DURATION_NS_MAX))
def test_written_durations_are_read_back(nanoseconds: int) -> None:
    assert parse_duration(format_duration(nanoseconds)) == nanoseconds


def test_the_longest_duration_of_a_server_comes_back_from_its_float() -> None:
    """As a float it is the next number, which servers cannot hold."""
    assert duration_ns((2**63 - 1) / NS_PER_SECOND) == 2**63 - 1
    for longer in ((2**63 + 2**11) / NS_PER_SECOND, 1e30, timedelta.max):
        with pytest.raises(ConfigError, match="longer than 292 years"):
            duration_ns(longer)
