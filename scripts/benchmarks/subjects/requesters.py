"""Requests, one after the other, to a responder in the same process.

`python -m scripts.benchmarks.subjects.requesters NAME URL SUBJECT COUNT`

The responder is the same for all, so what differs is the way of the request and its answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_WARM_UP = 200
_PAYLOAD = b"x" * 64


async def ours(url: str, subject: str, count: int) -> Figure:
    """Ours, `js.core.request`."""
    import natsstream as ns

    async with _responder(url, subject), ns.connect(url) as js:
        return await _ask(lambda: js.core.request(subject, _PAYLOAD), count)


async def nats_py(url: str, subject: str, count: int) -> Figure:
    """nats-py, `request`."""
    import nats

    async with _responder(url, subject):
        # nats-py leaves the types of its options open.
        client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
        figure = await _ask(lambda: client.request(subject, _PAYLOAD, timeout=5), count)
        await client.close()
    return figure


async def _ask(request: Callable[[], Awaitable[object]], count: int) -> Figure:
    for _ in range(_WARM_UP):
        await request()
    watch, times_s = Stopwatch(), [0.0] * count
    watch.start()
    for number in range(count):
        began = time.perf_counter()
        await request()
        times_s[number] = time.perf_counter() - began
    return watch.stop(count, times_s)


@asynccontextmanager
async def _responder(url: str, subject: str) -> AsyncGenerator[None]:
    """Answer every client with the same few lines of asyncio."""
    host, _, port = url.rpartition("//")[2].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b'CONNECT {"verbose":false}\r\nSUB %b 1\r\nPING\r\n' % subject.encode())
    while (await reader.readline()) != b"PONG\r\n":
        pass

    async def answer() -> None:
        while line := await reader.readline():
            if line.startswith(b"MSG "):
                _, _, _, reply, size = line.split()
                data = await reader.readexactly(int(size) + 2)
                writer.write(b"PUB %b %b\r\n%b" % (reply, size, data))
            elif line == b"PING\r\n":
                writer.write(b"PONG\r\n")

    answering = asyncio.ensure_future(answer())
    try:
        yield
    finally:
        writer.close()
        answering.cancel()
        await asyncio.wait([answering])


REQUESTERS: Subjects = {"request": ours, "nats-py request": nats_py}

if __name__ == "__main__":
    run_subject(REQUESTERS)
