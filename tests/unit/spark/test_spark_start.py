"""A test of Spark runs again where Spark did not wait for its worker, and nowhere else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

import pytest

from tests.support.spark_start import ATTEMPTS_MAX, TOO_LATE, run_in_spark

if TYPE_CHECKING:
    from collections.abc import Iterator


def report(failure: str = "") -> Any:
    return SimpleNamespace(failed=bool(failure), longreprtext=failure)


def attempt(outcomes: Iterator[list[Any]]) -> tuple[int, list[Any]]:
    """Return how many attempts there were, and what was reported."""
    hook = Mock()
    item = cast("pytest.Item", SimpleNamespace(ihook=hook, nodeid="a", location=("a", 1, "a")))

    def run(item: object, **_: object) -> list[Any]:
        del item
        return next(outcomes)

    attempts = run_in_spark(item, None, run)
    return attempts, [call.kwargs["report"] for call in hook.pytest_runtest_logreport.mock_calls]


@pytest.mark.parametrize("text", TOO_LATE)
def test_worker_that_was_too_late_has_another_attempt(text: str) -> None:
    good = [report(), report(), report()]

    assert attempt(iter([[report(), report(f"E  {text}."), report()], good])) == (2, good)


def test_other_failure_is_reported_at_once() -> None:
    bad = [report(), report("AssertionError"), report()]

    assert attempt(iter([bad])) == (1, bad)


def test_worker_that_is_always_too_late_fails() -> None:
    late = [report(TOO_LATE[0])]

    assert attempt(iter([late] * ATTEMPTS_MAX)) == (ATTEMPTS_MAX, late)
