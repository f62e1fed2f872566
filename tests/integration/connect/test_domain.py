"""Integration tests of JetStream behind something: a domain over a leaf node, an imported API."""

from __future__ import annotations

from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream import ConnectOptions, JetStream, TransportError, connect
from natsstream.errors import (
    JetStreamNotEnabledError,
    NoRespondersError,
    StreamNotFoundError,
    UnsupportedServerError,
)
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.leaves import start_hub, start_leaf
from tests.support.patience import set_patience
from tests.support.streams import consumer_count, fill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

pytestmark = pytest.mark.asyncio

PASSWORD = "only-for-this-test"  # noqa: S105 - of a server that lives for this test.
# The API of one account, given to another one under a prefix. A read gets many answers to one
# request, which the server forwards only with `response_type: stream`.
ACCOUNTS = f"""
accounts {{
  DATA {{
    jetstream: enabled
    users: [{{ user: data, password: {PASSWORD} }}]
    exports: [
      {{ service: "$JS.API.>", response_type: stream }}
      {{ service: "orders.>" }}
    ]
  }}
  APP {{
    users: [{{ user: app, password: {PASSWORD} }}]
    imports: [
      {{ service: {{ account: DATA, subject: "$JS.API.>" }}, to: "JS.data.API.>" }}
      {{ service: {{ account: DATA, subject: "orders.>" }} }}
    ]
  }}
}}
"""


async def answers(js: JetStream) -> bool:
    """Tell whether JetStream answers; a leaf node links to its hub after it is ready."""
    try:
        await anext(js.streams.names(), None)
    except TransportError:
        return False
    return True


async def connect_through(stack: AsyncExitStack, leaf: NatsServer) -> JetStream:
    """Return a connection to a leaf node that speaks to its hub's JetStream."""
    options = ConnectOptions(servers=leaf.url, domain="hub")
    js = await stack.enter_async_context(connect(options))
    await eventually_async(lambda: answers(js))
    return js


@pytest.fixture(scope="module")
def hub_and_leaf() -> Iterator[tuple[NatsServer, NatsServer]]:
    """A hub and a leaf node, each with JetStream in a domain of its own."""
    with ExitStack() as servers:
        hub = start_hub(servers)
        yield hub, start_leaf(servers, hub)


@pytest_asyncio.fixture
async def through_leaf(hub_and_leaf: tuple[NatsServer, NatsServer]) -> AsyncIterator[JetStream]:
    """The hub's JetStream over a connection to the leaf node."""
    async with AsyncExitStack() as stack:
        yield await connect_through(stack, hub_and_leaf[1])


@pytest.fixture(scope="module")
def accounts() -> Iterator[NatsServer]:
    """A server whose account APP imports the JetStream API of the account DATA."""
    with NatsServer(config=ACCOUNTS) as server:
        yield server


@pytest_asyncio.fixture
async def imported(accounts: NatsServer) -> AsyncIterator[JetStream]:
    """JetStream of the account DATA over a connection of the account APP."""
    options = ConnectOptions(
        servers=accounts.url, user="app", password=PASSWORD, api_prefix="JS.data.API"
    )
    async with connect(options) as js:
        yield js


async def test_domain_makes_the_stream_at_the_hub(
    hub_and_leaf: tuple[NatsServer, NatsServer], through_leaf: JetStream, stream_name: str
) -> None:
    hub, leaf = hub_and_leaf
    await through_leaf.streams.create(stream_name, subjects=[f"{stream_name}.>"])

    async with connect(hub.url) as at_hub, connect(leaf.url) as at_leaf:
        assert stream_name in [name async for name in at_hub.streams.names()]
        assert [name async for name in at_leaf.streams.names()] == []
    assert (await through_leaf.account()).domain == "hub"


@pytest.mark.finding(22)
async def test_everything_is_published_and_read_through_a_domain(
    through_leaf: JetStream, stream_name: str
) -> None:
    stream = await fill(through_leaf, stream_name, 2_000)
    ack = await through_leaf.publish(f"{stream_name}.0", b"last")

    messages = [message async for message in stream.read()]
    table = await stream.read().to_arrow()

    assert ack.sequence == 2_001
    assert [message.sequence for message in messages] == list(range(1, 2_002))
    assert table.column("sequence").to_pylist() == list(range(1, 2_002))
    found = await stream.get(2_001)
    assert found is not None
    assert found.data == b"last"
    await eventually_async(lambda: has_no_consumers(through_leaf, stream_name))


async def has_no_consumers(js: JetStream, name: str) -> bool:
    """Tell whether a stream has no consumers any more."""
    return await consumer_count(await js.streams.get(name)) == 0


async def test_domain_that_is_not_there_is_named_in_the_error(
    hub_and_leaf: tuple[NatsServer, NatsServer],
) -> None:
    options = ConnectOptions(servers=hub_and_leaf[1].url, domain="moon", request_timeout=1)
    async with connect(options) as js:
        with pytest.raises(NoRespondersError, match=r"\$JS\.moon\.API"):
            await js.account()
        set_patience(js, request_timeout=30)
        with pytest.raises(NoRespondersError, match=r"\$JS\.moon\.API"):
            await js.streams.create("S")


async def test_server_without_jetstream_reaches_it_by_domain() -> None:
    with ExitStack() as servers:
        leaf = start_leaf(servers, start_hub(servers), jetstream=False)
        async with AsyncExitStack() as stack:
            js = await connect_through(stack, leaf)
            plain = await stack.enter_async_context(connect(leaf.url))

            await js.streams.create("S")

            with pytest.raises(JetStreamNotEnabledError, match="has no JetStream"):
                await plain.streams.get("S")


@pytest.mark.needs_versions
async def test_old_leaf_node_does_not_hide_what_the_hub_can() -> None:
    with ExitStack() as servers:
        leaf = start_leaf(servers, start_hub(servers), "2.10")
        async with AsyncExitStack() as stack:
            js = await connect_through(stack, leaf)

            stream = await js.streams.create("S", allow_msg_ttl=True, allow_batched=True)

            assert stream.cached.config.allow_batched is True


@pytest.mark.needs_versions
async def test_new_leaf_node_does_not_promise_what_the_hub_can_not() -> None:
    with ExitStack() as servers:
        leaf = start_leaf(servers, start_hub(servers, "2.11"))
        async with AsyncExitStack() as stack:
            js = await connect_through(stack, leaf)

            with pytest.raises(UnsupportedServerError, match="API level 1") as caught:
                await js.streams.create("S", allow_msg_ttl=True, allow_atomic=True)

            assert (caught.value.needs, caught.value.version) == ("2.12", "")
            with pytest.raises(StreamNotFoundError):
                await js.streams.get("S")


@pytest.mark.needs_versions
async def test_field_that_the_far_server_dropped_is_told() -> None:
    """The hub's level may not be asked, so only its answer shows that it is the older one."""
    with ExitStack() as servers:
        hub = start_hub(servers, "2.11")
        deny = '{ publish: { deny: "$JS.hub.API.INFO" } }'
        user = f"{{ user: u, password: {PASSWORD}, permissions: {deny} }}"
        leaf = start_leaf(servers, hub, config=f"authorization {{ users: [{user}] }}")
        async with AsyncExitStack() as stack:
            options = ConnectOptions(servers=leaf.url, user="u", password=PASSWORD, domain="hub")
            js = await stack.enter_async_context(connect(options))
            await eventually_async(lambda: answers(js))
            fields: dict[str, Any] = {"allow_msg_ttl": True, "allow_atomic": True}

            with pytest.raises(UnsupportedServerError, match="is there now") as made:
                await js.streams.create("S", **fields)
            with pytest.raises(UnsupportedServerError, match="is there now") as ensured:
                await js.streams.ensure("S", **fields)

            for caught in (made, ensured):
                assert caught.value.needs == "2.12"
                assert "without allow_atomic" in caught.value.message
            assert (await js.streams.get("S")).cached.config.allow_msg_ttl is True


@pytest.mark.finding(22)
async def test_everything_works_over_an_imported_api(
    accounts: NatsServer, imported: JetStream
) -> None:
    stream = await imported.streams.ensure("ORDERS", subjects=["orders.>"], allow_msg_ttl=True)
    ack = await imported.publish("orders.new", b"1")
    async with imported.publisher() as publisher:
        for _ in range(2_000):
            await publisher.send("orders.new", b"x")

    messages = [message.sequence async for message in stream.read()]
    table = await stream.read().to_arrow()

    assert ack.sequence == 1
    assert messages == list(range(1, 2_002))
    assert table.num_rows == 2_001
    found = await stream.get(1)
    assert found is not None
    assert found.data == b"1"
    assert (await imported.account()).usage.streams == 1
    async with connect(accounts.url, user="data", password=PASSWORD) as owner:
        assert [name async for name in owner.streams.names()] == ["ORDERS"]
    await eventually_async(lambda: has_no_consumers(imported, "ORDERS"))


async def test_subject_that_is_not_imported_has_no_stream(imported: JetStream) -> None:
    await imported.streams.ensure("OTHER", subjects=["other.>"])

    with pytest.raises(NoRespondersError, match="no stream captures the subject"):
        await imported.publish("other.new", b"1")
    await imported.streams.delete("OTHER")  # Another test counts the streams.


async def test_account_without_an_import_has_no_jetstream(accounts: NatsServer) -> None:
    options = ConnectOptions(
        servers=accounts.url, user="app", password=PASSWORD, request_timeout=30
    )
    async with connect(options) as js:
        with pytest.raises(JetStreamNotEnabledError, match="not enabled for account"):
            await js.streams.create("S")
