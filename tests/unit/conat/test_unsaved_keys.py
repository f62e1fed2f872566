"""The effect of a remote change on an unsaved value."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.unsaved_keys import TOMBSTONE, Conflict, Outcome, UnsavedKeys

if TYPE_CHECKING:
    from collections.abc import Callable


def with_local(value: object, merge: Callable[[Conflict], object] | None = None) -> UnsavedKeys:
    keys = UnsavedKeys(merge)
    keys.set("a", value, {"h": 1})
    return keys


def value_of(keys: UnsavedKeys) -> object:
    held = keys.get("a")
    assert held is not None
    return held.value


def test_a_change_of_a_key_without_an_unsaved_value_does_nothing() -> None:
    keys = with_local(1)
    assert keys.remote("b", 1, UNDEFINED, None) is Outcome.NOTHING
    assert list(keys) == ["a"]


def test_the_own_message_that_comes_back_saves_the_value() -> None:
    keys = with_local(1)
    held = keys.get("a")
    assert held is not None
    assert keys.remote("a", 1, UNDEFINED, held.msg_id) is Outcome.SAVED
    assert not keys


def test_a_value_written_again_stays_when_the_first_message_comes_back() -> None:
    keys = with_local(1)
    first = keys.get("a")
    keys.set("a", 2)
    assert first is not None
    assert keys.remote("a", 1, UNDEFINED, first.msg_id) is Outcome.KEPT
    assert not keys.forget("a", first.msg_id)
    assert value_of(keys) == 2


def test_without_merge_the_local_value_counts_and_keeps_its_message_id() -> None:
    keys = with_local(1)
    before = keys.get("a")
    assert keys.remote("a", 2, UNDEFINED, "other") is Outcome.KEPT
    assert keys.get("a") == before


@pytest.mark.parametrize(("local", "remote"), [({"x": [1]}, {"x": [1]}), (None, None)])
def test_an_equal_remote_value_ends_the_local_one(local: object, remote: object) -> None:
    keys = with_local(local, lambda _: "never")
    assert keys.remote("a", remote, UNDEFINED, "other") is Outcome.DROPPED
    assert not keys


@pytest.mark.parametrize(("local", "remote"), [(True, 1), (1, 1.0), (None, UNDEFINED)])
def test_values_of_different_types_are_not_equal(local: object, remote: object) -> None:
    assert with_local(local).remote("a", remote, UNDEFINED, "other") is Outcome.KEPT


def test_an_unsaved_deletion_wins_over_a_remote_value_without_a_merge() -> None:
    keys = with_local(UNDEFINED, lambda _: "never")
    assert keys.remote("a", 5, 4, "other") is Outcome.KEPT
    assert value_of(keys) is UNDEFINED


def test_two_deletions_agree() -> None:
    assert with_local(UNDEFINED).remote("a", UNDEFINED, 4, "other") is Outcome.DROPPED


def test_merge_takes_all_three_values_and_its_result_is_to_be_saved() -> None:
    seen: list[Conflict] = []

    def merge(conflict: Conflict) -> object:
        seen.append(conflict)
        return {**conflict.remote, **conflict.local}

    keys = with_local({"x": 1}, merge)
    before = keys.get("a")
    assert keys.remote("a", {"y": 2}, {"z": 3}, "other") is Outcome.MERGED
    assert seen == [Conflict("a", {"x": 1}, {"y": 2}, {"z": 3})]
    assert value_of(keys) == {"x": 1, "y": 2}
    after = keys.get("a")
    assert before is not None
    assert after is not None
    assert after.headers == {"h": 1}
    assert after.msg_id != before.msg_id


def test_a_merge_that_returns_the_remote_value_ends_the_local_one() -> None:
    keys = with_local(1, lambda conflict: conflict.remote)
    assert keys.remote("a", 2, UNDEFINED, "other") is Outcome.DROPPED
    assert not keys


@pytest.mark.parametrize("nothing", [None, UNDEFINED])
def test_a_merge_that_returns_nothing_keeps_the_local_value(nothing: object) -> None:
    keys = with_local(1, lambda _: nothing)
    assert keys.remote("a", 2, UNDEFINED, "other") is Outcome.MERGED
    assert value_of(keys) == 1


def test_a_merge_that_returns_tombstone_deletes_the_key() -> None:
    keys = with_local(1, lambda _: TOMBSTONE)
    assert keys.remote("a", 2, UNDEFINED, "other") is Outcome.MERGED
    assert value_of(keys) is UNDEFINED
    assert keys.remote("a", UNDEFINED, 2, "other") is Outcome.DROPPED


def test_a_merge_that_fails_keeps_the_local_value(caplog: pytest.LogCaptureFixture) -> None:
    keys = with_local(1, lambda conflict: {**conflict.remote})
    assert keys.remote("a", 2, UNDEFINED, "other") is Outcome.MERGED
    assert value_of(keys) == 1
    assert "the merge of key 'a' failed" in caplog.text


def test_tombstone_is_itself_when_copied() -> None:
    assert copy.deepcopy(TOMBSTONE) is TOMBSTONE
    assert pickle.loads(pickle.dumps(TOMBSTONE)) is TOMBSTONE  # noqa: S301 - Our own bytes.
    assert repr(TOMBSTONE) == "TOMBSTONE"


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("set"), st.integers(0, 2), st.integers(0, 2)),
            st.tuples(st.just("save"), st.integers(0, 2), st.just(0)),
            st.tuples(st.just("remote"), st.integers(0, 2), st.integers(0, 2)),
        ),
        max_size=30,
    )
)
def test_map_and_server_agree_when_all_is_saved(steps: list[tuple[str, int, int]]) -> None:
    # The model: a server that takes one message at a time, and brings each back at once.
    server: dict[str, object] = {}
    keys = UnsavedKeys()
    last: dict[str, object] = {}

    def store(key: str, value: object, msg_id: str | None) -> None:
        prev, server[key] = server.get(key, UNDEFINED), value
        keys.remote(key, value, prev, msg_id)

    def save(key: str) -> None:
        held = keys.get(key)
        if held is not None:
            last[key] = held.value
            store(key, held.value, held.msg_id)

    for step, number, value in steps:
        key = str(number)
        if step == "set":
            keys.set(key, value)
        elif step == "save":
            save(key)
        else:
            last[key] = value
            store(key, value, None)
    for key in list(keys):
        save(key)
    assert not keys
    assert server == last


def test_a_value_in_doubt_is_stored_before_the_newer_one_of_its_key() -> None:
    keys = with_local(1)
    first = keys.get("a")
    assert first is not None
    keys.doubt("a", first)
    assert keys.overtaken() == []  # It is tried again as it is.
    keys.set("a", 2)
    assert keys.overtaken() == [("a", first)]
    keys.forget("a", first.msg_id)  # It has an answer now.
    assert keys.overtaken() == []
    assert value_of(keys) == 2


def test_a_value_in_doubt_that_comes_back_is_stored() -> None:
    keys = with_local(1)
    first = keys.get("a")
    assert first is not None
    keys.doubt("a", first)
    keys.set("a", 2)
    assert keys.remote("a", 1, UNDEFINED, first.msg_id) is Outcome.KEPT
    assert keys.overtaken() == []


def test_a_value_in_doubt_stays_away_when_the_remote_value_counts() -> None:
    keys = with_local(1)
    first = keys.get("a")
    assert first is not None
    keys.doubt("a", first)
    assert keys.remote("a", 1, UNDEFINED, "other") is Outcome.DROPPED
    assert keys.overtaken() == []
