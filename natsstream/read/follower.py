"""Follows a stream from a start on, across breaks: the engine under `Stream.ordered`.

Law: what was delivered stays here until `advance` returns it, so cancelling loses nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from natsstream.api.control import CONTROL_KEY, Control, likely_control
from natsstream.api.message import Message, messages_below
from natsstream.api.names import collide, drop_covered
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.unmatched import warn_unmatched
from natsstream.errors import (
    ConfigError,
    ConnectionLostError,
    LimitExceededError,
    MessagesLostError,
    NatsStreamError,
    ServerError,
    TransportError,
)
from natsstream.read.catch_up import CatchUp
from natsstream.read.leader_reads import LeaderReads, shortened
from natsstream.read.missing import MissingSequences
from natsstream.read.ordered_progress import OrderedProgress
from natsstream.read.progress import OutOfOrderError
from natsstream.read.read_events import (
    BreakReason,
    EndFound,
    GapFound,
    HeartbeatsMissed,
    OrderedReport,
    ReadEvent,
    Recreated,
)
from natsstream.read.reader import RangeSpec, first_of_newest
from natsstream.read.recovery import Recovery
from natsstream.read.runs import Run, split_run
from natsstream.read.session import SILENCE_MAX_S, ReadSession, SessionBrokenError
from natsstream.read.start_position import ConsumerStart, OrderedSpec

_log = logging.getLogger("natsstream.consumer")

# A consumer comes to any of a stream's servers by chance. Of three servers the one that is wanted
# is missed so often once in 300 million times, of five once in 60 million.
_PLACES_TRIED_EACH = 16
# A replica that was cut off from its leader sends heartbeats like any other, so a consumer that is
# idle for this long is checked.
_LOOK_EVERY_S = 10.0


class Follower:
    """The engine of one ordered consumer; `open` makes it.

    Attributes:
        progress: How far it has come.
        info: The stream when it was opened.
        end_seq: Sequence of the record that has ended the stream, once it was met.
    """

    progress: OrderedProgress
    info: StreamInfo

    def __init__(
        self,
        api: Api,
        spec: OrderedSpec,
        *,
        report: OrderedReport,
        on_event: Callable[[ReadEvent], None],
    ) -> None:
        self._api = api
        self._spec = spec
        self._report = report
        self._on_event = on_event
        self.end_seq: int | None = None
        self._has_ended = False
        # A stream gets its control subjects from its first producer, maybe while it is followed.
        # Until its metadata names them, those that a producer would choose are looked for, and only
        # among messages that were stored since.
        self._control: Control | None = None
        self._is_named = False
        self._catch_up = CatchUp(is_wanted=spec.settles)
        self._missing = MissingSequences()
        self._leader = LeaderReads(
            api, spec.stream, spec.filters, missing=self._missing, created_ns=spec.created_ns
        )
        self._session: ReadSession[list[Message]] | None = None
        # The servers that have told of everything up to the horizon, and whether there are others.
        self._knowing: set[str] = set()
        self._followers = 0
        # Runs that have arrived and are not accepted yet.
        self._runs: deque[Run[list[Message]]] = deque()
        # Messages that the consumer has behind the last run; None when that is not to be believed.
        self._pending: int | None = None
        # Last sequence of the run that told it; 0 when no run of this consumer did.
        self._told_at = 0
        self._failure: NatsStreamError | None = None
        self._is_closed = False
        # The creation of the next consumer: a reader with short timeouts does not cancel it, or it
        # would never get one.
        self._beginning: asyncio.Task[ReadSession[list[Message]]] | None = None
        # Opening is a call, which ends. `advance` chooses for itself.
        self._recovery = Recovery[BreakReason](api.client.options.bounded_reconnect_s)
        # When an idle consumer is checked, and what it should have delivered the last time.
        self._next_look = 0.0
        self._overdue: int | None = None

    async def open(self) -> None:
        """Find the start and make the first consumer."""
        what = f"ordered read of stream {self._spec.stream}"
        self.info = await self._leader.first_info(what)
        await warn_unmatched(self._api, self.info, self._spec.filters, what)
        first, last = self._spec.first_seq or 0, self.info.state.last_seq
        if first > last + 1:
            _log.warning(
                "%s begins at sequence %d and the stream ends at %d: nothing comes until then",
                what,
                first,
                last,
            )
        self._note_control(self.info)
        end = await self._leader.end_of(self.info) if self._spec.until_closed else None
        start = await self._find_start(end)
        if end is not None and _is_behind(start, end):
            self.end_seq, self._has_ended = end.sequence, True
        self.progress = OrderedProgress(
            start,
            horizon=self.info.state.last_seq,
            has_filters=bool(self._spec.filters),
            stops_at_loss=self._spec.on_loss == "raise",
            missing=self._missing,
            report=self._report,
        )
        self._note_knowing(self.info)
        while self._session is None and not self._has_ended:
            try:
                await self._begin()
            except (SessionBrokenError, TransportError, ServerError) as error:
                await self._mend(error)

    @property
    def has_reached_end(self) -> bool:
        """True when the consumer had nothing behind what `advance` returned last."""
        return not self._runs and self._is_end_known()

    @property
    def is_caught_up(self) -> bool:
        """True when what existed has been passed, and what has replaced it if that is wanted."""
        return self.progress.is_caught_up and self._catch_up.is_done

    @property
    def is_ended(self) -> bool:
        """True when a read `until_closed` is over."""
        if self._spec.until_closed and self.info.config.sealed:
            return self.is_caught_up
        return self._has_ended

    @property
    def hidden_start(self) -> bytes:
        """The first bytes of the subjects that are left out; empty for none."""
        control = self._control
        if control is None or self._spec.control or not control.is_hidden(self._spec.filters):
            return b""
        return control.start

    async def advance(self, *, is_bounded: bool) -> list[Message]:
        """Return the next messages, or an empty list when something else happened.

        Args:
            is_bounded: The read has an end, so it gives up after an outage.

        Raises:
            StreamNotFoundError: The stream was deleted.
            StreamRecreatedError: It was deleted and created again, or lost its end.
            MessagesLostError: The next messages are lost and `on_loss` is "raise".
            ConnectionLostError: The server did not come back within `reconnect_timeout`; calling
                again retries.
        """
        if self.is_ended:
            return []
        if self._failure is not None:
            raise self._failure
        options = self._api.client.options
        self._recovery.limit(
            options.bounded_reconnect_s if is_bounded else options.running_reconnect_s
        )
        try:
            session = self._session or await self._begun()
            if not self.is_caught_up and not self._runs and self._pending == 0:
                await self._look_at_leader()
                return []
            if self.progress.is_caught_up and self._catch_up.has_question(self.progress.next_seq):
                info = await self._leader.info()
                self._catch_up.learn(info.state.last_seq, self.progress.next_seq)
                return []
            if not self._runs:
                run = await session.next_run()
                if run is None:
                    self._recovery.reset()
                    # Nothing comes: what was pending may have been deleted.
                    self._pending = None
                    await self._look_at_leader()
                    return []
                self._overdue = None
                self._runs.append(run)
            messages = await self._accept()
            # Only what can be used is progress: deliveries that are wrong each time come to an end.
            self._recovery.reset()
            return messages
        except (SessionBrokenError, OutOfOrderError, TransportError, ServerError) as error:
            await self._mend(error)
            return []

    async def close(self) -> None:
        """Delete the consumer, also one that is being made; closing twice is fine."""
        self._is_closed = True
        if self._beginning is not None or self._session is not None:
            await self._api.client.endings.run(self._end())

    async def _end(self) -> None:
        if self._beginning is not None:
            beginning, self._beginning = self._beginning, None
            beginning.cancel()
            await asyncio.wait([beginning])
            if not beginning.cancelled():
                beginning.exception()  # Its waiter is gone.
        session, self._session = self._session, None
        if session is not None:
            await session.close(confirm=True)

    async def _drop_session(self) -> None:
        self._runs.clear()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _find_start(self, end: Message | None) -> ConsumerStart:
        spec, state = self._spec, self.info.state
        if spec.first_seq is not None:
            return ConsumerStart(sequence=spec.first_seq)
        if spec.start_time_ns is not None:
            return ConsumerStart(time_ns=spec.start_time_ns)
        newest, last = spec.newest, state.last_seq if end is None else end.sequence - 1
        if spec.deliver_policy == "last" and (self.hidden_start or end is not None):
            newest = 1
        if newest is not None:
            wanted = RangeSpec(
                stream=spec.stream, filters=spec.filters, newest=newest, control=spec.control
            )
            first = await first_of_newest(self._api, wanted, self.info, last)
            return ConsumerStart(sequence=first)
        match spec.deliver_policy:
            case "all":
                return ConsumerStart(sequence=max(state.first_seq, 1))
            case "new":
                return ConsumerStart(sequence=state.last_seq + 1)
            case "last":
                found = await self._leader.last_held()
                return ConsumerStart(sequence=found or state.last_seq + 1)
            case "last_per_subject":
                return ConsumerStart()

    def _note_control(self, info: StreamInfo) -> None:
        """Learn which subjects hold no data, and see to it that the end of the stream comes."""
        if self._is_named:
            return
        spec = self._spec
        try:
            control = likely_control(info.config, info.created_ns)
        except ConfigError:
            if not spec.control:
                raise
            return
        if control is None:
            return
        if spec.until_closed and spec.filters:
            self._leader.filters = drop_covered((*spec.filters, control.end))
        elif spec.filters and not any(collide(each, control.filter) for each in spec.filters):
            return
        self._control = control
        self._is_named = CONTROL_KEY in (info.config.metadata or {})

    async def _begun(self) -> ReadSession[list[Message]]:
        """Wait for the next consumer; cancelling the wait does not cancel its creation."""
        if self._beginning is None:
            self._beginning = asyncio.ensure_future(self._begin())
        beginning = self._beginning
        try:
            return await asyncio.shield(beginning)
        finally:
            if beginning.done():
                self._beginning = None

    async def _begin(self) -> ReadSession[list[Message]]:
        """Make the next consumer."""
        start = self.progress.begin()
        if self._spec.consistent and start.is_last_per_subject:
            session, pending = await self._made_where_known(start)
        else:
            session, pending = await self._made(start)
        if self._is_closed:
            await session.close()
        self._session, self._pending, self._overdue = session, pending, None
        self._told_at = 0
        self._beginning = None  # Done, also if nobody waits for it just now.
        self._next_look = asyncio.get_running_loop().time() + _LOOK_EVERY_S
        reason, self._recovery.cause = self._recovery.cause, None
        if reason is not None:
            self._report.add_reason(reason)
            self._on_event(Recreated(reason=reason, next_seq=self.progress.next_seq))
        return session

    async def _made_where_known(
        self, start: ConsumerStart
    ) -> tuple[ReadSession[list[Message]], int]:
        """Make a consumer on a server that knew everything up to the horizon when it began.

        Another replica may lag behind: what it calls the last message of a subject may have been
        replaced or deleted before the read began. The server offers no choice, only chance.
        """
        tried = 0
        while tried < _PLACES_TRIED_EACH * (1 + self._followers):
            tried += 1
            known = frozenset(self._knowing)
            session, pending = await self._made(start)
            if not self._followers or session.node in known:
                return session, pending
            await session.close(confirm=True)
        raise SessionBrokenError("no consumer could be made where all is known", "stalled")

    async def _made(self, start: ConsumerStart) -> tuple[ReadSession[list[Message]], int]:
        """Make a consumer; returns it and how much it has to deliver."""
        state, filters = self.info.state, self._leader.filters
        session = ReadSession[list[Message]](
            self._api,
            self._spec.stream,
            start=start,
            last=None,
            # The server wants a filter for this one, even if it is all.
            filters=filters or (">",) if start.is_last_per_subject else filters,
            message_bytes=state.bytes // max(state.messages, 1),
            headers_only=self._spec.headers_only,
        )
        try:
            pending = await session.open()
            # After the consumer was made: it dies with its stream, so it belongs to this one.
            info = await self._leader.info()
            self._check_end(info)
            self._note_knowing(info)
            self._note_control(info)
        except BaseException:
            await session.close()
            raise
        return session, pending

    def _check_end(self, info: StreamInfo) -> None:
        """Refuse a stream that has lost its end: other messages get sequences that were passed."""
        last, seen = info.state.last_seq, self.progress.seen_seq
        if not self._leader.is_believed(info, seen):
            raise SessionBrokenError(f"the leader has come to {last} only", "stalled")
        if last < seen:
            detail = f"{seen} was read from it: it lost its end, as by a crash or an older disk"
            self._failure = shortened(self._spec.stream, last, seen, detail=detail)
            raise self._failure

    def _note_knowing(self, info: StreamInfo) -> None:
        if info.cluster is None:
            return
        self._followers = max(self._followers, len(info.cluster.replicas))
        if info.state.last_seq >= self.progress.horizon:
            self._knowing.add(info.cluster.leader)

    async def _accept(self) -> list[Message]:
        run, progress = self._runs[0], self.progress
        if progress.crosses_horizon(run):
            self._runs.popleft()
            self._runs.extendleft(reversed(split_run(run, progress.horizon)))
            run = self._runs[0]
        if progress.has_holes(run):
            await self._leader.explain(run.sequences, progress.next_seq)
        messages = self._sift(progress.accept(run), run.first)
        self._runs.popleft()
        self._pending, self._told_at = run.pending, run.last
        if self._has_ended:
            await self._drop_session()
            return messages
        if progress.is_phase_over:
            self._pending = None  # The next consumer delivers the run's messages.
            await self._drop_session()
        for gap in progress.new_gaps:
            self._on_event(GapFound(gap=gap))
        progress.new_gaps.clear()
        loss = progress.loss
        if loss is not None and self._spec.on_loss == "raise":
            self._failure = MessagesLostError(
                f"messages {loss.first_seq} to {loss.last_seq} of stream {self._spec.stream} "
                "are gone",
                first_seq=loss.first_seq,
                last_seq=loss.last_seq,
                hint=f"resume with ordered(first_seq={loss.last_seq + 1}), or follow with "
                'on_loss="report", which counts them in the report',
            )
        return messages

    def _sift(self, messages: list[Message], first: int) -> list[Message]:
        """Return which of the next messages are handed over; notice the end of the stream."""
        control, report = self._control, self._report
        if control is None or not (self._is_named or first > self.progress.horizon):
            return messages
        records = messages_below(messages, control.start)
        if not records:
            return messages
        end = next((each for each in records if each.subject == control.end), None)
        if end is not None:
            self.end_seq = end.sequence
            self._on_event(EndFound(sequence=end.sequence))
        if end is not None and self._spec.until_closed:
            self._has_ended, self.progress.next_seq = True, end.sequence + 1
            stop = end.sequence + self._spec.control
            report.messages -= sum(message.sequence >= stop for message in messages)
            messages = [message for message in messages if message.sequence < stop]
        if self.hidden_start:
            hidden = set(records)
            count = len(messages)
            messages = [message for message in messages if message not in hidden]
            report.messages -= count - len(messages)
            report.skipped += count - len(messages)
        return messages

    def _is_end_known(self) -> bool:
        """Return True if the consumer alone proves that nothing older is left."""
        return self._pending == 0 and self.info.config.replicas == 1

    def _has_passed_all(self) -> bool:
        """Return True if the consumer has delivered all that its replica held behind the horizon.

        A replica that has a message from behind the horizon has everything before it. Writers
        make the leader have more each time, so the leader is not asked.
        """
        return self._pending == 0 and self._told_at > self.progress.horizon

    def _note_end(self) -> None:
        """Note that nothing older than this moment is left."""
        self.progress.catch_up()
        self._catch_up.end()

    async def _look_at_leader(self) -> None:
        """Find out whether an idle consumer has passed what existed, and still gets what comes."""
        progress, now = self.progress, asyncio.get_running_loop().time()
        if self._spec.until_closed and now >= self._next_look:
            await self._look_for_seal()
        if self.is_caught_up and (self.info.config.replicas == 1 or now < self._next_look):
            return
        if self._is_end_known() or self._has_passed_all():
            self._note_end()
            return
        # It may sit on a replica that lags behind, or count what is deleted.
        found = await self._leader.next_held(progress.next_seq)
        self._pending, self._next_look = None, now + _LOOK_EVERY_S
        if found is None:
            self._note_end()
        elif found > progress.horizon:
            progress.catch_up()
        if found is not None and found == self._overdue:
            raise SessionBrokenError(f"the consumer does not deliver sequence {found}", "stalled")
        self._overdue = found

    async def _look_for_seal(self) -> None:
        """Find out whether a stream that nobody has ended takes no more messages."""
        info = await self._leader.info()
        if info.config.sealed:
            self._has_ended = await self._leader.next_held(self.progress.next_seq) is None
        if info.config.replicas == 1:
            self._next_look = asyncio.get_running_loop().time() + _LOOK_EVERY_S

    async def _mend(self, error: Exception) -> None:
        """Get ready for another consumer after a break, or raise when there can be none."""
        now, recovery = asyncio.get_running_loop().time, self._recovery
        # A consumer that was left behind may fill a limit until the server has deleted it.
        is_passing = recovery.cause is not None and isinstance(error, LimitExceededError)
        is_final = isinstance(error, NatsStreamError) and not (error.retryable or is_passing)
        reason = error.reason if isinstance(error, SessionBrokenError) else "no_answer"
        if isinstance(error, OutOfOrderError):
            reason = "out_of_order"
        if not is_final:
            recovery.note(reason)  # Before the first wait, in which a call may be cancelled.
        await self._drop_session()
        if self._is_closed:
            return
        if is_final and isinstance(error, NatsStreamError):
            self._failure = error
            raise error
        if reason == "heartbeats":
            self._on_event(HeartbeatsMissed(seconds=SILENCE_MAX_S))
        try:
            await self._api.client.wait_connected(recovery.left_s(now()))
        except ConnectionLostError as lost:
            recovery.reset()
            raise self._gave_up(error) from lost
        wait_s = recovery.next_wait(now())
        if wait_s is None:
            raise self._gave_up(error) from error
        await asyncio.sleep(wait_s)

    def _gave_up(self, error: Exception) -> ConnectionLostError:
        cause = error.detail or error.message if isinstance(error, NatsStreamError) else str(error)
        return ConnectionLostError(
            f"following stream {self._spec.stream} broke and could not go on within "
            f"{self._recovery.limit_s:g} s",
            detail=cause,
            hint="iterate again to retry, or resume later with "
            f"ordered(first_seq={self.progress.next_seq})",
            retryable=True,
        )


def _is_behind(start: ConsumerStart, end: Message) -> bool:
    """Return True if a read begins behind the record that ends the stream."""
    if start.sequence is not None:
        return start.sequence > end.sequence
    return start.time_ns is not None and start.time_ns > end.time_ns
