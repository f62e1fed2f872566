"""The fields of configurations as keywords, for editors, type checkers and `help()`.

Generated, do not edit: `scripts/generate_config_fields` wrote this file from the classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypedDict

from natsstream.api.consumer_config import AckPolicy, DeliverPolicy, PriorityPolicy
from natsstream.api.settings.limits import ConsumerLimits
from natsstream.api.settings.mapping import Republish, SubjectTransform
from natsstream.api.settings.placement import Placement
from natsstream.api.settings.source import StreamSource
from natsstream.api.stream_config import Duration


class StreamFields(TypedDict, total=False):
    """The fields of `StreamConfig`, without the name; see there."""

    subjects: list[str] | tuple[str, ...] | None
    description: str | None
    retention: Literal["limits", "interest", "workqueue"] | None
    storage: Literal["file", "memory"] | None
    replicas: int | None
    max_msgs: int | None
    max_bytes: int | None
    max_age: Duration | None
    max_msgs_per_subject: int | None
    max_msg_size: int | None
    max_consumers: int | None
    discard: Literal["old", "new"] | None
    discard_new_per_subject: bool | None
    duplicate_window: Duration | None
    no_ack: bool | None
    compression: Literal["none", "s2"] | None
    first_seq: int | None
    allow_direct: bool | None
    mirror_direct: bool | None
    sealed: bool | None
    deny_delete: bool | None
    deny_purge: bool | None
    allow_rollup_hdrs: bool | None
    allow_msg_ttl: bool | None
    subject_delete_marker_ttl: Duration | None
    allow_atomic: bool | None
    allow_msg_counter: bool | None
    allow_msg_schedules: bool | None
    persist_mode: Literal["default", "async"] | None
    allow_batched: bool | None
    placement: Placement | Mapping[str, object] | None
    mirror: StreamSource | Mapping[str, object] | str | None
    sources: Sequence[StreamSource | Mapping[str, object] | str] | None
    subject_transform: SubjectTransform | Mapping[str, object] | None
    republish: Republish | Mapping[str, object] | None
    consumer_limits: ConsumerLimits | Mapping[str, object] | None
    metadata: Mapping[str, str] | None
    extra: Mapping[str, object]


class ConsumerFields(TypedDict, total=False):
    """The fields of `ConsumerConfig`, without the name; see there."""

    durable: bool | None
    description: str | None
    filters: list[str] | tuple[str, ...] | None
    deliver_policy: DeliverPolicy | None
    start_seq: int | None
    start_time: datetime | int | None
    ack_policy: AckPolicy | None
    ack_wait: Duration | None
    max_deliver: int | None
    backoff: Sequence[Duration] | None
    replay_policy: Literal["instant", "original"] | None
    sample_freq: str | int | None
    headers_only: bool | None
    max_ack_pending: int | None
    inactive_threshold: Duration | None
    replicas: int | None
    memory_storage: bool | None
    pause_until: datetime | int | None
    metadata: Mapping[str, str] | None
    max_waiting: int | None
    max_batch: int | None
    max_expires: Duration | None
    max_bytes: int | None
    priority_groups: list[str] | tuple[str, ...] | None
    priority_policy: PriorityPolicy | None
    priority_timeout: Duration | None
    deliver_subject: str | None
    deliver_group: str | None
    flow_control: bool | None
    idle_heartbeat: Duration | None
    rate_limit: int | None
    extra: Mapping[str, object]


class BucketFields(TypedDict, total=False):
    """The fields of `BucketConfig`, without the name; see there."""

    description: str | None
    ttl: Duration | None
    max_bytes: int | None
    storage: Literal["file", "memory"] | None
    replicas: int | None
    placement: Placement | Mapping[str, object] | None
    compression: bool | None
    metadata: Mapping[str, str] | None
    history: int | None
    max_value_size: int | None
    republish: Republish | Mapping[str, object] | None
    mirror: StreamSource | Mapping[str, object] | str | None
    sources: Sequence[StreamSource | Mapping[str, object] | str] | None
    limit_marker_ttl: Duration | None
    extra: Mapping[str, object]


class ObjectBucketFields(TypedDict, total=False):
    """The fields of `ObjectBucketConfig`, without the name; see there."""

    description: str | None
    ttl: Duration | None
    max_bytes: int | None
    storage: Literal["file", "memory"] | None
    replicas: int | None
    placement: Placement | Mapping[str, object] | None
    compression: bool | None
    metadata: Mapping[str, str] | None
    extra: Mapping[str, object]
