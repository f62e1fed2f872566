"""The ordered feed of a core stream: an ordered consumer, where the server republishes nothing.

Law: a consumer delivers what is still stored when it comes to it. A sequence that it passed over is
gone, and values that were overwritten sooner are never seen: the next one stands for them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from natsstream.api.message import Message
from natsstream.conat.arrays import Arrays
from natsstream.conat.attempts import retried
from natsstream.conat.reconcile import Doubt
from natsstream.conat.record import Record
from natsstream.errors import NatsStreamError
from natsstream.streams.stream import Stream

# Messages beyond the stream's limit that wait for the next comparison, or as many as the limit.
_SURPLUS = 1_000


class OrderedFeed:
    """Brings the arrays what an ordered consumer delivers.

    Args:
        arrays: The arrays.
        stream: Returns the stream.
        filters: The subjects to read; none is all.
        read: Makes records of the messages that are data.
        max_msgs: Returns how many messages the stream keeps; -1 for no limit.
    """

    def __init__(
        self,
        arrays: Arrays,
        stream: Callable[[], Stream],
        filters: Sequence[str],
        read: Callable[[list[Message]], Awaitable[list[Record]]],
        max_msgs: Callable[[], int],
    ) -> None:
        self._arrays = arrays
        self._stream = stream
        self._filters = filters
        self._read = read
        self._max_msgs = max_msgs

    async def follow(self) -> None:
        """Apply what comes behind the arrays, until it is cancelled.

        Raises:
            NatsStreamError: No retry mends it, such as missing permission (403).
        """
        await retried(self._follow)

    async def _follow(self) -> None:
        rules = self._arrays.reconciler
        tail = self._stream().ordered(
            first_seq=max(rules.applied + 1, rules.floor),
            filters=self._filters,
            created_ns=rules.created_ns,
            on_loss="report",
        )
        try:
            async with tail:
                async for batch in tail.batches():
                    await self._take(batch)
        except NatsStreamError:
            self._arrays.suspect(Doubt.DELETED)  # The stream may be gone, or another one.
            raise

    async def _take(self, batch: list[Message]) -> None:
        arrays, rules = self._arrays, self._arrays.reconciler
        life = rules.life
        new = [each for each in batch if each.sequence > rules.applied]
        records = await self._read(new) if new else []
        if not new or life != rules.life:
            return
        for each in records:
            arrays.note_time(each)
        # Only what is behind the arrays: no deletion of that is forgotten meanwhile.
        question = rules.ask(rules.applied + 1, new[-1].sequence)
        arrays.take(rules.fetched(question, records))
        limit = self._max_msgs()
        if 0 < limit < len(rules.log) - max(limit, _SURPLUS):
            arrays.suspect(Doubt.COUNT)
