"""Runs what the pages show: every Python snippet, in order, against a real server.

A snippet is a whole program, run in a process with others. Where a block of the language `text`
follows, the program must print exactly that. The snippets of one page share one server, which is
empty when the page begins. One that bears a file name (`title="test_orders.py"`) is written to that
file, which pytest runs when it is one of tests. Those that start containers run apart from the rest
of their page, so that the rest runs where there is no Docker.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.programs import Ended, ProgramHost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _pytest.mark.structures import ParameterSet

    from natsstream.testing import NatsServer

# Each page has a server of its own.
pytestmark = pytest.mark.spread

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "pages"
URL_ON_PAGES = "nats://127.0.0.1:4222"
# Only a hang may reach them: a Spark session takes about 10 s to start, the first query in it as
# much again, and both five times as long on a machine that is busy with other tests.
SNIPPET_TIMEOUT_S = 240.0
PAGE_TIMEOUT_S = 900.0

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<attributes>[^\n]*)\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
# Without the scope pytest-asyncio warns, and warnings are errors here.
PYTEST_OPTIONS = ["-q", "-o", "asyncio_default_fixture_loop_scope=function"]
TITLE = re.compile(r'title="(?P<file>\w+\.py)"')
IMAGE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Snippet:
    """A program on a page.

    Attributes:
        line: Line of the page that the program begins on.
        program: Its text.
        printed: What it prints; None where the page does not show it.
        file: Name of the file that it is shown in; empty where the page gives none.
    """

    line: int
    program: str
    printed: str | None
    file: str = ""

    @property
    def needs_spark(self) -> bool:
        """Whether it starts Spark."""
        return "pyspark" in self.program

    @property
    def is_test(self) -> bool:
        """Whether pytest runs it."""
        return self.file.startswith("test_")

    @property
    def needs_docker(self) -> bool:
        """Whether it starts containers."""
        return re.search(r"\bNats(Cluster)?Container\b", self.program) is not None

    def write(self, folder: Path, url: str) -> Path:
        """Write the program, with the address of a server, into the folder; return its file."""
        file = folder / (self.file or f"line_{self.line}.py")
        file.write_text(self.program.replace(URL_ON_PAGES, url))
        return file


def find_snippets(page: str) -> list[Snippet]:
    """Return the Python programs of a page, each with the output that is shown for it."""
    snippets: list[Snippet] = []
    fences = list(FENCE.finditer(page))
    for index, fence in enumerate(fences):
        if fence["language"] != "python":
            continue
        printed = None
        if index + 1 < len(fences):
            after = fences[index + 1]
            if after["language"] == "text" and not page[fence.end() : after.start()].strip():
                printed = without_indent(after)
        line = page.count("\n", 0, fence.start("body")) + 1
        title = TITLE.search(fence["attributes"])
        file = title["file"] if title else ""
        snippets.append(Snippet(line, without_indent(fence), printed, file))
    return snippets


def without_indent(fence: re.Match[str]) -> str:
    """Return what a fence holds, with the indent of the fence itself taken off."""
    return re.sub(rf"^{fence['indent']}", "", fence["body"], flags=re.MULTILINE)


def pages() -> list[Path]:
    """Return the README and every page of the site."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def pages_with_snippets() -> list[ParameterSet]:
    """Return pages and programs, with the markers of the tools that these need."""
    found: list[ParameterSet] = []
    for page in pages():
        name = str(page.relative_to(ROOT))
        snippets = find_snippets(page.read_text())
        plain = [snippet for snippet in snippets if not snippet.needs_docker]
        in_docker = [snippet for snippet in snippets if snippet.needs_docker]
        if plain:
            needs_spark = any(snippet.needs_spark for snippet in plain)
            marks = [pytest.mark.spark] if needs_spark else []
            found.append(pytest.param(page, plain, id=name, marks=marks))
        if in_docker:
            marks = [pytest.mark.needs_docker]
            found.append(pytest.param(page, in_docker, id=f"{name}-docker", marks=marks))
    return found


@pytest.fixture(scope="module")
def programs() -> Iterator[ProgramHost]:
    """Where programs without Spark run."""
    with ProgramHost(environment()) as host:
        yield host


@pytest.fixture(scope="module")
def spark_programs() -> Iterator[ProgramHost]:
    """Where programs with Spark run: they share a Java, which takes ten seconds to start."""
    with ProgramHost(environment()) as host:
        yield host


@pytest.fixture(scope="module")
def spark_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their folder: a relative path means the one that Java was started in."""
    return tmp_path_factory.mktemp("spark_programs")


def environment() -> dict[str, str]:
    """Return the environment variables of the programs."""
    spark = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    # Options of this run are not those of a reader's tests.
    ours = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    return {**ours, "PYTHONWARNINGS": "error", **spark}


@pytest.mark.timeout(PAGE_TIMEOUT_S)
@pytest.mark.parametrize(("page", "snippets"), pages_with_snippets())
def test_snippets_of_page_run_and_print_what_is_shown(
    page: Path,
    snippets: list[Snippet],
    fresh_server: NatsServer,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    needs_spark = any(snippet.needs_spark for snippet in snippets)
    folder = request.getfixturevalue("spark_folder") if needs_spark else tmp_path
    for snippet in snippets:
        file = snippet.write(folder, fresh_server.url)
        if snippet.is_test:
            done = run_tests(file, fresh_server.url)
        else:
            name = "spark_programs" if snippet.needs_spark else "programs"
            host: ProgramHost = request.getfixturevalue(name)
            done = host.run(file, folder=folder, url=fresh_server.url, timeout_s=SNIPPET_TIMEOUT_S)
        where = f"{page.relative_to(ROOT)}, line {snippet.line}"
        assert done.code == 0, f"{where} failed:\n{done.stdout}{done.stderr}"
        if snippet.printed is not None:
            assert done.stdout == snippet.printed, f"{where} printed something else"


def run_tests(file: Path, url: str) -> Ended:
    """Run a file of tests as its reader does."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *PYTEST_OPTIONS, str(file)],
        capture_output=True,
        text=True,
        cwd=file.parent,
        env={**environment(), "NATS_URL": url},
        timeout=SNIPPET_TIMEOUT_S,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_readme_and_quickstart_have_snippets() -> None:
    # The collector that finds nothing would let every page pass.
    ids = {parameter.id for parameter in pages_with_snippets()}

    assert {"README.md", "docs/pages/quickstart.md"} <= ids


def test_images_of_pages_exist() -> None:
    # The site builder checks links to pages, but not images.
    missing = [
        f"{page.relative_to(ROOT)}: {image['path']}"
        for page in pages()
        for image in IMAGE.finditer(page.read_text())
        if "://" not in image["path"] and not (page.parent / image["path"]).is_file()
    ]

    assert missing == []


def test_collector_reads_programs_with_their_output() -> None:
    page = (
        "a\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n"
        "```python\nx = 2\n```\nb\n```text\nno\n```\n"
    )

    assert find_snippets(page) == [Snippet(3, "print(1)\n", "1\n"), Snippet(11, "x = 2\n", None)]


def test_collector_reads_file_names_and_who_needs_docker() -> None:
    page = '```python title="test_a.py"\nNatsContainer()\n```\n```python\nNatsServer()\n```\n'

    snippets = find_snippets(page)

    assert [snippet.file for snippet in snippets] == ["test_a.py", ""]
    assert [snippet.needs_docker for snippet in snippets] == [True, False]


def test_collector_takes_the_indent_off_programs_in_lists() -> None:
    page = "1. a\n\n    ```python\n    if x:\n        y()\n    ```\n"

    assert find_snippets(page) == [Snippet(4, "if x:\n    y()\n", None)]
