"""Finding 1: the newer form of ack subjects, with a domain and an account in it.

nats-py 2.16 reads a number where the newer form has a name, which ends the connection's reading:
its ordered consumers and the watchers of its buckets get nothing, and every later call times out.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import nats
import pytest
import pytest_asyncio

from natsstream import attach, connect
from natsstream.testing import NatsServer
from tests.support.ordered import publish, take
from tests.support.streams import fill

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.asyncio

NEW_FORM = "feature_flags { js_ack_fc_v2: true }"


@pytest_asyncio.fixture
async def application() -> AsyncIterator[Any]:
    """A connection of nats-py to a server whose acks have the newer form."""
    with NatsServer(config=NEW_FORM) as server:
        client = await cast("Any", nats).connect(server.url)
        yield client
        await client.close()


@pytest.mark.finding(1)
async def test_new_ack_form_leaves_the_connection_working(application: Any) -> None:
    """The application's own calls share the connection with ours, and are answered."""
    async with attach(application) as js:
        stream = await fill(js, "S", 500)
        async with stream.ordered() as tail:
            found = await take(tail, 500)
            await publish(js, "S.0", b"new")
            found += await take(tail, 1)
        one = await (await stream.consumers.create("c")).next(timeout=30)

        await application.flush(30)
        answer = await application.request("$JS.API.INFO", b"", timeout=30)
        listed = [message.sequence async for message in stream.read()]

    assert [message.sequence for message in found] == list(range(1, 502)) == listed
    assert b'"type"' in answer.data
    # The server writes the newer form, to all consumers; an ordered read keeps no ack subjects.
    assert one is not None
    assert one.reply.startswith(b"$JS.ACK.")
    assert one.reply.count(b".") >= 10


@pytest.mark.finding(1)
async def test_keys_of_a_bucket_are_read_with_the_new_ack_form(application: Any) -> None:
    """What `kv.keys()` of nats-py times out on: the last message of each subject, then the end."""
    bucket = await application.jetstream(timeout=30).create_key_value(bucket="settings")
    for key in ("a", "b", "c", "a"):
        await bucket.put(key, b"x")

    async with connect(application.connected_url.geturl()) as js:
        stream = await js.streams.get("KV_settings")
        async with (
            asyncio.timeout(30),
            stream.ordered(deliver_policy="last_per_subject") as tail,
        ):
            keys = [message.subject.split(".")[-1] async for message in tail.initial()]

    assert keys == ["b", "c", "a"]
