"""What containers ask of the daemon, and the rules that need none."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
from testcontainers.core.config import testcontainers_config

from natsstream.errors import MissingExtraError, UsageError
from natsstream.testing import NatsContainer, ServerStartError
from natsstream.testing.cleanup import OWNER_LABEL, owner_labels
from natsstream.testing.daemons import prepare
from natsstream.testing.images import build_image, default_image, default_version
from natsstream.testing.owners import is_dead
from natsstream.testing.versions import RELEASES

ROOT = Path(__file__).parents[3]
# Port 1 has no registry on any machine, so that the daemon is refused at once.
NOWHERE = "127.0.0.1:1/none:1"

WITHOUT_TESTCONTAINERS = """
import sys
sys.modules["testcontainers"] = None
from natsstream.testing import NatsServer
try:
    from natsstream.testing import NatsContainer
except Exception as error:
    print(type(error).__name__, error.hint)
"""


def own_label() -> str:
    return owner_labels()[OWNER_LABEL]


# The Docker client does not close the socket that it could not connect.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_missing_daemon_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")

    with pytest.raises(ServerStartError, match="Docker daemon does not answer") as caught:
        NatsContainer()
    assert "docker info" in caught.value.hint
    del caught
    gc.collect()


def test_missing_testcontainers_is_told_with_the_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TESTCONTAINERS],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )

    assert done.stdout.split(" ", 1) == [
        MissingExtraError.__name__,
        "pip install 'natsstream[containers]'\n",
    ]


def test_values_that_can_not_work_are_refused() -> None:
    with pytest.raises(UsageError, match="both image="):
        NatsContainer("nats:2.15.1", version="2.15.1")
    with pytest.raises(UsageError, match="port 0"):
        NatsContainer(port=0)
    with pytest.raises(UsageError, match="max_payload_bytes is 0"):
        NatsContainer(max_payload_bytes=0)


def test_release_without_an_installed_server_is_the_pinned_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_nothing() -> Path:
        raise ServerStartError("nothing")

    monkeypatch.setattr("natsstream.testing.images.find_nats_server", find_nothing)
    lines = (ROOT / "scripts/tools.lock").read_text().splitlines()
    pinned = next(line.split()[1] for line in lines if line.startswith("nats-server "))

    assert default_version() == pinned == list(RELEASES.values())[-1]


@pytest.mark.needs_docker
def test_reaper_is_switched_off_only_where_its_image_can_not_be_had(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = NatsContainer().get_docker_client().client
    monkeypatch.setattr(testcontainers_config, "ryuk_disabled", False)
    present = default_image(client, f"nats:{default_version()}", default_version())

    monkeypatch.setattr(testcontainers_config, "ryuk_image", present)
    prepare(client)
    assert not testcontainers_config.ryuk_disabled

    monkeypatch.setattr(testcontainers_config, "ryuk_image", NOWHERE)
    with caplog.at_level(logging.WARNING):
        prepare(client)
    assert testcontainers_config.ryuk_disabled
    assert NOWHERE in caplog.text
    client.close()


@pytest.mark.needs_docker
def test_failure_of_every_way_to_an_image_is_told() -> None:
    client = NatsContainer().get_docker_client().client

    with pytest.raises(ServerStartError, match="none can be pulled or built") as caught:
        default_image(client, NOWHERE, "no-version")
    client.close()

    assert f"pull {NOWHERE}:" in caught.value.detail
    assert "build natsstream/nats-server:no-version:" in caught.value.detail


@pytest.mark.needs_docker
def test_program_for_another_system_is_not_put_into_an_image(tmp_path: Path) -> None:
    client = NatsContainer().get_docker_client().client
    program = tmp_path / "nats-server"

    program.write_bytes(b"\xcf\xfa\xed\xfe" + bytes(60))
    with pytest.raises(ServerStartError, match="another system than Linux"):
        build_image(client, "natsstream/nats-server:test", program)

    # An ELF header of a big-endian s390.
    program.write_bytes(b"\x7fELF\x02\x02" + bytes(12) + b"\x00\x16" + bytes(40))
    with pytest.raises(ServerStartError, match="ELF machine 22"):
        build_image(client, "natsstream/nats-server:test", program)
    client.close()


def test_owner_that_lives_is_not_dead() -> None:
    assert not is_dead(own_label())


def test_owner_whose_pid_another_process_has_is_dead() -> None:
    machine_and_pid = own_label().rpartition(" ")[0]

    assert is_dead(f"{machine_and_pid} 1")


def test_owner_that_ended_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        label = own_label().replace(f" {os.getpid()} ", f" {process.pid} ")
    # The process has ended, and its pid is free.

    assert is_dead(label)


@pytest.mark.parametrize("label", ["", "x", "a b c", "  ", "other-machine 1 1"])
def test_owner_of_another_machine_is_never_dead(label: str) -> None:
    assert not is_dead(label)


@pytest.mark.parametrize("pid", ["0", "-1", "1e3", "99999999999999", "½", ""])
def test_owner_with_an_impossible_pid_is_never_dead(pid: str) -> None:
    machine = own_label().rpartition(" ")[0].rpartition(" ")[0]

    assert not is_dead(f"{machine} {pid} 1")
