"""Batches on a server whose configuration allows less than others do."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream import connect
from natsstream.errors import BatchBrokenError, BatchTooLargeError, TooManyBatchesError
from natsstream.testing import NatsServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio

CONFIG = """
jetstream { limits { batch {
  max_inflight_per_stream: 2, max_inflight_total: 3, max_msgs: 5, timeout: 60s
} } }
"""
KEPT_S = 1.0
HASTY = "jetstream { limits { batch { timeout: 1s } } }"
# The first sign of life comes after two thirds of a second, so nothing shorter may end a batch.
STILL_MAX_S = 0.25


@pytest.fixture(scope="module")
def narrow() -> Iterator[NatsServer]:
    """A server that takes few and small batches."""
    with NatsServer(config=CONFIG) as server:
        yield server


@pytest_asyncio.fixture
async def narrow_js(narrow: NatsServer) -> AsyncIterator[JetStream]:
    """A connection to it."""
    async with connect(narrow.url) as js:
        yield js


@pytest_asyncio.fixture
async def narrow_stream(narrow_js: JetStream, stream_name: str) -> Stream:
    """A stream on it."""
    return await narrow_js.streams.ensure(stream_name, allow_atomic=True, allow_batched=True)


async def test_a_batch_beyond_the_servers_size_is_refused_there_and_by_max_messages_here(
    narrow_stream: Stream,
) -> None:
    subject = narrow_stream.name
    async with narrow_stream.batch() as tx:
        for _ in range(6):
            await tx.add(subject, b"x")
        with pytest.raises(BatchTooLargeError) as caught:
            await tx.commit()
    async with narrow_stream.batch(max_messages=5) as told:
        for _ in range(5):
            await told.add(subject, b"x")
        with pytest.raises(BatchTooLargeError, match="5 messages"):
            await told.add(subject, b"x")
        ack = await told.commit()

    assert caught.value.err_code == 10199
    assert (ack.first_seq, ack.count) == (1, 5)


async def test_a_place_that_is_given_up_is_free_at_once(narrow_stream: Stream) -> None:
    for _ in range(5):
        async with narrow_stream.batch() as tx, narrow_stream.batch() as other:
            await tx.add(narrow_stream.name, b"x")
            await other.add(narrow_stream.name, b"x")
            async with narrow_stream.batch() as third:
                with pytest.raises(TooManyBatchesError):
                    await third.add(narrow_stream.name, b"x")


async def test_too_many_fast_batches_are_told_and_one_more_goes_when_another_ends(
    narrow_stream: Stream,
) -> None:
    subject = narrow_stream.name
    async with narrow_stream.ingest() as fast:
        async with narrow_stream.ingest() as one, narrow_stream.ingest() as two:
            await one.send(subject, b"1")
            await two.send(subject, b"2")
            with pytest.raises(BatchBrokenError) as caught:
                await fast.send(subject, b"3")
        await fast.resume()
        await fast.send(subject, b"4")
        report = await fast.close()

    assert isinstance(caught.value.__cause__, TooManyBatchesError)
    assert (report.sent, report.stored, report.missing) == (2, 1, 1)


async def test_a_fast_batch_lives_for_as_long_as_it_is_told_how_long_the_server_waits(
    stream_name: str,
) -> None:
    """A machine that stands still for so long ends a batch as well, so it is done again then."""
    with NatsServer(config=HASTY) as server:
        async with connect(server.url) as js:
            stream = await js.streams.ensure(stream_name, allow_batched=True)
            while not await is_shown(js, stream):
                pass


async def is_shown(js: JetStream, stream: Stream) -> bool:
    """Show what ends a batch; return whether nothing stood still meanwhile."""
    answered: list[float] = []
    watching = asyncio.create_task(watch(js, answered))
    try:
        is_complete = await outlive(stream)
    finally:
        watching.cancel()
    times = [*answered, asyncio.get_running_loop().time()]
    stood_still = max(b - a for a, b in pairwise(times)) > STILL_MAX_S
    assert is_complete or stood_still
    return not stood_still


async def watch(js: JetStream, answered: list[float]) -> None:
    """Note when the server answers."""
    while True:
        answered.append(asyncio.get_running_loop().time())
        await js.core.flush()
        await asyncio.sleep(0.01)


async def outlive(stream: Stream) -> bool:
    """Wait until a batch is dropped for want of a sign; return whether the other one is whole."""
    subject = stream.name
    async with stream.ingest(idle_timeout=KEPT_S) as kept, stream.ingest() as dropped:
        await kept.send(subject, b"1")
        await dropped.send(subject, b"1")
        await asyncio.sleep(1.2 * KEPT_S)  # The server forgets by time alone.
        with pytest.raises(BatchBrokenError):
            await dropped.send_many((subject, b"x") for _ in range(5_000))
        with suppress(BatchBrokenError):
            await kept.send(subject, b"2")
        return (await kept.close()).is_complete
