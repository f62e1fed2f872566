"""A counter's message: its total, and the totals of other streams in it.

Law: a number is exact with any number of digits; a message that is no counter raises, and is never
read as 0.

Source: ADR-49; nats-server's stream.go CounterValue, CounterSources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from natsstream._wire.headers import HeaderName
from natsstream.api.message import Message
from natsstream.arguments import described
from natsstream.errors import ConfigError, NatsStreamError, ProtocolError
from natsstream.fields import Fields
from natsstream.publish.digits import read_number, write_number

# The server reads an increment from a header; all headers together have at most 64 KiB.
_DIGITS_MAX = 60_000
_BITS_MAX = _DIGITS_MAX * 10 // 3


@dataclass(frozen=True, slots=True)
class Counter:
    """A counter at one moment.

    Attributes:
        subject: Its subject.
        value: Its total.
        sequence: Sequence of its newest message in the stream.
        time_ns: When it was last added to, in Unix nanoseconds.
        last_delta: The newest message's increment; None if that came from another stream.
        sources: The totals from other streams, by stream and by subject there; empty if the stream
            has no sources.
    """

    subject: str
    value: int
    sequence: int
    time_ns: int
    last_delta: int | None = None
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])


def delta_text(delta: object) -> str:
    """Return the header of an increment.

    Raises:
        ConfigError: It is no whole number, or longer than servers accept.
    """
    if not isinstance(delta, int) or isinstance(delta, bool):
        raise ConfigError(
            f"delta is {described(delta)}", hint="give a whole number, such as 1 or -5"
        )
    if delta.bit_length() > _BITS_MAX:
        raise ConfigError(
            f"delta has {delta.bit_length()} bits", hint=f"give at most {_DIGITS_MAX} digits"
        )
    return write_number(delta) if delta < 0 else f"+{write_number(delta)}"


def read_counter(message: Message) -> Counter:
    """Return the counter in a stored message.

    Raises:
        ProtocolError: The message is no counter's.
    """
    subject = message.subject
    try:
        headers = message.headers
        delta = headers.get(HeaderName.INCREMENT)
        return Counter(
            subject,
            read_number(Fields.parse(message.data, "the counter").text("val")),
            message.sequence,
            message.time_ns,
            None if delta is None else read_number(delta),
            _sources(headers.get(HeaderName.COUNTER_SOURCES)),
        )
    except (ValueError, NatsStreamError) as error:  # `read_number` raises ValueError.
        raise ProtocolError(
            f"counter {subject}: the stored message is no counter's",
            detail=str(error)[:200],
            hint="is it a stream with allow_msg_counter?",
        ) from error


def _sources(text: str | None) -> dict[str, dict[str, int]]:
    if not text:
        return {}
    sources = Fields.parse(text, "the counter's sources")
    return {
        stream: {subject: read_number(value) for subject, value in sources.words(stream).items()}
        for stream in sources.names()
    }
