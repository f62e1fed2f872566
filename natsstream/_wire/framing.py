"""Cuts a received block into the messages of one consumer with numpy: positions, not copies.

How it is proved right: every line that looks like a message's first line is a candidate; its last
field says where the next frame must start. The first start is true, so each candidate that stands
where its true predecessor ends is true as well. A payload that contains protocol text only makes
candidates that nothing points at.

Law: the result equals `cut_in_order`, which reads one frame after another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from natsstream._wire.acks import ack_numbers
from natsstream.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
Bytes: TypeAlias = "NDArray[np.uint8]"

# glibc keeps as much free memory as twice the largest block that was ever freed, 2 MiB here, and
# gives the rest back: each block of columns then cost 480 page faults, a fifth of the processor
# time of a read. A larger one is freed here; its pages are never touched.
_KEPT_BYTES = 4 << 20
bytes(_KEPT_BYTES)

_LF, _CR, _SPACE, _ZERO = 10, 13, 32, 48
_TIME_DIGITS = 19  # Unix nanoseconds have 19 digits from 2001 to 2286.
_TIME_POWERS = 10 ** np.arange(_TIME_DIGITS - 1, -1, -1, dtype=np.int64)
_ACK_V1_TOKENS, _ACK_V2_TOKENS = 9, 11
_MSG = b"MSG "
_WORD = 8
_EACH_BYTE = np.uint64(0x0101010101010101)
# Masks of the last bytes of a word, by their number.
_LAST_BYTES = np.array(
    [(1 << 64) - (1 << 8 * (_WORD - count)) for count in range(_WORD + 1)], np.uint64
)


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """Messages that stand one after another in a block; all arrays have one entry a message.

    Attributes:
        data: The block. Positions are offsets into it; nothing is copied.
        stop: Offset after the last message.
        subject_start: First byte of the subject.
        subject_stop: Offset after it.
        header_start: First byte of the header block; equals `payload_start` where there is none.
        payload_start: First byte of the payload.
        payload_stop: Offset after it.
        sequence: Sequence in the stream.
        consumer_sequence: Sequence of delivery by the consumer.
        time_ns: Unix nanoseconds at which the stream stored the message.
        pending: Messages that the consumer still had after the last one.
    """

    data: bytes
    stop: int
    subject_start: Ints
    subject_stop: Ints
    header_start: Ints
    payload_start: Ints
    payload_stop: Ints
    sequence: Ints
    consumer_sequence: Ints
    time_ns: Ints
    pending: int

    def __len__(self) -> int:
        return len(self.sequence)

    def without(self, start: bytes) -> FrameBlock:
        """Return the messages whose subjects do not begin with some bytes; itself if it is all.

        Cost: 20 ns a message.
        """
        array = np.frombuffer(self.data, np.uint8)
        # A subject that is long enough has all of the bytes that are compared.
        begins = self.subject_stop - self.subject_start >= len(start)
        found = _gather(array, self.subject_start[begins], len(start))
        begins[begins] = (found == np.frombuffer(start, np.uint8)).all(axis=1)
        return self._where(~begins) if begins.any() else self

    def sequences_without(self, others: FrameBlock) -> list[int]:
        """Return the sequences that are not among others, ascending."""
        return np.setdiff1d(self.sequence, others.sequence, assume_unique=True).tolist()

    def _where(self, kept: NDArray[np.bool_]) -> FrameBlock:
        return replace(
            self,
            subject_start=self.subject_start[kept],
            subject_stop=self.subject_stop[kept],
            header_start=self.header_start[kept],
            payload_start=self.payload_start[kept],
            payload_stop=self.payload_stop[kept],
            sequence=self.sequence[kept],
            consumer_sequence=self.consumer_sequence[kept],
            time_ns=self.time_ns[kept],
        )


def block_of(
    parts: Sequence[tuple[bytes, bytes, bytes]], sequences: Sequence[int], times_ns: Sequence[int]
) -> FrameBlock:
    """Return messages, at least one, as a block of their own that knows of no deliveries.

    Args:
        parts: Subject, headers and payload of each.
        sequences: Their sequences in the stream.
        times_ns: Unix nanoseconds at which the stream stored them.
    """
    sizes = np.array([list(map(len, each)) for each in parts], np.int64)
    stops = sizes.cumsum().reshape(sizes.shape)
    subject_stop, payload_start, payload_stop = (stops[:, at].copy() for at in range(3))
    return FrameBlock(
        b"".join([part for each in parts for part in each]),
        int(stops[-1, -1]),
        subject_stop - sizes[:, 0],
        subject_stop,
        subject_stop,
        payload_start,
        payload_stop,
        np.array(sequences, np.int64),
        np.zeros(len(parts), np.int64),
        np.array(times_ns, np.int64),
        0,
    )


def cut_block(data: bytes, start: int, sid: bytes) -> FrameBlock | None:
    """Cut the whole messages of one consumer's subscription that stand at `start`.

    Args:
        data: Received bytes; may end within a frame.
        start: Offset of a frame's first byte.
        sid: The subscription id in ASCII.

    Returns:
        The messages up to the first frame that is something else (another subscription, a status,
        a ping) or is not whole, or None when the first frame already is.

    Cost: about 0.5 microseconds a message at 256 bytes and blocks of 1 MiB.
    """
    tail = _ack_tail(data, start, sid)
    if tail is None:
        return None
    if tail.suffix_tokens:
        return cut_in_order(data, start, sid)
    array = np.frombuffer(data, np.uint8)[start:]
    frames = _whole(array, _chain(array))
    if not len(frames.start):
        return None
    numbers = _dense_numbers(array, frames, tail) or _each_number(array, frames, tail)
    whole = len(numbers.sequence)
    if not whole:
        # A number of 19 digits: more than `_number_before` reads.
        return cut_in_order(data, start, sid)
    frames = frames.head(whole)
    time_ns = _gather(array, numbers.time_stop - _TIME_DIGITS, _TIME_DIGITS)
    pending = bytes(array[int(numbers.time_stop[-1]) + 1 : int(frames.reply_stop[-1])]) or b"0"
    is_number = pending.isdigit() and len(pending) <= _TIME_DIGITS
    # Unsigned: below "0" is far above 9.
    if (time_ns - _ZERO > 9).any() or not is_number:
        return cut_in_order(data, start, sid)
    return FrameBlock(
        data,
        start + int(frames.payload_stop[-1]) + 2,
        frames.subject_start + start,
        numbers.glue_start + start,
        frames.header_start + start,
        frames.payload_start + start,
        frames.payload_stop + start,
        numbers.sequence,
        numbers.consumer_sequence,
        (time_ns.astype(np.int64) - _ZERO) @ _TIME_POWERS,
        int(pending),
    )


def cut_in_order(data: bytes, start: int, sid: bytes) -> FrameBlock | None:
    """Do what `cut_block` does, one frame after another, in plain Python.

    It serves the rare ack subjects with tokens after the numbers, and it is what the tests compare
    `cut_block` with.
    """
    tail = _ack_tail(data, start, sid)
    if tail is None:
        return None
    rows: list[tuple[int, ...]] = []
    pending = 0
    position = start
    while (line_end := data.find(b"\r\n", position)) >= 0:
        has_headers = data.startswith(b"HMSG ", position)
        if not has_headers and not data.startswith(b"MSG ", position):
            break
        subject_start = position + (5 if has_headers else 4)
        fields = data[subject_start:line_end].split(b" ")
        subject_stop = subject_start + len(fields[0])
        if len(fields) != (5 if has_headers else 4) or not tail.fits(data, subject_stop, fields[2]):
            break
        try:
            sequence, consumer_sequence, time_ns, pending_now = ack_numbers(fields[2])
            header_start = line_end + 2
            payload_start = header_start + (int(fields[3]) if has_headers else 0)
            stop = header_start + int(fields[-1])
        except (ValueError, ProtocolError):
            break
        if (sequence | consumer_sequence | time_ns) >> 63:
            break  # More than a column has room for.
        if not payload_start <= stop <= len(data) - 2 or data[stop] != _CR:
            break
        pending = pending_now
        rows.append(
            (
                *(subject_start, subject_stop, header_start, payload_start, stop),
                *(sequence, consumer_sequence, time_ns),
            )
        )
        position = stop + 2
    if not rows:
        return None
    columns = np.array(rows, np.int64).T.copy()
    subject_start, subject_stop, header_start, payload_start, payload_stop = columns[:5]
    return FrameBlock(
        data,
        position,
        subject_start,
        subject_stop,
        header_start,
        payload_start,
        payload_stop,
        columns[5],
        columns[6],
        columns[7],
        pending,
    )


@dataclass(frozen=True, slots=True)
class _Tail:
    """The bytes between the subject and the ack subject's numbers, equal for each message."""

    glue: bytes
    tokens: int
    suffix_tokens: int

    def fits(self, data: bytes, subject_stop: int, reply: bytes) -> bool:
        """Return True if a message with this reply has the same consumer and delivery."""
        return data.startswith(self.glue, subject_stop) and reply.count(b".") + 1 == self.tokens


def _ack_tail(data: bytes, start: int, sid: bytes) -> _Tail | None:
    line_end = data.find(b"\r\n", start)
    if line_end < 0:
        return None
    fields = data[start:line_end].split(b" ")
    if fields[0] not in (b"MSG", b"HMSG") or len(fields) != 5 + (fields[0] == b"HMSG"):
        return None
    tokens = fields[3].split(b".")
    if tokens[:2] != [b"$JS", b"ACK"] or fields[2] != sid or len(tokens) < _ACK_V1_TOKENS:
        return None
    is_v1 = len(tokens) == _ACK_V1_TOKENS
    numbers = (_ACK_V1_TOKENS if is_v1 else _ACK_V2_TOKENS) - 4
    prefix = b".".join(tokens[:numbers]) + b"."
    suffix = 0 if is_v1 else len(tokens) - _ACK_V2_TOKENS
    return _Tail(b" " + sid + b" " + prefix, len(tokens), suffix)


@dataclass(frozen=True, slots=True)
class _Frames:
    """Whole frames in a row; offsets, one entry a frame."""

    start: Ints
    subject_start: Ints
    reply_stop: Ints
    header_start: Ints
    payload_start: Ints
    payload_stop: Ints

    def head(self, count: int) -> _Frames:
        return _Frames(
            self.start[:count],
            self.subject_start[:count],
            self.reply_stop[:count],
            self.header_start[:count],
            self.payload_start[:count],
            self.payload_stop[:count],
        )


@dataclass(frozen=True, slots=True)
class _Numbers:
    """The numbers of the ack subjects, and where they stand; one entry a frame.

    Attributes:
        glue_start: Where the bytes between subject and numbers begin.
        sequence: Sequence in the stream.
        consumer_sequence: Sequence of delivery by the consumer.
        time_stop: Where the time ends.
    """

    glue_start: Ints
    sequence: Ints
    consumer_sequence: Ints
    time_stop: Ints


def _dense_numbers(array: Bytes, frames: _Frames, tail: _Tail) -> _Numbers | None:
    """Return the numbers of frames between which none is missing, as most are; None for others.

    Deliveries ascend, so the first and the last one tell all. Their digits are as many, and where
    a number of pending messages has more or fewer, the glue does not stand where it should.
    """
    count = len(frames.start)
    first, last = (_numbers_of(array, frames, at) for at in (0, -1))
    if first is None or last is None or list(map(len, first)) != list(map(len, last)):
        return None
    sequence, delivery = int(first[0]), int(first[1])
    if (int(last[0]) - sequence, int(last[1]) - delivery) != (count - 1, count - 1):
        return None
    time_stop = frames.reply_stop - len(first[3]) - 1
    glue_start = time_stop - (_TIME_DIGITS + 2 + len(first[0]) + len(first[1]) + len(tail.glue))
    if _matching_prefix(array, glue_start, tail.glue) < count:
        return None
    return _Numbers(
        glue_start,
        np.arange(sequence, sequence + count),
        np.arange(delivery, delivery + count),
        time_stop,
    )


def _numbers_of(array: Bytes, frames: _Frames, at: int) -> list[bytes] | None:
    """Return sequence, delivery, time and pending of one frame; None where they are no such."""
    line = bytes(array[frames.subject_start[at] : frames.reply_stop[at]])
    parts = line.rsplit(b".", 4)[1:]
    if len(parts) < 4 or len(parts[2]) != _TIME_DIGITS:
        return None
    return parts if all(part.isdigit() and len(part) < _TIME_DIGITS for part in parts[:2]) else None


def _each_number(array: Bytes, frames: _Frames, tail: _Tail) -> _Numbers:
    """Return the numbers of the frames from the first on that have the glue before them."""
    time_stop = frames.reply_stop - _count_digits(array, frames.reply_stop) - 1
    consumer_stop = time_stop - _TIME_DIGITS - 1
    consumer_sequence, length = _number_before(array, consumer_stop)
    sequence_stop = consumer_stop - length - 1
    sequence, length = _number_before(array, sequence_stop)
    glue_start = sequence_stop - length - len(tail.glue)
    whole = _matching_prefix(array, glue_start, tail.glue)
    return _Numbers(
        glue_start[:whole], sequence[:whole], consumer_sequence[:whole], time_stop[:whole]
    )


def _chain(array: Bytes) -> _Frames:
    """Find the frames that follow each other from offset 0."""
    feeds = np.flatnonzero(array == _LF)
    # A candidate begins the block or follows a line feed, and has a whole first line.
    starts = np.empty(len(feeds), np.int64)
    starts[0] = 0
    starts[1:] = feeds[:-1] + 1
    first = array[starts]
    has_headers = first == ord("H")
    if has_headers.any():
        looks = has_headers | (first == ord("M"))
        starts, ends, has_headers = starts[looks], feeds[looks], has_headers[looks]
        verb = starts + has_headers
    else:
        looks = first == ord("M")
        starts, ends = starts[looks], feeds[looks]
        has_headers = None
        verb = starts
    fits = verb + 4 <= ends
    looks = fits & _are_messages(array, np.where(fits, verb, 0))
    starts, ends, verb = starts[looks], ends[looks], verb[looks]
    size, length = _number_before(array, ends - 1)
    reply_stop = ends - 2 - length
    header_start = ends + 1
    payload_start = header_start
    if has_headers is not None:
        has_headers = has_headers[looks]
        header_size, length = _number_before(array, reply_stop)
        payload_start = header_start + np.where(has_headers, header_size, 0)
        reply_stop = np.where(has_headers, reply_stop - length - 1, reply_stop)
    payload_stop = header_start + size
    kept = _linked(starts, payload_stop + 2, len(array))
    return _Frames(
        starts[kept],
        verb[kept] + 4,
        reply_stop[kept],
        header_start[kept],
        payload_start[kept],
        payload_stop[kept],
    )


def _whole(array: Bytes, frames: _Frames) -> _Frames:
    """Return the frames up to the first whose sizes cannot be true."""
    is_true = array[frames.payload_stop] == _CR
    is_true &= frames.payload_start <= frames.payload_stop
    return frames if is_true.all() else frames.head(int(np.argmin(is_true)))


def _linked(starts: Ints, nexts: Ints, length: int) -> slice | Ints:
    """Return the candidates that are frames: each stands where the one before it ends."""
    # Sizes of false candidates may be anything; they are never followed.
    joined = nexts[:-1] == starts[1:]
    whole = int(np.searchsorted(nexts, length, side="right")) if joined.all() else -1
    if whole >= 0:
        return slice(0, whole)
    runs: list[Ints] = []
    breaks: Ints = np.append(np.flatnonzero(~joined), len(starts) - 1)
    index = 0
    # Bounded by the number of breaks: every turn moves `index` past one.
    while index < len(starts) and (index or starts[0] == 0):
        last = int(breaks[np.searchsorted(breaks, index)])
        runs.append(np.arange(index, last + 1))
        follower = int(np.searchsorted(starts, nexts[last : last + 1])[0])
        if follower >= len(starts) or starts[follower] != nexts[last] or follower <= last:
            break
        index = follower
    kept = np.concatenate(runs) if runs else np.empty(0, np.int64)
    return kept[nexts[kept] <= length]


def _count_digits(array: Bytes, stops: Ints) -> Ints:
    """Count the digits that end before each offset."""
    return _number_before(array, stops)[1]


def _number_before(array: Bytes, stops: Ints) -> tuple[Ints, Ints]:
    """Read the decimal number that ends before each offset: its value and how many digits it has.

    At most 18 digits are read, so that a value always fits. Where fewer than eight bytes stand
    before an offset none is read: every line of a delivery is longer.
    """
    if len(array) < _WORD:
        return np.zeros(len(stops), np.int64), np.zeros(len(stops), np.int64)
    # A view with an overlapping word at each offset, whose highest byte is the last digit.
    words: NDArray[np.uint64] = np.ndarray(
        (len(array) - _WORD + 1,), "<u8", array.data, strides=(1,)
    )
    starts = stops - _WORD
    word = words[np.clip(starts, 0, len(words) - 1)] ^ (_EACH_BYTE * np.uint64(_ZERO))
    # The highest bit of each byte that is no digit; the highest of these is a float's exponent.
    low_bits = word & (_EACH_BYTE * np.uint64(0x7F))
    others = ((low_bits + _EACH_BYTE * np.uint64(0x76)) | word) & (_EACH_BYTE * np.uint64(0x80))
    lengths = _WORD - (np.frexp(others.astype(np.float64))[1].astype(np.int64) >> 3)
    lengths[starts < 0] = 0
    word &= _LAST_BYTES[lengths]
    # Pairs of digits, of pairs and of fours become numbers within their word.
    word = (word * np.uint64(10) + (word >> np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    word = (word * np.uint64(100) + (word >> np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    word = (word * np.uint64(10_000) + (word >> np.uint64(32))) & np.uint64(0xFFFFFFFF)
    values = word.astype(np.int64)
    long = np.flatnonzero(lengths == _WORD)
    if len(long):
        values[long], lengths[long] = _long_number_before(array, stops[long])
    return values, lengths


def _long_number_before(array: Bytes, stops: Ints) -> tuple[Ints, Ints]:
    """Do what `_number_before` does digit by digit, for any number of digits."""
    values = np.zeros(len(stops), np.int64)
    lengths = np.zeros(len(stops), np.int64)
    power = 1
    position = stops - 1
    alive = np.ones(len(stops), np.bool_)
    for _ in range(18):
        digit = array[np.maximum(position, 0)].astype(np.int64) - _ZERO
        alive = alive & (digit >= 0) & (digit <= 9) & (position >= 0)
        if not alive.any():
            break
        values += np.where(alive, digit * power, 0)
        lengths += alive
        power *= 10
        position = position - 1
    return values, lengths


def _gather(array: Bytes, starts: Ints, width: int) -> Bytes:
    """Copy `width` bytes from each offset: an array of (len(starts), width)."""
    if len(array) < width:
        return np.zeros((len(starts), width), np.uint8)
    # A view with one overlapping item an offset: taking items copies them with memcpy.
    shape = (len(array) - width + 1,)
    windows: NDArray[np.void] = np.ndarray(shape, f"V{width}", array.data, strides=(1,))
    items = windows[np.clip(starts, 0, len(array) - width)]
    return items.view(np.uint8).reshape(len(starts), width)


def _are_messages(array: Bytes, starts: Ints) -> NDArray[np.bool_]:
    """Tell for each offset whether `MSG ` stands there."""
    if len(array) < len(_MSG):
        return np.zeros(len(starts), np.bool_)
    words: NDArray[np.uint32] = np.ndarray(
        (len(array) - len(_MSG) + 1,), "<u4", array.data, strides=(1,)
    )
    return words[np.minimum(starts, len(words) - 1)] == int.from_bytes(_MSG, "little")


def _matching_prefix(array: Bytes, starts: Ints, text: bytes) -> int:
    """Count how many offsets, from the first on, have `text` at them."""
    found = _gather(array, starts, len(text))
    if found.tobytes() == text * len(starts) and (starts >= 0).all():
        return len(starts)
    equal = (found == np.frombuffer(text, np.uint8)).all(axis=1) & (starts >= 0)
    return int(np.argmin(equal)) if not equal.all() else len(starts)
