"""Empties a small dead-letter stream now and then, and takes down all that was in it.

Law: a letter is dropped only after it was taken down, and by nobody else: in the end it is known
which letters were ever stored.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from dataclasses import dataclass

from natsstream import JetStream, NatsStreamError
from scripts.chaos_runs.letters import HEADER, MixedUpError, read_letter
from scripts.chaos_runs.load import Load

# Between two visits the stream is full for a while.
_PAUSE_S = (1.0, 6.0)
_LAST_PAUSE_S = 0.2
_VISIT_S = 60.0
_WORDS = "$JS.EVENT.ADVISORY.>"


@dataclass(frozen=True, slots=True)
class Found:
    """One letter as it lay in its stream.

    Attributes:
        sequence: Of its message.
        reason: Why it is dead.
        identity: What the message in it says that it is; 0 where it is not whole.
    """

    sequence: int
    reason: str
    identity: int


async def look_at_letters(js: JetStream, queue: str, found: dict[int, Found]) -> None:
    """Take down the letters of a dead-letter stream by their numbers."""
    async with aclosing((await js.dead_letters.open(queue)).list()) as letters:
        async for letter in letters:
            message, identity = letter.message, 0
            if message is not None and letter.is_copy:
                try:
                    mark = message.headers.get(HEADER)
                    identity = read_letter(message.subject, mark, message.data)
                except MixedUpError:
                    pass
            found[letter.number] = Found(letter.sequence, letter.reason, identity)


class Janitor:
    """Empties one dead-letter stream.

    Args:
        load: What all workers share.
        js: Its connection.
        queue: The dead-letter stream.

    Attributes:
        name: What findings call it.
        found: The letters that it has seen, by number.
    """

    def __init__(self, load: Load, js: JetStream, queue: str) -> None:
        self.name: str = f"janitor of {queue}"
        self.found: dict[int, Found] = {}
        self._load = load
        self._js = js
        self._queue = queue
        self._draw: random.Random = load.draw(self.name)

    async def run(self) -> None:
        """Empty it until reading is over; the end of a run cancels it."""
        load = self._load
        while not load.reading_is_over.is_set():
            await load.pause(self._draw.uniform(*_PAUSE_S))
            try:
                async with asyncio.timeout(_VISIT_S):
                    await self._visit()
            except (NatsStreamError, TimeoutError) as error:
                # A visit that a fault holds up is made again.
                if isinstance(error, NatsStreamError):
                    load.note(self.name, error)
            load.counts["visits of the janitor"] += 1
            if load.writing_is_over.is_set():
                await asyncio.sleep(_LAST_PAUSE_S)

    async def _visit(self) -> None:
        lying: dict[int, Found] = {}
        await look_at_letters(self._js, self._queue, lying)
        self.found |= lying
        queue = await self._js.dead_letters.open(self._queue)
        for number in lying:
            letter = await queue.get(number)
            if letter is not None:
                await queue.drop(letter)
        # What the server tells of letters that are gone takes room as well.
        await (await self._js.streams.get(self._queue)).purge(subject=_WORDS)
