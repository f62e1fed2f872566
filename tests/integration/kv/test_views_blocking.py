"""Typed values, mirrors, locks and elections without async."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import natsstream as ns
from natsstream import blocking
from natsstream.errors import LockHeldError, ValueDecodeError
from tests.support.locks import give_back_patiently

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream.testing import NatsNode


@pytest.fixture
def kv(server: NatsNode, stream_name: str) -> Iterator[blocking.KeyValue]:
    """A bucket that can keep locks."""
    with blocking.connect(server.url) as js:
        yield js.kv.create(stream_name, limit_marker_ttl=1, storage="memory")


def test_typed_values_without_async(kv: blocking.KeyValue) -> None:
    typed = kv.typed(ns.JSON)
    typed.put("a", [1])
    entry = typed.get("a")
    assert entry is not None
    assert entry.value == [1]
    kv.put("b", b"{oops")
    with pytest.raises(ValueDecodeError):
        typed.get("b")
    with typed.watch(on_unreadable="hand_out") as watch:
        assert [each.key for each in watch.initial()] == ["a", "b"]


def test_markers_and_bad_values_are_listed_without_async(kv: blocking.KeyValue) -> None:
    """They have no value to ask for, and whoever counts bytes on the way must not."""
    typed = kv.typed(ns.JSON)
    kv.put("a", b"{oops")
    kv.delete("b")
    assert [each.key for each in typed.entries(on_unreadable="hand_out")] == ["a"]
    told = list(typed.history(on_unreadable="hand_out"))
    assert [(each.key, each.is_deleted, each.nbytes) for each in told] == [
        ("a", False, 5),
        ("b", True, 0),
    ]


def test_a_mirror_without_async(kv: blocking.KeyValue) -> None:
    with kv.cached() as mirror:
        mirror.wait_for(kv.put("a", b"1"))
        mirror.put("b", b"2")
        assert mirror.keys() == ["a", "b"]
        entry = mirror.get("a")
        assert entry is not None
        assert entry.value == b"1"
        assert len(mirror) == 2
        assert "a" in mirror
        assert "c" not in mirror
        assert list(mirror) == ["a", "b"]


def test_changes_of_a_mirror_without_async(kv: blocking.KeyValue) -> None:
    with kv.typed(ns.JSON).cached() as mirror:
        changes = mirror.changes()
        mirror.put("a", [1])
        assert next(changes).value == [1]
        mirror.delete("a")
        assert next(changes).is_deleted
        assert len(mirror) == 0
        assert mirror.staleness < 60
        kv.put("b", b"{oops")
        assert next(changes).error is not None
        with pytest.raises(ValueDecodeError):
            mirror.get("b")


def test_locks_and_elections_without_async(
    kv: blocking.KeyValue, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_back_patiently(monkeypatch)
    with kv.lock("l") as lock:
        assert lock.is_held
        assert lock.put("k", b"v") > lock.token
        with pytest.raises(LockHeldError), kv.lock("l", timeout=0):
            pass
    election = kv.election("e", candidate="me")
    with election.lead() as term:
        leader = election.leader()
        assert leader is not None
        assert (leader.candidate, leader.revision) == ("me", term.token)
    assert election.leader() is None
