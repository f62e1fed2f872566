"""Leaf nodes in tests: a hub with JetStream in a domain, and servers that reach it."""

from __future__ import annotations

import json
import urllib.request
from typing import TYPE_CHECKING, Any, cast

from natsstream.errors import NatsStreamError
from natsstream.testing import NatsServer, server_binary
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from contextlib import ExitStack
    from pathlib import Path

    from natsstream import JetStream


def binary_of(version: str) -> Path | None:
    """Return the program of a version; empty is the installed one."""
    return server_binary(version) if version else None


def leaf_port(hub: NatsServer) -> int:
    """Return the port on which a hub takes leaf nodes."""
    with urllib.request.urlopen(f"{hub.monitor_url}/varz", timeout=30) as answer:  # noqa: S310 - our own server.
        return cast("dict[str, Any]", json.load(answer))["leaf"]["port"]


async def wait_for_link(js: JetStream) -> None:
    """Wait until a connection to a leaf node reaches the JetStream that it is for.

    A leaf node is ready before its hub has told it what there is.
    """

    async def is_linked() -> bool:
        try:
            await js.account()
        except NatsStreamError:
            return False
        return True

    await eventually_async(is_linked)


def start_hub(servers: ExitStack, version: str = "") -> NatsServer:
    """Return a server with JetStream in the domain `hub`, which takes leaf nodes."""
    config = 'jetstream { domain: hub }\nleafnodes { host: "127.0.0.1", port: -1 }'
    return servers.enter_context(NatsServer(config=config, binary=binary_of(version)))


def start_leaf(
    servers: ExitStack,
    hub: NatsServer,
    version: str = "",
    *,
    jetstream: bool = True,
    config: str = "",
) -> NatsServer:
    """Return a leaf node of a hub, with JetStream in a domain of its own or without any."""
    remote = f'leafnodes {{ remotes: [{{ url: "nats-leaf://127.0.0.1:{leaf_port(hub)}" }}] }}'
    own = "jetstream { domain: leaf }" if jetstream else ""
    text = f"{own}\n{remote}\n{config}"
    return servers.enter_context(
        NatsServer(config=text, jetstream=jetstream, binary=binary_of(version))
    )
