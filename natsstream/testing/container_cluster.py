"""A JetStream cluster of nats-server containers on a Docker network of its own.

What lives here: the network, the nodes' common life and their leaders. What must not: one
container's life (`containers.py`), and faults on single links, which need the proxies of
`NatsCluster`.
"""

from __future__ import annotations

import atexit
import os
import secrets
import time
from typing import TYPE_CHECKING

from natsstream.errors import NatsStreamError, UsageError
from natsstream.testing.binary import ServerStartError
from natsstream.testing.containers import NatsContainer
from natsstream.testing.daemons import daemon_errors
from natsstream.testing.leftovers import owner_labels
from natsstream.testing.monitoring import (
    choose_leader,
    fetch_health,
    fetch_meta_leader,
    fetch_stream_leader,
    find_what_is_missing,
)

# Below: testcontainers is an extra, whose absence `containers.py` turns into an error of ours.
from testcontainers.core.network import Network  # isort: skip

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

NODES_MAX = 7
ROUTE_PORT = 6222
ASK_AGAIN_S = 0.1


class NatsClusterContainer:
    """nats-servers in Docker containers that form one JetStream cluster, for streams with R3.

    ```python
    with NatsClusterContainer() as cluster:
        js = await natsstream.connect(cluster.url)
        await js.streams.ensure("ORDERS", subjects=["orders.>"], replicas=3)
    ```

    The containers have a Docker network of their own, on which they are called `n1`, `n2`, ...;
    their ports for clients are published as those of `NatsContainer`. Single nodes may be killed,
    paused and restarted; links can not be broken: use `NatsCluster` for that. Not for use by
    several threads at once.

    Attributes:
        servers: The nodes `n1`, `n2`, ... in this order, also before they are started.
    """

    def __init__(
        self,
        image: str | None = None,
        *,
        version: str | None = None,
        size: int = 3,
        max_payload_bytes: int | None = None,
        config: str = "",
        name: str = "natsstream",
    ) -> None:
        """Describe a cluster; nothing is started yet, but the Docker daemon must answer.

        Args:
            image: The image of all nodes, as for `NatsContainer`.
            version: The release of all nodes, as for `NatsContainer`.
            size: Number of nodes, 2 to 7.
            max_payload_bytes: Largest message; None is the server's default, 1 MiB.
            config: Text in nats-server's configuration format, given to every node.
            name: Name of the cluster, as the servers tell clients.

        Raises:
            UsageError: A value that can not work.
            ServerStartError: No Docker daemon answers.
        """
        if not 2 <= size <= NODES_MAX:
            message = f"size is {size}, it must be between 2 and {NODES_MAX}"
            raise UsageError(message, hint="use NatsContainer for a single server")
        self.name: str = name
        self._network: Network | None = None
        self._owner_pid = 0
        names = [f"n{number}" for number in range(1, size + 1)]
        # Each has all routes, also that to itself, which the server drops: the meta group takes
        # its size from their number.
        routes = ",".join(f"nats://{node_name}:{ROUTE_PORT}" for node_name in names)
        cluster = ["--cluster_name", name, "--cluster", f"nats://0.0.0.0:{ROUTE_PORT}"]
        self.servers: list[NatsContainer] = [
            NatsContainer(
                image,
                version=version,
                max_payload_bytes=max_payload_bytes,
                config=config,
                arguments=[*cluster, "--routes", routes],
                name=node_name,
            )
            for node_name in names
        ]

    def __repr__(self) -> str:
        return f"<NatsClusterContainer {self.name} {self.servers}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def urls(self) -> list[str]:
        """Addresses for clients, one a node.

        Raises:
            UsageError: The cluster has not started yet.
        """
        return [node.url for node in self.servers]

    @property
    def url(self) -> str:
        """The addresses of `urls` with commas between them, as `connect()` takes them.

        Raises:
            UsageError: The cluster has not started yet.
        """
        return ",".join(self.urls)

    @property
    def version(self) -> str:
        """Version of the first node, which must be running.

        Raises:
            UsageError: The node is not running.
            NatsStreamError: It does not answer.
        """
        return self.servers[0].version

    def node(self, name: str) -> NatsContainer:
        """Return the node with this name, such as `n1`.

        Raises:
            UsageError: There is none.
        """
        for node in self.servers:
            if node.name == name:
                return node
        message = f"there is no node {name!r} in this cluster"
        raise UsageError(message, hint=f"one of {', '.join(node.name for node in self.servers)}")

    def start(self, *, deadline_s: float = 60.0) -> Self:
        """Start all nodes that do not run; return when there is a meta leader and all are current.

        Args:
            deadline_s: Seconds until the cluster is ready. Finding the image comes before that.

        Raises:
            ServerStartError: A node does not start, or the cluster is not ready in time. What the
                call made is removed again.
        """
        is_new = self._network is None
        try:
            if self._network is None:
                self._make_network()
            deadline = time.monotonic() + deadline_s
            for node in self.servers:
                node.start(deadline_s=max(deadline - time.monotonic(), 1.0))
            self._wait_until_ready(self.servers, deadline)
        except BaseException:
            if is_new:
                self.stop()
            raise
        return self

    def stop(self, *, deadline_s: float = 10.0, keep_store: bool = False) -> None:
        """Remove all containers and the network; does nothing on a stopped cluster.

        Args:
            deadline_s: Seconds that each server has to end by itself, with `keep_store`.
            keep_store: End the servers in good order and keep containers and network, so that
                `start()` goes on with the same data.

        Raises:
            NatsStreamError: The daemon does not remove a container or the network.
        """
        failures: list[NatsStreamError] = []
        for node in self.servers:
            try:
                node.stop(deadline_s=deadline_s, keep_store=keep_store)
            except NatsStreamError as error:
                failures.append(error)  # The others must not be left for one that fails.
        if not keep_store and self._network is not None:
            network, self._network = self._network, None
            atexit.unregister(self._stop_at_exit)
            with daemon_errors(f"the network of {self.name} can not be removed"):
                network.remove()
            # It has a client of its own, and no way to close it.
            network._docker.client.close()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if failures:
            raise failures[0]

    def wait_until_ready(self, *, deadline_s: float = 30.0) -> None:
        """Wait until all nodes that run see each other and JetStream is ready on each of them.

        Nodes that are down or paused are left out.

        Args:
            deadline_s: Seconds to wait at most.

        Raises:
            ServerStartError: The cluster is not ready in time, or a node ended.
        """
        self._wait_until_ready(self._awake(), time.monotonic() + deadline_s)

    def meta_leader(self) -> NatsContainer | None:
        """Return the node that leads the meta group, or None while a majority names none.

        Cost: one request to each running node, at most 4 s when one does not answer.
        """
        opinions = [fetch_meta_leader(node.monitor_url) for node in self._awake()]
        name = choose_leader((opinion for opinion in opinions if opinion), len(self.servers))
        return self.node(name) if name is not None else None

    def leader_of(self, stream: str, *, account: str = "$G") -> NatsContainer | None:
        """Return the node that a majority of a stream's replicas takes for its leader, or None.

        Args:
            stream: Name of the stream; None is also the answer for one that does not exist.
            account: Account of the stream; `$G` is the one of servers without accounts.

        Cost: one request to each running node, at most 4 s when one does not answer.
        """
        answers = [fetch_stream_leader(node.monitor_url, stream, account) for node in self._awake()]
        opinions = [answer for answer in answers if answer is not None]
        n_replicas = max((n_replicas for _, n_replicas in opinions), default=0)
        name = choose_leader((leader for leader, _ in opinions), n_replicas)
        return self.node(name) if name is not None else None

    def log_tail(self, n_lines: int = 50) -> str:
        """Return the last lines of each node's log, under the node's name; they outlive `stop()`.

        Args:
            n_lines: Number of lines of each node.
        """
        return "\n".join(f"== {node.name}\n{node.log_tail(n_lines)}" for node in self.servers)

    def _awake(self) -> list[NatsContainer]:
        return [node for node in self.servers if node.is_running and not node.is_paused]

    def _wait_until_ready(self, nodes: list[NatsContainer], deadline: float) -> None:
        names = frozenset(node.name for node in nodes)
        while True:
            for node in nodes:
                if not node.is_running:
                    message = f"{node.name} ended before the cluster was ready"
                    raise ServerStartError(message, detail=node.log_tail(20))
            healths = {node.name: fetch_health(node.monitor_url) for node in nodes}
            missing = find_what_is_missing(healths, names)
            if not missing:
                return
            if time.monotonic() >= deadline:
                message = f"the cluster {self.name} was not ready in time: {missing}"
                raise ServerStartError(message, detail=self.log_tail(10))
            time.sleep(ASK_AGAIN_S)

    def _make_network(self) -> None:
        self._owner_pid = os.getpid()
        network = Network(docker_network_kw={"labels": owner_labels()})
        network.name = f"natsstream-{secrets.token_hex(4)}"
        with daemon_errors("no Docker network can be made", ServerStartError):
            self._network = network.create()
        # The nodes have exit handlers of their own; registered before them, this runs after them.
        atexit.register(self._stop_at_exit)
        for node in self.servers:
            node.with_network(network).with_network_aliases(node.name)

    def _stop_at_exit(self) -> None:
        # A forked child inherits the exit handlers, but not the containers.
        if os.getpid() == self._owner_pid:
            self.stop()
