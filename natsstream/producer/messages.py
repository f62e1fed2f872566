"""Appended values as messages, and the records around them; pure rules.

Law: the server's own rules in the headers of a message are the producer's alone, except how long
the message lives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard, cast

from natsstream.api.control import Control
from natsstream.api.headers import HeaderName, HeaderValues
from natsstream.api.names import check_subject
from natsstream.api.stream_config import StreamConfig
from natsstream.arguments import check_bytes, described
from natsstream.errors import ConfigError, PayloadTooLargeError, WrongStreamError
from natsstream.producer.options import ProducerEncoding
from natsstream.producer.records import BatchMark, StateRecord
from natsstream.publish.destination import captures
from natsstream.publish.outgoing import Expect, Prepared, PublishMessage, prepare
from natsstream.streams.closing.end import EndOfStream
from natsstream.values import to_json

_RESERVED = "nats-"
_ALLOWED = HeaderName.TTL.value.lower()
# The producer's own headers, without the subjects that stand in them.
_OWN_BYTES_MAX = 400
_CHECKPOINT_BYTES_MAX = 4_096
_SUBJECTS_MAX = 1_024
_PAIR = 2


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a producer's messages and records go.

    Attributes:
        config: The stream's configuration.
        control: The stream's control subjects.
        state: The subject of the state record.
        mark: The subject of the mark in front of a batch.
    """

    config: StreamConfig
    control: Control
    state: str
    mark: str

    def record(self, record: StateRecord, expect: Expect) -> Prepared:
        """Return the message of a state record, which replaces the one before it."""
        return self._replacing(self.state, record.to_json(), expect)

    def mark_of(self, mark: BatchMark, expect: Expect) -> Prepared:
        """Return the message of a mark, which replaces the one before it."""
        return self._replacing(self.mark, mark.to_json(), expect)

    def _replacing(self, subject: str, data: bytes, expect: Expect) -> Prepared:
        return prepare(
            subject,
            data,
            expect=expect,
            ttl="never" if self.config.allow_msg_ttl else None,
            rollup=None if self.config.deny_purge else "subject",
        )

    def end(self, end: EndOfStream, expect: Expect) -> Prepared:
        """Return the message that ends the stream."""
        ttl = "never" if self.config.allow_msg_ttl else None
        return prepare(self.control.end, end.to_json(), expect=expect, ttl=ttl)


class MessageMaker:
    """Makes messages of what is appended.

    Args:
        placement: Where they go.
        subject: The subject of messages that name none.
        encoding: How values become bytes.
        largest: The largest message that the server takes.
    """

    def __init__(
        self, placement: Placement, subject: str | None, encoding: ProducerEncoding, largest: int
    ) -> None:
        self._config = placement.config
        self._control = placement.control
        self._subject = subject
        self._encoding = encoding
        self._takes_bytes = encoding == "bytes"
        names = len(placement.control.end) + len(placement.state)
        self._size_max = largest - _OWN_BYTES_MAX - names
        self._known: set[str] = set()
        if subject is not None:
            self._check_subject(subject)

    def make(
        self,
        value: object,
        subject: str | None = None,
        headers: HeaderValues | None = None,
        *,
        name: str = "data",
    ) -> Prepared:
        """Return the message of a value; errors call it by the name of the caller's argument.

        Raises:
            ConfigError: The value cannot be encoded, a header is the producer's own, or no subject
                is given.
            SubjectError: The subject is illegal.
            WrongStreamError: The stream does not capture the subject.
            HeaderError: A header is illegal.
            PayloadTooLargeError: The message exceeds the server's limit.
        """
        subject = self._subject if subject is None else subject
        if subject is None:
            raise ConfigError("the message has no subject", hint="give subject= here or at first")
        data = value if type(value) is bytes and self._takes_bytes else self._encoded(value, name)
        if headers is None and type(subject) is str and subject in self._known:
            message = Prepared(subject, data, b"", (), expects_last_id=False)
        else:
            message = prepare(subject, data, _own(headers))
            if subject not in self._known:
                self._check_subject(subject)
        size = len(data) + len(message.block)
        if size > self._size_max:
            raise PayloadTooLargeError(
                f"message to {subject} has {size} bytes, {self._size_max} are left beside the "
                "producer's headers",
                hint="split it, or raise max_payload in the server's configuration",
            )
        return message

    def make_item(self, item: object) -> Prepared:
        """Return the message of a value, of a (subject, value) pair, or of a `PublishMessage`.

        Raises:
            ConfigError: As for `make`; or the message has what the producer does not take.
            NatsStreamError: As for `make`.
        """
        if isinstance(item, PublishMessage):
            if not item.msg_id is item.expect is item.ttl is item.rollup is item.schedule is None:
                raise ConfigError(
                    f"a message to {item.subject} with more than data and headers",
                    hint="the producer itself keeps messages from being stored twice; Nats-TTL in "
                    "headers limits their life",
                )
            return self.make(item.data, item.subject, item.headers)
        if _is_pair(item):
            return self.make(item[1], item[0])
        return self.make(item)

    def checkpoint(self, position: object) -> object:
        """Return a checkpoint that JSON can write.

        Raises:
            ConfigError: It cannot, or the text is too long.
        """
        try:
            size = len(to_json(position, ascii_only=True))
        except (ValueError, TypeError, RecursionError) as error:
            raise ConfigError(
                f"checkpoint {described(position)} is not a JSON value", detail=str(error)
            ) from error
        if size > _CHECKPOINT_BYTES_MAX:
            raise ConfigError(
                f"the checkpoint has {size} bytes, {_CHECKPOINT_BYTES_MAX} are allowed",
                hint="give a position, such as an offset, instead of data",
            )
        return position

    def _encoded(self, value: object, name: str) -> bytes:
        if self._encoding == "json":
            try:
                return to_json(value).encode()
            except (ValueError, TypeError, RecursionError) as error:
                raise ConfigError(
                    f"{described(value)} is not a JSON value", detail=str(error)
                ) from error
        if isinstance(value, str):
            try:
                return value.encode()
            except UnicodeEncodeError as error:
                raise ConfigError("the text cannot be encoded", detail=str(error)) from error
        return check_bytes(value, name)

    def _check_subject(self, subject: str) -> None:
        check_captured(self._config, subject, self._control)
        if len(self._known) >= _SUBJECTS_MAX:
            self._known.clear()
        self._known.add(subject)


def check_captured(config: StreamConfig, subject: str, control: Control | None) -> None:
    """Refuse a subject that is no data of a stream.

    Raises:
        SubjectError: The subject is illegal.
        WrongStreamError: The stream does not capture it, or it is a control subject.
    """
    check_subject(subject)
    if (control is not None and control.has(subject)) or not captures(config, subject):
        raise WrongStreamError(
            f"stream {config.name} does not capture {subject} as data",
            hint=f"its subjects are {', '.join(config.subjects or ())}",
        )


def _is_pair(value: object) -> TypeGuard[tuple[str, object]]:
    return isinstance(value, tuple) and len(cast("tuple[object, ...]", value)) == _PAIR


def _own(headers: HeaderValues | None) -> HeaderValues | None:
    """Refuse headers that would change what the server does with the batch."""
    if isinstance(headers, Mapping):
        for name in headers:
            lower = str(name).lower()
            if lower.startswith(_RESERVED) and lower != _ALLOWED:
                raise ConfigError(
                    f"header {name} belongs to the producer",
                    hint=f"leave it out; only {HeaderName.TTL} of the server's can be given",
                )
    return headers
