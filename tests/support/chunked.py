"""Streams with chunks for tests, and sources that misbehave."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream
    from natsstream.streams.stream import Stream


def some_bytes(size: int, *, seed: int = 1) -> bytes:
    """Return bytes that repeat nowhere."""
    return random.Random(seed).randbytes(size)  # noqa: S311 - No secret: the same in each run.


async def chunk_stream(js: JetStream, name: str, *, replicas: int = 1) -> Stream:
    """Make a stream as an object store has it; chunks go to `<name>.C.<nuid>`."""
    return await js.streams.ensure(
        name,
        subjects=[f"{name}.C.>", f"{name}.M.>"],
        discard="new",
        allow_rollup_hdrs=True,
        allow_direct=True,
        replicas=replicas,
        storage="memory",
    )


async def held(stream: Stream, filter: str = ">") -> dict[str, int]:  # noqa: A002 - As the stream has it.
    """Return how many messages each subject has."""
    return {each.subject: each.messages async for each in stream.subject_counts(filter)}


class Slow:
    """An async source that gives some pieces and then waits until it is told to go on."""

    def __init__(self, before: list[bytes], after: list[bytes] | None = None) -> None:
        self._before, self._after = before, after or []
        self.has_given = asyncio.Event()
        self.go_on = asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._before:
            yield piece
        self.has_given.set()
        await self.go_on.wait()
        for piece in self._after:
            yield piece
