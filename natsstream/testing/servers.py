"""Real nats-server processes, started and ended from Python.

The folder of a server (`store_dir`, or a temporary one) holds:

    jetstream/      the store, written by nats-server
    server.conf     the generated configuration
    server.lock     locked by the Python process that owns the server; holds its pid
    server.log      what nats-server prints
    server.pid      written by nats-server: the next owner finds a server that lost its parent
    ports/          written by nats-server: the ports that it chose
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from natsstream.arguments import check_int, check_text
from natsstream.constructors import answers_arguments
from natsstream.errors import NatsStreamError, UsageError
from natsstream.foreign_names import answers_names
from natsstream.testing.atexit_stop import AtExit
from natsstream.testing.binary import ServerStartError, find_nats_server, version_of
from natsstream.testing.freezer import Freezer
from natsstream.testing.logs import tail_of, without_secrets
from natsstream.testing.ports import (
    HOST,
    PortReservation,
    check_port,
    read_ports,
    says_info,
)
from natsstream.testing.processes import POLL_S, is_frozen, poll_until
from natsstream.testing.store_lock import end_orphan, lock_folder, write_private
from natsstream.testing.temporary import keep_folder, temporary_folder

if TYPE_CHECKING:
    from typing import Self

__all__ = ["NatsServer", "ServerStartError", "find_nats_server"]

_log = logging.getLogger(__name__)

# SIGKILL ends a process at once, except where it waits for a disk that does not answer.
KILL_WAIT_S = 30.0
PORT_WAIT_S = 0.1
PORT_ATTEMPTS = 10
ERROR_LOG_LINES = 20


@answers_arguments
@answers_names("server")
class NatsServer:
    """One nats-server that listens on 127.0.0.1 only, with JetStream on a file store.

    It lives until `stop()`, the end of its `with` block, or the normal end of the Python process.
    If a signal ends Python, the server keeps running. The next `NatsServer` on the same `store_dir`
    ends it before it starts its own; on Linux the next one without a `store_dir` ends those that
    were left without one. Not for use by several threads at once.

    Attributes:
        name: The server's name, as it tells clients.
    """

    def __init__(
        self,
        *,
        store_dir: Path | str | None = None,
        port: int | None = None,
        jetstream: bool = True,
        max_payload_bytes: int | None = None,
        config: str = "",
        binary: Path | str | None = None,
        name: str | None = None,
        log_file: Path | str | None = None,
    ) -> None:
        """Describe a server; nothing is started or written yet.

        Args:
            store_dir: Folder for the store and the files listed above, made when missing and never
                removed. None makes a temporary folder, which `stop()` removes.
            port: Port for clients, 1 to 65535. None lets nats-server choose a free one at the first
                start; it stays the same after that.
            jetstream: Whether JetStream is on.
            max_payload_bytes: Largest message, at most 64 MiB; None is the server's default, 1 MiB.
            config: Text in nats-server's configuration format, put at the end of the generated
                file. Address, ports, name and store are given as flags, and flags win.
            binary: The program to run; None takes what `find_nats_server()` finds.
            name: Server name; None makes a unique one.
            log_file: Where the server's output is appended; None is `server.log` in the folder.

        Raises:
            UsageError: A value that cannot work.
        """
        check_port(port, hint="leave port out: nats-server then chooses a free one")
        if max_payload_bytes is not None:
            check_int(max_payload_bytes, "max_payload_bytes", minimum=1, unit="bytes")
        self.name: str = name if name is not None else f"natsstream-{secrets.token_hex(4)}"
        self._store_dir = None if store_dir is None else Path(store_dir)
        # A node of a cluster has a folder in that of the cluster.
        self._is_store_given = store_dir is not None
        self._port = port
        self._is_port_given = port is not None
        self._jetstream = jetstream
        self._max_payload_bytes = max_payload_bytes
        self._config = check_text(config, "config")
        self._binary = binary
        self._log_file = None if log_file is None else Path(log_file)
        self._log_start = 0
        self._last_log = ""
        self._folder: Path | None = None
        self._has_dropped_store = False
        self._lock_fd: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._at_exit = AtExit(self.stop)
        self._listeners: dict[str, list[str]] = {}
        self._reservation = PortReservation()

    def __repr__(self) -> str:
        state = f"pid {self.pid}" if self.is_running else "not running"
        return f"<NatsServer {self.name} {state}, port {self._port}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        """Whether the process lives; a paused one does."""
        return self._process is not None and self._process.poll() is None

    @property
    def is_paused(self) -> bool:
        """Whether the process lives and stands still, by `pause()` or within a pulse."""
        return self._process is not None and self.is_running and is_frozen(self._process.pid)

    @property
    def pid(self) -> int:
        """Process id of the running server.

        Raises:
            UsageError: The server is not running.
        """
        return self._running().pid

    @property
    def port(self) -> int:
        """Port for clients, the same for the life of this object once it is known.

        Raises:
            UsageError: The port was left to the server, which has not started yet.
        """
        if self._port is None:
            message = f"{self.name} has no port yet: nats-server chooses it at the first start"
            raise UsageError(message, hint="call start() first, or pass port=")
        return self._port

    @property
    def url(self) -> str:
        """Address for clients, `nats://127.0.0.1:<port>`.

        Raises:
            UsageError: The port was left to the server, which has not started yet.
        """
        return f"nats://{HOST}:{self.port}"

    @property
    def monitor_url(self) -> str:
        """Address of the monitoring pages (`/varz`, `/jsz`, `/healthz`); new after each start.

        Raises:
            UsageError: The server is not running.
        """
        self._running()
        return self._listeners["monitoring"][0]

    @property
    def version(self) -> str:
        """Version of the program, such as `2.15.1`; needs no running server.

        Raises:
            ServerStartError: There is no program, or it does not run.
        """
        return version_of(find_nats_server(self._binary))

    def start(self, *, deadline_s: float = 30.0) -> Self:
        """Start the server and return it when it answers clients; a running one stays as it is.

        Servers that killed owners left running, on the same folder or on temporary ones, are ended
        first.

        Args:
            deadline_s: Seconds from the start of the process until it answers. Ending an orphan
                comes before that and takes at most 20 s, usually far less than one.

        Raises:
            ServerStartError: No program, port taken, folder in use, bad configuration, or not ready
                in time. `detail` holds the last log lines. On failure nothing is left behind.
        """
        if self.is_running:
            return self
        has_folder = self._folder is not None
        try:
            binary = find_nats_server(self._binary)
            folder = self._take_folder()
            end_orphan(folder / "server.pid", binary)
            # A port that was kept: whoever took it between our letting go and the server's start,
            # such as the own end of a connection, may be gone soon.
            attempts = 1 if self._is_port_given else PORT_ATTEMPTS
            while not self._get_ready(binary, folder, deadline_s, is_last=attempts == 1):
                attempts -= 1
                time.sleep(PORT_WAIT_S)
        except OSError as error:
            self._clean_up_failed_start(has_folder=has_folder)
            message = f"{self.name} cannot be started: {error}"
            hint = "check the folder, the log file and the program"
            raise ServerStartError(message, hint=hint) from error
        except BaseException:
            self._clean_up_failed_start(has_folder=has_folder)
            raise
        return self

    def stop(self, *, deadline_s: float = 10.0, keep_store: bool = False) -> None:
        """End the server in good order and free its port; does nothing on a stopped one.

        A paused server is resumed first, so that it can end. After the deadline it is killed.

        Args:
            deadline_s: Seconds that the server has to end by itself after SIGTERM.
            keep_store: Keep the temporary folder, the claim to the folder and the port, so that
                `start()` continues with the same data. A given `store_dir` is always kept.

        Raises:
            NatsStreamError: The process does not end, not even after SIGKILL.
        """
        if self._process is not None and self.is_running:
            self._process.send_signal(signal.SIGCONT)
            self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(deadline_s)
        self.kill()
        if not keep_store:
            self._has_dropped_store |= self._folder is not None and self._store_dir is None
            self._let_go()

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would, paused or not.

        Folder and port are kept: `start()` continues with the same data, `stop()` gives them up.

        Raises:
            NatsStreamError: The process does not end.
        """
        if self._process is None:
            return
        self._process.kill()
        try:
            self._process.wait(KILL_WAIT_S)
        except subprocess.TimeoutExpired as error:
            message = f"nats-server with pid {self._process.pid} does not end after SIGKILL"
            raise NatsStreamError(message, hint="its disk may hang: see dmesg") from error
        self._process = None
        port = self._port_to_take()
        if port is not None:
            self._reservation.keep(port)

    def pause(self) -> None:
        """Freeze the server: its connections stay open and nothing answers.

        Returns when it is frozen.

        Raises:
            UsageError: The server is not running.
            NatsStreamError: The process does not stop.
        """
        process = self._running()
        process.send_signal(signal.SIGSTOP)
        if not poll_until(lambda: is_frozen(process.pid), KILL_WAIT_S):
            raise NatsStreamError(f"nats-server with pid {process.pid} does not stop after SIGSTOP")

    def resume(self) -> None:
        """Let a paused server go on; does nothing on one that is not paused.

        Raises:
            UsageError: The server is not running.
        """
        self._running().send_signal(signal.SIGCONT)

    def pulse(
        self, *, paused_s: float, running_s: float, count: int, seed: int | None = None
    ) -> Freezer:
        """Return pulses that freeze the server again and again while their `with` block runs.

        ```python
        with server.pulse(paused_s=0.2, running_s=0.3, count=20, seed=1) as pulses:
            ...
        ```

        Args:
            paused_s: Seconds that the server stands still in each pulse.
            running_s: Seconds that it runs after each pulse.
            count: Number of pulses, at most 100,000.
            seed: Draws each time between half and one and a half of the given one, the same for the
                same seed. None takes the times as they are.

        Raises:
            UsageError: The server is not running, a time is not positive, or the count is out of
                range.
        """
        process = self._running()
        return Freezer(process, paused_s=paused_s, running_s=running_s, count=count, seed=seed)

    def restart(self, *, deadline_s: float = 30.0) -> Self:
        """End the server in good order and start it on the same data and port.

        Args:
            deadline_s: As for `start()`.

        Raises:
            ServerStartError: As for `start()`; the data are kept.
        """
        self.stop(keep_store=True)
        return self.start(deadline_s=deadline_s)

    def log_tail(self, n_lines: int = 50) -> str:
        """Return the last lines of the log, at most 256 KiB; they outlive `stop()`.

        Args:
            n_lines: Number of lines.
        """
        lines = self._read_log().splitlines()
        return "\n".join(lines[-n_lines:] if n_lines > 0 else [])

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or not self.is_running:
            message = f"{self.name} is not running"
            raise UsageError(message, hint="call start(), or use the server in a with statement")
        return self._process

    def _take_folder(self) -> Path:
        """Return the folder of this server, made and claimed for this process."""
        if self._folder is None:
            if self._store_dir is None:
                if self._has_dropped_store:
                    _log.info("%s begins empty: stop(keep_store=True) keeps the data", self.name)
                self._folder = temporary_folder()
            else:
                self._store_dir.mkdir(parents=True, exist_ok=True)
                self._folder = self._store_dir.resolve()
            # A program that forgets stop(), or ends on an error, must leave no server behind.
            self._at_exit.arm()
        if self._lock_fd is None:
            self._lock_fd = lock_folder(self._folder)
            if self._is_store_given:
                keep_folder(self._folder)
        return self._folder

    def _launch(self, binary: Path, folder: Path) -> subprocess.Popen[bytes]:
        ports_dir = folder / "ports"
        # A ports file of an earlier server could bear the pid that the new one gets.
        shutil.rmtree(ports_dir, ignore_errors=True)
        ports_dir.mkdir()
        pid_file = folder / "server.pid"
        pid_file.unlink(missing_ok=True)
        config_file = folder / "server.conf"
        config = "\n".join([*self._config_lines(), self._config, ""])
        write_private(config_file, config)  # It may hold passwords.
        # `-P` comes first: store_lock.py recognises an orphan by it.
        command = [str(binary), "-P", str(pid_file), "-c", str(config_file), "-n", self.name]
        command += ["-a", HOST, "-p", str(self._port_to_take() or -1), "-m", "-1"]
        command += ["--ports_file_dir", str(ports_dir)]
        if self._jetstream:
            command += ["-js", "-sd", str(folder)]
        log_path = self._log_path(folder)
        log_path.parent.mkdir(parents=True, exist_ok=True)
        self._reservation.release()
        if self._log_file is None and log_path.is_symlink():
            log_path.unlink()  # The user's own file may be one, in our folder it is another's.
        with log_path.open("ab") as log:
            self._log_start = log.tell()
            # A session of its own: Ctrl-C must not end the server before its owner is done with it.
            self._process = subprocess.Popen(  # noqa: S603 - No shell; the caller's program.
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        return self._process

    def _config_lines(self) -> list[str]:
        """Return the generated configuration; the user's text comes after it."""
        lines = ["# Written by natsstream.testing at each start; changes are lost."]
        if self._max_payload_bytes is not None:
            lines.append(f"max_payload: {self._max_payload_bytes}")
        elif not self._config.strip():
            # The server complains of a file without values; this is its default.
            lines.append("max_payload: 1MB")
        return lines

    def _port_to_take(self) -> int | None:
        """Return the port for clients of the next start; None leaves it to the server."""
        return self._port

    def _get_ready(self, binary: Path, folder: Path, deadline_s: float, *, is_last: bool) -> bool:
        """Start the process and wait for its answer; False when another program has its port.

        On the last attempt that is an error.
        """
        deadline = time.monotonic() + deadline_s
        process = self._launch(binary, folder)
        while True:
            # The ports file bears the pid: a foreign server on a wanted port is not taken for ours.
            ports = read_ports(folder / "ports", process.pid)
            if ports is not None:
                port = int(ports["nats"][0].rpartition(":")[2])
                if says_info(port):
                    self._port = port
                    self._listeners = ports
                    return True
            if process.poll() is not None:
                if self._has_lost_its_port() and not is_last:
                    return False
                message = f"nats-server ended with code {process.returncode} before it was ready"
                raise self._start_error(message)
            if time.monotonic() >= deadline:
                raise self._start_error(f"nats-server was not ready within {deadline_s} s")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(POLL_S)

    def _has_lost_its_port(self) -> bool:
        port, log = self._port_to_take(), self._read_log(from_offset=self._log_start)
        return port is not None and f":{port}: bind: address already in use" in log

    def _start_error(self, message: str) -> ServerStartError:
        log = self._read_log(from_offset=self._log_start)
        detail = "\n".join(log.splitlines()[-ERROR_LOG_LINES:])
        detail = without_secrets(detail, self._config)
        if self._has_lost_its_port():
            message = f"port {self._port} on {HOST} is taken by another program"
            hint = "leave port out: nats-server then chooses a free one"
        else:
            hint = "check config= against the log lines above; log_file= keeps the whole log"
        return ServerStartError(message, detail=detail, hint=hint)

    def _clean_up_failed_start(self, *, has_folder: bool) -> None:
        self.kill()
        # A restart that fails must not cost the data of the earlier run.
        if not has_folder:
            self._let_go()

    def _let_go(self) -> None:
        """Give up folder, claim and reservation; the next start begins anew."""
        self._reservation.release()
        self._at_exit.disarm()
        folder, self._folder = self._folder, None
        if folder is not None:
            self._last_log = tail_of(self._log_path(folder))
            if self._store_dir is None:
                # The process is gone; what can fail here is a folder that the user removed already.
                shutil.rmtree(folder, ignore_errors=True)
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def _log_path(self, folder: Path) -> Path:
        return self._log_file if self._log_file is not None else folder / "server.log"

    def _read_log(self, *, from_offset: int = 0) -> str:
        if self._folder is None:
            return self._last_log
        return tail_of(self._log_path(self._folder), from_offset=from_offset)
