"""What a counter's message says: its total, and what other streams have added to it.

What lives here: the shapes and how they are read. What must not: asking for them.

Law: a number is exact, however many digits it has; what is no counter is told, never taken for 0.

Source: ADR-49; nats-server's stream.go CounterValue, CounterSources.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from natsstream._wire.headers import HeaderName, parse_headers
from natsstream.arguments import described
from natsstream.errors import ConfigError, NatsStreamError, ProtocolError
from natsstream.streams.publishing.digits import read_number, write_number
from natsstream.units import parse_rfc3339

# The server reads an increment out of a header, all of which may have 64 KiB.
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
        last_delta: What the newest message added; None where it came from another stream.
        sources: What other streams have brought in, as they stood: stream, then subject there.
            Empty where the stream sources nothing.
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
        ConfigError: It is no whole number, or longer than any server takes.
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


def read_counter(answer: Mapping[str, object]) -> Counter:
    """Return the counter in the answer to a request for a message.

    Raises:
        ProtocolError: The message is no counter's.
    """
    subject = ""
    try:
        message = cast("Mapping[str, str]", answer["message"])
        subject = message["subject"]
        headers = parse_headers(base64.b64decode(message.get("hdrs", "")))
        body = cast("Mapping[str, object]", json.loads(base64.b64decode(message["data"])))
        delta = headers.get(HeaderName.INCREMENT)
        return Counter(
            subject,
            read_number(cast("str", body["val"])),
            cast("int", cast("object", message["seq"])),
            parse_rfc3339(message["time"]),
            None if delta is None else read_number(delta),
            _sources(headers.get(HeaderName.COUNTER_SOURCES)),
        )
    except (KeyError, TypeError, ValueError, AttributeError, NatsStreamError) as error:
        raise ProtocolError(
            f"counter {subject or '?'}: the stored message is no counter's",
            detail=repr(error)[:200],
            hint="is it a stream with allow_msg_counter?",
        ) from error


def _sources(text: str | None) -> dict[str, dict[str, int]]:
    if not text:
        return {}
    held = cast("Mapping[str, Mapping[str, str]]", json.loads(text))
    return {
        stream: {subject: read_number(value) for subject, value in values.items()}
        for stream, values in held.items()
    }
