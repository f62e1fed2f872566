"""A stream's configuration: typed fields over the JSON that the server speaks.

Law: the server gets back every field that it sent. Fields that this version does not know are kept
in `extra` and sent again; only the caller's changes differ.
Source: nats-server's stream.go StreamConfig; since-versions in parentheses where above 2.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Literal

from natsstream.api.names import check_stream_name
from natsstream.api.settings.field_kinds import (
    DURATION,
    LIMIT,
    SUBJECTS,
    UINT64_MAX,
    FieldKind,
    number,
)
from natsstream.api.settings.limits import ConsumerLimits
from natsstream.api.settings.mapping import Republish, SubjectTransform
from natsstream.api.settings.placement import Placement
from natsstream.api.settings.setting import Setting, json_names
from natsstream.api.settings.source import StreamSource
from natsstream.arguments import check_text
from natsstream.constructors import answers_arguments, given_config
from natsstream.errors import ProtocolError, StreamNameError
from natsstream.fields import Fields

Duration = float | timedelta

REPLICAS_MAX = 5


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamConfig(Setting):
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
        subject_delete_marker_ttl: Seconds that markers of expired subjects stay (2.11). Where
            max_msgs_per_subject is not 1, the server raises a message's shorter ttl to it.
        allow_atomic: Atomic batches (2.12).
        allow_msg_counter: Counters only (2.12).
        allow_msg_schedules: Scheduled messages (2.12).
        persist_mode: "default" or "async" (2.12).
        allow_batched: Fast batches (2.14).
        placement: Cluster and tags.
        mirror: The stream that this one mirrors, or its name.
        sources: The streams that this one copies from, or their names.
        subject_transform: A subject mapping before storing (2.10).
        republish: Copies of what is stored to plain NATS.
        consumer_limits: Defaults and bounds of consumers (2.10).
        metadata: Free text by key. Keys of the server (`_nats.`) and of this library stay.
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

    special_kinds: ClassVar[Mapping[str, FieldKind]] = {
        "subjects": SUBJECTS,
        "replicas": number(1, REPLICAS_MAX).named("num_replicas"),
        "max_msgs": LIMIT,
        "max_bytes": LIMIT,
        "max_msgs_per_subject": LIMIT,
        "max_msg_size": LIMIT,
        "max_consumers": LIMIT,
        "first_seq": number(1, UINT64_MAX),
        "duplicate_window": DURATION.never_zero(
            "their default", "leave it out for the default of 120 seconds; the least is 0.1"
        ),
    }

    def check(self) -> None:
        """Refuse invalid values; parts given as mappings become their classes.

        Raises:
            ConfigError: A field has an invalid value, also in `extra`.
            StreamNameError: The name is not legal.
            SubjectError: A subject is not legal.
        """
        check_stream_name(check_text(self.name, "the stream's name", error=StreamNameError))
        Setting.check(self)
        typed = json_names(StreamConfig)
        known = {name: value for name, value in self.extra.items() if name in typed}
        if known:
            # A field that was unknown once may have a name by now: its rules apply as well.
            # The server itself refuses values that are not its JSON.
            with suppress(ProtocolError):
                StreamConfig.from_json({**known, "name": self.name}).check()

    @classmethod
    def from_call(cls, config: StreamConfig | str, fields: Mapping[str, object]) -> StreamConfig:
        """Return a configuration from itself, or from a name and keywords.

        Raises:
            ConfigError: Both are given, or a field is unknown or has an invalid value.
            StreamNameError: The name is not legal.
            SubjectError: A subject is not legal.
        """
        return given_config(cls, config, fields, "stream")

    @classmethod
    def from_json(cls, body: Mapping[str, object] | Fields) -> StreamConfig:
        """Return the configuration that a server sent; durations become seconds.

        Only the types are checked: other clients make streams that we would refuse to make.

        Raises:
            ProtocolError: It has no name, or a field is of a type that no server sends.
        """
        fields = Fields.of(body, "the configuration of a stream")
        fields.text("name")
        return super(StreamConfig, cls).from_json(fields)

    def with_json(self, body: Mapping[str, object]) -> StreamConfig:
        """Return this configuration with other fields, given by the server's names.

        Cost: no request.
        """
        return StreamConfig.from_json({**self.to_json(), **body}) if body else self

    def _what(self, name: str) -> str:
        return f"{name} of stream {self.name}"
