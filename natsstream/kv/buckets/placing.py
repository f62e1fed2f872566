"""How a bucket's place follows from its stream: its own subjects, a mirror's, a domain's.

Law: a mirror keeps keys under the subjects of its origin; it is read there, and written to at the
origin (ADR-57). Where the connection reaches JetStream under a domain or an API prefix, writes go
under it, for `$KV` is no part of JetStream's API (ADR-19).
Source: nats.go jetstream/kv.go mapStreamToKVS, which does not know of mirrors of mirrors.
"""

from __future__ import annotations

from natsstream.api.settings.source import StreamSource
from natsstream.api.stream_config import StreamConfig
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.kv.buckets.conventions import STREAM_PREFIX, SUBJECT_PREFIX

_API = "$JS.API"


def place_of(
    config: StreamConfig, api_prefix: str, origin: BucketSubjects | None = None
) -> BucketSubjects:
    """Return where the keys of a bucket are.

    Args:
        config: Its stream's configuration.
        api_prefix: What stands before requests of JetStream's API on this connection.
        origin: Where the keys of the mirrored bucket are, if it is a mirror itself; None takes it
            for a bucket with its own subjects.
    """
    bucket = config.name.removeprefix(STREAM_PREFIX)
    own = f"{SUBJECT_PREFIX}{bucket}."
    mirror = config.mirror
    if mirror is None:
        return BucketSubjects(bucket, config.name, own, under(api_prefix, own))
    theirs = f"{SUBJECT_PREFIX}{mirror.name.removeprefix(STREAM_PREFIX)}."
    external = mirror.external.api if mirror.external is not None else ""
    read, write = theirs, under(external or api_prefix, theirs)
    if origin is not None:
        read, write = origin.read_prefix, origin.write_prefix
    return BucketSubjects(bucket, config.name, _mapped(mirror, read), write)


def under(api_prefix: str, subject: str) -> str:
    """Return the subject that reaches a bucket's stream under a domain or an API prefix."""
    return subject if api_prefix in ("", _API) else f"{api_prefix}.{subject}"


def _mapped(mirror: StreamSource, prefix: str) -> str:
    """Return the prefix of the keys that a mirror stores, which may map the subjects."""
    for each in mirror.transforms or ():
        if each.source == f"{prefix}>" and each.destination.endswith(".>"):
            return each.destination.removesuffix(">")
    return prefix
