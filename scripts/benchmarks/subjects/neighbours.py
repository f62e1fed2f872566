"""A publisher beside a reader of its stream: how long each ack takes while the reader reads.

`python -m scripts.benchmarks.subjects.neighbours NAME URL STREAM COUNT`

Law: the reader is a process of its own, which says when it begins. Only acks between its beginning
and its end count, so neither its start nor Spark's is in a figure. The publisher has one message in
flight and then a pause, as a service has that stores an event now and then.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import sys
import time
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

from scripts.benchmarks.rounds import Figure, python
from scripts.benchmarks.subjects.readers import READERS
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

_PAYLOAD = b"x" * 256
_PAUSE_S = 0.001
_WARM_UP = 50
_DIRECT_BATCH = 20_000
_RECEIVE_BYTES = 1 << 20
_END = re.compile(rb"NATS/1\.0 204.*?Nats-Last-Sequence: (\d+)\r\n", re.DOTALL)
_READER = "reader"
SPARK = "spark, 2 tasks"
IDLE = "socket"
DIRECT = "direct gets of 20,000"


async def _publish_beside(url: str, stream: str, count: int, *, name: str) -> Figure:
    import natsstream as ns

    command = python(__spec__.name, _READER, name, url, stream, str(count))
    async with ns.connect(url) as js:
        subject, times_s = f"{stream.lower()}.neighbour", list[float]()
        for _ in range(_WARM_UP):
            await js.publish(subject, _PAYLOAD)
        reader = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        lines = cast("asyncio.StreamReader", reader.stdout)
        if not await lines.readline():
            raise RuntimeError(f"{name} did not begin to read")
        ending = asyncio.ensure_future(lines.readline())
        watch = Stopwatch()
        watch.start()
        while not ending.done():
            began_s = time.perf_counter()
            await js.publish(subject, _PAYLOAD)
            times_s.append(time.perf_counter() - began_s)
            await asyncio.sleep(_PAUSE_S)
        figure = watch.stop(len(times_s), times_s)
        if not await ending or await reader.wait():
            raise RuntimeError(f"{name} did not read to its end")
        return figure


def _read_with_spark(url: str, stream: str, count: int) -> None:
    from scripts.benchmarks.subjects.spark_readers import warm_session

    with warm_session(url, stream, count, partitions=2) as read:
        _say("begin")
        read()
        _say("end")


def _read_directly(url: str, stream: str, count: int) -> None:
    """A socket that asks for batches as natsstream never does, and ignores the bytes."""
    parts = urlsplit(url)
    subject = f"$JS.API.DIRECT.GET.{stream}".encode()
    with socket.create_connection((parts.hostname or "", parts.port or 4222), 30) as connection:
        connection.recv(_RECEIVE_BYTES)  # INFO
        connection.sendall(b'CONNECT {"verbose":false,"headers":true}\r\nSUB in.* 1\r\n')
        next_seq = 1
        while next_seq <= count:
            size = min(_DIRECT_BATCH, count + 1 - next_seq)
            asked = json.dumps({"seq": next_seq, "batch": size}).encode()
            connection.sendall(b"PUB %b in.1 %d\r\n%b\r\n" % (subject, len(asked), asked))
            tail = b""
            while not (end := _END.search(tail)):
                got = connection.recv(_RECEIVE_BYTES)
                if not got or b"NATS/1.0 4" in got:
                    raise RuntimeError(f"a direct get ended with {got[-200:]!r}")
                tail = (tail + got)[-1024:]
            next_seq = int(end[1]) + 1


def _read(name: str, url: str, stream: str, count: int) -> None:
    if name == SPARK:
        _read_with_spark(url, stream, count)
        return
    _say("begin")
    if name == DIRECT:
        _read_directly(url, stream, count)
    else:
        asyncio.run(cast("Any", READERS[name](url, stream, count)))
    _say("end")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


NEIGHBOURS: Subjects = {name: partial(_publish_beside, name=name) for name in (IDLE, SPARK, DIRECT)}


if __name__ == "__main__":
    if sys.argv[1] == _READER:
        _, _, chosen, server, read_from, messages = sys.argv
        _read(chosen, server, read_from, int(messages))
    else:
        run_subject(NEIGHBOURS)
