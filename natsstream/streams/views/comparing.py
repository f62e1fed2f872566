"""Compares configurations of a view's stream, under the view's own names.

Law: a field that follows from another one, as the duplicate window from the ttl, is not reported
beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

from natsstream.api.change_plan import differences
from natsstream.api.diff import ConfigChange, FieldChange
from natsstream.api.settings.setting import json_names, meaning
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_rules import STREAM_RULES, stream_defaults
from natsstream.streams.views.kind import Kind


def view_change(kind: Kind, change: ConfigChange) -> ConfigChange:
    """Return a change of a stream under the view's names."""
    named = tuple(
        FieldChange(*_as_view(kind, each.name, each.before, each.after), each.refusal)
        for each in change.fields
        # A new view reports its own fields only.
        if change.action != "created" or each.name in kind.names
    )
    return ConfigChange(kind.name_of(change.name), change.action, named)


def view_differences(
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
    found = dict(differences(STREAM_RULES, wanted, held.to_json()))
    if "max_age" in found or wanted.mirror is not None:
        # It follows from max_age, and servers drop a mirror's.
        found.pop("duplicate_window", None)
    elif "duplicate_window" in found and wanted.duplicate_window is None:
        usual = stream_defaults(held)["duplicate_window"]
        found["duplicate_window"] = (held.duplicate_window, usual)
    if "subject_delete_marker_ttl" in found:
        found.pop("allow_msg_ttl", None)
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
    own = {"name", *kind.names, *kind.derived}
    if config.mirror is not None:
        own.add("duplicate_window")  # Clusters drop it; single servers do when they restart.
    filled_in = StreamConfig(name=config.name, **stream_defaults(config)).to_json()
    held, every_client = {**filled_in, **config.to_json()}, {**filled_in, **usual}
    return {
        name: held.get(name, False)
        for name in {**held, **every_client}
        if json_names(StreamConfig).get(name, name) not in own
        and meaning(held.get(name)) != meaning(every_client.get(name))
    }


def _as_view(kind: Kind, name: str, before: object, after: object) -> tuple[str, object, object]:
    if name == "compression":
        before, after = (None if each is None else each != "none" for each in (before, after))
    return kind.names.get(name, name), before, after
