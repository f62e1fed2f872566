"""Ordered reading: every client sees the same messages of a stream with holes in the same order."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.streams import delete_message, fill, payload

if TYPE_CHECKING:
    from tests.interop.clients.client import Client
    from tests.interop.clients.nats_js import NatsJs
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio

COUNT = 300
DELETED = {1, 2, 150, 151, 299}


async def make_stream(ours: Ours, stream: str) -> None:
    """Make a stream of 300 messages on three subjects and take some of them out again."""
    await fill(ours.js, stream, COUNT)
    for sequence in DELETED:
        await delete_message(ours.js, stream, sequence)


async def test_ordered_read_gives_every_client_the_same_messages(
    ours: Ours, reader: Client, stream_name: str
) -> None:
    await make_stream(ours, stream_name)
    expected = [
        (sequence, f"{stream_name}.{(sequence - 1) % 3}", payload(sequence - 1))
        for sequence in range(1, COUNT + 1)
        if sequence not in DELETED
    ]

    found = await reader.read(stream_name, len(expected))

    assert [(each.sequence, each.subject, each.data) for each in found] == expected


async def test_filtered_read_gives_every_client_the_same_messages(
    ours: Ours, reader: Client, stream_name: str
) -> None:
    await make_stream(ours, stream_name)
    expected = [each for each in range(2, COUNT + 1, 3) if each not in DELETED]

    found = await reader.read(stream_name, len(expected), only=f"{stream_name}.1")

    assert [each.sequence for each in found] == expected


@pytest.mark.needs_node
async def test_several_filters_give_us_and_nats_js_the_same_messages(
    ours: Ours, nats_js: NatsJs, stream_name: str
) -> None:
    await make_stream(ours, stream_name)
    filters = [f"{stream_name}.0", f"{stream_name}.2"]
    expected = [each for each in range(1, COUNT + 1) if each % 3 != 2 and each not in DELETED]
    options = {"filter_subjects": filters}

    handle = await nats_js.call("ordered", stream=stream_name, options=options)
    theirs = [each.sequence for each in await nats_js.take(handle, len(expected))]
    await nats_js.drop(handle)
    stream = await ours.js.streams.get(stream_name)
    found = [message.sequence async for message in stream.read(filters=filters)]

    assert theirs == found == expected


async def test_live_ordered_consumer_follows_what_another_client_writes(
    ours: Ours, writer: Client, stream_name: str
) -> None:
    await make_stream(ours, stream_name)
    stream = await ours.js.streams.get(stream_name)
    stored = [each for each in range(1, COUNT + 1) if each not in DELETED]
    found: list[int] = []

    async with asyncio.timeout(30), stream.ordered() as tail:
        async for message in tail:
            found.append(message.sequence)
            if message.sequence in {COUNT, COUNT + 1}:
                await writer.publish(f"{stream_name}.new", b"live")
            if message.sequence == COUNT + 2:
                break

    assert found == [*stored, COUNT + 1, COUNT + 2]


@pytest.mark.needs_node
async def test_live_ordered_consumers_of_us_and_of_nats_js_see_the_same(
    ours: Ours, nats_js: NatsJs, stream_name: str
) -> None:
    await make_stream(ours, stream_name)
    stream = await ours.js.streams.get(stream_name)
    handle = await nats_js.call("ordered", stream=stream_name, options={})
    total = COUNT - len(DELETED) + COUNT

    async with asyncio.timeout(30), stream.ordered() as tail:
        await fill(ours.js, stream_name, COUNT, start=COUNT)
        found = [await anext(tail) for _ in range(total)]

    theirs = await nats_js.take(handle, total)
    await nats_js.drop(handle)
    assert [(each.sequence, each.subject, each.data) for each in theirs] == [
        (each.sequence, each.subject, each.data) for each in found
    ]
