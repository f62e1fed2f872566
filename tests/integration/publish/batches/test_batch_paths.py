"""Batches through a domain and an imported API."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest
import pytest_asyncio

from natsstream import ConnectOptions, connect
from natsstream.errors import NatsStreamError, RequestTimeoutError
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio

HUB = 'jetstream { domain: hub }\nleafnodes { host: "127.0.0.1", port: -1 }'
ACCOUNTS = """
accounts {
  DATA {
    jetstream: enabled
    users: [{ user: data, password: pw }]
    exports: [
      { service: "$JS.API.>", response_type: stream }
      { service: "orders.>", response_type: stream }
    ]
  }
  APP {
    users: [{ user: app, password: pw }]
    imports: [
      { service: { account: DATA, subject: "$JS.API.>" }, to: "JS.data.API.>" }
      { service: { account: DATA, subject: "orders.>" } }
    ]
  }
}
"""


def start_leaf(servers: ExitStack) -> NatsServer:
    """Start a hub whose domain is `hub`; return a leaf node of it with JetStream of its own."""
    hub = servers.enter_context(NatsServer(config=HUB))
    with urllib.request.urlopen(f"{hub.monitor_url}/varz", timeout=30) as answer:  # noqa: S310 - our own server.
        port = cast("dict[str, Any]", json.load(answer))["leaf"]["port"]
    remote = f'leafnodes {{ remotes: [{{ url: "nats-leaf://127.0.0.1:{port}" }}] }}'
    config = f"jetstream {{ domain: leaf }}\n{remote}"
    return servers.enter_context(NatsServer(config=config))


@pytest_asyncio.fixture(params=["domain", "api_prefix"])
async def way(
    request: pytest.FixtureRequest,
) -> AsyncIterator[tuple[JetStream, FaultProxy, JetStream]]:
    """JetStream of another server or account than the connection's, and a proxy before it.

    The second connection goes the same way without the proxy.
    """
    with ExitStack() as servers:
        if request.param == "domain":
            near = start_leaf(servers)
            proxy = servers.enter_context(FaultProxy(near.port))
            prefix, options = "$JS.hub.API", ConnectOptions(servers=proxy.url, domain="hub")
        else:
            near = servers.enter_context(NatsServer(config=ACCOUNTS))
            proxy = servers.enter_context(FaultProxy(near.port))
            prefix = "JS.data.API"
            options = ConnectOptions(
                servers=proxy.url,
                user="app",
                password="pw",  # noqa: S106 - a test's.
                api_prefix="JS.data.API",
            )
        async with AsyncExitStack() as stack:
            js = await stack.enter_async_context(connect(options))
            near_js = await stack.enter_async_context(connect(replace(options, servers=near.url)))
            await eventually_async(lambda: answers(js, prefix))
            yield js, proxy, near_js


async def answers(js: JetStream, prefix: str) -> bool:
    """Tell whether the way is open: a leaf node takes a moment to be there."""
    try:
        await js.core.request(f"{prefix}.INFO", timeout=0.2)
    except NatsStreamError:
        return False
    return True


async def lose_answer(stream: Stream, proxy: FaultProxy, near: Stream) -> int:
    """Commit a batch whose answer does not come; return the sequence that is found out."""

    async def is_stored() -> bool:
        return (await near.info()).state.last_seq == 4

    async with stream.batch() as tx:
        await tx.add("orders.a", b"3")
        await tx.add("orders.b", b"4")
        proxy.stall(direction="to_client")
        with pytest.raises(RequestTimeoutError):
            await tx.commit(timeout=0.1)
        await eventually_async(is_stored)  # A reset would take along what has not arrived yet.
        proxy.reset()
        proxy.heal()
    ack = await tx.outcome()
    return ack.sequence if ack is not None else 0


async def test_batches_of_both_kinds_go_to_another_domain_or_account(
    way: tuple[JetStream, FaultProxy, JetStream],
) -> None:
    js, proxy, near_js = way
    stream = await js.streams.create(
        "ORDERS", subjects=["orders.>"], allow_atomic=True, allow_batched=True
    )
    async with stream.batch() as tx:
        await tx.add("orders.a", b"1")
        ack = await tx.commit("orders.b", b"2")
    found = await lose_answer(stream, proxy, await near_js.streams.get("ORDERS"))
    async with asyncio.timeout(30), stream.ingest() as fast:
        await fast.send_many(("orders.c", b"%d" % n) for n in range(5, 2_001))
        report = await fast.close()

    assert (ack.sequence, ack.count, found) == (2, 2, 4)
    assert (report.stored, report.is_complete) == (1_996, True)
    assert [int(message.data) async for message in stream.read(first_seq=1)] == list(
        range(1, 2_001)
    )
