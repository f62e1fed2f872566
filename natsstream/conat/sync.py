"""Keeps the arrays of a core stream equal to its JetStream stream: feed, reads, and questions.

Law: an edit is told after the arrays have it, and before anything else is awaited. An error that no
retry mends ends the sync; calls raise it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import TypeVar

from natsstream.api.message import Message
from natsstream.api.stream_info import StreamInfo
from natsstream.conat.blobs import Blobs
from natsstream.conat.codes import conat_code
from natsstream.conat.configuration import Configuration
from natsstream.conat.feed import Announcement, FeedMessage, stored_copy
from natsstream.conat.headers import Blob, is_big
from natsstream.conat.names import StreamNames
from natsstream.conat.reconcile import Doubt, Edit, Limits, Question, Reconciler
from natsstream.conat.record import Record
from natsstream.core.message import CoreMessage
from natsstream.core.subscription import CoreSubscription
from natsstream.errors import (
    ConnectionClosedError,
    NatsStreamError,
    ProtocolError,
    RequestTimeoutError,
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
# Rounds of questions without progress before the sync waits between them.
_ROUNDS_MAX = 4
_ROUND_WAIT_S = 1.0
# A call waits this long for what the server has confirmed, as Conat's requests do.
_CALL_WAIT_S = 30.0
_TIMES_KEPT = 4_096
# Messages that the server evicts or expires leave the chunks of big values behind.
_SWEEP_EVERY_S = 3_600.0

_log = logging.getLogger(__name__)

OpenStream = Callable[[], Awaitable[Stream]]
OnEdit = Callable[[Edit], None]
OnFailure = Callable[[NatsStreamError], None]

# A stream that was deleted is created again by the next attempt.
_PASSING = (TransportError, StreamNotFoundError, StreamRecreatedError)


class StreamSync:
    """The arrays of one core stream, kept equal to the server's.

    Args:
        js: The JetStream context.
        names: The core stream's names.
        blobs: Its big values.
        open_stream: Returns the stream, and creates it if it is missing.
        on_edit: Called with each edit after the first load; must not wait and must not raise.
        on_failure: Called with the error that ends it.
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
        blobs: Blobs,
        open_stream: OpenStream,
        on_edit: OnEdit,
        on_failure: OnFailure,
        *,
        start_seq: int | None = None,
    ) -> None:
        self.reconciler: Reconciler = Reconciler(start_seq=start_seq or 1)
        self.error: NatsStreamError | None = None
        self._js = js
        self._names = names
        self._blobs = blobs
        self._open_stream = open_stream
        self._on_edit = on_edit
        self._on_failure = on_failure
        self._is_loaded = False
        self._is_closed = False
        self._subscription: CoreSubscription | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()
        self._clock_offset_ns = 0
        self._num_deleted = 0
        # The worst that came up since the stream's info was asked for, which cannot settle it.
        self._suspected = Doubt.NONE
        self._expiry: asyncio.TimerHandle | None = None
        # Calls that wait for a sequence, each with the stream's life in which it is stored.
        self._waiters: dict[asyncio.Future[None], tuple[int, int]] = {}
        self._settling: list[asyncio.Future[None]] = []
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
        self.check()
        self._is_loaded = True
        self._start(self._repair())
        self._start(self._notice_breaks())
        self._start(self._sweep())

    async def close(self) -> None:
        """End everything; closing twice is fine."""
        self._end()
        if self._subscription is not None:
            await self._subscription.close()
        if self._tasks:
            await asyncio.wait(self._tasks)

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

    async def reach(self, seq: int) -> None:
        """Wait until the arrays have passed a stored message.

        Raises:
            RequestTimeoutError: They have not, because the server no longer answers.
        """
        rules = self.reconciler
        life = rules.life
        if seq > rules.applied:
            await self._wait_for(seq, life, _COPY_WAIT_S)
        if seq > rules.applied and life == rules.life and not self._is_closed:
            rules.expect(seq)
            self._wake.set()
            await self._wait_for(seq, life, _CALL_WAIT_S)
        self.check()
        if seq > rules.applied and life == rules.life and not self._is_closed:
            raise RequestTimeoutError(
                f"message {seq} is stored, and was not received in {_CALL_WAIT_S:.0f} s",
                hint="the arrays get it when the server answers again",
            )

    async def stored_ns(self, seq: int) -> int | None:
        """Wait as `reach` does; return when the message was stored, in Unix nanoseconds.

        None is for a message that was never seen.
        """
        await self.reach(seq)
        held = self.reconciler.log.find(seq)
        return self._times_ns.get(seq) if held is None else held.time_ns

    async def load(self, first_seq: int, *, emits: bool) -> None:
        """Load older messages down to a sequence, again if the stream is made anew meanwhile."""
        rules = self.reconciler
        while first_seq < rules.floor and not self._is_closed:
            question = rules.ask(first_seq, min(rules.floor - 1, rules.applied), is_older=True)
            await self._fetch(question, is_told=emits)

    async def announce(self, note: Announcement) -> None:
        """Apply a deletion or change that the server has confirmed, and tell the others."""
        self._take_note(note)
        with suppress(TransportError):  # The others find out by comparing with the stream.
            await self._js.core.publish(self._names.control, note.to_json())

    async def settle(self) -> None:
        """Compare the arrays with the stream now; returns when nothing is in doubt.

        Raises:
            RequestTimeoutError: The server does not answer.
        """
        settled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._settling.append(settled)
        self._suspect(Doubt.DELETED)
        try:
            async with asyncio.timeout(_CALL_WAIT_S):
                await settled
        except TimeoutError:
            raise RequestTimeoutError(
                f"the arrays were not compared with the stream in {_CALL_WAIT_S:.0f} s",
                hint="call again when the server answers",
            ) from None
        finally:
            if settled in self._settling:
                self._settling.remove(settled)
        self.check()

    # Loading.

    async def _load(self) -> None:
        self.stream = await self._open_stream()
        await self._look()
        last_seq = self.stream.cached.state.last_seq
        rules = self.reconciler
        first = max(rules.applied + 1, rules.floor, self.stream.cached.state.first_seq)
        if first <= last_seq:
            found = self.stream.read(first_seq=first, last_seq=last_seq, on_loss="report")
            async for run in found.runs():
                await self._fill(run)
        self._take(rules.filled(last_seq), is_told=False)
        self._take(rules.tick(self.now_ns()), is_told=False)

    async def _fill(self, run: list[Message]) -> None:
        # Most messages share their headers and subject: each is looked at once.
        headers = [message.headers.source for message in run]
        if any(map(is_big, set(headers))):
            records = await self._blobs.whole([self._record(message) for message in run])
            if records:
                seqs, times_ns, subjects, headers, data = zip(*records, strict=True)
                self.reconciler.fill(seqs, times_ns, subjects, headers, data)
            return
        subjects = [message.subject for message in run]
        keyed = set(filter(self._names.is_keyed, set(subjects)))
        self.reconciler.fill(
            [message.sequence for message in run],
            [message.time_ns for message in run],
            [subject if subject in keyed else "" for subject in subjects],
            headers,
            [message.data for message in run],
        )

    # The feed.

    async def _follow(self, subscription: CoreSubscription) -> None:
        while True:
            try:
                turn = 0
                async for message in subscription:
                    big = self._take_message(message)
                    if big is not None:
                        await self._take_big(big)
                    if message.reply and message.subject == self._names.control:
                        with suppress(TransportError):  # It asks if a client is here.
                            await message.respond()
                    turn += 1
                    if turn % _TURN_MESSAGES == 0:
                        await asyncio.sleep(0)
            except SlowReaderError:
                self._suspect(Doubt.DELETED)
            else:
                raise ConnectionClosedError("the feed has ended", hint="connect again")

    def _take_message(self, message: CoreMessage) -> FeedMessage | None:
        """Apply a message of the feed; one with a big value is returned, as it must wait."""
        try:
            if message.subject == self._names.control:
                self._take_note(Announcement.from_json(message.data))
                return None
            block = message.headers.source
            copy = stored_copy(self._names, message.subject, block, message.data)
        except ProtocolError:
            # Another client wrote to the feed; the stream itself says what is true.
            self._suspect(Doubt.COUNT)
            return None
        if copy is None:
            return None
        self._note_time(copy.record)
        if is_big(copy.record.headers):
            return copy
        self._take(self.reconciler.message(copy.record, copy.last_subject_seq))
        return None

    async def _take_big(self, copy: FeedMessage) -> None:
        """Fetch a big value before its message is applied; later messages wait for it."""
        rules, life = self.reconciler, self.reconciler.life
        found = await retried(lambda: self._blobs.whole([copy.record]))
        if life != rules.life:
            self._suspect(Doubt.COUNT)
        elif found:
            self._take(rules.message(found[0], copy.last_subject_seq))
        else:
            # It was overwritten or deleted meanwhile: a read certifies that.
            rules.expect(copy.record.seq)
            self._wake.set()

    def _take_note(self, note: Announcement) -> None:
        for first_seq, last_seq in note.deleted:
            self._take(self.reconciler.deleted(first_seq, last_seq))
        if note.purged:
            self._take(self.reconciler.purged(note.purged))
        if note.is_config_changed:
            self._suspect(Doubt.DELETED)

    async def _notice_breaks(self) -> None:
        async with self._js.events() as events:
            async for event in events:
                if isinstance(event, Connected) and event.is_reconnect:
                    self._suspect(Doubt.DELETED)
                    loop = asyncio.get_running_loop()
                    loop.call_later(_LOOK_AGAIN_S, self._suspect, Doubt.COUNT)

    def _suspect(self, doubt: Doubt) -> None:
        """Compare with the stream, by an answer that is asked for from now on."""
        self._suspected = max(self._suspected, doubt)
        self.reconciler.suspect(doubt)
        self._wake.set()

    # Questions.

    async def _repair(self) -> None:
        """Ask the server whatever the arrays lack."""
        rules = self.reconciler
        while True:
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._wake.wait()
            except TimeoutError:
                self._suspect(Doubt.COUNT)
            self._wake.clear()
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
                await self._fetch(rules.ask(span[0], min(span[1], span[0] + _FETCH_MAX - 1)))
            elif rules.doubt is Doubt.ALL:
                await self._fetch(rules.ask(rules.floor, rules.applied))
            else:
                await self._look()
        except (StreamNotFoundError, StreamRecreatedError):
            self.stream = await self._open_stream()
            self._suspect(Doubt.DELETED)

    async def _look(self) -> None:
        lists = self.reconciler.doubt >= Doubt.DELETED
        if lists and self._num_deleted > _DELETED_LISTED_MAX:
            self.reconciler.doubt = Doubt.ALL
            return
        began, self._suspected = time.time_ns(), Doubt.NONE
        info = await self.stream.info(deleted_details=lists)
        self._learn(info, (began + time.time_ns()) // 2)
        if self._suspected:
            self.reconciler.suspect(self._suspected)

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

    async def _fetch(self, question: Question, *, is_told: bool = True) -> None:
        try:
            records = await self._read(question.first_seq, question.last_seq)
        except BaseException:
            self.reconciler.give_up(question)
            raise
        self._take(self.reconciler.fetched(question, records), is_told=is_told)

    async def _read(self, first_seq: int, last_seq: int) -> list[Record]:
        """Return what the stream holds of a range; its leader is asked for what is missing."""
        if first_seq > last_seq:
            return []
        found = await self.stream.get(first_seq, next_by_subject=">")
        if found is None or found.sequence > last_seq:
            return []  # One question certifies that the whole range is gone.
        if first_seq == last_seq:
            return await self._blobs.whole([self._record(found)])
        span = self.stream.read(
            first_seq=found.sequence,
            last_seq=last_seq,
            created_ns=self.reconciler.created_ns,
            on_loss="report",
        )
        return await self._blobs.whole([self._record(message) async for message in span])

    def _record(self, message: Message) -> Record:
        subject = message.subject
        key_subject = subject if self._names.is_keyed(subject) else ""
        block = message.headers.source
        if is_big(block):
            held = self.reconciler.log.find(message.sequence)
            if held is not None and held.time_ns == message.time_ns:
                return held  # Its bytes need not be read again.
        return Record(message.sequence, message.time_ns, key_subject, block, message.data)

    # Big values.

    async def _sweep(self) -> None:
        """Remove big values that no message names, now and then."""
        while True:
            if self.reconciler.is_whole:
                await self._blobs.sweep(self._used_blobs)
            await asyncio.sleep(_SWEEP_EVERY_S)

    async def _used_blobs(self) -> list[Blob]:
        await self.settle()
        return self._blobs.of(self.reconciler.log.records())

    # Edits and waiters.

    def _take(self, edits: Iterable[Edit], *, is_told: bool = True) -> None:
        rules, life = self.reconciler, self.reconciler.life
        for edit in edits:
            if edit.previous is not None:
                self._blobs.note(edit)
            if is_told and self._is_loaded:
                self._on_edit(edit)
        if life != rules.life:
            self._times_ns.clear()
        if rules.doubt or rules.is_behind:
            self._wake.set()
        self._plan_expiry()
        self._arrive()

    def _plan_expiry(self) -> None:
        """Let the next message expire at its moment, whether or not the server answers."""
        expiry_ns = self.reconciler.next_expiry_ns
        if expiry_ns is None or not self._is_loaded or self._is_closed:
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + (expiry_ns - self.now_ns()) / NS_PER_SECOND
        if self._expiry is None or at < self._expiry.when():
            self._cancel_expiry()
            self._expiry = loop.call_at(at, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        self._take(self.reconciler.tick(self.now_ns()))

    def _cancel_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None

    def _note_time(self, record: Record) -> None:
        self._times_ns[record.seq] = record.time_ns
        if len(self._times_ns) > _TIMES_KEPT:
            del self._times_ns[next(iter(self._times_ns))]

    async def _wait_for(self, seq: int, life: int, seconds: float) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = seq, life
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except TimeoutError:
            pass
        finally:
            del self._waiters[waiter]

    def _arrive(self) -> None:
        if self._waiters:
            applied, now = self.reconciler.applied, self.reconciler.life
            waiting = self._waiters.items()
            _release([each for each, (seq, life) in waiting if seq <= applied or life != now])

    # Tasks.

    def _start(self, job: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(job)
        task.add_done_callback(self._on_task_end)
        self._tasks.append(task)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is None or self._is_closed:
            return
        if not isinstance(error, NatsStreamError):
            _log.error("the sync of core stream %s failed", self._names.path, exc_info=error)
            error = NatsStreamError("the sync of the core stream failed", detail=repr(error))
        self.error = error
        self._end()
        self._on_failure(error)

    def _end(self) -> None:
        """End the tasks and all waits."""
        self._is_closed = True
        self._cancel_expiry()
        for task in self._tasks:
            task.cancel()
        _release(self._waiters)
        _release(self._settling)


def _release(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


async def retried(attempt: Callable[[], Awaitable[T]]) -> T:
    """Return the result of an attempt, repeated while its error may pass.

    Raises:
        NatsStreamError: The error cannot pass: code 403, 429, a closed connection, or a wrong
            argument.
    """
    recovery = Recovery[str](math.inf)
    while True:
        try:
            return await attempt()
        except NatsStreamError as error:
            may_pass = error.retryable or isinstance(error, _PASSING)
            if not may_pass or isinstance(error, ConnectionClosedError):
                raise
            if conat_code(error) in (403, 429):
                raise
            now = asyncio.get_running_loop().time()
            await asyncio.sleep(recovery.next_wait(now) or 0.0)
