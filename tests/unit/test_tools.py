"""The rule for tests whose tools are missing."""

from __future__ import annotations

import pytest

from tests.support.tools import PROBES, decide, find_missing, is_ci


def test_tests_of_present_tools_stay() -> None:
    decision = decide([{"needs_go"}, set(), {"spark"}], {}, is_ci=True)

    assert (decision.deselected, decision.counts, decision.refusal) == (frozenset(), {}, "")


def test_tests_of_missing_tools_are_deselected_and_counted() -> None:
    markers = [{"needs_go"}, set[str](), {"needs_node"}, {"needs_go", "spark"}]

    decision = decide(markers, {"needs_go": "go"}, is_ci=False)

    assert decision.deselected == {0, 3}
    assert decision.counts == {"needs_go": 2}
    assert not decision.refusal


def test_test_that_misses_two_tools_counts_in_both() -> None:
    missing = {"needs_go": "go", "needs_node": "npm"}

    decision = decide([{"needs_go", "needs_node"}], missing, is_ci=False)

    assert decision.deselected == {0}
    assert decision.counts == {"needs_go": 1, "needs_node": 1}


def test_ci_deselects_nothing_and_refuses_with_the_tools_name() -> None:
    decision = decide([set(), {"needs_node"}], {"needs_node": "npm"}, is_ci=True)

    assert decision.deselected == frozenset()
    assert "npm (1 tests)" in decision.refusal


def test_ci_goes_on_when_no_collected_test_needs_the_missing_tool() -> None:
    decision = decide([{"needs_go"}], {"needs_node": "npm"}, is_ci=True)

    assert not decision.refusal


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({"CI": "true"}, True), ({"CI": "True"}, True), ({"CI": "false"}, False), ({}, False)],
)
def test_ci_is_told_by_the_environment(environment: dict[str, str], *, expected: bool) -> None:
    assert is_ci(environment) is expected


def test_nothing_is_on_an_empty_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    assert find_missing(PROBES.keys()) == {
        "needs_go": "go",
        "needs_node": "node and npm",
        "needs_docker": "docker",
        "needs_chromium": "chromium",
    }


def test_only_tools_that_are_asked_for_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    assert find_missing({"needs_go"}) == {"needs_go": "go"}
