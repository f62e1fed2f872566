"""Which deliveries the server of a consumer knows of; pure rules.

A server writes a consumer's state now and then: one that is killed forgets its last tenth of a
second, and a new leader may lack what the old one had not replicated. A delivery that the server
does not know of can not be settled: it answers no ack of it, and delivers the message again.

Law: a delivery is called forgotten only by what the server said after the message had come here.
Source: nats-server's consumer.go, `processAckMsg` (an ack at or above the next message to deliver)
and `infoWithSnapAndReply` (what `delivered` is taken from).
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.fields import Fields

SURE_AFTER_S = 0.5
"""How long a replicated consumer may take until it tells of a delivery that it has made: it tells
of those that its group has agreed on, some milliseconds later."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What the server of a consumer knew at a moment.

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


def read_knowledge(info: Fields, at_s: float) -> Knowledge:
    """Return what a consumer's info tells.

    Args:
        info: The server's answer.
        at_s: When it was asked.

    Raises:
        ProtocolError: It is no consumer's info.
    """
    group = info.part("cluster", {})
    return Knowledge(
        last_seq=info.part("delivered").count("stream_seq", None),
        leader=group.text("leader", ""),
        is_replicated=bool(group.parts("replicas")),
        at_s=at_s,
    )


def is_forgotten(sequence: int, before: Knowledge | None, now: Knowledge) -> bool:
    """Tell whether a delivery of a message is unknown to the server that has the consumer.

    Args:
        sequence: The message's.
        before: What the server knew before it was asked for an answer that did not come; None where
            it was not asked.
        now: What it knows.
    """
    if sequence <= now.last_seq:
        return False
    if not now.is_replicated:
        return True
    if before is None or before.leader != now.leader or sequence <= before.last_seq:
        return False
    return now.at_s - before.at_s >= SURE_AFTER_S
