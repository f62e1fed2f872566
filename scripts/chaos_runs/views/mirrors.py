"""Who keeps a local mirror of a bucket, and reads its own writes from it.

Law: what a mirror answers right after `wait_for` is never older than what was waited for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from natsstream import JetStream, NatsStreamError
from natsstream.kv.cache.cached import CachedKeyValue
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.views.bucket_book import BucketBook, Seen
from scripts.chaos_runs.views.owners import Owner
from scripts.chaos_runs.views.watchers import seen_of
from scripts.chaos_runs.views.worker import STEP_S

_WAIT_S = 10.0
_PAUSE_S = 0.05
_AGAIN_S = 0.2


class Mirrored(Owner):
    """Owns some keys, and reads all keys of the bucket from memory."""

    is_writer: bool = False

    def __init__(
        self,
        load: Load,
        js: JetStream,
        bucket: str,
        book: BucketBook,
        keys: Sequence[str],
    ) -> None:
        super().__init__(load, js, bucket, book, keys, f"mirror of {bucket}")
        self._cached: CachedKeyValue | None = None

    def entries(self) -> dict[str, Seen] | None:
        """Return what the mirror answers now for every key that it knows; None without one."""
        cached = self._cached
        if cached is None:
            return None
        return {key: seen_of(entry) for key, entry in cached.items()}

    @property
    def revision(self) -> int:
        """How far the mirror has come."""
        return self._cached.revision if self._cached is not None else 0

    async def run(self) -> None:
        """Keep a mirror until reading is over, however often that breaks."""
        with self.activity.limit("open the bucket", STEP_S):
            kv = await insist(lambda: self._js.kv.get(self._bucket))
        while not self.load.reading_is_over.is_set():
            cached = kv.cached()
            try:
                with self.activity.limit("open a mirror", STEP_S):
                    await cached.__aenter__()
                self._cached = cached
                while not self.load.reading_is_over.is_set():
                    if not self.load.writing_is_over.is_set():
                        await self._write(kv, self._draw.choice(self._keys))
                    await self._read(cached)
                    await asyncio.sleep(_PAUSE_S)
            except NatsStreamError as error:
                self.load.note(self.name, error)
            finally:
                self._cached = None
                with self.activity.limit("leave a mirror", STEP_S):
                    await cached.__aexit__(None, None, None)
            self.load.counts["mirrors"] += 1
            await asyncio.sleep(_AGAIN_S)

    async def _read(self, cached: CachedKeyValue) -> None:
        key = self._draw.choice(self._keys)
        last = self._book.last_acked(key)
        if last is None:
            return
        try:
            with self.activity.limit("wait for a revision", _WAIT_S):
                await cached.wait_for(last.revision, timeout=_WAIT_S)
        except (NatsStreamError, TimeoutError) as error:
            self.load.counts[f"mirror behind: {type(error).__name__}"] += 1
            return
        entry = cached.get(key)
        if entry is not None:
            self._book.see(seen_of(entry), self.name)
        if entry is not None and entry.revision < last.revision:
            self.load.findings.add(
                "mirror",
                f"{self.name}: waited for {last.revision} of {key}, holds {entry.revision}",
            )
        # Nothing at all is right for a key that was deleted, or may have been.
        if entry is None and last.operation == "PUT" and not self._book.may_be_gone(key):
            self.load.findings.add(
                "mirror", f"{self.name}: waited for {last.revision} of {key}, holds nothing"
            )
