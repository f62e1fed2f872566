"""The compose files for users: what they say is what nats-server takes, on the pinned release."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from natsstream.testing import find_nats_server

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[3]
ONE, CLUSTER = ROOT / "compose/compose.yaml", ROOT / "compose/compose.cluster.yaml"
N_NODES = {ONE: 1, CLUSTER: 3}
CHECK_TIMEOUT_S = 20

each_file = pytest.mark.parametrize("file", [ONE, CLUSTER], ids=["one", "cluster"])


def load(file: Path) -> Mapping[str, Any]:
    return yaml.safe_load(file.read_text())


def pinned_release() -> str:
    lines = (ROOT / "scripts/tools.lock").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("nats-server "))


@each_file
def test_services_run_the_pinned_release(file: Path) -> None:
    services = load(file)["services"]

    assert len(services) == N_NODES[file]
    assert {service["image"] for service in services.values()} == {f"nats:{pinned_release()}"}


@each_file
def test_server_takes_the_configuration_of_each_service(file: Path, tmp_path: Path) -> None:
    compose = load(file)

    for service in compose["services"].values():
        (config,) = service["configs"]
        text = compose["configs"][config["source"]]["content"]
        # Compose would take a dollar for a variable of its own.
        assert "$" not in text
        own = tmp_path / "nats.conf"
        own.write_text(text.replace("/data", str(tmp_path)))
        command = [str(own) if word == config["target"] else word for word in service["command"]]
        done = subprocess.run(
            [str(find_nats_server()), "-t", *command],
            capture_output=True,
            text=True,
            timeout=CHECK_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "is valid" in done.stdout + done.stderr


@each_file
def test_ports_are_open_to_this_machine_only_and_differ(file: Path) -> None:
    published = [port for each in load(file)["services"].values() for port in each["ports"]]

    assert all(port.startswith("127.0.0.1:") for port in published)
    assert len({port.split(":")[1] for port in published}) == len(published) == 2 * N_NODES[file]


@each_file
def test_stores_are_on_volumes_that_are_declared(file: Path) -> None:
    compose = load(file)
    mounts = [mount for each in compose["services"].values() for mount in each["volumes"]]

    assert sorted(mounts) == sorted(f"{volume}:/data" for volume in compose["volumes"])


def test_nodes_advertise_the_port_that_is_published_and_know_each_other() -> None:
    compose = load(CLUSTER)
    text = compose["configs"]["nats.conf"]["content"]

    for name, service in compose["services"].items():
        address = service["ports"][0].removesuffix(":4222")
        assert service["command"][2:] == ["-n", name, "--client_advertise", address]
        assert f"nats://{name}:6222" in text
