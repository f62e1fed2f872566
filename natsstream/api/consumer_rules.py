"""Legal configurations of a consumer; pure rules.

Law: a value that every server refuses, or accepts and ignores, is refused here before anything is
sent. The server checks all that depends on the stream or on its own version.
Source: nats-server's consumer.go, checkConsumerCfg and checkNewConsumerConfig.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import cast

from natsstream.api.names import check_filter, check_filters
from natsstream.arguments import (
    check_bool,
    check_choice,
    check_int,
    check_text,
    check_texts,
    described,
)
from natsstream.errors import ConfigError, SubjectError
from natsstream.units import NS_PER_SECOND, duration_ns, time_to_ns

CHOICES: Mapping[str, tuple[str, ...]] = {
    "deliver_policy": (
        "all",
        "last",
        "new",
        "by_start_sequence",
        "by_start_time",
        "last_per_subject",
    ),
    "ack_policy": ("explicit", "all", "none", "flow_control"),
    "replay_policy": ("instant", "original"),
    "priority_policy": ("none", "overflow", "pinned_client", "prioritized"),
}
DURATIONS = ("ack_wait", "max_expires", "inactive_threshold", "priority_timeout", "idle_heartbeat")
TIMES = ("start_time", "pause_until")
SWITCHES = ("headers_only", "memory_storage", "flow_control")
_TEXTS = ("name", "description", "deliver_subject", "deliver_group")
# The smallest legal value.
NUMBERS: Mapping[str, int] = {
    "start_seq": 1,
    "max_deliver": -1,
    "rate_limit": 0,
    "max_waiting": 1,
    "max_ack_pending": -1,
    "max_batch": 0,
    "max_bytes": 0,
}
# The limits of Go's types; the server cannot parse larger numbers.
_INT64_MAX = 2**63 - 1
_LARGEST: Mapping[str, int] = {"start_seq": 2**64 - 1, "rate_limit": 2**64 - 1}
# The years 1 to 9999, which RFC 3339 can write.
_TIME_MIN_NS = -62_135_596_800 * NS_PER_SECOND
_TIME_MAX_NS = 253_402_300_800 * NS_PER_SECOND - 1
# Servers read 0 as their default, which is not 0.
_NEVER_ZERO = ("ack_wait", "max_deliver", "max_ack_pending")
_REPLICAS_MAX = 5
_IDLE_HEARTBEAT_MIN_NS = 100_000_000
# Servers accept some of these for the other kind of consumer, and ignore them.
_PUSH_ONLY = ("deliver_group", "flow_control", "idle_heartbeat", "rate_limit")
_PULL_ONLY = (
    "max_waiting",
    "max_batch",
    "max_expires",
    "max_bytes",
    "priority_groups",
    "priority_policy",
    "priority_timeout",
)
_FIXED = (
    "durable",
    "deliver_policy",
    "start_seq",
    "start_time",
    "ack_policy",
    "replay_policy",
    "max_waiting",
    "memory_storage",
    "flow_control",
    "idle_heartbeat",
)
_MEMBER_ERRORS = {"filters": SubjectError, "priority_groups": ConfigError}
_GROUP = re.compile(r"[A-Za-z0-9/_=-]{1,16}", re.ASCII)
_SAMPLE = re.compile(r"(?:100|[0-9]{1,2})%?", re.ASCII)
_START_OF = {"start_seq": "by_start_sequence", "start_time": "by_start_time"}


def check_fields(values: Mapping[str, object]) -> None:
    """Refuse a field whose value has the wrong type or is not one of its choices.

    Args:
        values: Fields of `ConsumerConfig` by Python name; None is no value.

    Raises:
        ConfigError: A value is invalid; the message names the field.
        SubjectError: A filter is not legal.
    """
    for name, value in values.items():
        if value is None:
            continue
        if name in _NEVER_ZERO and value == 0:
            raise ConfigError(
                f"{name} is {value!r}, which servers take for their default",
                hint="leave it out, or give what you mean; -1 is no limit where one can be",
            )
        if name in CHOICES:
            check_choice(value, name, CHOICES[name])
        elif name in DURATIONS:
            check_duration(name, value)
        elif name in TIMES:
            check_time(name, value)
        elif name in SWITCHES:
            check_bool(value, name)
        elif name in _TEXTS:
            _check_said(value, name)
        elif name in NUMBERS:
            maximum = _LARGEST.get(name, _INT64_MAX)
            check_int(value, name, minimum=NUMBERS[name], maximum=maximum)
        else:
            _check_other(name, value)


def _check_other(name: str, value: object) -> None:
    if name == "durable":
        _check_durable(value)
    elif name == "replicas":
        check_int(value, name, minimum=0, maximum=_REPLICAS_MAX)
    elif name == "filters":
        check_filters(value)
    elif name == "priority_groups":
        for group in check_texts(value, name):
            check_group(group)
    elif name == "backoff":
        if isinstance(value, str | bytes) or not isinstance(value, Sequence):
            raise ConfigError(f"backoff is {described(value)}", hint="give a list: backoff=[1, 5]")
        for index, wait in enumerate(cast("Sequence[object]", value)):
            check_duration(f"backoff[{index}]", wait)
    elif name == "sample_freq":
        sample_text(value)
    elif name == "metadata":
        _check_metadata(value)


def kept(name: str, values: object) -> object:
    """Return a sequence as a tuple, and any other value as it is.

    Raises:
        ConfigError: The values do not fit the field; the message names it.
    """
    if name in ("filters", "priority_groups"):
        return None if values is None else check_texts(values, name, error=_MEMBER_ERRORS[name])
    if isinstance(values, Sequence) and not isinstance(values, str | bytes):
        return tuple(cast("Sequence[object]", values))
    return values


def check_start(deliver_policy: str | None, starts: Mapping[str, object]) -> None:
    """Refuse a start that the policy does not use.

    Args:
        deliver_policy: The policy; None if not given.
        starts: `start_seq` and `start_time`; None if not given.

    Raises:
        ConfigError: Two starts are given, a required one is missing, or the policy does not use it.
    """
    given = [name for name in _START_OF if starts.get(name) is not None]
    if len(given) > 1:
        raise ConfigError("start_seq and start_time exclude each other")
    if given and deliver_policy not in (None, _START_OF[given[0]]):
        raise ConfigError(
            f"{given[0]} does not go with deliver_policy {deliver_policy!r}",
            hint="leave deliver_policy out: it follows from the start",
        )
    needed = next((name for name, policy in _START_OF.items() if policy == deliver_policy), None)
    if needed and not given:
        raise ConfigError(f"deliver_policy {deliver_policy!r} needs {needed}")


def check_group(group: object) -> str:
    """Return the name of a priority group.

    Raises:
        ConfigError: The name is not legal.
    """
    if not _GROUP.fullmatch(check_text(group, "priority group")):
        raise ConfigError(
            f"{described(group, with_type=False)} is not a legal name of a priority group",
            hint="1 to 16 characters: letters, digits and / _ = -",
        )
    return cast("str", group)  # check_text has checked it.


def check_whole(values: Mapping[str, object]) -> None:
    """Refuse fields that do not go together.

    Args:
        values: Every field of the future consumer by Python name.

    Raises:
        ConfigError: Servers would refuse or ignore a field; the message names it.
    """
    _check_kind(values)
    _check_acks(values)
    _check_priority(values)
    threshold = values.get("inactive_threshold")
    if threshold is not None and not threshold and not values.get("durable"):
        raise ConfigError(
            "inactive_threshold is 0, which servers take for 5 seconds where nothing is durable",
            hint="durable=True keeps it; else say for how long",
        )
    if values.get("deliver_policy") == "last_per_subject" and not values.get("filters"):
        raise ConfigError(
            "deliver_policy 'last_per_subject' needs filters", hint="filters=['>'] is all"
        )


def _check_kind(values: Mapping[str, object]) -> None:
    subject = cast("str | None", values.get("deliver_subject"))
    for name in _PULL_ONLY if subject else _PUSH_ONLY:
        if values.get(name) not in (None, 0, False, "", "none", (), []):
            kind, way = ("pull", "without") if subject else ("push", "with")
            raise ConfigError(
                f"{name} is for {kind} consumers",
                hint=f"leave it out, or make the consumer {way} deliver_subject",
            )
    if not subject:
        return
    if any(token in ("*", ">") for token in subject.split(".")):
        raise ConfigError(
            f"deliver_subject {subject!r} has a wildcard", hint="messages go to one subject"
        )
    group = values.get("deliver_group")
    if group:
        check_filter(cast("str", group))  # A blank in it would close the reader's connection.
    heartbeat = values.get("idle_heartbeat")
    if heartbeat and check_duration("idle_heartbeat", heartbeat) < _IDLE_HEARTBEAT_MIN_NS:
        raise ConfigError(f"idle_heartbeat is {heartbeat!r}", hint="0.1 seconds is the least")
    if values.get("flow_control") and not heartbeat:
        raise ConfigError("flow_control needs idle_heartbeat", hint="such as idle_heartbeat=5")


def _check_acks(values: Mapping[str, object]) -> None:
    backoff = cast("Sequence[object]", values.get("backoff") or ())
    max_deliver = cast("int", values.get("max_deliver") or -1)
    if backoff and 0 < max_deliver < len(backoff):
        raise ConfigError(
            f"backoff has {len(backoff)} waits, but max_deliver is {max_deliver}",
            hint="max_deliver is at least the number of waits; -1 is no limit",
        )
    if values.get("ack_policy") == "flow_control":
        for name in ("deliver_subject", "flow_control", "max_ack_pending"):
            if not values.get(name):
                raise ConfigError(f"ack_policy 'flow_control' needs {name}")
        for name in ("ack_wait", "backoff"):
            if values.get(name):
                raise ConfigError(f"{name} does not go with ack_policy 'flow_control'")


def check_waits(values: Mapping[str, object]) -> None:
    """Refuse an `ack_wait` that the server would replace with the first wait of `backoff`.

    Args:
        values: The fields that the caller gave, by Python name.

    Raises:
        ConfigError: Both are given, and differ.
    """
    backoff = cast("Sequence[float | timedelta]", values.get("backoff") or ())
    ack_wait = cast("float | timedelta | None", values.get("ack_wait"))
    if backoff and ack_wait is not None and duration_ns(ack_wait) != duration_ns(backoff[0]):
        raise ConfigError(
            "ack_wait and backoff exclude each other",
            hint="leave ack_wait out: the first wait of backoff takes its place",
        )


def _check_priority(values: Mapping[str, object]) -> None:
    groups = values.get("priority_groups")
    policy = values.get("priority_policy") or "none"
    if groups and policy == "none":
        raise ConfigError(
            "priority_groups needs priority_policy",
            hint=f"one of {', '.join(CHOICES['priority_policy'][1:])}",
        )
    if policy != "none" and not groups:
        raise ConfigError(f"priority_policy {policy!r} needs priority_groups", hint="['jobs']")
    timeout = values.get("priority_timeout")
    if timeout is not None and not timeout and policy == "pinned_client":
        raise ConfigError(
            "priority_timeout is 0, which servers take for 120 seconds",
            hint="leave it out, or give the seconds",
        )
    if timeout and policy != "pinned_client":
        raise ConfigError(
            "priority_timeout is for priority_policy 'pinned_client'",
            hint="set it to 0, or leave it out",
        )


def refusal(name: str, before: object, after: object) -> str:
    """Return why servers refuse to change a field; empty if they are not known to.

    Args:
        name: The field's Python name.
        before: The server's value.
        after: The wanted value, which differs.
    """
    if name == "deliver_subject" and not (before and after):
        return "cannot be changed between a pull and a push consumer"
    return "cannot be changed after creation" if name in _FIXED else ""


def sample_text(value: object) -> str:
    """Return a sample frequency as it is sent, such as `30%`; empty is none.

    Raises:
        ConfigError: The value is not a percentage.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ConfigError(f"sample_freq is {described(value)}", hint="give 30, or '30%'")
    text = str(value)
    if text and not _SAMPLE.fullmatch(text):
        raise ConfigError(f"sample_freq is {described(value)}", hint="give 0 to 100, or '30%'")
    return text if not text or text.endswith("%") else f"{text}%"


def check_duration(name: str, value: object) -> int:
    """Return a duration in nanoseconds.

    Raises:
        ConfigError: It is no duration, or a server cannot hold it; the message names the field.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise ConfigError(f"{name} is {described(value)}", hint="give seconds, or a timedelta")
    try:
        nanoseconds = duration_ns(value)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error.message}", hint=error.hint) from error
    if nanoseconds > _INT64_MAX or (value and not nanoseconds):
        raise ConfigError(
            f"{name} is {described(value, with_type=False)}",
            hint="servers count nanoseconds: give 1e-9 to 9e9 seconds, or 0",
        )
    return nanoseconds


def check_time(name: str, value: object) -> int:
    """Return a moment in Unix nanoseconds.

    Raises:
        ConfigError: It is not a time; the message names the field.
    """
    if isinstance(value, bool) or not isinstance(value, int | datetime):
        raise ConfigError(
            f"{name} is {described(value)}",
            hint="give a datetime with a time zone, or Unix nanoseconds",
        )
    try:
        time_ns = time_to_ns(value)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error.message}", hint=error.hint) from error
    if not _TIME_MIN_NS <= time_ns <= _TIME_MAX_NS:
        raise ConfigError(
            f"{name} is {described(value, with_type=False)}",
            hint="Unix nanoseconds of the years 1 to 9999",
        )
    return time_ns


def _check_durable(value: object) -> None:
    if isinstance(value, str):
        raise ConfigError(
            f"durable is {described(value)}",
            hint=f"give name={value!r}: a consumer with a name is durable unless durable=False",
        )
    check_bool(value, "durable")


def _check_metadata(value: object) -> None:
    if not isinstance(value, Mapping):
        raise ConfigError(f"metadata is {described(value)}", hint="give texts by texts")
    for key, item in cast("Mapping[object, object]", value).items():
        _check_said(key, "a key of metadata")
        _check_said(item, f"metadata[{key!r}]")


def _check_said(value: object, name: str) -> None:
    """Refuse values that are no text, or cannot be sent: servers would store something else."""
    text = check_text(value, name)
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = described(value, with_type=False)
        raise ConfigError(f"{name} is {shown}", hint="half a surrogate pair is no text") from None


def check_extra(extra: object, known: Collection[str]) -> None:
    """Refuse extra fields that cannot be sent, or that are typed fields.

    Args:
        extra: JSON name to value.
        known: The JSON names of the typed fields.

    Raises:
        ConfigError: It is no mapping, it names a typed field, or a value is not JSON.
    """
    if not isinstance(extra, Mapping):
        raise ConfigError(f"extra is {described(extra)}", hint="give JSON values by JSON names")
    for name, value in cast("Mapping[object, object]", extra).items():
        _check_said(name, "a name in extra")
        if name in known:
            raise ConfigError(f"extra has {name}", hint="use the typed field")
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(f"extra[{name!r}] is {described(value)}: {error}") from error
