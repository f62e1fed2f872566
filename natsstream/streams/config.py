"""A stream's configuration: typed fields over the JSON that the server speaks.

Law: what the server sent goes back whole. Fields that this version does not know are kept in
`extra` and sent again; only what the caller changes is changed.
Source: nats-server's stream.go StreamConfig; since-versions in parentheses where above 2.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Literal, cast

from natsstream.errors import ConfigError
from natsstream.streams.names import check_filter, check_stream_name
from natsstream.units import NS_PER_SECOND, duration_ns

Duration = float | timedelta

# Python name -> JSON name, where they differ.
_JSON_NAMES = {"replicas": "num_replicas"}
_DURATIONS = ("max_age", "duplicate_window", "subject_delete_marker_ttl")
# The server writes these into metadata by itself; they are its own, not the user's.
RESERVED_METADATA = "_nats."
_AS_WITHOUT = ("none", "default")
_LEVEL_METADATA = ("_nats.ver", "_nats.level", "_nats.req.level")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """What a stream stores, for how long, and where.

    None in a field means "the server's default"; 0 means 0. Durations are seconds or timedelta.

    Attributes:
        name: Name, at most 255 bytes.
        subjects: Subjects that it captures; default the name itself. None for a mirror.
        description: At most 4 KiB.
        retention: "limits" (default), "interest" or "workqueue".
        storage: "file" (default) or "memory".
        replicas: 1 to 5; default 1.
        max_msgs: Messages kept; -1 is no limit.
        max_bytes: Bytes kept; -1 is no limit.
        max_age: Seconds kept; 0 is no limit.
        max_msgs_per_subject: Messages kept for each subject; -1 is no limit.
        max_msg_size: Bytes of one message, headers included; -1 is no limit.
        max_consumers: Consumers allowed; -1 is no limit.
        discard: "old" (default) or "new": which message yields at a limit.
        discard_new_per_subject: With discard "new", also at max_msgs_per_subject.
        duplicate_window: Seconds in which a message id is remembered; server default 120.
        no_ack: True stores without acknowledging; natsstream then refuses to publish.
        compression: "none" (default) or "s2".
        first_seq: First sequence of a new stream.
        allow_direct: Lets every replica answer reads.
        mirror_direct: The same for a mirror.
        sealed: No writes or deletes any more; can not be taken back.
        deny_delete: No deletion by sequence; can not be taken back.
        deny_purge: No purge; can not be taken back.
        allow_rollup_hdrs: Lets a message replace those before it.
        allow_msg_ttl: Per-message time to live (2.11).
        subject_delete_marker_ttl: Seconds that markers of expired subjects stay (2.11).
        allow_atomic: Atomic batches (2.12).
        allow_msg_counter: Counters only (2.12).
        allow_msg_schedules: Scheduled messages (2.12).
        persist_mode: "default" or "async" (2.12).
        allow_batched: Fast batches (2.14).
        placement: Cluster and tags.
        mirror: The stream that this one mirrors.
        sources: The streams that this one copies from.
        subject_transform: Source and destination of a subject mapping.
        republish: Source and destination of a copy to core NATS.
        consumer_limits: Defaults and bounds of consumers.
        metadata: Free text by key; `_nats.` keys belong to the server.
        extra: Fields that the server sent and this version does not know.
    """

    name: str
    subjects: Sequence[str] | None = None
    description: str | None = None
    retention: Literal["limits", "interest", "workqueue"] | None = None
    storage: Literal["file", "memory"] | None = None
    replicas: int | None = None
    max_msgs: int | None = None
    max_bytes: int | None = None
    max_age: Duration | None = None
    max_msgs_per_subject: int | None = None
    max_msg_size: int | None = None
    max_consumers: int | None = None
    discard: Literal["old", "new"] | None = None
    discard_new_per_subject: bool | None = None
    duplicate_window: Duration | None = None
    no_ack: bool | None = None
    compression: Literal["none", "s2"] | None = None
    first_seq: int | None = None
    allow_direct: bool | None = None
    mirror_direct: bool | None = None
    sealed: bool | None = None
    deny_delete: bool | None = None
    deny_purge: bool | None = None
    allow_rollup_hdrs: bool | None = None
    allow_msg_ttl: bool | None = None
    subject_delete_marker_ttl: Duration | None = None
    allow_atomic: bool | None = None
    allow_msg_counter: bool | None = None
    allow_msg_schedules: bool | None = None
    persist_mode: Literal["default", "async"] | None = None
    allow_batched: bool | None = None
    placement: Mapping[str, object] | None = None
    mirror: Mapping[str, object] | None = None
    sources: Sequence[Mapping[str, object]] | None = None
    subject_transform: Mapping[str, object] | None = None
    republish: Mapping[str, object] | None = None
    consumer_limits: Mapping[str, object] | None = None
    metadata: Mapping[str, str] | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        check_stream_name(self.name)
        if isinstance(self.subjects, str):
            raise ConfigError(
                f"subjects of stream {self.name} is one string",
                hint=f"give a list: subjects=[{self.subjects!r}]",
            )
        for subject in self.subjects or ():
            check_filter(subject)
        if self.replicas is not None and not 1 <= self.replicas <= 5:
            raise ConfigError(f"replicas of stream {self.name} must be 1 to 5, got {self.replicas}")
        for name in _DURATIONS:
            if getattr(self, name) is not None:
                duration_ns(getattr(self, name))

    def to_json(self) -> dict[str, object]:
        """Return the JSON object for the server: unknown fields first, then what is set here."""
        body = dict(self.extra)
        for name, json_name in _FIELDS.items():
            value = getattr(self, name)
            if value is None:
                continue
            body[json_name] = duration_ns(value) if name in _DURATIONS else value
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> StreamConfig:
        """Return the configuration that a server sent; durations become seconds.

        Nothing is checked: other clients make streams that we would refuse to make.
        """
        known: dict[str, object] = {**dict.fromkeys(_FIELDS)}
        for name, json_name in _FIELDS.items():
            value = body.get(json_name)
            if value is None:
                continue
            known[name] = cast("int", value) / NS_PER_SECOND if name in _DURATIONS else value
        names = set(_FIELDS.values())
        known["extra"] = {name: value for name, value in body.items() if name not in names}
        config = object.__new__(cls)
        for name, value in known.items():
            object.__setattr__(config, name, value)
        return config

    def changes_from(self, current: Mapping[str, object]) -> dict[str, object]:
        """Return the JSON fields whose value here differs from the server's.

        Args:
            current: The configuration as the server has it.

        Returns:
            JSON name to wanted value; empty when nothing that is set here differs. Metadata is
            compared without the server's own keys.
        """
        changes: dict[str, object] = {}
        for name, value in self.to_json().items():
            held, wanted = current.get(name), value
            if name in _DURATIONS and isinstance(held, int):
                # As it was when its seconds were read: a float has no room for every nanosecond.
                held = duration_ns(held / NS_PER_SECOND)
            if name == "metadata":
                held = user_metadata(cast("Mapping[str, str]", held or {}))
                wanted = user_metadata(cast("Mapping[str, str]", wanted))
            if _plain(wanted) != _plain(held) and not (held is None and not says_something(wanted)):
                changes[name] = wanted
        return changes


def says_something(value: object) -> bool:
    """Tell whether a field's value differs from what a server without the field does."""
    return bool(value) and value not in _AS_WITHOUT


def user_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return metadata without the keys that the server writes itself."""
    return {key: value for key, value in metadata.items() if not key.startswith(RESERVED_METADATA)}


def without_levels(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return metadata without what it says of the server that it comes from (ADR-44)."""
    return {key: value for key, value in metadata.items() if key not in _LEVEL_METADATA}


def _plain(value: object) -> object:
    """Return sequences as lists and mappings as dicts, so that equal content compares equal."""
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {key: _plain(item) for key, item in items}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in cast("Sequence[object]", value)]
    return value


_FIELDS = {
    item.name: _JSON_NAMES.get(item.name, item.name)
    for item in fields(StreamConfig)
    if item.name != "extra"
}
