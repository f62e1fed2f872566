"""Fixtures that every test may use, and the rule for tests whose tools are missing.

They stand on the plugin that users have (`natsstream/testing/plugin.py`), which pytest loads by
itself, and which shows the logs of servers in the report of a failed test.
"""

from __future__ import annotations

import os
import signal
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import settings

from natsstream.testing import NatsServer
from tests.support.clusters import delete_streams
from tests.support.sampling import choose, choose_variants, seed_of, shuffle
from tests.support.spark_start import run_in_spark
from tests.support.tools import PROBES, decide, find_missing, is_ci

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from natsstream.testing import NatsNode, ServerOptions
    from natsstream.testing.backends import NatsNodes

    class Worker(Protocol):
        """What is used of a worker of pytest-xdist, which has no types."""

        config: pytest.Config


# The largest message that a test sends is 8 MiB, and headers come on top.
MAX_PAYLOAD_BYTES = 16 * 1024 * 1024

# A shell starts its background jobs with SIGINT ignored, and all that they start inherits it; tests
# that interrupt programs would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A JVM of the tests lives for seconds, in which Java's second compiler and its parallel garbage
# collector cost more than they save. Every way to start Spark heeds this variable; none prints it.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A busy machine is no failure; the timeout of each test bounds it.
# Each run draws others, so three runs have as many as one of Hypothesis' own hundred.
settings.register_profile("natsstream", deadline=None, max_examples=34)
settings.register_profile("fast", deadline=None, max_examples=10)
settings.register_profile("full", deadline=None, max_examples=100)
settings.load_profile("natsstream")

_DESELECTED = pytest.StashKey[list[str]]()
_DAY = "NATSSTREAM_SAMPLED_DAY"
_WORKER_KEY = "natsstream_deselected"


@pytest.fixture(scope="session")
def nats_server_options() -> ServerOptions:
    """What the tests need of every server."""
    return {"max_payload_bytes": MAX_PAYLOAD_BYTES}


@pytest.fixture(scope="session")
def server(nats_server: NatsNode) -> NatsNode:
    """The server that the whole run shares; nothing is reset between tests, so use unique names."""
    return nats_server


@pytest.fixture(scope="module")
def nats_cluster(nats_cluster: NatsNodes) -> Iterator[NatsNodes]:
    """The cluster that the whole run shares; its streams end with the file that made them.

    Each replica costs its server processor time until then, used or not: a hundred streams of three
    replicas a third of a core.
    """
    yield nats_cluster
    delete_streams(nats_cluster)


@pytest.fixture
def fresh_server(nats_server_options: ServerOptions) -> Iterator[NatsServer]:
    """A server with an empty store for this test alone, which may kill, pause or restart it.

    It is a process in every run, also with `--nats-backend=container`: its tests damage the files
    of its store and signal its pid.
    """
    with NatsServer(**nats_server_options) as own:
        yield own


@pytest.fixture
def stream_name(nats_name: str) -> str:
    """A legal stream name that no other test has."""
    return nats_name


def pytest_configure() -> None:
    """Fix the day of the run, which its workers inherit: it may last past midnight."""
    os.environ.setdefault(_DAY, datetime.now(UTC).date().isoformat())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose and order the tests."""
    parser.addoption(
        "--sampled",
        default="",
        metavar="all|SEED",
        help="which tests marked `sampled` run: all, or the fifth of a seed (the day's by default)",
    )
    parser.addoption(
        "--random-order",
        type=int,
        metavar="SEED",
        help="run the files in a random order, and the tests of each file too",
    )


# Last, so that tests which -k or -m left out do not ask for tools.
@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests of other samples and tests whose tools are missing; in CI fail instead."""
    lines = leave_out_other_samples(config, items)
    if (seed := config.getoption("--random-order")) is not None:
        shuffle(items, int(seed))
    markers = [{mark.name for mark in item.iter_markers()} for item in items]
    missing = find_missing(set[str]().union(*markers) & PROBES.keys())
    decision = decide(markers, missing, is_ci=is_ci(os.environ))
    if decision.refusal:
        raise pytest.UsageError(decision.refusal)
    if decision.deselected:
        left_out = [item for index, item in enumerate(items) if index in decision.deselected]
        items[:] = [item for index, item in enumerate(items) if index not in decision.deselected]
        config.hook.pytest_deselected(items=left_out)
    lines += [
        f"{name}: {count} deselected, missing here: {missing[name]}"
        for name, count in decision.counts.items()
    ]
    config.stash[_DESELECTED] = lines
    # A worker of pytest-xdist prints nothing itself: it has this attribute, to tell with.
    output = cast("dict[str, object]", getattr(config, "workeroutput", {}))
    output[_WORKER_KEY] = lines


def leave_out_other_samples(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Leave four fifths of the sampled tests out; a test that is named by its id always runs.

    Returns:
        A line for the end of the report, or none.
    """
    try:
        seed = seed_of(str(config.getoption("--sampled")), date.fromisoformat(os.environ[_DAY]))
    except ValueError as error:
        raise pytest.UsageError(f"--sampled takes all or a whole number: {error}") from error
    if seed is None or any("::" in argument for argument in config.args):
        return []
    sampled = [item.nodeid for item in items if item.get_closest_marker("sampled")]
    variants = [
        item.nodeid
        for item in items
        if item.get_closest_marker("sampled_variants") and not item.get_closest_marker("sampled")
    ]
    if not sampled and not variants:
        return []
    gone = {*sampled, *variants} - choose(sampled, seed) - choose_variants(variants, seed)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid in gone])
    items[:] = [item for item in items if item.nodeid not in gone]
    total = len(sampled) + len(variants)
    return [
        f"sampled: {total - len(gone)} of {total} selected (--sampled={seed}; or --sampled=all)"
    ]


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test of Spark again that failed because Spark did not wait for a worker's start."""
    if item.get_closest_marker("spark") is None:
        return None
    return run_in_spark(item, nextitem) > 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Deal out whole files, except those marked `spread`."""
    if config.getoption("dist") != "loadfile":
        return None
    from tests.support.spread import make_scheduler  # noqa: PLC0415 - Without xdist it is missing.

    return make_scheduler(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Worker) -> None:
    """Take over the counts of a worker; every worker collects the same tests."""
    output = cast("dict[str, object]", getattr(node, "workeroutput", {}))
    if _WORKER_KEY in output:
        node.config.stash[_DESELECTED] = cast("list[str]", output[_WORKER_KEY])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Start two workers a core: the tests wait for servers more than they compute."""
    return 2 * (os.cpu_count() or 1)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say at the end, where it is read, which tests did not run."""
    for line in config.stash.get(_DESELECTED, list[str]()):
        terminalreporter.write_line(line, yellow=True)
