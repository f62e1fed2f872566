"""Who takes a lock, on several connections, and holds it for a while.

Law: whoever says "mine" asks the lock at that very moment, without a wait in between.
"""

from __future__ import annotations

import asyncio
import random

from natsstream import JetStream, KeyValue, NatsStreamError
from natsstream.errors import LockHeldError, LockLostError
from natsstream.kv.locks.locks import Lock
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.views.lock_book import LockBook
from scripts.chaos_runs.views.worker import STEP_S, Worker

TTL_S = 2.0
GUARDED = "guarded"
_HELD_S = (0.05, 0.1, 0.3, 0.6, 1.0, 6.0)
_LOOK_S = 0.02
_WAIT_S = 3.0
_CANCELLED_PART = 0.15
_WRITTEN_PART = 0.2


class Locker(Worker):
    """One of those who want the lock."""

    def __init__(
        self, load: Load, js: JetStream, bucket: str, lock: str, book: LockBook, number: int
    ) -> None:
        super().__init__(load, f"locker {number}")
        self._js = js
        self._bucket = bucket
        self._lock = lock
        self._book = book
        self._draw: random.Random = load.draw(self.name)

    async def run(self) -> None:
        """Take the lock, hold it and leave it, until writing is over."""
        with self.activity.limit("open the bucket", STEP_S):
            kv = await insist(lambda: self._js.kv.get(self._bucket))
        while not self.load.writing_is_over.is_set():
            is_cancelled = self._draw.random() < _CANCELLED_PART
            try:
                with self.activity.limit("take, hold and leave", _WAIT_S + STEP_S):
                    async with asyncio.timeout(
                        self._draw.uniform(0.01, 2.0) if is_cancelled else None
                    ):
                        await self._take(kv)
            except LockHeldError:
                self._book.counts["waited in vain"] += 1
            except LockLostError:
                self._book.counts["told that it was lost"] += 1
            except NatsStreamError as error:
                self.load.note(self.name, error)
            except TimeoutError:
                self.load.counts["locks cancelled"] += 1
            # Who waits in vain gets on as well: that somebody holds it is looked at on its own.
            self.done += 1
            await self.load.pause(self._draw.uniform(0, 0.2))

    async def _take(self, kv: KeyValue) -> None:
        async with kv.lock(
            self._lock,
            ttl=TTL_S,
            timeout=_WAIT_S,
            holder=self.name,
            on_loss=self._draw.choice(("cancel", "tell")),
        ) as lock:
            token, how = lock.token, "released"
            self._book.acquired(self.name, token)
            self.done += 1
            try:
                await self._hold(lock)
            except LockLostError:
                how = "lost"
                raise
            finally:
                self._book.left(token, how)

    async def _hold(self, lock: Lock) -> None:
        """Say all the time that it is ours, and write what only the holder may write."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._draw.choice(_HELD_S)
        while loop.time() < end and not self.load.writing_is_over.is_set():
            lock.check()
            self._book.held(self.name, lock.token)
            if self._draw.random() < _WRITTEN_PART:
                try:
                    revision = await lock.put(GUARDED, str(lock.token).encode())
                except LockLostError:
                    raise
                except NatsStreamError as error:
                    self.load.note(self.name, error)
                else:
                    self._book.wrote(lock.token, revision)
            await asyncio.sleep(_LOOK_S)
