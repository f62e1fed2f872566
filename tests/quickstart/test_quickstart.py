"""The quickstart as its user runs it: a process of its own, killed in the middle, run again."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import pytest

from natsstream.testing import NatsServer
from natsstream.testing.processes import command_line, has_exited
from scripts.flights.dataset import open_flights
from scripts.flights.folder import Folder
from scripts.flights.prove import prove
from scripts.flights.spark import end_left_behind
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Event: TypeAlias = dict[str, Any]

ROOT = Path(__file__).parents[2]
ROWS = 40_000
# 80 batches, each of which takes Spark some tenths of a second: a kill that comes seconds late,
# because this process got no CPU, hits one all the same.
BATCH_ROWS = 500
MANY_ROWS = 80_000
END_WAIT_S = 150.0
# Four starts of Spark, each 10 s on a quiet machine; only a hang may reach it.
RUNS_TIMEOUT_S = 600


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """The data folder of a test; what a failed test leaves running in it is ended."""
    made = Folder(tmp_path / "quickstart data")
    yield made
    end_left_behind(made)
    with NatsServer(store_dir=made.server):
        pass


def narrow_pipe() -> tuple[int, int]:
    """Return the ends of a pipe that holds one line: who writes waits for who reads.

    A run is so no more than two lines ahead of its test, however late this process gets a CPU: what
    it publishes is told twenty times a second, and takes much longer than that.
    """
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_DIRECT)
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    return reading, writing


class Run:
    """One run of the command, in a process group of its own, read event by event."""

    def __init__(
        self, folder: Folder, rows: int, *, batch_rows: int = MANY_ROWS, waits: bool = False
    ) -> None:
        """Start the command.

        Args:
            folder: Its data folder.
            rows: How many rows it takes.
            batch_rows: How many of them Spark commits at once.
            waits: It does not go on before its events are read. Not for Spark: Java writes too.
        """
        self.errors = folder.path.with_suffix(".stderr")
        command = [sys.executable, "-m", "scripts.flights", "--progress", "jsonl"]
        command += ["--dir", str(folder.path), "--rows", str(rows)]
        command += ["--batch-rows", str(batch_rows)]
        reading, writing = narrow_pipe() if waits else os.pipe()
        try:
            with self.errors.open("wb") as errors:
                self.process = subprocess.Popen(
                    command, cwd=ROOT, stdout=writing, stderr=errors, start_new_session=True
                )
        finally:
            os.close(writing)
        self._stdout = open(reading, encoding="utf-8")  # noqa: SIM115 - closed by `__exit__`.

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(END_WAIT_S)
        self._stdout.close()

    def wait(self) -> int:
        """Wait until the run ends by itself, hearing it out; returns its exit code."""
        for _ in self.events():
            pass
        return self.process.wait(END_WAIT_S)

    def events(self) -> Iterator[Event]:
        """Yield events as they come, until the process ends."""
        for line in self._stdout:
            yield json.loads(line)

    def until(self, is_wanted: Callable[[Event], bool]) -> Event:
        """Return the first event that is wanted; the process goes on."""
        found = next((event for event in self.events() if is_wanted(event)), None)
        assert found is not None, self.errors.read_text()
        return found

    def complete(self) -> dict[str, Event]:
        """Wait for a good end; return the steps by name, and the result as `result`."""
        events = list(self.events())
        assert self.process.wait(END_WAIT_S) == 0, self.errors.read_text()
        ends = {event["step"]: event for event in events if event["event"] == "end"}
        return {**ends, "result": events[-1]}


def is_publishing(event: Event) -> bool:
    """Match progress in the middle of publishing."""
    return (
        event["event"] == "progress"
        and event["step"] == "publish"
        and 0 < event["done"] < event["rows"]
    )


def is_batch_done(event: Event) -> bool:
    """Match progress in the middle of ingesting, when this run has written a batch."""
    return (
        event["event"] == "progress"
        and event["step"] == "ingest"
        and bool(event["batches"])
        and event["done"] < event["rows"]
    )


def assert_proved(result: Event, folder: Folder, rows: int) -> None:
    """The run says that the table is right, and it is."""
    assert result["event"] == "result"
    assert result["rows"] == rows
    assert len(result["checks"]) == 6
    assert all(check["expected"] == check["found"] for check in result["checks"])
    assert prove(folder.table, open_flights().archive, rows=rows)


def server_pid(folder: Folder) -> int:
    return int((folder.server / "server.pid").read_text())


@pytest.mark.spark
@pytest.mark.timeout(RUNS_TIMEOUT_S)
def test_killed_in_each_step_it_completes_and_the_next_run_does_nothing(folder: Folder) -> None:
    with Run(folder, ROWS, batch_rows=BATCH_ROWS, waits=True) as killed:
        killed.until(is_publishing)
        killed.process.kill()
        killed.process.wait(END_WAIT_S)
        # Nobody was there to end the server: the next run does.
        orphan = server_pid(folder)
        assert not has_exited(orphan)

    with Run(folder, ROWS, batch_rows=BATCH_ROWS) as killed:
        published = killed.until(lambda event: event["event"] == "end")
        assert has_exited(orphan)
        killed.until(is_batch_done)
        # Python alone: its Java process lives on for a moment, in the middle of the next batch.
        killed.process.kill()
        killed.process.wait(END_WAIT_S)
    resumed_at = published["first"]
    assert published["step"] == "publish"
    assert 1 < resumed_at < ROWS
    assert published["rows"] == ROWS - resumed_at + 1

    with Run(folder, ROWS, batch_rows=BATCH_ROWS) as killed:
        killed.until(is_batch_done)
        # Java alone, as a system does that is short of memory.
        os.kill(int(folder.spark_pid.read_text()), signal.SIGKILL)
        assert killed.process.wait(END_WAIT_S) == 1
    told = killed.errors.read_text()
    # The last word is ours, whatever Spark's own threads have to say.
    assert told.rpartition("scripts/quickstart: ")[2].startswith("Spark's Java process ended")

    # What is left is one batch.
    with Run(folder, ROWS) as last:
        done = last.complete()
    assert (done["publish"]["first"], done["publish"]["rows"]) == (None, 0)
    # Each run got one batch further at least, and batches are committed as a whole.
    resumed_at = done["ingest"]["first"]
    assert 2 * BATCH_ROWS < resumed_at < ROWS
    assert resumed_at % BATCH_ROWS == 1
    assert done["ingest"]["rows"] == ROWS - resumed_at + 1
    assert_proved(done["result"], folder, ROWS)
    assert has_exited(server_pid(folder))

    with Run(folder, ROWS) as again:
        done = again.complete()
    assert (done["publish"]["first"], done["publish"]["rows"]) == (None, 0)
    assert (done["ingest"]["first"], done["ingest"]["rows"]) == (None, 0)
    assert_proved(done["result"], folder, ROWS)


@pytest.mark.sampled_variants
@pytest.mark.parametrize("end_signal", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal_it_ends_the_server_and_keeps_the_store(
    folder: Folder, end_signal: signal.Signals
) -> None:
    with Run(folder, MANY_ROWS, waits=True) as stopped:
        stopped.until(is_publishing)
        stopped.process.send_signal(end_signal)

        assert stopped.wait() == 128 + end_signal
    assert stopped.errors.read_text().endswith("stopped; the same command goes on from here\n")
    assert has_exited(server_pid(folder))
    with Run(folder, MANY_ROWS) as again:
        held = again.until(lambda event: event["event"] == "progress")["done"]
    assert 0 < held < MANY_ROWS


@pytest.mark.sampled_variants
@pytest.mark.parametrize("variables", [{}, {"JAVA_HOME": "/nowhere"}])
def test_missing_java_is_told_in_one_line_before_anything_starts(
    folder: Folder, variables: dict[str, str]
) -> None:
    environment = {**os.environ, "PATH": "/nowhere", **variables}
    if not variables:
        environment.pop("JAVA_HOME", None)

    answer = command("--dir", str(folder.path), environment=environment)

    assert answer.returncode == 1
    assert answer.stdout == ""
    assert answer.stderr.count("\n") == 1
    assert "needs Java" in answer.stderr
    assert "apt-get install openjdk-17" in answer.stderr
    assert not folder.path.exists()


@pytest.mark.sampled_variants
@pytest.mark.parametrize("rows", ["0", "-1", "336777"])
def test_impossible_number_of_rows_is_refused(folder: Folder, rows: str) -> None:
    answer = command("--dir", str(folder.path), "--rows", rows)

    assert answer.returncode == 1
    assert "the data set has 336,776" in answer.stderr
    assert not folder.path.exists()


def test_folder_of_another_run_is_refused(folder: Folder) -> None:
    with NatsServer(store_dir=folder.server) as server:
        answer = command("--dir", str(folder.path))

        assert server.is_running
    assert answer.returncode == 1
    assert f"pid {os.getpid()}" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_java_process_of_a_killed_run_is_waited_for(folder: Folder) -> None:
    # Any process with the folder's name in its command line stands for Spark's.
    folder.path.mkdir()
    name = f"spark.app.name=natsstream quickstart ({folder.path})"
    program = "import time; time.sleep(0.5)"
    with subprocess.Popen([sys.executable, "-c", program, name]) as left:
        eventually(lambda: name in command_line(left.pid))
        folder.spark_pid.write_text(str(left.pid))

        end_left_behind(folder)

        assert has_exited(left.pid)
    # It ended by itself.
    assert left.returncode == 0


def test_process_that_has_got_the_id_of_an_earlier_java_is_left_alone(folder: Folder) -> None:
    folder.path.mkdir()
    folder.spark_pid.write_text(str(os.getpid()))

    end_left_behind(folder)


def test_plain_progress_has_no_control_characters(folder: Folder) -> None:
    environment = {**os.environ, "NO_COLOR": "1"}
    with NatsServer(store_dir=folder.server):
        answer = command("--dir", str(folder.path), environment=environment)

    assert answer.stderr.startswith(f"folder: {folder.path} (336,776 rows)\n")
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", answer.stderr + answer.stdout)


def command(
    *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "scripts.flights", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=END_WAIT_S,
        check=False,
    )
