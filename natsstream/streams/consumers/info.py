"""What a server says of a consumer: configuration, progress and who reads it.

Law: the answer is kept whole in `raw`; typed fields are read from it, nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from natsstream.errors import ConfigError, ProtocolError
from natsstream.streams.cluster_info import ClusterInfo
from natsstream.streams.consumers.config import ConsumerConfig
from natsstream.units import NS_PER_SECOND, parse_rfc3339, time_from_ns

# Go's zero time stands for "never".
_NEVER = "0001-"


@dataclass(frozen=True, slots=True)
class ConsumerProgress:
    """A place in the stream that a consumer has reached.

    Attributes:
        consumer_seq: Deliveries up to there, redeliveries counted.
        stream_seq: Sequence in the stream.
        last_active_ns: Unix nanoseconds when it moved last; 0 for never, or not told.
    """

    consumer_seq: int
    stream_seq: int
    last_active_ns: int

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> ConsumerProgress:
        """Return the place that a server sent."""
        return cls(
            cast("int", body.get("consumer_seq", 0)),
            cast("int", body.get("stream_seq", 0)),
            _moment(body.get("last_active")),
        )


@dataclass(frozen=True, slots=True)
class PriorityGroupState:
    """Who is pinned in a priority group.

    Attributes:
        group: The group's name.
        pinned_client_id: The id that the pinned client sends; empty while nobody is pinned.
        pinned_ns: Unix nanoseconds since when; 0 while nobody is.
    """

    group: str
    pinned_client_id: str
    pinned_ns: int

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> PriorityGroupState:
        """Return the group that a server sent."""
        return cls(
            cast("str", body["group"]),
            str(body.get("pinned_client_id") or ""),
            _moment(body.get("pinned_ts")),
        )


@dataclass(frozen=True, slots=True)
class ConsumerPause:
    """Whether a consumer is paused; the answer to `pause` and `resume`.

    Attributes:
        is_paused: True while it delivers nothing.
        until: When it goes on by itself, UTC; None where it is not paused.
        remaining: Seconds until then; 0 where it is not paused.
    """

    is_paused: bool
    until: datetime | None
    remaining: float

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> ConsumerPause:
        """Return the pause that a server sent."""
        is_paused, until_ns = bool(body.get("paused")), _moment(body.get("pause_until"))
        return cls(
            is_paused,
            time_from_ns(until_ns) if is_paused and until_ns else None,
            cast("int", body.get("pause_remaining") or 0) / NS_PER_SECOND,
        )


@dataclass(frozen=True, slots=True)
class ConsumerInfo:
    """A consumer at one moment.

    Attributes:
        stream: Name of its stream.
        name: Its name.
        config: Its configuration.
        created_ns: Unix nanoseconds of its creation: one that is deleted and made again under the
            same name has another.
        delivered: The last delivery.
        ack_floor: Up to where everything is settled.
        num_ack_pending: Messages out and not settled.
        num_redelivered: Of those, the ones that were delivered more than once.
        num_waiting: Pull requests that wait.
        num_pending: Messages that it has still to deliver.
        is_push_bound: True while somebody listens on the deliver subject; a push consumer only.
        pause: Whether it is paused.
        priority_groups: Who is pinned, by group.
        cluster: The servers that hold it; None for a server alone.
        time_ns: Unix nanoseconds of the server's answer; 0 where it does not tell.
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

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> ConsumerInfo:
        """Return the info that a server sent.

        Raises:
            ProtocolError: It is no consumer info.
        """
        try:
            config = cast("Mapping[str, object]", body["config"])
            cluster = cast("Mapping[str, object] | None", body.get("cluster"))
            groups = cast("list[Mapping[str, object]]", body.get("priority_groups") or [])
            pause = {"pause_until": config.get("pause_until"), **body}
            return cls(
                cast("str", body["stream_name"]),
                cast("str", body["name"]),
                ConsumerConfig.from_json(config),
                parse_rfc3339(cast("str", body["created"])),
                ConsumerProgress.from_json(cast("Mapping[str, object]", body["delivered"])),
                ConsumerProgress.from_json(cast("Mapping[str, object]", body["ack_floor"])),
                *(cast("int", body.get(name, 0)) for name in _COUNTS),
                is_push_bound=bool(body.get("push_bound")),
                pause=ConsumerPause.from_json(pause),
                priority_groups=tuple(map(PriorityGroupState.from_json, groups)),
                cluster=None if cluster is None else ClusterInfo.from_json(cluster),
                time_ns=_moment(body.get("ts")),
                raw=body,
            )
        except (KeyError, TypeError, AttributeError, ConfigError) as error:
            raise ProtocolError("the answer is no consumer info", detail=repr(error)) from error

    @property
    def is_push(self) -> bool:
        """True when the server sends without being asked."""
        return self.config.is_push

    def __repr__(self) -> str:
        return (
            f"<ConsumerInfo {self.name} of {self.stream}: {self.num_pending} pending, "
            f"{self.num_ack_pending} out, {self.num_redelivered} redelivered, "
            f"{self.num_waiting} pulls waiting>"
        )


_COUNTS = ("num_ack_pending", "num_redelivered", "num_waiting", "num_pending")


def _moment(text: object) -> int:
    """Return a time of the server's in Unix nanoseconds, 0 for none."""
    if not text or cast("str", text).startswith(_NEVER):
        return 0
    return parse_rfc3339(cast("str", text))
