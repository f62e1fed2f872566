"""Cutting with numpy: the result equals reading one frame after another, whatever payloads say."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire import framing
from natsstream._wire.framing import FrameBlock, block_of, cut_block, cut_in_order
from tests.support.deliveries import (
    FORMS,
    SID,
    STRANGERS,
    TIME_NS,
    V1,
    Run,
    Sequences,
    blocks,
    build,
)
from tests.support.frames import NASTY, ack, msg

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


def rows(block: FrameBlock | None) -> dict[str, object] | None:
    """Return a block as plain values, which compare as a whole."""
    if block is None:
        return None
    return {
        each.name: value.tolist() if isinstance(value, np.ndarray) else value
        for each in dataclasses.fields(block)
        for value in [getattr(block, each.name)]
    }


def check(data: bytes, start: int = 0) -> FrameBlock | None:
    """Assert that both ways agree and return what they say."""
    fast = cut_block(data, start, SID)
    assert rows(fast) == rows(cut_in_order(data, start, SID))
    return fast


@given(blocks)
def test_whole_runs_equal_the_plain_way(
    block: Run,
) -> None:
    data = build(block)

    cut = check(data)

    assert cut is not None
    assert cut.stop == len(data)
    assert len(cut) == len(block[2])
    for index, (_gap, header, payload, subject) in enumerate(block[2]):
        assert data[cut.subject_start[index] : cut.subject_stop[index]] == subject
        assert data[cut.header_start[index] : cut.payload_start[index]] == header
        assert data[cut.payload_start[index] : cut.payload_stop[index]] == payload


@given(blocks, st.floats(0, 1))
def test_truncated_runs_equal_the_plain_way(
    block: Run,
    share: float,
) -> None:
    data = build(block)

    check(data[: int(len(data) * share)])


@given(blocks, st.sampled_from(STRANGERS), blocks, st.sampled_from([b"", *NASTY]))
def test_a_stranger_ends_the_run(
    before: Run,
    stranger: bytes,
    after: Run,
    earlier: bytes,
) -> None:
    run = build(before)

    cut = check(earlier + run + stranger + build(after), len(earlier))

    assert cut is not None
    assert cut.stop == len(earlier) + len(run)


@pytest.mark.parametrize("stranger", STRANGERS[:5] + STRANGERS[8:])
def test_a_stranger_at_the_start_is_none(stranger: bytes) -> None:
    assert check(stranger + msg(b"a", SID, b"x", reply=ack(1, 1))) is None


@pytest.mark.parametrize("data", [b"", b"M", b"MSG", b"MSG a 7", b"\r\n", b"\n", *NASTY[1:]])
def test_what_is_no_whole_message_is_none(data: bytes) -> None:
    assert check(data) is None


@pytest.mark.parametrize("sequence", [9, 99, 10**9, 10**18, 2**63 - 1])
def test_every_sequence_that_arrow_can_hold_is_read(sequence: int) -> None:
    cut = check(msg(b"a", SID, b"x", reply=ack(sequence, 1)))

    assert cut is not None
    assert cut.sequence.tolist() == [sequence]


def test_numbers_of_the_ack_subject_are_read() -> None:
    reply = ack(41, 7, time_ns=TIME_NS, pending=12)
    cut = check(msg(b"a", SID, b"x", reply=reply))

    assert cut is not None
    assert (cut.sequence[0], cut.consumer_sequence[0], cut.time_ns[0]) == (41, 7, TIME_NS)
    assert cut.pending == 12


@pytest.mark.parametrize(
    "bad",
    [
        b"MSG a 7 " + ack(2, 2) + b" 2\r\nx!y\n",
        b"MSG a 7 " + ack(2, 2) + b" 1\r\nxyz\r\n",
        b"HMSG a 7 " + ack(2, 2) + b" 99 5\r\nhello\r\n",
    ],
)
def test_message_whose_sizes_are_not_true_ends_a_run(bad: bytes) -> None:
    good = msg(b"a", SID, b"x", reply=ack(1, 1))
    after = msg(b"a", SID, b"x", reply=ack(3, 3))

    cut = check(good + bad + after)

    assert cut is not None
    assert cut.sequence.tolist() == [1]
    assert cut_block(bad, 0, SID) is None
    assert check(bad + after) is None


@pytest.mark.parametrize("time", [b"x" * 19, b"170000000012345678-", b"9" * 20, b"-" + b"1" * 18])
def test_time_that_is_no_number_of_64_bits_is_no_message(time: bytes) -> None:
    reply = V1 + b".5.6." + time + b".0"

    assert check(msg(b"orders.new", SID, b"x", reply=reply)) is None


def test_malformed_message_in_a_run_ends_it() -> None:
    good = msg(b"a", SID, b"x", reply=ack(1, 1))
    cut = check(good + b"MSG a 7 " + ack(2, 2) + b" x\r\n")

    assert cut is not None
    assert cut.stop == len(good)


def lines_run(code: Callable[[], object]) -> int:
    """Count the lines of framing.py that run: a measure of work that no busy machine changes."""
    count = 0

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != framing.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        code()
    finally:
        sys.settrace(before)
    return count


def hostile(count: int, payload: bytes) -> bytes:
    """Return a run of messages with one payload."""
    numbers = Sequences(0, 0)
    return b"".join(numbers.frame(0, FORMS[0], b"", payload, b"a") for _ in range(count))


@pytest.mark.parametrize("fake", [NASTY[5], NASTY[6], NASTY[11], b"\nMSG a 7 b 0\r\n" * 3])
def test_work_grows_with_the_messages_and_not_with_what_payloads_claim(fake: bytes) -> None:
    """Counts lines of Python: twice the messages, at most twice the work and a constant."""
    small, large = hostile(200, fake * 8), hostile(400, fake * 8)
    noisy = hostile(200, fake * 64)

    base = lines_run(lambda: check_count(small, 200))

    assert lines_run(lambda: check_count(large, 400)) <= 2.2 * base + 100
    assert lines_run(lambda: check_count(noisy, 200)) <= 1.1 * base + 100


def check_count(data: bytes, count: int) -> None:
    """Cut a run and assert that all of it was."""
    cut = cut_block(data, 0, SID)
    assert cut is not None
    assert len(cut) == count


@given(blocks, st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255)), max_size=5))
def test_damaged_bytes_never_make_it_go_back_or_beyond(
    block: Run,
    damage: list[tuple[float, int]],
) -> None:
    data = bytearray(build(block))
    for at, value in damage:
        data[int(at * len(data))] = value

    cut = cut_block(bytes(data), 0, SID)

    assert cut is None or 0 < cut.stop <= len(data)


@pytest.mark.parametrize("pending", [b"1 2", b"x", b"9" * 5_000])
def test_count_of_pending_messages_that_is_none_ends_the_block(pending: bytes) -> None:
    bare = ack(2, 2, pending=0).removesuffix(b"0")
    good, bad = (msg(b"a", SID, b"x", reply=reply) for reply in (ack(1, 1), bare + pending))

    cut = cut_block(good + bad, 0, SID)

    assert cut is not None
    assert cut.sequence.tolist() == [1]
    assert cut_block(bad, 0, SID) is None


def values(block: FrameBlock) -> list[tuple[object, ...]]:
    """Return what each message of a block is."""
    data = block.data
    return [
        (data[a:b], data[c:d], data[d:e], *numbers)
        for a, b, c, d, e, *numbers in zip(
            block.subject_start.tolist(),
            block.subject_stop.tolist(),
            block.header_start.tolist(),
            block.payload_start.tolist(),
            block.payload_stop.tolist(),
            block.sequence.tolist(),
            block.consumer_sequence.tolist(),
            block.time_ns.tolist(),
            strict=True,
        )
    ]


@given(blocks, st.sampled_from([b"orders.", b"a", b"HMSG", b"o" * 90, b"o" * 91, b"\xc3", b"none"]))
def test_block_without_some_subjects_has_the_others(run: Run, start: bytes) -> None:
    block = check(build(run))
    assert block is not None
    shown = block.without(start)

    everything = values(block)
    expected = [each for each in everything if not is_below(each[0], start)]
    assert values(shown) == expected
    assert shown.pending == block.pending
    hidden = [each[3] for each in everything if is_below(each[0], start)]
    assert block.sequences_without(shown) == hidden
    assert (shown is block) == (not hidden)


def is_below(subject: object, start: bytes) -> bool:
    """Return True if a subject begins with some bytes."""
    assert isinstance(subject, bytes)
    return subject.startswith(start)


@given(blocks)
def test_frames_make_a_block_of_their_own(run: Run) -> None:
    block = check(build(run))
    assert block is not None
    frames = [
        (
            block.data[subject:stop],
            block.data[header:payload],
            block.data[payload:end],
        )
        for subject, stop, header, payload, end in zip(
            block.subject_start.tolist(),
            block.subject_stop.tolist(),
            block.header_start.tolist(),
            block.payload_start.tolist(),
            block.payload_stop.tolist(),
            strict=True,
        )
    ]
    made = block_of(frames, block.sequence.tolist(), block.time_ns.tolist())

    expected = [(*each[:4], 0, *each[5:]) for each in values(block)]
    assert values(made) == expected
    assert made.stop == len(made.data)
