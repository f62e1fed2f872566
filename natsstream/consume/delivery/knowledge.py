"""Which deliveries the server of a consumer knows of; pure rules.

A server stores a consumer's state every tenth of a second: one that is killed forgets the last
one, and a new leader may lack what the old one had not replicated. A delivery that the server has
forgotten cannot be acked: it confirms no ack of it, and redelivers the message.

Law: a delivery is called forgotten only by what the server said after the message had come here.
Source: nats-server's consumer.go, `processAckMsg` (an ack at or above the next message to deliver)
and `infoWithSnapAndReply` (what `delivered` is taken from).
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.api.consumer_info import ConsumerInfo

SURE_AFTER_S = 0.5
"""How long a replicated consumer may take until its info shows a delivery: it shows those that its
group has agreed on, some milliseconds later."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The deliveries that a consumer's server knew at a moment.

    Attributes:
        last_seq: The highest sequence of the stream that it has delivered.
        leader: The server that said so; empty where there is one only.
        is_replicated: Whether others have to agree first.
        at_s: When it was asked, on any one clock.
    """

    last_seq: int
    leader: str
    is_replicated: bool
    at_s: float


def read_knowledge(info: ConsumerInfo, at_s: float) -> Knowledge:
    """Return the knowledge in a consumer's info, which was requested at a moment."""
    group = info.cluster
    return Knowledge(
        last_seq=info.delivered.stream_seq,
        leader="" if group is None else group.leader,
        is_replicated=group is not None and bool(group.replicas),
        at_s=at_s,
    )


def is_forgotten(sequence: int, before: Knowledge | None, now: Knowledge) -> bool:
    """Return True if the consumer's server has forgotten a delivery.

    Args:
        sequence: The message's.
        before: The server's knowledge before a request that it did not answer; None if not asked.
        now: Its knowledge now.
    """
    if sequence <= now.last_seq:
        return False
    if not now.is_replicated:
        return True
    if before is None or before.leader != now.leader or sequence <= before.last_seq:
        return False
    return now.at_s - before.at_s >= SURE_AFTER_S
