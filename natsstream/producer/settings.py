"""The settings that a stream needs for a producer, and those that it lacks; pure rules.

Law: the setting that the server has counts, not the one that was asked for: older servers drop what
they do not know.
"""

from __future__ import annotations

from natsstream.api.config_fields import StreamFields
from natsstream.api.control import CONTROL_KEY, captured, expected_control, named_control
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.errors import ConfigError
from natsstream.producer.options import Mode
from natsstream.streams.nearest import VIEWS


def missing_settings(
    config: StreamConfig,
    *,
    mode: Mode,
    created_ns: int,
    has_fast: bool,
    has_ttl: bool,
    takes_ttl: bool,
) -> StreamFields:
    """Return the fields to update so that a producer can write to a stream; empty for none.

    Args:
        config: The stream's configuration.
        mode: How the producer writes.
        created_ns: The stream's identity.
        has_fast: Whether the servers have fast batches.
        has_ttl: Whether the servers have message TTLs.
        takes_ttl: Whether an update may turn them on.

    Raises:
        ConfigError: No update of the stream would do.
    """
    _check(config, has_ttl=has_ttl, takes_ttl=takes_ttl)
    lacks: StreamFields = {}
    if mode == "shared" and not config.allow_atomic:
        lacks["allow_atomic"] = True
    if mode == "exclusive" and has_fast and not config.allow_batched:
        lacks["allow_batched"] = True
    if not config.allow_rollup_hdrs and not config.deny_purge:
        lacks["allow_rollup_hdrs"] = True
    # Else the state record expires with the messages, also under a max_age that is set later.
    if has_ttl and takes_ttl and not config.allow_msg_ttl:
        lacks["allow_msg_ttl"] = True
    control = named_control(config)
    if control is None:
        control = expected_control(config, created_ns)
        lacks["metadata"] = {**(config.metadata or {}), CONTROL_KEY: control.prefix}
    # Also of a prefix that was named before: updates of the stream may take its subjects away.
    subjects = config.subjects or [config.name]
    wanted = captured(subjects, control)
    if wanted != list(subjects):
        lacks["subjects"] = wanted
    return lacks


def _check(config: StreamConfig, *, has_ttl: bool, takes_ttl: bool) -> None:
    """Refuse a stream that can hold no producer's state.

    Raises:
        ConfigError: It cannot.
    """
    if config.name.startswith(tuple(VIEWS)):
        raise _unfit(config, "it holds a bucket", f"write with {' or '.join(VIEWS.values())}")
    if config.mirror is not None:
        raise _unfit(config, "it is a mirror", "publish into the stream that it mirrors")
    if config.no_ack:
        raise _unfit(config, "it has no_ack", "js.streams.update(name, no_ack=False)")
    if config.retention not in (None, "limits"):
        raise _unfit(
            config,
            f"its retention is {config.retention}, under which the state record would vanish",
            "take a stream with retention='limits', and let a work queue source it",
        )
    if config.max_age and not has_ttl:
        raise _unfit(
            config,
            "its max_age would remove the state record, which only nats-server 2.11 can prevent",
            "upgrade the server, or js.streams.update(name, max_age=0)",
        )
    if config.max_age and not (config.allow_msg_ttl or takes_ttl):
        raise _unfit(
            config,
            "its max_age would remove the state record, and a cluster of servers before 2.14 may "
            "lose a stream with one replica whose allow_msg_ttl is turned on later",
            "create it with allow_msg_ttl=True, or with three replicas, or upgrade the servers",
        )
    if config.persist_mode == "async":
        raise _unfit(
            config, "it has persist_mode='async'", "js.streams.update(name, persist_mode='default')"
        )


def may_have_forgotten(info: StreamInfo) -> bool:
    """Return True if a stream may have removed the state record of a producer that was away.

    Limits of messages and bytes remove it with other old messages; an age does not.
    """
    limits = (info.config.max_msgs, info.config.max_bytes)
    has_limit = any(limit is not None and limit > 0 for limit in limits)
    return has_limit and info.config.discard != "new" and info.state.first_seq > 1


def _unfit(config: StreamConfig, why: str, hint: str) -> ConfigError:
    return ConfigError(f"stream {config.name} cannot have a producer: {why}", hint=hint)
