"""Reads a bounded range in order, across breaks: the engine under `Stream.read`.

Law: each message is yielded once, in order. After a break the read resumes at the next sequence
with a new consumer, or ends with a typed error that says where to resume.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from natsstream.api.control import named_control
from natsstream.api.message import Message
from natsstream.api.names import check_filters
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo, StreamState
from natsstream.api.unmatched import warn_unmatched
from natsstream.arguments import check_bool, check_choice, check_int
from natsstream.errors import (
    ConfigError,
    ConnectionLostError,
    InvalidConfigError,
    MessagesLostError,
    NatsStreamError,
    SequenceRangeError,
    ServerError,
    TransportError,
)
from natsstream.read.counts import MatchCounts
from natsstream.read.leader_reads import LeaderReads
from natsstream.read.missing import MissingSequences
from natsstream.read.newest_search import LastSequences, search_newest
from natsstream.read.progress import Gap, OutOfOrderError, Progress, ReadReport
from natsstream.read.read_events import BreakReason
from natsstream.read.recovery import Recovery
from natsstream.read.runs import Run
from natsstream.read.session import (
    HEARTBEAT_S,
    WINDOW_BYTES,
    ReadSession,
    SessionBrokenError,
    SessionIdleError,
)
from natsstream.read.start_position import ON_LOSS, ConsumerStart, check_starts
from natsstream.units import format_rfc3339

if TYPE_CHECKING:
    from natsstream._wire.framing import FrameBlock

Item = TypeVar("Item")

_LOOK_MIN_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeSpec:
    """Options of a read; see `Stream.read` for the meaning of each field.

    `headers_only` leaves out the payloads.
    `heartbeat_s` is how often an idle server says so: two times, and the leader is asked what is
    left. A read of what others may remove meanwhile ends sooner with a shorter one.
    `control` hands control records over as well.
    With `until_closed` the range ends before the record that ends the stream, if there is one.
    """

    stream: str
    first_seq: int | None = None
    last_seq: int | None = None
    filters: Sequence[str] = ()
    start_time_ns: int | None = None
    end_time_ns: int | None = None
    newest: int | None = None
    created_ns: int | None = None
    on_loss: Literal["raise", "report"] = "raise"
    eviction_is_loss: bool = False
    headers_only: bool = False
    heartbeat_s: float = HEARTBEAT_S
    control: bool = True
    until_closed: bool = False
    max_pending_bytes: int = WINDOW_BYTES

    def __post_init__(self) -> None:
        for name in ("first_seq", "last_seq", "created_ns"):
            if (bound := getattr(self, name)) is not None:
                check_int(bound, name)  # The bounds of the stream are known when it is read.
        if self.newest is not None:
            check_int(self.newest, "newest", minimum=0)
            starts = {
                "newest": True,
                "first_seq": self.first_seq is not None,
                "start_time": self.start_time_ns is not None,
            }
            check_starts(starts, hint="give newest alone, or with last_seq or end_time")
        self._check_times()
        object.__setattr__(self, "filters", check_filters(self.filters))
        check_int(self.max_pending_bytes, "max_pending_bytes", minimum=1)
        check_choice(self.on_loss, "on_loss", ON_LOSS)
        check_bool(self.eviction_is_loss, "eviction_is_loss")
        for name in ("headers_only", "control", "until_closed"):
            check_bool(getattr(self, name), name)
        if self.until_closed:
            self._check_until_closed()

    def _check_times(self) -> None:
        start_ns, end_ns = self.start_time_ns, self.end_time_ns
        if start_ns is not None and end_ns is not None and start_ns > end_ns:
            raise ConfigError(
                f"start_time {format_rfc3339(start_ns)} is after end_time {format_rfc3339(end_ns)}",
                hint="swap them; a read goes from the older to the newer messages",
            )

    def _check_until_closed(self) -> None:
        ends = {
            "last_seq": self.last_seq is not None,
            "end_time": self.end_time_ns is not None,
            "eviction_is_loss": self.eviction_is_loss,
        }
        for name, is_given in ends.items():
            if is_given:
                raise ConfigError(
                    f"until_closed and {name} exclude each other",
                    hint=f"read to the end of the stream, or give {name} for a read up to now",
                )


class RangeReader(Generic[Item]):
    """One read of one range.

    Args:
        api: The connection.
        spec: The range.
        clip: Cuts a run's items after a number of messages, at the range's end.
        convert: Makes columns of a block; None for messages.

    Attributes:
        follows: The stream when a read `until_closed` began, if it was still open: what lies behind
            its last sequence is to be followed. None otherwise.
    """

    def __init__(
        self,
        api: Api,
        spec: RangeSpec,
        *,
        clip: Callable[[Item, int], Item],
        convert: Callable[[FrameBlock], Item] | None = None,
    ) -> None:
        self._api = api
        self._spec = spec
        self._clip = clip
        self._convert = convert
        self._progress: Progress | None = None
        # The one that the next step of `runs` takes from, None if it takes from none.
        self._next_of: ReadSession[Item] | None = None
        self._hidden = b""
        self.follows: StreamInfo | None = None
        self._message_bytes = 1
        self._recovery = Recovery[BreakReason](api.client.options.bounded_reconnect_s)
        self._missing = MissingSequences(eviction_is_loss=spec.eviction_is_loss)
        self._leader = LeaderReads(
            api, spec.stream, spec.filters, missing=self._missing, created_ns=spec.created_ns
        )

    @property
    def report(self) -> ReadReport:
        """Counts so far."""
        return self._progress.report if self._progress else ReadReport()

    async def runs(self) -> AsyncGenerator[Item]:
        """Yield the range's messages in order, as they arrive.

        Raises:
            SequenceRangeError: The stream does not hold the range.
            StreamRecreatedError: The stream was made anew before or during the read.
            MessagesLostError: Messages of the range are lost (unless `on_loss="report"`).
            ConnectionLostError: The server did not come back within `reconnect_timeout`.
        """
        self._progress = progress = await self._begin()
        while not progress.is_done:
            try:
                async with aclosing(self._read(progress)) as items:
                    async for item in items:
                        self._recovery.reset()
                        yield item
            except (SessionBrokenError, OutOfOrderError, TransportError, ServerError) as error:
                if isinstance(error, NatsStreamError) and not error.retryable:
                    raise
                await self._resume(progress, error)

    async def wait(self) -> None:
        """Wait for what comes next, while messages are read; cancelling it loses nothing.

        The next step of `runs` then need not wait, as a rule.
        """
        if self._next_of is not None:
            await self._next_of.wait()

    async def bounds(self) -> tuple[int, int]:
        """Return the first and the last sequence of the read, without reading."""
        progress = await self._begin()
        return progress.next_seq, progress.last

    async def _begin(self) -> Progress:
        spec = self._spec
        what = f"read of stream {spec.stream}"
        info = await self._leader.first_info(what)
        state = info.state
        self._message_bytes = state.bytes // max(state.messages, 1)
        first = state.first_seq if spec.first_seq is None else spec.first_seq
        last = state.last_seq if spec.last_seq is None else spec.last_seq
        if spec.start_time_ns is not None:
            first = max(first, await self._sequence_at(spec.start_time_ns, state))
        if spec.end_time_ns is not None:
            last = min(last, await self._sequence_at(spec.end_time_ns, state) - 1)
        self._check_range(info, spec)
        await warn_unmatched(self._api, info, spec.filters, what)
        if spec.until_closed:
            last = await self._end_of_stream(info)
        self._hidden = hidden_start(info, spec.filters, control=spec.control)
        if spec.newest is not None:
            first = await first_of_newest(self._api, spec, info, last)
        has_filters = bool(spec.filters)
        progress = Progress(max(first, 1), last, has_filters=has_filters, missing=self._missing)
        if progress.is_done and info.config.retention == "workqueue":
            # Where there are messages the server refuses the reader, which nothing has asked yet.
            raise InvalidConfigError(
                f"{what}: a work queue delivers each message to one consumer",
                hint="use a consumer of stream.consumers, or stream.get(sequence)",
            )
        if spec.eviction_is_loss:
            await self._lose_evicted(progress, info)
        return progress

    async def _end_of_stream(self, info: StreamInfo) -> int:
        """Return the last sequence of a read `until_closed`, for now."""
        end = await self._leader.end_of(info)
        if end is not None:
            return end.sequence - (not self._spec.control)
        if not info.config.sealed:
            self.follows = info
        # An end that is written later lies behind it.
        return info.state.last_seq

    async def _sequence_at(self, time_ns: int, state: StreamState) -> int:
        """Return the first sequence stored at or after a moment, or the one after the last."""
        return await self._leader.sequence_at(time_ns) or state.last_seq + 1

    def _check_range(self, info: StreamInfo, spec: RangeSpec) -> None:
        first, last, state = spec.first_seq, spec.last_seq, info.state
        problem = ""
        if first is not None and first < 1:
            problem = f"first_seq is {first}: sequences begin at 1"
        elif last is not None and last < 0:
            problem = f"last_seq is {last}: sequences begin at 1"
        elif first is not None and last is not None and first > last + 1:
            problem = f"first_seq {first} is after last_seq {last}"
        elif first is not None and first > state.last_seq + 1:
            problem = f"first_seq {first} is behind its end"
        elif last is not None and last > state.last_seq:
            problem = f"last_seq {last} is behind its end"
        if problem:
            is_empty = state.first_seq > state.last_seq
            held = f"{state.first_seq} to {state.last_seq}"
            held = f"is empty and ends at {state.last_seq}" if is_empty else f"holds {held}"
            raise SequenceRangeError(
                f"read of stream {spec.stream}, which {held}: {problem}",
                first_seq=state.first_seq,
                last_seq=state.last_seq,
                hint="leave out first_seq or last_seq to take what the stream holds",
            )

    async def _read(self, progress: Progress) -> AsyncGenerator[Item]:
        """Read with one consumer until the range ends or something breaks."""
        session = ReadSession[Item](
            self._api,
            self._spec.stream,
            start=ConsumerStart(sequence=progress.next_seq),
            last=progress.last,
            filters=self._spec.filters,
            message_bytes=self._message_bytes,
            headers_only=self._spec.headers_only,
            convert=self._convert,
            hidden=self._hidden,
            window_bytes=self._spec.max_pending_bytes,
            heartbeat_s=self._spec.heartbeat_s,
        )
        progress.begin()
        try:
            pending = await session.open()
            while pending and not progress.is_done:
                try:
                    run = await session.next_run()
                except SessionIdleError:
                    break  # The leader is asked what is left.
                if run is None:
                    continue
                pending = run.pending
                if run.first > progress.last:
                    pending = 0
                    continue
                if run.last - progress.next_seq + 1 > run.count:
                    await self._leader.explain(run.sequences, progress.next_seq)
                items, count = self._accept(progress, run)
                if count:
                    has_next = pending and not (progress.is_done or self._loss_to_tell(progress))
                    self._next_of = session if has_next else None
                    yield items
                    self._next_of = None
                self._check_loss(progress)
        finally:
            self._next_of = None
            await session.close()
        if not progress.is_done:
            await self._end(progress)

    def _accept(self, progress: Progress, run: Run[Item]) -> tuple[Item, int]:
        """Return the run's messages up to the range's end or the first loss, and their number."""
        items, count, last = run.items, run.count, run.last
        sequences, hidden = run.sequences, run.hidden
        shown = count - len(hidden)
        if last > progress.last:
            kept = [sequence for sequence in run.sequences() if sequence <= progress.last]
            hidden = [sequence for sequence in hidden if sequence <= progress.last]
            count, last, shown = len(kept), kept[-1], len(kept) - len(hidden)
            items = self._clip(items, shown)
            sequences = lambda: kept  # noqa: E731 - the same callable as above, over less.
        progress.accept(
            sequences() if last - run.first + 1 > count else (),
            first=run.first,
            last=last,
            first_delivery=run.first_delivery,
            count=count,
            hidden=len(hidden),
        )
        # With filters the last match may be far before the range's end.
        if run.last > progress.last:
            progress.finish(held_last=progress.last)
        loss = self._loss_to_tell(progress)
        if loss is not None:
            safe = sum(1 for sequence in sequences()[:count] if sequence < loss.first_seq)
            safe -= sum(1 for sequence in hidden if sequence < loss.first_seq)
            progress.report.messages -= shown - safe
            return self._clip(items, safe), safe
        return items, shown

    async def _end(self, progress: Progress) -> None:
        """The consumer has no more: believe it only when the leader says the same."""
        found = await self._leader.next_held(progress.next_seq)
        if found is not None and found <= progress.last:
            # A replica that lags behind told the consumer; the leader has more.
            raise SessionBrokenError(f"the consumer has not seen sequence {found} yet")
        info = await self._leader.info()
        stop = min(progress.last, info.state.last_seq) + 1
        await self._leader.explain(lambda: [stop], progress.next_seq)
        if self._spec.eviction_is_loss:
            await self._lose_evicted(progress, info)
        if not progress.is_done:
            if not self._leader.is_believed(info, progress.last):
                raise SessionBrokenError(
                    f"the leader has come to {info.state.last_seq} only: it may be cut off"
                )
            self._finish(progress, info)

    def _finish(self, progress: Progress, info: StreamInfo) -> None:
        progress.finish(held_last=info.state.last_seq)
        self._check_loss(progress)

    async def _resume(self, progress: Progress, error: Exception) -> None:
        """Get ready for another session after a break, or raise when the time is over."""
        now, recovery = asyncio.get_running_loop().time, self._recovery
        try:
            await self._api.client.wait_connected(recovery.left_s(now()))
        except ConnectionLostError as lost:
            raise self._gave_up(progress, lost) from error
        wait_s = recovery.next_wait(now())
        if wait_s is None:
            raise self._gave_up(progress, error) from error
        progress.report.add_resume()
        await asyncio.sleep(wait_s)
        try:
            info = await self._leader.info(timeout=max(recovery.left_s(now()), _LOOK_MIN_S))
        except (TransportError, ServerError) as again:
            if not again.retryable:
                raise
            return
        if self._spec.eviction_is_loss:
            await self._lose_evicted(progress, info)
        is_short = info.state.last_seq < progress.last
        is_behind = progress.next_seq > info.state.last_seq
        if self._leader.is_believed(info, progress.last) and is_short and is_behind:
            self._finish(progress, info)

    def _gave_up(self, progress: Progress, error: Exception) -> ConnectionLostError:
        cause = error.detail or error.message if isinstance(error, NatsStreamError) else str(error)
        return ConnectionLostError(
            f"read of stream {self._spec.stream} broke and could not go on within "
            f"{self._recovery.limit_s:g} s",
            detail=cause,
            hint="read it again"
            if self._spec.headers_only  # A look for the newest hands no message over.
            else f"resume with read(first_seq={progress.next_seq}, last_seq={progress.last})",
            retryable=True,
        )

    async def _lose_evicted(self, progress: Progress, info: StreamInfo) -> None:
        await self._leader.learn_evicted(info, progress.next_seq)
        progress.lose_until(info.state.first_seq)
        self._check_loss(progress)

    def _check_loss(self, progress: Progress) -> None:
        loss = self._loss_to_tell(progress)
        if loss is None:
            return
        raise MessagesLostError(
            f"messages {loss.first_seq} to {loss.last_seq} of stream {self._spec.stream} are gone",
            first_seq=loss.first_seq,
            last_seq=loss.last_seq,
            hint='read on with on_loss="report", which counts them in the report',
        )

    def _loss_to_tell(self, progress: Progress) -> Gap | None:
        """Return a loss that ends the read."""
        return progress.loss if self._spec.on_loss == "raise" else None


def hidden_start(info: StreamInfo, filters: Sequence[str], *, control: bool) -> bytes:
    """Return the first bytes of the subjects that a read leaves out; empty for none.

    Args:
        info: The stream, as of the last sequence of the read or later.
        filters: Those of the read; empty for all.
        control: Whether control records are handed over.

    Raises:
        ConfigError: The stream's metadata names no legal prefix.
    """
    named = None if control else named_control(info.config)
    return named.start if named is not None and named.is_hidden(filters) else b""


async def first_of_newest(api: Api, spec: RangeSpec, info: StreamInfo, last: int) -> int:
    """Return the first sequence of the newest messages up to `last`.

    Args:
        api: The connection.
        spec: The read; `newest` is not None.
        info: The stream when the read began.
        last: Last sequence of the read, inclusive.

    Raises:
        NatsStreamError: As for a read.

    Cost: nothing where no message is missing and there are no filters and no control records. Else
    two consumers for each sequence that messages are counted from, and the headers of these
    messages and few others.
    """
    newest, state = spec.newest or 0, info.state
    first = max(state.first_seq, 1)
    is_all = not (spec.filters or hidden_start(info, (), control=spec.control))
    is_dense = is_all and state.messages == state.last_seq + 1 - state.first_seq
    if not newest or is_dense or newest > last - first:
        return max(first, last + 1 - newest)
    counts = MatchCounts(
        api, spec.stream, spec.filters, what=f"newest messages of stream {spec.stream}"
    )
    wanted = newest
    while True:
        start = await _enough_from(counts, wanted, first, last)
        whole = replace(
            spec,
            newest=None,
            first_seq=start,
            last_seq=last,
            end_time_ns=None,
            until_closed=False,
            created_ns=info.created_ns,
            on_loss="report",
            eviction_is_loss=False,
            headers_only=True,
        )
        kept = LastSequences(newest)
        headers = RangeReader[list[Message]](api, whole, clip=clip_messages)
        async with aclosing(headers.runs()) as runs:
            async for run in runs:
                kept.add([message.sequence for message in run])
        if kept.first is not None or start == first:
            return kept.first or first
        # Deleted meanwhile, counted by a replica that lags behind, or control records.
        wanted *= 2


async def _enough_from(counts: MatchCounts, newest: int, first: int, last: int) -> int:
    """Return a sequence from which on there are enough messages, or the first one."""
    search = search_newest(newest, first, last)
    try:
        at = next(search)
        while True:
            held = (await counts.count_from(at)).messages
            # In this order, messages that are stored meanwhile make the count too small, not too
            # large: then the range begins earlier than it has to.
            at = search.send(held - (await counts.count_from(last + 1)).messages)
    except StopIteration as found:
        start: int = found.value
        return start


def clip_messages(messages: list[Message], count: int) -> list[Message]:
    """Return the first of some messages."""
    return messages[:count]
