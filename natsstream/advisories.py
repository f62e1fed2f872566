"""JetStream's advisories as typed objects: `async for event in js.advisories()`.

Law: nothing that a server tells is dropped. A kind that is not known here becomes an
`UnknownAdvisory`, and every event has the server's own object in `raw`.

Source: nats-server's jetstream_events.go; the schemas io.nats.jetstream.advisory.v1.*.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Literal

from natsstream.errors import NatsStreamError, ProtocolError
from natsstream.fields import Fields
from natsstream.units import parse_rfc3339, time_from_ns

AdvisoryKind = Literal[
    "max_deliveries", "msg_terminated", "msg_naked",
    "consumer_created", "consumer_deleted", "consumer_paused",
    "consumer_pinned", "consumer_unpinned", "consumer_leader_elected", "consumer_quorum_lost",
    "stream_created", "stream_updated", "stream_deleted", "stream_batch_abandoned",
    "stream_leader_elected", "stream_quorum_lost",
    "snapshot_created", "snapshot_completed", "restore_created", "restore_completed",
    "domain_leader_elected", "server_out_of_storage", "server_removed", "meta_rescue",
    "api_limit_reached", "api_audit", "consumer_ack",
]  # fmt: skip
"""The kinds of advisories; `api_audit` is one for each API call, and comes only when asked for."""

# The tokens after `$JS.EVENT.` of each kind; names of streams and consumers follow.
KINDS: Mapping[str, str] = {
    "max_deliveries": "ADVISORY.CONSUMER.MAX_DELIVERIES",
    "msg_terminated": "ADVISORY.CONSUMER.MSG_TERMINATED",
    "msg_naked": "ADVISORY.CONSUMER.MSG_NAKED",
    "consumer_created": "ADVISORY.CONSUMER.CREATED",
    "consumer_deleted": "ADVISORY.CONSUMER.DELETED",
    "consumer_paused": "ADVISORY.CONSUMER.PAUSE",
    "consumer_pinned": "ADVISORY.CONSUMER.PINNED",
    "consumer_unpinned": "ADVISORY.CONSUMER.UNPINNED",
    "consumer_leader_elected": "ADVISORY.CONSUMER.LEADER_ELECTED",
    "consumer_quorum_lost": "ADVISORY.CONSUMER.QUORUM_LOST",
    "stream_created": "ADVISORY.STREAM.CREATED",
    "stream_updated": "ADVISORY.STREAM.UPDATED",
    "stream_deleted": "ADVISORY.STREAM.DELETED",
    "stream_batch_abandoned": "ADVISORY.STREAM.BATCH_ABANDONED",
    "stream_leader_elected": "ADVISORY.STREAM.LEADER_ELECTED",
    "stream_quorum_lost": "ADVISORY.STREAM.QUORUM_LOST",
    "snapshot_created": "ADVISORY.STREAM.SNAPSHOT_CREATE",
    "snapshot_completed": "ADVISORY.STREAM.SNAPSHOT_COMPLETE",
    "restore_created": "ADVISORY.STREAM.RESTORE_CREATE",
    "restore_completed": "ADVISORY.STREAM.RESTORE_COMPLETE",
    "domain_leader_elected": "ADVISORY.DOMAIN.LEADER_ELECTED",
    "server_out_of_storage": "ADVISORY.SERVER.OUT_OF_STORAGE",
    "server_removed": "ADVISORY.SERVER.REMOVED",
    "meta_rescue": "ADVISORY.SERVER.META_RESCUE",
    "api_limit_reached": "ADVISORY.API.LIMIT_REACHED",
    "api_audit": "ADVISORY.API",
    "consumer_ack": "METRIC.CONSUMER.ACK",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Advisory:
    """An advisory of JetStream.

    Attributes:
        kind: The kind, see `AdvisoryKind`; empty if unknown.
        subject: Subject of the advisory.
        type: The server's name of its schema.
        id: The server's id of this advisory.
        time_ns: When it happened, Unix nanoseconds.
        stream: The stream; empty for none.
        consumer: The consumer; empty for none.
        account: The account, if the server sends it.
        domain: The JetStream domain, if there is one.
        raw: The whole object of the server.
    """

    kind: str = ""
    subject: str = ""
    type: str = ""
    id: str = ""
    time_ns: int = 0
    stream: str = ""
    consumer: str = ""
    account: str = ""
    domain: str = ""
    raw: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)

    @property
    def time(self) -> datetime:
        """When it happened, UTC, cut to microseconds."""
        return time_from_ns(self.time_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownAdvisory(Advisory):
    """An advisory of an unknown kind or form.

    Attributes:
        data: The message's payload.
    """

    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisoriesInterrupted(Advisory):
    """The connection broke: advisories may be missing. Check your own state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Delivery(Advisory):
    stream_seq: int = 0
    deliveries: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxDeliveries(_Delivery):
    """A message was delivered `max_deliver` times and is not redelivered.

    Attributes:
        stream_seq: Its sequence.
        deliveries: How often it was delivered.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageTerminated(_Delivery):
    """A consumer terminated a message.

    Attributes:
        stream_seq: Its sequence.
        deliveries: How often it was delivered.
        consumer_seq: Number of this delivery.
        reason: Reason given by the consumer.
    """

    consumer_seq: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageNaked(_Delivery):
    """A consumer nacked a message.

    Attributes:
        stream_seq: Its sequence.
        deliveries: How often it was delivered.
        consumer_seq: Number of this delivery.
    """

    consumer_seq: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerAction(Advisory):
    """A consumer was created or deleted.

    Attributes:
        action: "create" or "delete".
    """

    action: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPaused(Advisory):
    """A consumer was paused or resumed.

    Attributes:
        paused: True if it was paused.
        pause_until: RFC 3339 time at which it resumes by itself; empty for none.
    """

    paused: bool = False
    pause_until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPinned(Advisory):
    """A priority group has pinned another client.

    Attributes:
        group: The group.
        pinned_id: The client's new pin id.
    """

    group: str = ""
    pinned_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerUnpinned(Advisory):
    """A client of a priority group has lost its pin.

    Attributes:
        group: The group.
        reason: "admin" or "timeout".
    """

    group: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElected(Advisory):
    """A stream, a consumer or a domain has a new leader; `kind` says which.

    Attributes:
        leader: The server's name.
        cluster: The cluster, for a domain.
    """

    leader: str = ""
    cluster: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumLost(Advisory):
    """A stream or a consumer has lost its quorum; `kind` says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAction(Advisory):
    """A stream was created, updated or deleted.

    Attributes:
        action: "create", "modify" or "delete".
    """

    action: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAbandoned(Advisory):
    """A batch was abandoned; a refused commit is not reported.

    Attributes:
        batch: Its id.
        reason: "timeout", "large", "incomplete" or "unsupported".
    """

    batch: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCreated(Advisory):
    """A backup began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotCompleted(Advisory):
    """A backup ended.

    Attributes:
        error: Why it is incomplete; empty for a complete one.
    """

    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreCreated(Advisory):
    """A restore began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreCompleted(Advisory):
    """A restore ended, complete or not.

    Attributes:
        bytes: Bytes that the server received.
    """

    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent(Advisory):
    """A server is out of storage, was removed, or rescued the cluster; `kind` says which.

    Attributes:
        server: Its name.
        server_id: Its id.
        cluster: Its cluster.
    """

    server: str = ""
    server_id: str = ""
    cluster: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiLimitReached(Advisory):
    """A server dropped API requests: there were too many.

    Attributes:
        server: Its name or id.
        dropped: Number of dropped requests.
    """

    server: str = ""
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAudit(Advisory):
    """A client called JetStream's API.

    Attributes:
        server: The server that answered.
        api_subject: The subject of the call.
        request: The request; may be empty.
        response: The answer, as JSON.
    """

    server: str = ""
    api_subject: str = ""
    request: str = ""
    response: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerAck(_Delivery):
    """A sample of an ack, from consumers with a `sample_freq`.

    Attributes:
        stream_seq: The message's sequence.
        deliveries: How often it was delivered.
        consumer_seq: Number of this delivery.
        ack_time_ns: Nanoseconds from the delivery to the ack.
    """

    consumer_seq: int = 0
    ack_time_ns: int = 0


_V1 = "io.nats.jetstream.advisory.v1."
# By the schema that the event names; `kind` comes from its subject.
_CLASSES: Mapping[str, type[Advisory]] = {
    f"{_V1}max_deliver": MaxDeliveries,
    f"{_V1}terminated": MessageTerminated,
    f"{_V1}nak": MessageNaked,
    f"{_V1}consumer_action": ConsumerAction,
    f"{_V1}consumer_pause": ConsumerPaused,
    f"{_V1}consumer_group_pinned": ConsumerPinned,
    f"{_V1}consumer_group_unpinned": ConsumerUnpinned,
    f"{_V1}consumer_leader_elected": LeaderElected,
    f"{_V1}consumer_quorum_lost": QuorumLost,
    f"{_V1}stream_action": StreamAction,
    f"{_V1}stream_batch_abandoned": BatchAbandoned,
    f"{_V1}stream_leader_elected": LeaderElected,
    f"{_V1}stream_quorum_lost": QuorumLost,
    f"{_V1}snapshot_create": SnapshotCreated,
    f"{_V1}snapshot_complete": SnapshotCompleted,
    f"{_V1}restore_create": RestoreCreated,
    f"{_V1}restore_complete": RestoreCompleted,
    f"{_V1}domain_leader_elected": LeaderElected,
    f"{_V1}server_out_of_space": ServerEvent,
    f"{_V1}server_removed": ServerEvent,
    f"{_V1}meta_rescue": ServerEvent,
    f"{_V1}api_limit_reached": ApiLimitReached,
    f"{_V1}api_audit": ApiAudit,
    "io.nats.jetstream.metric.v1.consumer_ack": ConsumerAck,
}
# Fields that are called otherwise in JSON than here; `timestamp` and `subject` are read apart.
_JSON_NAMES = {"api_subject": "subject", "ack_time_ns": "ack_time"}
_READ_APART = frozenset({"kind", "subject", "time_ns", "raw"})


def kind_of(subject: str, prefix: str) -> str:
    """Return the kind that a subject means, empty when it is not known.

    Args:
        subject: Where the event was published.
        prefix: Prefix before `.ADVISORY` and `.METRIC`.
    """
    rest = subject.removeprefix(f"{prefix}.")
    found = [kind for kind, token in KINDS.items() if f"{rest}.".startswith(f"{token}.")]
    found = [kind for kind in found if kind != "api_audit" or rest == KINDS["api_audit"]]
    return found[0] if found else ""


def parse_advisory(subject: str, data: bytes, prefix: str) -> Advisory:
    """Return the event in a message.

    Args:
        subject: Where it was published.
        data: The payload.
        prefix: Prefix before `.ADVISORY` and `.METRIC`.

    Returns:
        An event of its class, or an `UnknownAdvisory` for whatever is none.
    """
    try:
        raw = Fields.parse(data, "an advisory").raw
    except ProtocolError:
        return UnknownAdvisory(subject=subject, kind=kind_of(subject, prefix), data=data)
    kind = kind_of(subject, prefix)
    made = _CLASSES.get(str(raw.get("type")), UnknownAdvisory)
    given: dict[str, object] = {"kind": kind, "subject": subject, "raw": raw}
    given["time_ns"] = _time_ns(raw.get("timestamp"))
    if made is UnknownAdvisory:
        given["data"] = data
    for each in fields(made):
        value = raw.get(_JSON_NAMES.get(each.name, each.name))
        if each.name in given or each.name in _READ_APART:
            continue
        # A value of another type stays in `raw` only.
        if type(value) is type(each.default):
            given[each.name] = value
    # Each name is a field of the class, and each value of its type.
    return made(**given)  # pyright: ignore[reportArgumentType]


def _time_ns(value: object) -> int:
    try:
        return parse_rfc3339(value) if isinstance(value, str) else 0
    except NatsStreamError:
        return 0
