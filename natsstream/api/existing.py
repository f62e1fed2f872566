"""The fields in which an existing stream or consumer differs from a new one; pure rules.

Law: `create` never changes an existing stream or consumer. If nothing differs, the caller gets the
existing one, even if the server reports a conflict: other clients store parts without meaning, such
as an empty placement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from natsstream.api.diff import FieldChange, plain, stream_changed
from natsstream.api.settings.setting import meaning
from natsstream.api.stream_config import StreamConfig, user_metadata
from natsstream.errors import ConsumerExistsError, StreamExistsError

Differences = Mapping[str, tuple[object, object]]

_WINDOW_S = 120.0
# The server's defaults by Python name; all other fields have none.
_STREAM_DEFAULTS: Mapping[str, object] = {
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
_CONSUMER_DEFAULTS: Mapping[str, object] = {
    "deliver_policy": "all",
    "ack_policy": "explicit",
    "ack_wait": 30.0,
    "max_deliver": -1,
    "replay_policy": "instant",
    "max_waiting": 512,
    "max_ack_pending": 1000,
    "priority_policy": "none",
}


def stream_differences(wanted: StreamConfig, held: Mapping[str, object]) -> Differences:
    """Return the fields in which an existing stream differs from a new one.

    Args:
        wanted: The configuration of the new stream.
        held: The stream's configuration as the server sent it.

    Returns:
        Name to the server's value and the wanted value; None is the server's default.
    """
    config = StreamConfig.from_json(held)
    defaults = {**_STREAM_DEFAULTS, "subjects": [config.name]}
    # Servers remember message ids no longer than they keep messages, and a mirror has none.
    defaults["duplicate_window"] = min(cast("float", config.max_age) or _WINDOW_S, _WINDOW_S)
    theirs = {**config.given(), "metadata": user_metadata(config.metadata or {})}
    if config.mirror is not None:
        theirs.pop("mirror_direct", None)  # Servers take it from the origin.
    return _differences(
        stream_changed(wanted, held).fields, _unsaid(theirs, wanted.given(), defaults)
    )


def consumer_differences(
    changes: tuple[FieldChange, ...], wanted: Mapping[str, object], held: Mapping[str, object]
) -> Differences:
    """Return the fields in which an existing consumer differs from a new one.

    Args:
        changes: The changes that an update to the wanted configuration would make.
        wanted: The fields given for the new consumer, by Python name.
        held: The fields of the existing consumer.
    """
    theirs = {**held, "metadata": user_metadata(cast("dict[str, str]", held.get("metadata") or {}))}
    for name in ("name", "durable"):
        theirs.pop(name, None)
    return _differences(changes, _unsaid(theirs, wanted, _CONSUMER_DEFAULTS))


def told(error: StreamExistsError | ConsumerExistsError, differences: Differences) -> None:
    """Add the differences to an error."""
    error.differences = dict(differences)
    error.detail = described(differences)


def described(differences: Differences) -> str:
    """Return differences as an error shows them."""
    return "; ".join(
        f"{name} is {plain(before)!r}, not {_asked(after)}"
        for name, (before, after) in differences.items()
    )


def _unsaid(
    theirs: Mapping[str, object], wanted: Mapping[str, object], defaults: Mapping[str, object]
) -> dict[str, object]:
    """Return the server's fields that the caller did not give and that are not defaults."""
    return {
        name: value
        for name, value in theirs.items()
        if name not in wanted
        and meaning(plain(value)) is not None
        and meaning(plain(value)) != meaning(defaults.get(name))
    }


def _differences(
    changes: tuple[FieldChange, ...], unsaid: Mapping[str, object]
) -> dict[str, tuple[object, object]]:
    found = {each.name: (each.before, each.after) for each in changes}
    return {**found, **{name: (value, None) for name, value in unsaid.items()}}


def _asked(value: object) -> str:
    return "the default" if value is None else repr(plain(value))
