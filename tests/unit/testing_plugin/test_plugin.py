"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["pytester"]

RUN_TIMEOUT_S = 200

USES_EACH_FIXTURE = """
import natsstream.blocking as ns

seen = []

def test_shared_server(nats_server, nats_url, nats_name):
    seen.extend([nats_url, nats_name])
    assert nats_url == nats_server.url
    with ns.connect(nats_url) as js:
        js.streams.ensure(nats_name, subjects=[nats_name]).publish(nats_name, b"x")

def test_server_is_shared_and_names_are_not(nats_url, nats_name):
    assert nats_url == seen[0]
    assert nats_name != seen[1]

def test_fresh_server_may_be_killed(nats_server_fresh, nats_url):
    assert nats_server_fresh.url != nats_url
    nats_server_fresh.kill()
    assert not nats_server_fresh.is_running
    nats_server_fresh.start()
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Run pytest in a process of its own, without the plugins that the tests do not need."""
    quiet = [f"-pno:{name}" for name in ("asyncio", "cacheprovider", "hypothesispytest")]
    return pytester.runpytest_subprocess(*quiet, *arguments, timeout=RUN_TIMEOUT_S)


def test_fixtures_give_processes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(USES_EACH_FIXTURE)

    run(pytester, "-W", "error").assert_outcomes(passed=3)


STOPS_THE_SHARED_SERVER = """
import natsstream.blocking as ns
import pytest

@pytest.mark.parametrize("way", ["stop", "kill", "pause"])
def test_stops(nats_server, way):
    getattr(nats_server, way)()

def test_next(nats_url, nats_name):
    with ns.connect(nats_url) as js:
        js.streams.ensure(nats_name)
"""


def test_shared_server_that_a_test_stops_is_started_again(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(STOPS_THE_SHARED_SERVER)

    result = run(pytester)

    result.assert_outcomes(passed=4, warnings=3)
    for way in ("stop", "kill", "pause"):
        told = f"*::test_stops[[]{way}] left nats_server stopped or paused.*nats_server_fresh."
        result.stdout.fnmatch_lines([told])


def test_test_that_stops_the_shared_server_fails_where_warnings_are_errors(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(STOPS_THE_SHARED_SERVER)

    run(pytester, "-W", "error", "-k", "kill or next").assert_outcomes(
        passed=2, errors=1, deselected=2
    )


def test_node_of_the_shared_cluster_that_a_test_kills_is_started_again(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("""
def test_kills(nats_cluster):
    nats_cluster.node("n2").kill()

def test_stops(nats_cluster):
    assert nats_cluster.node("n2").is_running
    nats_cluster.stop()

def test_next(nats_cluster):
    assert nats_cluster.meta_leader() is not None
""")

    result = run(pytester)

    result.assert_outcomes(passed=3, warnings=2)
    result.stdout.fnmatch_lines(["*::test_kills left nats_cluster *nats_cluster_fresh."])


@pytest.mark.needs_docker
def test_fixtures_give_containers_when_asked_for(pytester: pytest.Pytester) -> None:
    is_container = """
def test_is_container(nats_server):
    assert type(nats_server).__name__ == "NatsContainer"
"""
    pytester.makepyfile(USES_EACH_FIXTURE + is_container)

    run(pytester, "--nats-backend=container").assert_outcomes(passed=4)


def test_backend_is_read_from_the_ini_file(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nnats_backend = container\n")
    pytester.makepyfile("def test_backend(nats_backend): assert nats_backend == 'container'")

    run(pytester).assert_outcomes(passed=1)
    run(pytester, "--nats-backend=process").assert_outcomes(failed=1)


def test_cluster_has_three_nodes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
def test_cluster(nats_cluster):
    assert [node.name for node in nats_cluster.servers] == ["n1", "n2", "n3"]
    assert nats_cluster.meta_leader() in nats_cluster.servers
""")

    run(pytester).assert_outcomes(passed=1)


def test_options_of_the_servers_can_be_set(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("""
import pytest

@pytest.fixture(scope="session")
def nats_server_options():
    return {"max_payload_bytes": 2048}
""")
    pytester.makepyfile("""
import json, urllib.request

def test_limit(nats_server):
    with urllib.request.urlopen(f"{nats_server.monitor_url}/varz") as page:
        assert json.load(page)["max_payload"] == 2048
""")

    run(pytester).assert_outcomes(passed=1)


def test_failed_test_shows_the_log_of_each_server_that_it_used(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("""
import pytest
from natsstream.testing import NatsServer

@pytest.fixture
def mine():
    with NatsServer(name="my-own") as server:
        yield server

@pytest.fixture
def deep(nats_server):
    return nats_server.url

@pytest.fixture
def again(nats_server):
    return nats_server

def test_fails(deep, mine, again):
    assert False
""")

    result = run(pytester)

    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert text.count("log of ") == 2
    assert "Store Directory" not in text
    result.stdout.fnmatch_lines(["*log of nats_server (natsstream-*", "*Server is ready*"])
    result.stdout.fnmatch_lines(["*log of mine (my-own)*", "*Server is ready*"])


def test_values_of_other_fixtures_are_not_touched(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
import pytest

class Touchy:
    def __getattribute__(self, name):
        raise RuntimeError(f"{name} was touched")

@pytest.fixture
def touchy():
    return object.__new__(Touchy)

def test_fails(touchy):
    assert False
""")

    result = run(pytester)

    result.assert_outcomes(failed=1)
    assert "was touched" not in result.stdout.str()


def test_run_without_the_fixtures_loads_neither_servers_nor_nats(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("""
import sys

def test_modules():
    heavy = {"nats", "docker", "testcontainers", "pyarrow", "natsstream.testing.servers"}
    assert "natsstream.testing.plugin" in sys.modules
    assert not heavy & sys.modules.keys()
""")

    run(pytester).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--nats-backend=cloud"], "*invalid choice: 'cloud'*"),
        (["--nats-image=nats:2.15.1"], "*nats_image=nats:2.15.1 needs --nats-backend=container*"),
        (
            ["--nats-backend=container", "--nats-image=a", "--nats-version=2.12"],
            "*nats_image=a and nats_version=2.12*",
        ),
        (["-o", "nats_backend=cloud"], "*must be one of process, container*"),
    ],
)
def test_options_that_do_not_fit_end_the_run_before_it_begins(
    pytester: pytest.Pytester, arguments: list[str], complaint: str
) -> None:
    pytester.makepyfile("def test_any(): pass")

    result = run(pytester, *arguments)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([complaint])


def test_unknown_version_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_any(nats_server): pass")

    result = run(pytester, "--nats-version=two")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*'two' is not a release of nats-server*"])


@pytest.mark.needs_versions
def test_older_release_is_run_when_asked_for(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_version(nats_server): assert nats_server.version == '2.12.8'")

    run(pytester, "--nats-version=2.12").assert_outcomes(passed=1)


def test_name_is_legal_and_tells_the_test(pytester: pytest.Pytester, tmp_path: Path) -> None:
    told = tmp_path / "name"
    pytester.makepyfile(f"""
import pathlib, pytest

@pytest.mark.parametrize("x", ["a.b c>*/ü"])
def test_with_odd_parameter(nats_name, x):
    pathlib.Path({str(told)!r}).write_text(nats_name)
""")

    run(pytester).assert_outcomes(passed=1)

    name = told.read_text()
    assert name.startswith("test_with_odd_parameter_")
    assert name.replace("_", "").isalnum()
    assert name.isascii()
