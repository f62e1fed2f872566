"""Which life times a bucket's records may have; pure rules.

Law: a life time that is asked for is the one that is stored, and what has expired stays gone.
"""

from __future__ import annotations

from natsstream.api.stream_config import StreamConfig
from natsstream.errors import ConfigError
from natsstream.publish.schedule import Ttl, ttl_text
from natsstream.units import NS_PER_SECOND, duration_ns


def check_ttl(config: StreamConfig, bucket: str, ttl: Ttl | None, *, is_over_a_value: bool) -> None:
    """Refuse a life time that a bucket with a history would not keep.

    Args:
        config: The stream's configuration, as far as this connection knows it.
        bucket: The bucket, for errors.
        ttl: The life time; None is none.
        is_over_a_value: True where the record may stand over an older value of its key, which would
            be the newest one again when the record expires.

    Raises:
        ConfigError: It has no legal value, or the bucket keeps a history and would not keep it.

    Source: ADR-48; nats-server's stream.go, which raises a ttl to `subject_delete_marker_ttl`
    where `max_msgs_per_subject` is not 1, and says nothing.
    """
    if ttl is None:
        return
    text = ttl_text(ttl)
    history = config.max_msgs_per_subject
    if history == 1 or config.mirror is not None:  # A mirror's history is not its origin's.
        return
    if is_over_a_value:
        raise ConfigError(
            f"bucket {bucket} keeps {history} revisions of a key: when a value of put() or "
            "update() expires, the one before it would be there again",
            hint="use create(key, value, ttl=...), or a bucket with history=1",
        )
    shortest_s = duration_ns(config.subject_delete_marker_ttl or 0) // NS_PER_SECOND
    if text != "never" and int(text) < shortest_s:
        raise ConfigError(
            f"bucket {bucket} keeps {history} revisions of a key: the server would make a ttl of "
            f"{text} s the {shortest_s} s of its limit_marker_ttl",
            hint=f"give at least {shortest_s}, lower limit_marker_ttl, or use history=1",
        )
