"""A message before it is sent: payload, headers, id, expectation, TTL, schedule.

Law: what the server would do otherwise than asked is refused here; the caller's objects are never
changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast

from natsstream._wire.headers import HeaderName, Headers, HeaderValues, encode_headers
from natsstream.api.features import (
    COUNTERS,
    EXPECT_SUBJECT,
    MESSAGE_TTL,
    SCHEDULES,
    SCHEDULES_ENDED,
    Feature,
)
from natsstream.api.names import check_stream_name, check_subject
from natsstream.arguments import check_bytes, check_choice, check_int, check_text, described
from natsstream.constructors import answers_arguments
from natsstream.errors import ConfigError, PayloadTooLargeError, SubjectError
from natsstream.publish.schedule import Schedule, Ttl, ttl_text

Payload: TypeAlias = bytes | bytearray | memoryview
Rollup: TypeAlias = Literal["subject", "all"]

_T = TypeVar("_T")

_SEQUENCE_MAX = 2**64 - 1
_PAIR = 2
_EXPECT_EXAMPLE = "expect=ns.Expect(last_seq=41)"
_ROLLUPS = {"subject": "sub", "all": "all"}
# Headers that an older server would ignore, and store a plain message.
_HEADER_FEATURES: Mapping[str, Feature] = {
    HeaderName.TTL.value: MESSAGE_TTL,
    HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT.value: EXPECT_SUBJECT,
    HeaderName.INCREMENT.value: COUNTERS,
    HeaderName.SCHEDULE.value: SCHEDULES,
    HeaderName.SCHEDULE_NEXT.value: SCHEDULES_ENDED,
}


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """Conditions on the stream; if one does not hold, the message is refused.

    Attributes:
        stream: The stream that captures the subject.
        last_seq: Sequence of the stream's last message; 0 for an empty stream.
        last_subject_seq: Sequence of the last message of the same subject; 0 for none.
        subject: The subject that `last_subject_seq` is about, when it is not the message's own;
            needs a server of 2.11. No wildcards: replicated streams do not check those reliably.
        last_msg_id: Message id of the stream's last message. Refused on streams with replicas:
            nats-server 2.14 to 2.15.1 breaks such a stream for good where the id is wrong.
    """

    stream: str | None = None
    last_seq: int | None = None
    last_subject_seq: int | None = None
    subject: str | None = None
    last_msg_id: str | None = None

    def __post_init__(self) -> None:
        for name in ("last_seq", "last_subject_seq"):
            value = getattr(self, name)
            # The server takes a number that is too large for none at all, and stores the message.
            if value is not None and not 0 <= check_int(value, name) <= _SEQUENCE_MAX:
                raise ConfigError(
                    f"{name} must be 0 or more and fit into 64 bits, got {described(value)}"
                )
        if self.stream is not None:
            check_stream_name(check_text(self.stream, "stream"))
        if self.last_msg_id is not None:
            _check_msg_id(self.last_msg_id, "last_msg_id")
        if self.subject is not None:
            check_expected_subject(self.subject)
            if self.last_subject_seq is None:
                raise ConfigError(
                    f"subject {self.subject!r} is expected to have no particular sequence",
                    hint="give last_subject_seq as well",
                )

    def headers(self) -> dict[str, str]:
        """Return the headers that say so."""
        values = {
            HeaderName.EXPECTED_STREAM: self.stream,
            HeaderName.EXPECTED_LAST_SEQUENCE: self.last_seq,
            HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE: self.last_subject_seq,
            HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT: self.subject,
            HeaderName.EXPECTED_LAST_MSG_ID: self.last_msg_id,
        }
        return {name.value: str(value) for name, value in values.items() if value is not None}


@answers_arguments
@dataclass(frozen=True, slots=True, repr=False)
class PublishMessage:
    """A message for `send_many`: the arguments of `JetStream.publish` as a value."""

    subject: str
    data: Payload = b""
    headers: HeaderValues | None = None
    msg_id: str | None = None
    expect: Expect | None = None
    ttl: Ttl | None = None
    rollup: Rollup | None = None
    schedule: Schedule | None = None

    def __repr__(self) -> str:
        return f"<PublishMessage {self.subject!r} {len(self.data)} bytes>"


class Prepared(NamedTuple):
    """A message whose arguments are legal, as bytes; `admission.admit` asks for the rest.

    Attributes:
        subject: Where to.
        data: The payload; nobody changes it while it waits.
        block: The header block; empty for none.
        needs: Features that the servers need.
        expects_last_id: Whether it expects a last message id, which breaks replicated streams.
    """

    subject: str
    data: bytes
    block: bytes
    needs: tuple[Feature, ...]
    expects_last_id: bool


def prepare(
    subject: str,
    data: Payload = b"",
    headers: HeaderValues | None = None,
    msg_id: str | None = None,
    expect: Expect | None = None,
    ttl: Ttl | None = None,
    rollup: Rollup | None = None,
    schedule: Schedule | None = None,
) -> Prepared:
    """Check the arguments of one message and return its bytes; they are `JetStream.publish`'s.

    Raises:
        SubjectError: The subject cannot be published to.
        HeaderError: A header would break the wire.
        ConfigError: An argument has no legal value, or is of another type.
    """
    check_publish_subject(subject)
    payload = data if isinstance(data, bytes) else payload_bytes(data)
    if headers is msg_id is expect is ttl is rollup is schedule is None:
        return Prepared(subject, payload, b"", (), expects_last_id=False)
    message = PublishMessage(subject, payload, headers, msg_id, expect, ttl, rollup, schedule)
    return Prepared(subject, payload, *message_headers(message))


def prepare_message(message: object) -> Prepared:
    """Return the bytes of one of many messages; see `prepare`.

    Raises:
        ConfigError: It is neither a `PublishMessage` nor a pair.
    """
    if not isinstance(message, PublishMessage):
        return prepare(*pair_of(message))
    return prepare(
        message.subject,
        message.data,
        message.headers,
        message.msg_id,
        message.expect,
        message.ttl,
        message.rollup,
        message.schedule,
    )


def options_of(message: PublishMessage) -> dict[str, Any]:
    """Return what a message has besides subject and data, as arguments of each call that sends."""
    return {
        "headers": message.headers,
        "msg_id": message.msg_id,
        "expect": message.expect,
        "ttl": message.ttl,
        "rollup": message.rollup,
        "schedule": message.schedule,
    }


def message_headers(message: PublishMessage) -> tuple[bytes, tuple[Feature, ...], bool]:
    """Return block, needs and expects_last_id of a message whose subject is legal; see `prepare`.

    Raises:
        HeaderError: A header would break the wire.
        ConfigError: An argument has no legal value, or is of another type.
    """
    headers, expect, ttl = message.headers, message.expect, message.ttl
    rollup, schedule = message.rollup, message.schedule
    merged: dict[str, str | Sequence[str]] = {} if headers is None else copied_headers(headers)
    if message.msg_id is not None:
        merged["Nats-Msg-Id"] = _check_msg_id(message.msg_id, "msg_id")
    if ttl is not None:
        merged["Nats-TTL"] = ttl_text(ttl)
    if rollup is not None:
        merged["Nats-Rollup"] = _ROLLUPS[check_choice(rollup, "rollup", tuple(_ROLLUPS))]
    if expect is not None:
        merged.update(_checked(expect, Expect, _EXPECT_EXAMPLE).headers())
    if schedule is not None:
        _checked(schedule, Schedule, "schedule=ns.Schedule.every(60, target=...)")
        _check_schedule(schedule, message.subject, rollup)
        merged.update(schedule.headers())
    if headers is expect is ttl is schedule is None:
        return encode_headers(merged), (), False  # As it is for each message with an id.
    other = merged.get("Nats-Expected-Last-Subject-Sequence-Subject")
    if other is not None:
        check_expected_subject(other)  # Given as a header it is as unsafe.
    needs = _needs(merged, schedule)
    return encode_headers(merged), needs, "Nats-Expected-Last-Msg-Id" in merged


def pair_of(message: object) -> tuple[str, Payload]:
    """Return subject and data of one of many messages; what they are is checked later.

    Raises:
        ConfigError: It is no pair.
    """
    if isinstance(message, tuple | list):
        pair = cast("Sequence[object]", message)
        if len(pair) == _PAIR:
            return cast("tuple[str, Payload]", tuple(pair))
    raise ConfigError(
        f"a message is {described(cast('object', message))}",
        hint="give (subject, data) or ns.PublishMessage(subject, data, ...)",
    )


def check_messages(messages: object) -> None:
    """Refuse what gives no messages one after another.

    Raises:
        ConfigError: It is not iterable, or iterates over something else.
    """
    is_one = isinstance(messages, str | bytes | bytearray | memoryview | Mapping)
    if is_one or not isinstance(messages, Iterable):
        raise ConfigError(
            f"messages is {described(cast('object', messages))}",
            hint="give a list of (subject, data) pairs",
        )


def given_msg_id(headers: object) -> str | None:
    """Return the message id that stands in the headers; what they are is checked later."""
    if not headers or not isinstance(headers, Mapping):
        return None
    given = cast("Mapping[str, object]", headers).get(HeaderName.MSG_ID)
    if isinstance(given, list | tuple):
        given = next(iter(cast("Sequence[object]", given)), None)
    return given if isinstance(given, str) else None


def check_publish_subject(subject: object) -> str:
    """Return a subject that a message can go to.

    Raises:
        SubjectError: It is none, or no text.
    """
    return check_subject(check_text(subject, "subject", error=SubjectError))


def check_expected_subject(subject: object) -> str:
    """Return a subject that an expectation can be about.

    Raises:
        SubjectError: It is none, or has a wildcard: on a stream with replicas a message that was
            written just before is not seen, in 60 of 60 trials.
    """
    try:
        return check_publish_subject(subject)
    except SubjectError as error:
        tokens = str(subject).split(".")
        if "*" not in tokens and ">" not in tokens:
            raise
        raise SubjectError(
            f"expect: subject {subject!r} has a wildcard",
            detail="replicated streams compare only with what is stored, not with what is being "
            "stored, so writes that the wildcard means are overlooked",
            hint="expect each subject by its name; several in one atomic batch",
        ) from error


def _check_schedule(schedule: Schedule, subject: str, rollup: Rollup | None) -> None:
    for name in ("target", "source"):
        if getattr(schedule, name) == subject:
            raise ConfigError(
                f"the schedule's {name} is its own subject {subject!r}",
                hint="publish the schedule to a subject of its own, such as schedules.daily",
            )
    if rollup == "all":
        raise ConfigError(
            "a schedule with rollup='all'",
            hint="a schedule replaces the earlier one of its subject; leave rollup out",
        )


def _needs(merged: Mapping[str, object], schedule: Schedule | None) -> tuple[Feature, ...]:
    """Return what the servers must have: an older one would take no notice."""
    needs = tuple(_HEADER_FEATURES[name] for name in _HEADER_FEATURES.keys() & merged.keys())
    return needs if schedule is None else (*needs, *schedule.features())


def _checked(value: object, kind: type[_T], example: str) -> _T:
    if isinstance(value, kind):
        return value
    name = example.partition("=")[0]
    raise ConfigError(f"{name} is {described(value)}", hint=f"write {example}")


def add_header(block: bytes, name: HeaderName, value: str | int) -> bytes:
    """Return a block with one more line; name and value are legal."""
    # As in `encode_headers`: an id that was read from a header may have bytes that are no UTF-8.
    line = f"{name.value}: {value}\r\n\r\n".encode("utf-8", "surrogateescape")
    return (block[:-2] if block else b"NATS/1.0\r\n") + line


def payload_bytes(data: object) -> bytes:
    """Return the payload as bytes, which nobody changes while it waits for its ack.

    Raises:
        ConfigError: It is no bytes.
    """
    return check_bytes(data, "data")


def too_large(what: str, size: int, largest: int) -> PayloadTooLargeError:
    """Return the error of a message beyond max_payload, which would end the connection."""
    return PayloadTooLargeError(
        f"{what} has {size} bytes, the server's max_payload is {largest}",
        hint="split it, or raise max_payload in the server's configuration",
    )


def copied_headers(headers: HeaderValues) -> dict[str, str | Sequence[str]]:
    """Return all values of a mapping, also of one that shows only the first of each name."""
    if isinstance(headers, Headers):
        return {name: headers.all(name) for name in headers}
    _checked(headers, Mapping, "headers={'Name': 'value'}")
    return dict(headers)


def _check_msg_id(msg_id: object, what: str) -> str:
    text = check_text(msg_id, what)
    # The server takes no notice of an empty one, and cuts off spaces: ids would become equal.
    if not text or text != text.strip():
        raise ConfigError(
            f"{what} {text!r} is empty or has spaces around it",
            hint="the server would drop them, and no duplicate would be found",
        )
    return text
