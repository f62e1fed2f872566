"""Batches of one producer, and its end: left, closed, or with the stream gone."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import PublishMessage, connect
from natsstream.errors import (
    ConfigError,
    ConnectionClosedError,
    StreamClosedError,
    StreamNotFoundError,
    UsageError,
)
from tests.support.producers import MODES, append_all, numbers

if TYPE_CHECKING:
    from natsstream.testing import NatsServer
    from tests.support.producers import Place

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("mode", MODES)
async def test_batch_preserves_order(place: Place, mode: str) -> None:
    async with await place.open(mode=mode) as producer:
        append_all(producer, numbers(500))
        await producer.flush()
        assert producer.next_seq < 500
    assert await place.data() == numbers(500)


async def test_batch_partial_failure(place: Place) -> None:
    """A message that is refused on the spot costs those beside it nothing."""
    async with await place.open() as producer:
        producer.append(b"0")
        wrong: Any = 5
        with pytest.raises(UsageError):
            producer.append(wrong)
        with pytest.raises(UsageError):
            producer.append_many([b"never", wrong])
        producer.append(b"1")
    assert await place.data() == numbers(2)


async def test_messages_with_headers_are_stored_together(place: Place) -> None:
    async with await place.open() as producer:
        subject = f"{place.name}.d"
        items = [b"0", (subject, b"1"), PublishMessage(subject, b"2", {"Kind": "x"})]
        producer.append_many(items)
        refused = PublishMessage(subject, b"3", msg_id="a")
        with pytest.raises(ConfigError, match="more than data and headers"):
            producer.append_many([b"never", refused])
    messages = await place.messages()
    assert [each.data for each in messages] == numbers(3)
    assert messages[-1].headers["Kind"] == "x"


@pytest.mark.parametrize("mode", MODES)
async def test_batch_concurrent_appends(place: Place, mode: str) -> None:
    """Calls of many tasks share batches."""
    async with await place.open(mode=mode) as producer:
        waits = [asyncio.create_task(producer.append_wait(each)) for each in numbers(100)]
        stored = [await each for each in waits]
        assert producer.next_seq < 100
    messages = await place.messages()
    assert [message.data for message in messages] == numbers(100)
    assert [each.offset for each in stored] == [message.sequence for message in messages]


async def test_client_deduplication_works(place: Place) -> None:
    """A new process with the same epoch sends all again, in batches cut by number."""
    for _ in range(2):
        async with await place.open(epoch=0, max_batch_messages=10) as producer:
            append_all(producer, numbers(50))
    assert await place.data() == numbers(50)


@pytest.mark.parametrize("mode", MODES)
async def test_idempotent_producer_detach_does_not_close(place: Place, mode: str) -> None:
    first = await place.open(mode=mode)
    first.append(b"0")
    await first.detach()
    await first.detach()
    with pytest.raises(UsageError, match="detached"):
        first.append(b"never")
    async with await place.open(mode=mode) as second:
        second.append(b"1")
    assert await place.data() == numbers(2)


@pytest.mark.parametrize("mode", MODES)
async def test_idempotent_producer_close_idempotent(place: Place, mode: str) -> None:
    producer = await place.open(mode=mode)
    append_all(producer, numbers(5))
    closed = await producer.close(b"final")
    assert await producer.close(b"another") == closed
    assert await producer.close() == closed
    with pytest.raises(UsageError, match="closed"):
        producer.append(b"late")
    assert await place.data() == [*numbers(5), b"final"]


@pytest.mark.parametrize("mode", MODES)
async def test_append_to_closed_stream_fails(place: Place, mode: str) -> None:
    late = await place.open("late", mode=mode)
    async with await place.open(mode=mode) as producer:
        closed = await producer.close(b"final")
    with pytest.raises(StreamClosedError) as caught:
        await late.append_wait(b"never")
    assert caught.value.final_offset == closed.final_offset
    await late.detach(ignore_errors=True)
    with pytest.raises(StreamClosedError):
        await place.open("later", mode=mode)
    assert await place.data() == [b"final"]


async def test_close_nonexistent_stream(place: Place) -> None:
    """The stream vanishes under its producer."""
    producer = await place.open(delivery_timeout=5.0)
    await producer.append_wait(b"0")
    await place.js.streams.delete(place.name)
    with pytest.raises(StreamNotFoundError):
        await producer.close(b"never")
    await producer.detach(ignore_errors=True)


async def test_delete_closed_stream(place: Place) -> None:
    """A new stream of the name is open, and nothing of the old one is left."""
    await (await place.open()).close(b"final")
    await place.js.streams.delete(place.name)
    with pytest.raises(StreamNotFoundError):
        await place.open()
    await place.make()
    async with await place.open() as producer:
        assert (producer.epoch, producer.recovered) == (0, None)
        producer.append(b"new")
    assert await place.data() == [b"new"]


@pytest.mark.sampled_variants
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_drained", [True, False])
async def test_connection_that_ends_stores_what_was_appended(
    place: Place, mode: Any, *, is_drained: bool
) -> None:
    async with connect(f"nats://127.0.0.1:{place.port}") as js:
        subject = f"{place.name}.d"
        producer = await js.producer(
            place.name, "p", subject=subject, mode=mode, linger=30, update_stream=True
        )
        append_all(producer, numbers(1_500))
        if is_drained:
            await js.drain()
    assert await place.data() == numbers(1_500)
    with pytest.raises(ConnectionClosedError, match=r"'p' was closed\n"):
        producer.append(b"late")


async def test_block_that_is_left_by_an_error_tells_what_was_given_up(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012 - The error must be inside the block.
        async with await place.open(linger=30) as producer:
            append_all(producer, numbers(7))
            raise ZeroDivisionError
    told = [r for r in caplog.records if r.name == "natsstream.producer"]
    assert [record.levelno for record in told] == [logging.ERROR]
    assert f"producer 'p' of stream {place.name}: 7 messages" in told[0].message
    assert await place.data() == []


async def test_connection_that_ends_without_a_server_tells_what_was_not_stored(
    fresh_server: NatsServer, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect(fresh_server.url) as js:
        await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
        subject = f"{stream_name}.d"
        producer = await js.producer(stream_name, "p", subject=subject, update_stream=True)
        fresh_server.kill()
        append_all(producer, numbers(3))
    told = [r.message for r in caplog.records if r.name == "natsstream.producer"]
    assert len(told) == 1
    assert f"producer 'p' of stream {stream_name}: 3 messages" in told[0]
