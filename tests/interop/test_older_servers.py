"""The basics on servers of other lines: messages, consumers, keys and objects of every client."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from natsstream.testing import NatsServer, server_binary
from tests.conftest import MAX_PAYLOAD_BYTES
from tests.interop.clients.client import Ack, Stored, Taken
from tests.interop.clients.kv import BucketOptions, Seen
from tests.interop.clients.objects import StoreOptions
from tests.interop.pairs import pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.interop.clients.client import Client, Config, Worker
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.objects import ObjectClient
    from tests.interop.clients.ours import Ours

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.sampled,
    pytest.mark.needs_versions,
    # Clients are asked for by name, which would not tell pytest that there are two servers.
    pytest.mark.usefixtures("server"),
]

NAME = "billing"
LARGE = bytes(range(256)) * 2_000


@pytest.fixture(scope="module", params=["2.10", "2.12"])
def server(request: pytest.FixtureRequest) -> Iterator[NatsServer]:
    """A server of an older line, in place of the one of the run."""
    binary = server_binary(cast("str", request.param))
    with NatsServer(binary=binary, max_payload_bytes=MAX_PAYLOAD_BYTES) as older:
        yield older


@pairs("stream")
async def test_message_on_an_older_server_reads_as_it_was_written(
    ours: Ours, writer: Client, reader: Client, stream_name: str
) -> None:
    await writer.create({"name": stream_name, "subjects": [f"{stream_name}.>"], "num_replicas": 1})
    subject, headers = f"{stream_name}.a", {"A": ["1", "zwölf"], "a": ["b: c"]}

    first = await writer.publish(subject, LARGE, headers=headers)
    again = [await each.publish(subject, b"2", msg_id="order-1") for each in (writer, reader)]

    assert (first, [each.duplicate for each in again]) == (Ack(stream_name, 1), [False, True])
    stored = Stored(subject, 1, headers, LARGE)
    assert await reader.get(stream_name, 1) == stored
    assert (await reader.read(stream_name, 2))[0] == stored
    assert (await ours.config(stream_name))["subjects"] == [f"{stream_name}.>"]


@pairs("stream", ("our", "cli", "js", "go", "py"), ("our", "cli", "js", "go", "py"))
async def test_consumer_on_an_older_server_is_shared(
    ours: Ours, writer: Worker, reader: Worker, stream_name: str
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    config: Config = {"durable_name": NAME, "name": NAME, "ack_policy": "explicit"}
    await writer.create_consumer(
        stream_name, {**config, "deliver_policy": "all", "replay_policy": "instant"}
    )
    # One message: what is new may come before what a nak gave back a moment ago.
    await ours.publish(f"{stream_name}.a", b"0", headers={"N": ["1"]})

    assert await writer.settle(stream_name, NAME, "nak") == Taken(1, 1)
    assert await reader.settle(stream_name, NAME, "ack") == Taken(1, 2)
    for number in (1, 2):
        await ours.publish(f"{stream_name}.a", b"%d" % number, headers={"N": ["1"]})
    assert await writer.settle(stream_name, NAME, "term") == Taken(2, 1)
    assert [each.data for each in await reader.work(stream_name, NAME, 1)] == [b"2"]


@pairs("kv")
async def test_keys_on_an_older_server_are_the_same_for_every_client(
    kv_writer: KvClient, kv_reader: KvClient, stream_name: str
) -> None:
    await kv_writer.create_bucket(BucketOptions(name=stream_name, history=4))
    await kv_writer.put(stream_name, "a.b", b"1")
    await kv_reader.put(stream_name, "a.b", LARGE)
    await kv_writer.create(stream_name, "new", b"3")
    await kv_reader.delete(stream_name, "new")

    for client in (kv_writer, kv_reader):
        assert await client.get(stream_name, "a.b") == LARGE
        assert await client.get(stream_name, "new") is None
        assert await client.keys(stream_name) == ["a.b"]
    assert await kv_reader.history(stream_name, "new") == [
        Seen("new", "PUT", b"3"),
        Seen("new", "DEL"),
    ]


@pairs("object")
async def test_objects_on_an_older_server_are_the_same_for_every_client(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    await object_writer.create_store(StoreOptions(name=stream_name))
    await object_writer.put(stream_name, "a/b.bin", LARGE)
    await object_writer.put(stream_name, "empty", b"")

    assert await object_reader.get(stream_name, "a/b.bin") == LARGE
    assert await object_reader.get(stream_name, "empty") == b""
    assert await object_reader.names(stream_name) == ["a/b.bin", "empty"]
    info = await object_reader.info(stream_name, "a/b.bin")
    assert info is not None
    assert info.size == len(LARGE)
