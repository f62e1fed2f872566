"""nats-server in Docker containers: their life, and that none of them is left."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import natsstream.blocking as ns
from natsstream.errors import PayloadTooLargeError, UsageError
from natsstream.testing import (
    NatsClusterContainer,
    NatsContainer,
    NatsServer,
    ServerStartError,
    find_nats_server,
)
from natsstream.testing.binary import version_of
from natsstream.testing.ports import says_info
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.needs_docker, pytest.mark.usefixtures("no_leak")]

RUN_TIMEOUT_S = 50
REQUEST_TIMEOUT_S = 30.0
STREAM = "ORDERS"

# Starts a container, tells its id and its owner's label, and waits until it is ended.
OWNER_PROGRAM = """
import sys
from natsstream.testing import NatsContainer
container = NatsContainer().start()
print(container.get_container_id(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def running() -> Iterator[NatsContainer]:
    """A container for the tests that leave it as it was."""
    with NatsContainer() as container:
        yield container


def store(url: str, count: int, *, replicas: int = 1) -> None:
    # A replicated stream elects a leader first, which takes seconds when the vote is split.
    with ns.connect(url, request_timeout=REQUEST_TIMEOUT_S) as js:
        stream = js.streams.ensure(STREAM, subjects=["orders"], replicas=replicas)
        for number in range(count):
            stream.publish("orders", b"%d" % number)


def stored(url: str) -> int:
    with ns.connect(url, request_timeout=REQUEST_TIMEOUT_S) as js:
        return js.streams.get(STREAM).info().state.messages


def containers() -> set[str]:
    done = subprocess.run(
        ["docker", "ps", "--all", "--quiet", "--no-trunc"],  # noqa: S607 - As in conftest.py.
        capture_output=True,
        text=True,
        timeout=RUN_TIMEOUT_S,
        check=True,
    )
    return set(done.stdout.split())


def test_container_runs_the_installed_release_and_listens_on_this_machine_only(
    running: NatsContainer,
) -> None:
    assert running.version == version_of(find_nats_server())
    assert running.url == f"nats://127.0.0.1:{running.port}"
    assert running.monitor_url.startswith("http://127.0.0.1:")


def test_data_and_port_outlive_kill_and_restart() -> None:
    with NatsContainer() as container:
        url = container.url
        store(url, 3)

        container.kill()
        assert not container.is_running
        container.start()
        assert (container.url, stored(url)) == (url, 3)

        container.restart()
        assert (container.url, stored(url)) == (url, 3)


def test_data_are_gone_after_stop() -> None:
    with NatsContainer() as container:
        store(container.url, 3)
        container.stop()
        container.stop()

        container.start()
        with ns.connect(container.url) as js:
            assert list(js.streams.names()) == []


def test_paused_container_keeps_its_port_and_says_nothing(running: NatsContainer) -> None:
    running.pause()
    assert running.is_paused
    assert running.is_running
    assert not says_info(running.port)
    running.pause()

    running.resume()
    running.resume()
    assert not running.is_paused
    eventually(lambda: says_info(running.port))


def test_paused_container_can_be_stopped() -> None:
    with NatsContainer() as container:
        container.pause()


def test_options_reach_the_server() -> None:
    with (
        NatsContainer(max_payload_bytes=2048, config="authorization { token: T }") as container,
        ns.connect(container.url, token="T") as js,  # noqa: S106 - Of a server for tests.
    ):
        stream = js.streams.ensure(STREAM, subjects=["orders"])
        stream.publish("orders", bytes(1024))
        with pytest.raises(PayloadTooLargeError):
            stream.publish("orders", bytes(4096))


def test_container_is_removed_when_the_block_fails() -> None:
    seen: list[str] = []

    def fail() -> None:
        with NatsContainer() as container:
            seen.append(container.get_container_id())
            raise RuntimeError("in the block")

    with pytest.raises(RuntimeError, match="in the block"):
        fail()
    assert not containers() & set(seen)


def test_container_that_somebody_removed_is_not_running_and_can_be_stopped() -> None:
    with NatsContainer() as container:
        container.get_wrapped_container().remove(force=True)

        assert not container.is_running


def test_bad_configuration_is_told_with_the_log() -> None:
    with pytest.raises(ServerStartError, match="before it was ready") as caught:
        NatsContainer(config="no_such_option: 1").start()

    assert "no_such_option" in caught.value.detail


def test_unknown_image_is_told_by_name() -> None:
    # Port 1 has no registry on any machine, so that the daemon is refused at once.
    with pytest.raises(ServerStartError, match=r"127\.0\.0\.1:1/none:1 here, and it cannot"):
        NatsContainer("127.0.0.1:1/none:1").start()


def test_illegal_image_name_is_told() -> None:
    with pytest.raises(ServerStartError, match="Not An Image"):
        NatsContainer("Not An Image").start()


def test_taken_port_is_told() -> None:
    with NatsServer() as other, pytest.raises(ServerStartError, match=str(other.port)):
        NatsContainer(port=other.port).start()


def test_log_outlives_the_container() -> None:
    with NatsContainer() as container:
        pass

    assert "Server is ready" in container.log_tail(10)
    assert container.log_tail(0) == ""
    with pytest.raises(UsageError, match="is not running"):
        _ = container.monitor_url


@pytest.mark.needs_versions
def test_older_release_is_run_when_asked_for() -> None:
    with NatsContainer(version="2.12") as container:
        assert container.version == "2.12.8"


def test_python_that_ends_without_stop_leaves_no_container() -> None:
    container, owner = start_owner()
    assert container in containers()

    owner.communicate(timeout=RUN_TIMEOUT_S)

    assert owner.returncode == 0
    assert container not in containers()


def test_next_start_removes_what_a_killed_python_left() -> None:
    living, living_owner = start_owner()
    left, dead_owner = start_owner()
    try:
        dead_owner.kill()
        dead_owner.communicate(timeout=RUN_TIMEOUT_S)
        with NatsContainer():
            # Where the reaper runs it may have been quicker.
            eventually(lambda: left not in containers())
            assert living in containers()
    finally:
        living_owner.communicate(timeout=RUN_TIMEOUT_S)


def test_cluster_elects_another_leader_when_one_is_killed() -> None:
    with NatsClusterContainer() as cluster:
        store(cluster.url, 5, replicas=3)
        leader = eventually(lambda: cluster.leader_of(STREAM))
        assert leader is not None
        leader.kill()

        def successor() -> NatsContainer | None:
            found = cluster.leader_of(STREAM)
            return found if found is not leader else None

        # Raft waits 4 to 9 s before it takes a leader for lost.
        assert eventually(successor, within_s=30) in cluster.servers
        eventually(lambda: stored(cluster.url) == 5)
        leader.start()
        cluster.wait_until_ready()
        assert eventually(cluster.meta_leader) in cluster.servers


def test_cluster_goes_on_with_its_data_after_a_stop_that_keeps_it() -> None:
    with NatsClusterContainer() as cluster:
        urls = cluster.urls
        store(cluster.url, 5, replicas=3)
        cluster.stop(keep_store=True)
        assert not any(node.is_running for node in cluster.servers)

        cluster.start()

        assert cluster.urls == urls
        eventually(lambda: cluster.leader_of(STREAM), within_s=30)
        eventually(lambda: stored(cluster.url) == 5)


def test_cluster_whose_node_fails_leaves_nothing() -> None:
    with pytest.raises(ServerStartError, match="before it was ready"):
        NatsClusterContainer(config="no_such_option: 1").start()


def start_owner() -> tuple[str, subprocess.Popen[str]]:
    """Start a Python process that owns a container; return the container's id and the process."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER_PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert owner.stdout is not None
    return owner.stdout.readline().strip(), owner
