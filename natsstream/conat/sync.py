"""Keeps the arrays of a core stream equal to its JetStream stream: the feed, reads and questions.

Law: an error that no retry mends ends the sync; calls raise it. Whichever feed brings the messages,
the same rules hold them, and comparisons with the stream's info find what no feed brought.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Protocol

from natsstream.api.message import Message
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.conat.arrays import CALL_WAIT_S, Arrays
from natsstream.conat.attempts import retried
from natsstream.conat.blobs import SWEEP_EVERY_S, Blobs
from natsstream.conat.configuration import Configuration
from natsstream.conat.feed import Announcement
from natsstream.conat.headers import Blob, is_big
from natsstream.conat.naming import name_error
from natsstream.conat.ordered_feed import OrderedFeed
from natsstream.conat.reconcile import Doubt, InfoQuestion, Limits, Question, Reconciler
from natsstream.conat.record import Record
from natsstream.conat.republished import RepublishedFeed
from natsstream.errors import (
    NatsStreamError,
    RequestTimeoutError,
    StreamNotFoundError,
    StreamRecreatedError,
)
from natsstream.events import Connected
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream

# After a reconnect it takes a moment until all servers know of the subscription.
_LOOK_AGAIN_S = 2.0
_FETCH_MAX = 50_000
# The server's list of deleted sequences has about 7 bytes for each.
_DELETED_LISTED_MAX = 200_000
# Rounds of questions without progress before the sync waits between them.
_ROUNDS_MAX = 4
_ROUND_WAIT_S = 1.0
# A stream that is not there may be in the hands of servers that have just begun.
_GONE_AFTER_S = 2.0

_log = logging.getLogger("natsstream.conat")

OnFailure = Callable[[NatsStreamError], None]


class Opener(Protocol):
    """The stream of a core stream: its own one, or another one that is only read.

    Attributes:
        filters: The subjects to read; none is all.
    """

    filters: Sequence[str]

    @property
    def is_partial(self) -> bool:
        """True if some messages of the stream are not wanted."""
        ...

    async def open(self) -> Stream:
        """Return the stream."""
        ...

    def learn(self, config: StreamConfig) -> Limits:
        """Take note of the stream's configuration, and return its limits."""
        ...

    async def data(self, messages: list[Message]) -> list[Message]:
        """Return the messages that are data."""
        ...


class StreamSync:
    """Keeps the arrays of one core stream equal to the server's.

    Args:
        js: The JetStream context.
        opener: Its stream.
        arrays: Its arrays.
        on_failure: Called with the error that ends it.
        feed: Its republished feed; None if it has none.
        blobs: Its big values; None if it cannot have any.
        look_every: Seconds between two comparisons with the stream's info.

    Attributes:
        arrays: As given.
        reconciler: The rules that hold them.
        stream: The stream.
        config: Its configuration.
        conflates: True if an ordered consumer brings the messages, and not the republished feed.
        gone_hint: The way back if no stream captures its messages.
    """

    stream: Stream
    config: Configuration

    def __init__(
        self,
        js: JetStreamContext,
        opener: Opener,
        arrays: Arrays,
        on_failure: OnFailure,
        *,
        feed: RepublishedFeed | None,
        blobs: Blobs | None,
        look_every: float,
    ) -> None:
        self.arrays: Arrays = arrays
        self.reconciler: Reconciler = arrays.reconciler
        self.conflates: bool = feed is None
        self._js = js
        self._opener = opener
        self._on_failure = on_failure
        self._feed = feed
        self._ordered = OrderedFeed(
            arrays,
            lambda: self.stream,
            opener.filters,
            self._records,
            lambda: self.config.max_msgs,
        )
        self._blobs = blobs
        self._look_every_s = look_every
        self.gone_hint: str = (
            "its stream is gone, or has no leader now: `await stream.config()` makes it again at "
            f"once, the comparison every {look_every:g} s does so later; then publish again"
        )
        self._tasks: set[asyncio.Task[None]] = set()
        # The ordered feed, and the stream's life that it follows.
        self._tail: asyncio.Task[None] | None = None
        self._tail_life = 0
        self._is_loaded = False
        self._missing_since: float | None = None
        self._num_deleted = 0
        self._settling: list[asyncio.Future[None]] = []

    async def open(self) -> None:
        """Subscribe, open the stream and load it; retries as long as a call waits for a reconnect.

        Raises:
            NatsStreamError: No retry mends it, such as missing permission (403).
            ConnectionLostError: The server did not come back in time (503).
        """
        limit_s = self._js.bounded_reconnect_s
        if self._feed is not None:
            await retried(self._feed.open, limit_s)
            self._start(self._feed.follow())
        await retried(self._load, limit_s)
        self.arrays.check()
        self.arrays.begin()
        self._is_loaded = True
        self._choose_feed()
        self._start(self._repair())
        self._start(self._notice_breaks())
        if self._blobs is not None:
            self._start(self._sweep(self._blobs))

    async def close(self) -> None:
        """End everything; closing twice is fine."""
        self._end()
        if self._feed is not None:
            await self._feed.close()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

    # For the core stream.

    async def stored_ns(self, seq: int) -> int | None:
        """Wait until the arrays have passed a message; see `Arrays.stored_ns`."""
        return await self.arrays.stored_ns(seq)

    async def load(self, first_seq: int, *, emits: bool) -> None:
        """Load older messages down to a sequence, again if the stream is made anew meanwhile."""
        rules = self.reconciler
        while first_seq < rules.floor and not self.arrays.is_closed:
            question = rules.ask(first_seq, min(rules.floor - 1, rules.applied), is_older=True)
            await self._fetch(question, is_told=emits)

    async def announce(self, note: Announcement) -> None:
        """Apply a deletion or change that the server has confirmed, and tell the others."""
        if self._feed is not None:
            await self._feed.announce(note)

    async def settle(self) -> None:
        """Compare the arrays with the stream now; returns when nothing is in doubt.

        Raises:
            RequestTimeoutError: The server does not answer.
        """
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settling.append(settled)
        self.arrays.suspect(Doubt.DELETED)
        try:
            async with asyncio.timeout(CALL_WAIT_S):
                await settled
        except TimeoutError:
            raise RequestTimeoutError(
                f"the arrays were not compared with the stream in {CALL_WAIT_S:.0f} s",
                hint="call again when the server answers",
            ) from None
        finally:
            if settled in self._settling:
                self._settling.remove(settled)
        self.arrays.check()

    async def _notice_breaks(self) -> None:
        async with self._js.events() as events:
            async for event in events:
                if isinstance(event, Connected) and event.is_reconnect:
                    self.arrays.suspect(Doubt.DELETED)
                    loop = asyncio.get_running_loop()
                    loop.call_later(_LOOK_AGAIN_S, self.arrays.suspect, Doubt.COUNT)

    # Loading.

    async def _load(self) -> None:
        self.stream = await self._opener.open()
        await self._look()
        last_seq = self.stream.cached.state.last_seq
        rules = self.reconciler
        first = max(rules.applied + 1, rules.floor, self.stream.cached.state.first_seq)
        if first <= last_seq:
            filters = self._opener.filters
            found = self.stream.read(
                first_seq=first, last_seq=last_seq, filters=filters, on_loss="report"
            )
            async for run in found.runs():
                await self._fill(await self._opener.data(run))
        self.arrays.take(rules.filled(last_seq), is_told=False)
        self.arrays.take(rules.tick(self.arrays.now_ns()), is_told=False)

    async def _fill(self, run: list[Message]) -> None:
        headers = [message.header_block for message in run]
        if self._blobs is not None and is_big(b"".join(headers)):
            records = await self._records(run)
            if records:
                seqs, times_ns, subjects, headers, data = zip(*records, strict=True)
                self.reconciler.fill(seqs, times_ns, subjects, headers, data)
        elif run:
            self.reconciler.fill(
                [message.sequence for message in run],
                [message.time_ns for message in run],
                self.arrays.names.key_subjects(message.subject for message in run),
                headers,
                [message.data for message in run],
            )

    # Questions.

    async def _repair(self) -> None:
        """Ask the server whatever the arrays lack."""
        rules = self.reconciler
        while True:
            try:
                async with asyncio.timeout(self._look_every_s):
                    await self.arrays.wake.wait()
            except TimeoutError:
                self.arrays.suspect(Doubt.COUNT)
            self.arrays.wake.clear()
            rounds = 0
            while rules.doubt or rules.is_behind:
                before = rules.applied
                await retried(self._step)
                rounds = 0 if rules.applied > before else rounds + 1
                if rounds > _ROUNDS_MAX:
                    await asyncio.sleep(_ROUND_WAIT_S)
            _release(self._settling)
            self._settling.clear()

    async def _step(self) -> None:
        """Ask the next question."""
        rules = self.reconciler
        span = rules.missing
        try:
            if span is not None:
                last_seq = min(span[1], span[0] + _FETCH_MAX - 1)
                missed = await self._fetch(rules.ask(span[0], last_seq))
                if self._feed is not None:
                    await self._feed.check(missed)
            elif rules.doubt is Doubt.ALL:
                await self._fetch(rules.ask(rules.floor, rules.applied))
            else:
                await self._look()
        except (StreamNotFoundError, StreamRecreatedError):
            await self._reopen()

    async def _reopen(self) -> None:
        """Find the stream again; what one holds that stays away is gone."""
        try:
            self.stream = await self._opener.open()
        except StreamNotFoundError:
            now = asyncio.get_running_loop().time()
            self._missing_since = self._missing_since or now
            if now - self._missing_since >= _GONE_AFTER_S and self.reconciler.applied:
                self.arrays.take(self.reconciler.reset())
            raise
        self._missing_since = None
        self.arrays.suspect(Doubt.DELETED)

    async def _look(self) -> None:
        lists = self.reconciler.doubt >= Doubt.DELETED
        if lists and self._num_deleted > _DELETED_LISTED_MAX:
            self.reconciler.doubt = Doubt.ALL
            return
        began, self.arrays.suspected = time.time_ns(), Doubt.NONE
        question = self.reconciler.ask_info()
        info = await self.stream.info(deleted_details=lists)
        self._learn(question, info, (began + time.time_ns()) // 2)
        if self.arrays.suspected:
            self.reconciler.suspect(self.arrays.suspected)

    def _learn(self, question: InfoQuestion, info: StreamInfo, middle_ns: int) -> None:
        if info.time_ns:
            self.arrays.clock_offset_ns = info.time_ns - middle_ns
        self._num_deleted = info.state.num_deleted
        self.stream.cached = info
        self.config = Configuration.from_stream(info.config)
        self.reconciler.set_limits(self._opener.learn(info.config))
        self.reconciler.is_partial = self._opener.is_partial
        self.arrays.take(self.reconciler.info(question, info, time.monotonic_ns()))
        self._choose_feed()

    def _choose_feed(self) -> None:
        """Follow the stream by an ordered consumer if the server does not republish it."""
        if self._feed is not None:
            self._feed.learn(self.stream.cached.config)
            self.conflates = not self._feed.is_trusted
        life, tail = self.reconciler.life, self._tail
        if tail is not None and (not self.conflates or life != self._tail_life):
            tail.cancel()
            self._tail = None
        if self.conflates and self._tail is None and self._is_loaded:
            self._tail, self._tail_life = self._start(self._ordered.follow()), life

    async def _fetch(self, question: Question, *, is_told: bool = True) -> list[Record]:
        try:
            records = await self._read(question.first_seq, question.last_seq)
        except BaseException:
            self.reconciler.give_up(question)
            raise
        self.arrays.take(self.reconciler.fetched(question, records), is_told=is_told)
        return records

    async def _read(self, first_seq: int, last_seq: int) -> list[Record]:
        """Return what the stream holds of a range; its leader is asked for what is missing."""
        if first_seq > last_seq:
            return []
        filters = self._opener.filters
        subject = filters[0] if len(filters) == 1 else ">"
        found = await self.stream.get(first_seq, next_by_subject=subject)
        if found is None or found.sequence > last_seq:
            return []  # One question certifies that the whole range is gone.
        if first_seq == last_seq and len(filters) < 2:
            return await self._records([found])
        span = self.stream.read(
            first_seq=found.sequence,
            last_seq=last_seq,
            filters=filters,
            created_ns=self.reconciler.created_ns,
            on_loss="report",
        )
        return await self._records([message async for message in span])

    async def _records(self, messages: list[Message]) -> list[Record]:
        """Return messages as records, with their big values and without what is no data."""
        data = await self._opener.data(messages)
        records = [self.arrays.record(message) for message in data]
        return records if self._blobs is None else await self._blobs.whole(records)

    # Big values.

    async def _sweep(self, blobs: Blobs) -> None:
        """Remove big values that no message names, now and then."""

        async def used() -> list[Blob]:
            await self.settle()
            return blobs.of(self.reconciler.log.records())

        while True:
            if self.reconciler.is_whole:
                await blobs.sweep(used)
            await asyncio.sleep(SWEEP_EVERY_S)

    # Tasks.

    def _start(self, job: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(job)
        task.add_done_callback(self._on_task_end)
        self._tasks.add(task)
        return task

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None or self.arrays.is_closed:
            return
        if not isinstance(error, NatsStreamError):
            _log.error("the sync of core stream %s failed", self.arrays.names.path, exc_info=error)
            error = NatsStreamError("the sync of the core stream failed", detail=repr(error))
        name_error(error, self.arrays.names)
        self.arrays.error = error
        self._end()
        self._on_failure(error)

    def _end(self) -> None:
        """End the tasks and all waits."""
        self.arrays.end()
        for task in self._tasks:
            task.cancel()
        _release(self._settling)


def _release(waiters: Iterable[asyncio.Future[None]]) -> None:
    """Let calls go on that wait."""
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
