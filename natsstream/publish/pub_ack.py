"""The ack of a published message.

Law: an answer that is not a stream's ack is never taken for one. The fast way of reading gives what
the slow one gives.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from natsstream._wire.names import is_name
from natsstream._wire.parser import Frame
from natsstream._wire.requests import check_responders
from natsstream.api.requests import decode
from natsstream.errors import NoRespondersError, ProtocolError, ServerError
from natsstream.fields import Fields
from natsstream.foreign_names import answers_names
from natsstream.notebook import NotebookTable
from natsstream.publish.digits import read_number

# Every number of so many digits has 64 bits; of longer ones the slow way tells.
_DIGITS_MAX = 19
_ZERO = ord("0")
# The JSON before the sequence: names of streams and domains have 255 bytes at most.
_START_BYTES_MAX = 600


@answers_names("ack", calls=False)
@dataclass(frozen=True, slots=True)
class PubAck(NotebookTable):
    """The stream's word that it has a message.

    Attributes:
        stream: The stream.
        sequence: The message's sequence; for a duplicate, that of the first copy.
        duplicate: True when a message with the same id was stored before.
        domain: The JetStream domain of the server, None where there is none.
        value: The counter's total, on a stream with `allow_msg_counter`.
    """

    stream: str
    sequence: int
    duplicate: bool = False
    domain: str | None = None
    value: int | None = None


QuickAck: TypeAlias = tuple[str, int, bool, str | None]
"""The first fields of a `PubAck`, which takes longer to make than all else that reads one."""


def read_ack(frame: Frame, subject: str) -> PubAck:
    """Return the ack in an answer, or raise what it says instead.

    Raises:
        NoRespondersError: No stream captures the subject.
        ServerError: The stream refused the message.
        ProtocolError: It is not the answer of a stream.
    """
    ack = read_quick_ack(frame[3])
    return read_json_ack(frame, subject) if ack is None else PubAck(*ack)


def read_quick_ack(payload: bytes) -> QuickAck | None:
    """Return the ack in an answer that has the usual form; None for any other."""
    size = payload.rfind(b":") + 1
    digits = payload[size:-1]
    if (
        0 < size <= _START_BYTES_MAX
        and digits.isdigit()
        and digits[0] != _ZERO
        and len(digits) <= _DIGITS_MAX
        and payload.endswith(b"}")
    ):
        teller = _teller(payload[:size])
        if teller is not None:
            return teller[0], int(digits), False, teller[1]
    return None


@lru_cache(maxsize=256)
def _teller(start: bytes) -> tuple[str, str | None] | None:
    """Return the stream and the domain of answers that begin so and end in a sequence.

    None where they are no plain acks. Nearly all acks of a stream differ in the sequence alone.
    """
    try:
        pairs: object = json.loads((start + b"1}").decode(), object_pairs_hook=list)
        json.dumps(pairs, ensure_ascii=False).encode()  # Names that UTF-8 cannot write are none.
    except (ValueError, RecursionError):
        return None
    match pairs:
        case [("stream", str(stream)), ("seq", 1)]:
            return stream, None
        case [("stream", str(stream)), ("domain", str(domain)), ("seq", 1)]:
            return stream, domain
        case _:
            return None


def read_json_ack(frame: Frame, subject: str) -> PubAck:
    """Return the ack in an answer of any form; what `read_ack` does where it cannot be quick."""
    what = f"publish to {subject}"
    try:
        check_responders(frame, subject)
    except NoRespondersError as error:
        raise no_stream(subject) from error
    try:
        answer = decode(frame[3], what)
    except ServerError as error:
        # A stream also names itself when it refuses.
        stream = Fields.parse(frame[3], what).raw.get("stream")
        if isinstance(stream, str) and is_name(stream):
            error.hint = error.hint.replace("on the stream", f"on stream {stream}")
        raise
    try:
        return PubAck(
            answer.text("stream"),
            answer.count("seq", None),
            answer.flag("duplicate"),
            answer.text("domain") if answer.has("domain") else None,
            read_number(answer.text("val")) if answer.has("val") else None,
        )
    except (ProtocolError, ValueError) as error:  # The ValueError is that of `read_number`.
        raise ProtocolError(
            f"{what}: the answer is no ack of a stream",
            detail=repr(frame[3][:80]),
            hint="does another program answer on the subject?",
        ) from error


def no_stream(subject: str) -> NoRespondersError:
    """Return the error of a subject that no stream captures, or none that has a leader now."""
    return NoRespondersError(
        f"publish to {subject}: no stream captures the subject",
        hint="create one: await js.streams.ensure(name, subjects=[...]); if there is one, its "
        "leader is away, or JetStream is off here",
        retryable=True,
    )
