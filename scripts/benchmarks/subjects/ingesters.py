"""Writers of fast batches (ADR-50): ours, and one that does nothing but write the bytes.

`python -m scripts.benchmarks.subjects.ingesters NAME URL STREAM COUNT`; the stream needs
`allow_batched`.
"""

from __future__ import annotations

import asyncio
import json

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

PAYLOAD = b"x" * 256
# As in natsstream: messages for each ack, and acks in flight.
_FLOW = 500
_OUTSTANDING = 2
_BLOCK = 250


async def send(url: str, stream: str, count: int) -> Figure:
    """Ours, `fast.send`."""
    import natsstream as ns

    async with ns.connect(url) as js:
        orders = await js.streams.get(stream)
        watch = Stopwatch()
        watch.start()
        async with orders.ingest() as fast:
            for _ in range(count):
                await fast.send(f"{stream}.x", PAYLOAD)
            report = await fast.close()
        return watch.stop(report.stored)


async def send_many(url: str, stream: str, count: int) -> Figure:
    """Ours, `fast.send_many`."""
    import natsstream as ns

    async with ns.connect(url) as js:
        orders = await js.streams.get(stream)
        watch = Stopwatch()
        watch.start()
        async with orders.ingest() as fast:
            await fast.send_many([(f"{stream}.x", PAYLOAD)] * count)
            report = await fast.close()
        return watch.stop(report.stored)


async def raw(url: str, stream: str, count: int) -> Figure:
    """A bare writer on the same connection: formats commands, counts acks, and checks nothing."""
    import natsstream as ns

    async with ns.connect(url) as js:
        client = js._client  # pyright: ignore[reportPrivateUsage] # noqa: SLF001 - as bare as ours.
        inbox = client.new_inbox()
        heard = asyncio.Event()
        acked, every, stored = 0, 0, 0

        def on_frames(frames: list[tuple[bytes, bytes, bytes, bytes]]) -> None:
            nonlocal acked, every, stored
            for frame in frames:
                answer = json.loads(frame[3])
                if answer.get("type") == "ack":
                    acked, every = answer["seq"], answer["msgs"]
                else:
                    stored = answer["count"]
            heard.set()

        subscription = await client.subscribe(f"{inbox}.>", on_frames)
        start = f" {stream}.x {inbox}.raw.{_FLOW}.fail.".encode()
        watch = Stopwatch()
        watch.start()
        size = len(PAYLOAD)
        client.write(b"PUB%b1.0.$FI %d\r\n%b\r\n" % (start, size, PAYLOAD))
        sent = 1
        while sent < count:
            room = min(acked + _OUTSTANDING * every - sent, _BLOCK, count - sent)
            if room <= 0:
                heard.clear()
                await heard.wait()
                continue
            client.write(
                b"".join(
                    b"PUB%b%d.1.$FI %d\r\n%b\r\n" % (start, number, size, PAYLOAD)
                    for number in range(sent + 1, sent + room + 1)
                )
            )
            sent += room
        client.write(b"PUB%b%d.3.$FI 0\r\n\r\n" % (start, sent + 1))
        while not stored:
            heard.clear()
            await heard.wait()
        figure = watch.stop(stored)
        subscription.close()
        return figure


INGESTERS: Subjects = {"raw fast batch": raw, "fast.send": send, "fast.send_many": send_many}

if __name__ == "__main__":
    run_subject(INGESTERS)
