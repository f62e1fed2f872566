"""`scripts/tools`: a tool is made once, whole or not at all, and what is missing is said.

Go, Node.js and npm are small programs here that do what they are told, so that nothing is fetched.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.interop.conftest import SCRIPT
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from pathlib import Path

TIMEOUT_S = 30.0

GO = """
import json, os, sys
folder, version = {folder!r}, {version!r}
if sys.argv[1] == "version":
    print("go version", {go_version!r}, "linux/amd64")
elif sys.argv[1] == "mod":
    print(json.dumps({{"Dir": folder}}))
else:
    with open(f"{{folder}}/builds", "a") as builds:
        builds.write(f"{{os.getpid()}}\\n")
    if os.path.exists(f"{{folder}}/gate"):
        open(f"{{folder}}/gate").close()
    if {failure!r}:
        sys.exit({failure!r})
    with open(sys.argv[sys.argv.index("-o") + 1], "w") as program:
        program.write(f"#!{{sys.executable}}\\nprint({{version!r}})\\n")
    os.chmod(program.name, 0o755)
"""

NPM = """
import json, os, sys
for wanted in sys.argv:
    name, at, version = wanted.rpartition("@")
    if at and name:
        os.makedirs(f"node_modules/{name}")
        with open(f"node_modules/{name}/package.json", "w") as about:
            json.dump({"name": name, "version": VERSION or version}, about)
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """A PATH and a cache of its own.

    Attributes:
        programs: The folder on PATH.
        work: Where the false programs note what they do.
        cache: The cache's folder.
    """

    programs: Path
    work: Path
    cache: Path

    def add(self, name: str, source: str) -> None:
        """Put a program on PATH."""
        program = self.programs / name
        program.write_text(f"#!{sys.executable}\n{source}", "utf-8")
        program.chmod(0o755)

    def add_go(
        self, *, go_version: str = "go1.26.0", version: str = "v0.3.0", failure: str = ""
    ) -> None:
        """Put a Go on PATH that makes a program which says that it has a version."""
        folder = str(self.work)
        self.add(
            "go",
            GO.format(folder=folder, version=version, go_version=go_version, failure=failure),
        )

    def add_npm(self, *, node_version: str = "v20.0.0", installs: str = "") -> None:
        """Put Node.js on PATH and an npm that installs what it is asked for, or one version."""
        self.add("node", f"print({node_version!r})")
        self.add("npm", NPM.replace("VERSION", repr(installs)))

    def start(self, tool: str) -> subprocess.Popen[str]:
        """Start `scripts/tools`."""
        return subprocess.Popen(
            [sys.executable, str(SCRIPT), tool],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env={"PATH": str(self.programs), "XDG_CACHE_HOME": str(self.cache), "HOME": "/"},
        )

    def run(self, tool: str) -> tuple[int, str, str]:
        """Run `scripts/tools`; returns its exit code and what it said on stdout and stderr."""
        with self.start(tool) as process:
            said, complained = process.communicate(timeout=TIMEOUT_S)
        return process.returncode, said, complained

    def builds(self) -> list[int]:
        """Return the pids of all builds so far."""
        path = self.work / "builds"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def made(self) -> list[str]:
        """Return what lies in the cache."""
        return sorted(path.name for path in self.cache.glob("natsstream/tools/*"))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without Go, Node.js and npm."""
    machine = Machine(tmp_path / "bin", tmp_path / "work", tmp_path / "cache")
    machine.programs.mkdir()
    machine.work.mkdir()
    return machine


def test_cli_is_built_once_and_found_again_without_go(machine: Machine) -> None:
    machine.add_go()
    program = f"{machine.cache}/natsstream/tools/natscli-0.3.0/nats\n"

    assert machine.run("nats-cli")[:2] == (0, program)
    (machine.programs / "go").unlink()

    assert machine.run("nats-cli") == (0, program, "")
    assert len(machine.builds()) == 1


def test_nats_js_is_installed_once_and_found_again_without_npm(machine: Machine) -> None:
    machine.add_npm()

    code, folder, _ = machine.run("nats-js")
    assert code == 0
    (machine.programs / "npm").unlink()

    assert machine.run("nats-js") == (0, folder, "")
    [made] = machine.made()
    assert made.startswith("nats-js-3.4.0-")


def test_program_on_nats_go_is_built_once_for_each_state_of_its_sources(machine: Machine) -> None:
    machine.add_go()

    code, program, _ = machine.run("nats-go")
    assert (code, program.endswith("/nats-go\n")) == (0, True)
    (machine.programs / "go").unlink()

    assert machine.run("nats-go") == (0, program, "")
    assert len(machine.builds()) == 1
    [made] = machine.made()
    assert made.startswith("nats-go-1.55.0-")


def test_calls_at_the_same_time_wait_for_one_build(machine: Machine) -> None:
    machine.add_go()
    os.mkfifo(machine.work / "gate")

    with machine.start("nats-cli") as one, machine.start("nats-cli") as other:
        eventually(lambda: len(machine.builds()) == 1, within_s=TIMEOUT_S)
        # Whoever opens the gate to read waits for somebody who may write.
        gate = os.open(machine.work / "gate", os.O_RDWR)
        paths = {process.communicate(timeout=TIMEOUT_S)[0] for process in (one, other)}
        os.close(gate)

    assert (one.returncode, other.returncode) == (0, 0)
    assert paths == {f"{machine.cache}/natsstream/tools/natscli-0.3.0/nats\n"}
    assert len(machine.builds()) == 1
    assert machine.made() == ["natscli-0.3.0"]


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("nats-cli", ("go", "1.24")),
        ("nats-go", ("go", "1.26")),
        ("nats-js", ("node", "apt-get")),
    ],
)
def test_missing_program_is_named_with_what_helps(
    machine: Machine, tool: str, words: tuple[str, ...]
) -> None:
    code, said, complained = machine.run(tool)

    assert (code, said) == (1, "")
    for word in words:
        assert word in complained


@pytest.mark.parametrize("tool", ["nats-cli", "nats-go"])
def test_go_that_is_too_old_is_refused_before_anything_is_fetched(
    machine: Machine, tool: str
) -> None:
    machine.add_go(go_version="go1.19.8")

    code, _, complained = machine.run(tool)

    assert code == 1
    assert "too old (go version go1.19.8" in complained
    assert machine.builds() == []


def test_node_that_is_too_old_is_refused(machine: Machine) -> None:
    machine.add_npm(node_version="v16.20.2")

    code, _, complained = machine.run("nats-js")

    assert code == 1
    assert "too old (v16.20.2)" in complained


def test_failed_build_tells_what_go_said_and_leaves_nothing(machine: Machine) -> None:
    machine.add_go(failure="dial tcp: connection refused")

    code, said, complained = machine.run("nats-cli")

    assert (code, said) == (1, "")
    assert "dial tcp: connection refused" in complained
    assert "GOPROXY" in complained
    assert machine.made() == []


def test_program_of_another_version_is_not_kept(machine: Machine) -> None:
    machine.add_go(version="v0.2.9")

    code, _, complained = machine.run("nats-cli")

    assert code == 1
    assert "'v0.2.9'" in complained
    assert machine.made() == []


def test_package_of_another_version_is_not_kept(machine: Machine) -> None:
    machine.add_npm(installs="3.9.9")

    code, _, complained = machine.run("nats-js")

    assert code == 1
    assert "other packages than tools.lock names" in complained
    assert machine.made() == []


def test_build_ends_with_the_script_that_started_it(machine: Machine) -> None:
    machine.add_go()
    os.mkfifo(machine.work / "gate")

    with machine.start("nats-cli") as process:
        [build] = eventually(machine.builds, within_s=TIMEOUT_S)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=TIMEOUT_S)

    assert process.returncode == 130
    with pytest.raises(ProcessLookupError):
        os.kill(build, 0)
    assert machine.made() == []


@pytest.mark.parametrize("arguments", ["nats", ""])
def test_unknown_tool_is_a_wrong_use(machine: Machine, arguments: str) -> None:
    code, said, complained = machine.run(arguments)

    assert (code, said) == (2, "")
    assert "nats-cli" in complained
