"""What a server says of a stream: configuration, state and identity.

Law: the answer is kept whole in `raw`; typed fields are read from it, nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from natsstream.errors import ProtocolError
from natsstream.streams.config import StreamConfig
from natsstream.units import parse_rfc3339, time_from_ns


@dataclass(frozen=True, slots=True)
class StreamState:
    """How much a stream holds.

    Attributes:
        messages: Messages stored.
        bytes: Bytes stored, the server's bookkeeping included.
        first_seq: Sequence of the first message; last_seq + 1 when the stream is empty.
        last_seq: Sequence of the newest message ever stored; 0 for none.
        first_time_ns: Unix nanoseconds of the first message; 0 for none.
        last_time_ns: Unix nanoseconds of the last message; 0 for none.
        num_subjects: Different subjects stored.
        num_deleted: Sequences between first and last that are gone.
        consumer_count: Consumers.
        lost: Sequences that the server itself reports as lost, such as after a broken disk block.
            Servers tell them only when asked for `deleted_details`, as `Stream.read` does when it
            meets a hole, and only until they are started again.
    """

    messages: int
    bytes: int
    first_seq: int
    last_seq: int
    first_time_ns: int
    last_time_ns: int
    num_subjects: int
    num_deleted: int
    consumer_count: int
    lost: tuple[int, ...]

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> StreamState:
        """Return the state that a server sent."""

        def number(name: str) -> int:
            return cast("int", body.get(name, 0))

        def moment(name: str) -> int:
            text = cast("str", body.get(name, "0001-01-01T00:00:00Z"))
            # Go's zero time stands for "none".
            return 0 if text.startswith("0001-") else parse_rfc3339(text)

        lost = cast("Mapping[str, list[int] | None]", body.get("lost") or {})
        return cls(
            number("messages"),
            number("bytes"),
            number("first_seq"),
            number("last_seq"),
            moment("first_ts"),
            moment("last_ts"),
            number("num_subjects"),
            number("num_deleted"),
            number("consumer_count"),
            tuple(lost.get("msgs") or ()),
        )


@dataclass(frozen=True, slots=True)
class StreamInfo:
    """A stream at one moment.

    Attributes:
        config: Its configuration.
        state: What it holds.
        created_ns: Unix nanoseconds of its creation: the stream's identity. A stream that is
            deleted and made again under the same name has another.
        raw: The server's whole answer.
    """

    config: StreamConfig
    state: StreamState
    created_ns: int
    raw: Mapping[str, object]

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> StreamInfo:
        """Return the info that a server sent.

        Raises:
            ProtocolError: It is no stream info.
        """
        try:
            return cls(
                StreamConfig.from_json(cast("Mapping[str, object]", body["config"])),
                StreamState.from_json(cast("Mapping[str, object]", body["state"])),
                parse_rfc3339(cast("str", body["created"])),
                body,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ProtocolError("the answer is no stream info", detail=repr(error)) from error

    @property
    def name(self) -> str:
        """The stream's name."""
        return self.config.name

    def __repr__(self) -> str:
        state = self.state
        return (
            f"<StreamInfo {self.name}: {state.messages} messages, {state.bytes} bytes, "
            f"sequences {state.first_seq} to {state.last_seq}, "
            f"created {time_from_ns(self.created_ns):%Y-%m-%d %H:%M:%S}Z>"
        )
