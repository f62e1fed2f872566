"""What natsstream adds to, reads of and refuses to foreign things: as much as nats.go does."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import Schedule
from natsstream.errors import BucketExistsError
from natsstream.testing import NatsServer, server_binary
from tests.interop.clients.client import RefusedError
from tests.interop.clients.kv import BucketOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import Stream
    from tests.interop.clients.client import Client
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.nats_cli import NatsCli
    from tests.interop.clients.nats_go import NatsGo
    from tests.interop.clients.ours import Ours

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

STREAM_EXISTS = 10058


async def write_plain(ours: Ours, _: Stream, subject: str) -> None:
    """Write with `js.publish`."""
    await ours.js.publish(subject, b"1", headers={"N": ["1", "2"]})


async def write_by_stream(_: Ours, stream: Stream, subject: str) -> None:
    """Write with `stream.publish`."""
    await stream.publish(subject, b"1", headers={"N": ["1", "2"]})


async def write_pipelined(ours: Ours, _: Stream, subject: str) -> None:
    """Write with `js.publisher`."""
    async with ours.js.publisher() as publisher:
        await publisher.send(subject, b"1", headers={"N": ["1", "2"]})


async def write_atomic(_: Ours, stream: Stream, subject: str) -> None:
    """Write with `stream.batch`."""
    async with stream.batch() as batch:
        await batch.add(subject, b"1", headers={"N": ["1", "2"]})
        await batch.commit()


async def write_fast(_: Ours, stream: Stream, subject: str) -> None:
    """Write with `stream.ingest`."""
    async with stream.ingest() as fast:
        await fast.send(subject, b"1", headers={"N": ["1", "2"]})
        await fast.close()


WAYS = [write_plain, write_by_stream, write_pipelined, write_atomic, write_fast]


@pytest.mark.parametrize("write", WAYS, ids=[way.__name__.removeprefix("write_") for way in WAYS])
async def test_message_of_ours_is_copied_with_its_headers(
    ours: Ours, reader: Client, stream_name: str, write: Any
) -> None:
    """A worker that hands a message on with all headers is no special case; batches are left."""
    other = f"{stream_name}_OTHER"
    stream = await ours.js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], allow_atomic=True, allow_batched=True
    )
    await ours.create({"name": other, "subjects": [f"{other}.>"]})
    await write(ours, stream, f"{stream_name}.a")

    [found] = await reader.read(stream_name, 1)
    kept = {name: v for name, v in found.headers.items() if not name.startswith("Nats-Batch-")}
    ack = await reader.publish(f"{other}.a", found.data, headers=kept)

    assert kept == {"N": ["1", "2"]}
    assert (ack.stream, ack.sequence) == (other, 1)
    assert await ours.get(other, 1) == replace(found, subject=f"{other}.a", headers=kept)


# The life of 90 seconds, as each client writes it.
LIVES = {"nats-js": "90s", "nats-go": "1m30s", "number": "90"}


@pytest.mark.parametrize("life", LIVES.values(), ids=list(LIVES))
async def test_life_of_a_foreign_schedule_is_a_number_of_seconds(
    ours: Ours, stream_name: str, life: str
) -> None:
    stream = await ours.js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], allow_msg_schedules=True, allow_msg_ttl=True
    )
    when, target = f"{stream_name}.when", f"{stream_name}.do"
    headers = {"Nats-Schedule": ["@every 3600s"], "Nats-Schedule-Target": [target]}

    await ours.publish(when, headers={**headers, "Nats-Schedule-TTL": [life]})

    found = await stream.schedules.get(when)
    assert found is not None
    assert found.schedule == Schedule.every(3_600, target=target, ttl=90)
    await stream.publish(when, b"again", schedule=found.schedule)
    assert [each.schedule async for each in stream.schedules.list()] == [found.schedule]


@pytest.mark.needs_go
async def test_schedule_of_nats_go_is_read_with_its_life(
    ours: Ours, nats_go: NatsGo, stream_name: str
) -> None:
    stream = await ours.js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], allow_msg_schedules=True, allow_msg_ttl=True
    )
    when, target = f"{stream_name}.when", f"{stream_name}.do"

    await nats_go.call(
        "schedule", subject=when, target=target, every="90s", life="90s", data="", headers={}
    )

    found = await stream.schedules.get(when)
    assert found is not None
    assert (found.schedule.target, found.schedule.ttl) == (target, 90)


@pytest.mark.needs_go
async def test_bucket_of_another_configuration_is_refused_and_stays_as_it_is(
    ours: Ours, go_buckets: KvClient, stream_name: str
) -> None:
    await ours.js.kv.ensure(stream_name, extra={"allow_direct": False, "discard": "old"})
    before = await ours.config(f"KV_{stream_name}")

    with pytest.raises(RefusedError) as refused:
        await go_buckets.create_bucket(BucketOptions(name=stream_name))
    with pytest.raises(BucketExistsError):
        await ours.js.kv.create(stream_name)

    assert refused.value.err_code == STREAM_EXISTS
    assert await ours.config(f"KV_{stream_name}") == before


class TestOnAnOlderServer:
    """On 2.10, which stores empty fields as they are given."""

    @pytest.fixture
    def server(self) -> Iterator[NatsServer]:
        """A server of 2.10."""
        with NatsServer(binary=server_binary("2.10")) as older:
            yield older

    @pytest.mark.needs_go
    @pytest.mark.needs_versions
    async def test_store_of_the_cli_is_returned_where_nothing_differs(
        self, ours: Ours, nats_cli: NatsCli, stream_name: str
    ) -> None:
        await nats_cli.run("object", "add", stream_name)

        box = await ours.js.objects.create(stream_name)

        await box.put("a", b"1")
        assert await box.get("a") == b"1"
