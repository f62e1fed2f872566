"""Legal configurations of a consumer; pure rules.

Law: a value that every server refuses, or accepts and ignores, is refused here before anything is
sent. The server checks all that depends on the stream or on its own version.
Source: nats-server's consumer.go, checkConsumerCfg and checkNewConsumerConfig.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import cast

from natsstream.api.change_plan import ChangeRules
from natsstream.api.features import CONSUMER_FIELDS
from natsstream.api.names import check_filter, check_filters
from natsstream.api.settings.field_kinds import FieldKind, read_texts
from natsstream.api.settings.setting import Setting
from natsstream.arguments import check_bool, check_text, check_texts, described
from natsstream.errors import ConfigError
from natsstream.fields import Fields
from natsstream.units import duration_ns

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
_DEFAULTS: Mapping[str, object] = {
    "deliver_policy": "all",
    "ack_policy": "explicit",
    "ack_wait": 30.0,
    "max_deliver": -1,
    "replay_policy": "instant",
    "max_waiting": 512,
    "max_ack_pending": 1000,
    "priority_policy": "none",
}
_GROUP = re.compile(r"[A-Za-z0-9/_=-]{1,16}", re.ASCII)
_SAMPLE = re.compile(r"(?:100|[0-9]{1,2})%?", re.ASCII)
_START_OF = {"start_seq": "by_start_sequence", "start_time": "by_start_time"}


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
        raise ConfigError(
            f"deliver_policy {deliver_policy!r} needs {needed}",
            hint=f"give {needed} alone: the policy follows from it",
        )


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
    heartbeat = cast("float | timedelta | None", values.get("idle_heartbeat"))
    if heartbeat and duration_ns(heartbeat) < _IDLE_HEARTBEAT_MIN_NS:
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


def check_waits(
    backoff: Sequence[float | timedelta] | None, ack_wait: float | timedelta | None
) -> None:
    """Refuse an `ack_wait` that the server would replace with the first wait of `backoff`.

    Raises:
        ConfigError: Both are given, and differ.
    """
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
            hint="one of overflow, pinned_client, prioritized",
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


def _refusal(name: str, before: object, after: object) -> str:
    if name == "deliver_subject" and not (before and after):
        return "cannot be changed between a pull and a push consumer"
    return "cannot be changed after creation" if name in _FIXED else ""


def _defaults(held: Setting) -> Mapping[str, object]:
    # Durability is compared apart: a configuration with a name implies it.
    return {**_DEFAULTS, "durable": held.values()["durable"]}


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


def _check_sample(value: object, _what: str) -> object:
    sample_text(value)
    return value


def _check_durable(value: object, _what: str) -> bool:
    if isinstance(value, str):
        raise ConfigError(
            f"durable is {described(value)}",
            hint=f"give name={value!r}: a consumer with a name is durable unless durable=False",
        )
    return check_bool(value, "durable")


def _check_groups(values: object, what: str) -> tuple[str, ...]:
    return tuple(check_group(group) for group in check_texts(values, what))


def _read_filters(fields: Fields, _name: str) -> tuple[str, ...] | None:
    filters = fields.texts("filter_subjects") or [fields.text("filter_subject", "")]
    return tuple(each for each in filters if each) or None


DURABLE = FieldKind(check=_check_durable)
FILTERS = FieldKind(check=check_filters, read=_read_filters, meaning=sorted)
SAMPLE = FieldKind(check=_check_sample, write=sample_text)
GROUPS = FieldKind(check=_check_groups, read=read_texts, write=list)
CONSUMER_RULES = ChangeRules(features=CONSUMER_FIELDS, refusal=_refusal, defaults=_defaults)
