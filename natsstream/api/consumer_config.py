"""A consumer's configuration: typed fields over the JSON that the server speaks.

Law: the server gets back every field that it sent. Fields that this version does not know are kept
in `extra` and sent again; only the caller's changes differ.
Source: nats-server's consumer.go ConsumerConfig; since-versions in parentheses where above 2.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal, TypeAlias

from natsstream.api import consumer_rules as rules
from natsstream.api.names import check_consumer_name
from natsstream.api.settings.field_kinds import (
    DURATION,
    FILTER_OR_EMPTY,
    FLAG,
    START_TIME,
    UINT64_MAX,
    FieldKind,
    number,
)
from natsstream.api.settings.setting import Setting, json_names
from natsstream.api.stream_config import REPLICAS_MAX, Duration
from natsstream.constructors import answers_arguments
from natsstream.errors import ConfigError
from natsstream.fields import Fields

DeliverPolicy: TypeAlias = Literal[
    "all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"
]
AckPolicy: TypeAlias = Literal["explicit", "all", "none", "flow_control"]
PriorityPolicy: TypeAlias = Literal["none", "overflow", "pinned_client", "prioritized"]

_READS_AS = "their default"
_HINT = "leave it out, or give what you mean; -1 is no limit where one can be"


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConsumerConfig(Setting):
    """The configuration of a consumer: its filters, start, acks and redelivery.

    None in a field means "the server's default", and in an update "as it is"; 0 means 0. Durations
    are seconds or timedelta, times are datetimes with a time zone or Unix nanoseconds.

    Attributes:
        name: Name, at most 255 bytes; None lets natsstream make one up.
        durable: True keeps the consumer until it is deleted, False until it is unused for
            `inactive_threshold`; default True with a name, else False.
        description: At most 4 KiB.
        filters: Subjects that it delivers, which must not overlap; None is all of the stream.
        deliver_policy: Where it starts: "all" (default), "last", "new", "last_per_subject", or
            the policy that `start_seq` or `start_time` implies.
        start_seq: First sequence ("by_start_sequence").
        start_time: First moment ("by_start_time").
        ack_policy: "explicit" (default), "all" (an ack settles those before it), "none", or
            "flow_control" (2.14, for mirrors and sources).
        ack_wait: Seconds until an unsettled message is redelivered; server default 30.
        max_deliver: Deliveries of one message; -1 (default) is no limit.
        backoff: Seconds until each further delivery; replaces `ack_wait`.
        replay_policy: "instant" (default), or "original": at the pace of storing.
        sample_freq: Per cent of acks whose latency the server publishes, such as "30%".
        headers_only: Delivers no payloads; `Nats-Msg-Size` has their size.
        max_ack_pending: Messages in flight; server default 1,000, -1 is no limit.
        inactive_threshold: Seconds without use until the server deletes it; 0 is never for a
            durable consumer, server default 5 for the others.
        replicas: 0 (default) as the stream, else 1 to 5.
        memory_storage: Keeps its state in memory though the stream is in files.
        pause_until: Created paused until then (2.11); later only `pause` and `resume` change it.
        metadata: Free text by key. Keys of the server (`_nats.`) and of this library stay.
        max_waiting: Pull: requests that may be waiting; server default 512.
        max_batch: Pull: messages that one request may ask for; 0 is no limit.
        max_expires: Pull: seconds that one request may wait; 0 is no limit.
        max_bytes: Pull: bytes that one request may ask for; 0 is no limit.
        priority_groups: Pull: one group that requests must name (2.11).
        priority_policy: Pull: "none", "overflow", "pinned_client" or "prioritized" (2.12).
        priority_timeout: Pull: seconds until a silent pinned client loses its pin; server default
            120 (2.11).
        deliver_subject: Push: where the messages go; makes it a push consumer.
        deliver_group: Push: the queue group that shares them.
        flow_control: Push: the server waits for a slow reader; needs `idle_heartbeat`.
        idle_heartbeat: Push: seconds of silence before a heartbeat; at least 0.1.
        rate_limit: Push: bits per second; 0 is no limit.
        extra: Fields that the server sent and this version does not know.
    """

    name: str | None = None
    durable: bool | None = None
    description: str | None = None
    filters: Sequence[str] | None = None
    deliver_policy: DeliverPolicy | None = None
    start_seq: int | None = None
    start_time: datetime | int | None = None
    ack_policy: AckPolicy | None = None
    ack_wait: Duration | None = None
    max_deliver: int | None = None
    backoff: Sequence[Duration] | None = None
    replay_policy: Literal["instant", "original"] | None = None
    sample_freq: str | int | None = None
    headers_only: bool | None = None
    max_ack_pending: int | None = None
    inactive_threshold: Duration | None = None
    replicas: int | None = None
    memory_storage: bool | None = None
    pause_until: datetime | int | None = None
    metadata: Mapping[str, str] | None = None
    max_waiting: int | None = None
    max_batch: int | None = None
    max_expires: Duration | None = None
    max_bytes: int | None = None
    priority_groups: Sequence[str] | None = None
    priority_policy: PriorityPolicy | None = None
    priority_timeout: Duration | None = None
    deliver_subject: str | None = None
    deliver_group: str | None = None
    flow_control: bool | None = None
    idle_heartbeat: Duration | None = None
    rate_limit: int | None = None

    special_kinds: ClassVar[Mapping[str, FieldKind]] = {
        "durable": rules.DURABLE.named("durable_name"),
        "filters": rules.FILTERS.named("filter_subject", "filter_subjects"),
        "start_seq": number(1, UINT64_MAX).named("opt_start_seq"),
        "start_time": START_TIME.named("opt_start_time"),
        "ack_wait": DURATION.never_zero(_READS_AS, _HINT),
        "max_deliver": number(-1).never_zero(_READS_AS, _HINT),
        "sample_freq": rules.SAMPLE,
        "max_ack_pending": number(-1).never_zero(_READS_AS, _HINT),
        "replicas": number(0, REPLICAS_MAX).named("num_replicas"),
        "memory_storage": FLAG.named("mem_storage"),
        "max_waiting": number(1),
        "max_batch": number(0),
        "max_bytes": number(0),
        "priority_groups": rules.GROUPS,
        "deliver_subject": FILTER_OR_EMPTY,
        "rate_limit": number(0, UINT64_MAX).named("rate_limit_bps"),
    }

    def check(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigError: A field has an invalid value, or fields exclude each other.
            ConsumerNameError: The name is not legal.
            SubjectError: A filter is not legal.
        """
        Setting.check(self)
        for name in self.extra:
            if name in json_names(ConsumerConfig):
                raise ConfigError(f"extra has {name}", hint="use the typed field")
        if self.name is not None:
            check_consumer_name(self.name)
        elif self.durable:
            raise ConfigError("a durable consumer needs a name", hint="name='billing'")
        start = {"start_seq": self.start_seq, "start_time": self.start_time}
        rules.check_start(self.deliver_policy, start)
        rules.check_waits(self.backoff, self.ack_wait)

    @property
    def is_durable(self) -> bool:
        """True if the consumer stays until it is deleted."""
        return self.name is not None if self.durable is None else self.durable

    @property
    def is_push(self) -> bool:
        """True if this is a push consumer."""
        return bool(self.deliver_subject)

    def values(self) -> dict[str, object]:
        """Return every field by its Python name, the deliver policy also if a start implies it.

        Cost: no request.
        """
        values = Setting.values(self)
        if self.deliver_policy is None and self.start_seq is not None:
            values["deliver_policy"] = "by_start_sequence"
        elif self.deliver_policy is None and self.start_time is not None:
            values["deliver_policy"] = "by_start_time"
        return values

    def field_json(self, name: str, value: object) -> dict[str, object]:
        """Return the server's fields for one field of this class and its value.

        The server has two names of a consumer, and two fields for filters.
        """
        if name == "name" and self.is_durable:
            return {"name": value, "durable_name": value}
        if name == "durable":
            return {}
        if name == "filters":
            filters: list[object] = list(self.filters or ())
            if len(filters) == 1:
                return {"filter_subject": filters[0]}
            return {"filter_subjects": filters} if filters else {}
        return Setting.field_json(self, name, value)

    @classmethod
    def from_json(cls, body: Mapping[str, object] | Fields) -> ConsumerConfig:
        """Return the configuration that a server sent; only the types are checked.

        Raises:
            ProtocolError: A field is of a type that no server sends.
        """
        fields = Fields.of(body, "the configuration of a consumer")
        config = super(ConsumerConfig, cls).from_json(fields)
        durable = fields.text("durable_name", "")
        object.__setattr__(config, "name", fields.text("name", "") or durable or None)
        object.__setattr__(config, "durable", bool(durable))
        return config

    def _what(self, name: str) -> str:
        return name
