"""The base of all test clusters: lifecycle and leaders."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from natsstream.arguments import check_int
from natsstream.errors import UsageError
from natsstream.foreign_names import answers_names
from natsstream.testing.binary import ServerStartError
from natsstream.testing.monitoring import (
    choose_leader,
    fetch_health,
    fetch_meta_leader,
    fetch_stream_leader,
    find_what_is_missing,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from natsstream.testing.backends import NatsNode
    from natsstream.testing.monitoring import Health

NODES_MAX = 7
# An answer of each node takes some milliseconds of its time; elections take seconds.
ASK_AGAIN_S = 0.05


Node = TypeVar("Node", bound="NatsNode")
T = TypeVar("T")


@answers_names("cluster")
class Members(ABC, Generic[Node]):
    """Nodes that form one JetStream cluster.

    Attributes:
        name: Name of the cluster, as the servers tell clients.
        servers: The nodes `n1`, `n2`, ... in this order, also before they are started.
    """

    name: str
    servers: list[Node]

    @abstractmethod
    def start(self) -> Self:
        """Start all nodes that do not run, and wait until the cluster is ready."""

    @abstractmethod
    def stop(self) -> None:
        """End all nodes; does nothing on a stopped cluster."""

    @abstractmethod
    def _url_of(self, node: Node) -> str:
        """Return a node's address for clients."""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def urls(self) -> list[str]:
        """Addresses for clients, one a node.

        Raises:
            UsageError: The cluster has not started yet.
        """
        return [self._url_of(node) for node in self.servers]

    @property
    def url(self) -> str:
        """The addresses of `urls` with commas between them, as `connect()` takes them.

        Raises:
            UsageError: The cluster has not started yet.
        """
        return ",".join(self.urls)

    def node(self, name: str) -> Node:
        """Return the node with this name, such as `n1`.

        Raises:
            UsageError: There is none.
        """
        for node in self.servers:
            if node.name == name:
                return node
        message = f"there is no node {name!r} in this cluster"
        raise UsageError(message, hint=f"one of {', '.join(node.name for node in self.servers)}")

    def wait_until_ready(self, *, deadline_s: float = 30.0) -> None:
        """Wait until all nodes that run see each other and JetStream is ready on each of them.

        Nodes that are down or paused are left out. One that is isolated is not ready.

        Args:
            deadline_s: Seconds to wait at most.

        Raises:
            ServerStartError: The cluster is not ready in time; `detail` says what is missing.
        """
        self._wait_until_ready(self._awake(), time.monotonic() + deadline_s)

    def meta_leader(self) -> Node | None:
        """Return the node that leads the meta group, or None while a majority names none.

        Cost: one request to each running node, at most 4 s when one does not answer.
        """
        opinions = self._ask(fetch_meta_leader)
        name = choose_leader(opinions, len(self.servers))
        return self.node(name) if name is not None else None

    def leader_of(self, stream: str, *, account: str = "$G") -> Node | None:
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
        other_than: Node | None = None,
        deadline_s: float = 30.0,
    ) -> Node:
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

    def _awake(self) -> list[Node]:
        return [node for node in self.servers if node.is_running and not node.is_paused]

    def _wait_until_ready(self, nodes: list[Node], deadline: float) -> None:
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

    def _fetch_healths(self, nodes: list[Node]) -> dict[str, Health | None]:
        healths = self._on_each(nodes, lambda node: _answer_of(node, fetch_health))
        return {node.name: health for node, health in zip(nodes, healths, strict=True)}

    def _ask(self, question: Callable[[str], T | None]) -> list[T]:
        """Return what the nodes that run and know an answer say to a question."""
        answers = self._on_each(self._awake(), lambda node: _answer_of(node, question))
        return [answer for answer in answers if answer is not None]

    def _on_each(self, nodes: list[Node], act: Callable[[Node], T]) -> list[T]:
        """Do something with all nodes, one after the other."""
        return [act(node) for node in nodes]


def node_names(size: int, *, single: str) -> list[str]:
    """Return the names of a cluster's nodes.

    Raises:
        UsageError: No cluster has this size; `single` is what to take for one server.
    """
    if not 2 <= check_int(size, "size") <= NODES_MAX:
        message = f"size is {size}, it must be between 2 and {NODES_MAX}"
        raise UsageError(message, hint=f"use {single} for a single server")
    return [f"n{number}" for number in range(1, size + 1)]


def _answer_of(node: NatsNode, question: Callable[[str], T | None]) -> T | None:
    # It may end at any moment, and then has no address.
    with contextlib.suppress(UsageError):
        return question(node.monitor_url)
    return None
