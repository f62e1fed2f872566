"""The server's answers to a fast batch.

```
<inbox>.<id>.<flow>.<ok|fail>.<number>.<operation>.$FI      where each message's answer goes

{"type":"ack","seq":500,"msgs":250}           all up to 500 are settled; the next such in 250
{"type":"gap","last_seq":4,"seq":6}           4 and 5 did not come
{"type":"err","seq":7,"error":{...}}          7 was refused
{"stream":"S","seq":94,"batch":"..","count":90}   the end: the first 90 are settled
{"error":{...},"stream":"S","seq":0}          the message of this answer's number was refused
```

Source: ADR-50; nats-server's stream.go getFastBatch and processJetStreamFastBatchMsg.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from natsstream._wire.error_codes import ErrorCode, find_error_code
from natsstream._wire.errors_map import server_error
from natsstream._wire.parser import Frame
from natsstream._wire.requests import check_responders
from natsstream.errors import NatsStreamError, NoRespondersError, ProtocolError, ServerError
from natsstream.fields import Fields

# After the inbox: id, flow, gap mode, number, operation, suffix.
_TOKENS = 6
_DIGITS_MAX = 20
_NO_MESSAGES = (b"3", b"4")


class Operation(IntEnum):
    """The operation of a fast batch's message, the last but one token of its reply subject."""

    START = 0
    APPEND = 1
    COMMIT = 2
    COMMIT_END = 3
    PING = 4


@dataclass(frozen=True, slots=True)
class FlowAck:
    """All messages up to `number` are settled; the next such comes after `every` more."""

    number: int
    every: int


@dataclass(frozen=True, slots=True)
class FlowGap:
    """The messages from `first` to `last` did not reach the stream."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The message `number` was refused.

    Attributes:
        number: Which.
        error: Why.
        stream: The stream that refused it, as far as it says so.
        is_early: True when it was refused before the batch counted it: the batch may not exist.
        is_message: False where it was a ping or the end that got this answer.
    """

    number: int
    error: NatsStreamError
    stream: str
    is_early: bool
    is_message: bool = True

    @property
    def is_unknown_batch(self) -> bool:
        """True when the stream says that it does not know the batch."""
        error = self.error
        known = find_error_code(error.err_code) if isinstance(error, ServerError) else None
        return known is ErrorCode.BATCH_PUBLISH_UNKNOWN_BATCH_ID


@dataclass(frozen=True, slots=True)
class FinalAck:
    """The batch has ended: its first `count` messages are settled, and no later one is stored.

    Attributes:
        count: Messages.
        sequence: The last one's sequence in the stream; 0 where none was stored.
        other: Another stream that says so, of which nobody had asked; empty otherwise.
    """

    count: int
    sequence: int
    other: str = ""


FastAnswer = FlowAck | FlowGap | Refused | FinalAck


def reply_prefix(inbox: str, batch_id: str, flow: int, *, gaps_are_ok: bool) -> str:
    """Return what the reply subjects of one batch begin with, up to the number."""
    return f"{inbox}.{batch_id}.{flow}.{'ok' if gaps_are_ok else 'fail'}."


def read_answer(frame: Frame, batch_id: str, stream: str) -> FastAnswer | None:
    """Return what an answer says; None when it is about another batch.

    Raises:
        ProtocolError: It is not one of a stream.
    """
    tokens = frame[0].split(b".")[-_TOKENS:]
    if len(tokens) < _TOKENS or tokens[0] != batch_id.encode():
        return None
    number = _number(tokens[3], frame)
    is_message = tokens[4] not in _NO_MESSAGES
    what = f"fast batch into {stream}, message {number}"
    try:
        check_responders(frame, what)
    except NoRespondersError as error:
        error.message = f"{what}: no stream captures its subject, or the stream has no leader now"
        return Refused(number, error, stream, is_early=True, is_message=is_message)
    try:
        answer = Fields.parse(frame[3], what)
        return _read(answer, number, what, stream, is_message=is_message)
    except ProtocolError as error:
        raise _no_answer(frame) from error


def _read(answer: Fields, number: int, what: str, stream: str, *, is_message: bool) -> FastAnswer:
    kind = answer.text("type", "")
    if kind == "ack":
        return FlowAck(answer.count("seq", None), max(answer.count("msgs", None), 1))
    if kind == "gap":
        return FlowGap(answer.count("last_seq", None), answer.count("seq", None) - 1)
    error = answer.part_or_none("error")
    if error is not None:
        is_early = kind != "err"
        number = number if is_early else answer.count("seq", None)
        what = f"{what.rpartition(' ')[0]} {number}"
        failure = server_error(error.raw, what=what)
        by = answer.text("stream", "") or stream
        return Refused(number, failure, by, is_early, is_message or not is_early)
    # The sequence of a duplicate is that of its first copy.
    sequence = 0 if answer.flag("duplicate") else answer.count("seq", None)
    named = answer.text("stream", "")
    return FinalAck(answer.count("count", None), sequence, "" if named == stream else named)


def _number(token: bytes, frame: Frame) -> int:
    if not token.isdigit() or len(token) > _DIGITS_MAX:
        raise _no_answer(frame)
    return int(token)


def _no_answer(frame: Frame) -> ProtocolError:
    return ProtocolError(
        "an answer to a fast batch is not a stream's",
        detail=repr(frame[3][:80]),
        hint="does another program answer on the subject?",
    )
