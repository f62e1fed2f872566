"""The reconciler beside a simulated server and a plain list, under every fault of a feed.

`tests/support/faulty_feed.py` has the world and the promises. At each edit the arrays are a plain
list that follows the edits alone; each message that came live or still exists is told once, in
order; `previous` is what the key had; `is_conflated` is what the server knows; no late answer
brings back what is gone. After the last fault a bounded number of questions makes the arrays equal
to what the server holds.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.faulty_feed import Draw, FaultyFeed

SHORT, LONG = 60, 250


def run(draw: Draw, steps: int) -> FaultyFeed:
    """Run a world; what happened is a note to the error."""
    world = FaultyFeed(draw, steps)
    try:
        world.run()
    except BaseException as error:
        error.add_note("\n".join(world.log))
        raise
    return world


def drawn(seed: int) -> Draw:
    return random.Random(seed).randrange  # noqa: S311 - To be repeated, no secret.


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_arrays_keep_every_promise_through_many_faults(first: int) -> None:
    counts: Counter[str] = Counter()
    for seed in range(first, first + 50):
        try:
            counts.update(run(drawn(seed), SHORT).counts)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
    # The sample is worth something.
    assert counts["conflated live"]
    assert counts["conflated read"]
    assert counts["not conflated read"]
    assert counts["made anew"]


@pytest.mark.parametrize("seed", range(20))
def test_arrays_keep_every_promise_for_long(seed: int) -> None:
    run(drawn(1_000 + seed), LONG)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1_000_000), max_size=250))
def test_arrays_keep_every_promise_whatever_happens(draws: list[int]) -> None:
    """Hypothesis cuts a failure down to a short one."""
    left = iter(draws)
    run(lambda count: next(left, 0) % count, SHORT)
