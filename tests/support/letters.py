"""Dead letters for tests, and a replay that dies before it removes its letter."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream.consume.dead_letters.envelope import FailureRecord
from natsstream.consume.dead_letters.queue import DeadLetterQueue
from natsstream.consume.dead_letters.storing import store_letter
from tests.support.work import api_of

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.consume.dead_letters.letter import DeadLetter


async def make_letters(
    js: JetStream, name: str, count: int, *, retention: str = "limits", window: float = 0.1
) -> DeadLetterQueue:
    """Return a queue with letters of messages that a stream had, and that stream."""
    await js.streams.create(
        name,
        subjects=[f"{name}.>"],
        retention=retention,  # pyright: ignore[reportArgumentType] - one of the names.
        duplicate_window=window,
    )
    queue = await js.dead_letters.ensure(f"{name}_DLQ")
    for number in range(1, count + 1):
        failure = FailureRecord(
            subject=f"{name}.x",
            time_ns=number,
            stream=name,
            consumer="c",
            sequence=number,
            deliveries=1,
            reason="rejected",
        )
        await store_letter(api_of(js), queue.name, failure, b"", b"%d" % number, timeout=30)
    return queue


async def interrupt_replay(
    queue: DeadLetterQueue, letter: DeadLetter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Replay a letter up to its removal."""

    async def die(queue: DeadLetterQueue, letter: DeadLetter) -> None:
        raise asyncio.CancelledError(queue, letter)

    with monkeypatch.context() as patch:
        patch.setattr(DeadLetterQueue, "_remove", die)
        with pytest.raises(asyncio.CancelledError):
            await queue.replay(letter)
