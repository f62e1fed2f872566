"""Unit tests of the rules of a flow: when more is asked for, and how much."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.consume.pull.window import PULLS_MAX, PullWindow

sizes = st.integers(min_value=1, max_value=2_000)


def ask(flow: PullWindow, under_way: int) -> int:
    """Send pulls until none is due; returns what is under way then."""
    while count := flow.want(under_way):
        assert count > 0
        under_way += count
    return under_way


@pytest.mark.proves("1c", "thresholds")
@given(
    window=sizes,
    threshold=st.floats(min_value=0, max_value=0.999),
    max_batch=st.integers(min_value=0, max_value=50),
    steps=st.lists(st.tuples(st.booleans(), sizes), max_size=60),
)
def test_window_is_never_exceeded_and_never_stands_still(
    window: int, threshold: float, max_batch: int, steps: list[tuple[bool, int]]
) -> None:
    """A model: messages arrive or are read in any order; pulls are sent whenever they are due."""
    flow = PullWindow(window, threshold=threshold, max_batch=max_batch)
    under_way = ask(flow, 0)
    for is_arrival, size in steps:
        if is_arrival:
            count = min(size, under_way)
            flow.arrive(count)
            under_way -= count
        else:
            count = min(size, flow.waiting)
            flow.take(count)
        under_way = ask(flow, under_way)
        assert under_way + flow.waiting + flow.reading <= window
        # Whoever has nothing here has something under way.
        assert under_way or flow.waiting or flow.reading


@given(
    window=sizes,
    threshold=st.floats(min_value=0, max_value=0.999),
    stop_after=st.integers(min_value=1, max_value=3_000),
)
def test_exactly_so_many_are_asked_for(window: int, threshold: float, stop_after: int) -> None:
    flow = PullWindow(window, threshold=threshold, stop_after=stop_after)
    asked = 0
    while (to_hand := flow.to_hand) != 0:
        assert to_hand is not None
        under_way = ask(flow, 0)
        assert under_way > 0
        asked += under_way
        flow.arrive(under_way)
        flow.take(under_way)
        flow.finish()

    assert asked == stop_after


@given(
    max_bytes=st.integers(min_value=1, max_value=10_000),
    window=st.integers(min_value=1, max_value=100),
    waiting=st.integers(min_value=1, max_value=20_000),
)
def test_no_pull_is_sent_beyond_the_bytes(max_bytes: int, window: int, waiting: int) -> None:
    flow = PullWindow(window, max_bytes=max_bytes)
    flow.arrive(1, waiting)
    count = flow.want(0, 0)

    assert count == 0 or waiting + flow.share_bytes <= max_bytes


@pytest.mark.proves("1c", "thresholds")
def test_next_pull_is_due_when_half_of_the_window_is_taken() -> None:
    flow = PullWindow(500)
    assert ask(flow, 0) == 500
    flow.arrive(500)
    flow.take(249)
    flow.finish()
    assert flow.want(0) == 0
    flow.take(1)
    flow.finish()
    assert flow.want(0) == 250


def test_two_pulls_fill_the_window() -> None:
    flow = PullWindow(500)
    assert [flow.want(0), flow.want(250), flow.want(500)] == [250, 250, 0]


def test_window_of_one_asks_for_the_next_when_the_reader_comes_back() -> None:
    flow = PullWindow(1)
    assert flow.want(0) == 1
    flow.arrive(1)
    assert flow.want(0) == 0
    flow.take(1)
    assert flow.want(0) == 0
    flow.finish()
    assert flow.want(0) == 1


def test_small_pulls_are_bounded_in_number() -> None:
    flow = PullWindow(10_000, max_batch=3)
    assert ask(flow, 0) <= PULLS_MAX * 3


@pytest.mark.parametrize("under_way", [0, 1])
def test_message_that_never_fits_is_asked_for_alone(under_way: int) -> None:
    flow = PullWindow(100, max_bytes=10)
    flow.is_single = True
    assert flow.want(under_way) == 1 - under_way
    flow.arrive(1, 500)
    assert not flow.is_single
    assert flow.want(0) == 0


@given(
    window=sizes,
    max_bytes=st.integers(min_value=1, max_value=100_000),
    limit=st.integers(min_value=0, max_value=200_000),
)
def test_pulls_keep_the_bytes_that_the_consumer_allows(
    window: int, max_bytes: int, limit: int
) -> None:
    flow = PullWindow(window, max_bytes=max_bytes, bytes_limit=limit)
    assert 0 < flow.share_bytes <= (limit or max_bytes)
    assert flow.share_bytes <= max_bytes
    flow.limit(max_batch=0, max_bytes=0)
    assert flow.share_bytes == PullWindow(window, max_bytes=max_bytes).share_bytes


def test_limit_in_bytes_leaves_a_flow_without_bytes_alone() -> None:
    assert PullWindow(100, bytes_limit=10).share_bytes == 0


def test_window_that_is_resized_asks_for_what_fits_it_now() -> None:
    flow = PullWindow(16)
    assert flow.want(0) == 8
    flow.resize(128)
    assert (flow.want(0), flow.share) == (64, 64)
    flow.arrive(100)
    flow.resize(16)
    assert flow.want(0) == 0
    for _ in range(2):
        flow.take(50)
    flow.finish()
    assert flow.want(0) == 8


def test_what_is_put_back_waits_again_and_was_not_handed_out() -> None:
    window = PullWindow(10, stop_after=5)
    window.arrive(4)
    window.take(4)
    window.put_back(3)
    assert (window.waiting, window.to_hand) == (3, 4)
