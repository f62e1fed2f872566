"""Real clusters: what they promise to tests, and that they leave nothing behind."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from natsstream.errors import UsageError
from natsstream.testing import ClusterNode, NatsCluster, ServerStartError
from natsstream.testing.monitoring import fetch_page
from natsstream.testing.processes import has_exited
from tests.support import held
from tests.support.eventually import eventually
from tests.support.raw_nats import request

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

STREAM = "ORDERS"
# Leaders change after 4 to 9 s, and twice that when a vote is split.
ELECTION_WAIT_S = 40.0

# Starts a cluster on the folder given, tells its pids, and waits until it is ended.
OWNER_PROGRAM = """
import sys
from pathlib import Path
from natsstream.testing import NatsCluster
cluster = NatsCluster(store_dir=Path(sys.argv[1])).start()
print(*(node.pid for node in cluster.servers), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def cluster() -> Iterator[NatsCluster]:
    with NatsCluster() as running:
        yield running


def make_stream(node: ClusterNode) -> None:
    config = {"name": STREAM, "subjects": ["orders"], "num_replicas": 3}

    def is_made() -> bool:
        # In an election nobody answers; what is there already is answered as if it were new.
        with contextlib.suppress(OSError):
            subject = f"$JS.API.STREAM.CREATE.{STREAM}"
            answer = request(node.port, subject, json.dumps(config).encode(), timeout_s=5)
            assert "error" not in answer, answer
            return True
        return False

    eventually(is_made, within_s=ELECTION_WAIT_S)


def publish(node: ClusterNode, msg_id: str) -> int | None:
    """Return the sequence of the acknowledged message; nothing when there was no ack."""
    with contextlib.suppress(OSError):
        answer = request(node.port, "orders", b"x", timeout_s=2, msg_id=msg_id)
        return cast("int | None", answer.get("seq"))
    return None


def published(node: ClusterNode, msg_id: str) -> int | None:
    """Publish until there is an ack: the stream's leader may be unknown there, or its ack late."""
    return eventually(lambda: publish(node, msg_id), within_s=ELECTION_WAIT_S)


def count_messages(node: ClusterNode) -> int | None:
    with contextlib.suppress(OSError):
        answer = request(node.port, f"$JS.API.STREAM.INFO.{STREAM}", timeout_s=2)
        if "state" in answer:
            return cast("dict[str, int]", answer["state"])["messages"]
    return None


def routes_of(node: ClusterNode) -> list[dict[str, object]]:
    page = eventually(lambda: fetch_page(node.monitor_url, "/routez"))
    assert page is not None
    return cast("list[dict[str, object]]", page[1].get("routes", []))


def read_info(port: int) -> dict[str, object]:
    with (
        socket.create_connection(("127.0.0.1", port), 10) as wire,
        wire.makefile("rb") as lines,
    ):
        return cast("dict[str, object]", json.loads(lines.readline().removeprefix(b"INFO ")))


def is_reset(wire: socket.socket) -> bool:
    """Tell whether a connection ends with a reset, after what came before it."""
    try:
        while wire.recv(4096):
            pass
    except ConnectionResetError:
        return True
    return False


@contextlib.contextmanager
def owner_process(store_dir: Path) -> Generator[tuple[subprocess.Popen[str], list[int]]]:
    """Run a Python process that owns a cluster on the folder; gives it and the servers' pids."""
    command = [sys.executable, "-W", "error", "-c", OWNER_PROGRAM, str(store_dir)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pids = [int(pid) for pid in owner.stdout.readline().split()]
        try:
            yield owner, pids
        finally:
            owner.kill()
            owner.wait()


def test_cluster_is_ready_for_replicated_streams_after_start(cluster: NatsCluster) -> None:
    assert [node.name for node in cluster.servers] == ["n1", "n2", "n3"]
    assert eventually(cluster.meta_leader) in cluster.servers
    assert cluster.url == ",".join(cluster.urls)

    make_stream(cluster.node("n2"))

    assert published(cluster.node("n3"), "1") == 1
    assert cluster.wait_for_leader(STREAM) in cluster.servers
    assert cluster.leader_of("NO_SUCH_STREAM") is None
    assert all(f"== {node.name}" in cluster.log_tail() for node in cluster.servers)


def test_clients_learn_the_proxies_addresses_only(cluster: NatsCluster) -> None:
    behind_proxies = {url.removeprefix("nats://") for url in cluster.urls}
    for node in cluster.servers:
        assert node.client_url == node.url != node.direct_url
        direct_port = int(node.direct_url.rpartition(":")[2])
        for port in (node.port, direct_port):
            info = read_info(port)
            assert info["server_name"] == node.name
            assert set(cast("list[str]", info["connect_urls"])) == behind_proxies
            assert info["port"] == node.port


def test_every_route_goes_through_a_proxy(cluster: NatsCluster) -> None:
    """Counted at both ends, and again after the nodes had to find each other anew."""
    for _ in range(2):
        # An attempt that came to nothing may still be closing.
        eventually(lambda: [len(routes_of(node)) for node in cluster.servers] == [2, 2, 2])
        links = [proxy for node in cluster.servers for proxy in node.route_proxies.values()]
        eventually(lambda links=links: [link.connection_count for link in links] == [1, 1, 1])

        for node in cluster.servers:
            cluster.isolate(node)
        eventually(lambda: not any(routes_of(node) for node in cluster.servers))

        cluster.heal()
        cluster.wait_until_ready()


def test_acknowledged_messages_survive_kill_of_the_leader(cluster: NatsCluster) -> None:
    make_stream(cluster.servers[0])
    for number in range(10):
        assert published(cluster.servers[0], str(number)) == number + 1
    leader = cluster.wait_for_leader(STREAM)

    leader.kill()
    new_leader = cluster.wait_for_leader(STREAM, other_than=leader, deadline_s=ELECTION_WAIT_S)

    assert new_leader is not leader
    eventually(lambda: count_messages(new_leader) == 10, within_s=ELECTION_WAIT_S)
    assert published(new_leader, "10") == 11
    leader.start()
    cluster.wait_until_ready()
    eventually(lambda: count_messages(leader) == 11, within_s=ELECTION_WAIT_S)


def test_isolated_leader_is_replaced_and_comes_back_as_follower(cluster: NatsCluster) -> None:
    make_stream(cluster.servers[0])
    assert published(cluster.servers[0], "1") == 1
    leader = cluster.wait_for_leader(STREAM)

    cluster.isolate(leader)
    new_leader = cluster.wait_for_leader(STREAM, other_than=leader, deadline_s=ELECTION_WAIT_S)
    assert published(new_leader, "2") == 2
    assert not publish(leader, "nobody confirms it")

    cluster.heal()
    cluster.wait_until_ready()
    assert cluster.wait_for_leader(STREAM) is not leader
    # For a moment it may take itself for the leader still, and answer by itself.
    eventually(lambda: count_messages(leader) == 2, within_s=ELECTION_WAIT_S)


def test_stalled_leader_is_replaced(cluster: NatsCluster) -> None:
    make_stream(cluster.servers[0])
    leader = cluster.wait_for_leader(STREAM)

    cluster.isolate(leader, mode="stall")
    cluster.wait_for_leader(STREAM, other_than=leader, deadline_s=ELECTION_WAIT_S)
    assert len(routes_of(leader)) == 2  # The connections hang; nobody has noticed yet.

    cluster.heal()
    cluster.wait_until_ready()


def test_node_without_clients_still_works_for_its_peers(cluster: NatsCluster) -> None:
    make_stream(cluster.servers[0])
    node, other = cluster.servers[:2]
    with socket.create_connection(("127.0.0.1", node.port), 10) as wire:
        assert wire.recv(5) == b"INFO "
        cluster.isolate(node, peers=False, clients=True)
        assert is_reset(wire)
    with pytest.raises(ConnectionRefusedError):
        read_info(node.port)
    cluster.wait_until_ready()
    assert published(other, "1") == 1

    cluster.heal()
    assert published(node, "2") == 2


def test_paused_node_is_left_out_and_comes_back(cluster: NatsCluster) -> None:
    make_stream(cluster.servers[0])
    leader = cluster.wait_for_leader(STREAM)

    leader.pause()
    assert leader.is_paused
    cluster.wait_for_leader(STREAM, other_than=leader, deadline_s=ELECTION_WAIT_S)
    leader.resume()

    cluster.wait_until_ready()
    assert not leader.is_paused


def test_minority_has_no_leader(cluster: NatsCluster) -> None:
    make_stream(cluster.servers[0])
    cluster.wait_for_leader(STREAM)
    for node in cluster.servers[:2]:
        node.kill()

    assert cluster.leader_of(STREAM) is None
    assert cluster.meta_leader() is None
    with pytest.raises(ServerStartError, match="no new leader") as caught:
        cluster.wait_for_leader(STREAM, deadline_s=0.2)
    assert "majority" in caught.value.hint

    cluster.start()
    assert all(node.is_running for node in cluster.servers)
    cluster.wait_for_leader(STREAM, deadline_s=ELECTION_WAIT_S)


def test_start_of_a_running_cluster_changes_nothing(cluster: NatsCluster) -> None:
    pids = [node.pid for node in cluster.servers]

    assert cluster.start() is cluster

    assert [node.pid for node in cluster.servers] == pids


def test_stop_frees_processes_threads_descriptors_and_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads, descriptors = held.threads(), held.descriptors()
    with NatsCluster() as cluster:
        pids = [node.pid for node in cluster.servers]
        cluster.isolate(cluster.servers[0], clients=True)
        cluster.servers[1].pause()

    cluster.stop()
    assert all(has_exited(pid) for pid in pids)
    assert held.threads() <= threads
    assert held.descriptors() <= descriptors
    assert list(tmp_path.iterdir()) == []
    assert "JetStream cluster" in cluster.log_tail()


def test_stopped_cluster_starts_anew() -> None:
    cluster = NatsCluster()
    for _ in range(2):
        with cluster:
            make_stream(cluster.servers[0])
            assert published(cluster.servers[1], "1") == 1
            cluster.isolate(cluster.servers[0], clients=True, mode="stall")
            cluster.isolate(cluster.servers[1], clients=True)


def test_kept_store_serves_the_next_start_at_the_same_addresses(cluster: NatsCluster) -> None:
    make_stream(cluster.servers[0])
    assert published(cluster.servers[0], "1") == 1
    urls = cluster.urls

    cluster.stop(keep_store=True)
    assert not any(node.is_running for node in cluster.servers)
    cluster.start()

    assert cluster.urls == urls
    eventually(lambda: count_messages(cluster.servers[2]) == 1, within_s=ELECTION_WAIT_S)


def test_folder_of_the_user_serves_the_next_cluster(tmp_path: Path) -> None:
    for n_messages in (1, 2):
        with NatsCluster(store_dir=tmp_path / "nodes") as cluster:
            if n_messages == 1:
                make_stream(cluster.servers[0])
            assert published(cluster.servers[0], str(n_messages)) == n_messages
    assert {path.name for path in (tmp_path / "nodes").iterdir()} == {"n1", "n2", "n3"}


def test_folder_of_an_open_cluster_is_refused_whole(tmp_path: Path) -> None:
    """Also that of a node which is stopped, and so holds no lock of its own."""
    with NatsCluster(store_dir=tmp_path) as cluster:
        cluster.servers[0].stop()
        held = {path: path.stat().st_mtime_ns for path in (tmp_path / "n1").rglob("*")}
        with pytest.raises(ServerStartError, match="another cluster uses the folder"):
            NatsCluster(store_dir=tmp_path).start()
        assert {path: path.stat().st_mtime_ns for path in (tmp_path / "n1").rglob("*")} == held
        cluster.servers[0].start()
    assert {path.name for path in tmp_path.iterdir()} == {"n1", "n2", "n3"}
    NatsCluster(store_dir=tmp_path).start().stop()


def test_servers_of_a_killed_owner_are_ended_before_the_next_start(tmp_path: Path) -> None:
    with owner_process(tmp_path) as (owner, orphan_pids):
        owner.kill()
        owner.wait()
        assert not any(has_exited(pid) for pid in orphan_pids)

        with NatsCluster(store_dir=tmp_path):
            assert all(has_exited(pid) for pid in orphan_pids)


def test_servers_are_ended_when_their_owner_ends_without_stop(tmp_path: Path) -> None:
    with owner_process(tmp_path) as (owner, pids):
        assert len(pids) == 3
        assert owner.stdin is not None
        owner.stdin.close()
        assert owner.wait(30) == 0

        assert all(has_exited(pid) for pid in pids)


def test_bad_config_is_told_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    threads = held.threads()

    with pytest.raises(ServerStartError, match="ended with code 1") as caught:
        NatsCluster(config="no_such_option: 1").start()

    assert 'unknown field "no_such_option"' in caught.value.detail
    assert list(tmp_path.iterdir()) == []
    assert held.threads() <= threads


def test_cluster_that_does_not_get_ready_is_ended_at_the_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All links are cut before the servers start, so there is never a meta leader."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    start_node = ClusterNode.start

    def start_patiently(node: ClusterNode, *, deadline_s: float) -> ClusterNode:
        """Let a busy machine start the nodes; the deadline here is that of the cluster."""
        assert deadline_s == 1
        return start_node(node)

    monkeypatch.setattr(ClusterNode, "start", start_patiently)
    cluster = NatsCluster()
    for node in cluster.servers[1:]:
        cluster.isolate(node)

    with pytest.raises(ServerStartError, match="not ready: n1 has no route to n2, n3"):
        cluster.start(deadline_s=1)

    assert not any(node.is_running for node in cluster.servers)
    assert list(tmp_path.iterdir()) == []


def test_config_payload_limit_and_names_reach_every_node() -> None:
    config = "jetstream { max_memory_store: 10MB }"
    with NatsCluster(size=2, max_payload_bytes=2_000_000, config=config, name="two") as cluster:
        for node in cluster.servers:
            info = read_info(node.port)
            assert info["max_payload"] == 2_000_000
            assert info["cluster"] == "two"
            assert "Max Memory:      10.00 MB" in node.log_tail(200)


def test_wrong_calls_are_refused() -> None:
    cluster, other = NatsCluster(), NatsCluster(size=2)
    one = cluster.servers[0]

    for size in (1, 8):
        with pytest.raises(UsageError, match="between 2 and 7"):
            NatsCluster(size=size)
    with pytest.raises(UsageError, match="n1, n2, n3"):
        cluster.node("n4")
    with pytest.raises(UsageError, match="not a node of this cluster"):
        cluster.isolate(other.servers[0])
    with pytest.raises(UsageError, match="no link to itself"):
        cluster.link(one, one)
    with pytest.raises(UsageError, match="not running"):
        _ = cluster.url
    assert cluster.link(one, cluster.servers[1]) is cluster.link(cluster.servers[1], one)
    cluster.stop()
