"""The fast lane's parser: cuts received bytes into frames and hands them to sinks, without waiting.

Law: the same bytes give the same frames and the same end, however they are split into calls. Bytes
that are no NATS are an end: what is returned for nats-py is whole, and such that it reads it, as it
would wait for ever behind a line of more than 4 KiB that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from natsstream._wire.server_info import read_info
from natsstream.errors import ProtocolError

if TYPE_CHECKING:
    from natsstream._wire.deliveries import Deliveries
    from natsstream._wire.framing import FrameBlock

# INFO is long in large clusters, and a message's line where a server allows a long control line;
# one beyond 1 MiB without an end is no NATS server.
LINE_BYTES_MAX = 1 << 20
# Every other line: the longest is the -ERR that names a subject of 4 KiB.
_OTHER_LINE_BYTES_MAX = 8 << 10
FRAME_BYTES_MAX = 64 << 20
"""No frame is larger than this or the largest `max_payload` that a server told, by which a server
compares headers and payload; 64 MiB is the most that a server queues for a client by default, and
so the most that a `max_payload` was which a reload has lowered since."""
# Headers that a server adds to a stored message: its stream and sequence, for direct gets,
# republished and sourced messages.
_ADDED_BYTES_MAX = 64 << 10
# nats-server keeps sizes in 32 bits.
_SIZE_DIGITS_MAX = 10
_NO_SIZE = 1 << 63
# A sink that wants full blocks looks at all that is left, also where its run is short. Two looks
# at everything cost as much as to gather the frames of each sink; one status in a block costs less.
_LOOKS_MAX = 2
_SHOWN_BYTES_MAX = 80
_CR = 13
_LONG = (b"MSG ", b"HMSG", b"INFO")
_VERBS = (*_LONG, b"PING", b"PONG", b"+OK", b"-ERR")
_VERB_SIZE = 4
_CONTROL = re.compile(
    rb"(?P<bare>PING|PONG|\+OK)[ \t]*|(?P<verb>-ERR|INFO)(?:[ \t]+(?P<text>[^\r\n]*))?",
    re.IGNORECASE,
)
# As narrow as nats-py's own expressions: it takes a vertical tab for a space, a server does not.
_PASSED = re.compile(rb"H?MSG [^\s]+ [0-9]{1,18}(?: [^\s]+)?(?: [0-9]+){1,2}")


Frame: TypeAlias = tuple[bytes, bytes, bytes, bytes]
"""One message as it stood on the wire: (subject, reply, header block, payload).

Reply and header block are empty when there are none. A plain tuple, because making a named one
costs as much as cutting the frame.
"""

FrameSink: TypeAlias = Callable[[list[Frame]], None]
"""Receives the frames of one subscription, in order, at most once for each parsed buffer."""


class BlockSink(Protocol):
    """Receives runs of frames that are cut together.

    Attributes:
        bytes_min: Where fewer bytes are left, the frames go to the frame sink.
        wants_full: True where a block costs the same for few frames as for many: the lane waits a
            moment for it to fill, and frames that others stand between are gathered.
    """

    bytes_min: int
    wants_full: bool

    def take(self, data: bytes, start: int) -> Block | None:
        """Cut whole frames of this subscription that stand at `start`; None for none."""
        ...

    def put(self, block: Block) -> None:
        """Take over a block."""
        ...


Block: TypeAlias = "FrameBlock | Deliveries"
"""Frames that were cut together; `stop` is the offset after the last."""


class Parsed(NamedTuple):
    """The result of one call of `FrameParser.parse`.

    Attributes:
        consumed: Bytes that need not be shown again.
        needed: Length that the rest must reach before another call can get further.
        passed: Bytes that are not for a sink, in order.
        failure: Why nothing behind the consumed bytes can be read; None while it can.
    """

    consumed: int
    needed: int
    passed: bytes
    failure: ProtocolError | None = None


class FrameParser:
    """Dispatches frames to the sinks of their subscriptions.

    Args:
        on_error: Called with the text of each `-ERR`, which is passed on as well.

    Attributes:
        sinks: Frame sinks by subscription id in ASCII.
        blocks: Block sinks by subscription id in ASCII; looked up before `sinks`.
        frame_bytes_max: Headers and payload of the largest frame that is read.
    """

    def __init__(self, on_error: Callable[[str], None] | None = None) -> None:
        self._on_error = on_error
        self.sinks: dict[bytes, FrameSink] = {}
        self.blocks: dict[bytes, BlockSink] = {}
        self.frame_bytes_max: int = FRAME_BYTES_MAX + _ADDED_BYTES_MAX

    @property
    def wants_full_blocks(self) -> bool:
        """True while somebody reads whom small blocks cost more than a moment's wait."""
        return any(sink.wants_full for sink in self.blocks.values())

    def allow(self, max_payload: int) -> None:
        """Read frames of a server that takes such messages; a smaller limit than before is no news.

        A stored message may be larger than the limit after a reload.
        """
        self.frame_bytes_max = max(self.frame_bytes_max, max_payload + _ADDED_BYTES_MAX)

    def tell_error(self, text: str) -> None:
        """Pass an error of the server on, without the quotes around it."""
        if self._on_error is not None:
            self._on_error(text.strip().strip("'"))

    def parse(self, data: bytes) -> Parsed:
        """Read every whole frame in `data`, which starts at a frame's start.

        Args:
            data: All bytes that are not consumed yet.

        Returns:
            How far it got; the caller keeps `data[consumed:]` and calls again with more. With a
            failure, that all before it was handed over, and nothing behind it will be.

        Cost: about 1 microsecond a frame for sinks.
        """
        return self._read(data, _LOOKS_MAX * len(data))

    def _read(self, data: bytes, spare: float) -> Parsed:
        """Do what `parse` does; `spare` bytes may be looked at in vain before frames are gathered.

        Where subscriptions take turns, runs are short; the gathered frames of one are a run again.
        """
        # Measured: local names and one slice a field beat every regular expression and struct.
        position, length, needed = 0, len(data), 0
        find, sinks, blocks = data.find, self.sinks, self.blocks
        batches: dict[bytes, list[Frame]] = {}
        gathered: dict[bytes, list[bytes]] = {}
        passed: list[bytes] = []
        last_sid, append = b"", _no_batch
        failure: ProtocolError | None = None
        while (line_end := find(b"\r\n", position)) >= 0:
            verb = data[position : position + _VERB_SIZE]
            header_length = 0
            if verb == b"MSG ":
                fields = data[position + 4 : line_end].split(b" ")
            elif verb == b"HMSG":
                fields = data[position + 4 : line_end].split(b" ")
                header_length = _header_length(fields)
            else:
                try:
                    passed.append(self._control(data[position:line_end]))
                except ProtocolError as error:
                    failure = error
                    break
                position = line_end + 2
                continue
            digits = fields[-1]
            count = len(fields)
            try:
                size = int(digits) if digits.isdigit() else -1
            except ValueError:  # More digits than Python reads.
                size = -1
            if size < header_length or count > 4 or count < 3:
                failure = _malformed(data[position:line_end])
                break
            start = line_end + 2
            stop = start + size
            if stop + 2 > length:
                needed = stop + 2 - position
                if size > self.frame_bytes_max:
                    failure = _malformed(data[position:line_end])
                break
            if data[stop] != _CR:
                failure = _malformed(data[position:line_end])
                break
            sid = fields[1]
            if sid in blocks:
                block_sink = blocks[sid]
                if spare < 0 and block_sink.wants_full:
                    gathered.setdefault(sid, []).append(data[position : stop + 2])
                    position = stop + 2
                    continue
                block = None
                if length - position >= block_sink.bytes_min:
                    block = block_sink.take(data, position)
                if block is not None:
                    _deliver(batches, sinks)
                    batches, last_sid = {}, b""
                    block_sink.put(block)
                    position = block.stop
                    if block_sink.wants_full:
                        spare -= length - position
                    continue
            if sid != last_sid:
                if sid not in sinks:
                    if not _PASSED.fullmatch(data, position, line_end):
                        failure = _malformed(data[position:line_end])
                        break
                    passed.append(data[position : stop + 2])
                    position = stop + 2
                    continue
                last_sid, append = sid, batches.setdefault(sid, []).append
            body = start + header_length
            reply = fields[2] if count == 4 else b""
            append((fields[0], reply, data[start:body], data[body:stop]))
            position = stop + 2
        _deliver(batches, sinks)
        for frames in gathered.values():
            self._read(b"".join(frames), inf)
        if not needed and failure is None:
            needed = length - position + 1
            failure = _unended(data, position)
        return Parsed(position, needed, b"".join(passed), failure)

    def _control(self, line: bytes) -> bytes:
        """Return what nats-py is to read for a line that is no message's.

        Raises:
            ProtocolError: No server of NATS would write it.
        """
        found = _CONTROL.fullmatch(line)
        if found is None:
            raise _malformed(line)
        verb: bytes | None = found["verb"]
        text: bytes = found["text"] or b""
        is_info = verb is not None and verb.upper() == b"INFO"
        if len(line) > (LINE_BYTES_MAX if is_info else _OTHER_LINE_BYTES_MAX):
            raise _malformed(line)
        if verb is None:
            return b"%b\r\n" % found["bare"].upper()
        if is_info:
            payload_max = read_info(text).get("max_payload")
            if isinstance(payload_max, int):
                self.allow(payload_max)
            return b"INFO %b\r\n" % text
        # nats-py would tell it too, but in lower case, as if subjects had none.
        self.tell_error(text.decode(errors="surrogateescape"))
        # It reads only what stands in quotes, and UTF-8.
        words = text.strip().strip(b"'").decode(errors="replace") or "no reason"
        return b"-ERR '%b'\r\n" % words.encode()


def _malformed(line: bytes) -> ProtocolError:
    return ProtocolError(
        f"malformed line from the server: {line[:_SHOWN_BYTES_MAX]!r}",
        hint="is this address a NATS server, or does something between change bytes?",
    )


def _unended(data: bytes, position: int) -> ProtocolError | None:
    """Return what is wrong with a line whose end has not come; None for nothing so far."""
    head = data[position : position + _VERB_SIZE].upper()
    if not any(verb.startswith(head[: len(verb)]) for verb in _VERBS):
        return _malformed(data[position : position + _SHOWN_BYTES_MAX])
    size = len(data) - position
    if size > (LINE_BYTES_MAX if head in _LONG else _OTHER_LINE_BYTES_MAX):
        return ProtocolError(
            f"no line end within {size} bytes from the server",
            hint="is this address a NATS server?",
        )
    return None


def _no_batch(_frame: Frame) -> None:
    """Stand for the batch before the first subscription is known; never called."""
    raise AssertionError


def _deliver(batches: dict[bytes, list[Frame]], sinks: dict[bytes, FrameSink]) -> None:
    for sid, frames in batches.items():
        # A sink may close another's subscription while it runs.
        sink = sinks.get(sid)
        if sink is not None:
            sink(frames)


def _header_length(fields: list[bytes]) -> int:
    """Take the header's size out of the fields of a line from after `HMSG` on.

    Returns:
        The size; one that is larger than every frame when no server would write such a line.
    """
    if len(fields) < 4 or fields.pop(0):
        return _NO_SIZE
    digits = fields.pop(-2)
    return int(digits) if digits.isdigit() and len(digits) <= _SIZE_DIGITS_MAX else _NO_SIZE
