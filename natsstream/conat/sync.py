"""Keeps the arrays of a core stream equal to its JetStream stream: feed, reads, and questions.

Law: an edit is told after the arrays have it, and before anything else is awaited. An error that no
retry mends ends the sync; calls raise it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TypeVar

from natsstream.api.message import Message
from natsstream.api.stream_info import StreamInfo
from natsstream.conat.codes import conat_code
from natsstream.conat.configuration import Configuration
from natsstream.conat.feed import Announcement, stored_copy
from natsstream.conat.names import StreamNames
from natsstream.conat.reconcile import Doubt, Edit, Limits, Reconciler
from natsstream.conat.record import Record
from natsstream.core.message import CoreMessage
from natsstream.core.subscription import CoreSubscription
from natsstream.errors import (
    NatsStreamError,
    ProtocolError,
    SlowReaderError,
    StreamNotFoundError,
    StreamRecreatedError,
    TransportError,
)
from natsstream.events import Connected
from natsstream.read.recovery import Recovery
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream
from natsstream.units import NS_PER_MS, NS_PER_SECOND

T = TypeVar("T")

# A feed that lost its last message shows no hole: the stream is asked from time to time.
LOOK_EVERY_S = 30.0
# After a reconnect it takes a moment until all servers know of the subscription.
_LOOK_AGAIN_S = 2.0
# The copy of an own message comes before its ack, unless it was lost.
_COPY_WAIT_S = 1.0
_FETCH_MAX = 50_000
# The server's list of deleted sequences has about 7 bytes for each.
_DELETED_LISTED_MAX = 200_000
# As many as one read of the socket may bring, or the feed falls behind a busy publisher.
_TURN_MESSAGES = 8_192
# Rounds of questions without an end before the sync waits between them.
_ROUNDS_MAX = 4
_ROUND_WAIT_S = 5.0
_TIMES_KEPT = 4_096

OpenStream = Callable[[], Awaitable[Stream]]
OnEdit = Callable[[Edit], None]


class StreamSync:
    """The arrays of one core stream, kept equal to the server's.

    Args:
        js: The JetStream context.
        names: The core stream's names.
        open_stream: Returns the stream, and creates it if it is missing.
        on_edit: Called with each edit after the first load; must not wait and must not raise.
        start_seq: The first sequence to load; None is the first.

    Attributes:
        reconciler: The arrays.
        stream: The stream.
        config: Its configuration.
        error: The error that has ended it.
    """

    stream: Stream
    config: Configuration

    def __init__(
        self,
        js: JetStreamContext,
        names: StreamNames,
        open_stream: OpenStream,
        on_edit: OnEdit,
        *,
        start_seq: int | None = None,
    ) -> None:
        self.reconciler: Reconciler = Reconciler(start_seq=start_seq or 1)
        self.error: NatsStreamError | None = None
        self._js = js
        self._names = names
        self._open_stream = open_stream
        self._on_edit = on_edit
        self._is_loaded = False
        self._subscription: CoreSubscription | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._clock_offset_ns = 0
        self._num_deleted = 0
        self._waiters: dict[asyncio.Future[None], int] = {}
        # When the newest messages were stored, by sequence: acks do not tell.
        self._times_ns: dict[int, int] = {}

    async def open(self) -> None:
        """Subscribe, open the stream and load it; retries until the server answers.

        Raises:
            NatsStreamError: No retry mends it, such as missing permission (403).
        """
        self._subscription = await retried(self._subscribe)
        self._start(self._follow(self._subscription))
        await retried(self._load)
        self._is_loaded = True
        self._start(self._repair())
        self._start(self._notice_breaks())

    async def close(self) -> None:
        """End everything; closing twice is fine."""
        for task in self._tasks:
            task.cancel()
        if self._subscription is not None:
            await self._subscription.close()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._release_waiters()

    async def _subscribe(self) -> CoreSubscription:
        return await self._js.core.subscribe(self._names.feed_filter).open()

    # For the core stream.

    def now_ns(self) -> int:
        """Return the time by the server's clock, in Unix nanoseconds."""
        return time.time_ns() + self._clock_offset_ns

    def check(self) -> None:
        """Raise the error that has ended it."""
        if self.error is not None:
            raise self.error.with_traceback(None)

    async def applied(self, seq: int) -> int | None:
        """Wait until the arrays have passed a sequence; return when it was stored, if known.

        Returns:
            Unix nanoseconds, or None if the message was not seen, as an older one.
        """
        if seq > self.reconciler.applied:
            await self._wait_for(seq, _COPY_WAIT_S)
        if seq > self.reconciler.applied:
            self.reconciler.expect(seq)
            self._wake.set()
            await self._wait_for(seq, None)
        self.check()
        held = self.reconciler.log.find(seq)
        return self._times_ns.get(seq) if held is None else held.time_ns

    async def load(self, first_seq: int, *, emits: bool) -> None:
        """Load older messages down to a sequence."""
        question = self.reconciler.ask(first_seq, self.reconciler.floor - 1)
        try:
            records = await self._read(question.first_seq, question.last_seq)
        except BaseException:
            self.reconciler.give_up(question)
            raise
        self._take(self.reconciler.fetched(question, records), is_told=emits)

    async def announce(self, note: Announcement) -> None:
        """Apply a deletion or change that the server has confirmed, and tell the others."""
        self._take_note(note)
        with suppress(TransportError):  # The others find out by comparing with the stream.
            await self._js.core.publish(self._names.control, note.to_json())

    async def settle(self) -> None:
        """Compare the arrays with the stream now, until nothing is in doubt."""
        self.reconciler.doubt = max(self.reconciler.doubt, Doubt.DELETED)
        while self.reconciler.doubt or self.reconciler.missing:
            await retried(self._step)
            self._arrive()

    # Loading.

    async def _load(self) -> None:
        self.stream = await self._open_stream()
        await self._look()
        last_seq = self.stream.cached.state.last_seq
        rules = self.reconciler
        first = max(rules.applied + 1, self.stream.cached.state.first_seq)
        if first <= last_seq:
            found = self.stream.read(first_seq=first, last_seq=last_seq, on_loss="report")
            async for run in found.runs():
                self._fill(run)
        self._take(rules.filled(last_seq), is_told=False)
        self._take(rules.tick(self.now_ns()), is_told=False)

    def _fill(self, run: list[Message]) -> None:
        subjects = [message.subject for message in run]
        is_keyed = self._names.is_keyed
        self.reconciler.fill(
            [message.sequence for message in run],
            [message.time_ns for message in run],
            [subject if is_keyed(subject) else "" for subject in subjects],
            [message.headers.source for message in run],
            [message.data for message in run],
        )

    # The feed.

    async def _follow(self, subscription: CoreSubscription) -> None:
        while True:
            try:
                turn = 0
                async for message in subscription:
                    self._take_message(message)
                    turn += 1
                    if turn % _TURN_MESSAGES == 0:
                        await asyncio.sleep(0)
                return
            except SlowReaderError:
                self.reconciler.interrupted()
                self._wake.set()

    def _take_message(self, message: CoreMessage) -> None:
        try:
            if message.subject == self._names.control:
                self._take_note(Announcement.from_json(message.data))
                return
            block = message.headers.source
            copy = stored_copy(self._names, message.subject, block, message.data)
        except ProtocolError:
            # Another client wrote to the feed; the stream itself says what is true.
            self.reconciler.doubt = max(self.reconciler.doubt, Doubt.COUNT)
            self._wake.set()
            return
        if copy is None:
            return
        self._note_time(copy.record)
        self._take(self.reconciler.message(copy.record, copy.last_subject_seq))
        if self.reconciler.missing:
            self._wake.set()

    def _take_note(self, note: Announcement) -> None:
        for first_seq, last_seq in note.deleted:
            self._take(self.reconciler.deleted(first_seq, last_seq))
        if note.purged:
            self._take(self.reconciler.purged(note.purged))
        if note.is_config_changed:
            self.reconciler.interrupted()
            self._wake.set()

    async def _notice_breaks(self) -> None:
        async with self._js.events() as events:
            async for event in events:
                if isinstance(event, Connected) and event.is_reconnect:
                    self.reconciler.interrupted()
                    self._wake.set()
                    loop = asyncio.get_running_loop()
                    loop.call_later(_LOOK_AGAIN_S, self._look_later)

    def _look_later(self) -> None:
        self.reconciler.doubt = max(self.reconciler.doubt, Doubt.COUNT)
        self._wake.set()

    # Questions.

    async def _repair(self) -> None:
        """Ask the server whatever the arrays lack, and let messages expire."""
        loop = asyncio.get_running_loop()
        rules, next_look = self.reconciler, loop.time() + LOOK_EVERY_S
        while True:
            try:
                async with asyncio.timeout(self._pause_s(next_look - loop.time())):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            if loop.time() >= next_look:
                rules.doubt = max(rules.doubt, Doubt.COUNT)
            self._take(rules.tick(self.now_ns()))
            rounds = 0
            while rules.doubt or rules.missing:
                await retried(self._step)
                next_look = loop.time() + LOOK_EVERY_S
                rounds += 1
                if rounds > _ROUNDS_MAX:
                    await asyncio.sleep(_ROUND_WAIT_S)
            self._arrive()

    def _pause_s(self, look_s: float) -> float:
        expiry_ns = self.reconciler.next_expiry_ns
        if expiry_ns is None:
            return max(look_s, 0)
        return max(min(look_s, (expiry_ns - self.now_ns()) / NS_PER_SECOND), 0)

    async def _step(self) -> None:
        """Ask the next question."""
        rules = self.reconciler
        span = rules.missing
        try:
            if rules.doubt is Doubt.ALL and span is None:
                await self._fetch(rules.floor, rules.applied)
            elif rules.doubt not in (Doubt.NONE, Doubt.ALL):
                await self._look()
            elif span is not None:
                await self._fetch(span[0], min(span[1], span[0] + _FETCH_MAX - 1))
        except (StreamNotFoundError, StreamRecreatedError):
            self.stream = await self._open_stream()
            rules.interrupted()
        self._arrive()

    async def _look(self) -> None:
        lists = self.reconciler.doubt >= Doubt.DELETED
        if lists and self._num_deleted > _DELETED_LISTED_MAX:
            self.reconciler.doubt = Doubt.ALL
            return
        began = time.time_ns()
        info = await self.stream.info(deleted_details=lists)
        self._learn(info, (began + time.time_ns()) // 2)

    def _learn(self, info: StreamInfo, middle_ns: int) -> None:
        if info.time_ns:
            self._clock_offset_ns = info.time_ns - middle_ns
        self._num_deleted = info.state.num_deleted
        self.stream.cached = info
        self.config = config = Configuration.from_stream(info.config)
        evicts = config.discard_policy == "old"
        max_age_ns = config.max_age * NS_PER_MS
        self.reconciler.set_limits(Limits(config.max_msgs if evicts else -1, max_age_ns))
        self._take(self.reconciler.info(info, time.monotonic_ns()))

    async def _fetch(self, first_seq: int, last_seq: int) -> None:
        question = self.reconciler.ask(first_seq, last_seq)
        try:
            records = await self._read(first_seq, last_seq)
        except BaseException:
            self.reconciler.give_up(question)
            raise
        self._take(self.reconciler.fetched(question, records))

    async def _read(self, first_seq: int, last_seq: int) -> list[Record]:
        """Return what the stream holds of a range; its leader is asked for what is missing."""
        if first_seq > last_seq:
            return []
        found = await self.stream.get(first_seq, next_by_subject=">")
        if found is None or found.sequence > last_seq:
            return []  # One question certifies that the whole range is gone.
        if first_seq == last_seq:
            return [self._record(found)]
        span = self.stream.read(
            first_seq=found.sequence,
            last_seq=last_seq,
            created_ns=self.reconciler.created_ns,
            on_loss="report",
        )
        return [self._record(message) async for message in span]

    def _record(self, message: Message) -> Record:
        subject = message.subject
        key_subject = subject if self._names.is_keyed(subject) else ""
        block = message.headers.source
        return Record(message.sequence, message.time_ns, key_subject, block, message.data)

    # Edits and waiters.

    def _take(self, edits: Iterable[Edit], *, is_told: bool = True) -> None:
        for edit in edits:
            if is_told and self._is_loaded:
                self._on_edit(edit)
        self._arrive()

    def _note_time(self, record: Record) -> None:
        self._times_ns[record.seq] = record.time_ns
        if len(self._times_ns) > _TIMES_KEPT:
            del self._times_ns[next(iter(self._times_ns))]

    async def _wait_for(self, seq: int, seconds: float | None) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = seq
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            pass
        finally:
            del self._waiters[waiter]

    def _arrive(self) -> None:
        if self._waiters:
            for waiter, seq in self._waiters.items():
                if seq <= self.reconciler.applied and not waiter.done():
                    waiter.set_result(None)

    def _release_waiters(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    # Tasks.

    def _start(self, job: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(job)
        task.add_done_callback(self._on_end)
        self._tasks.append(task)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, NatsStreamError):
            self.error = self.error or error
        elif error is not None:
            raise error
        self._release_waiters()


async def retried(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of an attempt, repeated while its error may pass.

    Raises:
        NatsStreamError: The error cannot pass: code 403, 429, or a wrong argument.
    """
    recovery = Recovery[str](math.inf)
    while True:
        try:
            return await attempt()
        except NatsStreamError as error:
            may_pass = error.retryable or isinstance(error, TransportError)
            if not may_pass or conat_code(error) in (403, 429):
                raise
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(recovery.next_wait(now) or 0.0)
