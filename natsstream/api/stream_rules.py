"""Which fields of a stream servers change, and their defaults; pure rules.

Source: nats-server's stream.go configUpdateCheck; tests compare this table with a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from natsstream.api.change_plan import ChangeRules
from natsstream.api.features import STREAM_FIELDS
from natsstream.api.settings.setting import says_something
from natsstream.api.stream_config import StreamConfig
from natsstream.units import NS_PER_SECOND, duration_ns

_FIXED = ("storage", "allow_msg_counter", "persist_mode")
_ONE_WAY = ("sealed", "deny_delete", "deny_purge", "allow_msg_ttl", "allow_msg_schedules")
_WORK_QUEUE = "workqueue"
_WINDOW_NS = 120 * NS_PER_SECOND
_DEFAULTS: Mapping[str, object] = {
    "retention": "limits",
    "storage": "file",
    "replicas": 1,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_msgs_per_subject": -1,
    "max_msg_size": -1,
    "max_consumers": -1,
    "discard": "old",
    "compression": "none",
    "persist_mode": "default",
    "first_seq": 1,
}


def window_ns(max_age_ns: int) -> int:
    """Return the default duplicate window: two minutes, or the maximum age if that is shorter.

    Servers refuse to remember ids for longer than messages.
    """
    return min(max_age_ns or _WINDOW_NS, _WINDOW_NS)


def _refusal(name: str, before: object, after: object) -> str:
    if name in _FIXED:
        return "cannot be changed after creation"
    if name in _ONE_WAY and says_something(before):
        return "cannot be undone"
    if name == "retention" and _WORK_QUEUE in (before, after):
        return "cannot be changed to or from a work queue"
    if name == "mirror" and says_something(after):
        return "a mirror can be removed, but not added or pointed at another stream"
    return ""


def stream_defaults(held: StreamConfig) -> dict[str, Any]:
    """Return the values that servers fill in by Python name.

    Args:
        held: The configuration that a server sent.
    """
    window_s = window_ns(duration_ns(held.max_age or 0)) / NS_PER_SECOND
    defaults: dict[str, Any] = {
        **_DEFAULTS,
        "subjects": [held.name],
        "duplicate_window": window_s,
    }
    if held.mirror is not None:
        defaults["mirror_direct"] = held.mirror_direct  # Servers take it from the origin.
    return defaults


STREAM_RULES = ChangeRules(features=STREAM_FIELDS, refusal=_refusal, defaults=stream_defaults)
