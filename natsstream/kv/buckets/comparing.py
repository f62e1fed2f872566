"""How two configurations of a bucket differ, by the bucket's own names.

What lives here: what was done to a bucket, and what is other than asked for. What must not: how
streams are compared (`streams/diff.py`).

Law: what follows from another field, as the duplicate window does from the ttl, is not told beside
it as a difference.
"""

from __future__ import annotations

from collections.abc import Mapping

from natsstream.kv.buckets.conventions import BUCKET_FIELDS, STREAM_PREFIX
from natsstream.streams.config import StreamConfig, user_metadata
from natsstream.streams.diff import ConfigChange, FieldChange, stream_changed
from natsstream.streams.settings.setting import meaning


def bucket_change(change: ConfigChange) -> ConfigChange:
    """Return what was done to a bucket's stream, by the bucket's names."""
    named = tuple(
        FieldChange(*_as_bucket(each.name, each.before, each.after), each.refusal)
        for each in change.fields
        # What every bucket has is no news of a new one.
        if change.action != "created" or each.name in BUCKET_FIELDS
    )
    return ConfigChange(change.name.removeprefix(STREAM_PREFIX), change.action, named)


def differences(wanted: StreamConfig, held: StreamConfig) -> dict[str, tuple[object, object]]:
    """Return the fields in which a bucket's stream is other than a new one, by the bucket's names.

    Args:
        wanted: The stream as `BucketConfig.to_stream` makes it.
        held: The stream as the server has it.

    Returns:
        Name to the server's value and the wanted one.
    """
    # What the server has and a new bucket leaves out differs too, as far as it says something.
    beyond = set(held.given()) - set(wanted.given())
    unsaid = {
        name: getattr(held, name, held.extra.get(name))
        for name in beyond
        if meaning(held.to_json().get(name)) and name not in ("duplicate_window", "metadata")
    }
    changes = stream_changed(wanted, held.to_json()).fields
    found = {each.name: (each.before, each.after) for each in changes}
    found |= {name: (value, None) for name, value in unsaid.items()}
    if "max_age" in found or wanted.mirror is not None:
        # It follows from the former, and servers drop a mirror's.
        found.pop("duplicate_window", None)
    if "subject_delete_marker_ttl" in found:
        found.pop("allow_msg_ttl", None)
    if wanted.metadata is None and user_metadata(held.metadata or {}):
        found["metadata"] = (user_metadata(held.metadata or {}), None)
    named = (_as_bucket(name, *values) for name, values in found.items())
    return {name: (before, after) for name, before, after in named}


def is_only_older(different: Mapping[str, object]) -> bool:
    """Tell whether a bucket differs from a new one only as those of older clients do.

    Source: nats.go jetstream/kv.go CreateKeyValue, which then updates them.
    """
    return set(different) <= {"discard", "allow_direct"}


def _as_bucket(name: str, before: object, after: object) -> tuple[str, object, object]:
    if name == "compression":
        before, after = (None if each is None else each != "none" for each in (before, after))
    return BUCKET_FIELDS.get(name, name), before, after
