"""Compares configurations of a view's stream, under the view's own names.

Law: a field that follows from another one, as the duplicate window from the ttl, is not reported
beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from natsstream.api.diff import ConfigChange, FieldChange, stream_changed
from natsstream.api.settings.setting import meaning
from natsstream.api.stream_config import StreamConfig, json_name, user_metadata
from natsstream.streams.views.kind import Kind
from natsstream.units import NS_PER_SECOND, duration_ns

_WINDOW_NS = 120 * NS_PER_SECOND


def view_change(kind: Kind, change: ConfigChange) -> ConfigChange:
    """Return a change of a stream under the view's names."""
    named = tuple(
        FieldChange(*_as_view(kind, each.name, each.before, each.after), each.refusal)
        for each in change.fields
        # A new view reports its own fields only.
        if change.action != "created" or each.name in kind.names
    )
    return ConfigChange(kind.name_of(change.name), change.action, named)


def differences(
    kind: Kind, wanted: StreamConfig, held: StreamConfig
) -> dict[str, tuple[object, object]]:
    """Return the fields in which a stream differs from that of a new view.

    Args:
        kind: The view's kind.
        wanted: The stream of the new view.
        held: The stream on the server.

    Returns:
        The server's value and the wanted one, by name.
    """
    body = held.to_json()
    # A field that the new stream leaves out differs too, unless its value means the default.
    unsaid = {
        name: getattr(held, name, held.extra.get(name))
        for name in set(held.given()) - set(wanted.given())
        if meaning(body.get(json_name(name))) != meaning(kind.server_defaults.get(name))
        and name not in ("duplicate_window", "metadata")
    }
    found = {each.name: (each.before, each.after) for each in stream_changed(wanted, body).fields}
    found |= {name: (value, None) for name, value in unsaid.items()}
    if "max_age" in found or wanted.mirror is not None:
        # It follows from max_age, and servers drop a mirror's.
        found.pop("duplicate_window", None)
    elif wanted.duplicate_window is None and held.duplicate_window is not None:
        usual_ns = window_ns(duration_ns(held.max_age or 0))
        if duration_ns(held.duplicate_window) != usual_ns:
            found["duplicate_window"] = (held.duplicate_window, usual_ns / NS_PER_SECOND)
    if "subject_delete_marker_ttl" in found:
        found.pop("allow_msg_ttl", None)
    if wanted.metadata is None and user_metadata(held.metadata or {}):
        found["metadata"] = (user_metadata(held.metadata or {}), None)
    named = (_as_view(kind, name, *values) for name, values in found.items())
    return {name: (before, after) for name, before, after in named}


def extra_fields(
    kind: Kind, usual: Mapping[str, object], config: StreamConfig
) -> dict[str, object]:
    """Return the stream's fields that differ from those of every client's views.

    Args:
        kind: The view's kind.
        usual: The fields that every client sends beside the view's own, by the server's names.
        config: The stream.
    """
    own = {*map(json_name, kind.names), "name", *kind.derived}
    filled_in = dict(kind.server_defaults)
    if config.mirror is None:
        filled_in["duplicate_window"] = window_ns(duration_ns(config.max_age or 0))
    else:
        own.add("duplicate_window")  # Clusters drop it; single servers do when they restart.
    held, usual = {**filled_in, **config.to_json()}, {**filled_in, **usual}
    return {
        name: held.get(name, False)
        for name in (*held, *(set(usual) - set(held)))
        if name not in own and meaning(held.get(name)) != meaning(usual.get(name))
    }


def window_ns(ttl_ns: int) -> int:
    """Return the duplicate window: two minutes, or the ttl if that is shorter.

    Servers refuse to remember ids for longer than messages.
    """
    return min(ttl_ns or _WINDOW_NS, _WINDOW_NS)


def _as_view(kind: Kind, name: str, before: object, after: object) -> tuple[str, object, object]:
    if name == "compression":
        before, after = (None if each is None else each != "none" for each in (before, after))
    return kind.names.get(name, name), before, after
