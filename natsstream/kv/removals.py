"""Removing many keys of a bucket: old markers, and all keys of a filter.

Law: a key that is written meanwhile keeps its new value. Each removal names the last revision that
it may reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from natsstream.api.at_once import at_once
from natsstream.api.names import is_literal
from natsstream.errors import ConfigError
from natsstream.kv.bucket import Bucket
from natsstream.kv.conventions import BUCKET
from natsstream.kv.entry import operation_of
from natsstream.publish.schedule import Ttl
from natsstream.units import duration_ns


async def purge_deletes(bucket: Bucket, older_than: float | timedelta) -> int:
    """Remove old markers, and the history before each marker; see `KeyValue.purge_deletes`."""
    age_ns = duration_ns(older_than)
    if bucket.config.mirror is not None:
        raise ConfigError(
            f"bucket {bucket.name} is a mirror: purge_deletes would remove from the copy alone",
            hint="call it on the origin; mirrors follow",
        )
    stream = bucket.stream
    with BUCKET.translate_errors(bucket.name):
        info = await stream.info()
        # Subject, revision and time of each key whose newest record is a marker.
        filters = [f"{bucket.subjects.read_prefix}>"]
        async with stream.latest(filters=filters, headers_only=True) as tail:
            markers = [
                (each.subject, each.sequence, each.time_ns)
                async for each in tail.initial()
                if operation_of(each) != "PUT" and is_literal(each.subject)
            ]
        limit_ns = info.time_ns - age_ns

        async def remove(marker: tuple[str, int, int]) -> int:
            subject, revision, created_ns = marker
            # At 0 also the markers that are younger than the server's answer.
            is_old = not age_ns or created_ns <= limit_ns
            return await stream.purge(
                subject=subject, last_seq=revision if is_old else revision - 1
            )

        return sum(await at_once(remove, markers))


async def purge_matching(bucket: Bucket, filters: Sequence[str], ttl: Ttl | None) -> int:
    """Purge each key that has a value and matches; see `KeyValue.purge_matching`."""
    if not filters:
        raise ConfigError(
            "purge_matching names no key", hint='purge_matching(">") is the whole bucket'
        )
    await bucket.ttls.check(ttl, is_over_a_value=False)
    subjects = [bucket.subjects.read_filter(each) for each in filters]
    with BUCKET.translate_errors(bucket.name):
        async with bucket.stream.latest(filters=subjects, headers_only=True) as tail:
            found = [
                each
                async for each in tail.initial()
                if operation_of(each) == "PUT" and is_literal(each.subject)
            ]
    return sum(await at_once(lambda each: bucket.purge_message(each, ttl), found))
