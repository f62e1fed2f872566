"""Which streams keep dead letters until they are dropped; pure rules.

Law: a letter that was acknowledged stays. A stream that makes room for a new one by dropping its
oldest loses letters without a word, whatever its workers count; one that is full has to refuse.
"""

from __future__ import annotations

from natsstream.api.stream_config import StreamConfig
from natsstream.errors import ConfigError

REFUSES_NEW = "new"
"""The `discard` of a dead-letter stream: a full one refuses, and the message stays where it is."""


def evicts(config: StreamConfig) -> bool:
    """Tell whether a stream that is full drops its oldest messages for new ones."""
    limits = (config.max_msgs, config.max_bytes)
    return config.discard != REFUSES_NEW and any(limit and limit > 0 for limit in limits)


def check_keeps(config: StreamConfig) -> None:
    """Refuse a stream that was made by hand so that it can not keep letters, or not say so.

    Raises:
        ConfigError: It forgets messages when others come or are read, or acknowledges nothing.
    """
    if config.retention in ("workqueue", "interest"):
        raise _refusal(
            config,
            f"has retention {config.retention!r}",
            "letters are kept until they are dropped, which needs retention 'limits'",
        )
    if config.max_msgs_per_subject and config.max_msgs_per_subject > 0:
        raise _refusal(
            config,
            f"keeps {config.max_msgs_per_subject} messages of each subject",
            "the server tells of all dead messages of a consumer on one subject: raise "
            "max_msgs_per_subject to -1",
        )
    if config.no_ack:
        raise _refusal(
            config,
            "has no_ack: it would not say what it stored",
            f"js.streams.update({config.name!r}, no_ack=False)",
        )


def _refusal(config: StreamConfig, what: str, hint: str) -> ConfigError:
    return ConfigError(f"dead-letter stream {config.name} {what}", hint=hint)
