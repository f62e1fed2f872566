"""Which values a stream's plain fields take: texts, numbers, switches, choices and durations.

Law: a value that no server accepts, or that every server reads as something else, is refused before
anything is sent, and the error names the field: 0 is refused where servers read it as "not set".
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from natsstream.api.settings.setting import Reader
from natsstream.arguments import check_bool, check_choice, check_int, check_utf8, described
from natsstream.errors import ConfigError
from natsstream.fields import Fields
from natsstream.units import DURATION_NS_MAX, duration_ns

DURATIONS = ("max_age", "duplicate_window", "subject_delete_marker_ttl")
"""Fields that are seconds or a timedelta here, and nanoseconds in the server's JSON."""

_CHOICES = {
    "retention": ("limits", "interest", "workqueue"),
    "storage": ("file", "memory"),
    "discard": ("old", "new"),
    "compression": ("none", "s2"),
    "persist_mode": ("default", "async"),
}
# Servers read 0, the zero value of Go, as no limit.
_LIMITS = ("max_msgs", "max_bytes", "max_msgs_per_subject", "max_msg_size", "max_consumers")
_SWITCHES = [
    "discard_new_per_subject",
    "no_ack",
    "allow_direct",
    "mirror_direct",
    "sealed",
    "deny_delete",
    "deny_purge",
    "allow_rollup_hdrs",
    "allow_msg_ttl",
    "allow_atomic",
    "allow_msg_counter",
    "allow_msg_schedules",
    "allow_batched",
]
_REPLICAS_MAX = 5

READERS: Mapping[str, Reader] = {
    "subjects": Fields.texts,
    "metadata": Fields.words,
    "replicas": Fields.integer,
    **dict.fromkeys((*_LIMITS, "first_seq"), Fields.integer),
    **dict.fromkeys(_SWITCHES, Fields.flag),
    **dict.fromkeys(DURATIONS, Fields.seconds),
}
"""Readers of the fields that are no texts in the server's JSON, by Python name."""


def check_plain_fields(values: Mapping[str, object], of: str) -> None:
    """Refuse invalid values.

    Args:
        values: Fields of `StreamConfig` by name; None if not given.
        of: Their owner, for the message, such as `of stream ORDERS`.

    Raises:
        ConfigError: A value is invalid.
    """
    for name, value in values.items():
        what = f"{name} {of}"
        if value is None:
            continue
        if name == "description":
            check_utf8(value, what)
        elif name == "replicas":
            check_int(value, what, minimum=1, maximum=_REPLICAS_MAX)
        elif name == "metadata":
            _check_metadata(value, what)
        elif name in _CHOICES:
            check_choice(value, what, _CHOICES[name])
        elif name in _LIMITS:
            check_limit(value, what)
        elif name == "first_seq":
            check_int(value, what, minimum=1)
        elif name in _SWITCHES:
            check_bool(value, what)
        elif name in DURATIONS:
            check_duration(value, what)
            if name == "duplicate_window" and not value:
                raise ConfigError(
                    f"{what} is 0, which servers take for their default",
                    hint="leave it out for the default of 120 seconds; the least is 0.1",
                )


def check_limit(value: object, what: str) -> int:
    """Return a limit: a number from 1 on, or -1 for none.

    Raises:
        ConfigError: It is no number, or not a legal one, such as 0, which servers read as no limit.
    """
    number = check_int(value, what, minimum=-1)
    if not number:
        raise ConfigError(
            f"{what} is 0, which servers take for no limit",
            hint="give -1 for no limit, or leave it out for the default",
        )
    return number


def check_mapping(value: object, what: str) -> Mapping[object, object]:
    """Return a mapping.

    Raises:
        ConfigError: The value is not a mapping.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what} is {described(value)}", hint="give a mapping with texts as keys")
    return cast("Mapping[object, object]", value)


def check_duration(value: object, what: str) -> None:
    """Refuse a value that a server cannot keep as a duration.

    Raises:
        ConfigError: It is neither seconds nor a timedelta, negative, longer than 292 years, or
            shorter than a nanosecond.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | timedelta):
        raise ConfigError(f"{what} is {described(value)}", hint="give seconds, or a timedelta")
    try:
        nanoseconds = duration_ns(value)
    except ConfigError as error:
        raise ConfigError(f"{what}: {error.message}", hint=error.hint) from error
    if nanoseconds > DURATION_NS_MAX:
        shown = described(value, with_type=False)
        raise ConfigError(
            f"{what}: duration {shown} is longer than 292 years",
            hint="servers count nanoseconds in 64 bits; 0 is no limit",
        )
    if value and not nanoseconds:
        raise ConfigError(
            f"{what} is {described(value, with_type=False)}, less than a nanosecond",
            hint="give more, or 0",
        )


def _check_metadata(value: object, what: str) -> None:
    for key, item in check_mapping(value, what).items():
        check_utf8(key, f"a key of {what}")
        check_utf8(item, f"{what}, key {key!r}")
