"""Batches: `python -m scripts.benchmarks.subjects.batches NAME URL STREAM COUNT`."""

from __future__ import annotations

import json

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.publishers import PAYLOAD, bare_connection
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

# As the defaults of `stream.ingest()`: messages for each ack, and acks in flight.
_FLOW = 500
_OUTSTANDING = 2
_ATOMIC_MESSAGES = 500
_START, _APPEND, _COMMIT = 0, 1, 2


async def fast_send(url: str, stream: str, count: int) -> Figure:
    """Ours, `send` of a fast batch."""
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch = Stopwatch()
        watch.start()
        async with source.ingest() as fast:
            for _ in range(count):
                await fast.send(f"{stream}.x", PAYLOAD)
        return watch.stop(count)


async def fast_send_many(url: str, stream: str, count: int) -> Figure:
    """Ours, `send_many` of a fast batch."""
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch = Stopwatch()
        watch.start()
        async with source.ingest() as fast:
            await fast.send_many((f"{stream}.x", PAYLOAD) for _ in range(count))
        return watch.stop(count)


async def raw_fast_batch(url: str, stream: str, count: int) -> Figure:
    """A fast batch over a plain socket, which counts acks and does nothing else."""
    reader, writer = await bare_connection(url)
    size = len(PAYLOAD)

    def command(number: int, operation: int) -> bytes:
        reply = f"in.raw.{_FLOW}.fail.{number}.{operation}.$FI"
        return b"PUB %b.x %b %d\r\n%b\r\n" % (stream.encode(), reply.encode(), size, PAYLOAD)

    async def answer() -> dict[str, int]:
        while not (line := await reader.readline()).startswith(b"MSG "):
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
        body = await reader.readexactly(int(line.split()[-1]) + 2)
        if b'"error"' in body or b'"gap"' in body:
            raise RuntimeError(f"the server answered {body!r}")
        found: dict[str, int] = json.loads(body)
        return found

    watch = Stopwatch()
    watch.start()
    writer.write(command(1, _START))
    every = (await answer())["msgs"]
    sent, acked = 1, 1
    while sent < count:
        last = min(count, acked + every * _OUTSTANDING)
        if last > sent:
            operations = (
                _COMMIT if number == count else _APPEND for number in range(sent + 1, last + 1)
            )
            writer.write(
                b"".join(command(sent + place, each) for place, each in enumerate(operations, 1))
            )
            sent = last
        if sent < count:
            flow = await answer()
            acked, every = flow["seq"], flow["msgs"]
    while "count" not in (final := await answer()):
        pass
    figure = watch.stop(final["count"])
    writer.close()
    return figure


async def atomic(url: str, stream: str, count: int) -> Figure:
    """Ours, atomic batches of 500, one after the other."""
    import natsstream as ns

    async with ns.connect(url) as js:
        source = await js.streams.get(stream)
        watch, sent = Stopwatch(), 0
        watch.start()
        while sent < count:
            async with source.batch() as batch:
                for _ in range(min(_ATOMIC_MESSAGES, count - sent)):
                    await batch.add(f"{stream}.x", PAYLOAD)
                sent += (await batch.commit()).count
        return watch.stop(sent)


BATCHES: Subjects = {
    "fast send": fast_send,
    "fast send_many": fast_send_many,
    "raw fast batch": raw_fast_batch,
    "atomic batches of 500": atomic,
}

if __name__ == "__main__":
    run_subject(BATCHES)
