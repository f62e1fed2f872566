"""What is read out of the servers' pages: who leads, and what keeps a cluster from being ready."""

from __future__ import annotations

import pytest

from natsstream.testing.monitoring import (
    Health,
    choose_leader,
    find_forgotten,
    find_what_is_missing,
)

NAMES = frozenset({"n1", "n2", "n3"})


def make_health(
    name: str,
    *,
    peers: frozenset[str] | None = None,
    leader: str = "n1",
    size: int = 3,
    current: frozenset[str] | None = None,
    is_healthy: bool = True,
) -> Health:
    others = NAMES - {name}
    if current is None:
        current = others if name == leader else frozenset()
    return Health(
        peers=others if peers is None else peers,
        meta_leader=leader,
        meta_size=size,
        current_peers=current,
        is_healthy=is_healthy,
    )


def make_cluster(changed: Health | None, name: str) -> dict[str, Health | None]:
    return {n: make_health(n) for n in sorted(NAMES)} | {name: changed}


@pytest.mark.parametrize(
    ("opinions", "n_members", "leader"),
    [
        ([], 0, None),
        ([], 3, None),
        (["n1"], 1, "n1"),
        (["n1"], 3, None),
        (["n1", "n1"], 3, "n1"),
        # The old leader is cut off and does not know it yet.
        (["n1", "n2", "n2"], 3, "n2"),
        (["n1", "n2"], 3, None),
        (["n1", "n1"], 4, None),
        (["", "", "n1"], 3, None),
    ],
)
def test_leader_is_whom_a_majority_of_all_members_names(
    opinions: list[str], n_members: int, leader: str | None
) -> None:
    assert choose_leader(opinions, n_members) == leader


def test_nothing_is_missing_in_a_complete_cluster() -> None:
    assert find_what_is_missing(make_cluster(make_health("n1"), "n1"), NAMES) == ""


@pytest.mark.parametrize(
    ("name", "changed", "missing"),
    [
        ("n2", None, "n2 does not answer"),
        ("n2", make_health("n2", peers=frozenset({"n1"})), "n2 has no route to n3"),
        ("n3", make_health("n3", leader=""), "n3 knows no meta leader"),
        ("n3", make_health("n3", is_healthy=False), "n3 is not healthy"),
        ("n3", make_health("n3", leader="n3"), "several are taken for the meta leader: n1, n3"),
        ("n1", make_health("n1", current=frozenset({"n3"})), "meta group: n2"),
    ],
)
def test_first_missing_thing_is_named(name: str, changed: Health | None, missing: str) -> None:
    assert find_what_is_missing(make_cluster(changed, name), NAMES).endswith(missing)


def test_leader_that_is_down_is_named() -> None:
    two = {name: make_health(name, leader="n3") for name in ("n1", "n2")}

    missing = find_what_is_missing(two, frozenset(two))

    assert missing == "the meta leader is n3, which is down"


def test_forgotten_are_those_whom_a_leader_of_a_smaller_group_does_not_know() -> None:
    leader = make_health("n1", size=2, current=frozenset({"n3"}))

    assert find_forgotten(make_cluster(leader, "n1")) == {"n2"}
    assert find_forgotten(make_cluster(make_health("n1"), "n1")) == set()
    # A member that is behind is a member.
    behind = make_health("n1", current=frozenset({"n3"}))
    assert find_forgotten(make_cluster(behind, "n1")) == set()
    assert find_forgotten(make_cluster(None, "n1")) == set()
