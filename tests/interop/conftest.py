"""The clients of the interop tests, on the server of the run.

They are ours, the nats CLI, nats.js, nats.go with orbit.go, and nats-py.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import nats
import pytest
import pytest_asyncio

from natsstream import connect
from tests.interop.clients.nats_cli import NatsCli
from tests.interop.clients.nats_cli_kv import CliBuckets
from tests.interop.clients.nats_cli_objects import CliObjects
from tests.interop.clients.nats_go import NatsGo
from tests.interop.clients.nats_js import NatsJs, NodeProcess
from tests.interop.clients.nats_js_kv import JsBuckets
from tests.interop.clients.nats_js_objects import JsObjects
from tests.interop.clients.nats_py import PyBuckets, PyObjects
from tests.interop.clients.nats_py_streams import PyStreams
from tests.interop.clients.ours import Ours
from tests.interop.clients.ours_kv import OurBuckets
from tests.interop.clients.ours_objects import OurObjects
from tests.interop.clients.program import Program
from tests.interop.pairs import GO_MARKS
from tests.interop.replicas import settled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from _pytest.mark import ParameterSet

    from natsstream.testing import NatsCluster, NatsServer
    from tests.interop.clients.client import Client, Pushed
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.objects import ObjectClient

SCRIPT = Path(__file__).parents[2] / "scripts" / "tools"
TOOLS = {"needs_go": ("nats-cli", "nats-go"), "needs_node": ("nats-js",)}
# For each answer of the server to nats-py; its own are 2 and 5 s.
TIMEOUT_S = 30

# Where each tool is, or why it could not be made.
_MADE = pytest.StashKey[dict[str, Path | str]]()

OURS = pytest.param("ours", id="ours")
NATS_CLI = pytest.param("nats_cli", id="nats-cli", marks=pytest.mark.needs_go)
NATS_JS = pytest.param("nats_js", id="nats-js", marks=pytest.mark.needs_node)
NATS_GO = pytest.param("nats_go", id="nats-go", marks=GO_MARKS)
NATS_PY = pytest.param("py_streams", id="nats-py")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make the tools that the chosen tests need: building the CLI outlasts a test's timeout."""
    here = Path(__file__).parent
    chosen = [item for item in session.items if here in item.path.parents]
    wanted = {mark.name for item in chosen for mark in item.iter_markers()} & TOOLS.keys()
    made = session.config.stash.setdefault(_MADE, {})
    if session.config.option.collectonly:
        return
    terminal = cast(
        "pytest.TerminalReporter", session.config.pluginmanager.get_plugin("terminalreporter")
    )
    for tool in sorted(tool for marker in wanted for tool in TOOLS[marker]):
        made[tool] = _make(tool, terminal.write_line)


def _make(tool: str, tell: Callable[[str], None]) -> Path | str:
    """Run `scripts/tools`, whose steps all have deadlines; a first build takes minutes."""
    command = [sys.executable, str(SCRIPT), tool]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            tell(line.rstrip())
        path = process.stdout.read().strip()
    return Path(path) if process.returncode == 0 else "".join(said)


def _found(config: pytest.Config, tool: str) -> Path:
    made = config.stash[_MADE].get(tool, f"a test that uses {tool} has no marker: see TOOLS")
    if isinstance(made, str):
        pytest.fail(made, pytrace=False)
    return made


@pytest.fixture(scope="session")
def nats_program(pytestconfig: pytest.Config) -> Path:
    """The program of the nats CLI; tests that use it are marked `needs_go`."""
    return _found(pytestconfig, "nats-cli")


@pytest.fixture(scope="session")
def nats_js_packages(pytestconfig: pytest.Config) -> Path:
    """The folder whose node_modules hold nats.js; tests that use it are marked `needs_node`."""
    return _found(pytestconfig, "nats-js")


@pytest.fixture(scope="session")
def node_process(nats_js_packages: Path) -> Iterator[NodeProcess]:
    """The process that runs nats.js; tests that use it are marked `needs_node`."""
    node = shutil.which("node")
    assert node is not None
    with NodeProcess(node, nats_js_packages) as process:
        yield process


@pytest.fixture(scope="session")
def go_process(pytestconfig: pytest.Config) -> Iterator[Program]:
    """The process that runs nats.go; tests that use it are marked `needs_go`."""
    with Program("nats.go", [str(_found(pytestconfig, "nats-go"))]) as process:
        yield process


@pytest.fixture
def replicas() -> int:
    """How many servers hold the streams; a test gives it as a parameter."""
    return 1


@pytest.fixture
def server(request: pytest.FixtureRequest, replicas: int, server: NatsServer) -> NatsServer:
    """The server to which all clients of a test connect: of a cluster, for replicated streams."""
    if replicas == 1:
        return server
    return cast("NatsServer", request.getfixturevalue("nats_cluster").node("n1"))


@pytest.fixture
def settle(request: pytest.FixtureRequest, replicas: int) -> Callable[[str], Awaitable[None]]:
    """What waits until all replicas of a stream hold the same; on one server it does nothing."""

    async def settle(stream: str) -> None:
        if replicas > 1:
            cluster = cast("NatsCluster", request.getfixturevalue("nats_cluster"))
            await settled(cluster.servers, stream)

    return settle


@pytest_asyncio.fixture
async def ours(server: NatsServer) -> AsyncIterator[Ours]:
    """natsstream on the server of the run."""
    async with connect(server.url) as js:
        yield Ours(js)


@pytest.fixture
def nats_cli(nats_program: Path, server: NatsServer, tmp_path: Path) -> NatsCli:
    """The nats CLI on the server of the run, with a home of its own."""
    return NatsCli(nats_program, server.url, tmp_path)


@pytest.fixture
def nats_js(node_process: NodeProcess, server: NatsServer) -> NatsJs:
    """nats.js on the server of the run."""
    return NatsJs(node_process, server.url)


@pytest.fixture
def nats_go(go_process: Program, server: NatsServer) -> NatsGo:
    """nats.go on the server of the run."""
    return NatsGo(go_process, server.url)


@pytest.fixture(params=[OURS, NATS_CLI, NATS_JS, NATS_GO])
def writer(request: pytest.FixtureRequest) -> Client:
    """The client that writes; a test runs with each."""
    return cast("Client", request.getfixturevalue(request.param))


@pytest.fixture(params=[OURS, NATS_CLI, NATS_JS, NATS_GO])
def reader(request: pytest.FixtureRequest) -> Client:
    """The client that reads; a test runs with each."""
    return cast("Client", request.getfixturevalue(request.param))


@pytest.fixture(params=[NATS_JS, NATS_GO])
def peer(request: pytest.FixtureRequest) -> NatsJs:
    """nats.js or nats.go, whose programs have the same verbs; a test runs with each."""
    return cast("NatsJs", request.getfixturevalue(request.param))


@pytest.fixture(params=[OURS, NATS_JS, NATS_GO, NATS_PY])
def worker(request: pytest.FixtureRequest) -> Pushed:
    """The client that settles messages, of those with every verdict; a test runs with each."""
    return cast("Pushed", request.getfixturevalue(request.param))


@pytest_asyncio.fixture
async def nats_py(server: NatsServer) -> AsyncIterator[Any]:
    """nats-py's JetStream context on the server of the run; it leaves its types open."""
    client = await cast("Any", nats).connect(server.url, connect_timeout=TIMEOUT_S)
    try:
        yield client.jetstream(timeout=TIMEOUT_S)
    finally:
        await client.close()


@pytest.fixture
def py_streams(nats_py: Any) -> PyStreams:
    """nats-py's streams and consumers."""
    return PyStreams(nats_py)


@pytest.fixture
def our_buckets(ours: Ours) -> OurBuckets:
    """natsstream's buckets."""
    return OurBuckets(ours.js)


@pytest.fixture
def cli_buckets(nats_cli: NatsCli) -> CliBuckets:
    """The nats CLI's buckets."""
    return CliBuckets(nats_cli)


@pytest.fixture
def js_buckets(nats_js: NatsJs) -> JsBuckets:
    """nats.js's buckets."""
    return JsBuckets(nats_js)


@pytest.fixture
def go_buckets(nats_go: NatsGo) -> JsBuckets:
    """nats.go's buckets; its program has the verbs of the one for nats.js."""
    return JsBuckets(nats_go)


@pytest.fixture
def py_buckets(nats_py: Any) -> PyBuckets:
    """nats-py's buckets."""
    return PyBuckets(nats_py)


@pytest.fixture
def our_objects(ours: Ours) -> OurObjects:
    """natsstream's object stores."""
    return OurObjects(ours.js)


@pytest.fixture
def cli_objects(nats_cli: NatsCli) -> CliObjects:
    """The nats CLI's object stores."""
    return CliObjects(nats_cli)


@pytest.fixture
def js_objects(nats_js: NatsJs) -> JsObjects:
    """nats.js's object stores."""
    return JsObjects(nats_js)


@pytest.fixture
def go_objects(nats_go: NatsGo) -> JsObjects:
    """nats.go's object stores; its program has the verbs of the one for nats.js."""
    return JsObjects(nats_go)


@pytest.fixture
def py_objects(nats_py: Any) -> PyObjects:
    """nats-py's object stores."""
    return PyObjects(nats_py)


def _views_of(kind: str) -> list[ParameterSet]:
    """Return the parameters of all clients; a test that needs fewer gives its own."""
    return [
        pytest.param(f"our_{kind}", id="ours"),
        pytest.param(f"cli_{kind}", id="nats-cli", marks=pytest.mark.needs_go),
        pytest.param(f"js_{kind}", id="nats-js", marks=pytest.mark.needs_node),
        pytest.param(f"py_{kind}", id="nats-py"),
        pytest.param(f"go_{kind}", id="nats-go", marks=GO_MARKS),
    ]


@pytest.fixture(params=_views_of("buckets"))
def kv_writer(request: pytest.FixtureRequest) -> KvClient:
    """The client that writes into a bucket; a test runs with each."""
    return cast("KvClient", request.getfixturevalue(request.param))


@pytest.fixture(params=_views_of("buckets"))
def kv_reader(request: pytest.FixtureRequest) -> KvClient:
    """The client that reads a bucket; a test runs with each."""
    return cast("KvClient", request.getfixturevalue(request.param))


@pytest.fixture(params=_views_of("objects"))
def object_writer(request: pytest.FixtureRequest) -> ObjectClient:
    """The client that stores objects; a test runs with each."""
    return cast("ObjectClient", request.getfixturevalue(request.param))


@pytest.fixture(params=_views_of("objects"))
def object_reader(request: pytest.FixtureRequest) -> ObjectClient:
    """The client that reads objects; a test runs with each."""
    return cast("ObjectClient", request.getfixturevalue(request.param))
