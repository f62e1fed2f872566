"""The leak check of every test here that starts containers."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from natsstream.testing.cleanup import OWNER_LABEL, owner_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCKER_TIMEOUT_S = 30


def docker(*arguments: str) -> list[str]:
    """Return the lines that the Docker command prints."""
    done = subprocess.run(
        ["docker", *arguments],  # noqa: S607 - Wherever the machine has it.
        capture_output=True,
        text=True,
        timeout=DOCKER_TIMEOUT_S,
        check=True,
    )
    return done.stdout.split()


def find_owned(owner: str) -> list[str]:
    """Return the containers and networks of an owner, those that do not run as well."""
    label = f"label={OWNER_LABEL}={owner}"
    containers = docker("ps", "--all", "--quiet", "--no-trunc", "--filter", label)
    return containers + docker("network", "ls", "--quiet", "--no-trunc", "--filter", label)


@pytest.fixture
def no_leak() -> Iterator[None]:
    """Fails the test when a container or a network is left that was not there before."""
    own = owner_labels()[OWNER_LABEL]
    before = set(find_owned(own))
    yield
    assert set(find_owned(own)) - before == set()
