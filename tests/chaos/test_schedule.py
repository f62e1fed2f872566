"""Faults come from a seed alone, and leave room for going on."""

from __future__ import annotations

import pytest

from scripts.chaos_runs.schedule import KINDS, LINKS, Round, Step, make_round

ROUNDS = 300


def rounds(nodes: int) -> list[Round]:
    return [make_round(seed=11, number=number, nodes=nodes) for number in range(1, ROUNDS + 1)]


def is_away(step: Step) -> bool:
    return step.kind in {"kill", "pause", "partition", "isolate"}


def test_round_is_the_same_for_the_same_seed() -> None:
    assert make_round(7, 3, 3) == make_round(7, 3, 3)
    assert make_round(7, 3, 3) != make_round(8, 3, 3)
    assert str(make_round(7, 1, 3)).splitlines()[0] == "round 1"


def test_cluster_gets_every_kind_of_fault() -> None:
    assert {step.kind for each in rounds(3) for step in each.steps} == set(KINDS)


def test_single_server_gets_no_fault_that_needs_peers() -> None:
    found = {step.kind for each in rounds(1) for step in each.steps}
    assert found == set(KINDS) - {"partition", "isolate", "step down", "meta step down"}


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_every_step_ends_within_its_round_at_something_that_exists(nodes: int) -> None:
    targets = {f"n{number}" for number in range(1, nodes + 1)}
    targets |= {f"link{number}" for number in range(1, LINKS + 1)}
    for each in rounds(nodes):
        assert [step.at_s for step in each.steps] == sorted(step.at_s for step in each.steps)
        for step in each.steps:
            assert 0 <= step.at_s <= step.end_s <= each.seconds + 0.01
            assert step.target in targets | {""}


@pytest.mark.parametrize("nodes", [1, 3])
def test_no_two_steps_touch_the_same_thing_at_the_same_time(nodes: int) -> None:
    """Ending one fault of a proxy ends all of its faults."""
    for each in rounds(nodes):
        for index, step in enumerate(each.steps):
            later = [other for other in each.steps[index + 1 :] if other.at_s <= step.end_s]
            assert step.target == "" or all(step.target != other.target for other in later)


def test_most_rounds_keep_a_majority_and_some_do_not() -> None:
    losing = 0
    for each in rounds(3):
        away = [step for step in each.steps if is_away(step)]
        together = max(
            (sum(other.at_s <= step.at_s <= other.end_s for other in away) for step in away),
            default=0,
        )
        losing += together > 1
    assert 0 < losing < ROUNDS * 0.2
