"""A standalone Spark cluster on loopback: a master and a worker, each a process of its own.

Law: every process that was started, and every executor of the worker, has ended after `stop`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyspark

from natsstream.testing.ports import HOST, reserve_port
from natsstream.testing.processes import command_line, has_exited

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For each JVM: it lives for a minute, in which Java's second compiler costs more than it saves."""

_START_S = 120.0
_STOP_S = 20.0
_POLL_S = 0.05
_SPARK_HOME = Path(pyspark.__file__).parent
_PACKAGE = "org.apache.spark.deploy"
_EXECUTOR = "CoarseGrainedExecutorBackend"


class SparkCluster:
    """A master and one worker.

    Args:
        folder: Where they put logs and the executors' files.
        cores: Cores that the worker offers.
        memory: Memory that the worker offers to executors.

    Attributes:
        url: The master's address, `spark://127.0.0.1:<port>`.
    """

    def __init__(self, folder: Path, *, cores: int = 4, memory: str = "4g") -> None:
        self._folder = folder
        self._offers = ("--cores", str(cores), "--memory", memory)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._pids: set[int] = set()
        self.url: str = ""

    def start(self) -> None:
        """Start both; returns when the worker is registered.

        Raises:
            TimeoutError: That took longer than two minutes for one of them.
        """
        reservation = reserve_port(0)
        assert reservation is not None  # noqa: S101 - Any free port is free.
        with reservation:
            port = int(reservation.getsockname()[1])
        self.url = f"spark://{HOST}:{port}"
        self._spawn("master", "master.Master", "--port", str(port))
        self._wait("master", "Starting Spark master at")
        files = str(self._folder / "work")
        self._spawn("worker", "worker.Worker", *self._offers, "--work-dir", files, self.url)
        self._wait("worker", "Successfully registered with master")

    def stop(self) -> list[int]:
        """End all processes; returns those that are still there."""
        self.executors()
        for process in reversed(self._processes.values()):
            process.terminate()
        for process in self._processes.values():
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
        for pid in self._pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _until(lambda: all(has_exited(pid) for pid in self._pids), _STOP_S)
        return [pid for pid in sorted(self._pids) if not has_exited(pid)]

    def executors(self) -> list[int]:
        """Return the executors' processes."""
        worker = self._processes.get("worker")
        pids = [] if worker is None else _children(worker.pid)
        found = [pid for pid in pids if _EXECUTOR in command_line(pid)]
        self._pids.update(found)
        return sorted(found)

    def kill_executor(self, pid: int, *, has_children: bool) -> None:
        """SIGKILL an executor; its Python processes otherwise notice and end by themselves."""
        for each in [pid, *(_descendants(pid) if has_children else [])]:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)

    def log_tail(self, n_lines: int) -> str:
        """Return the last lines of the two logs and of the executors' error outputs."""
        logs = [*self._folder.glob("*.log"), *self._folder.glob("work/*/*/stderr")]
        tails = (path.read_text(errors="replace").splitlines()[-n_lines:] for path in logs)
        return "\n".join(line for tail in tails for line in tail)

    def _spawn(self, name: str, program: str, *arguments: str) -> None:
        environment = os.environ | {
            "SPARK_HOME": str(_SPARK_HOME),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS,
        }
        words = ["--host", HOST, "--webui-port", "0", *arguments]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(  # noqa: S603 - No shell; Spark's own program.
                [str(_SPARK_HOME / "bin/spark-class"), f"{_PACKAGE}.{program}", *words],
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self._pids.add(self._processes[name].pid)

    def _wait(self, name: str, text: str) -> None:
        log = self._folder / f"{name}.log"
        if not _until(lambda: text in log.read_text(errors="replace"), _START_S):
            raise TimeoutError(f"Spark's {name} has not started:\n{self.log_tail(20)}")


def _until(is_so: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _children(pid: int) -> list[int]:
    """Return the processes that any thread of a process has started."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text().split())
    return found


def _descendants(pid: int) -> list[int]:
    children = _children(pid)
    return [*children, *(each for child in children for each in _descendants(child))]
