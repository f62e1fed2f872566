"""The check for Java, with programs that only pretend to be one, and the Python of the workers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pyspark_natsstream
import pytest
from pyspark_natsstream.session import check_java, java_major

from natsstream.errors import MissingExtraError

WORKER_PYTHON = Path(pyspark_natsstream.__file__).with_name("worker_python")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH, without JAVA_HOME."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def pretend(folder: Path, script: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "26-ea" 2026-03-17', 26),
        ("The operation couldn't be completed.", 0),
    ],
)
def test_major_version_is_read_from_what_java_says(text: str, major: int) -> None:
    assert java_major(text) == major


@pytest.mark.usefixtures("path")
def test_missing_java_is_told_with_the_command_that_installs_it() -> None:
    with pytest.raises(MissingExtraError, match="no java on the PATH") as missing:
        check_java()

    assert "apt-get install openjdk-17-jre-headless" in missing.value.hint
    assert "brew install" in missing.value.hint


def test_java_that_is_too_old_is_told_with_its_version(path: Path) -> None:
    pretend(path, """echo 'openjdk version "11.0.2" 2019-01-15' >&2""")

    with pytest.raises(MissingExtraError, match="is Java 11"):
        check_java()


def test_java_that_does_not_run_is_told_as_missing(path: Path) -> None:
    """macOS has one that only says that there is none."""
    pretend(path, "echo 'Unable to locate a Java Runtime.' >&2; exit 1")

    with pytest.raises(MissingExtraError, match="does not run"):
        check_java()


def test_java_home_goes_before_the_path(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark does the same."""
    pretend(path, """echo 'openjdk version "11.0.2"' >&2""")
    pretend(tmp_path / "jdk" / "bin", """echo 'openjdk version "21.0.1"' >&2""")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))

    assert check_java() == 21


def test_java_home_without_java_is_told_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(MissingExtraError, match="JAVA_HOME="):
        check_java()


def test_worker_python_leaves_out_what_spark_has_put_on_the_path(tmp_path: Path) -> None:
    home = tmp_path / "my spark"
    pretend(tmp_path / "bin", """printf '%s\\n' "$PYTHONPATH" "$@\"""")
    own = (str(tmp_path), "/my packages", "/a*")
    given = (f"{home}/python/lib/pyspark.zip", *own[:2], f"{home}/jars/spark-core.jar", own[2])

    said = subprocess.run(
        [WORKER_PYTHON, "-m", "a module", "b:c"],
        env={
            "SPARK_HOME": str(home),
            "PYTHONPATH": ":".join(given),
            "PYSPARK_NATSSTREAM_PYTHON": str(tmp_path / "bin" / "java"),
        },
        capture_output=True,
        text=True,
        check=True,
    )

    assert said.stdout.splitlines() == [":".join(own), "-m", "a module", "b:c"]
