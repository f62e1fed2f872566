"""The image that a NATS container runs: one of this machine, of a registry, or built here."""

from __future__ import annotations

import io
import logging
import struct
import tarfile
import time
from typing import TYPE_CHECKING

from docker.errors import APIError, DockerException, ImageNotFound
from docker.utils import parse_repository_tag
from requests.exceptions import RequestException

from natsstream.errors import NatsStreamError
from natsstream.testing.binary import ServerStartError, find_nats_server, version_of
from natsstream.testing.versions import RELEASES, server_binary

if TYPE_CHECKING:
    from pathlib import Path

    from docker import DockerClient

BUILT_REPOSITORY = "natsstream/nats-server"
# The official images have the program at the same place.
DOCKERFILE = """\
FROM scratch
COPY nats-server /nats-server
EXPOSE 4222 6222 8222
ENTRYPOINT ["/nats-server"]
"""
PULL_DEADLINE_S = 120.0
# Processors by ELF number and by Docker's name.
_ELF_MACHINES = {0x3E: "amd64", 0xB7: "arm64", 0x28: "arm"}
_HINT = "load or build an image yourself and name it with image="

_log = logging.getLogger(__name__)


def default_version() -> str:
    """Return the version of the installed nats-server, else the newest that is tested with."""
    try:
        return version_of(find_nats_server())
    except ServerStartError:
        return list(RELEASES.values())[-1]


def release_of(version: str) -> str:
    """Return the whole release of a version: `2.12` stands for the one that is tested with."""
    return RELEASES.get(version, version)


def take_image(client: DockerClient, name: str) -> None:
    """Make sure that the daemon has the image: pull it when it does not.

    Raises:
        ServerStartError: It is not here, and no registry gives it within 120 s.
    """
    if has_image(client, name):
        _log.info("image %s is here", name)
        return
    failure = pull_failure(client, name)
    if failure is not None:
        message = f"there is no image {name} here, and it cannot be pulled"
        raise ServerStartError(message, detail=failure, hint=_HINT)


def default_image(client: DockerClient, official: str, version: str) -> str:
    """Return the image to run where the caller named none.

    In this order: the official image or one that was built earlier, when the daemon has it; the
    official image from a registry; an image built from the nats-server program for this version.

    Args:
        client: The daemon.
        official: Name of the official image of the version.
        version: The release.

    Raises:
        ServerStartError: None of them can be had; `detail` has what each attempt said.
    """
    built = f"{BUILT_REPOSITORY}:{version}"
    for name in (official, built):
        if has_image(client, name):
            _log.info("image %s is here", name)
            return name
    failure = pull_failure(client, official)
    if failure is None:
        return official
    try:
        build_image(client, built, server_binary(version))
    except NatsStreamError as error:
        message = f"there is no image of nats-server {version}, and none can be pulled or built"
        detail = f"pull {official}: {failure}\nbuild {built}: {error}"
        raise ServerStartError(message, detail=detail, hint=_HINT) from error
    return built


def has_image(client: DockerClient, name: str) -> bool:
    """Return True if the daemon has the image.

    Raises:
        ServerStartError: The daemon does not answer, or the name is not one.
    """
    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    except (DockerException, RequestException) as error:
        message = f"the Docker daemon cannot be asked for the image {name!r}: {error}"
        raise ServerStartError(message, hint="check the name, and `docker info`") from error
    return True


def pull_failure(
    client: DockerClient, name: str, deadline_s: float = PULL_DEADLINE_S
) -> str | None:
    """Pull an image; return why that failed, or None when the image is here now.

    Args:
        client: The daemon; its own timeout bounds the wait for the registry's first word.
        name: The image.
        deadline_s: Seconds for the whole download.
    """
    repository, tag = parse_repository_tag(name)
    deadline = time.monotonic() + deadline_s
    started = time.monotonic()
    try:
        for step in client.api.pull(repository, tag=tag or "latest", stream=True, decode=True):
            if "error" in step:
                raise DockerException(str(step["error"]))
            if time.monotonic() >= deadline:
                raise DockerException(f"not finished within {deadline_s:g} s")
    except (DockerException, RequestException) as error:
        # The daemon's own words, without the request that they answer.
        failure = (error.explanation if isinstance(error, APIError) else None) or str(error)
        _log.info("image %s cannot be pulled: %s", name, failure)
        return failure
    _log.info("pulled image %s in %.1f s", name, time.monotonic() - started)
    return None


def build_image(client: DockerClient, name: str, binary: Path) -> None:
    """Build an image that holds the nats-server program and nothing else.

    Raises:
        ServerStartError: The program is not for the daemon's system, or the build fails.
    """
    try:
        content = binary.read_bytes()
        wanted = str(client.version()["Arch"])
        found = _machine_of(content)
        if found != wanted:
            message = f"{binary} is for {found}, the Docker daemon runs linux/{wanted}"
            raise ServerStartError(message, hint=_HINT)
        context = _build_context(content)
        client.images.build(fileobj=context, custom_context=True, tag=name, rm=True, forcerm=True)
    except (DockerException, RequestException, OSError) as error:
        raise ServerStartError(f"image {name} cannot be built: {error}", hint=_HINT) from error
    _log.info("built image %s from %s", name, binary)


def _machine_of(program: bytes) -> str:
    """Return the processor that a Linux program is for, in Docker's words."""
    if program[:4] != b"\x7fELF" or len(program) < 20:
        return "another system than Linux"
    byte_order = ">" if program[5] == 2 else "<"
    (machine,) = struct.unpack_from(f"{byte_order}H", program, 18)
    return _ELF_MACHINES.get(machine, f"ELF machine {machine}")


def _build_context(program: bytes) -> io.BytesIO:
    """Return the tar file of the build; the same program makes the same bytes, and so one image."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for file, content, mode in (
            ("Dockerfile", DOCKERFILE.encode(), 0o644),
            ("nats-server", program, 0o755),
        ):
            member = tarfile.TarInfo(file)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
    context.seek(0)
    return context
