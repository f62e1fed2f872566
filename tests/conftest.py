"""Fixtures that every test may use, and the rule for tests whose tools are missing."""

from __future__ import annotations

import os
import re
import secrets
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import settings

from natsstream.testing import NatsServer
from tests.support.tools import PROBES, decide, find_missing, is_ci

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

# The largest message that a test sends is 8 MiB, and headers come on top.
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024
REPORT_LOG_LINES = 60

# A busy machine is no failure; the timeout of each test bounds it.
settings.register_profile("natsstream", deadline=None)
settings.load_profile("natsstream")

_DESELECTED = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def server() -> Iterator[NatsServer]:
    """The server that the whole run shares; nothing is reset between tests, so use unique names."""
    with NatsServer(max_payload_bytes=MAX_PAYLOAD_BYTES) as shared:
        yield shared


@pytest.fixture
def fresh_server() -> Iterator[NatsServer]:
    """A server with an empty store for this test alone, which may kill, pause or restart it."""
    with NatsServer(max_payload_bytes=MAX_PAYLOAD_BYTES) as own:
        yield own


@pytest.fixture
def stream_name(request: pytest.FixtureRequest) -> str:
    """A legal stream name that no other test has."""
    node = cast("pytest.Item", request.node)
    test_name = re.sub(r"[^A-Za-z0-9_]+", "_", node.name)[:40]
    return f"{test_name}_{secrets.token_hex(4)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the log of every server that a failed test used."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        for fixture, value in item.funcargs.items():
            if isinstance(value, NatsServer):
                title = f"log of {fixture} ({value.name})"
                report.sections.append((title, value.log_tail(REPORT_LOG_LINES)))
    return report


# Last, so that tests which -k or -m left out do not ask for tools.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests whose tools are missing; in CI fail instead."""
    markers = [{mark.name for mark in item.iter_markers()} for item in items]
    missing = find_missing(set[str]().union(*markers) & PROBES.keys())
    decision = decide(markers, missing, is_ci=is_ci(os.environ))
    if decision.refusal:
        raise pytest.UsageError(decision.refusal)
    if decision.deselected:
        left_out = [item for index, item in enumerate(items) if index in decision.deselected]
        items[:] = [item for index, item in enumerate(items) if index not in decision.deselected]
        config.hook.pytest_deselected(items=left_out)
    config.stash[_DESELECTED] = [
        f"{name}: {count} deselected, missing here: {missing[name]}"
        for name, count in decision.counts.items()
    ]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say at the end, where it is read, which tests did not run."""
    for line in config.stash.get(_DESELECTED, list[str]()):
        terminalreporter.write_line(line, yellow=True)
