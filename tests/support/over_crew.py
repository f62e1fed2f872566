"""Writers to a stream that views follow while faults happen, and what is true at the end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from natsstream.errors import NatsStreamError
from tests.support.core_streams import heard
from tests.support.eventually import eventually_async
from tests.support.overs import until_same
from tests.support.streams import delete_message, purge

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from natsstream import CoreStream, JetStream, Stream

KEYS = tuple("abcde")
_PAUSE_S = 0.002
_TIMEOUT_S = 2.0


class OverCrew:
    """Writers of one stream, by their own connections; the views only read.

    Args:
        stream: The stream.
        views: Views over it.
        writers: The connections that write; other programs, as far as the views know.
        seed: Chooses what is written.
        is_compact: True if the stream keeps one message of each subject.

    Attributes:
        acked: The key of each message whose ack came, by sequence.
    """

    def __init__(
        self,
        stream: Stream,
        views: Sequence[CoreStream],
        writers: Sequence[JetStream],
        seed: Random,
        *,
        is_compact: bool,
    ) -> None:
        self.acked: dict[int, str] = {}
        # One by one: the value before such a one is its key's newest again.
        self._deleted: set[int] = set()
        self._stream = stream
        self._views = views
        self._seed = seed
        self._is_compact = is_compact
        self._changes = [heard(each) for each in views]
        self._has_to_stop = asyncio.Event()
        self._tasks = [asyncio.ensure_future(self._write(each)) for each in writers]

    async def stop(self) -> None:
        """End the writing."""
        self._has_to_stop.set()
        await asyncio.gather(*self._tasks)

    async def reach(self, count: int) -> None:
        """Wait until so many more messages are acknowledged."""
        wanted = len(self.acked) + count

        async def are_enough() -> bool:
            return len(self.acked) >= wanted

        await eventually_async(are_enough, within_s=90)

    async def _write(self, js: JetStream) -> None:
        count = 0
        while not self._has_to_stop.is_set():
            count += 1
            with suppress(NatsStreamError):  # Faults do that.
                await self._write_once(js, b"%d" % count)
            await asyncio.sleep(_PAUSE_S)

    async def _write_once(self, js: JetStream, data: bytes) -> None:
        name, chance = self._stream.name, self._seed.random()
        if chance < 0.9:
            subject = f"{name}.{self._seed.choice(KEYS)}"
            ack = await js.publish(subject, data, timeout=_TIMEOUT_S)
            self.acked[ack.sequence] = subject
        elif chance < 0.98 and self.acked:
            seq = self._seed.choice(sorted(self.acked)[-20:])
            self._deleted.add(seq)
            await delete_message(js, name, seq)
        elif self.acked:
            await purge(js, name, seq=sorted(self.acked)[-self._seed.randrange(10, 30) :][0])

    async def check(self) -> None:
        """Check that all views have what the server holds, and how they got there."""
        for view, changes in zip(self._views, self._changes, strict=True):
            seqs = await until_same(view, self._stream)
            told = [each.seq for each in changes if not each.is_removal]
            assert told == sorted(set(told)), "changes out of order, or told twice"
            assert set(seqs) <= set(told)
            shown: list[int] = []
            last_of: dict[str, int] = {}
            for change in changes:
                if change.is_removal:
                    shown.remove(change.seq)
                    continue
                key = change.key or ""
                before = last_of.get(key, 0)
                unseen = [
                    seq
                    for seq, its_key in self.acked.items()
                    if its_key == key and before < seq < change.seq
                ]
                # Nothing has overwritten values that were deleted before the view saw them. After
                # its next comparison with the stream, a new value is not marked as conflated.
                unseen = [seq for seq in unseen if seq not in self._deleted]
                # Of a key that was told gone, one more value may have come and gone unseen: when
                # the next one is stored, nothing of it is left to be replaced.
                is_excused = before not in shown
                assert change.is_conflated or not unseen or is_excused, (change, before, unseen)
                last_of[key] = change.seq
                if self._is_compact and before in shown:
                    shown.remove(before)
                shown.append(change.seq)
            assert shown == seqs
