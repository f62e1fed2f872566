"""The arithmetic of leases: belief ends before the server's expiry, whatever the answers do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.errors import ConfigError
from natsstream.kv.locks.leases import Claim, Lease, begun, check_holder, make_terms, now_ns

S = 1_000_000_000


@pytest.mark.parametrize(
    "ttl", [0, -1, 0.5, 1.5, float("nan"), float("inf"), True, "10", None, 86_401, 10**400]
)
def test_a_ttl_that_the_server_can_not_count_is_refused(ttl: object) -> None:
    with pytest.raises(ConfigError, match="ttl"):
        make_terms(ttl)


@pytest.mark.parametrize("margin", [0, -1, 6, float("inf"), "1"])
def test_a_margin_that_leaves_nothing_or_protects_nothing_is_refused(margin: object) -> None:
    with pytest.raises(ConfigError, match="margin"):
        make_terms(10, margin)


def test_a_lease_has_room_for_three_renewals() -> None:
    terms = make_terms(10)
    assert terms.margin_s == 2
    assert 3 * terms.renew_every_s * S == pytest.approx(terms.belief_ns)


def test_a_lease_counts_from_before_its_request_was_sent() -> None:
    lease = begun(make_terms(10), 7, sent_ns=100 * S, answered_ns=105 * S)
    assert lease is not None
    assert (lease.token, lease.revision) == (7, 7)
    assert lease.ends_ns == 108 * S
    assert lease.remaining_s(105 * S) == 3
    assert lease.is_good(108 * S - 1)
    assert not lease.is_good(108 * S)
    assert lease.remaining_s(200 * S) == 0


def test_an_answer_that_comes_after_the_lease_would_have_ended_begins_none() -> None:
    assert begun(make_terms(10), 7, sent_ns=100 * S, answered_ns=108 * S) is None


def test_a_renewal_keeps_the_token_and_moves_the_end() -> None:
    lease = Lease(7, 7, 100 * S, make_terms(10))
    renewed = lease.renewed(9, sent_ns=103 * S, answered_ns=104 * S)
    assert renewed is not None
    assert (renewed.token, renewed.revision, renewed.ends_ns) == (7, 9, 111 * S)


def test_a_renewal_that_is_answered_after_the_old_end_does_not_count() -> None:
    lease = Lease(7, 7, 100 * S, make_terms(10))
    assert lease.renewed(9, sent_ns=103 * S, answered_ns=108 * S) is None


@given(
    ttl=st.integers(1, 100),
    share=st.floats(0.01, 0.5),
    steps=st.lists(st.tuples(*[st.integers(0, 30 * S)] * 3), max_size=20),
)
def test_nobody_believes_in_a_lease_that_the_server_has_let_expire(
    ttl: int, share: float, steps: list[tuple[int, int, int]]
) -> None:
    """The server stores each request at some moment between its sending and its answer."""
    terms = make_terms(ttl, ttl * share)
    clock = 1_000 * S
    lease = begun(terms, 1, sent_ns=clock, answered_ns=clock)
    assert lease is not None
    expires_ns = clock + ttl * S
    for revision, (idle, way_there, way_back) in enumerate(steps, 2):
        sent_ns = clock + idle
        stored_ns = sent_ns + way_there
        clock = stored_ns + way_back
        # A request that comes too late is refused, or its effect is swept away by the marker.
        is_kept = stored_ns < expires_ns
        if is_kept:
            expires_ns = stored_ns + ttl * S
        renewed = lease.renewed(revision, sent_ns=sent_ns, answered_ns=clock)
        if renewed is None:
            break
        assert is_kept, "a renewal was believed that the server had swept away"
        lease = renewed
    assert lease.ends_ns < expires_ns


def test_a_claim_comes_back_as_it_was_written() -> None:
    claim = Claim("wörker 1", "abc", 10)
    assert Claim.from_bytes(claim.to_bytes()) == claim


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff\xfe",
        b"me",
        b"[1]",
        b"null",
        b'{"ttl": "x"}',
        b"[" * 200_000,
        b'{"ttl": true}',
        b'{"ttl": -1}',
        b'{"ttl": 1e400}',
        b'{"ttl": 99999999999}',
    ],
)
def test_what_others_wrote_into_a_lock_is_a_holder_without_an_id(value: bytes) -> None:
    claim = Claim.from_bytes(value)
    assert (claim.claim_id, claim.ttl_s) == ("", 0)


def test_a_long_word_of_others_is_cut() -> None:
    assert len(Claim.from_bytes(b"x" * 1_000_000).holder) == 1_024
    assert len(Claim.from_bytes(b'{"holder": "' + b"x" * 1_000_000 + b'"}').holder) == 1_024


@pytest.mark.parametrize("holder", [b"me", 3, None, "x" * 1_025, "\ud800"])
def test_a_holder_that_is_no_short_text_is_refused(holder: object) -> None:
    with pytest.raises(ConfigError, match="holder"):
        check_holder(holder)


def test_the_clock_goes_forward() -> None:
    assert now_ns() <= now_ns()
