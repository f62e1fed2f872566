"""The advisories that a dead-letter stream has captured, and the letters that they make.

Law: one dead message is one entry, however many advisories name it. An advisory never hides a
message whose letter is missing.

A killed server may lose its record of acks that it has carried out: it finds these messages gone
when it would deliver them again, and reports each as terminated. Where a stream deletes a message
only for its ack or by request, such a report makes no letter: nothing is left to handle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from natsstream.api.names import is_name
from natsstream.errors import ConfigError, ProtocolError
from natsstream.fields import Fields
from natsstream.units import parse_rfc3339

# How far the clocks of two servers may be apart: the one that stored the message and the one that
# reported its failure.
CLOCK_SLACK_NS = 2_000_000_000

# The server's words for a message that it was to deliver again, and for one in flight.
FOUND_GONE = "Unacknowledged message was deleted"
_DELETED = (FOUND_GONE, "Message deleted by stream limits")

# Our workers terminate with it, after the letter is stored: that advisory is no news.
OWN_TERM = "dead letter stored in "

_MAX_DELIVERIES = ".MAX_DELIVERIES."
_TERMINATED = ".MSG_TERMINATED."
_SEQUENCE_MAX = 2**64 - 1

Triple: TypeAlias = tuple[str, str, int]
ToldReason: TypeAlias = Literal["deleted", "max_deliveries", "terminated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """An advisory of the server about a message that a consumer has given up.

    Attributes:
        stream: The message's stream.
        consumer: The consumer.
        sequence: The message's sequence in that stream.
        deliveries: How often it was delivered.
        reason: "max_deliveries", "terminated", or "deleted": by its stream, before an ack.
        error: The reason that the client or the server gave; empty for none.
        time_ns: When it was told, in Unix nanoseconds.
    """

    stream: str
    consumer: str
    sequence: int
    deliveries: int
    reason: ToldReason
    error: str
    time_ns: int

    @property
    def triple(self) -> Triple:
        """Stream, consumer and sequence of the message."""
        return self.stream, self.consumer, self.sequence

    @property
    def is_own(self) -> bool:
        """True when one of our workers did it, after it had stored the letter."""
        return self.reason == "terminated" and self.error.startswith(OWN_TERM)

    @property
    def is_found_gone(self) -> bool:
        """True when the server found it gone as it was to deliver it again."""
        return self.reason == "deleted" and self.error == FOUND_GONE

    def can_mean(self, stored_ns: int) -> bool:
        """Return True if the advisory can be about a message that was stored at that moment."""
        return stored_ns <= self.time_ns + CLOCK_SLACK_NS


def read_captured(subject: str, payload: bytes, stored_ns: int) -> Captured | None:
    """Return an advisory as read from its subject and JSON; None if it is neither of the two kinds.

    Args:
        subject: The subject that it was captured from.
        payload: Its JSON.
        stored_ns: When the dead-letter stream stored it, for an advisory without a time.
    """
    if _MAX_DELIVERIES in subject:
        reason: ToldReason = "max_deliveries"
    elif _TERMINATED in subject:
        reason = "terminated"
    else:
        return None
    try:
        fields = Fields.parse(payload, "an advisory").raw
    except ProtocolError:
        return None
    stream, consumer, error = fields.get("stream"), fields.get("consumer"), fields.get("reason", "")
    sequence, deliveries = _number(fields.get("stream_seq")), _number(fields.get("deliveries"))
    if not isinstance(stream, str) or not isinstance(consumer, str) or not sequence:
        return None
    # A publisher could name another stream in the payload: the subject is what it may publish to.
    if not subject.endswith(f".{stream}.{consumer}"):
        return None
    if not is_name(stream) or not is_name(consumer):
        return None
    if reason == "terminated" and error in _DELETED:
        reason = "deleted"
    return Captured(
        stream=stream,
        consumer=consumer,
        sequence=sequence,
        deliveries=deliveries,
        reason=reason,
        error=error if isinstance(error, str) else "",
        time_ns=max(_moment(fields.get("timestamp")), stored_ns),
    )


class AdvisoryLog:
    """Which advisories of a dead-letter stream are about the same message.

    Cost: some 200 bytes for each advisory.
    """

    def __init__(self) -> None:
        self._told: dict[Triple, list[tuple[int, Captured]]] = {}
        self._without_gone: set[str] = set()

    def add(self, number: int, captured: Captured) -> None:
        """Take in an advisory.

        Args:
            number: Its sequence in the dead-letter stream.
            captured: The advisory.
        """
        self._told.setdefault(captured.triple, []).append((number, captured))

    @property
    def streams_of_gone(self) -> set[str]:
        """The streams where the server found messages gone."""
        every = (captured for told in self._told.values() for _, captured in told)
        return {captured.stream for captured in every if captured.is_found_gone}

    def leave_out_gone(self, stream: str) -> None:
        """Make no letters of the messages of a stream that the server found gone."""
        self._without_gone.add(stream)

    def claim(self, triple: Triple, stored_ns: int) -> list[tuple[int, Captured]]:
        """Take out the advisories about a message whose letter exists, oldest first.

        Args:
            triple: Its stream, consumer and sequence.
            stored_ns: When it was stored: an earlier advisory is about another message, of a stream
                that was recreated since.
        """
        told = self._told.pop(triple, [])
        mine = [each for each in told if each[1].can_mean(stored_ns)]
        if len(mine) < len(told):
            self._told[triple] = [each for each in told if not each[1].can_mean(stored_ns)]
        return mine

    def entries(self) -> Iterator[tuple[Captured, list[int]]]:
        """Yield what is left, one for each message: the newest advisory, and the numbers of all.

        Messages that our workers terminated are left out: their letters were dropped. See also
        `leave_out_gone`.
        """
        for told in self._told.values():
            news = [captured for _, captured in told if self._is_news(captured)]
            if news:
                yield news[-1], [number for number, _ in told]

    def of_no_letter(self) -> Iterator[tuple[Captured, int]]:
        """Yield the advisories left about messages that have no letter, with their numbers."""
        for told in self._told.values():
            if not any(self._is_news(captured) for _, captured in told):
                for number, captured in told:
                    yield captured, number

    def _is_news(self, captured: Captured) -> bool:
        is_left_out = captured.is_found_gone and captured.stream in self._without_gone
        return not (captured.is_own or is_left_out)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= _SEQUENCE_MAX else 0


def _moment(value: object) -> int:
    try:
        return parse_rfc3339(value) if isinstance(value, str) else 0
    except ConfigError:
        return 0
