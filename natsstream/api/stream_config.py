"""A stream's configuration: typed fields over the JSON that the server speaks.

Law: the server gets back every field that it sent. Fields that this version does not know are kept
in `extra` and sent again; only the caller's changes differ.
Source: nats-server's stream.go StreamConfig; since-versions in parentheses where above 2.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Literal, cast

from natsstream.api.names import check_filter, check_stream_name
from natsstream.api.settings.limits import ConsumerLimits
from natsstream.api.settings.mapping import Republish, SubjectTransform
from natsstream.api.settings.placement import Placement
from natsstream.api.settings.plain_fields import (
    DURATIONS,
    READERS,
    check_mapping,
    check_plain_fields,
)
from natsstream.api.settings.setting import Reader, Setting, meaning, reads_many, reads_one
from natsstream.api.settings.source import StreamSource
from natsstream.arguments import check_text, check_texts
from natsstream.errors import ProtocolError, StreamNameError
from natsstream.fields import Fields
from natsstream.units import NS_PER_SECOND, duration_ns

Duration = float | timedelta

# Python name -> JSON name, where they differ.
_JSON_NAMES = {"replicas": "num_replicas"}
# Parts with fields of their own; `sources` is a list of them.
_SETTINGS: Mapping[str, type[Setting]] = {
    "placement": Placement,
    "mirror": StreamSource,
    "sources": StreamSource,
    "subject_transform": SubjectTransform,
    "republish": Republish,
    "consumer_limits": ConsumerLimits,
}
# The server writes these into metadata by itself; they are its own, not the user's.
RESERVED_METADATA = "_nats."
_AS_WITHOUT = ("none", "default")
_LEVEL_METADATA = ("_nats.ver", "_nats.level", "_nats.req.level")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """The configuration of a stream: its subjects, limits and storage.

    None in a field means "the server's default"; 0 means 0, and is refused where servers read it
    as something else; -1 is no limit. Durations are seconds or timedelta.
    A field with a class of its own also takes a mapping with the server's field names. An empty
    mapping removes the part: `js.streams.update("COPY", mirror={})`.

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
        duplicate_window: Seconds in which a message id is remembered, at least 0.1; server
            default 120.
        no_ack: True stores without acknowledging; natsstream then refuses to publish.
        compression: "none" (default) or "s2".
        first_seq: First sequence of a new stream; default 1.
        allow_direct: Every replica may answer reads.
        mirror_direct: The same for a mirror.
        sealed: No more writes or deletes; cannot be undone.
        deny_delete: No deletion by sequence; cannot be undone.
        deny_purge: No purge; cannot be undone.
        allow_rollup_hdrs: A message may replace all messages before it.
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
        subject_transform: A subject mapping before storing (2.10).
        republish: Copies of what is stored to plain NATS.
        consumer_limits: Defaults and bounds of consumers (2.10).
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
    placement: Placement | None = None
    mirror: StreamSource | None = None
    sources: Sequence[StreamSource] | None = None
    subject_transform: SubjectTransform | None = None
    republish: Republish | None = None
    consumer_limits: ConsumerLimits | None = None
    metadata: Mapping[str, str] | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse invalid values; parts given as mappings become their classes.

        Raises:
            ConfigError: A field has an invalid value, also in `extra`.
            StreamNameError: The name is not legal.
            SubjectError: A subject is not legal.
        """
        check_stream_name(check_text(self.name, "the stream's name", error=StreamNameError))
        of = f"of stream {self.name}"
        if self.subjects is not None:
            for subject in check_texts(self.subjects, "subjects"):
                check_filter(subject)
        check_plain_fields({name: getattr(self, name) for name in _FIELDS}, of)
        for name, kind in _SETTINGS.items():
            value = getattr(self, name)
            if value is not None:
                take = kind.several if name == "sources" else kind.of
                object.__setattr__(self, name, take(value, f"{name} {of}"))
        extra = check_mapping(self.extra, f"extra {of}")
        known = {cast("str", name): extra[name] for name in extra if name in _PYTHON_NAMES}
        if known:
            # A field that was unknown once may have a name by now: its rules apply as well.
            # The server itself refuses values that are not its JSON.
            with suppress(ProtocolError):
                StreamConfig.from_json({**known, "name": self.name}).check()

    def to_json(self) -> dict[str, object]:
        """Return the JSON object for the server: unknown fields first, then what is set here."""
        body = dict(self.extra)
        for name, json_name in _FIELDS.items():
            value = getattr(self, name)
            if value is None:
                continue
            if name in DURATIONS:
                value = duration_ns(value)
            elif isinstance(value, Setting):
                value = value.to_json()
            elif name == "sources":
                value = [source.to_json() for source in cast("Sequence[StreamSource]", value)]
            body[json_name] = value
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, object] | Fields) -> StreamConfig:
        """Return the configuration that a server sent; durations become seconds.

        Only the types are checked: other clients make streams that we would refuse to make.

        Raises:
            ProtocolError: It has no name, or a field is of a type that no server sends.
        """
        fields = Fields.of(body, "the configuration of a stream")
        known: dict[str, object] = {
            name: _reader(name)(fields, json_name) if fields.has(json_name) else None
            for name, json_name in _FIELDS.items()
        }
        known["name"] = fields.text("name")
        names = set(_FIELDS.values())
        known["extra"] = {name: value for name, value in fields.raw.items() if name not in names}
        config = object.__new__(cls)
        for name, value in known.items():
            object.__setattr__(config, name, value)
        return config

    def given(self) -> dict[str, object]:
        """Return the fields that are set here by their Python names; unknown ones by their JSON's.

        Cost: no request.
        """
        values = {name: getattr(self, name) for name in _FIELDS}
        return {
            **{name: value for name, value in values.items() if value is not None},
            **self.extra,
        }

    def with_json(self, body: Mapping[str, object]) -> StreamConfig:
        """Return this configuration with other fields, given by the server's names.

        Cost: no request.
        """
        return StreamConfig.from_json({**self.to_json(), **body}) if body else self

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
            if name in _SETTINGS:
                # Servers leave out what says nothing, and write times in another form.
                if _meant(name, held) != _meant(name, wanted):
                    changes[name] = wanted
                continue
            if name in DURATIONS and isinstance(held, int):
                # As it was when its seconds were read: a float has no room for every nanosecond.
                held = duration_ns(held / NS_PER_SECOND)
            if name == "metadata":
                held = user_metadata(cast("Mapping[str, str]", held or {}))
                wanted = user_metadata(cast("Mapping[str, str]", wanted))
            if _plain(wanted) != _plain(held) and not (held is None and not says_something(wanted)):
                changes[name] = wanted
        return changes


def _reader(name: str) -> Reader:
    """Return what reads a field of the server's JSON, into the units of the class."""
    kind = _SETTINGS.get(name)
    if kind is None:
        return READERS.get(name, Fields.text)
    return reads_many(kind) if name == "sources" else reads_one(kind)


def _meant(name: str, value: object) -> object:
    """Return a part's JSON in a form that can be compared; None if it is empty."""
    if not value:
        return None
    read = _reader(name)(Fields({name: value}, "the configuration of a stream"), name)
    if name == "sources":
        return meaning([source.to_json() for source in cast("Sequence[Setting]", read)])
    return meaning(cast("Setting", read).to_json())


def python_name(json_name: str) -> str:
    """Return the Python name of a field in the server's JSON."""
    return _PYTHON_NAMES.get(json_name, json_name)


def json_name(python_name: str) -> str:
    """Return the name of a field in the server's JSON."""
    return _JSON_NAMES.get(python_name, python_name)


def says_something(value: object) -> bool:
    """Return True unless a value means the same as leaving the field out."""
    return bool(value) and value not in _AS_WITHOUT


def user_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return metadata without the keys that the server writes itself."""
    return {key: value for key, value in metadata.items() if not key.startswith(RESERVED_METADATA)}


def without_levels(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return metadata without the levels of the server that it comes from (ADR-44)."""
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
_PYTHON_NAMES: Mapping[object, str] = {json_name: name for name, json_name in _FIELDS.items()}
