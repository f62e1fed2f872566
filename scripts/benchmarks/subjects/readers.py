"""Readers: `python -m scripts.benchmarks.subjects.readers NAME URL STREAM COUNT`."""

from __future__ import annotations

import asyncio
import importlib
import json
import socket
import time
from urllib.parse import urlsplit

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

_RECEIVE_BYTES = 1 << 20


async def messages(url: str, stream: str, count: int) -> Figure:
    """Ours, a message object each."""
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch, seen = Stopwatch(), 0
        watch.start()
        async for _ in source.read(last=count):
            seen += 1
        return watch.stop(seen)


async def arrow(url: str, stream: str, count: int) -> Figure:
    """Ours, Arrow record batches with every column."""
    import natsstream as ns

    # What a process pays once is not what a message costs.
    for module in ("natsstream._wire.framing", "natsstream.columns"):
        importlib.import_module(module)
    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch, seen = Stopwatch(), 0
        watch.start()
        async for batch in source.read(last=count).batches():
            seen += batch.num_rows
        return watch.stop(seen)


async def nats_py_fetch(url: str, stream: str, count: int) -> Figure:
    """nats-py, `fetch(1000)` of an ack-none pull consumer."""
    import nats
    from nats.js.api import AckPolicy, ConsumerConfig

    # nats-py leaves the types of its options open.
    client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    jetstream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, mem_storage=True)
    consumer = await jetstream.pull_subscribe("", stream=stream, config=config)
    watch, seen = Stopwatch(), 0
    watch.start()
    while seen < count:
        seen += len(await consumer.fetch(min(1000, count - seen), timeout=5))
    figure = watch.stop(seen)
    await client.close()
    return figure


async def natsrpy_fetch(url: str, stream: str, count: int) -> Figure:
    """natsrpy (Rust), `fetch(1000)` of an ack-none pull consumer."""
    from natsrpy import Nats
    from natsrpy.js import AckPolicy, PullConsumerConfig

    client = Nats(addrs=[url])
    await client.startup()
    jetstream = await client.jetstream()
    source = await jetstream.streams.get(stream)
    config = PullConsumerConfig(name=f"bench{time.time_ns()}", ack_policy=AckPolicy.NONE)
    consumer = await source.consumers.create(config)
    watch, seen = Stopwatch(), 0
    watch.start()
    while seen < count:
        seen += len(await consumer.fetch(max_messages=min(1000, count - seen)))
    return watch.stop(seen)


async def socket_reader(url: str, stream: str, count: int) -> Figure:
    """A socket that does nothing with the bytes: the bound for every client."""
    return await asyncio.to_thread(_read_socket, url, stream, count)


def _read_socket(url: str, stream: str, count: int) -> Figure:
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname or "", parts.port or 4222), 30) as connection:
        buffer = bytearray(_RECEIVE_BYTES)
        connection.recv_into(buffer)  # INFO
        config = {"ack_policy": "none", "deliver_policy": "all", "mem_storage": True}
        body = json.dumps({"stream_name": stream, "config": config}).encode()
        connection.sendall(
            b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB in.* 1\r\n'
            + b"PUB $JS.API.CONSUMER.CREATE.%b in.1 %d\r\n%b\r\n"
            % (stream.encode(), len(body), body)
        )
        size = connection.recv_into(buffer)
        consumer = json.loads(bytes(buffer[:size]).split(b"\r\n")[1])["name"]
        pull = json.dumps({"batch": count, "expires": 60_000_000_000}).encode()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}"
        # The last message's ack subject has its sequence twice: stream's and consumer's.
        end = b".%d.%d." % (count, count)
        view, tail = memoryview(buffer), b""
        watch = Stopwatch()
        watch.start()
        connection.sendall(b"PUB %b in.2 %d\r\n%b\r\n" % (subject.encode(), len(pull), pull))
        while True:
            size = connection.recv_into(buffer)
            tail = (tail + bytes(view[max(0, size - 1024) : size]))[-1024:]
            if end in tail:
                return watch.stop(count)


async def ordered(url: str, stream: str, count: int) -> Figure:
    """Ours, the ordered consumer, a message object each."""
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch, seen = Stopwatch(), 0
        watch.start()
        async with source.ordered() as tail:
            async for _ in tail:
                seen += 1
                if seen == count:
                    break
        return watch.stop(seen)


async def ordered_batches(url: str, stream: str, count: int) -> Figure:
    """Ours, the ordered consumer, lists of messages as they arrive."""
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch, seen = Stopwatch(), 0
        watch.start()
        async with source.ordered() as tail:
            async for batch in tail.batches():
                seen += len(batch)
                if seen >= count:
                    break
        return watch.stop(seen)


READERS: Subjects = {
    "socket": socket_reader,
    "messages": messages,
    "arrow": arrow,
    "ordered": ordered,
    "ordered batches": ordered_batches,
    "natsrpy fetch": natsrpy_fetch,
    "nats-py fetch": nats_py_fetch,
}


if __name__ == "__main__":
    run_subject(READERS)
