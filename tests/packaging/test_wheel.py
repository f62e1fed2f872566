"""The built wheel and the zip for Spark: what they hold, and that they work on their own."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from natsstream.testing import NatsServer

ROOT = Path(__file__).parents[2]
BUILD_TIMEOUT_S = 300.0
RUN_TIMEOUT_S = 120.0

# Stores and reads a message, and tells which of the optional packages came in with that.
ROUND_TRIP = """
import os, sys
import natsstream.blocking

with natsstream.blocking.connect(os.environ["NATS_URL"]) as js:
    stream = js.streams.ensure(os.environ["STREAM"], subjects=[os.environ["STREAM"]])
    stream.publish(os.environ["STREAM"], b"from the wheel")
    print(*[message.data.decode() for message in stream.read()])
print(natsstream.__file__)
print(sorted({"numpy", "pandas", "pyarrow", "pyspark"} & sys.modules.keys()))
"""


@pytest.fixture(scope="module")
def bare_python(built: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with the wheel and its runtime dependencies, without one extra."""
    folder = tmp_path_factory.mktemp("bare")
    run([sys.executable, "-m", "venv", "--without-pip", str(folder)], timeout_s=RUN_TIMEOUT_S)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder)})
    link_requirements("natsstream", Path(packages))
    with ZipFile(built[".whl"]) as wheel:
        wheel.extractall(packages)  # noqa: S202 - of our own wheel.
    return folder / "bin" / "python"


@pytest.mark.timeout(BUILD_TIMEOUT_S + 60)
def test_build_makes_wheel_sdist_and_zip(built: Mapping[str, Path]) -> None:
    assert built.keys() == {".whl", ".gz", ".zip"}


@pytest.mark.timeout(BUILD_TIMEOUT_S + 60)
def test_wheel_holds_two_typed_packages_and_nothing_else(built: Mapping[str, Path]) -> None:
    with ZipFile(built[".whl"]) as wheel:
        names = wheel.namelist()
        mode = wheel.getinfo("pyspark_natsstream/worker_python").external_attr >> 16

    version = importlib.metadata.version("natsstream")
    folders = {"natsstream", "pyspark_natsstream", f"natsstream-{version}.dist-info"}
    assert {name.partition("/")[0] for name in names} == folders
    assert {"natsstream/py.typed", "pyspark_natsstream/py.typed"} <= set(names)
    assert f"natsstream-{version}.dist-info/licenses/LICENSE" in names
    assert [name for name in names if name.endswith(".pyc")] == []
    assert "pyspark_natsstream/jobs/ingest.py" in names
    assert mode & 0o111 == 0o111


@pytest.mark.timeout(BUILD_TIMEOUT_S + 60)
def test_sdist_holds_the_sources_and_no_tests(built: Mapping[str, Path]) -> None:
    with tarfile.open(built[".gz"]) as sdist:
        names = [name.partition("/")[2] for name in sdist.getnames()]

    own = {"natsstream", "spark", "README.md", "LICENSE", "CHANGELOG.md"}
    added = {".gitignore", "PKG-INFO", "pyproject.toml"}
    assert own <= {name.partition("/")[0] for name in names} <= own | added
    assert [name for name in names if "test_" in name] == []


def test_every_extra_brings_something_that_the_packages_import(built: Mapping[str, Path]) -> None:
    with ZipFile(built[".whl"]) as wheel:
        source = b"\n".join(wheel.read(name) for name in wheel.namelist() if name[-3:] == ".py")
    needed = {
        Requirement(text).name
        for text in importlib.metadata.requires("natsstream") or []
        if "extra ==" in text
    }

    assert {"opentelemetry-api", "cyclopts"} & needed == set()
    assert b"import opentelemetry" not in source


@pytest.mark.timeout(BUILD_TIMEOUT_S + 60)
def test_wheel_works_without_one_extra(
    bare_python: Path, server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    env = {"NATS_URL": server.url, "STREAM": stream_name}

    printed = run([str(bare_python), "-I", "-c", ROUND_TRIP], env=env, cwd=tmp_path)

    payload, file, optional = printed.splitlines()
    assert payload == "from the wheel"
    assert Path(file).is_relative_to(bare_python.parents[1])
    assert optional == "[]"


@pytest.mark.timeout(BUILD_TIMEOUT_S + 60)
def test_spark_zip_works_from_the_path_alone(
    built: Mapping[str, Path], server: NatsServer, stream_name: str, tmp_path: Path
) -> None:
    # `-S` leaves site-packages out, so that nothing but the zip can be imported.
    path = f"import sys; sys.path.insert(0, {str(built['.zip'])!r})\n"
    env = {"NATS_URL": server.url, "STREAM": stream_name}

    printed = run([sys.executable, "-I", "-S", "-c", path + ROUND_TRIP], env=env, cwd=tmp_path)

    payload, file, _ = printed.splitlines()
    assert payload == "from the wheel"
    assert file.startswith(str(built[".zip"]))


def link_requirements(distribution: str, packages: Path) -> None:
    """Link what a distribution needs, and what that needs in turn, into another Python."""
    todo = [(distribution, "")]
    done: set[tuple[str, str]] = set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in done:
            continue
        done.add((name, extra))
        for text in importlib.metadata.requires(name) or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                todo += [(requirement.name, wanted) for wanted in ("", *requirement.extras)]
    for name in {name for name, _ in done} - {distribution}:
        for file in importlib.metadata.files(name) or []:
            link = packages / file.parts[0]
            if file.parts[0] != ".." and not link.exists():
                site_packages = Path(str(file.locate())).parents[len(file.parts) - 1]
                link.symlink_to(site_packages / file.parts[0])


def run(
    command: list[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path = ROOT,
    timeout_s: float = RUN_TIMEOUT_S,
) -> str:
    """Return what a program prints; fail with what it complains of."""
    done = subprocess.run(
        command, capture_output=True, text=True, env=env, cwd=cwd, timeout=timeout_s, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
