"""The fast lane's parser: the same bytes give the same frames, however they are split."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.parser import LINE_BYTES_MAX, Frame, FrameParser
from natsstream.errors import ProtocolError
from tests.support.frames import NASTY, Piece, message, messages, msg, others

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OWN = (b"1", b"12")
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
]


@dataclass
class Listener:
    """Feeds a parser as the lane does and keeps what comes out.

    Attributes:
        parser: The parser, with a sink for each own subscription.
        frames: What the sinks got, by subscription.
        passed: What is for nats-py.
        shown: How many bytes the parser was shown in all.
    """

    parser: FrameParser = field(default_factory=FrameParser)
    frames: dict[bytes, list[Frame]] = field(default_factory=lambda: defaultdict(list))
    passed: bytes = b""
    shown: int = 0
    rest: bytes = b""
    needed: int = 1

    def __post_init__(self) -> None:
        for sid in OWN:
            self.parser.sinks[sid] = self.frames[sid].extend

    def feed(self, piece: bytes) -> None:
        """Take one piece of the stream, as a socket gives it."""
        self.rest += piece
        if len(self.rest) >= self.needed:
            self.parse()

    def parse(self) -> int:
        """Show everything that is not consumed; returns how much of it was."""
        self.shown += len(self.rest)
        consumed, self.needed, passed = self.parser.parse(self.rest)
        self.rest = self.rest[consumed:]
        self.passed += passed
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
        assert listener.frames[sid] == [each.frame for each in said if each.sid == sid]
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
    del listener.parser.sinks[b"1"]
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
    with pytest.raises(ProtocolError, match="malformed"):
        hear([line])


@pytest.mark.parametrize("line", MALFORMED)
def test_malformed_line_after_good_frames_is_a_protocol_error(line: bytes) -> None:
    with pytest.raises(ProtocolError, match="malformed"):
        hear([msg(b"a", b"1", b"x") + b"PING\r\n" + line])


def test_endless_line_is_a_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="no line end"):
        hear([b"x" * (64 << 10)] * (LINE_BYTES_MAX // (64 << 10) + 1))


@given(st.lists(st.one_of(st.sampled_from(MALFORMED), st.binary(max_size=50)), max_size=6))
def test_garbage_ends_or_is_refused(pieces: list[bytes]) -> None:
    listener = Listener()
    try:
        for piece in pieces:
            listener.feed(piece)
    except ProtocolError:
        return
    assert len(listener.rest) < listener.needed
