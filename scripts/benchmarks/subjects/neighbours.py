"""A publisher beside a reader of its stream: how long each ack takes while the reader reads.

`python -m scripts.benchmarks.subjects.neighbours NAME URL STREAM COUNT`

Law: the reader is a process of its own, which says when it begins. Only acks between its beginning
and its end count, so neither its start nor Spark's is in a figure. The publisher has one message in
flight and then a pause, as a service has that stores an event now and then.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from functools import partial
from typing import Any, cast

from scripts.benchmarks.rounds import Figure, python
from scripts.benchmarks.subjects.readers import READERS
from scripts.benchmarks.subjects.stopwatch import Stopwatch, Subjects, run_subject

_PAYLOAD = b"x" * 256
_PAUSE_S = 0.001
_WARM_UP = 50
_DIRECT_BATCH = 20_000
_ANSWER_TIMEOUT_S = 60
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

    with warm_session(url, stream, partitions=2) as read:
        _say("begin")
        read(count)
        _say("end")


async def _read_directly(url: str, stream: str, count: int) -> None:
    """Ask for batches that natsstream does not ask for: its own have 1,000 messages at most."""
    import nats

    # nats-py leaves the types of its options open.
    client: Any = await nats.connect(url)  # pyright: ignore[reportUnknownMemberType]
    inbox = client.new_inbox()
    answers: Any = await client.subscribe(inbox, pending_bytes_limit=-1, pending_msgs_limit=-1)
    next_seq = 1
    while next_seq <= count:
        size = min(_DIRECT_BATCH, count + 1 - next_seq)
        asked = json.dumps({"seq": next_seq, "batch": size}).encode()
        await client.publish(f"$JS.API.DIRECT.GET.{stream}", asked, reply=inbox)
        while True:
            message = await answers.next_msg(timeout=_ANSWER_TIMEOUT_S)
            if "Status" in message.headers:
                break
            next_seq = int(message.headers["Nats-Sequence"]) + 1
        if message.headers["Status"] != "204":
            raise RuntimeError(f"a direct get was answered with {message.headers}")
    await client.close()


def _read(name: str, url: str, stream: str, count: int) -> None:
    if name == SPARK:
        _read_with_spark(url, stream, count)
        return
    _say("begin")
    reading = _read_directly if name == DIRECT else READERS[name]
    asyncio.run(cast("Any", reading(url, stream, count)))
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
