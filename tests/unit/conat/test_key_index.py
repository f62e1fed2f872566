"""The index of keys against a plain list of the messages of each key."""

from __future__ import annotations

import random
import time

from hypothesis import given
from hypothesis import strategies as st

from natsstream.conat.key_index import KeyIndex
from natsstream.conat.record import Record

KEYS = st.sampled_from(("a", "b"))
SEQS = st.integers(1, 30)
STEPS = st.lists(st.tuples(KEYS, SEQS, st.booleans()), max_size=60)


def record(subject: str, seq: int) -> Record:
    return Record(seq, 0, subject, b"", b"")


@given(steps=STEPS, count=st.integers(1, 4))
def test_it_knows_the_newest_and_the_oldest_messages_of_each_key(
    steps: list[tuple[str, int, bool]], count: int
) -> None:
    index, held = KeyIndex(), {"a": set[int](), "b": set[int]()}
    for subject, seq, is_removed in steps:
        if is_removed and seq in held[subject]:
            older = index.remove(record(subject, seq))
            was_newest = seq == max(held[subject])
            held[subject].remove(seq)
            assert older == (max(held[subject], default=None) if was_newest else None)
            if older is not None:  # As the reconciler does.
                index.add(subject, older, is_tombstone=False)
        elif not is_removed and not any(seq in each for each in held.values()):
            index.add(subject, seq, is_tombstone=False)
            held[subject].add(seq)
        for key, seqs in held.items():
            assert index.newest.get(key) == max(seqs, default=None)
            oldest = sorted(seqs)[: max(len(seqs) - count, 0)]
            assert index.surplus(key, count) == oldest
    gone = index.replaced("a", 31)
    assert sorted(gone) == sorted(held["a"])
    assert index.surplus("a", 1) == []


def test_removing_the_messages_of_one_key_costs_the_same_for_each() -> None:
    """Eight times as many take about eight times as long, and not 64 times."""
    order = random.Random(1)  # noqa: S311 - No secret.

    def seconds_for(count: int, *, is_mixed: bool) -> float:
        index, seqs = KeyIndex(), list(range(1, count + 1))
        for seq in seqs:
            index.add("a", seq, is_tombstone=False)
        if is_mixed:
            order.shuffle(seqs)
        began = time.process_time()
        for seq in seqs[: count - count // 10]:
            if (older := index.remove(record("a", seq))) is not None:
                index.add("a", older, is_tombstone=False)
        return time.process_time() - began

    for is_mixed in (False, True):
        few = min(seconds_for(10_000, is_mixed=is_mixed) for _ in range(3))
        many = min(seconds_for(80_000, is_mixed=is_mixed) for _ in range(3))
        assert many < 24 * few
