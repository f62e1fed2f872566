"""nats-server in Docker containers, on testcontainers: one node, or a JetStream cluster.

Needs a Docker daemon, `pip install 'natsstream[containers]'`, and an image (see `NatsContainer`).

```python
from natsstream.testing.containers import NatsContainer

with NatsContainer() as server:
    print(server.url)  # nats://127.0.0.1:<a free port>
```
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from typing import TYPE_CHECKING, cast

from natsstream.arguments import check_int
from natsstream.constructors import answers_arguments
from natsstream.errors import MissingExtraError, NatsStreamError, UsageError
from natsstream.testing.atexit_stop import AtExit
from natsstream.testing.binary import ServerStartError
from natsstream.testing.logs import without_secrets
from natsstream.testing.monitoring import fetch_page
from natsstream.testing.ports import HOST, PortReservation, check_port, says_info
from natsstream.testing.processes import poll_until

try:
    from docker.errors import APIError, DockerException, NotFound
    from requests.exceptions import RequestException
    from testcontainers.core.container import DockerContainer
except ImportError as _error:
    raise MissingExtraError(
        "containers for tests need testcontainers", hint="pip install 'natsstream[containers]'"
    ) from _error

from natsstream.testing.cleanup import owner_labels
from natsstream.testing.daemons import daemon_errors, prepare, publishes_here
from natsstream.testing.images import default_image, default_version, release_of, take_image

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

CLIENT_PORT = 4222
MONITOR_PORT = 8222
CONFIG_PATH = "/natsstream.conf"
STORE_PATH = "/natsstream"
# Bounds each request to the daemon, and so the wait for the first word of a registry.
DAEMON_TIMEOUT_S = 30
KILL_WAIT_S = 10.0
# Another program may take a port between our choice and the container's start.
PORT_ATTEMPTS = 5
ERROR_LOG_LINES = 20
# nats-server writes some 100 bytes a line: a report, and never the whole log of a long run.
LOG_LINES_MAX = 2500
_POLL_S = 0.02


@answers_arguments
class NatsContainer(DockerContainer):
    """One nats-server with JetStream in a Docker container, with the methods of `NatsServer`.

    It is a `DockerContainer` of testcontainers, so `with_network()`, `with_env()` and the others
    work before the start. The store is in the container: it outlives `kill()` and `restart()`, and
    goes with `stop()`.

    Where the Docker daemon runs on this machine, the ports are published on 127.0.0.1 only, and the
    one for clients is the same for the life of this object. Elsewhere Docker chooses the ports, on
    all addresses of its machine and anew after each start.

    Where the reaper of testcontainers cannot be had, it is switched off for this process
    (`TESTCONTAINERS_RYUK_DISABLED`), which is logged as a warning. Not for use by several threads
    at once.

    Attributes:
        name: The server's name, as it tells clients.
    """

    def __init__(
        self,
        image: str | None = None,
        *,
        version: str | None = None,
        port: int | None = None,
        max_payload_bytes: int | None = None,
        config: str = "",
        arguments: Sequence[str] = (),
        name: str | None = None,
    ) -> None:
        """Describe a container; nothing is started yet, but the Docker daemon must answer.

        Args:
            image: The image to run: one of this machine, else it is pulled. Its entry point must
                take the flags of nats-server, as the official images do. None takes the first of
                these that can be had: the official image `nats:<version>` or one built earlier,
                when it is on this machine; the official image from the registry; an image
                `natsstream/nats-server:<version>`, built from the nats-server program.
            version: Release for `image=None`, such as `2.12.8`, or `2.12` for the release of that
                line which natsstream is tested with. None is the version of the installed
                nats-server.
            port: Port on 127.0.0.1 for clients; None chooses a free one.
            max_payload_bytes: Largest message that the server takes; None is the server's default.
            config: Text in nats-server's configuration format.
            arguments: More flags for nats-server.
            name: Server name; None makes a unique one.

        Raises:
            UsageError: A value that cannot work.
            ServerStartError: No Docker daemon answers.
        """
        if image is not None and version is not None:
            message = f"both image={image!r} and version={version!r} are given"
            raise UsageError(message, hint="the image decides which version it has: leave one out")
        check_port(port, hint="leave port out")
        if max_payload_bytes is not None:
            check_int(max_payload_bytes, "max_payload_bytes", minimum=1, unit="bytes")
        self.name: str = name if name is not None else f"natsstream-{secrets.token_hex(4)}"
        self._release = release_of(version) if version is not None else default_version()
        self._is_default_image = image is None
        with daemon_errors("the Docker daemon does not answer", ServerStartError):
            super().__init__(
                image if image is not None else f"nats:{self._release}",
                docker_client_kw={"timeout": DAEMON_TIMEOUT_S},
                labels=owner_labels(),
            )
        # It opens again by itself; one that is never started must not hold a socket.
        self.get_docker_client().client.close()
        self._asked_image: str = self.image  # With the prefix that testcontainers may be set to.
        limit = "" if max_payload_bytes is None else f"max_payload: {max_payload_bytes}\n"
        self._config = config
        self.with_copy_into_container(f"{limit}{config}\n".encode(), CONFIG_PATH)
        self._arguments = list(arguments)
        self._wanted_port = port
        self._port: int | None = port
        self._is_local = True
        self._reservation = PortReservation()
        self._last_log = ""
        self._at_exit = AtExit(self.stop)

    def __repr__(self) -> str:
        return f"<NatsContainer {self.name} {self.image}, port {self._port}>"

    @property
    def is_running(self) -> bool:
        """Whether the container lives; a paused one does.

        Raises:
            NatsStreamError: The Docker daemon does not answer.
        """
        if self._container is None:
            return False
        try:
            with daemon_errors(f"{self.name} cannot be asked for"):
                self._container.reload()
        except NatsStreamError as error:
            if isinstance(error.__cause__, NotFound):
                return False  # Removed from outside.
            raise
        return self._container.status in {"running", "paused"}

    @property
    def is_paused(self) -> bool:
        """Whether the server is frozen by `pause()`."""
        return self.is_running and self.get_wrapped_container().status == "paused"

    @property
    def port(self) -> int:
        """Port for clients.

        Raises:
            UsageError: The container has not started yet and its port was not given.
        """
        if self._port is None:
            message = f"{self.name} has no port yet: it is chosen at the start"
            raise UsageError(message, hint="call start() first, or pass port=")
        return self._port

    @property
    def url(self) -> str:
        """Address for clients, `nats://<host>:<port>`.

        Raises:
            UsageError: The container has not started yet.
        """
        return f"nats://{self._host()}:{self.port}"

    @property
    def monitor_url(self) -> str:
        """Address of the monitoring pages (`/varz`, `/jsz`, `/healthz`); new after each start.

        Raises:
            UsageError: The container is not running.
        """
        self._check_running()
        return f"http://{self._host()}:{self._published(MONITOR_PORT)}"

    @property
    def version(self) -> str:
        """Version of the running server, such as `2.15.1`.

        Raises:
            UsageError: The container is not running.
            NatsStreamError: The server does not answer.
        """
        page = fetch_page(self.monitor_url, "/varz")
        if page is None:
            raise NatsStreamError(f"{self.name} does not tell its version", retryable=True)
        return str(page[1]["version"])

    def start(self, *, deadline_s: float = 30.0) -> Self:
        """Start the container and return it when the server answers clients.

        A running one stays as it is; one that was killed keeps its data.

        Args:
            deadline_s: Seconds from the container's start until the server answers. Finding the
                image comes before that: a pull has at most 120 s, and a build takes a second.

        Raises:
            ServerStartError: No daemon, no image, port taken, bad configuration, or not ready in
                time; `detail` has the last log lines. On failure nothing is left behind.
        """
        if self.is_running:
            return self
        is_new = self._container is None
        try:
            with daemon_errors(f"{self.name} cannot be started", ServerStartError):
                if is_new:
                    self._create()
                else:
                    self._reservation.release()
                    self.get_wrapped_container().start()
                self._wait_until_ready(deadline_s)
        except BaseException:
            # A restart that fails must not cost the data of the earlier run.
            if is_new:
                self.stop()
            raise
        return self

    # The first two are those of testcontainers, whose callers may give them by position.
    def stop(
        self,
        force: bool = True,  # noqa: FBT001, FBT002 - The base class has it so.
        delete_volume: bool = True,  # noqa: FBT001, FBT002 - The base class has it so.
        *,
        deadline_s: float = 10.0,
        keep_store: bool = False,
    ) -> None:
        """Remove the container with its data; does nothing on a removed one.

        Args:
            force: End the server if it runs, as testcontainers has it.
            delete_volume: Remove the container's anonymous volumes as well.
            deadline_s: Seconds that the server has to end by itself, with `keep_store`.
            keep_store: End the server in good order and keep the container, so that `start()` goes
                on with the same data.

        Raises:
            NatsStreamError: The daemon does not end or remove the container.
        """
        if keep_store:
            if self.is_running:
                self.resume()
                with daemon_errors(f"{self.name} cannot be stopped"):
                    self.get_wrapped_container().stop(timeout=round(deadline_s))
                self._keep_port()
            return
        self._reservation.release()
        self._at_exit.disarm()
        if self._container is not None:
            self._last_log = self.log_tail(LOG_LINES_MAX)
            with daemon_errors(f"{self.name} cannot be removed"), contextlib.suppress(NotFound):
                super().stop(force, delete_volume)
            self._container = None
            self._port = self._wanted_port
        self.get_docker_client().client.close()

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would, paused or not; its data stay.

        Raises:
            NatsStreamError: The server does not end.
        """
        if not self.is_running:
            return
        with daemon_errors(f"{self.name} cannot be killed"):
            self.get_wrapped_container().kill()
        if not poll_until(lambda: not self.is_running, KILL_WAIT_S):
            raise NatsStreamError(f"{self.name} does not end after SIGKILL")
        self._keep_port()

    def pause(self) -> None:
        """Freeze the server: its connections stay open and nothing answers.

        Raises:
            UsageError: The container is not running.
        """
        self._check_running()
        if not self.is_paused:
            with daemon_errors(f"{self.name} cannot be paused"):
                self.get_wrapped_container().pause()

    def resume(self) -> None:
        """Let a paused server go on; does nothing on one that is not paused.

        Raises:
            UsageError: The container is not running.
        """
        self._check_running()
        if self.is_paused:
            with daemon_errors(f"{self.name} cannot be resumed"):
                self.get_wrapped_container().unpause()

    def restart(self, *, deadline_s: float = 30.0) -> Self:
        """End the server in good order and start it on the same data.

        Args:
            deadline_s: As for `start()`.

        Raises:
            ServerStartError: As for `start()`; the data are kept.
        """
        self.stop(keep_store=True)
        return self.start(deadline_s=deadline_s)

    def log_tail(self, n_lines: int = 50) -> str:
        """Return the last lines of the log, at most 2500; they outlive `stop()`.

        Args:
            n_lines: Number of lines.
        """
        if n_lines <= 0:
            return ""
        if self._container is None:
            return "\n".join(self._last_log.splitlines()[-n_lines:])
        try:
            log = self._container.logs(tail=min(n_lines, LOG_LINES_MAX))
        except (DockerException, RequestException) as error:
            return f"the Docker daemon does not give the log of {self.name}: {error}"
        return log.decode("utf-8", errors="replace").rstrip("\n")

    def _create(self) -> None:
        """Make and start a new container, on another port when the chosen one was taken."""
        daemon = self.get_docker_client()
        # A program that forgets stop(), or ends on an error, must leave no container behind.
        self._at_exit.arm()
        prepare(daemon.client)
        if self._is_default_image:
            self.image: str = default_image(daemon.client, self._asked_image, self._release)
        else:
            take_image(daemon.client, self.image)
        self._is_local = publishes_here(daemon)
        for attempts_left in reversed(range(PORT_ATTEMPTS)):
            self._port = self._wanted_port or (_free_port() if self._is_local else None)
            try:
                super().start()
            except APIError as error:
                if not _is_port_taken(error):
                    raise
                if self._wanted_port is not None or not attempts_left:
                    message = f"port {self._port} on {HOST} is taken by another program"
                    raise ServerStartError(message, hint="leave port out") from error
                self.get_wrapped_container().remove(force=True, v=True)
                self._container = None
            else:
                return

    def _configure(self) -> None:
        """Set ports and command, from the start of the base class."""
        command = ["-c", CONFIG_PATH, "-n", self.name, "-p", str(CLIENT_PORT)]
        command += ["-m", str(MONITOR_PORT), "-js", "-sd", STORE_PATH]
        if self._is_local:
            # Other nodes of a cluster tell clients this address, not the container's own.
            command += ["--client_advertise", f"{HOST}:{self._port}"]
            # The base class names fewer forms than the Docker client takes: an address with a
            # port, and an address alone, on which Docker chooses the port.
            ports: dict[str, object] = {
                str(CLIENT_PORT): (HOST, self._port),
                str(MONITOR_PORT): (HOST,),
            }
            self.ports.update(cast("dict[str, int | None]", ports))
        else:
            self.ports.update({str(CLIENT_PORT): self._port, str(MONITOR_PORT): None})
        self.with_command([*command, *self._arguments])

    def _wait_until_ready(self, deadline_s: float) -> None:
        deadline = time.monotonic() + deadline_s
        while True:
            if not self.is_running:
                code = self.get_wrapped_container().attrs["State"]["ExitCode"]
                raise self._start_error(f"{self.name} ended with code {code} before it was ready")
            # A container that ends at this moment has no port any more.
            with contextlib.suppress(ConnectionError):
                port = self._published(CLIENT_PORT)
                if says_info(port, self._host()):
                    self._port = port
                    return
            if time.monotonic() >= deadline:
                raise self._start_error(f"{self.name} was not ready within {deadline_s:g} s")
            time.sleep(_POLL_S)

    def _start_error(self, message: str) -> ServerStartError:
        hint = f"is {self.image} a nats-server? Check config= against the log lines above"
        detail = without_secrets(self.log_tail(ERROR_LOG_LINES), self._config)
        return ServerStartError(message, detail=detail, hint=hint)

    def _host(self) -> str:
        return HOST if self._is_local else self.get_container_host_ip()

    def _published(self, port: int) -> int:
        """Return the port by which a port of the container is reached from here."""
        daemon = self.get_docker_client()
        if not daemon.get_connection_mode().use_mapped_port:
            return port
        return int(daemon.port(self.get_container_id(), port))

    def _check_running(self) -> None:
        if not self.is_running:
            message = f"{self.name} is not running"
            hint = "call start(), or use the container in a with statement"
            raise UsageError(message, hint=hint)

    def _keep_port(self) -> None:
        """Keep the port from being given to others while the server is down."""
        if self._is_local and self._port is not None:
            self._reservation.keep(self._port)


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as probe:
        return int(probe.getsockname()[1])


def _is_port_taken(error: APIError) -> bool:
    # Docker has no code for it: the first is said when a container has the port, the second when
    # another program has.
    text = str(error)
    return "port is already allocated" in text or "address already in use" in text
