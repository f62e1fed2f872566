"""Conventions of buckets in every client: names, prefixes, and fields of a bucket's stream.

Law: they are those of nats.go, field by field.
Source: ADR-8, ADR-57; nats.go jetstream/kv.go prepareKeyValueConfig.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import replace

from natsstream.api.settings.mapping import SubjectTransform
from natsstream.api.settings.source import StreamSource
from natsstream.api.stream_config import StreamConfig
from natsstream.errors import ConfigError, KeyNameError
from natsstream.kv.keys import check_key_filter
from natsstream.streams.views.kind import Kind, is_legal_name

STREAM_PREFIX: str = "KV_"
"""The prefix of the names of buckets' streams."""
SUBJECT_PREFIX: str = "$KV."
"""The prefix of the subjects of buckets."""
HISTORY_MAX: int = 64


# The fields that nats.go sends for every bucket; by the server's names.
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
# Its defaults of a bucket's own fields, by the server's names.
DEFAULTS: Mapping[str, object] = {
    "max_bytes": -1,
    "max_age": 0,
    "max_msgs_per_subject": 1,
    "max_msg_size": -1,
    "storage": "file",
    "num_replicas": 1,
    "compression": "none",
}


def _mismatch(config: StreamConfig) -> str:
    """Return why a stream is no bucket, by nats.go's rules: its name, and no history."""
    if is_legal_name(BUCKET.name_of(config.name)) and (config.max_msgs_per_subject or 0) >= 1:
        return ""
    return f"max_msgs_per_subject is {config.max_msgs_per_subject}"


BUCKET: Kind = Kind(
    noun="bucket",
    manager="js.kv",
    prefix=STREAM_PREFIX,
    mismatch=_mismatch,
    requirement="a bucket keeps a history of each key, 1 or more",
    elsewhere="js.kv.create(..., storage=..., sources=[{name!r}]) makes a bucket with its keys",
)
"""Buckets as a kind of view of a stream."""


def usual_of(bucket: str, *, is_mirror: bool, has_markers: bool) -> dict[str, object]:
    """Return the fields that every client sends beside a bucket's own, by the server's names."""
    usual: dict[str, object] = {**CONVENTIONS, "mirror_direct": is_mirror}
    if not is_mirror:
        usual["subjects"] = [f"{SUBJECT_PREFIX}{bucket}.>"]
    if has_markers:
        usual["allow_msg_ttl"] = True
    return usual


def with_prefix(name: str) -> str:
    return name if name.startswith(STREAM_PREFIX) else STREAM_PREFIX + name


def sourced(source: StreamSource, bucket: str, prefix: str = "") -> StreamSource:
    """Return a source whose keys, or those of its filter, become keys of this bucket; see nats.go.

    One with transforms stays as it is: it need not be a bucket.

    Args:
        source: The bucket that is copied from.
        bucket: The name of this bucket.
        prefix: The prefix of the subjects under which the source keeps its keys, as a mirror keeps
            them under its origin's; empty is the one of its name.

    Raises:
        ConfigError: The filter is no filter of keys.
    """
    if source.transforms:
        return source
    theirs = source.name.removeprefix(STREAM_PREFIX)
    named = replace(source, name=STREAM_PREFIX + theirs)
    if source.external is not None and theirs == bucket and not source.filter:
        return named
    own = f"{SUBJECT_PREFIX}{theirs}."
    keys = (source.filter or ">").removeprefix(own)
    try:
        check_key_filter(keys)
    except KeyNameError as error:
        raise ConfigError(
            f"source {theirs} of bucket {bucket}: {error.message}",
            hint="give a filter of its keys without their prefix, such as filter='eu.>'",
        ) from error
    # The server takes no `*` in a destination.
    number = itertools.count(1)
    same = re.sub(r"\*", lambda _: f"{{{{wildcard({next(number)})}}}}", keys)
    mapping = SubjectTransform(
        source=(prefix or own) + keys, destination=f"{SUBJECT_PREFIX}{bucket}.{same}"
    )
    return replace(named, filter=None, transforms=[mapping])
