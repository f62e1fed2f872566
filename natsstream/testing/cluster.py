"""A JetStream cluster of real nats-server processes, whose every link can be broken.

The folder of a cluster (`store_dir`, or a temporary one) holds the folder of each node: `n1/`, ...
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from natsstream.constructors import answers_arguments
from natsstream.errors import UsageError
from natsstream.testing.atexit_stop import AtExit
from natsstream.testing.binary import find_nats_server
from natsstream.testing.loops import LoopThread
from natsstream.testing.members import ASK_AGAIN_S, NODES_MAX, Members, node_names
from natsstream.testing.monitoring import find_forgotten, find_what_is_missing
from natsstream.testing.nodes import ClusterNode
from natsstream.testing.store_lock import lock_folder, lock_given
from natsstream.testing.temporary import keep_folder, temporary_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from natsstream.testing.proxy import FaultProxy

CutMode: TypeAlias = Literal["cut", "stall"]

# How long nodes may be missing in the meta group of a new cluster; others take 0.3 s to join.
FORGOTTEN_AFTER_S = 2.0

T = TypeVar("T")


@answers_arguments
class NatsCluster(Members[ClusterNode]):
    """nats-servers on 127.0.0.1 that form one JetStream cluster, with a proxy on every link.

    ```python
    with NatsCluster() as cluster:
        async with natsstream.connect(cluster.url) as js:
            await js.streams.ensure("ORDERS", subjects=["orders.>"], replicas=3)
            leader = cluster.wait_for_leader("ORDERS")
            cluster.isolate(leader)
            await asyncio.to_thread(cluster.wait_for_leader, "ORDERS", other_than=leader)
            cluster.heal()
    ```

    It lives until `stop()`, the end of its `with` block, or the normal end of the Python process.
    When Python is ended by a signal the servers go on; they are ended as those of `NatsServer`.
    Not for use by several threads at once. Methods wait as long as they say: in async code call
    them with `asyncio.to_thread()` where that matters.

    Raft's times are nats-server's own and cannot be set: a leader that is gone is replaced after 4
    to 9 s, one that is cut off gives up leading after 10 to 20 s.

    Attributes:
        servers: The nodes `n1`, `n2`, ... in this order, also before they are started.
    """

    def __init__(
        self,
        *,
        size: int = 3,
        store_dir: Path | str | None = None,
        max_payload_bytes: int | None = None,
        config: str = "",
        binary: Path | str | None = None,
        name: str = "natsstream",
    ) -> None:
        """Describe a cluster; nothing is started or written yet.

        Args:
            size: Number of nodes, 2 to 7.
            store_dir: Folder for the nodes' folders, made when missing and never removed. None
                makes a temporary folder, which `stop()` removes.
            max_payload_bytes: Largest message, at most 64 MiB; None is the server's default, 1 MiB.
            config: Text in nats-server's configuration format, given to every node, put at the end
                of the generated file. A `cluster` block in it takes the place of the generated one.
            binary: The program to run; None takes what `find_nats_server()` finds.
            name: Name of the cluster, as the servers tell clients.

        Raises:
            UsageError: A value that cannot work.
        """
        names = node_names(size, single="NatsServer")
        self.name: str = name
        self._store_dir = None if store_dir is None else Path(store_dir)
        self._binary = binary
        self._folder: Path | None = None
        self._lock_fd: int | None = None
        self._at_exit = AtExit(self.stop)
        # One thread forwards the bytes of all links.
        self._loop_thread = LoopThread("natsstream-cluster")
        self.servers: list[ClusterNode] = [
            ClusterNode(
                name=node_name,
                # Were each to dial the other, both connections could end as duplicates of the
                # other: a second is lost, and the first election, which costs 4 to 9 s more.
                dialled_by=names[number:],
                cluster_name=name,
                max_payload_bytes=max_payload_bytes,
                config=config,
                binary=binary,
                loop_thread=self._loop_thread,
            )
            for number, node_name in enumerate(names, start=1)
        ]

    def __repr__(self) -> str:
        return f"<NatsCluster {self.name} {self.servers}>"

    @property
    def version(self) -> str:
        """Version of the program, such as `2.15.1`; needs no running server.

        Raises:
            ServerStartError: There is no program, or it does not run.
        """
        return self.servers[0].version

    def start(self, *, deadline_s: float = 30.0) -> Self:
        """Start all nodes that do not run; return when there is a meta leader and all are current.

        Servers that an earlier, killed owner left running on the same folder are ended first.

        Args:
            deadline_s: Seconds until the cluster is ready. Ending orphans comes before that.

        Raises:
            ServerStartError: A node does not start, or the cluster is not ready in time. On
                failure nothing is left behind.

        Cost: on two cores some 0.4 s for three new nodes; 4 to 9 s more when the first vote is
        split, as on a busy machine, and always on a store that had a leader before.
        """
        is_new = self._folder is None
        try:
            find_nats_server(self._binary)
            self._prepare()
            deadline = time.monotonic() + deadline_s
            self._on_each(self.servers, lambda node: node.start(deadline_s=deadline_s))
            # The servers' own exit handlers end them one after the other, ours all at once; the
            # one that was registered last runs first.
            self._at_exit.arm()
            self._restart_forgotten(deadline)
            self._wait_until_ready(self.servers, deadline)
        except BaseException:
            if is_new:
                self.stop()
            raise
        return self

    def stop(self, *, deadline_s: float = 10.0, keep_store: bool = False) -> None:
        """End all nodes, proxies and faults; does nothing on a stopped cluster.

        A temporary store is thrown away, so its servers are killed, which takes some 0.05 s.
        Servers on a folder that stays are ended in good order, all at once.

        Args:
            deadline_s: Seconds that the servers have to end by themselves after SIGTERM.
            keep_store: Keep folders, claims, ports and proxies, faults included, so that `start()`
                continues with the same data.

        Raises:
            NatsStreamError: A process or a thread does not end.
        """
        if self._folder is None:
            return
        if keep_store or self._store_dir is not None:
            self._on_each(
                self.servers, lambda node: node.stop(deadline_s=deadline_s, keep_store=keep_store)
            )
        if not keep_store:
            self._let_go()

    def isolate(
        self,
        node: ClusterNode | str,
        *,
        peers: bool = True,
        clients: bool = False,
        mode: CutMode = "cut",
    ) -> None:
        """Cut a node off from its peers, from its clients, or from both, until `heal()`.

        Args:
            node: The node, or its name; the others go on among themselves.
            peers: Break its routes to the other nodes, both ways.
            clients: Break its connections to clients.
            mode: `cut` resets connections and refuses new ones, which both ends see at once;
                `stall` lets them hang, as a switch without power would.

        Raises:
            UsageError: The cluster is not running, or the node is not one of it.
        """
        if mode not in {"cut", "stall"}:
            raise UsageError(f"{mode!r} is not a way to isolate a node", hint="one of cut, stall")
        member = self._member(node)
        others = [other for other in self.servers if other is not member]
        links = [self.link(member, other) for other in others] if peers else []
        if clients:
            links.append(member.client_proxy)
        for proxy in links:
            if mode == "cut":
                proxy.cut()
            else:
                proxy.stall()

    def heal(self) -> None:
        """End all faults of all links; nodes that are down or paused stay so.

        Nodes dial each other again within some 1 s; `wait_until_ready()` waits for that.
        """
        for node in self.servers:
            for proxy in (node.client_proxy, *node.route_proxies.values()):
                proxy.heal()

    def link(self, one: ClusterNode | str, other: ClusterNode | str) -> FaultProxy:
        """Return the proxy between two nodes or their names, in either order.

        The node with the higher number dials the other: `to_server` is the direction from it.

        Raises:
            UsageError: A node is not of this cluster, or both are the same.
        """
        first, second = sorted(map(self._member, (one, other)), key=self.servers.index)
        if first is second:
            raise UsageError(f"{first.name} has no link to itself", hint="pass two nodes")
        return first.route_proxies[second.name]

    def _url_of(self, node: ClusterNode) -> str:
        return node.client_url  # Through its proxy.

    def _member(self, node: ClusterNode | str) -> ClusterNode:
        if isinstance(node, str):
            return self.node(node)
        if not any(node is own for own in self.servers):
            message = f"{getattr(node, 'name', node)} is not a node of this cluster"
            raise UsageError(message, hint="take it from servers, node() or leader_of()")
        return node

    def _prepare(self) -> None:
        """Make folders and proxies, once; the servers need the proxies' ports."""
        if self._folder is not None:
            return
        if self._store_dir is None:
            self._folder = temporary_folder()
            # Nodes that are stopped alone give up the locks of theirs.
            self._lock_fd = lock_folder(self._folder)
        else:
            self._store_dir.mkdir(parents=True, exist_ok=True)
            folder = self._store_dir.resolve()
            self._lock_fd = lock_given(folder)
            self._folder = folder
            keep_folder(self._folder)
        self._at_exit.arm()
        self._loop_thread.start()
        for node in self.servers:
            for proxy in (node.client_proxy, *node.route_proxies.values()):
                proxy.start()
        for index, node in enumerate(self.servers):
            node.settle(self._folder / node.name, self.servers[:index], len(self.servers))

    def _restart_forgotten(self, deadline: float) -> None:
        """Restart the nodes that a leader left out when it counted its peers, as 2.10 may do.

        A leader that is elected before a peer has said that it has JetStream makes the meta group
        smaller, and takes the peer in only when that has something to tell.
        """
        ends = min(deadline, time.monotonic() + FORGOTTEN_AFTER_S)
        while True:
            healths = self._fetch_healths(self.servers)
            names = frozenset(healths)
            if not find_what_is_missing(healths, names):
                return
            if time.monotonic() >= ends:
                break
            time.sleep(ASK_AGAIN_S)
        for name in sorted(find_forgotten(healths)):
            self.node(name).kill()
            self.node(name).start()

    def _on_each(self, nodes: list[ClusterNode], act: Callable[[ClusterNode], T]) -> list[T]:
        """Do something with all nodes at the same time; the first error is raised at the end."""
        with concurrent.futures.ThreadPoolExecutor(NODES_MAX) as threads:
            return list(threads.map(act, nodes))

    def _let_go(self) -> None:
        self._at_exit.disarm()
        folder, self._folder = self._folder, None
        with contextlib.ExitStack() as ending:
            # Each step runs, whatever the others raise; the last one first.
            if self._lock_fd is not None:
                ending.callback(os.close, self._lock_fd)
                self._lock_fd = None
            if folder is not None and self._store_dir is None:
                ending.callback(shutil.rmtree, folder, ignore_errors=True)
            ending.callback(self.heal)
            ending.callback(self._loop_thread.stop)
            for node in self.servers:
                for proxy in (node.client_proxy, *node.route_proxies.values()):
                    ending.callback(proxy.stop)
                ending.callback(node.stop)
            for node in self.servers:
                ending.callback(node.kill)
