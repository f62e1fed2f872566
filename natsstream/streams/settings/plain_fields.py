"""Which values a stream's plain fields take: texts, numbers, switches, choices and durations.

What lives here: the tables and the checks. What must not: the parts with fields of their own.

Law: what no server would take is refused by the field's name before anything is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import cast

from natsstream.arguments import check_bool, check_choice, check_int, check_utf8, described
from natsstream.errors import ConfigError
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
# The least value of each number; -1 is no limit.
_NUMBERS = {
    "max_msgs": -1,
    "max_bytes": -1,
    "max_msgs_per_subject": -1,
    "max_msg_size": -1,
    "max_consumers": -1,
    "first_seq": 0,
}
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


def check_plain_fields(values: Mapping[str, object], of: str) -> None:
    """Refuse values that can not work.

    Args:
        values: Fields of `StreamConfig` by name; None is not given.
        of: Whose they are, for the message, such as `of stream ORDERS`.

    Raises:
        ConfigError: One of them can not.
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
        elif name in _NUMBERS:
            check_int(value, what, minimum=_NUMBERS[name])
        elif name in _SWITCHES:
            check_bool(value, what)
        elif name in DURATIONS:
            check_duration(value, what)


def check_mapping(value: object, what: str) -> Mapping[object, object]:
    """Return a mapping.

    Raises:
        ConfigError: It is none.
    """
    if not isinstance(value, Mapping):
        raise ConfigError(f"{what} is {described(value)}", hint="give a mapping with texts as keys")
    return cast("Mapping[object, object]", value)


def check_duration(value: object, what: str) -> None:
    """Refuse what a server can not keep as a duration.

    Raises:
        ConfigError: It is neither seconds nor a timedelta, negative, or longer than 292 years.
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


def _check_metadata(value: object, what: str) -> None:
    for key, item in check_mapping(value, what).items():
        check_utf8(key, f"a key of {what}")
        check_utf8(item, f"{what}, key {key!r}")
