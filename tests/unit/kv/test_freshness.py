"""How old what a mirror answers may be: which looks at the server count."""

from __future__ import annotations

from natsstream.kv.cache.freshness import Freshness, LookAtServer


def test_a_look_counts_when_all_that_the_bucket_had_then_has_come() -> None:
    fresh = Freshness(100)
    fresh.look(LookAtServer(7, asked_ns=200))
    fresh.reach(6, breaks=0)
    assert fresh.known_ns == 100
    fresh.look(LookAtServer(9, asked_ns=300))
    fresh.reach(8, breaks=0)
    assert fresh.known_ns == 200
    fresh.reach(9, breaks=0)
    assert fresh.known_ns == 300


def test_no_look_counts_after_a_break_until_the_keys_were_listed() -> None:
    fresh = Freshness(100)
    fresh.look(LookAtServer(7, asked_ns=200))
    fresh.reach(7, breaks=1)
    assert (fresh.known_ns, fresh.must_list) == (100, True)
    fresh.note_listed(1)
    fresh.reach(7, breaks=1)
    assert (fresh.known_ns, fresh.must_list) == (200, False)


def test_a_break_during_a_listing_wants_another_one() -> None:
    fresh = Freshness(100)
    fresh.reach(7, breaks=1)
    fresh.reach(7, breaks=2)
    fresh.note_listed(1)
    assert fresh.must_list
    fresh.note_listed(2)
    assert not fresh.must_list


def test_a_mirror_that_falls_behind_for_long_keeps_a_bounded_number_of_looks() -> None:
    fresh = Freshness(0)
    for number in range(1, 1_000):
        fresh.look(LookAtServer(number, asked_ns=number))
    fresh.reach(999, breaks=0)
    assert fresh.known_ns == 999
