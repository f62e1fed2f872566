"""No header is stored that the caller did not give, but those that a feature is made of.

Read as the server stores them, by its API and not by our readers.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import TYPE_CHECKING

import pytest

from natsstream import Schedule
from natsstream._wire.headers import Headers
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio

GIVEN = {"Given": "yes"}


async def stored(js: JetStream, stream: str) -> list[dict[str, str]]:
    """Return the headers of all messages of a stream, as the server's API tells them."""
    last = (await (await js.streams.get(stream)).info()).state.last_seq
    found: list[dict[str, str]] = []
    for sequence in range(1, last + 1):
        answer = await js.core.request(
            f"$JS.API.STREAM.MSG.GET.{stream}", json.dumps({"seq": sequence}).encode(), timeout=10
        )
        message = json.loads(answer.data).get("message")
        if message is not None:
            found.append(dict(Headers(base64.b64decode(message.get("hdrs", "")))))
    return found


async def by_publish(js: JetStream, stream: Stream, subject: str) -> None:
    await js.publish(subject, b"", headers=GIVEN)
    await stream.publish(subject, b"", headers=GIVEN)


async def by_publisher(js: JetStream, stream: Stream, subject: str) -> None:
    del stream
    async with js.publisher() as publisher:
        for _ in range(2):
            await publisher.send(subject, b"", headers=GIVEN)


async def by_ingest(js: JetStream, stream: Stream, subject: str) -> None:
    del js
    async with stream.ingest() as fast:
        for _ in range(2):
            await fast.send(subject, b"", headers=GIVEN)


@pytest.mark.parametrize("write", [by_publish, by_publisher, by_ingest])
async def test_message_has_the_headers_that_were_given_and_no_other(
    js: JetStream, stream_name: str, write: Callable[[JetStream, Stream, str], Awaitable[None]]
) -> None:
    stream = await js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], allow_batched=True, storage="memory"
    )

    await write(js, stream, f"{stream_name}.a")

    assert await stored(js, stream_name) == [GIVEN, GIVEN]


async def test_publisher_that_sends_again_adds_an_id(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    async with js.publisher(retry_for=5) as publisher:
        for _ in range(2):
            await publisher.send(stream_name, b"", headers=GIVEN)

    found = [
        {name: re.sub(r"^[\w-]{12}-", "<id>", value) for name, value in each.items()}
        for each in await stored(js, stream_name)
    ]
    assert found == [{**GIVEN, "Nats-Msg-Id": "<id>1"}, {**GIVEN, "Nats-Msg-Id": "<id>2"}]


async def test_atomic_batch_adds_its_marks(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], allow_atomic=True, storage="memory"
    )

    async with stream.batch() as tx:
        await tx.add(f"{stream_name}.a", headers=GIVEN)
        await tx.commit(f"{stream_name}.b", headers=GIVEN)

    marks = {"Nats-Batch-Id": tx.batch_id}
    assert await stored(js, stream_name) == [
        {**GIVEN, **marks, "Nats-Batch-Sequence": "1"},
        {**GIVEN, **marks, "Nats-Batch-Sequence": "2", "Nats-Batch-Commit": "1"},
    ]


async def test_buckets_stores_and_counters_add_what_their_conventions_have(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, history=8, limit_marker_ttl=60)
    revision = await kv.put("a", b"")
    await kv.update("a", b"", revision=revision)
    await kv.create("b", b"", ttl=70)
    await kv.delete("a")
    await kv.purge("b")
    store = await js.objects.create(stream_name)
    await store.put("o", b"x")
    counters = await js.counters.ensure(f"{stream_name}_c", subjects=[f"{stream_name}.c"])
    await counters.incr(f"{stream_name}.c", 2)

    names = [set(each) for each in await stored(js, f"KV_{stream_name}")]
    # A purge by roll-up has removed what was before it.
    assert names == [
        set(),
        {"Nats-Expected-Last-Subject-Sequence"},
        {"KV-Operation"},
        {"KV-Operation", "Nats-Rollup"},
    ]
    assert [set(each) for each in await stored(js, f"OBJ_{stream_name}")] == [
        set(),
        {"Nats-Rollup", "Nats-Expected-Last-Subject-Sequence"},
    ]
    assert [set(each) for each in await stored(js, f"{stream_name}_c")] == [{"Nats-Incr"}]


async def test_dead_letters_notes_and_replays_say_nothing_of_a_stream_to_the_server(
    js: JetStream, stream_name: str
) -> None:
    queue = await js.dead_letters.ensure(f"{stream_name}_DLQ")
    stream = await js.streams.create(stream_name, subjects=[stream_name])
    headers = {**GIVEN, "Nats-Expected-Stream": stream_name}
    await js.publish(stream_name, b"", headers=headers)
    worker = await stream.consumers.create("w", max_deliver=1)

    async def fail(message: object) -> None:
        raise ValueError(message)

    async def is_dead() -> bool:
        return await queue.count() == 1

    working = asyncio.create_task(worker.run(fail, dead_letter=queue.name))
    await eventually_async(is_dead)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    letters = [set(each) for each in await stored(js, queue.name)]
    (letter,) = [each async for each in queue.list()]
    await queue.replay(letter)

    assert not any("Nats-Expected-Stream" in each for each in letters)
    assert [set(each) for each in await stored(js, stream_name)] == [
        set(headers),
        {*GIVEN, "Nats-Msg-Id"},
    ]


async def test_links_and_schedules_add_their_own_headers(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(
        stream_name,
        subjects=[f"{stream_name}.>"],
        allow_msg_schedules=True,
        duplicate_window=60,
    )
    async with stream.chained(writer="w") as chain:
        await chain.send(f"{stream_name}.link", b"", headers=GIVEN)
    far = Schedule.after(86_400, target=f"{stream_name}.do")
    await stream.publish(f"{stream_name}.when", b"", headers=GIVEN, schedule=far)

    assert [set(each) for each in await stored(js, stream_name)] == [
        {*GIVEN, "Nats-Msg-Id", "Chain-Writer", "Chain-Count", "Chain-Previous", "Chain-Hash"},
        # The server adds the roll-up itself.
        {*GIVEN, "Nats-Schedule", "Nats-Schedule-Target", "Nats-Rollup"},
    ]


@pytest.mark.parametrize("write", [by_publish, by_publisher, by_ingest])
async def test_message_is_copied_with_its_headers_into_another_stream(
    js: JetStream, stream_name: str, write: Callable[[JetStream, Stream, str], Awaitable[None]]
) -> None:
    """A worker that names no stream was refused with 10060, for a header that nobody gave."""
    stream = await js.streams.create(
        stream_name, subjects=[f"{stream_name}.>"], allow_batched=True, storage="memory"
    )
    copies = await js.streams.create(f"{stream_name}_c", storage="memory")
    await write(js, stream, f"{stream_name}.a")

    async for message in stream.read():
        await js.publish(copies.name, message.data, headers=message.headers)

    assert await stored(js, copies.name) == [GIVEN, GIVEN]
