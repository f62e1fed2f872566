"""A consumer's configuration: typed fields over the JSON that the server speaks.

Law: the server gets back every field that it sent. Fields that this version does not know are kept
in `extra` and sent again; only the caller's changes differ.
Source: nats-server's consumer.go ConsumerConfig; since-versions in parentheses where above 2.10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, TypeAlias, cast

from natsstream.api import consumer_rules as rules
from natsstream.api.names import check_consumer_name, check_filter
from natsstream.api.settings.setting import Reader, read_time
from natsstream.api.stream_config import Duration
from natsstream.errors import ConfigError
from natsstream.fields import Fields
from natsstream.units import (
    NS_PER_SECOND,
    duration_ns,
    format_rfc3339,
    time_to_ns,
)

DeliverPolicy: TypeAlias = Literal[
    "all", "last", "new", "by_start_sequence", "by_start_time", "last_per_subject"
]
AckPolicy: TypeAlias = Literal["explicit", "all", "none", "flow_control"]
PriorityPolicy: TypeAlias = Literal["none", "overflow", "pinned_client", "prioritized"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
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
        metadata: Free text by key; `_nats.` keys belong to the server.
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
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        for name in _SEVERAL:
            # Kept as it is now: an iterator would be empty after the check, a list may change.
            object.__setattr__(self, name, rules.kept(name, getattr(self, name)))
        rules.check_fields(self.given())
        rules.check_extra(self.extra, KNOWN_JSON)
        if self.name is not None:
            check_consumer_name(self.name)
        elif self.durable:
            raise ConfigError("a durable consumer needs a name", hint="name='billing'")
        if self.deliver_subject:
            check_filter(self.deliver_subject)
        start = {"start_seq": self.start_seq, "start_time": self.start_time}
        rules.check_start(self.deliver_policy, start)
        rules.check_waits({"backoff": self.backoff, "ack_wait": self.ack_wait})

    @property
    def is_durable(self) -> bool:
        """True if the consumer stays until it is deleted."""
        return self.name is not None if self.durable is None else self.durable

    @property
    def is_push(self) -> bool:
        """True if this is a push consumer."""
        return bool(self.deliver_subject)

    def given(self) -> dict[str, object]:
        """Return the fields that are set, `extra` not among them, by their Python names."""
        values = {name: getattr(self, name) for name in FIELD_NAMES}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def starts_with(self) -> DeliverPolicy:
        """The deliver policy, also if a start implies it."""
        if self.deliver_policy is not None:
            return self.deliver_policy
        if self.start_seq is not None:
            return "by_start_sequence"
        return "all" if self.start_time is None else "by_start_time"

    def to_json(self) -> dict[str, object]:
        """Return the JSON object for the server: unknown fields first, then what is set here."""
        body = dict(self.extra)
        for name in self.given():
            body.update(self.field_json(name))
        if self.name is not None and self.is_durable:
            body["durable_name"] = self.name
        if self.starts_with != "all":
            body["deliver_policy"] = self.starts_with
        return body

    def field_json(self, name: str) -> dict[str, object]:
        """Return the JSON fields that one field becomes; none if it is not set."""
        value = getattr(self, name)
        return {} if value is None else _to_json(name, value)

    @classmethod
    def from_json(cls, body: Mapping[str, object] | Fields) -> ConsumerConfig:
        """Return the configuration that a server sent; only the types are checked.

        Raises:
            ProtocolError: A field is of a type that no server sends.
        """
        fields = Fields.of(body, "the configuration of a consumer")
        known: dict[str, Any] = dict.fromkeys(FIELD_NAMES)
        for name, json_name in _JSON_NAMES.items():
            if fields.has(json_name):
                known[name] = _READERS.get(name, Fields.text)(fields, json_name)
        durable = fields.text("durable_name", "")
        known["name"] = fields.text("name", "") or durable or None
        known["durable"] = bool(durable)
        filters = fields.texts("filter_subjects") or [fields.text("filter_subject", "")]
        known["filters"] = tuple(each for each in filters if each) or None
        raw = fields.raw.items()
        known["extra"] = {name: value for name, value in raw if name not in KNOWN_JSON}
        config = object.__new__(cls)
        for name, value in known.items():
            object.__setattr__(config, name, value)
        return config


def _to_json(name: str, value: Any) -> dict[str, object]:
    """Return the JSON fields that one field becomes."""
    if name == "filters":
        filters = list(cast("Sequence[str]", value))
        if len(filters) == 1:
            return {"filter_subject": filters[0]}
        return {"filter_subjects": filters} if filters else {}
    if name == "durable":
        return {}
    json_name = _JSON_NAMES[name]
    if name in rules.DURATIONS:
        return {json_name: duration_ns(value)}
    if name in rules.TIMES:
        return {json_name: _short_time(time_to_ns(value))}
    if name == "backoff":
        return {json_name: [duration_ns(wait) for wait in value]}
    if name == "sample_freq":
        return {json_name: rules.sample_text(value)}
    if name == "priority_groups":
        return {json_name: list(value)}
    return {json_name: dict(value) if name == "metadata" else value}


def _groups(fields: Fields, name: str) -> object:
    return tuple(fields.texts(name))


def _waits(fields: Fields, name: str) -> object:
    return tuple(wait / NS_PER_SECOND for wait in fields.integers(name))


# Readers of the fields that are no texts in the server's JSON.
_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(rules.DURATIONS, Fields.seconds),
    **dict.fromkeys(rules.NUMBERS, Fields.integer),
    **dict.fromkeys(rules.SWITCHES, Fields.flag),
    # A datetime has microseconds: finer times stay numbers, so that a copy is exact.
    **dict.fromkeys(rules.TIMES, read_time),
    "replicas": Fields.integer,
    "metadata": Fields.words,
    "priority_groups": _groups,
    "backoff": _waits,
}


def _short_time(time_ns: int) -> str:
    """Return a time as Go writes it, without zeros at the end, so that an echo compares equal."""
    return format_rfc3339(time_ns)[:-1].rstrip("0").removesuffix(".") + "Z"


FIELD_NAMES = tuple(item.name for item in fields(ConsumerConfig) if item.name != "extra")
"""The Python names of all fields but `extra`."""

_SEVERAL = ("filters", "priority_groups", "backoff")

_RENAMED = {
    "start_seq": "opt_start_seq",
    "start_time": "opt_start_time",
    "rate_limit": "rate_limit_bps",
    "replicas": "num_replicas",
    "memory_storage": "mem_storage",
}
# Python name -> JSON name of the fields that have one of each.
_JSON_NAMES = {
    name: _RENAMED.get(name, name) for name in FIELD_NAMES if name not in ("durable", "filters")
}
KNOWN_JSON = {*_JSON_NAMES.values(), "durable_name", "filter_subject", "filter_subjects"}
