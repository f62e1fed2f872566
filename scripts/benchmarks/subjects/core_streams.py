"""Core streams: `python -m scripts.benchmarks.subjects.core_streams NAME URL STREAM COUNT`.

STREAM is the name of a core stream. Loading one decodes no value: a user looks at few.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, cast

import natsstream as ns
from natsstream.conat.names import StreamNames
from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

VALUE = {"text": "a small message"}
_FETCH = 1_000


def names_of(name: str) -> StreamNames:
    """Return the names of a core stream without an owner."""
    return StreamNames(f"hub/{name}")


async def open_stream(url: str, stream: str, count: int) -> Figure:
    """Load a core stream into memory."""
    watch = Stopwatch()
    async with ns.connect(url) as js:
        watch.start()
        async with await js.core_stream(stream) as opened:
            figure = watch.stop(count)
            _check(len(opened), count)
    return figure


async def read_stream(url: str, stream: str, count: int) -> Figure:
    """Read the same messages with the bulk reader, look at four fields, and keep none."""
    watch, found, looked_at = Stopwatch(), 0, 0
    async with ns.connect(url) as js:
        held = await js.streams.get(names_of(stream).stream)
        watch.start()
        async for message in held.read():
            found += 1
            looked_at += message.sequence + message.time_ns
            looked_at += len(message.subject) + len(message.data)
        figure = watch.stop(count, checksum=looked_at)
    _check(found, count)
    return figure


async def nats_py_dicts(url: str, stream: str, count: int) -> Figure:
    """Keep each message as a dict, filled by nats-py."""
    import nats
    from nats.js.api import AckPolicy, ConsumerConfig

    watch, names = Stopwatch(), names_of(stream)
    client: Any = await cast("Any", nats).connect(url)
    config = ConsumerConfig(ack_policy=AckPolicy.NONE)
    pull = await client.jetstream().pull_subscribe(
        names.unkeyed, stream=names.stream, config=config
    )
    kept: list[dict[str, object]] = []
    watch.start()
    while len(kept) < count:
        for message in await pull.fetch(min(_FETCH, count - len(kept)), timeout=30):
            meta = message.metadata
            kept.append(
                {
                    "seq": meta.sequence.stream,
                    "time": meta.timestamp,
                    "headers": message.headers,
                    "data": message.data,
                }
            )
    figure = watch.stop(count)
    await client.close()
    return figure


async def publish_many(url: str, stream: str, count: int) -> Figure:
    """Store messages, each with a result of its own."""
    return await _store(url, stream, [ns.PublishItem(VALUE)] * count)


async def set_kv_many(url: str, stream: str, count: int) -> Figure:
    """Set different keys."""
    options = (ns.PublishOptions(key=f"key {number}") for number in range(count))
    return await _store(url, stream, [ns.PublishItem(VALUE, each) for each in options])


async def publisher(url: str, stream: str, count: int) -> Figure:
    """Publish the same bytes with the pipelined publisher."""
    watch, subject = Stopwatch(), names_of(stream).unkeyed
    async with ns.connect(url) as js, await js.core_stream(stream), js.publisher() as out:
        watch.start()
        await out.send_many([(subject, b"\x81\xa4text\xafa small message")] * count)
        return watch.stop(count)


async def change(url: str, stream: str, count: int) -> Figure:
    """Publish one by one, and measure until another client is told of the change."""
    watch, times_s = Stopwatch(), [0.0] * count
    async with ns.connect(url) as writer_js, ns.connect(url) as reader_js:
        writer, reader = await writer_js.core_stream(stream), await reader_js.core_stream(stream)
        changes = reader.changes()
        watch.start()
        for number in range(count):
            began = time.perf_counter()
            sending = asyncio.ensure_future(writer.publish(number))
            await anext(changes)
            times_s[number] = time.perf_counter() - began
            await sending
        figure = watch.stop(count, times_s)
        await writer.close()
        await reader.close()
    return figure


async def open_many(url: str, stream: str, count: int) -> Figure:
    """Open many core streams in memory, and keep them all open."""
    watch = Stopwatch()
    async with ns.connect(url, request_timeout=60) as js:
        watch.start()
        room = asyncio.Semaphore(32)

        async def opened(number: int) -> ns.CoreStream:
            async with room:
                return await js.core_stream(f"{stream}/{number}", ephemeral=True)

        streams = await asyncio.gather(*map(opened, range(count)))
        figure = watch.stop(count)
        await asyncio.gather(*[each.close() for each in streams])
    return figure


async def _store(url: str, stream: str, items: list[ns.PublishItem]) -> Figure:
    watch = Stopwatch()
    async with ns.connect(url) as js, await js.core_stream(stream) as opened:
        watch.start()
        results = await opened.publish_many(items)
        figure = watch.stop(len(items))
    _check(sum(each.error is None for each in results), len(items))
    return figure


def _check(found: int, wanted: int) -> None:
    if found != wanted:
        raise RuntimeError(f"{found} messages instead of {wanted}")


SUBJECTS: Subjects = {
    "open": open_stream,
    "read": read_stream,
    "nats-py dicts": nats_py_dicts,
    "publish_many": publish_many,
    "set_kv_many": set_kv_many,
    "publisher": publisher,
    "change": change,
    "open many": open_many,
}

if __name__ == "__main__":
    run_subject(SUBJECTS)
