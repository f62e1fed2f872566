"""A session whose tasks are cancelled, with a stream that lets writes wait."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ConfigError, ProducerTimeoutError, RequestTimeoutError
from natsstream.producer.batches import Action, Batches, Ended, Found, Stored, Write
from natsstream.producer.options import ProducerOptions
from natsstream.producer.queue import Group
from natsstream.producer.session import Session
from natsstream.publish.outgoing import Prepared
from tests.support.cancels import cancel_others
from tests.support.eventually import WITHIN_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream.producer.records import StateRecord

pytestmark = pytest.mark.asyncio


class Stream:
    """A stream in memory.

    Attributes:
        data: The payloads that are stored.
        loses_acks: True stores a write before it waits, False after it.
        is_writing: Set when a write waits.
        is_free: Set it, and writes go on.
    """

    def __init__(self) -> None:
        self.data: list[bytes] = []
        self.loses_acks = False
        self.is_writing = asyncio.Event()
        self.is_free = asyncio.Event()
        self.is_free.set()
        self._record: StateRecord | None = None
        self._token = 0

    async def read(self) -> Found:
        return Found(self._record, self._token, last_seq=self._token)

    async def write(self, write: Write) -> Stored:
        stored = self._store(write) if self.loses_acks else None
        self.is_writing.set()
        await self.is_free.wait()
        return stored or self._store(write)

    async def close(self) -> None:
        pass

    def _store(self, write: Write) -> Stored:
        assert write.token == self._token
        messages = [] if write.batch is None else list(write.batch.messages())
        self.data += [message.data for message in messages]
        last_seq = self._token + len(messages)
        self._record, self._token = write.record, last_seq + 1
        return Stored(self._token, last_seq)


class Opened:
    """An open session, each message in a batch of its own, and how its groups have ended."""

    def __init__(self, *, delivery_timeout: float = 60.0) -> None:
        options = ProducerOptions(
            producer_id="p", linger=0.0, max_batch_messages=1, delivery_timeout=delivery_timeout
        )
        rng = random.Random(0)  # noqa: S311 - No secret.
        self.rules = Batches(options, "a", rng, "S", replicas=1)
        self.stream = Stream()
        self.ended: list[Ended] = []
        self.is_awaited = False
        self.session = Session(self.rules, self.stream, self.ended.append, lambda: self.is_awaited)

    async def hold(self, data: bytes) -> None:
        """Append a message, and let its write wait."""
        await self.until(lambda: self.rules.is_open)
        self.stream.is_free.clear()
        self.stream.is_writing.clear()
        self.append(data)
        self.session.wake()
        async with asyncio.timeout(WITHIN_S):
            await self.stream.is_writing.wait()

    def append(self, data: bytes) -> None:
        message = Prepared("s", data, b"", (), expects_last_id=False)
        self.rules.queue.append(Group((message,), 1), self.session.now)

    async def flush(self) -> None:
        await self.until(lambda: self.rules.queue.is_empty)

    async def until(self, is_done: Callable[[], bool]) -> None:
        async with asyncio.timeout(WITHIN_S):
            await self.session.until(is_done)


@pytest.mark.parametrize("loses_acks", [False, True])
async def test_write_that_was_cancelled_is_stored_once(*, loses_acks: bool) -> None:
    opened = Opened()
    opened.stream.loses_acks = loses_acks
    await opened.hold(b"0")
    opened.append(b"1")
    await asyncio.wait(cancel_others())
    opened.stream.is_free.set()
    await opened.flush()
    assert opened.stream.data == [b"0", b"1"]
    assert [each.error for each in opened.ended] == [None, None]
    await opened.session.close(ConfigError("left"))


async def test_flush_that_waits_when_the_write_is_cancelled_goes_on() -> None:
    opened = Opened()
    await opened.hold(b"0")
    flushed = asyncio.create_task(opened.flush())
    await asyncio.sleep(0)  # It waits.
    cancel_others(flushed)
    opened.stream.is_free.set()
    await flushed
    assert opened.stream.data == [b"0"]
    await opened.session.close(ConfigError("left"))


async def test_flush_goes_on_when_the_next_task_is_cancelled_before_its_first_step() -> None:
    opened = Opened()
    await opened.hold(b"0")
    await asyncio.wait(cancel_others())
    opened.stream.is_free.set()
    opened.session.wake()
    assert cancel_others()
    await opened.flush()
    assert opened.stream.data == [b"0"]
    await opened.session.close(ConfigError("left"))


async def test_flush_that_is_cancelled_with_all_other_tasks_leaves_none_behind() -> None:
    """As asyncio.run() does it at its end."""
    opened = Opened()
    await opened.hold(b"0")
    flushed = asyncio.create_task(opened.flush())
    await asyncio.sleep(0)  # It waits.
    await asyncio.wait(cancel_others())
    assert flushed.cancelled()
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_batch_that_is_overdue_when_its_write_is_cancelled_ends_at_once() -> None:
    opened = Opened(delivery_timeout=1e-9)
    await opened.hold(b"0")
    await asyncio.wait(cancel_others())
    assert [type(each.error) for each in opened.ended] == [ProducerTimeoutError]


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_groups_that_are_left_at_close_end_with_its_error(*, is_cancelled: bool) -> None:
    """Also where the write is overdue: that it was given up is no doubt about the stream."""
    left = ConfigError("left")
    opened = Opened(delivery_timeout=60.0 if is_cancelled else 1e-9)
    await opened.hold(b"0")
    if is_cancelled:
        await asyncio.wait(cancel_others())
    opened.is_awaited = True
    await opened.session.close(left)
    assert [each.error for each in opened.ended] == [left]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_caller_that_waits_for_a_silent_stream_keeps_nobody_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened, asked = Opened(), 0
    ask = opened.rules.next

    def count(now: float) -> Action | None:
        nonlocal asked
        asked += 1
        return ask(now)

    async def refuse() -> Found:
        raise RequestTimeoutError("no answer", retryable=True)

    monkeypatch.setattr(opened.rules, "next", count)
    monkeypatch.setattr(opened.stream, "read", refuse)
    waiting = asyncio.create_task(opened.session.until(lambda: opened.rules.is_open))
    for _ in range(500):
        await asyncio.sleep(0)

    assert 0 < asked < 50
    waiting.cancel()
    await opened.session.close(ConfigError("left"))
