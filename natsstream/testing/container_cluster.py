"""A JetStream cluster of nats-server containers on a Docker network of its own."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from natsstream.constructors import answers_arguments
from natsstream.errors import NatsStreamError
from natsstream.testing.atexit_stop import AtExit
from natsstream.testing.binary import ServerStartError
from natsstream.testing.containers import NatsContainer
from natsstream.testing.daemons import daemon_errors
from natsstream.testing.members import Members, node_names

# Below: testcontainers is an extra, whose absence `containers.py` turns into an error of ours.
from natsstream.testing.cleanup import owner_labels  # isort: skip
from testcontainers.core.network import Network  # isort: skip

if TYPE_CHECKING:
    from typing import Self

ROUTE_PORT = 6222


@answers_arguments
class NatsClusterContainer(Members[NatsContainer]):
    """nats-servers in Docker containers that form one JetStream cluster, for streams with R3.

    ```python
    with NatsClusterContainer() as cluster:
        js = await natsstream.connect(cluster.url)
        await js.streams.ensure("ORDERS", subjects=["orders.>"], replicas=3)
    ```

    The containers have a Docker network of their own, on which they are called `n1`, `n2`, ...;
    their ports for clients are published as those of `NatsContainer`. Single nodes may be killed,
    paused and restarted; links cannot be broken: use `NatsCluster` for that. Not for use by
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
            UsageError: A value that cannot work.
            ServerStartError: No Docker daemon answers.
        """
        names = node_names(size, single="NatsContainer")
        self.name: str = name
        self._network: Network | None = None
        self._at_exit = AtExit(self.stop)
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

    @property
    def version(self) -> str:
        """Version of the first node, which must be running.

        Raises:
            UsageError: The node is not running.
            NatsStreamError: It does not answer.
        """
        return self.servers[0].version

    def start(self, *, deadline_s: float = 60.0) -> Self:
        """Start all nodes that do not run; return when there is a meta leader and all are current.

        Args:
            deadline_s: Seconds until the cluster is ready. Finding the image comes before that.

        Raises:
            ServerStartError: A node does not start, or the cluster is not ready in time. On
                failure nothing is left behind.
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
                `start()` continues with the same data.

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
            self._at_exit.disarm()
            with daemon_errors(f"the network of {self.name} cannot be removed"):
                network.remove()
            # It has a client of its own, and no way to close it.
            network._docker.client.close()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if failures:
            raise failures[0]

    def _url_of(self, node: NatsContainer) -> str:
        return node.url

    def _make_network(self) -> None:
        network = Network(docker_network_kw={"labels": owner_labels()})
        network.name = f"natsstream-{secrets.token_hex(4)}"
        with daemon_errors("no Docker network can be made", ServerStartError):
            self._network = network.create()
        # The nodes have exit handlers of their own; registered before them, this runs after them.
        self._at_exit.arm()
        for node in self.servers:
            node.with_network(network).with_network_aliases(node.name)
