"""What a server says of the servers that hold a stream, and of the streams that it copies from.

What lives here: shapes read from JSON. What must not: asking.

Law: what a server leaves out reads as nothing said, not as a fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from natsstream.streams.settings.mapping import SubjectTransform
from natsstream.streams.settings.source import ExternalStream
from natsstream.units import NS_PER_SECOND, parse_rfc3339


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """A server that follows the leader of a stream or a consumer.

    Attributes:
        name: The server's name.
        peer: Its short name in the group, as `remove_peer` takes it as well.
        is_current: Whether it has all that the leader has.
        is_offline: Whether the leader takes it for dead.
        lag: Operations that it is behind; 0 for none.
        active_s: Seconds since the leader heard of it.
    """

    name: str
    peer: str
    is_current: bool
    is_offline: bool
    lag: int
    active_s: float


@dataclass(frozen=True, slots=True)
class ClusterInfo:
    """The servers that hold a stream or a consumer, as its leader sees them.

    Attributes:
        name: The cluster; empty for a single server.
        leader: The server that leads; empty while there is none.
        leader_since_ns: Unix nanoseconds since when; 0 where the server does not tell.
        raft_group: The group's name in the servers' logs; empty for one replica.
        replicas: The servers that follow; empty for one replica.
    """

    name: str
    leader: str
    leader_since_ns: int
    raft_group: str
    replicas: tuple[ReplicaInfo, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> ClusterInfo:
        """Return what a server sent."""
        since = cast("str", body.get("leader_since") or "")
        replicas = cast("Sequence[Mapping[str, object]]", body.get("replicas") or ())
        return cls(
            _text(body, "name"),
            _text(body, "leader"),
            parse_rfc3339(since) if since else 0,
            _text(body, "raft_group"),
            tuple(map(_replica, replicas)),
        )


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """How far a mirror or a source is.

    Attributes:
        name: The stream that is copied from.
        lag: Messages there that are not here yet, as of the last one that came.
        active_s: Seconds since something was heard of it; None for never.
        filter: Subjects that are copied; empty for all.
        transforms: Subject mappings.
        external: The way to another account or domain; None for the own one.
        error: Why it does not go on, in the server's words; empty for nothing known.
    """

    name: str
    lag: int
    active_s: float | None
    filter: str
    transforms: tuple[SubjectTransform, ...]
    external: ExternalStream | None
    error: str

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> SourceInfo:
        """Return what a server sent."""
        active = cast("int", body.get("active", -1))
        transforms = cast("Sequence[Mapping[str, object]]", body.get("subject_transforms") or ())
        external = cast("Mapping[str, object] | None", body.get("external"))
        error = cast("Mapping[str, object]", body.get("error") or {})
        return cls(
            _text(body, "name"),
            cast("int", body.get("lag", 0)),
            None if active < 0 else active / NS_PER_SECOND,
            _text(body, "filter_subject"),
            tuple(map(SubjectTransform.from_json, transforms)),
            None if external is None else ExternalStream.from_json(external),
            _text(error, "description"),
        )


@dataclass(frozen=True, slots=True)
class Alternate:
    """A stream with the same messages: the stream itself, or a mirror of it.

    Attributes:
        name: Its name.
        cluster: Where it stands; the nearest comes first.
        domain: Its JetStream domain; empty for none.
    """

    name: str
    cluster: str
    domain: str

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> Alternate:
        """Return what a server sent."""
        return cls(_text(body, "name"), _text(body, "cluster"), _text(body, "domain"))


def _replica(body: Mapping[str, object]) -> ReplicaInfo:
    return ReplicaInfo(
        _text(body, "name"),
        _text(body, "peer"),
        bool(body.get("current")),
        bool(body.get("offline")),
        cast("int", body.get("lag", 0)),
        cast("int", body.get("active", 0)) / NS_PER_SECOND,
    )


def _text(body: Mapping[str, object], name: str) -> str:
    return cast("str", body.get(name) or "")
