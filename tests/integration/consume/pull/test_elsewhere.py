"""Integration tests of pulls behind a domain or a prefix, and of older servers."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING

import pytest

from natsstream import ConnectOptions, connect
from natsstream.errors import ConsumerDeletedError, NatsStreamError
from natsstream.testing import NatsServer, server_binary
from tests.support.eventually import eventually_async
from tests.support.leaves import start_hub, start_leaf
from tests.support.pulling import (
    has_pulls,
    is_settled,
    nothing_comes,
    sequences,
    take,
    worker_of,
)

if TYPE_CHECKING:
    from natsstream import Consumer, JetStream

pytestmark = pytest.mark.asyncio

PASSWORD = "only-for-this-test"  # noqa: S105 - of a server that lives for this test.
# Pulls are answered many times, and verdicts go to subjects of their own.
ACCOUNTS = f"""
accounts {{
  DATA {{
    jetstream: enabled
    users: [{{ user: data, password: {PASSWORD} }}]
    exports: [
      {{ service: "$JS.API.>", response_type: stream }}
      {{ service: "$JS.ACK.>" }}
      {{ service: "orders.>" }}
    ]
  }}
  APP {{
    users: [{{ user: app, password: {PASSWORD} }}]
    imports: [
      {{ service: {{ account: DATA, subject: "$JS.API.>" }}, to: "JS.data.API.>" }}
      {{ service: {{ account: DATA, subject: "$JS.ACK.>" }} }}
      {{ service: {{ account: DATA, subject: "orders.>" }} }}
    ]
  }}
}}
"""


async def check_pulls(js: JetStream, worker: Consumer) -> None:
    """Use all ways to pull and to settle on a consumer of 60 messages, then delete it."""
    first = await worker.next()
    assert first is not None
    assert (first.meta.stream, first.meta.consumer) == (worker.stream, worker.name)
    await first.ack(confirm=True)
    second = await worker.next()
    assert second is not None
    third = await second.ack_next()
    assert third is not None
    await third.nak(confirm=True)
    batch = await worker.fetch(10)
    # What is new may come before what a nak gave back a moment ago.
    assert sorted(sequences(batch)) == list(range(3, 13))
    for message in batch:
        await message.ack()
    async with worker.consume(max_messages=5, stop_after=40) as messages:
        assert await take(messages, 40) == list(range(13, 53))
    for message in await worker.fetch(20, no_wait=True):
        await message.ack()
    assert await eventually_async(lambda: is_settled(worker))
    assert (await worker.info()).num_pending == 0

    consumers = (await js.streams.get(worker.stream)).consumers
    fetching = asyncio.ensure_future(worker.fetch(1, timeout=50))
    async with worker.consume() as messages:
        reading = asyncio.ensure_future(anext(messages))
        await eventually_async(lambda: has_pulls(worker, 3))
        await consumers.delete(worker.name)
        with pytest.raises(ConsumerDeletedError):
            await reading
    with pytest.raises(ConsumerDeletedError):
        await fetching
    # Nobody tells that nobody listens when a leaf node lies between.
    with pytest.raises(ConsumerDeletedError):
        assert not await nothing_comes(worker, within_s=0.3)


async def test_pulls_and_verdicts_pass_a_domain(stream_name: str) -> None:
    with ExitStack() as servers:
        leaf = start_leaf(servers, start_hub(servers))
        async with AsyncExitStack() as stack:
            options = ConnectOptions(servers=leaf.url, domain="hub")
            js = await stack.enter_async_context(connect(options))
            await eventually_async(lambda: answers(js))
            await check_pulls(js, await worker_of(js, stream_name, 60))


async def answers(js: JetStream) -> bool:
    """Tell whether JetStream answers; a leaf node links to its hub after it is ready."""
    try:
        await js.account()
    except NatsStreamError:
        return False
    return True


async def test_pulls_and_verdicts_pass_a_prefix() -> None:
    with NatsServer(config=ACCOUNTS) as server:
        options = ConnectOptions(
            servers=server.url, user="app", password=PASSWORD, api_prefix="JS.data.API"
        )
        async with connect(options) as js:
            await check_pulls(js, await worker_of(js, "orders", 60))


@pytest.mark.needs_versions
@pytest.mark.parametrize("version", ["2.10", "2.11", "2.12"])
async def test_older_servers_are_pulled_from(version: str) -> None:
    with NatsServer(binary=server_binary(version)) as server:
        async with connect(server.url) as js:
            await check_pulls(js, await worker_of(js, "S", 60))
