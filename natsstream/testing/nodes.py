"""One server of a cluster, and the proxies that lead to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from natsstream.testing.ports import HOST
from natsstream.testing.proxy import FaultProxy
from natsstream.testing.servers import NatsServer

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Self

    from natsstream.testing.loops import LoopThread

# Servers tell each other the addresses of their peers, and would dial these past the proxies. So
# each tells this one, and each has it among its own routes: what is configured is not dialled once
# more, and an address that is the server's own is dropped in silence. It must be a name, since
# addresses are dialled unseen, and a port that nobody but root can listen on.
NOWHERE_PORT = 1
NOWHERE = f"localhost:{NOWHERE_PORT}"


class ClusterNode(NatsServer):
    """One server of a `NatsCluster`: all that a `NatsServer` does, behind proxies.

    `url` and `port` are those of `client_proxy`, so that `cluster.isolate(node, clients=True)`
    reaches every client. `start`, `stop`, `kill`, `pause`, `resume`, `restart` and `pulse` are the
    server's; after `start()` the cluster may need `wait_until_ready()`.

    Attributes:
        client_proxy: Proxy of the clients, with faults of its own.
        route_proxies: Proxies of the peers that dial this node, by the peer's name.
    """

    def __init__(
        self,
        *,
        name: str,
        dialled_by: Iterable[str],
        cluster_name: str,
        max_payload_bytes: int | None,
        config: str,
        binary: Path | str | None,
        loop_thread: LoopThread,
    ) -> None:
        """Describe a node; a `NatsCluster` does this."""
        super().__init__(
            max_payload_bytes=max_payload_bytes,
            config=config,
            binary=binary,
            name=name,
        )
        self._cluster_name = cluster_name
        self._routes: list[str] = []
        self.client_proxy: FaultProxy = FaultProxy(loop_thread=loop_thread)
        self.route_proxies: dict[str, FaultProxy] = {
            peer: FaultProxy(loop_thread=loop_thread) for peer in dialled_by
        }

    @property
    def port(self) -> int:
        """Port for clients: that of `client_proxy`, the same for the life of the cluster.

        Raises:
            UsageError: The cluster has not started yet.
        """
        return self.client_proxy.port

    @property
    def client_url(self) -> str:
        """Address for clients through the proxy, the same as `url`.

        Raises:
            UsageError: The cluster has not started yet.
        """
        return self.client_proxy.url

    @property
    def direct_url(self) -> str:
        """Address for clients past the proxy, which no fault reaches; new after each start.

        Raises:
            UsageError: The server has not started yet.
        """
        return f"nats://{HOST}:{super().port}"

    def settle(self, folder: Path, peers: Iterable[ClusterNode], size: int) -> None:
        """Take a folder, and the proxies to the peers that it dials; these must listen already."""
        self._store_dir = folder
        dialled = [f"{HOST}:{peer.route_proxies[self.name].port}" for peer in peers]
        # The meta group takes its size from the number of routes; equal ones would count as one.
        padding = [f"{index}@{NOWHERE}" for index in range(size - len(dialled))]
        self._routes = dialled + padding

    def start(self, *, deadline_s: float = 30.0) -> Self:
        """Start the server and lead its proxies to it; a running one stays as it is.

        Args:
            deadline_s: Seconds until it answers clients; the cluster may not be ready then.

        Raises:
            ServerStartError: As for `NatsServer.start()`.
        """
        if not self.is_running:
            # Peers that dial meanwhile wait for the port: a server whose first attempt fails tries
            # again a second later, when the first election has gone wrong already.
            self._lead_routes_to(None)
        super().start(deadline_s=deadline_s)
        self.client_proxy.target_port = super().port
        self._lead_routes_to(int(self._listeners["cluster"][0].rpartition(":")[2]))
        return self

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would, paused or not.

        Raises:
            NatsStreamError: The process does not end.
        """
        super().kill()
        # The port for routes is another one at the next start; a stranger may get this one.
        self._lead_routes_to(NOWHERE_PORT)

    def _port_to_take(self) -> int | None:
        # Clients know the proxy's. One that is kept may be taken by the monitor of a peer, which
        # starts at the same time and asks for any free port.
        return None

    def _lead_routes_to(self, port: int | None) -> None:
        for proxy in self.route_proxies.values():
            proxy.target_port = port

    def _config_lines(self) -> list[str]:
        routes = ", ".join(f'"nats://{route}"' for route in self._routes)
        return [
            *super()._config_lines(),
            # The address that clients get, also from the peers.
            f'client_advertise: "{HOST}:{self.port}"',
            "cluster {",
            f'  name: "{self._cluster_name}"',
            f'  listen: "{HOST}:-1"',
            f'  advertise: "{NOWHERE}"',
            # One connection between two nodes instead of four: a fault on it is a fault on all.
            "  pool_size: -1",
            f"  routes: [{routes}]",
            "}",
        ]
