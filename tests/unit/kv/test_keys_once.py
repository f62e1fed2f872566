"""Unit tests of listings: each key once, whatever is written meanwhile."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from natsstream.kv.listing import KeysOnce

keys = st.lists(st.sampled_from([f"k{number}" for number in range(12)]), max_size=30)


def test_keys_up_to_the_horizon_all_come() -> None:
    once = KeysOnce(3)

    assert once.choose(["a", "b"], first=1) == [0, 1]
    assert once.choose(["c"], first=3) == [0]


def test_key_that_came_before_the_horizon_does_not_come_again() -> None:
    once = KeysOnce(3)
    once.choose(["a", "b"], first=1)

    assert once.choose(["b", "c", "c", "a"], first=4) == [1]
    assert once.choose(["c", "d"], first=8) == [1]


@given(st.sets(st.sampled_from("abcdef")), st.lists(keys, max_size=6))
def test_every_key_comes_exactly_once(before: set[str], later: list[list[str]]) -> None:
    once = KeysOnce(len(before))
    found = [*before]
    once.choose(found, first=1)
    first = len(before) + 1

    for batch in later:
        found += [batch[index] for index in once.choose(batch, first=first)]
        first += len(batch)

    assert sorted(found) == sorted(before.union(*later))
