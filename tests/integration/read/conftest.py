"""Servers for the tests of reads.

Every test that shares a server runs on both backends; a test that breaks its server does so to a
process, whose pid and files it needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream.testing import NatsNode, NatsServer, ServerOptions

CONTAINER = pytest.param("container", marks=pytest.mark.needs_docker)


@pytest.fixture(scope="session", params=["process", CONTAINER])
def server(
    request: pytest.FixtureRequest, nats_server_options: ServerOptions
) -> Iterator[NatsNode]:
    """The shared server: the process that the whole run has, and a container."""
    if request.param == "process":
        yield cast("NatsServer", request.getfixturevalue("nats_server"))
        return
    from natsstream.testing import NatsContainer  # noqa: PLC0415 - Takes 0.5 s, needs Docker.

    with NatsContainer(**nats_server_options) as container:
        yield container
