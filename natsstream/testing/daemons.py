"""The Docker daemon of the containers: its errors, and the removal of leftovers."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
from typing import TYPE_CHECKING

from docker.errors import DockerException
from requests.exceptions import RequestException
from testcontainers.core.config import ConnectionMode, testcontainers_config
from testcontainers.core.exceptions import ContainerConnectException, ContainerStartException

from natsstream.errors import NatsStreamError
from natsstream.testing.binary import ServerStartError
from natsstream.testing.cleanup import remove_leftovers
from natsstream.testing.images import has_image, pull_failure

if TYPE_CHECKING:
    from collections.abc import Generator

    from docker import DockerClient
    from testcontainers.core.docker_client import DockerClient as TestcontainersClient

HINT = "is Docker installed, and its daemon running? `docker info` tells"

_log = logging.getLogger(__name__)


@contextlib.contextmanager
def daemon_errors(
    message: str, error_type: type[NatsStreamError] = NatsStreamError
) -> Generator[None]:
    """Raise what the daemon, or the way to it, complains of as one error of ours."""
    try:
        yield
    except (
        DockerException,
        RequestException,
        ContainerConnectException,
        ContainerStartException,
    ) as error:
        raise error_type(message, detail=str(error), hint=HINT) from error


def prepare(client: DockerClient) -> None:
    """Make sure that containers of this process will be removed, whatever becomes of it.

    The reaper of testcontainers does that. Where its image cannot be had it is switched off for
    this process; then the exit of Python removes them, and, after a kill, the next owner.

    Raises:
        ServerStartError: The daemon does not answer.
    """
    with daemon_errors("containers of dead processes cannot be listed", ServerStartError):
        remove_leftovers(client)
    if testcontainers_config.ryuk_disabled:
        return
    image = testcontainers_config.ryuk_image
    failure = None if has_image(client, image) else pull_failure(client, image)
    if failure is not None:
        testcontainers_config.ryuk_disabled = True
        _log.warning(
            "the reaper %s cannot be had (%s): TESTCONTAINERS_RYUK_DISABLED is set for this "
            "process, and containers are removed at its exit",
            image,
            failure,
        )


def publishes_here(daemon: TestcontainersClient) -> bool:
    """Return True if the daemon publishes ports on the 127.0.0.1 of this process.

    It does not when it runs on another machine, or when this process runs in a container beside
    those that it asks for. testcontainers takes some machines for containers, so what decides is
    whether the gateway of Docker's bridge is an address of ours.
    """
    mode = daemon.get_connection_mode()
    if mode is ConnectionMode.docker_host:
        return daemon.host() in {"localhost", "127.0.0.1", "::1"} or _is_ours(daemon.host())
    if mode is ConnectionMode.gateway_ip:
        return any(_is_ours(gateway) for gateway in _bridge_gateways(daemon.client))
    return False


def _bridge_gateways(client: DockerClient) -> list[str]:
    gateways: list[str] = []
    for network in client.networks.list(names=["bridge"]):
        configs: list[dict[str, str]] = network.attrs["IPAM"]["Config"] or []
        for config in configs:
            # A daemon that has just made the bridge does not tell its gateway: the first address.
            first = str(ipaddress.ip_network(config["Subnet"])[1])
            gateways.append(config.get("Gateway") or first)
    return gateways


def _is_ours(address: str) -> bool:
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.bind((address, 0))
        return True
    return False
