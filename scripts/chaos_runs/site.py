"""The servers of a run, one or a cluster, and what is between them and their clients.

Law: every server process that was started is remembered, so that in the end each can be looked for.
Methods wait; async code calls them by `Site.call`, one at a time.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar, cast

from natsstream.errors import NatsStreamError, UsageError
from natsstream.testing import FaultProxy, NatsCluster, NatsServer
from natsstream.testing.monitoring import fetch_page
from natsstream.testing.processes import has_exited
from scripts.chaos_runs.schedule import LINKS

ACCOUNT = "CHAOS"
# Stepping down as the cluster's leader is for the system account.
ADMIN_USER, ADMIN_PASSWORD = "admin", "admin"
_CONFIG = f"""
accounts {{
  {ACCOUNT} {{ jetstream: enabled, users: [{{user: app, password: app}}] }}
  SYS {{ users: [{{user: {ADMIN_USER}, password: {ADMIN_PASSWORD}}}] }}
}}
system_account: SYS
no_auth_user: app
"""
READY_S = 90.0
_START_S = 60.0

T = TypeVar("T")


class Site:
    """One server behind three proxies, or a cluster with proxies everywhere.

    Args:
        replicas: Nodes: 1, or 3 and more for a cluster.
        binary: The program of the servers; None for the installed one.

    Attributes:
        replicas: As given.
        cluster: The cluster; None for one server.
    """

    def __init__(self, replicas: int, binary: Path | None = None) -> None:
        self.replicas: int = replicas
        self._binary = binary
        self.cluster: NatsCluster | None = None
        self._server: NatsServer | None = None
        self._proxies: list[FaultProxy] = []
        self._pids: set[int] = set()
        self._thread = concurrent.futures.ThreadPoolExecutor(1, "chaos-site")

    async def call(self, function: Callable[[], T]) -> T:
        """Run something that waits, after what was asked for before."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    def start(self) -> None:
        """Start all servers."""
        if self.replicas == 1:
            self._server = NatsServer(config=_CONFIG, name="n1", binary=self._binary)
            self._server.start(deadline_s=_START_S)
            self._proxies = [FaultProxy(self._server.port).start() for _ in range(LINKS)]
        else:
            self.cluster = NatsCluster(size=self.replicas, config=_CONFIG, binary=self._binary)
            self.cluster.start(deadline_s=READY_S)
        self.note_pids()

    def stop(self) -> list[int]:
        """End everything; returns the processes that are still there."""
        self.note_pids()
        for proxy in self._proxies:
            proxy.stop()
        if self._server is not None:
            self._server.stop()
        if self.cluster is not None:
            self.cluster.stop()
        return [pid for pid in sorted(self._pids) if not has_exited(pid)]

    def end_thread(self) -> None:
        """End the thread that `call` uses."""
        self._thread.shutdown()

    @property
    def nodes(self) -> dict[str, NatsServer]:
        """The servers by name."""
        if self.cluster is not None:
            return {node.name: node for node in self.cluster.servers}
        return {"n1": self._server} if self._server is not None else {}

    @property
    def links(self) -> dict[str, FaultProxy]:
        """The ways of clients by name: `link1`, ..."""
        proxies = self._proxies
        if self.cluster is not None:
            proxies = [node.client_proxy for node in self.cluster.servers]
        return {f"link{number}": proxy for number, proxy in enumerate(proxies, start=1)}

    def urls(self, client: int) -> list[str]:
        """Return the addresses for a client, of which the first differs from client to client."""
        urls = [proxy.url for proxy in self.links.values()]
        if self.cluster is None:
            return [urls[client % len(urls)]]
        return [urls[(client + index) % len(urls)] for index in range(len(urls))]

    @property
    def direct_urls(self) -> list[str]:
        """Addresses that no proxy is in front of."""
        if self.cluster is not None:
            return [node.direct_url for node in self.cluster.servers]
        return [node.url for node in self.nodes.values()]

    def start_node(self, name: str) -> None:
        """Start a node that is down."""
        self.nodes[name].start(deadline_s=_START_S)
        self.note_pids()

    def note_pids(self) -> None:
        """Remember the processes that run now."""
        self._pids.update(node.pid for node in self.nodes.values() if node.is_running)

    def heal(self, streams: Sequence[str]) -> None:
        """End all faults, start what is down, and wait until everything works."""
        for node in self.nodes.values():
            if node.is_paused:
                node.resume()
        for proxy in self.links.values():
            proxy.heal()
        if self.cluster is not None:
            self.cluster.heal()
        for name in self.nodes:
            self.start_node(name)
        if self.cluster is not None:
            self.cluster.wait_until_ready(deadline_s=READY_S)
            for stream in streams:
                self.cluster.wait_for_leader(stream, account=ACCOUNT, deadline_s=READY_S)

    def subscriptions(self) -> dict[str, int]:
        """Return how many subscriptions the connected clients have, by the client's name."""
        rows = self._connections()
        return {str(row.get("name")): cast("int", row.get("subscriptions") or 0) for row in rows}

    def subjects_of(self, client: str) -> list[str]:
        """Return what a connected client listens to."""
        for row in self._connections(subs="true"):
            if row.get("name") == client:
                return cast("list[str]", row.get("subscriptions_list") or [])
        return []

    def _connections(self, **options: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = []
        for node in self.nodes.values():
            with suppress(UsageError):
                page = fetch_page(node.monitor_url, "/connz", acc=ACCOUNT, **options)
                body = page[1] if page is not None else {}
                found += cast("list[dict[str, object]]", body.get("connections") or [])
        return found

    def log_tail(self, n_lines: int) -> str:
        """Return the last lines of each server's log."""
        if self.cluster is not None:
            return self.cluster.log_tail(n_lines)
        with suppress(NatsStreamError):
            return "\n".join(node.log_tail(n_lines) for node in self.nodes.values())
        return ""
