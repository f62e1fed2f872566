"""What a server says of the servers that hold a stream, and of the streams that it copies from.

Law: what a server leaves out reads as nothing said, not as a fault.
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.api.settings.mapping import SubjectTransform
from natsstream.api.settings.source import ExternalStream
from natsstream.fields import Fields


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
    def from_json(cls, fields: Fields) -> ClusterInfo:
        """Return what a server sent.

        Raises:
            ProtocolError: It tells of no cluster.
        """
        return cls(
            fields.text("name", ""),
            fields.text("leader", ""),
            fields.moment("leader_since", 0),
            fields.text("raft_group", ""),
            tuple(map(_replica, fields.parts("replicas"))),
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
    def from_json(cls, fields: Fields) -> SourceInfo:
        """Return what a server sent.

        Raises:
            ProtocolError: It tells of no source.
        """
        active_s = fields.seconds("active", -1)
        external = fields.part_or_none("external")
        return cls(
            fields.text("name", ""),
            fields.count("lag"),
            None if active_s < 0 else active_s,
            fields.text("filter_subject", ""),
            tuple(map(SubjectTransform.from_json, fields.parts("subject_transforms"))),
            None if external is None else ExternalStream.from_json(external),
            fields.part("error", {}).text("description", ""),
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
    def from_json(cls, fields: Fields) -> Alternate:
        """Return what a server sent.

        Raises:
            ProtocolError: It tells of no stream.
        """
        return cls(fields.text("name", ""), fields.text("cluster", ""), fields.text("domain", ""))


def _replica(fields: Fields) -> ReplicaInfo:
    return ReplicaInfo(
        fields.text("name", ""),
        fields.text("peer", ""),
        fields.flag("current"),
        fields.flag("offline"),
        fields.count("lag"),
        fields.seconds("active", 0),
    )
