"""The metadata of a delivery, read from its ack subject; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from natsstream._wire.acks import no_ack_subject, parse_ack_subject
from natsstream.foreign_names import answers_names
from natsstream.units import time_from_ns


@answers_names("meta", calls=False)
@dataclass(frozen=True, slots=True)
class DeliveryMeta:
    """Where a delivered message is from, in numbers.

    Attributes:
        stream: Name of the stream.
        consumer: Name of the consumer.
        domain: JetStream domain of the server; empty when it does not tell.
        delivered: How often this message was delivered, from 1; above 1 it is a redelivery.
        stream_seq: Its sequence in the stream.
        consumer_seq: The delivery's sequence in the consumer, redeliveries counted.
        time_ns: When the stream stored it, Unix nanoseconds.
        pending: Messages that the consumer had still to deliver, without this one.
    """

    stream: str
    consumer: str
    domain: str
    delivered: int
    stream_seq: int
    consumer_seq: int
    time_ns: int
    pending: int

    @property
    def time(self) -> datetime:
        """When the stream stored it, in UTC, cut to microseconds."""
        return time_from_ns(self.time_ns)


def read_meta(reply: bytes) -> DeliveryMeta:
    """Return what an ack subject says, of either form (v1 with 9 tokens, v2 with 11 or more).

    Raises:
        ProtocolError: It is no ack subject.
    """
    said = parse_ack_subject(reply.decode("utf-8", "surrogateescape"))
    if said is None:
        raise no_ack_subject(reply)
    return DeliveryMeta(
        said.stream,
        said.consumer,
        said.domain,
        said.delivered,
        said.sequence,
        said.consumer_sequence,
        said.time_ns,
        said.pending,
    )
