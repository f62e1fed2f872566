"""Object stores: `python -m scripts.benchmarks.subjects.objects NAME URL STORE MEBIBYTES`.

NAME is a client and a deed, such as `ours get`. The store is there, with the object in it.
"""

from __future__ import annotations

import asyncio
import io
import os
import socket
from urllib.parse import urlsplit

from scripts.benchmarks.objects import OBJECT
from scripts.benchmarks.rounds import Figure
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

_CHUNK = 131_072
_RECEIVE_BYTES = 1 << 16


async def our_put(url: str, store: str, mebibytes: int) -> Figure:
    """Ours, from bytes."""
    import natsstream as ns

    data = os.urandom(mebibytes << 20)
    async with ns.connect(url) as js:
        box = await js.objects.get(store)
        await box.put("warm", data[:_CHUNK])
        watch = Stopwatch()
        watch.start()
        await box.put(OBJECT, data)
        return watch.stop(mebibytes)


async def our_get(url: str, store: str, mebibytes: int) -> Figure:
    """Ours, into memory."""
    import natsstream as ns

    async with ns.connect(url) as js:
        box = await js.objects.get(store)
        watch = Stopwatch()
        watch.start()
        data = await box.get(OBJECT)
        figure = watch.stop(mebibytes)
        _check(len(data or b""), mebibytes)
        return figure


async def nats_py_put(url: str, store: str, mebibytes: int) -> Figure:
    """nats-py, from bytes."""
    import nats

    data = os.urandom(mebibytes << 20)
    # nats-py leaves the types of its options open.
    client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    box = await client.jetstream().object_store(store)  # pyright: ignore[reportUnknownMemberType]
    await box.put("warm", data[:_CHUNK])
    watch = Stopwatch()
    watch.start()
    await box.put(OBJECT, data)
    figure = watch.stop(mebibytes)
    await client.close()
    return figure


async def nats_py_get(url: str, store: str, mebibytes: int) -> Figure:
    """nats-py, `writeinto` a buffer: without it each chunk copies all before it."""
    import nats

    client = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    box = await client.jetstream().object_store(store)  # pyright: ignore[reportUnknownMemberType]
    buffer = io.BytesIO()
    watch = Stopwatch()
    watch.start()
    await box.get(OBJECT, writeinto=buffer)
    figure = watch.stop(mebibytes)
    _check(buffer.tell(), mebibytes)
    await client.close()
    return figure


async def socket_put(url: str, store: str, mebibytes: int) -> Figure:
    """A socket that sends chunks and counts acks, without a digest."""
    return await asyncio.to_thread(_blast, url, store, mebibytes)


def _blast(url: str, store: str, mebibytes: int) -> Figure:
    parts = urlsplit(url)
    chunk = os.urandom(_CHUNK)
    count = (mebibytes << 20) // _CHUNK
    line = b"PUB $O.%b.C.socket in.1 %d\r\n" % (store.encode(), _CHUNK)
    with socket.create_connection((parts.hostname or "", parts.port or 4222), 30) as connection:
        connection.recv(_RECEIVE_BYTES)  # INFO
        connection.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB in.* 1\r\n')
        watch, acks = Stopwatch(), 0
        watch.start()
        for _ in range(count):
            connection.sendmsg([line, chunk, b"\r\n"])
        tail = b""
        while acks < count:
            tail += connection.recv(_RECEIVE_BYTES)
            acks += tail.count(b'"seq"')
            tail = tail[-4:]
        figure = watch.stop(mebibytes)
        purge = b"$JS.API.STREAM.PURGE.OBJ_%b" % store.encode()
        body = b'{"filter":"$O.%b.C.socket"}' % store.encode()
        connection.sendall(b"PUB %b in.2 %d\r\n%b\r\n" % (purge, len(body), body))
        connection.recv(_RECEIVE_BYTES)
    return figure


def _check(size: int, mebibytes: int) -> None:
    if size != mebibytes << 20:
        raise RuntimeError(f"{size} bytes of {mebibytes} MiB")


OBJECTS: Subjects = {
    "ours put": our_put,
    "ours get": our_get,
    "nats-py put": nats_py_put,
    "nats-py get": nats_py_get,
    "socket put": socket_put,
}


if __name__ == "__main__":
    run_subject(OBJECTS)
