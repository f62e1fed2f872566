"""Who writes the keys of a bucket: each key has one owner, who tells the book what was said.

Law: what an owner writes down is what the documentation of its call says that its outcome means.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from natsstream import JetStream, KeyValue, NatsStreamError
from natsstream.errors import (
    KeyExistsError,
    NoRespondersError,
    UsageError,
    WrongLastSequenceError,
)
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.views.bucket_book import (
    Act,
    Attempt,
    BucketBook,
    Seen,
    make_value,
)
from scripts.chaos_runs.views.worker import STEP_S, SWEEP_S, Worker

_PAUSE_S = 0.03
_BRIEF_TTL_S = (1, 3)
_CANCELLED_PART = 0.05
_SWEEP_EVERY_S = (0.02, 0.5)
_ACTS: dict[Act, int] = {"put": 8, "create": 5, "update": 8, "delete": 4, "purge": 2}


class Owner(Worker):
    """Writes to its own keys, one thing after the other.

    Args:
        load: What all workers share.
        js: Its connection.
        bucket: The bucket's name.
        book: What was written.
        keys: Its keys.
        name: The worker's.
    """

    def __init__(
        self,
        load: Load,
        js: JetStream,
        bucket: str,
        book: BucketBook,
        keys: Sequence[str],
        name: str,
    ) -> None:
        super().__init__(load, name)
        self._js = js
        self._bucket = bucket
        self._book = book
        self._keys = keys
        self._draw: random.Random = load.draw(name)
        # By key: what it holds as far as its owner knows, a revision and whether it is a value.
        self._held: dict[str, tuple[int, bool]] = {}

    async def run(self) -> None:
        """Write until writing is over."""
        with self.activity.limit("open the bucket", STEP_S):
            kv = await insist(lambda: self._js.kv.get(self._bucket))
        while not self.load.writing_is_over.is_set():
            await self._write(kv, self._draw.choice(self._keys))
            await self.load.pause(self._draw.uniform(0, 2 * _PAUSE_S))

    async def _write(self, kv: KeyValue, key: str) -> None:
        held = self._held.get(key)
        acts: list[Act] = [*_ACTS]
        (act,) = self._draw.choices(acts, [*_ACTS.values()])
        if held is None and self._draw.random() < 0.5:
            await self._look(kv, key)
            return
        expects: int | None = None
        if act == "update":
            # Now and then with a revision that can not be right.
            expects = held[0] if held is not None and self._draw.random() < 0.9 else 1
        elif act in ("delete", "purge") and held is not None and self._draw.random() < 0.5:
            expects = held[0]
        attempt = self._book.begin(key, act, expects)
        self._held.pop(key, None)
        patience_s = self._draw.uniform(0.001, 0.02) if self._is_cancelled() else STEP_S
        try:
            with self.activity.limit(act, STEP_S):
                async with asyncio.timeout(patience_s):
                    revision = await _ask(kv, attempt)
        except NatsStreamError as error:
            self._note(attempt, error)
            return
        except TimeoutError:
            self.load.counts["writes cancelled"] += 1
            self._book.unknown(attempt)
            return
        if revision is None:
            # A delete without an answer that tells where it stands.
            self._book.unknown(attempt)
            return
        self._book.acked(attempt, revision)
        self._held[key] = revision, attempt.operation == "PUT"
        self.done += 1

    def _is_cancelled(self) -> bool:
        return self._draw.random() < _CANCELLED_PART

    def _note(self, attempt: Attempt, error: NatsStreamError) -> None:
        if isinstance(error, KeyExistsError | WrongLastSequenceError):
            self.load.counts[f"{attempt.act} refused for what the key holds"] += 1
            self._book.refused(attempt, by_key=True)
            return
        self.load.note(self.name, error)
        if isinstance(error, NoRespondersError | UsageError):
            self._book.refused(attempt)
        else:
            self._book.unknown(attempt)

    async def _look(self, kv: KeyValue, key: str) -> None:
        """Find out what a key holds; it may be old, and then the next demand is refused."""
        try:
            with self.activity.limit("get", STEP_S):
                entry = await kv.get(key)
        except NatsStreamError as error:
            self.load.note(self.name, error)
            return
        if entry is None:
            return
        seen = Seen(entry.key, entry.revision, entry.operation, entry.value)
        self._book.see(seen, self.name)
        self._held[key] = entry.revision, True


async def _ask(kv: KeyValue, attempt: Attempt) -> int | None:
    key, value = attempt.key, make_value(attempt.key, attempt.number)
    match attempt.act:
        case "put":
            return await kv.put(key, value)
        case "create":
            return await kv.create(key, value)
        case "update":
            assert attempt.expects is not None  # noqa: S101 - The owner has drawn one.
            return await kv.update(key, value, revision=attempt.expects)
        case "delete":
            return await kv.delete(key, revision=attempt.expects)
        case "purge":
            return await kv.purge(key, revision=attempt.expects)


class BriefOwner(Owner):
    """Creates keys that expire, and creates them again as soon as they have."""

    async def _write(self, kv: KeyValue, key: str) -> None:
        attempt = self._book.begin(key, "create")
        value = make_value(key, attempt.number)
        try:
            with self.activity.limit("create a brief key", STEP_S):
                revision = await kv.create(key, value, ttl=self._draw.randint(*_BRIEF_TTL_S))
        except NatsStreamError as error:
            self._note(attempt, error)
            return
        self._book.acked(attempt, revision)
        self.done += 1


class Sweeper(Worker):
    """Removes the markers of a bucket while its owners delete and create again."""

    def __init__(self, load: Load, js: JetStream, bucket: str) -> None:
        super().__init__(load, f"sweeper of {bucket}")
        self._js = js
        self._bucket = bucket
        self._draw: random.Random = load.draw(self.name)

    async def run(self) -> None:
        """Sweep until writing is over."""
        with self.activity.limit("open the bucket", STEP_S):
            kv = await insist(lambda: self._js.kv.get(self._bucket))
        while not self.load.writing_is_over.is_set():
            try:
                with self.activity.limit("purge deletes", SWEEP_S):
                    removed = await kv.purge_deletes(older_than=self._draw.choice((0, 0, 0.5)))
            except NatsStreamError as error:
                self.load.note(self.name, error)
            else:
                self.load.counts["markers swept"] += removed
                self.done += 1
            await self.load.pause(self._draw.uniform(*_SWEEP_EVERY_S))
