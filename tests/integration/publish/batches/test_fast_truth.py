"""Fast ingests whose answers are lost, or that have no server: the report guesses nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import Expect, IngestSpan, connect
from natsstream.errors import BatchBrokenError, PermissionDeniedError, UsageError
from natsstream.testing import FaultProxy, NatsServer
from tests.support.eventually import eventually_async
from tests.support.ingests import other_waits
from tests.support.loops import turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import FastIngest, JetStream, Stream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

NARROW = """
accounts { A {
  jetstream: enabled
  users: [
    { user: all, password: pw }
    { user: narrow, password: pw, permissions: {
        publish: { allow: ["$JS.API.>", "S.open"] }, subscribe: { allow: ["_INBOX.>"] } } }
  ]
} }
"""


@pytest.fixture
def proxy(server: NatsNode) -> Iterator[FaultProxy]:
    with FaultProxy(server.port) as proxy:
        yield proxy


async def stored_numbers(stream: Stream) -> list[int]:
    if not (await stream.info()).state.messages:
        return []
    return [int(message.data) async for message in stream.read(first_seq=1)]


@pytest.mark.proves("1b", "fast batch / ingest (ADR-50)")
async def test_a_refusal_whose_answer_is_lost_is_never_told_as_stored(
    stream: Stream, proxy: FaultProxy, js: JetStream
) -> None:
    subject = f"{stream.name}.a"
    async with connect(proxy.url) as through:
        opened = await through.streams.get(stream.name)
        async with opened.ingest(on_gap="ok") as fast:
            await fast.send(subject, b"1")
            proxy.stall(direction="to_client")
            await fast.send(subject, b"2", expect=Expect(last_seq=99))
            await fast.send(subject, b"3")
            await eventually_async(lambda: has(js, stream.name, 2))
            proxy.reset()
            proxy.heal()
            await eventually_async(lambda: is_on_connection(through, 2))
            await fast.send(subject, b"4")
            report = await fast.close()

    assert await stored_numbers(stream) == [1, 3, 4]
    # The break may have swallowed what was said of 2 and 3, and came behind nothing of 4.
    (unknown,) = report.unknown
    assert unknown in (IngestSpan(1, 3), IngestSpan(2, 3))
    assert (report.stored, report.missing) == (4 - unknown.size, 0)


async def has(js: JetStream, stream: str, messages: int) -> bool:
    return (await (await js.streams.get(stream)).info()).state.messages >= messages


async def test_what_was_not_written_before_resume_is_never_written(
    stream: Stream, proxy: FaultProxy
) -> None:
    subject = f"{stream.name}.a"
    async with connect(proxy.url) as js:
        opened = await js.streams.get(stream.name)
        async with opened.ingest(ack_timeout=30) as fast:
            await fast.send(subject, b"1")
            proxy.cut()
            await eventually_async(lambda: is_apart(js))
            for number in range(2, 12):
                await fast.send(subject, b"%d" % number)
            # Only while there is nothing to wait for.
            with other_waits(fast, ack_timeout_s=0.2, ping_after_s=0.1):
                await fast.resume()
            before = fast.report
            proxy.heal()
            await eventually_async(lambda: is_on_connection(js, 2))
            await fast.send(subject, b"12")
            report = await fast.close()

    assert before.gaps == (IngestSpan(2, 11),)
    assert report.gaps == before.gaps
    assert await stored_numbers(stream) == [1, 12]


async def is_on_connection(js: JetStream, number: int) -> bool:
    client = js._client  # pyright: ignore[reportPrivateUsage]
    return client.is_connected and client.connections == number


async def is_apart(js: JetStream) -> bool:
    return not js._client.is_connected  # pyright: ignore[reportPrivateUsage]


async def test_a_reconnected_batch_is_asked_for_at_once(stream: Stream, proxy: FaultProxy) -> None:
    subject = f"{stream.name}.a"
    async with connect(proxy.url) as js:
        opened = await js.streams.get(stream.name)
        async with opened.ingest(idle_timeout=180) as fast:
            # Without the question nothing would be said within the time that the test has.
            with other_waits(fast, ping_after_s=60.0):
                await fill_and_break(fast, subject, proxy)


async def fill_and_break(fast: FastIngest, subject: str, proxy: FaultProxy) -> None:
    """Lose messages by a break while a task waits for room; it hears that they are lost."""
    await fast.send(subject, b"1")
    proxy.stall(direction="to_server")
    # As much as the server asks for: only an answer makes room for the next message.
    sender = fast._sender  # pyright: ignore[reportPrivateUsage]
    assert sender is not None
    while sender.room > 0:
        await fast.send(subject, b"lost")
    waiting = asyncio.create_task(fast.send(subject, b"x"))
    await turn()  # All is written, and the task waits.
    proxy.reset()
    proxy.heal()
    with pytest.raises(BatchBrokenError):
        async with asyncio.timeout(30):
            await waiting


async def test_a_batch_that_ended_early_is_told_also_where_gaps_are_allowed() -> None:
    with NatsServer(config=NARROW) as server:
        async with connect(server.url, user="all", password="pw") as js:  # noqa: S106 - a test's.
            await js.streams.ensure("S", subjects=["S.>"], allow_batched=True)
        async with connect(server.url, user="narrow", password="pw") as js:  # noqa: S106
            with pytest.raises(BatchBrokenError) as caught:
                await send_where_not_allowed(await js.streams.get("S"))

    assert isinstance(caught.value.__cause__, PermissionDeniedError)


async def send_where_not_allowed(stream: Stream) -> None:
    async with stream.ingest(on_gap="ok") as fast:
        await fast.send("S.open", b"1")
        await fast.send("S.closed", b"2")


async def test_tasks_that_wait_when_the_ingest_closes_are_refused(stream: Stream) -> None:
    async def send_on(fast: FastIngest) -> int:
        for sent in range(100_000):
            try:
                await fast.send(f"{stream.name}.a", b"1")
            except UsageError:  # It is not open any more.
                return sent
            await asyncio.sleep(0)
        raise AssertionError

    async with stream.ingest(ack_every=2, max_outstanding_acks=1) as fast:
        tasks = [asyncio.create_task(send_on(fast)) for _ in range(5)]
        await eventually_async(lambda: is_past(fast, 20))
        report = await fast.close()
        counts = await asyncio.gather(*tasks)

    assert report.is_complete
    assert report.stored == sum(counts)
    assert (await stream.info()).state.messages == report.stored


async def is_past(fast: FastIngest, count: int) -> bool:
    return fast.report.sent > count
