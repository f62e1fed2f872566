"""What ordered consumers hold: little while they live, nothing when they have ended."""

from __future__ import annotations

import asyncio
import json
import random
import tracemalloc
import urllib.request
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import connect
from natsstream.read import session
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async
from tests.support.ordered import publish, take_sequences
from tests.support.quiet import sent_until_quiet
from tests.support.streams import connection_of, consumer_count, fill

if TYPE_CHECKING:
    from natsstream import JetStream, Stream

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

MIB = 1 << 20


def subscription_count(server: NatsServer, name: str) -> int:
    """Return how many subscriptions a connection has on the server."""
    url = f"{server.monitor_url}/connz?subs=1"
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own server.
        connections = cast("list[dict[str, Any]]", json.load(answer)["connections"])
    return next(each["subscriptions"] for each in connections if each.get("name") == name)


@pytest.mark.finding(21)
async def test_forty_tails_leave_nothing(server: NatsServer, stream_name: str) -> None:
    async with connect(server.url, name=stream_name) as js:
        stream = await fill(js, stream_name, 100)
        await js.core.flush()  # Until the server knows that the publisher has left.
        tasks, subscriptions = asyncio.all_tasks(), subscription_count(server, stream_name)

        for number in range(40):
            async with stream.ordered(deliver_policy="last_per_subject") as tail:
                assert [message.sequence async for message in tail.initial()] == [98, 99, 100]
                if number == 0:
                    assert await consumer_count(stream) == 1

        await eventually_async(lambda: has_consumers(stream, 0))

        async def are_ended() -> bool:
            return subscription_count(server, stream_name) == subscriptions

        await eventually_async(are_ended)
        await eventually_async(lambda: is_all_done(tasks))


async def test_tails_at_the_same_time_are_independent(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 100)

    async def follow() -> list[int]:
        async with stream.ordered() as tail:
            return await take_sequences(tail, 200)

    tails = [asyncio.ensure_future(follow()) for _ in range(10)]
    await fill(js, stream_name, 100, start=100)

    assert await asyncio.gather(*tails) == [list(range(1, 201))] * 10
    await eventually_async(lambda: has_consumers(stream, 0))


@pytest.mark.parametrize("way", ["exception", "cancel_reader"])
async def test_tail_that_is_left_in_the_middle_leaves_nothing(
    js: JetStream, stream_name: str, way: str
) -> None:
    stream = await fill(js, stream_name, 100)
    tasks = asyncio.all_tasks()

    async def follow() -> None:
        async with stream.ordered() as tail:
            async for message in tail:
                if way == "exception" and message.sequence == 10:
                    raise LookupError

    following = asyncio.ensure_future(follow())
    if way == "exception":
        with pytest.raises(LookupError):
            await following
    else:
        await eventually_async(lambda: has_consumers(stream, 1))
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following

    assert await eventually_async(lambda: has_consumers(stream, 0))
    await eventually_async(lambda: is_all_done(tasks))


async def test_tails_that_are_left_while_they_open_leave_nothing(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server works requests off side by side: a deletion can overtake its creation."""
    # Who leaves waits for the creation's answer, also from a server that stands still for a moment.
    monkeypatch.setattr(session, "_CLOSE_TIMEOUT_S", 30.0)
    stream = await fill(js, stream_name, 3)
    tasks = asyncio.all_tasks()

    async def follow() -> None:
        async with stream.ordered() as tail:
            async for _ in tail:
                pass

    async def leave_after(seconds: float) -> None:
        following = asyncio.ensure_future(follow())
        await asyncio.wait({following}, timeout=seconds)
        following.cancel()
        with pytest.raises(asyncio.CancelledError):
            await following

    loop = asyncio.get_running_loop()
    openings_s: list[float] = []
    for _ in range(20):
        began = loop.time()
        async with stream.ordered():
            openings_s.append(loop.time() - began)
    # The shortest: one in which the machine stood still would make the test as long, 250 times.
    opening_s = min(openings_s)
    for part in range(500):
        await leave_after(opening_s * part / 500)

    assert await eventually_async(lambda: has_consumers(stream, 0))
    await eventually_async(lambda: is_all_done(tasks))


async def is_all_done(before: set[asyncio.Task[Any]]) -> bool:
    """Tell whether no task is left that was not there before."""
    return asyncio.all_tasks() <= before


async def has_consumers(stream: Stream, count: int) -> bool:
    """Tell whether the server has as many consumers on a stream."""
    return await consumer_count(stream) == count


@pytest.mark.finding(26)
async def test_closing_ends_a_loop_that_waits(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 3)
    tail = stream.ordered()
    found: list[int] = []

    async def follow() -> None:
        async for batch in tail.batches():
            found.extend(message.sequence for message in batch)

    async with tail:
        following = asyncio.ensure_future(follow())
        listening = asyncio.ensure_future(anext(tail.events(), None))
        await eventually_async(lambda: is_found(found, 3))
        await tail.close()
        await following
        assert await listening is None

    assert found == [1, 2, 3]
    await eventually_async(lambda: has_consumers(stream, 0))


async def test_closing_while_it_opens_leaves_nothing(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 3)
    tail = stream.ordered()

    async def follow() -> list[int]:
        async with tail:
            return [message.sequence async for message in tail]

    following = asyncio.ensure_future(follow())
    await asyncio.wait({following}, timeout=0.000_1)
    await tail.close()

    assert await following == []
    assert await eventually_async(lambda: has_consumers(stream, 0))


async def is_found(found: list[int], count: int) -> bool:
    """Tell whether as many messages were found."""
    return len(found) == count


async def test_cancelled_reads_lose_nothing(js: JetStream, stream_name: str) -> None:
    """Each second read is cancelled at about the moment when its message comes."""
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
    draw = random.Random(7)  # noqa: S311 - To be repeated, no secret.
    found: list[int] = []
    missed = 0

    async with stream.ordered() as tail:
        for number in range(500):
            publishing = asyncio.ensure_future(publish(js, f"{stream_name}.0", b"x"))
            try:
                async with asyncio.timeout(draw.uniform(0, 0.002) if number % 2 else 10):
                    found.append((await anext(tail)).sequence)
            except TimeoutError:
                missed += 1
                found += await take_sequences(tail, 1)
            await publishing

    assert found == list(range(1, 501))
    assert missed
    assert tail.report.resumes == 0


@pytest.mark.finding(3)
async def test_slow_reader_loses_nothing(js: JetStream, stream_name: str) -> None:
    """One message is taken whenever a hundred were published, then the others."""
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
    found: list[int] = []

    async with stream.ordered() as tail:
        for start in range(0, 5_000, 100):
            await fill(js, stream_name, 100, size=4_096, start=start)
            found += await take_sequences(tail, 1)
        found += await take_sequences(tail, 4_950)

    assert found == list(range(1, 5_001))
    assert tail.report.resumes == 0


@pytest.mark.finding(4)
@pytest.mark.parametrize("kind", ["stored", "live", "live_headers"])
async def test_reader_that_stops_reading_holds_a_window(
    server: NatsServer, stream_name: str, kind: str
) -> None:
    """Counts what the server has sent when the reader takes one message and no more.

    A stream that is empty when the reader begins tells nothing of the sizes to come.
    """
    headers = {"Large": "x" * (60 << 10)}

    async def store(js: JetStream) -> None:
        if kind != "live_headers":
            await fill(js, stream_name, 120, size=MIB)
            return
        for _ in range(2_000):
            await js.publish(f"{stream_name}.0", headers=headers)

    async with connect(server.url, name=stream_name) as js, connect(server.url) as other:
        stream = await fill(js, stream_name, 0)
        if kind == "stored":
            await store(other)
        before = connection_of(server, stream_name)["out_bytes"]
        async with stream.ordered() as tail:
            if kind != "stored":
                await store(other)
            found = await take_sequences(tail, 1)
            held = await sent_until_quiet(server, stream_name) - before
            last = (await stream.info()).state.last_seq
            found += await take_sequences(tail, last - 1)

    assert held < 64 * MIB
    assert found == list(range(1, last + 1))
    assert last >= 120
    assert tail.report.resumes == 0


async def test_memory_does_not_grow_with_the_stream(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window of 800 messages stands for the real one, which needs a larger stream."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 800)
    stream = await fill(js, stream_name, 16_000, size=500)
    peaks: list[int] = []
    async with stream.ordered() as warm:
        await take_sequences(warm, 1)

    for first in (12_801, 1):
        tracemalloc.start()
        async with (
            stream.ordered(first_seq=first) as tail,
            aclosing(tail.batches(until_caught_up=True)) as batches,
        ):
            async for batch in batches:
                assert batch
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    few, many = peaks
    assert many < 2 * few + MIB
