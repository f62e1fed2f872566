"""Spark's tests on a starved machine: a Python worker has ten seconds to start, and no more.

The wait is a constant of Spark's `PythonWorkerFactory`, with no setting. A worker that is started
afresh, such as that of a stream, needs a second of the processor, which is more beside twenty busy
processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from _pytest.runner import runtestprotocol

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    Run = Callable[..., list[pytest.TestReport]]

# What Spark says of that wait, and of nothing else.
TOO_LATE = (
    "Python worker failed to connect back",
    "Timed out while waiting for the Python worker to connect back",
    # Another program was first on the port on which Spark waits for the worker, such as a test that
    # asks whether its server is up: Spark takes "GET " for a length of 1.2 GB.
    "terminated with exception: Java heap space",
)
ATTEMPTS_MAX = 3


def is_too_late(reports: list[pytest.TestReport]) -> bool:
    """Return True if a test has failed because a worker of Spark did not start in time."""
    failures = [report.longreprtext for report in reports if report.failed]
    return any(text in failure for text in TOO_LATE for failure in failures)


def run_in_spark(
    item: pytest.Item, nextitem: pytest.Item | None, run: Run = runtestprotocol
) -> int:
    """Run a test, again if its worker was too late, and report the last attempt alone.

    Returns:
        How many attempts there were.
    """
    hook = item.ihook
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    attempts, reports = 1, run(item, nextitem=nextitem, log=False)
    while is_too_late(reports) and attempts < ATTEMPTS_MAX:
        attempts += 1
        reports = run(item, nextitem=nextitem, log=False)
    for report in reports:
        hook.pytest_runtest_logreport(report=report)
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return attempts
