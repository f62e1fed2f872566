"""In which fields a stream or a consumer that exists is other than a new one would be; pure rules.

Law: `create` never changes what exists. Where nothing differs, what exists is what was asked for,
also where the server calls it another one: other clients store parts that say nothing, such as an
empty placement.
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
# What a server writes where a new stream says nothing, by Python names; of all others nothing.
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
    """Return the fields in which a stream that exists is other than a new one would be.

    Args:
        wanted: The configuration of the new one.
        held: The stream's configuration as the server sent it.

    Returns:
        Name to the server's value and the wanted one; None is the server's default.
    """
    config = StreamConfig.from_json(held)
    defaults = {**_STREAM_DEFAULTS, "subjects": [config.name]}
    # Servers remember ids no longer than messages, and not where nobody publishes.
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
    """Return the fields in which a consumer that exists is other than a new one would be.

    Args:
        changes: What an update to the wanted configuration would change.
        wanted: The fields that are given for the new one, by their Python names.
        held: Those of the consumer that exists.
    """
    theirs = {**held, "metadata": user_metadata(cast("dict[str, str]", held.get("metadata") or {}))}
    for name in ("name", "durable"):
        theirs.pop(name, None)
    return _differences(changes, _unsaid(theirs, wanted, _CONSUMER_DEFAULTS))


def told(error: StreamExistsError | ConsumerExistsError, differences: Differences) -> None:
    """Let an error say what differs."""
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
    """Return what is there and was not asked for, as far as it is not what a new one has."""
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
