"""Readers: `python -m scripts.benchmarks.subjects.readers NAME URL STREAM COUNT`.

Law: every reader but the socket looks at subject, sequence, time and data of each message and sums
them as `streams.checksum_of` does. Some clients parse a field only when it is read.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import socket
import time
from typing import Any, cast
from urllib.parse import urlsplit

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

_RECEIVE_BYTES = 1 << 20


async def messages(url: str, stream: str, count: int) -> Figure:
    """Ours, a message object each."""
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch, seen, checksum = Stopwatch(), 0, 0
        watch.start()
        async for message in source.read(last_seq=count):
            checksum += message.sequence + len(message.subject) + len(message.data)
            checksum += message.time_ns > 0
            seen += 1
        return watch.stop(seen, checksum=checksum)


async def arrow(url: str, stream: str, count: int) -> Figure:
    """Ours, Arrow record batches with every column."""
    import natsstream as ns

    # A process pays for imports once, so they are no part of a message's cost.
    for module in ("natsstream._wire.framing", "natsstream.columns"):
        importlib.import_module(module)
    # pyarrow has no types for its functions.
    pc: Any = importlib.import_module("pyarrow.compute")
    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch, seen, checksum = Stopwatch(), 0, 0
        watch.start()
        async for each in source.read(last_seq=count).batches():
            batch: Any = each
            checksum += pc.sum(batch["sequence"]).as_py()
            checksum += pc.sum(pc.binary_length(batch["subject"])).as_py()
            checksum += pc.sum(pc.binary_length(batch["data"])).as_py()
            checksum += pc.count(batch["time"]).as_py()
            seen += each.num_rows
        return watch.stop(seen, checksum=checksum)


async def nats_py_fetch(url: str, stream: str, count: int) -> Figure:
    """nats-py, `fetch(1000)` of an ack-none pull consumer."""
    import nats
    from nats.js.api import AckPolicy, ConsumerConfig

    # nats-py leaves the types of its options open.
    client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    jetstream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
    config = ConsumerConfig(ack_policy=AckPolicy.NONE, mem_storage=True)
    consumer = await jetstream.pull_subscribe("", stream=stream, config=config)
    watch, seen, checksum = Stopwatch(), 0, 0
    watch.start()
    while seen < count:
        for message in await consumer.fetch(min(1000, count - seen), timeout=5):
            meta = message.metadata
            checksum += meta.sequence.stream + len(message.subject) + len(message.data)
            checksum += bool(meta.timestamp)
            seen += 1
    figure = watch.stop(seen, checksum=checksum)
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
    watch, seen, checksum = Stopwatch(), 0, 0
    watch.start()
    while seen < count:
        # natsrpy leaves the types of its messages open.
        for message in cast(
            "list[Any]", await consumer.fetch(max_messages=min(1000, count - seen))
        ):
            checksum += message.stream_sequence + len(message.subject) + len(message.payload)
            checksum += bool(message.published)
            seen += 1
    return watch.stop(seen, checksum=checksum)


async def socket_reader(url: str, stream: str, count: int) -> Figure:
    """A socket that does nothing with the bytes: the speed of the machine and its server."""
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
        watch, seen, checksum = Stopwatch(), 0, 0
        watch.start()
        async with source.ordered() as tail:
            async for message in tail:
                checksum += message.sequence + len(message.subject) + len(message.data)
                checksum += message.time_ns > 0
                seen += 1
                if seen == count:
                    break
        return watch.stop(seen, checksum=checksum)


async def ordered_batches(url: str, stream: str, count: int) -> Figure:
    """Ours, the ordered consumer, lists of messages as they arrive."""
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch, seen, checksum = Stopwatch(), 0, 0
        watch.start()
        async with source.ordered() as tail:
            async for batch in tail.batches():
                for message in batch:
                    checksum += message.sequence + len(message.subject) + len(message.data)
                    checksum += message.time_ns > 0
                seen += len(batch)
                if seen >= count:
                    break
        return watch.stop(seen, checksum=checksum)


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
