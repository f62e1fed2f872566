"""The newest entry of one key, for tasks that wait for it.

Law: nothing polls. The next wait raises the error that ended the watch.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Self

from natsstream.errors import ConnectionLostError, NatsStreamError
from natsstream.kv.bucket import Bucket
from natsstream.kv.entry import Entry
from natsstream.kv.formats import RAW
from natsstream.kv.watch import Watch, WatchOptions


class KeyFollower:
    """The newest entry of a key, kept by a watch; used with `async with`.

    Attributes:
        latest: The newest entry that came, a marker too; None before the first.
        count: How many came.
    """

    def __init__(self, bucket: Bucket, key: str) -> None:
        self.latest: Entry | None = None
        self.count: int = 0
        self._watch: Watch = bucket.watch((key,), RAW, WatchOptions())
        self._news = asyncio.Event()
        self._error: NatsStreamError | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to follow the key."""
        try:
            await self._watch.__aenter__()
        except BaseException:
            await self._watch.close()
            raise
        self._task = asyncio.create_task(self._follow())
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            if self._task is not None:
                self._task.cancel()
                await asyncio.wait([self._task])
        finally:
            await self._watch.close()

    async def more_than(self, count: int, *, within_s: float | None = None) -> bool:
        """Wait until more than so many entries came; return True if they did.

        Args:
            count: How many are known already.
            within_s: Seconds to wait; None waits without limit.

        Raises:
            NatsStreamError: The error that has ended the watch, such as BucketNotFoundError.
        """
        try:
            async with asyncio.timeout(within_s):
                while self.count <= count:
                    if self._error is not None:
                        raise self._error
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def entries(self) -> AsyncGenerator[Entry]:
        """Yield the newest entry, then each newer one; what is slow to look sees the newest alone.

        Raises:
            NatsStreamError: The error that has ended the watch.
        """
        count = 0
        while True:
            await self.more_than(count)
            count = self.count
            if self.latest is not None:
                yield self.latest

    async def _follow(self) -> None:
        while True:
            try:
                async for entry in self._watch:
                    self.latest = entry
                    self.count += 1
                    self._news.set()
                return
            except ConnectionLostError:
                continue  # The watch retries; waiting tasks have their own deadlines.
            except NatsStreamError as error:
                self._error = error
                self._news.set()
                return
