"""The fast lane's parser: the same bytes give the same frames, however they are split."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from natsstream._wire import deliveries
from natsstream._wire.framing import FrameBlock, cut_block
from natsstream._wire.parser import LINE_BYTES_MAX, Block, Frame, FrameParser
from natsstream.errors import ProtocolError
from tests.support.bulk import BulkSink, row
from tests.support.frames import NASTY, Piece, ack, hmsg, message, messages, msg, others

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

OWN = (b"1", b"12")


@pytest.fixture(scope="module", autouse=True)
def always_bulk() -> Iterator[None]:
    """Cut in bulk again behind each failure, instead of some frames later."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deliveries, "_PLAIN_FRAMES", 0)
        yield


FOREIGN = b"2"

conversations = st.lists(st.one_of(messages(st.sampled_from([*OWN, FOREIGN])), others), max_size=8)

MALFORMED = [
    b"MSG a\r\n",
    b"MSG a 1\r\n",
    b"MSG a 1 x\r\n",
    b"MSG a 1 -5\r\n",
    b"MSG a 1 +5\r\nhello\r\n",
    b"MSG a 1 1_0\r\n0123456789\r\n",
    b"MSG a 1 \r\n",
    b"MSG a 1 reply more 5\r\nhello\r\n",
    b"MSG a 1 99999999999999999999\r\n",
    b"MSG a 1 " + b"9" * 5000 + b"\r\n",
    b"HMSG\r\n",
    b"HMSG a 1 5\r\nhello\r\n",
    b"HMSG a 1 x 5\r\nhello\r\n",
    b"HMSG a 1 -1 5\r\nhello\r\n",
    b"HMSG a 1 6 5\r\nhello\r\n",
    b"HMSG a 1 reply more 5 5\r\nhello\r\n",
    b"HMSGa 1 5 5\r\nhello\r\n",
    # A payload that is longer or shorter than its line says.
    b"MSG a 1 5\r\nhello!\r\n",
    b"MSG a 1 5\r\nhell\r\n\r\n",
    b"HMSG a 1 12 13\r\nNATS/1.0\r\n\r\nxy\r\n",
    # More than any server sends: refused for what it says, before it comes.
    b"MSG a 1 999999999\r\n",
    b"HMSG a 1 12 999999999\r\n",
    # Lines of no verb, or with what the verb does not have.
    b"\r\n",
    b" PING\r\n",
    b"PINGS\r\n",
    b"PING x\r\n",
    b"+OKAY\r\n",
    b"GET / HTTP/1.1\r\n",
    b"\x16\x03\x01\x02\r\n",
    b"msg a 1 5\r\nhello\r\n",
    b"PUB a 5\r\nhello\r\n",
    b"PING" + b" " * 9_000 + b"\r\n",
    b"-ERR '" + b"x" * 9_000 + b"'\r\n",
    # INFO that would break whoever reads it.
    b"INFO\r\n",
    b"INFO 5\r\n",
    b"INFO {bad\r\n",
    b'INFO {"a":"\xff"}\r\n',
    b'INFO {"a":\n5}\r\n',
    b"INFO " + b"[" * 100_000 + b"\r\n",
    b'INFO {"a":' + b"[" * 30 + b"]" * 30 + b"}\r\n",
    b'INFO {"max_payload":"x"}\r\n',
    b'INFO {"max_payload":null}\r\n',
    b'INFO {"max_payload":true}\r\n',
    b'INFO {"max_payload":0}\r\n',
    b'INFO {"max_payload":-5}\r\n',
    b'INFO {"max_payload":1e6}\r\n',
    b'INFO {"max_payload":99999999999}\r\n',
    b'INFO {"version":2}\r\n',
    b'INFO {"nonce":[]}\r\n',
    b'INFO {"connect_urls":{"a":1}}\r\n',
]
# The same, without an end.
NONSENSE = [
    b"x" * 20_000,
    b"\r" * 20_000,
    b"\0" * 20_000,
    b"PING" + b" " * 20_000,
    b"-ERR '" + b"x" * 20_000,
    b"{" * 20_000,
]
# Lines that a server never wrote, and nats-py would not read, but which are plain enough.
ODD = [
    (b"ping\r\n", b"PING\r\n"),
    (b"Pong \t\r\n", b"PONG\r\n"),
    (b"+ok\r\n", b"+OK\r\n"),
    (b"-err  'no'\r\n", b"-ERR 'no'\r\n"),
    (b"-ERR\r\n", b"-ERR 'no reason'\r\n"),
    (b"-ERR no quotes\r\n", b"-ERR 'no quotes'\r\n"),
    (b"-ERR 'not \xff UTF-8'\r\n", b"-ERR 'not \xef\xbf\xbd UTF-8'\r\n"),
    (b'info\t{"max_payload":5}\r\n', b'INFO {"max_payload":5}\r\n'),
]
# Frames of subscriptions of nats-py that it would not read, or read as another one.
UNREADABLE = [
    b"MSG a\x0bb 2 0\r\n\r\n",
    b"MSG  2 0\r\n\r\n",
    b"MSG a\tb 2 0\r\n\r\n",
    b"MSG a\nb 2 0\r\n\r\n",
    b"MSG a x 0\r\n\r\n",
    b"MSG a 2 \x0c 0\r\n\r\n",
    b"MSG a " + b"2" * 5_000 + b" 0\r\n\r\n",
    b"HMSG a\x0c 2 12 12\r\nNATS/1.0\r\n\r\n\r\n",
]


@dataclass
class Listener:
    """Feeds a parser as the lane does and keeps what comes out.

    Attributes:
        parser: The parser, with a sink for each own subscription.
        frames: What the sinks got, by subscription.
        passed: What is for nats-py.
        shown: How many bytes the parser was shown in all.
        twin: Another parser, which is shown the same and cuts deliveries in bulk.
        bulk: What the twin's sinks got, by subscription.
    """

    parser: FrameParser = field(default_factory=FrameParser)
    frames: dict[bytes, list[Frame]] = field(default_factory=lambda: defaultdict(list))
    passed: bytes = b""
    shown: int = 0
    rest: bytes = b""
    needed: int = 1
    twin: FrameParser = field(default_factory=FrameParser)
    bulk: dict[bytes, BulkSink] = field(default_factory=dict[bytes, BulkSink])

    def __post_init__(self) -> None:
        for sid in OWN:
            self.parser.sinks[sid] = self.frames[sid].extend
            self.bulk[sid] = self.twin.blocks[sid] = BulkSink(sid)
            self.twin.sinks[sid] = self.bulk[sid].put_frames

    def feed(self, piece: bytes) -> None:
        """Take one piece of the stream, as a socket gives it."""
        self.rest += piece
        if len(self.rest) >= self.needed:
            self.parse()

    def feed_all(self, *pieces: bytes) -> None:
        """Take several."""
        for piece in pieces:
            self.feed(piece)

    def parse(self) -> int:
        """Show everything that is not consumed; returns how much of it was."""
        self.shown += len(self.rest)
        consumed, self.needed, passed, failure = self.parser.parse(self.rest)
        again = self.twin.parse(self.rest)
        assert (consumed, self.needed, passed, str(failure)) == (*again[:3], str(again.failure))
        self.rest = self.rest[consumed:]
        self.passed += passed
        if failure is not None:
            raise failure
        return consumed


def hear(pieces: Iterable[bytes]) -> Listener:
    """Return a listener that has heard the pieces one after another."""
    listener = Listener()
    for piece in pieces:
        listener.feed(piece)
    return listener


def check(listener: Listener, said: Sequence[Piece]) -> None:
    """Assert that everything went where it belongs, once and in order."""
    for sid in OWN:
        frames = [each.frame for each in said if each.sid == sid and each.frame is not None]
        assert listener.frames[sid] == frames
        assert listener.bulk[sid].rows == list(map(row, frames))
    assert listener.passed == b"".join(each.wire for each in said if each.sid not in OWN)
    assert listener.rest == b""


@given(conversations)
def test_every_two_part_split_gives_the_same(said: list[Piece]) -> None:
    wire = b"".join(each.wire for each in said)
    for at in range(min(len(wire), 400) + 1):
        check(hear([wire[:at], wire[at:]]), said)


@given(conversations, st.randoms(use_true_random=False), st.integers(2, 30))
def test_random_splits_give_the_same(said: list[Piece], chance: random.Random, count: int) -> None:
    wire = b"".join(each.wire for each in said)
    cuts = sorted(chance.randint(0, len(wire)) for _ in range(count))
    parts = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]

    check(hear(parts), said)


@given(conversations)
def test_byte_by_byte_gives_the_same(said: list[Piece]) -> None:
    wire = b"".join(each.wire for each in said)

    check(hear(wire[at : at + 1] for at in range(len(wire))), said)


@given(conversations, st.integers(0, 60))
def test_a_call_before_needed_bytes_are_there_gets_no_further(said: list[Piece], more: int) -> None:
    wire = b"".join(each.wire for each in said)
    listener = hear([wire[: len(wire) // 2]])
    held = len(listener.rest)
    listener.rest += wire[len(wire) // 2 :][: min(more, listener.needed - held - 1)]

    assert listener.parse() == 0


@pytest.mark.parametrize("payload", NASTY)
def test_payload_with_protocol_text_is_a_payload(payload: bytes) -> None:
    said = [message(b"a", b"1", payload), Piece(b"PING\r\n")]

    check(hear([b"".join(each.wire for each in said)]), said)


def test_reply_and_headers_are_empty_where_there_are_none() -> None:
    assert hear([msg(b"a.b", b"1", b"x")]).frames[b"1"] == [(b"a.b", b"", b"", b"x")]


def test_frames_of_a_closed_subscription_are_passed_on() -> None:
    listener = Listener()
    for parser in (listener.parser, listener.twin):
        del parser.sinks[b"1"]
        parser.blocks.pop(b"1", None)
    wire = msg(b"a", b"1", b"x") + msg(b"b", b"12", b"y")

    listener.feed(wire)

    assert listener.passed == msg(b"a", b"1", b"x")
    assert listener.frames[b"12"] == [(b"b", b"", b"", b"y")]


def test_sink_that_closes_another_subscription_ends_its_frames() -> None:
    listener = Listener()
    listener.parser.sinks[b"1"] = lambda _frames: listener.parser.sinks.pop(b"12") and None

    listener.feed(msg(b"a", b"1", b"x") + msg(b"b", b"12", b"y"))

    assert listener.frames[b"12"] == []
    assert listener.rest == b""


def test_eight_megabytes_in_pieces_are_shown_about_twice() -> None:
    """Counts the bytes that parse is shown; a parser that begins again sees 128 times as many."""
    payload = bytes(range(256)) * (8 << 12)
    wire = msg(b"a", b"1", payload)
    step = 64 << 10

    listener = hear(wire[at : at + step] for at in range(0, len(wire), step))

    assert listener.frames[b"1"] == [(b"a", b"", b"", payload)]
    assert listener.shown <= 2 * len(wire)


@pytest.mark.parametrize("line", MALFORMED)
def test_malformed_line_is_a_protocol_error(line: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"malformed|INFO"):
        hear([line])


@pytest.mark.parametrize("line", UNREADABLE)
def test_frame_that_nats_py_can_not_read_is_a_protocol_error(line: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed"):
        hear([line])


@pytest.mark.parametrize(("line", "read"), ODD)
def test_control_line_of_another_spelling_is_passed_on_as_nats_py_reads_it(
    line: bytes, read: bytes
) -> None:
    assert hear([line]).passed == read


@pytest.mark.parametrize("line", [*MALFORMED, *UNREADABLE, *NONSENSE])
@given(conversations, st.randoms(use_true_random=False))
@settings(max_examples=10)
def test_nonsense_ends_the_same_wherever_it_is_split(
    line: bytes, said: list[Piece], chance: random.Random
) -> None:
    """What came before it is handed over, and nothing behind it."""
    before = b"".join(each.wire for each in said)
    wire = before + line + msg(b"a", b"1", b"later") + b"PING\r\n" + b"x" * LINE_BYTES_MAX
    for at in {len(before), len(before) + 1, *(chance.randint(0, len(wire)) for _ in range(5))}:
        listener = Listener()
        with pytest.raises(ProtocolError):
            listener.feed_all(wire[:at], wire[at:])
        listener.rest = b""
        check(listener, said)


def test_size_is_compared_with_the_largest_max_payload_that_was_told() -> None:
    """A reload may lower it below what is stored already."""
    listener = Listener()
    told = b'INFO {"max_payload":%d}\r\n'
    listener.feed(told % (200 << 20) + told % 1_000)

    listener.feed(b"MSG a 1 %d\r\n" % (200 << 20))

    with pytest.raises(ProtocolError, match="malformed"):
        hear([b"MSG a 1 %d\r\n" % (200 << 20)])


@pytest.mark.parametrize("address", [b"10.0.0.1:4222", b"n" * 240])
def test_info_of_a_large_cluster_is_passed_on_as_it_came(address: bytes) -> None:
    urls = b",".join(b'"%b-%d"' % (address, number) for number in range(2_000))
    wire = b'INFO {"connect_urls":[%b]} \r\n' % urls

    assert hear([wire[:5_000], wire[5_000:]]).passed == wire


@pytest.mark.parametrize("line", MALFORMED)
def test_malformed_line_after_good_frames_is_a_protocol_error(line: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"malformed|INFO"):
        hear([msg(b"a", b"1", b"x") + b"PING\r\n" + line])


@pytest.mark.parametrize("start", [b"INFO ", b"MSG a", b"HMSG "])
def test_endless_line_is_a_protocol_error(start: bytes) -> None:
    pieces = [start, *[b"x" * (64 << 10)] * (LINE_BYTES_MAX // (64 << 10) + 1)]
    with pytest.raises(ProtocolError, match="no line end"):
        hear(pieces)


@pytest.mark.parametrize("line", NONSENSE)
def test_line_without_a_verb_is_not_waited_for(line: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"malformed|no line end"):
        hear([line[:10_000]])


@given(st.lists(st.one_of(st.sampled_from(MALFORMED), st.binary(max_size=50)), max_size=6))
def test_garbage_ends_or_is_refused(pieces: list[bytes]) -> None:
    listener = Listener()
    try:
        for piece in pieces:
            listener.feed(piece)
    except ProtocolError:
        return
    assert len(listener.rest) < listener.needed


STATUS = b"NATS/1.0 409 Batch Completed\r\n\r\n"


class ColumnSink:
    """A block sink that looks at all that is left, as readers of columns do.

    Attributes:
        told: Sequences of messages and the header blocks of statuses, in order.
        blocks: How many blocks were cut.
        looked: How many bytes the cuts were shown.
    """

    bytes_min = 0
    wants_full = True

    def __init__(self, parser: FrameParser, sid: bytes) -> None:
        self.told: list[int | bytes] = []
        self.blocks = self.looked = 0
        self._sid = sid
        parser.blocks[sid], parser.sinks[sid] = self, self.put_frames

    def take(self, data: bytes, start: int) -> FrameBlock | None:
        self.looked += len(data) - start
        return cut_block(data, start, self._sid)

    def put(self, block: Block) -> None:
        assert isinstance(block, FrameBlock)
        self.blocks += 1
        self.told += block.sequence.tolist()

    def put_frames(self, frames: list[Frame]) -> None:
        """Take the statuses; a delivery among them would fail a reader of columns."""
        assert all(frame[2] == STATUS for frame in frames)
        self.told += [frame[2] for frame in frames]


def delivery(sid: bytes, sequence: int) -> bytes:
    """Return a message of a consumer that only one subscription reads."""
    reply = ack(sequence, sequence, prefix=b"$JS.ACK.ORDERS.c%b.1" % sid)
    return msg(b"orders.new", sid, b"x" * 100, reply=reply)


@pytest.mark.parametrize("run", [1, 10, 100])
@pytest.mark.parametrize("others", [(b"12",), (b"12", b"3"), (FOREIGN,)])
def test_readers_of_columns_that_take_turns_look_at_each_byte_a_few_times(
    run: int, others: tuple[bytes, ...]
) -> None:
    """Counts bytes: two looks at everything in vain, one before that, and one at what is theirs."""
    parser = FrameParser()
    sids = [OWN[0], *others]
    sinks = [ColumnSink(parser, sid) for sid in sids if sid != FOREIGN]
    turns = [(sid, at) for at in range(0, 600, run) for sid in sids]
    wire = b"".join(delivery(sid, at + each) for sid, at in turns for each in range(1, run + 1))

    assert parser.parse(wire).consumed == len(wire)

    assert all(sink.told == list(range(1, 601)) for sink in sinks)
    assert sum(sink.looked for sink in sinks) <= 4 * len(wire)
    assert sum(sink.blocks for sink in sinks) <= 10 * len(sinks)


def test_status_in_a_block_leaves_the_rest_to_be_cut_where_it_stands() -> None:
    parser = FrameParser()
    sink = ColumnSink(parser, OWN[0])
    numbers = [delivery(OWN[0], at) for at in range(1, 101)]
    wire = b"".join([numbers[0], hmsg(b"i", OWN[0], STATUS, b""), *numbers[1:]])

    parser.parse(wire)

    assert sink.told == [1, STATUS, *range(2, 101)]
    assert (sink.blocks, sink.looked // len(wire)) == (2, 2)  # The status is shown too.


@given(
    st.lists(st.tuples(st.sampled_from([*OWN, FOREIGN]), st.booleans()), max_size=60),
    st.randoms(use_true_random=False),
    st.integers(0, 3),
)
def test_readers_of_columns_are_told_everything_in_order(
    turns: list[tuple[bytes, bool]], chance: random.Random, count: int
) -> None:
    parser = FrameParser()
    sinks = {sid: ColumnSink(parser, sid) for sid in OWN}
    expected: dict[bytes, list[int | bytes]] = {sid: [] for sid in (*OWN, FOREIGN)}
    sent: dict[bytes, int] = defaultdict(int)
    frames: list[bytes] = []
    for sid, is_status in turns:
        sent[sid] += not is_status
        expected[sid].append(STATUS if is_status else sent[sid])
        frames.append(hmsg(b"i", sid, STATUS, b"") if is_status else delivery(sid, sent[sid]))
    wire = b"".join(frames)
    cuts = [*sorted(chance.randint(0, len(wire)) for _ in range(count)), len(wire)]

    shown, passed = 0, b""
    for end in cuts:
        parsed = parser.parse(wire[shown:end])
        shown += parsed.consumed
        passed += parsed.passed

    assert shown == len(wire)
    assert {sid: sink.told for sid, sink in sinks.items()} == {sid: expected[sid] for sid in OWN}
    assert passed == b"".join(
        frame for frame, turn in zip(frames, turns, strict=True) if turn[0] == FOREIGN
    )


def test_reader_of_columns_that_was_closed_by_another_is_told_no_more() -> None:
    """The first of two that has everything closes the other."""
    parser = FrameParser()
    sinks = {sid: ColumnSink(parser, sid) for sid in OWN}
    wire = b"".join(delivery(sid, at) for at in range(1, 101) for sid in OWN)

    def put(sid: bytes, other: bytes, block: Block) -> None:
        ColumnSink.put(sinks[sid], block)
        if len(sinks[sid].told) == 100:
            del parser.blocks[other], parser.sinks[other]

    sinks[OWN[0]].put = partial(put, *OWN)
    sinks[OWN[1]].put = partial(put, *reversed(OWN))
    parsed = parser.parse(wire)

    told = sorted(len(sink.told) for sink in sinks.values())
    assert told[0] < 10
    assert told[1] == 100
    assert parsed.passed == b""
