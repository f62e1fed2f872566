"""A stream that is only read as a core stream: each of its subjects is a key.

Law: nothing of it is changed, and no message is unreadable: a value that cannot be decoded is its
bytes. The records of producers (`natsstream.control`) are no data.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from natsstream.api.control import Control, control_of
from natsstream.api.headers import Headers
from natsstream.api.message import Message
from natsstream.api.names import check_filters
from natsstream.api.stream_config import StreamConfig
from natsstream.arguments import check_int, check_text
from natsstream.conat.configuration import limits_of
from natsstream.conat.opening import LOOK_EVERY_S, check_look_every
from natsstream.conat.reconcile import Limits
from natsstream.conat.record import Record
from natsstream.conat.views import Codec
from natsstream.errors import CodecError, ConfigError, UsageError
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream

# Control records have it in their subjects, before their stream is known to have any.
_CONTROL_MARK = ".$ctl."


@dataclass(frozen=True, slots=True)
class ForeignNames:
    """The subjects of a stream that is only read, each of which is a key.

    Attributes:
        path: The stream's name.
    """

    path: str

    def is_keyed(self, subject: str) -> bool:
        """Return True: a message without a key would be in no mapping."""
        return bool(subject)

    def key_subjects(self, subjects: Iterable[str]) -> list[str]:
        """Return the subjects."""
        return list(subjects)

    def key_of(self, subject: str) -> str | None:
        """Return the subject."""
        return subject

    def subject_of(self, key: str | None) -> str:
        """Return the key; "", which is no subject, for none."""
        return key or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignOptions:
    """How a stream is read that is not a core stream; `CoreStreams.over` has the arguments.

    Attributes:
        stream: Its name, or the stream.
        start_seq: The first sequence to load; None is the first.
        filters: The subjects to read; none is all.
        look_every: Seconds between two comparisons with the stream's info.
        names: Its names.

    Raises:
        ConfigError: An argument is not legal.
        SubjectError: A filter is not a legal subject.
    """

    stream: Stream | str
    start_seq: int | None = None
    filters: Sequence[str] = ()
    look_every: float = LOOK_EVERY_S
    names: ForeignNames = field(init=False)

    def __post_init__(self) -> None:
        if self.start_seq is not None:
            check_int(self.start_seq, "start_seq", minimum=0)
        check_look_every(self.look_every)
        object.__setattr__(self, "filters", check_filters(self.filters))
        held = self.stream
        name = held.name if isinstance(held, Stream) else check_text(held, "stream")
        object.__setattr__(self, "names", ForeignNames(name))


class ForeignCodec(Codec):
    """Reads the records of a stream that is only read."""

    def user(self, record: Record) -> dict[str, object] | None:
        """Return all headers as they are; a name with several values has a list."""
        headers = Headers(record.headers)
        values = ((name, list(headers.all(name))) for name in headers)
        return {name: each if len(each) > 1 else each[0] for name, each in values} or None

    def value(self, record: Record) -> object:
        """Return the value; the bytes if there is no encoding, or they are not of it."""
        try:
            return super().value(record)
        except CodecError:
            return record.data


class ForeignOpener:
    """Finds a stream that is only read, and tells what is in it.

    Args:
        js: The JetStream context.
        options: How the stream is read.

    Attributes:
        filters: As in the options.
    """

    _stream: Stream

    def __init__(self, js: JetStreamContext, options: ForeignOptions) -> None:
        self.filters: Sequence[str] = options.filters
        self._js = js
        self._given = options.stream
        self._control: Control | None = None

    async def open(self) -> Stream:
        """Return the stream.

        Raises:
            StreamNotFoundError: There is none.
        """
        if isinstance(self._given, str):
            stream = await self._js.streams.get(self._given)
        else:
            stream = copy.copy(self._given)  # It may be of another domain.
            stream.cached = await stream.info()
        self._stream = stream
        return stream

    @property
    def is_partial(self) -> bool:
        """True if some messages of the stream are not wanted."""
        return bool(self.filters) or self._control is not None

    def learn(self, config: StreamConfig) -> Limits:
        """Take note of the stream's configuration, and return its limits.

        Raises:
            UsageError: Consumers remove the stream's messages.
        """
        if config.retention not in (None, "limits"):
            raise UsageError(
                f"stream {config.name} loses its messages to its consumers: its retention is "
                f"{config.retention}",
                hint="follow a mirror of it, from nats-server 2.14 on if it is a work queue: "
                f'js.streams.create("copy", mirror={{"name": "{config.name}"}})',
            )
        self._control = None
        with suppress(ConfigError):  # No producer can use it then.
            self._control = control_of(config)
        return limits_of(config, is_foreign=True)

    async def data(self, messages: list[Message]) -> list[Message]:
        """Return the messages that are data."""
        if any(_CONTROL_MARK in each.subject for each in messages):
            # A producer may have come meanwhile.
            self.learn((await self._stream.info()).config)
        control = self._control
        if control is None:
            return messages
        return [each for each in messages if not control.has(each.subject)]
