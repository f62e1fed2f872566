"""A JetStream cluster of real nats-server processes, whose every link can be broken.

What lives here: the cluster's life, its cut links and its leaders. What must not: one server's life
(`servers.py`, `nodes.py`), the forwarding of bytes (`proxy.py`), pytest and nats-py.
Its law: each node is reached through proxies alone, by its peers and by its clients.

The folder of a cluster (`store_dir`, or a temporary one) holds the folder of each node: `n1/`, ...
"""

from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from natsstream.errors import UsageError
from natsstream.testing.binary import ServerStartError, find_nats_server
from natsstream.testing.loops import LoopThread
from natsstream.testing.monitoring import (
    choose_leader,
    fetch_health,
    fetch_meta_leader,
    fetch_stream_leader,
    find_forgotten,
    find_what_is_missing,
)
from natsstream.testing.nodes import ClusterNode

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from natsstream.testing.monitoring import Health
    from natsstream.testing.proxy import FaultProxy

CutMode: TypeAlias = Literal["cut", "stall"]

NODES_MAX = 7
# An answer of each node takes some milliseconds of its time; elections take seconds.
ASK_AGAIN_S = 0.05
# How long nodes may be missing in the meta group of a new cluster; others take 0.3 s to join.
FORGOTTEN_AFTER_S = 2.0

T = TypeVar("T")


class NatsCluster:
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
    When Python is ended by a signal the servers go on; the next `NatsCluster` on the same
    `store_dir` ends them. Not for use by several threads at once. Methods wait as long as they
    say: in async code call them with `asyncio.to_thread()` where that matters.

    Raft's times are nats-server's own and can not be set: a leader that is gone is replaced after 4
    to 9 s, one that is cut off gives up leading after 10 to 20 s.

    Attributes:
        servers: The nodes `n1`, `n2`, ... in this order, also before they are started.
    """

    def __init__(
        self,
        *,
        size: int = 3,
        store_dir: Path | None = None,
        max_payload_bytes: int | None = None,
        config: str = "",
        binary: Path | None = None,
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
            UsageError: A value that can not work.
        """
        if not 2 <= size <= NODES_MAX:
            message = f"size is {size}, it must be between 2 and {NODES_MAX}"
            raise UsageError(message, hint="use NatsServer for a single server")
        self.name: str = name
        self._store_dir = store_dir
        self._binary = binary
        self._folder: Path | None = None
        self._owner_pid = 0
        # One thread forwards the bytes of all links.
        self._loop_thread = LoopThread("natsstream-cluster")
        names = [f"n{number}" for number in range(1, size + 1)]
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
        """Addresses for clients, one a node, through the proxies.

        Raises:
            UsageError: The cluster has not started yet.
        """
        return [node.client_url for node in self.servers]

    @property
    def url(self) -> str:
        """The addresses of `urls` with commas between them, as `connect()` takes them.

        Raises:
            UsageError: The cluster has not started yet.
        """
        return ",".join(self.urls)

    @property
    def version(self) -> str:
        """Version of the program, such as `2.15.1`; needs no running server.

        Raises:
            ServerStartError: There is no program, or it does not run.
        """
        return self.servers[0].version

    def node(self, name: str) -> ClusterNode:
        """Return the node with this name, such as `n1`.

        Raises:
            UsageError: There is none.
        """
        for node in self.servers:
            if node.name == name:
                return node
        message = f"there is no node {name!r} in this cluster"
        raise UsageError(message, hint=f"one of {', '.join(node.name for node in self.servers)}")

    def start(self, *, deadline_s: float = 30.0) -> Self:
        """Start all nodes that do not run; return when there is a meta leader and all are current.

        Servers that an earlier, killed owner left running on the same folder are ended first.

        Args:
            deadline_s: Seconds until the cluster is ready. Ending orphans comes before that.

        Raises:
            ServerStartError: A node does not start, or the cluster is not ready in time. What the
                call made is removed again.

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
            atexit.unregister(self._stop_at_exit)
            atexit.register(self._stop_at_exit)
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
                goes on with the same data.

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

    def wait_until_ready(self, *, deadline_s: float = 30.0) -> None:
        """Wait until all nodes that run see each other and JetStream is ready on each of them.

        Nodes that are down or paused are left out. One that is isolated is not ready.

        Args:
            deadline_s: Seconds to wait at most.

        Raises:
            ServerStartError: The cluster is not ready in time; `detail` says what is missing.
        """
        awake = [node for node in self.servers if node.is_running and not node.is_paused]
        self._wait_until_ready(awake, time.monotonic() + deadline_s)

    def isolate(
        self,
        node: ClusterNode,
        *,
        peers: bool = True,
        clients: bool = False,
        mode: CutMode = "cut",
    ) -> None:
        """Cut a node off from its peers, from its clients, or from both, until `heal()`.

        Args:
            node: The node; the others go on among themselves.
            peers: Break its routes to the other nodes, both ways.
            clients: Break its connections to clients.
            mode: `cut` resets connections and refuses new ones, which both ends see at once;
                `stall` lets them hang, as a switch without power would.

        Raises:
            UsageError: The cluster is not running, or the node is not one of it.
        """
        if mode not in {"cut", "stall"}:
            message = f"{mode!r} is not a way to isolate a node"
            raise UsageError(message, hint="one of cut, stall")
        others = [other for other in self.servers if other is not self._member(node)]
        links = [self.link(node, other) for other in others] if peers else []
        if clients:
            links.append(node.client_proxy)
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

    def link(self, one: ClusterNode, other: ClusterNode) -> FaultProxy:
        """Return the proxy between two nodes, in either order.

        The node with the higher number dials the other: `to_server` is the direction from it.

        Raises:
            UsageError: A node is not of this cluster, or both are the same.
        """
        first, second = sorted(
            (one, other), key=lambda node: self.servers.index(self._member(node))
        )
        if first is second:
            message = f"{first.name} has no link to itself"
            raise UsageError(message, hint="pass two nodes")
        return first.route_proxies[second.name]

    def meta_leader(self) -> ClusterNode | None:
        """Return the node that leads the meta group, or None while a majority names none.

        Cost: one request to each running node, at most 4 s when one does not answer.
        """
        opinions = self._ask(fetch_meta_leader)
        name = choose_leader(opinions, len(self.servers))
        return self.node(name) if name is not None else None

    def leader_of(self, stream: str, *, account: str = "$G") -> ClusterNode | None:
        """Return the node that a majority of a stream's replicas takes for its leader, or None.

        Args:
            stream: Name of the stream; None is also the answer for one that does not exist.
            account: Account of the stream; `$G` is the one of servers without accounts.

        Cost: one request to each running node, at most 4 s when one does not answer.
        """
        opinions = self._ask(lambda url: fetch_stream_leader(url, stream, account))
        n_replicas = max((n_replicas for _, n_replicas in opinions), default=0)
        name = choose_leader((leader for leader, _ in opinions), n_replicas)
        return self.node(name) if name is not None else None

    def wait_for_leader(
        self,
        stream: str,
        *,
        account: str = "$G",
        other_than: ClusterNode | None = None,
        deadline_s: float = 30.0,
    ) -> ClusterNode:
        """Wait until a stream has a leader and return it.

        Args:
            stream: Name of the stream.
            account: Account of the stream.
            other_than: The node that does not count, such as the leader that was just killed.
            deadline_s: Seconds to wait at most.

        Raises:
            ServerStartError: There is no such leader in time.
        """
        deadline = time.monotonic() + deadline_s
        while True:
            leader = self.leader_of(stream, account=account)
            if leader is not None and leader is not other_than:
                return leader
            if time.monotonic() >= deadline:
                message = f"{stream} has no new leader after {deadline_s} s"
                hint = "a majority of the replicas must run and reach each other"
                raise ServerStartError(message, detail=self.log_tail(10), hint=hint)
            time.sleep(ASK_AGAIN_S)

    def log_tail(self, n_lines: int = 50) -> str:
        """Return the last lines of each node's log, under the node's name; they outlive `stop()`.

        Args:
            n_lines: Number of lines of each node.
        """
        return "\n".join(f"== {node.name}\n{node.log_tail(n_lines)}" for node in self.servers)

    def _member(self, node: ClusterNode) -> ClusterNode:
        if not any(node is own for own in self.servers):
            message = f"{node.name} is not a node of this cluster"
            raise UsageError(message, hint="take it from servers, node() or leader_of()")
        return node

    def _prepare(self) -> None:
        """Make folders and proxies, once; the servers need the proxies' ports."""
        if self._folder is not None:
            return
        if self._store_dir is None:
            self._folder = Path(tempfile.mkdtemp(prefix="natsstream-")).resolve()
        else:
            self._store_dir.mkdir(parents=True, exist_ok=True)
            self._folder = self._store_dir.resolve()
        self._owner_pid = os.getpid()
        atexit.register(self._stop_at_exit)
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

    def _wait_until_ready(self, nodes: list[ClusterNode], deadline: float) -> None:
        names = frozenset(node.name for node in nodes)
        while True:
            for node in nodes:
                if not node.is_running:
                    message = f"{node.name} ended before the cluster was ready"
                    raise ServerStartError(message, detail=node.log_tail(20))
            missing = find_what_is_missing(self._fetch_healths(nodes), names)
            if not missing:
                return
            if time.monotonic() >= deadline:
                message = f"the cluster is not ready: {missing}"
                hint = "check the links, and config= against the log lines above"
                raise ServerStartError(message, detail=self.log_tail(10), hint=hint)
            time.sleep(ASK_AGAIN_S)

    def _fetch_healths(self, nodes: list[ClusterNode]) -> dict[str, Health | None]:
        healths = self._on_each(nodes, lambda node: _answer_of(node, fetch_health))
        return {node.name: health for node, health in zip(nodes, healths, strict=True)}

    def _ask(self, question: Callable[[str], T | None]) -> list[T]:
        """Return what the nodes that run and know an answer say to a question."""
        awake = [node for node in self.servers if node.is_running and not node.is_paused]
        answers = self._on_each(awake, lambda node: _answer_of(node, question))
        return [answer for answer in answers if answer is not None]

    def _on_each(self, nodes: list[ClusterNode], act: Callable[[ClusterNode], T]) -> list[T]:
        """Do something with all nodes at the same time; the first error is raised at the end."""
        with concurrent.futures.ThreadPoolExecutor(NODES_MAX) as threads:
            return list(threads.map(act, nodes))

    def _let_go(self) -> None:
        atexit.unregister(self._stop_at_exit)
        folder, self._folder = self._folder, None
        with contextlib.ExitStack() as ending:
            # Each step runs, whatever the others raise; the last one first.
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

    def _stop_at_exit(self) -> None:
        # A forked child inherits the exit handlers, but not the servers.
        if os.getpid() == self._owner_pid:
            self.stop()


def _answer_of(node: ClusterNode, question: Callable[[str], T | None]) -> T | None:
    # It may end at any moment, and then has no address.
    with contextlib.suppress(UsageError):
        return question(node.monitor_url)
    return None
