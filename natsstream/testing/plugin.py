"""The pytest plugin: nats-servers as fixtures, and their logs in the report of a failed test.

pytest finds it by itself (entry point `natsstream`); `-p no:natsstream` leaves it out.
"""

from __future__ import annotations

import re
import secrets
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence
    from contextlib import AbstractContextManager

    from natsstream.testing.backends import Backend, NatsNode, NatsNodes, ServerOptions
    from natsstream.testing.cluster import NatsCluster

REPORT_LOG_LINES = 60
_BACKENDS = ("process", "container")
# The part of a name that tells a reader which test it belongs to.
_TEST_NAME_CHARACTERS_MAX = 40
# The servers that run now and are shared, by their fixtures.
_SHARED: pytest.StashKey[dict[str, NatsNode | NatsNodes]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose the servers, on the command line and in the ini file."""
    group = parser.getgroup("natsstream", "nats-servers for tests")
    group.addoption(
        "--nats-backend",
        choices=_BACKENDS,
        help="what the nats_... fixtures start: a process of the installed nats-server (default), "
        "or a Docker container; ini: nats_backend",
    )
    group.addoption(
        "--nats-version",
        metavar="VERSION",
        help="release of nats-server, such as 2.12.8 or 2.12, fetched when it is not here; "
        "ini: nats_version",
    )
    group.addoption(
        "--nats-image",
        metavar="IMAGE",
        help="image for --nats-backend=container, in place of a version; ini: nats_image",
    )
    parser.addini("nats_backend", "process or container", default="process")
    parser.addini("nats_version", "release of nats-server for the nats_... fixtures", default="")
    parser.addini("nats_image", "image of nats-server for the nats_... fixtures", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what does not fit together, before a test runs."""
    backend = _choice(config, "nats_backend")
    image, version = _choice(config, "nats_image"), _choice(config, "nats_version")
    if backend not in _BACKENDS:
        message = f"nats_backend is {backend!r}, it must be one of {', '.join(_BACKENDS)}"
        raise pytest.UsageError(message)
    if image and backend != "container":
        raise pytest.UsageError(f"nats_image={image} needs --nats-backend=container")
    if image and version:
        message = f"nats_image={image} and nats_version={version}: the image decides its version"
        raise pytest.UsageError(message)


@pytest.fixture(scope="session")
def nats_backend(pytestconfig: pytest.Config) -> Backend:
    """The kind of servers of this run: `process` or `container`."""
    return "container" if _choice(pytestconfig, "nats_backend") == "container" else "process"


@pytest.fixture(scope="session")
def nats_server_options() -> ServerOptions:
    """Arguments of every server: override it in the topmost conftest.py to set your own."""
    return {}


@pytest.fixture(scope="session")
def nats_server(
    pytestconfig: pytest.Config, nats_backend: Backend, nats_server_options: ServerOptions
) -> Iterator[NatsNode]:
    """The server that the whole run shares; nothing is reset between tests: use `nats_name`."""
    with (
        _server(pytestconfig, nats_backend, nats_server_options) as server,
        _shared(pytestconfig, "nats_server", server),
    ):
        yield server


@pytest.fixture
def nats_server_fresh(
    pytestconfig: pytest.Config, nats_backend: Backend, nats_server_options: ServerOptions
) -> Iterator[NatsNode]:
    """A server with an empty store for this test alone, which may kill, pause or restart it."""
    with _server(pytestconfig, nats_backend, nats_server_options) as own:
        yield own


@pytest.fixture(scope="session")
def nats_cluster(
    pytestconfig: pytest.Config, nats_backend: Backend, nats_server_options: ServerOptions
) -> Iterator[NatsNodes]:
    """Three servers that form a JetStream cluster, shared by the whole run: for R3 streams."""
    with (
        _cluster(pytestconfig, nats_backend, nats_server_options) as cluster,
        _shared(pytestconfig, "nats_cluster", cluster),
    ):
        yield cluster


@pytest.fixture
def nats_cluster_fresh(
    pytestconfig: pytest.Config, nats_backend: Backend, nats_server_options: ServerOptions
) -> Iterator[NatsNodes]:
    """A cluster of three for this test alone, which may break it."""
    with _cluster(pytestconfig, nats_backend, nats_server_options) as own:
        yield own


@pytest.fixture(scope="session")
def nats_url(nats_server: NatsNode) -> str:
    """The address of `nats_server`."""
    return nats_server.url


@pytest.fixture
def nats_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test has, legal for streams, buckets, consumers and subjects."""
    node = cast("pytest.Item", request.node)
    test_name = re.sub(r"[^A-Za-z0-9_]+", "_", node.name)[:_TEST_NAME_CHARACTERS_MAX]
    return f"{test_name}_{secrets.token_hex(4)}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the log of every server that a failed test used."""
    report = yield
    if report.failed and isinstance(item, pytest.Function):
        from natsstream.testing.logs import without_starts  # noqa: PLC0415 - Only where it is used.

        shown: list[object] = []
        for fixture, value in item.funcargs.items():
            # A fixture may return the server of another one.
            if _has_log(value) and not any(value is each for each in shown):
                shown.append(value)
                log = without_starts(value.log_tail(REPORT_LOG_LINES))
                report.sections.append((f"log of {fixture} ({value.name})", log))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Start a shared server again that a test has stopped, and warn of the test."""
    yield
    for fixture, shared in _running(item.config).items():
        if fixture in getattr(item, "fixturenames", ()) and _is_down(shared):
            _start_again(shared)
            warnings.warn(
                f"{item.nodeid} left {fixture} stopped or paused. It runs again, empty if it was "
                f"stopped. Tests that stop a server use {fixture}_fresh.",
                pytest.PytestWarning,
                stacklevel=1,
            )


@contextmanager
def _shared(config: pytest.Config, fixture: str, server: NatsNode | NatsNodes) -> Generator[None]:
    _running(config)[fixture] = server
    yield
    del _running(config)[fixture]


def _running(config: pytest.Config) -> dict[str, NatsNode | NatsNodes]:
    none_yet: dict[str, NatsNode | NatsNodes] = {}
    return config.stash.setdefault(_SHARED, none_yet)


def _nodes_of(server: NatsNode | NatsNodes) -> Sequence[NatsNode]:
    return getattr(server, "servers", None) or [cast("NatsNode", server)]


def _is_down(server: NatsNode | NatsNodes) -> bool:
    return any(not node.is_running or node.is_paused for node in _nodes_of(server))


def _start_again(server: NatsNode | NatsNodes) -> None:
    for node in _nodes_of(server):
        if node.is_paused:
            node.resume()
    server.start()


def _choice(config: pytest.Config, name: str) -> str:
    """Return what the command line says, else the ini file."""
    return str(config.getoption(name) or config.getini(name))


def _server(
    config: pytest.Config, backend: Backend, options: ServerOptions
) -> AbstractContextManager[NatsNode]:
    version = _choice(config, "nats_version") or None
    if backend == "container":
        from natsstream.testing.containers import NatsContainer  # noqa: PLC0415 - An extra.

        return NatsContainer(_choice(config, "nats_image") or None, version=version, **options)
    from natsstream.testing.servers import NatsServer  # noqa: PLC0415 - Only where it is used.
    from natsstream.testing.versions import server_binary  # noqa: PLC0415 - As above.

    return NatsServer(binary=server_binary(version) if version else None, **options)


def _cluster(
    config: pytest.Config, backend: Backend, options: ServerOptions
) -> AbstractContextManager[NatsNodes]:
    version = _choice(config, "nats_version") or None
    if backend == "container":
        from natsstream.testing.container_cluster import (  # noqa: PLC0415 - An extra.
            NatsClusterContainer,
        )

        return NatsClusterContainer(
            _choice(config, "nats_image") or None, version=version, **options
        )
    from natsstream.testing.cluster import NatsCluster  # noqa: PLC0415 - Only where it is used.
    from natsstream.testing.versions import server_binary  # noqa: PLC0415 - As above.

    return NatsCluster(binary=server_binary(version) if version else None, **options)


def _has_log(value: object) -> TypeGuard[NatsNode | NatsCluster]:
    """Return True if it is a server or a cluster of ours, without touching what is not."""
    return any(
        kind.__module__.startswith("natsstream.testing.") and hasattr(kind, "log_tail")
        for kind in type(value).__mro__
    )
