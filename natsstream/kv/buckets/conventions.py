"""What every client knows of buckets: names, prefixes, and the fields of a bucket's stream.

What lives here: the conventions, as values and as rules over a stream. What must not: what a user
asks for (`config.py`).

Law: what is here is what nats.go does, field by field.
Source: ADR-8, ADR-57; nats.go jetstream/kv.go prepareKeyValueConfig.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from natsstream.arguments import check_text
from natsstream.errors import BucketNameError
from natsstream.streams.config import StreamConfig
from natsstream.streams.names import STREAM_NAME_BYTES_MAX
from natsstream.streams.settings.mapping import SubjectTransform
from natsstream.streams.settings.setting import meaning
from natsstream.streams.settings.source import StreamSource
from natsstream.units import NS_PER_SECOND, duration_ns

STREAM_PREFIX: str = "KV_"
"""What stands before a bucket's name in the name of its stream."""
SUBJECT_PREFIX: str = "$KV."
"""What stands before a bucket's name in its subjects."""
HISTORY_MAX: int = 64

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_WINDOW_NS = 120 * NS_PER_SECOND

# What nats.go sends for every bucket, by names that are the stream's and the server's alike.
CONVENTIONS: Mapping[str, object] = {
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs": -1,
    "discard": "new",
    "allow_direct": True,
    "sealed": False,
    "deny_delete": True,
    "deny_purge": False,
    "allow_rollup_hdrs": True,
}
# Its defaults of what a bucket's fields are about, by the stream's Python names.
DEFAULTS: Mapping[str, object] = {
    "max_bytes": -1,
    "max_age": 0,
    "max_msgs_per_subject": 1,
    "max_msg_size": -1,
    "storage": "file",
    "replicas": 1,
    "compression": "none",
}

# Python name of a bucket's field -> that of the stream's field which holds it.
STREAM_FIELDS: Mapping[str, str] = {
    "description": "description",
    "history": "max_msgs_per_subject",
    "ttl": "max_age",
    "max_bytes": "max_bytes",
    "max_value_size": "max_msg_size",
    "storage": "storage",
    "replicas": "replicas",
    "placement": "placement",
    "republish": "republish",
    "compression": "compression",
    "metadata": "metadata",
    "mirror": "mirror",
    "sources": "sources",
    "limit_marker_ttl": "subject_delete_marker_ttl",
}
BUCKET_FIELDS: Mapping[str, str] = {stream: bucket for bucket, stream in STREAM_FIELDS.items()}


def check_bucket_name(name: object) -> str:
    """Return a bucket's name.

    Raises:
        BucketNameError: No client would take it.
    """
    text = check_text(name, "the bucket's name", error=BucketNameError)
    if not _LEGAL_NAME.fullmatch(text):
        raise BucketNameError(
            f"bucket name {text[:80]!r} is not legal" if text else "the bucket's name is empty",
            hint="use letters, digits, '-' and '_'",
        )
    if len(text) + len(STREAM_PREFIX) > STREAM_NAME_BYTES_MAX:
        raise BucketNameError(
            f"bucket name {text[:40]!r}... exceeds {STREAM_NAME_BYTES_MAX - len(STREAM_PREFIX)} "
            "bytes",
            hint="servers name files by it; shorten it",
        )
    return text


def stream_name(bucket: str) -> str:
    """Return the name of the stream that holds a bucket.

    Raises:
        BucketNameError: No client would take the bucket's name.
    """
    return STREAM_PREFIX + check_bucket_name(bucket)


def is_bucket(config: StreamConfig) -> bool:
    """Tell whether a stream is a bucket, as nats.go does: by name, and by keeping a history."""
    bucket = config.name.removeprefix(STREAM_PREFIX)
    named = config.name.startswith(STREAM_PREFIX) and bool(_LEGAL_NAME.fullmatch(bucket))
    return named and (config.max_msgs_per_subject or 0) >= 1


def usual_of(bucket: str, *, is_mirror: bool, has_markers: bool) -> dict[str, object]:
    """Return what every client sends for a bucket beyond its fields, by the server's names."""
    usual: dict[str, object] = {**CONVENTIONS, "mirror_direct": is_mirror}
    if not is_mirror:
        usual["subjects"] = [f"{SUBJECT_PREFIX}{bucket}.>"]
    if has_markers:
        usual["allow_msg_ttl"] = True
    return usual


def window_ns(ttl_ns: int) -> int:
    """Return the duplicate window: two minutes, and never longer than what is kept."""
    return min(ttl_ns or _WINDOW_NS, _WINDOW_NS)


def with_prefix(name: str) -> str:
    return name if name.startswith(STREAM_PREFIX) else STREAM_PREFIX + name


def sourced(source: StreamSource, bucket: str) -> StreamSource:
    """Return a source whose keys come as keys of this bucket; see nats.go.

    One with transforms stays as it is: it need not be a bucket.
    """
    if source.transforms:
        return source
    theirs = source.name.removeprefix(STREAM_PREFIX)
    named = replace(source, name=STREAM_PREFIX + theirs)
    if source.external is not None and theirs == bucket:
        return named
    mapping = SubjectTransform(
        source=f"{SUBJECT_PREFIX}{theirs}.>", destination=f"{SUBJECT_PREFIX}{bucket}.>"
    )
    return replace(named, transforms=[mapping])


def beyond(config: StreamConfig) -> dict[str, object]:
    """Return the stream's fields that are other than those of a new bucket."""
    held = config.to_json()
    usual = usual_of(
        config.name.removeprefix(STREAM_PREFIX),
        is_mirror=config.mirror is not None,
        has_markers=bool(config.subject_delete_marker_ttl),
    )
    own = {*map(json_name, BUCKET_FIELDS), "name"}
    if config.mirror is None:
        usual["duplicate_window"] = window_ns(duration_ns(config.max_age or 0))
    else:
        own.add("duplicate_window")  # Clusters drop it, single servers when they start again.
    return {
        name: held.get(name, False)
        for name in (*held, *(set(usual) - set(held)))
        if name not in own and meaning(held.get(name)) != meaning(usual.get(name))
    }


def json_name(name: str) -> str:
    return "num_replicas" if name == "replicas" else name
