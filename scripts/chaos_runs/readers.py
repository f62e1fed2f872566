"""The readers of a run: bounded reads as messages and as columns, and followers of each kind.

Law: a reader goes on where it was, whatever it was told; so a gap is the library's.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from typing import Literal, TypeAlias, TypedDict, cast

from natsstream import (
    JetStream,
    Message,
    NatsStreamError,
    OrderedConsumer,
    Stream,
    StreamRange,
)
from natsstream.errors import ConnectionLostError
from scripts.chaos_runs.ledger import Sightings
from scripts.chaos_runs.letters import HEADER, filter_of
from scripts.chaos_runs.load import RECONNECT_S, REQUEST_S, STREAM, Load
from scripts.chaos_runs.watch import Activity

Form: TypeAlias = Literal["messages", "arrow"]
Manner: TypeAlias = Literal["steady", "filtered", "reopened", "interrupted", "slow"]
"""How a follower reads: for ever in one block; only some writers, in lists; in a new block again
and again; cancelled again and again; slower than the writers, at times for seconds not at all."""

_AGAIN_S = 0.25
# A part of the reads goes over something that was read before.
_REREAD_PART = 0.3
_REREAD_MAX = 3_000
_BLOCK_S = (0.5, 8.0)
_PATIENCE_S = (0.0, 0.3)
_SLOW_EVERY = 2_000
_SLOW_S = (0.2, 7.0)
# Two missed heartbeats, the time to come back, and the last attempt with its requests.
STEP_S = 6.0 + RECONNECT_S + 4 * REQUEST_S
_CLOSE_S = 2.0

Row: TypeAlias = tuple[int, str, str | None, bytes]


class _ArrowRow(TypedDict):
    """A row of a record batch."""

    sequence: int
    subject: str
    headers: list[dict[str, str]]
    data: bytes


class Reader:
    """A worker that reads; `sightings` says how far it came.

    Attributes:
        sightings: What it saw.
        resumes: How often its reads went on after a break.
    """

    def __init__(self, load: Load, js: JetStream, name: str, writers: Collection[int] = ()) -> None:
        self._load = load
        self._js = js
        self._name = name
        self._draw: random.Random = load.draw(name)
        self._activity: Activity = load.watch.activity(name)
        self.sightings: Sightings = Sightings(name, load.content, load.findings, writers=writers)
        self.resumes: int = 0

    async def run(self) -> None:
        """Read until reading is over."""
        raise NotImplementedError

    async def _open(self) -> Stream:
        """Return the stream, however long that takes; the end of the run cancels it."""
        while True:
            try:
                with self._activity.limit("open the stream", REQUEST_S):
                    return await self._js.streams.get(STREAM)
            except NatsStreamError as error:
                self._load.note(self._name, error)
            await asyncio.sleep(_AGAIN_S)


class BoundedReader(Reader):
    """Reads what there is, again and again, and at times something old once more."""

    def __init__(self, load: Load, js: JetStream, name: str, form: Form) -> None:
        super().__init__(load, js, name)
        self._form: Form = form

    async def run(self) -> None:
        """Read until reading is over."""
        stream = await self._open()
        while not self._load.reading_is_over.is_set():
            held = self.sightings
            if held.last > 1 and self._draw.random() < _REREAD_PART:
                first = self._draw.randint(1, held.last)
                last = min(held.last, first + self._draw.randint(0, _REREAD_MAX))
                once = Sightings(
                    f"{self._name}, {first} to {last}",
                    self._load.content,
                    self._load.findings,
                    first=first,
                )
                if await self._read(stream, once, last):
                    once.check_whole(last)
                    self._check_bounds(once, last)
            else:
                await self._read(stream, held, None)
            await asyncio.sleep(_AGAIN_S)

    def _check_bounds(self, once: Sightings, last: int) -> None:
        if once.last > last:
            self._load.findings.add("range", f"{once.name}: came to {once.last}")

    async def _read(self, stream: Stream, sightings: Sightings, last: int | None) -> bool:
        """Read a range; returns whether it came to its end."""
        load, activity = self._load, self._activity
        found = stream.read(first_seq=sightings.next_seq, last_seq=last)
        try:
            with activity.limit("read", STEP_S):
                async with aclosing(self._rows(found)) as rows:
                    async for row in rows:
                        activity.beat()
                        sightings.see(*row)
        except NatsStreamError as error:
            load.note(self._name, error)
            return False
        finally:
            self.resumes += found.report.resumes
            load.counts["bounded reads"] += 1
            load.counts["messages of bounded reads"] += found.report.messages
        return True

    async def _rows(self, found: StreamRange) -> AsyncGenerator[Row]:
        if self._form == "messages":
            async for message in found:
                mark = message.headers.get(HEADER)
                yield message.sequence, message.subject, mark, message.data
            return
        async for batch in found.batches(["sequence", "subject", "headers", "data"]):
            for row in cast("list[_ArrowRow]", batch.to_pylist()):
                marks = [each["value"] for each in row["headers"] if each["key"] == HEADER]
                yield row["sequence"], row["subject"], marks[0] if marks else None, row["data"]


class Follower(Reader):
    """Follows the stream with ordered consumers."""

    def __init__(
        self,
        load: Load,
        js: JetStream,
        name: str,
        manner: Manner,
        writers: Collection[int] = (),
    ) -> None:
        super().__init__(load, js, name, writers)
        self._manner: Manner = manner
        self._filters: Sequence[str] = [filter_of(writer) for writer in sorted(writers)]
        self._tail: OrderedConsumer | None = None
        self.reasons: dict[str, int] = {}

    async def run(self) -> None:
        """Follow until reading is over, or until `end`."""
        stream = await self._open()
        load = self._load
        while not load.reading_is_over.is_set():
            first = self.sightings.next_seq
            tail = stream.ordered(filters=self._filters, first_seq=first)
            try:
                with self._activity.limit("open an ordered consumer", STEP_S):
                    await tail.__aenter__()
                self._tail = tail
                await self._follow(tail)
            except NatsStreamError as error:
                load.note(self._name, error)
            finally:
                self._tail = None
                with self._activity.limit("close an ordered consumer", _CLOSE_S):
                    await tail.close()
                self._take_down(tail)
            await asyncio.sleep(_AGAIN_S)

    async def end(self) -> None:
        """End a reader that waits by closing its consumer under it."""
        if self._tail is not None:
            with self._load.watch.activity(f"{self._name}, end").limit("close", _CLOSE_S):
                await self._tail.close()

    def _take_down(self, tail: OrderedConsumer) -> None:
        self._load.counts["ordered consumers"] += 1
        self.resumes += tail.report.resumes
        for reason, count in tail.report.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, 0) + count

    async def _follow(self, tail: OrderedConsumer) -> None:
        match self._manner:
            case "filtered":
                async for messages in tail.batches():
                    for message in messages:
                        self._see(message)
            case "reopened":
                try:
                    async with asyncio.timeout(self._draw.uniform(*_BLOCK_S)):
                        await self._follow_messages(tail)
                except TimeoutError:
                    return
            case "interrupted":
                while not self._load.reading_is_over.is_set():
                    try:
                        async with asyncio.timeout(self._draw.uniform(*_PATIENCE_S)):
                            await self._follow_messages(tail)
                    except TimeoutError:
                        self._load.counts["reads cancelled"] += 1
            case _:
                await self._follow_messages(tail)

    async def _follow_messages(self, tail: OrderedConsumer) -> None:
        while True:
            try:
                async for message in tail:
                    self._see(message)
                    if self._manner == "slow" and self.sightings.count % _SLOW_EVERY == 0:
                        # It may catch up when nobody writes any more.
                        await self._load.pause(self._draw.uniform(*_SLOW_S))
            except ConnectionLostError as error:
                # Its hint says to iterate again.
                self._load.note(self._name, error)
            else:
                return

    def _see(self, message: Message) -> None:
        mark = message.headers.get(HEADER)
        self.sightings.see(message.sequence, message.subject, mark, message.data)
        self._activity.steps += 1
