"""The info of a consumer: configuration, progress and readers.

Law: `raw` keeps the whole answer; typed fields are read from it, nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from natsstream.api.cluster_info import ClusterInfo
from natsstream.api.consumer_config import ConsumerConfig
from natsstream.fields import Fields
from natsstream.foreign_names import answers_names
from natsstream.notebook import NotebookTable
from natsstream.units import time_from_ns


@dataclass(frozen=True, slots=True)
class ConsumerProgress:
    """The position of a consumer in its stream.

    Attributes:
        consumer_seq: Deliveries so far, redeliveries included.
        stream_seq: Sequence in the stream.
        last_active_ns: Unix nanoseconds when it last moved; 0 for never or unknown.
    """

    consumer_seq: int
    stream_seq: int
    last_active_ns: int

    @classmethod
    def from_json(cls, fields: Fields) -> ConsumerProgress:
        """Return the position that a server sent."""
        return cls(
            fields.count("consumer_seq"),
            fields.count("stream_seq", None),  # A 0 would call deliveries forgotten.
            fields.moment("last_active", 0),
        )


@dataclass(frozen=True, slots=True)
class PriorityGroupState:
    """The pinned client of a priority group.

    Attributes:
        group: The group's name.
        pinned_client_id: The id that the pinned client sends; empty while no client is pinned.
        pinned_ns: Unix nanoseconds when it was pinned; 0 while no client is.
    """

    group: str
    pinned_client_id: str
    pinned_ns: int

    @classmethod
    def from_json(cls, fields: Fields) -> PriorityGroupState:
        """Return the group that a server sent."""
        return cls(
            fields.text("group"),
            fields.text("pinned_client_id", ""),
            fields.moment("pinned_ts", 0),
        )


@dataclass(frozen=True, slots=True)
class ConsumerPause:
    """Whether a consumer is paused; the answer to `pause` and `resume`.

    Attributes:
        is_paused: True while it delivers nothing.
        until: When it resumes by itself, in UTC; None if it is not paused.
        remaining: Seconds until then; 0 if it is not paused.
    """

    is_paused: bool
    until: datetime | None
    remaining: float

    @classmethod
    def from_json(cls, fields: Fields, config: Fields | None = None) -> ConsumerPause:
        """Return the pause that a server sent.

        Args:
            fields: Its answer.
            config: The consumer's configuration, if it has the end of the pause.
        """
        told = config if config is not None and not fields.has("pause_until") else fields
        is_paused, until_ns = fields.flag("paused"), told.moment("pause_until", 0)
        return cls(
            is_paused,
            time_from_ns(until_ns) if is_paused and until_ns else None,
            fields.seconds("pause_remaining", 0),
        )


@answers_names("consumer_info", calls=False)
@dataclass(frozen=True, slots=True)
class ConsumerInfo(NotebookTable):
    """A consumer at one moment.

    Attributes:
        stream: Name of its stream.
        name: Its name.
        config: Its configuration.
        created_ns: Unix nanoseconds of its creation; they differ once it is deleted and created
            again under the same name.
        delivered: The last delivery.
        ack_floor: Position up to which every message is settled.
        num_ack_pending: Messages in flight: delivered and not settled.
        num_redelivered: Messages in flight that were delivered more than once.
        num_waiting: Pull requests that are waiting.
        num_pending: Messages that it has yet to deliver.
        is_push_bound: Push: True while a client subscribes to the deliver subject.
        pause: Whether it is paused.
        priority_groups: The priority groups with their pinned clients.
        cluster: The servers that hold it; None for a single server.
        time_ns: Unix nanoseconds of the server's answer; 0 if unknown.
        raw: The server's whole answer.
    """

    stream: str
    name: str
    config: ConsumerConfig
    created_ns: int
    delivered: ConsumerProgress
    ack_floor: ConsumerProgress
    num_ack_pending: int
    num_redelivered: int
    num_waiting: int
    num_pending: int
    is_push_bound: bool
    pause: ConsumerPause
    priority_groups: tuple[PriorityGroupState, ...]
    cluster: ClusterInfo | None
    time_ns: int
    raw: Mapping[str, object]

    @property
    def lag(self) -> int:
        """Messages that nobody has handled: not delivered yet, or delivered and not settled."""
        return self.num_pending + self.num_ack_pending

    @classmethod
    def from_json(cls, body: Mapping[str, object] | Fields) -> ConsumerInfo:
        """Return the info that a server sent.

        Raises:
            ProtocolError: The answer is not the info of a consumer.
        """
        fields = Fields.of(body, "the info of a consumer")
        config, cluster = fields.part("config"), fields.part_or_none("cluster")
        return cls(
            fields.text("stream_name"),
            fields.text("name"),
            ConsumerConfig.from_json(config),
            fields.moment("created"),
            ConsumerProgress.from_json(fields.part("delivered")),
            ConsumerProgress.from_json(fields.part("ack_floor")),
            *(fields.count(name) for name in _COUNTS),
            is_push_bound=fields.flag("push_bound"),
            pause=ConsumerPause.from_json(fields, config),
            priority_groups=tuple(
                map(PriorityGroupState.from_json, fields.parts("priority_groups"))
            ),
            cluster=None if cluster is None else ClusterInfo.from_json(cluster),
            time_ns=fields.moment("ts", 0),
            raw=fields.raw,
        )

    @property
    def is_push(self) -> bool:
        """True if this is a push consumer."""
        return self.config.is_push

    def __repr__(self) -> str:
        return (
            f"<ConsumerInfo {self.name} of {self.stream}: {self.num_pending} pending, "
            f"{self.num_ack_pending} out, {self.num_redelivered} redelivered, "
            f"{self.num_waiting} pulls waiting>"
        )


_COUNTS = ("num_ack_pending", "num_redelivered", "num_waiting", "num_pending")
