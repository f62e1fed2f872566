"""The common interface of test servers, processes and containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

# "process" runs the nats-server program of this machine, "container" asks a Docker daemon.
Backend: TypeAlias = Literal["process", "container"]


class ServerOptions(TypedDict, total=False):
    """Keyword arguments that all servers and clusters for tests take.

    Attributes:
        max_payload_bytes: Largest message that the server takes; the server's default is 1 MiB.
        config: Text in nats-server's configuration format.
    """

    max_payload_bytes: int
    config: str


class NatsNode(Protocol):
    """One nats-server for tests: what `NatsServer` and `NatsContainer` have in common."""

    @property
    def name(self) -> str:
        """The server's name, as it tells clients."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether the server lives; a paused one does."""
        ...

    @property
    def is_paused(self) -> bool:
        """Whether the server is paused."""
        ...

    @property
    def port(self) -> int:
        """Port for clients."""
        ...

    @property
    def url(self) -> str:
        """Address for clients, `nats://<host>:<port>`."""
        ...

    @property
    def monitor_url(self) -> str:
        """Address of the monitoring pages; new after each start."""
        ...

    @property
    def version(self) -> str:
        """Version of the server, such as `2.15.1`."""
        ...

    def start(self, *, deadline_s: float = ...) -> Self:
        """Start the server and return it when it answers clients."""
        ...

    def stop(self, *, deadline_s: float = ..., keep_store: bool = ...) -> None:
        """End the server; without `keep_store` its temporary store goes with it."""
        ...

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would; `start()` continues with the same data."""
        ...

    def pause(self) -> None:
        """Freeze the server: its connections stay open and nothing answers."""
        ...

    def resume(self) -> None:
        """Let a paused server go on."""
        ...

    def restart(self, *, deadline_s: float = ...) -> Self:
        """End the server in good order and start it on the same data and port."""
        ...

    def log_tail(self, n_lines: int = ...) -> str:
        """Return the last lines of the log; they outlive `stop()`."""
        ...


class NatsNodes(Protocol):
    """A JetStream cluster for tests: what `NatsCluster` and `NatsClusterContainer` share."""

    @property
    def servers(self) -> Sequence[NatsNode]:
        """The nodes `n1`, `n2`, ... in this order."""
        ...

    @property
    def urls(self) -> list[str]:
        """Addresses for clients, one a node."""
        ...

    @property
    def url(self) -> str:
        """The addresses of `urls` with commas between them."""
        ...

    def start(self, *, deadline_s: float = ...) -> Self:
        """Start all nodes that do not run, and wait until the cluster is ready."""
        ...

    def node(self, name: str) -> NatsNode:
        """Return the node with this name."""
        ...

    def meta_leader(self) -> NatsNode | None:
        """Return the node that leads the meta group, or None while a majority names none."""
        ...

    def leader_of(self, stream: str, *, account: str = ...) -> NatsNode | None:
        """Return the node that leads a stream, or None while there is none."""
        ...

    def wait_until_ready(self, *, deadline_s: float = ...) -> None:
        """Wait until all nodes that run see each other and JetStream is ready on each of them."""
        ...

    def log_tail(self, n_lines: int = ...) -> str:
        """Return the last lines of each node's log, under the node's name."""
        ...
