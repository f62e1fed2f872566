"""Who puts objects into a store and reads them again.

Law: what an owner writes down is what the documentation of its call says that its outcome means.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence

from natsstream import JetStream, NatsStreamError
from natsstream.errors import (
    NoRespondersError,
    ObjectChangedError,
    ObjectNotFoundError,
    UsageError,
)
from natsstream.objects.store import ObjectStore
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.views.object_book import Deal, ObjectBook, make_data
from scripts.chaos_runs.views.worker import STEP_S, Worker

_SIZES = (64, 300_000)
_CHUNK_BYTES = (4_096, 16_384, 131_072)
_CANCELLED_PART = 0.1
_DELETED_PART = 0.15
_PAUSE_S = 0.1
_PART_BYTES = 10_000
# A slow proxy lets 2,000 bytes a second through, for 8 s at most.
_TRANSFER_S = STEP_S + 20.0


class Putter(Worker):
    """Puts its own objects, puts them again and deletes them."""

    def __init__(
        self,
        load: Load,
        js: JetStream,
        store: str,
        book: ObjectBook,
        names: Sequence[str],
        name: str,
    ) -> None:
        super().__init__(load, name)
        self._js = js
        self._store = store
        self._book = book
        self._names = names
        self._draw: random.Random = load.draw(name)

    async def run(self) -> None:
        """Put and delete until writing is over."""
        with self.activity.limit("open the store", STEP_S):
            box = await insist(lambda: self._js.objects.get(self._store))
        while not self.load.writing_is_over.is_set():
            name = self._draw.choice(self._names)
            is_delete = self._draw.random() < _DELETED_PART
            deal = self._book.begin(
                name,
                "delete" if is_delete else "put",
                0 if is_delete else self._draw.randint(*_SIZES),
            )
            is_cancelled = self._draw.random() < _CANCELLED_PART
            try:
                with self.activity.limit(deal.deed, _TRANSFER_S):
                    async with asyncio.timeout(
                        self._draw.uniform(0.001, 0.2) if is_cancelled else _TRANSFER_S
                    ):
                        await self._do(box, deal)
            except ObjectNotFoundError:
                if deal.deed == "put" or not self._book.may_be_gone(name):
                    self.load.findings.add("content", f"{self.name}: {name} is not there")
                self._book.end(deal, "refused")
            except NatsStreamError as error:
                self.load.note(self.name, error)
                is_refused = isinstance(error, NoRespondersError | UsageError)
                # A put asks more than once: that the last one had no answer says nothing.
                is_refused = is_refused and deal.deed == "delete"
                self._book.end(deal, "refused" if is_refused else "unknown")
            except TimeoutError:
                self.load.counts[f"{deal.deed}s of objects cancelled"] += 1
                self._book.end(deal, "unknown")
            else:
                self._book.end(deal, "acked")
                self.done += 1
            await self.load.pause(self._draw.uniform(0, 2 * _PAUSE_S))

    async def _do(self, box: ObjectStore, deal: Deal) -> None:
        if deal.deed == "delete":
            await box.delete(deal.name)
            return
        data = make_data(deal.name, deal.number, deal.size)
        chunk_size = self._draw.choice(_CHUNK_BYTES)
        source = data if self._draw.random() < 0.5 else self._parts(data)
        info = await box.put(deal.name, source, chunk_size=chunk_size)
        if info.size != deal.size:
            self.load.findings.add(
                "content", f"{self.name}: put {deal.size} bytes of {deal.name}, told {info.size}"
            )

    async def _parts(self, data: bytes) -> AsyncGenerator[bytes]:
        """Give the bytes in parts of drawn sizes, with pauses."""
        start = 0
        while start < len(data):
            size = self._draw.randint(1, _PART_BYTES)
            yield data[start : start + size]
            start += size
            if self._draw.random() < 0.05:
                await asyncio.sleep(0.01)


class Getter(Worker):
    """Reads whole objects and ranges of them, while they are put again and deleted."""

    def __init__(
        self, load: Load, js: JetStream, store: str, book: ObjectBook, names: Sequence[str]
    ) -> None:
        super().__init__(load, f"getter of {store}")
        self._js = js
        self._store = store
        self._book = book
        self._names = names
        self._draw: random.Random = load.draw(self.name)

    async def run(self) -> None:
        """Read until writing is over."""
        with self.activity.limit("open the store", STEP_S):
            box = await insist(lambda: self._js.objects.get(self._store))
        while not self.load.writing_is_over.is_set():
            name = self._draw.choice(self._names)
            try:
                async with asyncio.timeout(
                    self._draw.uniform(0.001, 0.1)
                    if self._draw.random() < _CANCELLED_PART
                    else _TRANSFER_S
                ):
                    await self._read(box, name)
            except (ObjectChangedError, ObjectNotFoundError) as error:
                self.load.counts[f"objects read: {type(error).__name__}"] += 1
            except NatsStreamError as error:
                self.load.note(self.name, error)
                await asyncio.sleep(_PAUSE_S)
            except TimeoutError:
                self.load.counts["reads of objects cancelled"] += 1
            await self.load.pause(self._draw.uniform(0, _PAUSE_S))

    async def _read(self, box: ObjectStore, name: str) -> None:
        offset = self._draw.choice((0, 0, 0, 100, 5_000))
        with self.activity.limit("get", _TRANSFER_S):
            if not offset and self._draw.random() < 0.5:
                data = await box.get(name)
                if data is None:
                    self.load.counts["objects read: gone"] += 1
                    return
            else:
                parts: list[bytes] = []
                info = await box.info(name)
                if info is None or info.size <= offset:
                    return
                async with box.open(name, offset=offset) as reader:
                    async for part in reader:
                        parts.append(bytes(part))
                        self.activity.beat()
                data = b"".join(parts)
        self._book.see(name, data, self.name, offset=offset)
        self.done += 1
