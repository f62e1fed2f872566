"""What a local mirror holds: newest revisions, nothing expired, nothing beyond its limit."""

from __future__ import annotations

import pytest

from natsstream.errors import CacheFullError
from natsstream.kv.cache.contents import CacheContents
from natsstream.kv.cache.freshness import LookAtServer
from natsstream.kv.entry import Entry, Operation

S = 1_000_000_000
SERVER_NS = 1_800_000_000 * S


def entry(
    key: str,
    revision: int,
    value: bytes = b"v",
    *,
    operation: Operation = "PUT",
    age_s: int = 0,
    ttl: int | None = None,
) -> Entry:
    """Make a revision that was stored some seconds before the server's clock was looked at."""
    return Entry("b", key, value, revision, SERVER_NS - age_s * S, operation, 0, ttl)


def make(max_age_s: int = 0) -> CacheContents:
    """Make a mirror that looked at the server's clock at 0 of its own."""
    mirror = CacheContents(10_000)
    mirror.set_rules(max_age_s * S, LookAtServer(0, 0, SERVER_NS))
    return mirror


def test_an_older_revision_changes_nothing() -> None:
    mirror = make()
    assert mirror.take(entry("a", 2, b"new"))
    assert not mirror.take(entry("a", 1, b"old"))
    held = mirror.get("a", 0)
    assert held is not None
    assert held.value == b"new"


def test_a_marker_removes_a_key_and_counts_as_seen() -> None:
    mirror = make()
    mirror.take(entry("a", 1))
    mirror.take(entry("a", 2, b"", operation="DEL"))
    assert mirror.get("a", 0) is None
    assert (mirror.revision, mirror.size_bytes, len(mirror)) == (2, 0, 0)


def test_a_key_with_a_life_of_its_own_ends_with_it() -> None:
    mirror = make()
    mirror.take(entry("a", 1, age_s=4, ttl=10))
    assert mirror.get("a", 6 * S - 1) is not None
    assert mirror.get("a", 6 * S) is None
    assert [each.key for each in mirror.forget_expired(6 * S)] == ["a"]
    assert mirror.forget_expired(6 * S) == []
    assert (mirror.all(), mirror.size_bytes, mirror.holds("a")) == ({}, 0, False)


def test_the_buckets_ttl_ends_keys_but_those_that_never_expire() -> None:
    mirror = make(max_age_s=10)
    mirror.take(entry("old", 1, age_s=9))
    mirror.take(entry("ever", 2, age_s=9, ttl=-1))
    mirror.take(entry("own", 3, age_s=1, ttl=3_600))
    mirror.take(entry("new", 4))
    for seconds, left in (
        (0, ["old", "ever", "own", "new"]),
        (1, ["ever", "own", "new"]),
        (9, ["ever", "new"]),
        (100, ["ever"]),
    ):
        mirror.forget_expired(seconds * S)
        assert list(mirror.all()) == left


def test_the_servers_clock_is_never_thought_to_be_earlier_than_it_is() -> None:
    """It answered at some moment behind the question: the question's counts."""
    clock = LookAtServer(0, asked_ns=5 * S, time_ns=SERVER_NS)
    assert clock.latest_ns(7 * S) == SERVER_NS + 2 * S


def test_what_the_server_has_no_more_is_missing() -> None:
    mirror = make()
    for revision, key in enumerate("abc", 1):
        mirror.take(entry(key, revision))
    assert [each.key for each in mirror.missing(["a"], 2)] == ["b"]


def test_a_mirror_beyond_its_limit_raises_and_counts_what_it_replaces_once() -> None:
    mirror = CacheContents(2_000)
    for revision in range(1, 50):
        mirror.take(entry("a", revision, bytes(1_000)))
    with pytest.raises(CacheFullError, match="2000 bytes"):
        mirror.take(entry("b", 50, bytes(1_000)))
