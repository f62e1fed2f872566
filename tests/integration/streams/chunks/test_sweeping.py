"""A sweep finds the chunks of killed writers, and never touches a put in progress."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ChunksDamagedError, ConfigError
from tests.support.chunked import Slow, chunk_stream, held, some_bytes
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.streams.chunks.sweeping import SweepReport
    from natsstream.streams.stream import Stream

pytestmark = pytest.mark.asyncio

AGE_S = 0.3


async def sweep(stream: Stream, *pointed: str, dry_run: bool = False) -> SweepReport:
    async def told() -> set[str]:
        return {f"{stream.name}.C.{each}" for each in pointed}

    return await stream.chunks.sweep(f"{stream.name}.C.>", told, older_than=AGE_S, dry_run=dry_run)


async def test_values_that_nobody_points_to_are_removed(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    for name in ("kept", "lost", "gone"):
        subject = f"{stream_name}.C.{name}"
        await stream.chunks.put(subject, some_bytes(10_001), chunk_size=1_000)
    await stream.publish(f"{stream_name}.M.x", b"not a chunk")

    async def found() -> bool:
        return (await sweep(stream, "kept", dry_run=True)).values == 2

    await eventually_async(found)
    report = await sweep(stream, "kept", dry_run=True)
    assert (report.values, report.chunks, report.size) == (2, 22, 20_002)
    assert report.is_dry
    assert len(await held(stream)) == 4

    report = await sweep(stream, "kept")
    assert (report.values, report.chunks, report.size, report.young) == (2, 22, 20_002, 0)
    assert set(await held(stream)) == {f"{stream_name}.C.kept", f"{stream_name}.M.x"}
    assert (await sweep(stream, "kept")).values == 0


async def test_a_put_on_its_way_is_not_touched(js: JetStream, stream_name: str) -> None:
    stream = await chunk_stream(js, stream_name)
    source = Slow([some_bytes(100_000)], [some_bytes(100_000)])
    subject = f"{stream_name}.C.a"
    task = asyncio.create_task(stream.chunks.put(subject, source.__aiter__(), chunk_size=10_000))
    await source.has_given.wait()
    await eventually_async(lambda: held(stream))

    async def nobody() -> set[str]:
        return set()

    report = await stream.chunks.sweep(f"{stream_name}.C.>", nobody, older_than=60)
    assert (report.values, report.young) == (0, 1)
    source.go_on.set()
    value = await task
    async with stream.chunks.open(value) as reader:
        assert len(await reader.read()) == 200_000


async def test_a_put_that_was_swept_away_meanwhile_says_so(js: JetStream, stream_name: str) -> None:
    """A source may be silent for longer than the sweep waits."""
    stream = await chunk_stream(js, stream_name)
    source = Slow([some_bytes(100_000)], [some_bytes(100_000)])
    subject = f"{stream_name}.C.a"
    task = asyncio.create_task(stream.chunks.put(subject, source.__aiter__(), chunk_size=10_000))
    await source.has_given.wait()

    async def is_swept() -> bool:
        return (await sweep(stream)).chunks > 0

    await eventually_async(lambda: held(stream))
    await eventually_async(is_swept)
    source.go_on.set()
    with pytest.raises(ChunksDamagedError):
        await task
    assert await held(stream) == {}


async def test_who_points_is_asked_after_the_look(js: JetStream, stream_name: str) -> None:
    """A put that ends between the two is pointed to when the second one is made."""
    stream = await chunk_stream(js, stream_name)
    await stream.chunks.put(f"{stream_name}.C.a", b"x")
    at_the_time: list[dict[str, int]] = []

    async def told() -> set[str]:
        await stream.chunks.put(f"{stream_name}.C.late", b"x")
        at_the_time.append(await held(stream))
        await asyncio.sleep(0)
        return {f"{stream_name}.C.a"}

    report = await stream.chunks.sweep(f"{stream_name}.C.>", told, older_than=0.000001)
    assert report.values == 0
    assert await held(stream) == at_the_time[0]


async def test_a_sweep_leaves_no_consumer_and_takes_no_nonsense(
    js: JetStream, stream_name: str
) -> None:
    stream = await chunk_stream(js, stream_name)
    await stream.chunks.put(f"{stream_name}.C.a", b"x")
    await sweep(stream)

    async def has_no_consumer() -> bool:
        return (await stream.info()).state.consumer_count == 0

    await eventually_async(has_no_consumer)

    async def told() -> set[str]:
        return set()

    with pytest.raises(ConfigError):
        await stream.chunks.sweep(">", told, dry_run=1)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError):
        await stream.chunks.sweep(">", told, older_than="1h")  # pyright: ignore[reportArgumentType]


async def test_a_value_that_is_pointed_to_meanwhile_stays(js: JetStream, stream_name: str) -> None:
    """A sweep of many values takes its time, in which puts end that it has seen on their way."""
    stream = await chunk_stream(js, stream_name)
    source = Slow([some_bytes(100_000)])
    subject = f"{stream_name}.C.a"
    task = asyncio.create_task(stream.chunks.put(subject, source.__aiter__(), chunk_size=10_000))
    await source.has_given.wait()
    await eventually_async(lambda: held(stream))

    async def told() -> set[str]:
        pointed: set[str] = set()
        source.go_on.set()
        await task  # The value comes into use while this answer is in flight.
        return pointed

    report = await stream.chunks.sweep(f"{stream_name}.C.>", told, older_than=0.000001)
    assert (report.values, report.young) == (0, 1)
    async with stream.chunks.open(task.result()) as reader:
        assert await reader.read() == some_bytes(100_000)
