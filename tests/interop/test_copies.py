"""Mirrors, sources and partitions that one client makes of what another has written in batches."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.client import Stored
from tests.interop.pairs import pairs
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from tests.interop.clients.client import Client, Config
    from tests.interop.clients.nats_go import NatsGo
    from tests.interop.clients.nats_js import NatsJs
    from tests.interop.clients.ours import Ours

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

COUNT = 40
PARTITIONS = 3


async def make_origin(ours: Ours, name: str) -> None:
    """Make a stream that takes both kinds of batches."""
    config: Config = {"name": name, "subjects": [f"{name}.>"], "allow_direct": True}
    await ours.create({**config, "allow_atomic": True, "allow_batched": True})


async def holds(ours: Ours, stream: str, count: int) -> None:
    """Wait until a copy has so many messages."""
    copy = await ours.js.streams.get(stream)

    async def is_there() -> bool:
        return (await copy.info()).state.messages == count

    assert await eventually_async(is_there, within_s=30)


async def write(ours: Ours, name: str, kind: str) -> None:
    """Write messages with natsstream, in one batch."""
    stream = await ours.js.streams.get(name)
    if kind == "atomic":
        async with stream.batch() as batch:
            for number in range(COUNT):
                await batch.add(f"{name}.{number % 3}", b"%d" % number, headers={"N": str(number)})
            await batch.commit()
        return
    async with stream.ingest() as fast:
        for number in range(COUNT):
            await fast.send(f"{name}.{number % 3}", b"%d" % number, headers={"N": str(number)})
        await fast.close()


def plain(messages: list[Stored]) -> list[Stored]:
    """Return messages of a copy without the header that tells where a source has them from.

    The server takes the headers of batches and of expectations out of what it copies.
    """
    return [
        replace(each, headers={n: v for n, v in each.headers.items() if n != "Nats-Stream-Source"})
        for each in messages
    ]


@pairs("stream")
@pytest.mark.parametrize("kind", ["atomic", "fast"])
@pytest.mark.parametrize("role", ["mirror", "source"])
async def test_copy_of_our_batches_holds_every_message(
    ours: Ours, writer: Client, reader: Client, stream_name: str, kind: str, role: str
) -> None:
    await make_origin(ours, stream_name)
    copy = f"{stream_name}_COPY"
    place: Config = {"mirror": {"name": stream_name}, "mirror_direct": True}
    if role == "source":
        place = {"sources": [{"name": stream_name}]}
    await writer.create({"name": copy, "num_replicas": 1, **place})

    await write(ours, stream_name, kind)
    await holds(ours, copy, COUNT)

    assert plain(await reader.read(copy, COUNT)) == [
        Stored(f"{stream_name}.{number % 3}", number + 1, {"N": [str(number)]}, b"%d" % number)
        for number in range(COUNT)
    ]


async def test_batches_of_another_client_are_mirrored_by_ours(
    ours: Ours, peer: NatsJs, stream_name: str
) -> None:
    await make_origin(ours, stream_name)
    copy = f"{stream_name}_COPY"
    await ours.create({"name": copy, "mirror": {"name": stream_name}, "mirror_direct": True})

    await peer.publish_batch(f"{stream_name}.a", [b"1", b"2", b"3"])
    await peer.ingest(f"{stream_name}.b", [(b"%d" % number, {}) for number in range(20)])
    await holds(ours, copy, 23)

    assert plain(await ours.read(copy, 23)) == [
        replace(each, headers={}) for each in await peer.read(stream_name, 23)
    ]


@pytest.mark.needs_go
async def test_partitions_that_nats_go_writes_are_read_apart_and_whole(
    ours: Ours, nats_go: NatsGo, stream_name: str
) -> None:
    """As orbit.go's pcgroups lays them out: the partition is the first token of the subject."""
    part_and_key = f"{{{{Partition({PARTITIONS},1)}}}}.{stream_name}.{{{{Wildcard(1)}}}}"
    transform = {"src": f"{stream_name}.*", "dest": part_and_key}
    await nats_go.create(
        {"name": stream_name, "subjects": [f"{stream_name}.*"], "subject_transform": transform}
    )
    for number in range(COUNT):
        await nats_go.publish(f"{stream_name}.key{number % 10}", b"%d" % number)

    parts: list[list[Stored]] = []
    for part in range(PARTITIONS):
        consumer: Config = {
            "durable_name": f"part-{part}",
            "ack_policy": "explicit",
            "filter_subjects": [f"{part}.>"],
            "priority_groups": ["PCG"],
            "priority_policy": "pinned_client",
        }
        await nats_go.create_consumer(stream_name, consumer)
        handle = await ours.consumer(stream_name, f"part-{part}")
        messages = await handle.fetch(COUNT, timeout=30, no_wait=True, group="PCG")
        parts.append([Stored(each.subject, each.sequence, {}, each.data) for each in messages])

    whole = sorted((each for part in parts for each in part), key=lambda each: each.sequence)
    assert [each.data for each in whole] == [b"%d" % number for number in range(COUNT)]
    keys = [{each.subject.rpartition(".")[2] for each in part} for part in parts]
    assert sum(map(len, keys)) == len(set[str]().union(*keys)) == 10
    for number, part in enumerate(parts):
        assert {each.subject.partition(".")[0] for each in part} <= {str(number)}
