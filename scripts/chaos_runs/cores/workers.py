"""Who works on the core stream, the map and the log of a run."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import cast

from natsstream import DKV, CoreStream, DStream, JetStream, NatsStreamError
from natsstream.conat.writer import PublishItem, PublishOptions
from natsstream.values import to_json
from scripts.chaos_runs.cores.core_book import CoreBook
from scripts.chaos_runs.cores.layer_book import LogBook, MapBook
from scripts.chaos_runs.load import REQUEST_S, Load
from scripts.chaos_runs.views.worker import Worker

# A write waits for its copy half a minute, when the feed has lost it.
CALL_S = 60.0
BIG_BYTES = 1_200_000
"""More than a message may have."""
_KEYS = tuple("abcdef")
_PIPELINED = 40
_TTL_MS = 1_500
_BIG_KEPT = 2
_KEPT = 60
_SAVE_EVERY = 25


class Gate:
    """Lets the writers go on, or hold still so that all can be compared."""

    def __init__(self) -> None:
        self._is_open = asyncio.Event()
        self._is_open.set()

    def close(self) -> None:
        self._is_open.clear()

    def open(self) -> None:
        self._is_open.set()

    async def passed(self) -> None:
        await self._is_open.wait()


class Writer(Worker):
    """One who writes, as long as the gate is open; `write` does it once."""

    pause_s: tuple[float, float] = (0.005, 0.04)

    def __init__(self, load: Load, gate: Gate, name: str) -> None:
        super().__init__(load, name)
        self.draw: random.Random = load.draw(name)
        self._gate = gate

    async def run(self) -> None:
        while not self.load.writing_is_over.is_set():
            await self._gate.passed()
            try:
                with self.activity.limit("write", CALL_S):
                    await self.write()
            except NatsStreamError as error:
                self.load.note(self.name, error)
            await self.load.pause(self.draw.uniform(*self.pause_s))

    async def write(self) -> None:
        raise NotImplementedError


class CoreWriter(Writer):
    """Publishes, sets, overwrites and deletes, with and without keys."""

    def __init__(self, load: Load, gate: Gate, name: str, core: CoreStream, book: CoreBook) -> None:
        super().__init__(load, gate, name)
        self._core = core
        self._book = book
        self._big: deque[int] = deque()
        self._number = 0

    async def write(self) -> None:
        chance, key = self.draw.random(), self.draw.choice(_KEYS)
        if chance < 0.35:
            await self._publish(None)
        elif chance < 0.7:
            await self._publish(key)
        elif chance < 0.78:
            await self._publish(self.draw.choice((None, key)), ttl=_TTL_MS)
        elif chance < 0.8:
            await self._publish_big(self.draw.choice((None, key)))
        elif chance < 0.84:
            await self._overwrite(key)
        elif chance < 0.92:
            stored = await self._core.publish(None, key=key, timeout=REQUEST_S)
            if stored is not None:
                self._book.ack(stored.seq, key, None)
        elif chance < 0.96:
            await self._core.delete_kv(key)
            self._book.counts["tombstones"] += 1
        elif len(self._core):
            await self._delete(self._core.raw[self.draw.randrange(len(self._core))].seq)
        self.done += 1

    def _value(self, size: int = 0) -> str:
        self._number += 1
        return f"{self.name}-{self._number}".ljust(size, "x")

    async def _publish(self, key: str | None, *, ttl: int | None = None, size: int = 0) -> int:
        """Publish a value, and return its sequence; 0 if it was stored earlier."""
        value = self._value(size)
        self._book.send(key, value, expires=ttl is not None)
        stored = await self._core.publish(value, key=key, ttl=ttl, timeout=REQUEST_S)
        if stored is None:
            return 0
        self._book.ack(stored.seq, key, value, expires=ttl is not None)
        return stored.seq

    async def _publish_big(self, key: str | None) -> None:
        """Publish a big value, and delete an earlier one: each client has all of them in memory."""
        seq = await self._publish(key, size=BIG_BYTES)
        if key is None and seq:
            self._big.append(seq)
        if len(self._big) > _BIG_KEPT:
            await self._delete(self._big.popleft())

    async def _delete(self, seq: int) -> None:
        self._book.deleted.add(seq)
        await self._core.delete(seq=seq)
        self._book.counts["deleted"] += 1

    async def _overwrite(self, key: str) -> None:
        """Set a key many times, without waiting in between."""
        values = [self._value() for _ in range(_PIPELINED)]
        for each in values:
            self._book.send(key, each)
        options = PublishOptions(key=key, timeout=REQUEST_S)
        results = await self._core.publish_many([PublishItem(each, options) for each in values])
        for value, result in zip(values, results, strict=True):
            if result.stored is not None:
                self._book.ack(result.stored.seq, key, value)


class Stranger(Writer):
    """Purges and deletes as the nats CLI does, past all faults: nobody is told."""

    pause_s = (1.0, 4.0)

    def __init__(self, load: Load, gate: Gate, js: JetStream, stream: str, book: CoreBook) -> None:
        super().__init__(load, gate, "stranger")
        self._js = js
        self._stream = stream
        self._book = book

    async def write(self) -> None:
        info = await (await self._js.streams.get(self._stream)).info()
        first, last = info.state.first_seq, info.state.last_seq
        if self.draw.random() < 0.5 and last > first:
            seq = self.draw.randint(first, last)
            self._book.deleted.add(seq)
            await self._request("MSG.DELETE", {"seq": seq})
        elif last - _KEPT > first:
            seq = self.draw.randint(first, last - _KEPT)
            self._book.purged = max(self._book.purged, seq - 1)
            await self._request("PURGE", {"seq": seq})
        self.done += 1

    async def _request(self, what: str, body: dict[str, int]) -> None:
        subject = f"$JS.API.STREAM.{what}.{self._stream}"
        await self._js.core.request(subject, to_json(body).encode(), timeout=REQUEST_S)
        self._book.counts[what.lower()] += 1


class Reopener(Worker):
    """Opens the core stream anew again and again, wherever the faults are."""

    is_writer = False

    def __init__(self, load: Load, js: JetStream, core: str) -> None:
        super().__init__(load, "reopener")
        self._js = js
        self._core = core
        self._draw = load.draw(self.name)

    async def run(self) -> None:
        while True:
            try:
                with self.activity.limit("open the core stream", 2 * CALL_S):
                    core = await self._js.core_stream(self._core, no_cache=True)
                try:
                    await asyncio.sleep(self._draw.uniform(0.1, 2.0))
                finally:
                    await core.close()
                self.done += 1
            except NatsStreamError as error:
                self.load.note(self.name, error)
            await asyncio.sleep(0.1)


class MapOwner(Writer):
    """Sets and deletes its own keys of a map, which saves them in the background."""

    def __init__(self, load: Load, gate: Gate, name: str, dkv: DKV, book: MapBook) -> None:
        super().__init__(load, gate, name)
        self._dkv = dkv
        self._book = book
        self._number = 0

    async def write(self) -> None:
        self._number += 1
        key = f"{self.name}/{self.draw.choice(_KEYS)}"
        if self.draw.random() < 0.2:
            self._book.wanted.pop(key, None)
            self._dkv.delete(key)
        else:
            size = BIG_BYTES if self.draw.random() < 0.01 else 0
            value = f"{self.name}-{self._number}-".ljust(size, "x")
            self._book.wanted[key] = value
            self._dkv.set(key, value)
        self._book.counts["sent"] += 1
        if self._number % _SAVE_EVERY == 0:
            await self.save()

    async def save(self) -> None:
        """Save all; what the server has then is acknowledged."""
        await self._dkv.save()
        self._book.counts["acked"] = self._book.counts["sent"]
        self.done += 1


class LogWriter(Writer):
    """Pushes numbers to a log, which saves them in the background."""

    def __init__(self, load: Load, gate: Gate, name: str, log: DStream, book: LogBook) -> None:
        super().__init__(load, gate, name)
        self._log = log
        self._book = book
        self._number = 0

    async def write(self) -> None:
        values: list[str] = []
        for _ in range(self.draw.choice((1, 1, 5))):
            self._number += 1
            values.append(f"{self.name}-{self._number}")
            self._book.write(self.name, values[-1])
        self._log.push(*values)
        self._book.counts["sent"] += len(values)
        if self.draw.random() * _SAVE_EVERY < 1:
            await self.save()

    async def save(self) -> None:
        """Save all; what the server has then is acknowledged."""
        await self._log.save()
        self._book.counts["acked"] = self._book.counts["sent"]
        self.done += 1


def saver_of(worker: Worker) -> MapOwner | LogWriter | None:
    """Return a worker that has something to save; None for another one."""
    return cast("MapOwner | LogWriter", worker) if hasattr(worker, "save") else None
