"""Who appends in the run's own process: instances one after the other, and their zombies.

Law: what is written down of an item is what the documentation says that its outcome means. An
instance that was replaced and still has work must be told so.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

from natsstream import AppendResult, IdempotentProducer, JetStream, NatsStreamError
from natsstream.errors import (
    ProducerTimeoutError,
    StaleEpochError,
    TransportError,
    UsageError,
)
from scripts.chaos_runs.load import RECONNECT_S, REQUEST_S, Load
from scripts.chaos_runs.producers.book import LIFE_HEADER, ProducerBook, make_item
from scripts.chaos_runs.views.worker import STEP_S, Worker

Mode: TypeAlias = Literal["shared", "exclusive"]
MODES: Sequence[Mode] = ("shared", "exclusive")

# Of one source: the machine is shared with the servers and with others.
_BURST = (1, 30)
_BURSTS_PER_S = 4.0
# What may wait: a busy machine stores it in some seconds, one message at a time.
_WAITING_BYTES = 10_000
# Those that claim from each other at each burst: more, and they would do nothing else.
_TURNS_PER_S = 0.5
# They never give up: then each of their items is stored once.
_TURNS_S = 600.0
_AGAIN_S = 0.2
_LIFE_S = (1.0, 8.0)
_ZOMBIE_S = (0.0, 3.0)
_BATCHES = (1, 5, 30, 997)
_TIMEOUTS_S = (4.0, 60.0, 60.0)
_WAITED_PART = 0.2
_ZOMBIE_PART = 0.6
_LEFT_PART = 0.2
# A zombie is told at its next batch: after its request and the wait for a leader.
_TOLD_S = 60.0 + RECONNECT_S + 4 * REQUEST_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """Where and how a producer works.

    Attributes:
        stream: The stream.
        subject: The subject of its items.
        mode: As for `JetStream.producer`.
        producer_id: As for `JetStream.producer`.
    """

    stream: str
    subject: str
    mode: Mode
    producer_id: str

    async def open(
        self, js: JetStream, *, delivery_timeout: float, batch: int, auto_claim: bool = False
    ) -> IdempotentProducer:
        """Open an instance."""
        return await js.producer(
            self.stream,
            self.producer_id,
            subject=self.subject,
            mode=self.mode,
            auto_claim=auto_claim,
            delivery_timeout=delivery_timeout,
            max_batch_messages=batch,
            max_claims=1_000_000 if auto_claim else 3,
        )


class Source(Worker):
    """A producer of the run's process.

    Args:
        load: What all workers share.
        js: Its connection.
        post: Where it works.
        book: What it appends.
        is_steady: One instance for as long as nothing breaks it, instead of one after the other.
        has_turns: It claims its epoch back from others of the same id, and begins at its own count.
    """

    def __init__(
        self,
        load: Load,
        js: JetStream,
        post: Post,
        book: ProducerBook,
        *,
        is_steady: bool = False,
        has_turns: bool = False,
    ) -> None:
        super().__init__(load, book.name)
        self.book: ProducerBook = book
        self.post: Post = post
        self.has_turns: bool = has_turns
        self._js = js
        self._is_steady = is_steady or has_turns
        self._draw: random.Random = load.draw(book.name)
        self._zombies: set[asyncio.Task[None]] = set()
        self._opened = asyncio.Event()

    async def run(self) -> None:
        """Append until writing is over, and then until all is stored."""
        try:
            while True:
                try:
                    if await self._live():
                        break
                except NatsStreamError as error:
                    self.load.note(self.name, error)
                    if self.has_turns and self.book.lives:
                        self.load.findings.add("turns", f"{self.name} has stopped: {error!r}")
                await asyncio.sleep(_AGAIN_S)
            if self._zombies:
                await asyncio.wait(self._zombies)
        finally:
            for zombie in self._zombies:
                zombie.cancel()

    async def _live(self) -> bool:
        """Open an instance and append with it; return True if it has stored the last item."""
        draw, book = self._draw, self.book
        with self.activity.limit("open", 60.0 + STEP_S):
            producer = await self.post.open(
                self._js,
                delivery_timeout=_TURNS_S if self.has_turns else draw.choice(_TIMEOUTS_S),
                batch=draw.choice(_BATCHES),
                auto_claim=self.has_turns,
            )
        self._opened.set()
        self._opened = asyncio.Event()
        life = _Life(self, producer, book.begin_life(), self._first_of(producer))
        ending = draw.random()
        try:
            await life.append_for(None if self._is_steady else draw.uniform(*_LIFE_S))
            if self.load.writing_is_over.is_set():
                return await life.finish()
            if ending < _ZOMBIE_PART:
                zombie = asyncio.create_task(life.go_on(self._opened, draw.uniform(*_ZOMBIE_S)))
                self._zombies.add(zombie)
                zombie.add_done_callback(self._zombies.discard)
                book.counts["zombies"] += 1
            elif ending < _ZOMBIE_PART + _LEFT_PART:
                await life.leave()
            else:
                await life.finish()
        except BaseException:
            await life.leave()
            raise
        return False

    def _first_of(self, producer: IdempotentProducer) -> int:
        if self.has_turns or producer.recovered is None:
            return 0
        position = producer.recovered.checkpoint
        if position is not None and not isinstance(position, int):
            self.load.findings.add("checkpoint", f"{self.name}: {position!r}")
        return position if isinstance(position, int) else 0


class _Life:
    """One instance."""

    def __init__(
        self, source: Source, producer: IdempotentProducer, life: int, number: int
    ) -> None:
        self._source = source
        self._load = source.load
        self._book = source.book
        self._producer = producer
        self._life = life
        self._number = number
        self._waits: set[asyncio.Task[AppendResult]] = set()
        self._flush_s = _TURNS_S if source.has_turns else _TOLD_S
        self._draw = source.load.draw(f"{source.name} {life}")
        self._activity = source.load.watch.activity(f"{source.name} {life}")

    async def append_for(self, seconds: float | None) -> None:
        """Append bursts for some time, or until writing is over."""
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        while not self._load.writing_is_over.is_set() and (end is None or loop.time() < end):
            await self._burst(self._draw.randint(*_BURST))
            if self._producer.buffered_bytes > _WAITING_BYTES:
                with self._activity.limit("flush", self._flush_s):
                    await self._producer.flush()
            rate = _TURNS_PER_S if self._source.has_turns else _BURSTS_PER_S
            await self._load.pause(self._draw.uniform(0, 2 / rate))

    async def _burst(self, count: int) -> None:
        is_waited = self._source.has_turns or self._draw.random() < _WAITED_PART
        for _ in range(count):
            number = self._number
            item = make_item(self._book.name, number)
            headers = {LIFE_HEADER: str(self._life)}
            if is_waited:
                wait = asyncio.create_task(
                    self._producer.append_wait(item, headers=headers, checkpoint=number + 1)
                )
                self._waits.add(wait)
                wait.add_done_callback(partial(self._note, number))
            else:
                self._producer.append(item, headers=headers, checkpoint=number + 1)
            self._number += 1
        # What is waited for is appended when its task begins: before the next burst.
        await asyncio.sleep(0)

    def _note(self, number: int, wait: asyncio.Task[AppendResult]) -> None:
        self._waits.discard(wait)
        if wait.cancelled():
            return
        error = wait.exception()
        if error is None:
            stored = wait.result()
            self._book.tell(self._life, number, "stored", stored.offset)
            self._source.done += 1
        elif isinstance(error, StaleEpochError):
            self._book.tell(self._life, number, "refused")
        elif isinstance(error, TransportError | UsageError):
            # A producer that is left says that the item was not known to be stored.
            self._book.tell(self._life, number, "unknown")
        else:
            self._load.findings.add("error", f"{self._source.name}: {error!r}")

    async def finish(self) -> bool:
        """Flush and leave; return True: all is stored."""
        with self._activity.limit("flush", self._flush_s):
            await self._settled()
            await self._producer.detach()
        self._book.flush(self._number)
        self._source.done += 1
        return True

    async def _settled(self) -> None:
        """Wait for the items that are waited for."""
        if self._waits:
            await asyncio.wait(set(self._waits))

    async def leave(self) -> None:
        """Leave as an error does: nothing more is sent."""
        with self._activity.limit("leave", REQUEST_S):
            await self._producer.__aexit__(ZeroDivisionError, None, None)
        if self._waits:
            await asyncio.wait(set(self._waits))
        self._book.counts["left"] += 1

    async def go_on(self, is_replaced: asyncio.Event, seconds: float) -> None:
        """Be a zombie: append as before, also behind the claim of the next instance."""
        name, book = f"zombie of {self._source.name}", self._book
        try:
            await self.append_for(seconds)
            await is_replaced.wait()
            await self._burst(self._draw.randint(*_BURST))
            with self._activity.limit("be told", _TOLD_S):
                await self._settled()
                await self._producer.flush()
            self._load.findings.add("fenced", f"{name} {self._life} was told that all is stored")
        except StaleEpochError:
            book.counts["zombies fenced"] += 1
        except ProducerTimeoutError:
            book.counts["zombies timed out"] += 1
        except NatsStreamError as error:
            self._load.note(name, error)
            book.counts["zombies with other errors"] += 1
        finally:
            await self.leave()
