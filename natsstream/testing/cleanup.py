"""Containers whose Python process was killed: whose they are, and their end.

testcontainers has a reaper container for this, but its image is not everywhere. So what is made
here bears a label with its owner, and the next owner on the same machine removes what a dead one
left.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

from docker.errors import DockerException

from natsstream.testing.owners import is_dead, this_process

if TYPE_CHECKING:
    from collections.abc import Generator

    from docker import DockerClient

OWNER_LABEL = "natsstream.testing.owner"

_log = logging.getLogger(__name__)


def owner_labels() -> dict[str, str]:
    """Return the label that names this process as the owner."""
    owner = this_process()
    return {OWNER_LABEL: owner} if owner else {}


def remove_leftovers(client: DockerClient) -> int:
    """Remove the containers and networks that dead processes of this machine left.

    Returns:
        How many were removed. A failure to remove one is logged, not raised: it is not the
        caller's container, and the next call tries again.
    """
    removed = 0
    filters = {"label": OWNER_LABEL}
    for container in client.containers.list(all=True, filters=filters, ignore_removed=True):
        if is_dead(container.labels.get(OWNER_LABEL, "")):
            with _logged(f"container {container.name}"):
                container.remove(force=True, v=True)
                removed += 1
    for network in client.networks.list(filters=filters):
        labels: dict[str, str] = network.attrs.get("Labels") or {}
        if is_dead(labels.get(OWNER_LABEL, "")):
            with _logged(f"network {network.name}"):
                network.remove()
                removed += 1
    return removed


@contextlib.contextmanager
def _logged(what: str) -> Generator[None]:
    try:
        yield
    except DockerException as error:
        _log.warning("%s was left by a dead process and cannot be removed: %s", what, error)
    else:
        _log.info("removed %s, which a dead process had left", what)
