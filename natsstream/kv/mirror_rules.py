"""Which mirrors would make reads of another bucket wrong; a pure rule.

Law: a mirror answers direct reads of its origin's name, as one of its replicas. A mirror with fewer
keys answers that a key does not exist; one with a longer ttl has expired keys; one whose origin is
elsewhere answers for the bucket of the same name here. Reads of that bucket are then wrong by
chance, from every client, so such a mirror is not created.
Source: nats-server stream.go subscribeToMirrorDirect; it takes `mirror_direct` from a known origin,
so a client cannot turn it off. Seen on 2.15.1: tests/integration/kv/test_places.py.
"""

from __future__ import annotations

from natsstream.api.stream_config import StreamConfig
from natsstream.units import duration_ns


def why_harmful(mirroring: StreamConfig, named: StreamConfig) -> str:
    """Return why a mirror would make reads of another bucket wrong; empty if it would not.

    Args:
        mirroring: The wanted stream of the mirror.
        named: The stream with the origin's name here: the origin, or, if that is elsewhere, another
            stream.
    """
    mirror = mirroring.mirror
    if mirror is None or not named.allow_direct:
        return ""
    if mirror.external is not None or mirror.domain is not None:
        if not mirroring.mirror_direct:
            return ""
        return f"there is another {named.name} here, whose reads it would answer"
    # Servers give a mirror whose origin they know the origin's word on direct reads.
    other = [
        name
        for name, value in (
            ("filter", mirror.filter),
            ("transforms", mirror.transforms),
            ("start_seq", mirror.start_seq),
            ("start_time", mirror.start_time),
            ("ttl", duration_ns(mirroring.max_age or 0) != duration_ns(named.max_age or 0)),
        )
        if value
    ]
    if not other:
        return ""
    return (
        f"by its {' and '.join(other)} it has other keys than {named.name}, whose reads it answers"
    )
