"""Finding 22: JetStream behind a domain, or behind a prefix under which an account imports it.

A bucket of nats-py 2.16 writes to its subjects without the prefix, where no stream answers. Here
the user may publish nowhere else than under the prefix, and to the subjects of one stream, so a
request that forgets the prefix is denied.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Literal, TypeAlias

import pytest

from natsstream import Expect, connect
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.leaves import leaf_port, wait_for_link
from tests.support.ordered import take_sequences
from tests.support.streams import consumer_count

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from contextlib import AbstractAsyncContextManager

    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio

Policy: TypeAlias = Literal["all", "last", "last_per_subject"]
HUB = """
jetstream { domain: hub }
leafnodes { host: "127.0.0.1", port: -1 }
"""
LEAF = """
jetstream { domain: leaf }
leafnodes { remotes: [{ url: "nats-leaf://127.0.0.1:%d" }] }
authorization { users: [
  { user: u, password: p, permissions: { publish: ["$JS.hub.API.>", "orders.>"] } } ] }
"""
IMPORT = """
accounts {
  DATA {
    jetstream: enabled
    exports: [ { service: "$JS.API.>", response_type: stream }, { service: "orders.>" } ]
  }
  APP {
    users: [{ user: u, password: p, permissions: { publish: ["JS.data.API.>", "orders.>"] } }]
    imports: [
      { service: { account: DATA, subject: "$JS.API.>" }, to: "JS.data.API.>" }
      { service: { account: DATA, subject: "orders.>" } }
    ]
  }
}
"""


@asynccontextmanager
async def by_domain() -> AsyncGenerator[JetStream]:
    """The hub's JetStream over a leaf node."""
    with NatsServer(config=HUB) as hub, NatsServer(config=LEAF % leaf_port(hub)) as leaf:
        async with connect(leaf.url, user="u", password="p", domain="hub") as js:  # noqa: S106 - a test's own.
            await wait_for_link(js)
            yield js


@asynccontextmanager
async def by_import() -> AsyncGenerator[JetStream]:
    """JetStream of another account, imported under a prefix."""
    with NatsServer(config=IMPORT) as server:
        async with connect(
            server.url,
            user="u",
            password="p",  # noqa: S106 - a test's own.
            api_prefix="JS.data.API",
        ) as js:
            yield js


@pytest.mark.finding(22)
@pytest.mark.parametrize("way", [by_domain, by_import], ids=lambda f: f.__name__)
async def test_every_request_goes_under_the_prefix(
    way: Callable[[], AbstractAsyncContextManager[JetStream]],
) -> None:
    async with way() as far:
        events = far.events()

        stream = await manage(far)
        await write(far, stream)
        await read(stream)
        await far.core.flush()

        await events.close()
        assert [event async for event in events] == []


async def manage(js: JetStream) -> Stream:
    """Make, find, change and delete streams."""
    await js.account()
    await js.streams.create("OTHER", subjects=["other.>"])
    await js.streams.delete("OTHER")
    await js.streams.ensure("ORDERS", subjects=["orders.>"])
    await js.streams.update("ORDERS", allow_msg_ttl=True)
    found = await js.streams.find("orders.new")
    assert found == "ORDERS"
    assert [name async for name in js.streams.names()] == ["ORDERS"]
    assert [info.name async for info in js.streams.list()] == ["ORDERS"]
    stream = await js.streams.get("ORDERS")
    assert (await stream.info()).config.allow_msg_ttl is True
    return stream


async def write(js: JetStream, stream: Stream) -> None:
    """Publish in each way: 1 + 1 + 100 + 100 messages."""
    await js.publish("orders.new", b"1", ttl=60, expect=Expect(last_seq=0))
    await stream.publish("orders.new", b"2", msg_id="2")
    async with js.publisher() as publisher:
        for _ in range(100):
            await publisher.send("orders.many", b"x")
    async with js.publisher(retry_for=30, max_pending=1) as publisher:
        await publisher.send_many([("orders.safe", b"x")] * 100)


async def read(stream: Stream) -> None:
    """Read in each way, and leave nothing."""
    policies: dict[Policy, int] = {"all": 202, "last": 1, "last_per_subject": 3}
    for deliver_policy, count in policies.items():
        async with stream.ordered(deliver_policy=deliver_policy) as tail:
            found = await take_sequences(tail, count)
        assert found[-1] == 202
    assert len([message async for message in stream.read()]) == 202
    assert (await stream.read(filters=["orders.new"]).to_arrow()).num_rows == 2
    for message in (
        await stream.get(202),
        await stream.get(last_by_subject="orders.safe"),
        await stream.get(202, next_by_subject="orders.>"),
    ):
        assert message is not None
        assert message.sequence == 202

    async def has_no_consumer() -> bool:
        return await consumer_count(stream) == 0

    await eventually_async(has_no_consumer)
