"""Publishers with an ack for each message, many in flight.

`python -m scripts.benchmarks.subjects.publishers NAME URL STREAM COUNT`
"""

from __future__ import annotations

import asyncio
from typing import Any, cast
from urllib.parse import urlsplit

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

PAYLOAD = b"x" * 256
# The window of every subject: messages in flight.
_WINDOW = 4_096


async def publisher(url: str, stream: str, count: int) -> Figure:
    """Ours, `publisher.send`, the future of each ack kept until it is done."""
    import natsstream as ns

    async with ns.connect(url) as js:
        watch = Stopwatch()
        watch.start()
        acks: list[asyncio.Future[ns.PubAck]] = []
        async with js.publisher(max_pending=_WINDOW) as pub:
            for _ in range(count):
                acks.append(await pub.send(f"{stream}.x", PAYLOAD))  # noqa: PERF401 - as users do.
        return watch.stop(sum(ack.done() and not ack.exception() for ack in acks))


async def blocking(url: str, stream: str, count: int) -> Figure:
    """Ours without async, `publisher.send_many`."""
    import natsstream.blocking

    def work() -> Figure:
        with natsstream.blocking.connect(url) as js:
            watch = Stopwatch()
            watch.start()
            with js.publisher(max_pending=_WINDOW) as pub:
                acks = pub.send_many((f"{stream}.x", PAYLOAD) for _ in range(count))
            return watch.stop(len(acks))

    return await asyncio.to_thread(work)


async def nats_py(url: str, stream: str, count: int) -> Figure:
    """nats-py, `publish_async`."""
    import nats

    # nats-py leaves the types of its options open.
    client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    jetstream = cast("Any", client).jetstream(publish_async_max_pending=_WINDOW)
    watch = Stopwatch()
    watch.start()
    # With `wait_stall` it makes a task for each message, which takes four times as long.
    futures = [await jetstream.publish_async(f"{stream}.x", PAYLOAD) for _ in range(count)]
    acks = await asyncio.gather(*futures)
    figure = watch.stop(len(acks))
    await client.close()
    return figure


async def natsrpy(url: str, stream: str, count: int) -> Figure:
    """natsrpy (Rust), `publish(wait=True)`, a window gathered at a time."""
    from natsrpy import Nats

    client = Nats(addrs=[url])
    await client.startup()
    jetstream = await client.jetstream()
    watch, sent = Stopwatch(), 0
    watch.start()
    while sent < count:
        window = min(_WINDOW, count - sent)
        acks = await asyncio.gather(
            *[jetstream.publish(f"{stream}.x", PAYLOAD, wait=True) for _ in range(window)]
        )
        sent += len(acks)
    return watch.stop(sent)


async def bare_connection(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return a socket that speaks NATS and hears what is sent to `in.>`."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 20)
    await reader.readline()  # INFO
    writer.write(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB in.> 1\r\n')
    return reader, writer


async def raw_writer(url: str, stream: str, count: int) -> Figure:
    """The same bytes over a plain socket, which counts acks and does nothing else."""
    reader, writer = await bare_connection(url)
    size = len(PAYLOAD)
    command = b"PUB %b.x in.0123456789.1234 %d\r\n%b\r\n" % (stream.encode(), size, PAYLOAD)
    watch = Stopwatch()
    watch.start()
    sent = acked = 0
    while acked < count:
        room = min(count, acked + _WINDOW) - sent
        writer.write(command * room)
        sent += room
        answers = await reader.read(1 << 20)
        if not answers or b'"error"' in answers:
            raise RuntimeError(f"the server answered {answers[:200]!r}")
        # Each ack ends in the only brace of its kind; a split between two reads does not matter.
        acked += answers.count(b"}")
    figure = watch.stop(acked)
    writer.close()
    return figure


PUBLISHERS: Subjects = {
    "publisher": publisher,
    "blocking send_many": blocking,
    "nats-py publish_async": nats_py,
    "natsrpy publish": natsrpy,
    "raw writer": raw_writer,
}

if __name__ == "__main__":
    run_subject(PUBLISHERS)
