"""The cluster, mirror and sources of a stream, as a server reports them.

Law: a field that the server leaves out reads as unknown and raises nothing.
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
        is_current: True if it has everything that the leader has.
        is_offline: True if the leader considers it offline.
        lag: Operations by which it is behind the leader.
        active_s: Seconds since the leader last heard from it.
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
        leader: The leader's name; empty while there is none.
        leader_since_ns: Unix nanoseconds of its election; 0 if unknown.
        raft_group: The group's name in the servers' logs; empty for one replica.
        replicas: The followers; empty for one replica.
    """

    name: str
    leader: str
    leader_since_ns: int
    raft_group: str
    replicas: tuple[ReplicaInfo, ...]

    @classmethod
    def from_json(cls, fields: Fields) -> ClusterInfo:
        """Return the cluster that a server sent.

        Raises:
            ProtocolError: The answer does not describe a cluster.
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
    """The progress of a mirror or a source.

    Attributes:
        name: The origin stream.
        lag: Messages of the origin not copied yet, as of the last copy.
        active_s: Seconds since the origin was last heard from; None for never.
        filter: Subjects that are copied; empty for all.
        transforms: Subject mappings.
        external: The route to another account or domain; None for its own.
        error: The server's reason why copying stopped; empty if none is known.
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
        """Return the source that a server sent.

        Raises:
            ProtocolError: The answer does not describe a source.
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
        cluster: The cluster that holds it; the nearest comes first.
        domain: Its JetStream domain; empty for none.
    """

    name: str
    cluster: str
    domain: str

    @classmethod
    def from_json(cls, fields: Fields) -> Alternate:
        """Return the stream that a server sent.

        Raises:
            ProtocolError: The answer does not describe a stream.
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
