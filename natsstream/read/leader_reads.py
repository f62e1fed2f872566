"""Requests to the stream's leader: is it still the same stream, and what does it hold?

Law: only the leader knows; a consumer may sit on a replica that lags behind. A stream that was
deleted and created again raises StreamRecreatedError.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence

from natsstream.api.at_once import at_once
from natsstream.api.control import named_control, past_of
from natsstream.api.message import Message, messages_below
from natsstream.api.requests import Api
from natsstream.api.short_answers import ShortAnswers
from natsstream.api.stream_info import StreamInfo, has_unnamed_loss
from natsstream.api.stream_requests import get_message, stream_deleted, stream_info
from natsstream.errors import ConfigError, ConnectionLostError, StreamRecreatedError
from natsstream.read.missing import MissingSequences, holes_between
from natsstream.units import format_rfc3339

_log = logging.getLogger("natsstream.consumer")

# The server lists what it deleted and lost in one answer, seven bytes a sequence: 1.4 MB and 20 ms
# for this many. A stream with more deleted ones in it is not asked, and all of them count as such.
_DELETED_LISTED_MAX = 200_000
# A deletion may reach the replica that delivers before the leader: it is asked again.
_LOOKS_MAX = 3
_LOOK_WAIT_S = 0.1
# The server looks for one filter at a time; with more of them than this, it is asked first whether
# there is anything at all.
_FILTERS_FEW = 8
# A stream holds one control record of each producer, unless it forbids to remove older ones.
_SKIPS_MAX = 1_000
# Between two attempts to begin.
_AGAIN_S = 0.05


class LeaderReads:
    """A stream, as its leader sees it.

    Args:
        api: The connection.
        stream: Name of the stream.
        filters: The subjects that are read; empty for all.
        missing: Learns why sequences are missing.
        created_ns: The stream's identity; None takes that of the first answer.

    Attributes:
        filters: As given.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        filters: Sequence[str],
        *,
        missing: MissingSequences,
        created_ns: int | None,
    ) -> None:
        self._api = api
        self._stream = stream
        self.filters: Sequence[str] = filters
        self._missing = missing
        self._created_ns = created_ns
        self._deleted = 0
        self._short = ShortAnswers()

    async def first_info(self, what: str) -> StreamInfo:
        """Return the stream's info; a server that is away is waited for, as later in a read.

        Args:
            what: The read, for errors.

        Raises:
            ConnectionLostError: The server did not come back within `reconnect_timeout`, or 30 s.
            NatsStreamError: As for `info`.
        """
        client, now = self._api.client, asyncio.get_running_loop().time
        deadline = now() + client.options.bounded_reconnect_s
        while True:
            await client.wait_connected(max(deadline - now(), 0.001), what=what)
            try:
                return await self.info()
            except ConnectionLostError:
                if now() >= deadline:
                    raise
            await asyncio.sleep(_AGAIN_S)  # The connection's state may lag behind its loss.

    async def info(self, *, timeout: float | None = None) -> StreamInfo:
        """Return the stream's info.

        Raises:
            StreamNotFoundError: It was deleted.
            StreamRecreatedError: It was deleted and created again.
            TransportError: There was no answer in time.
        """
        return self._same(await stream_info(self._api, self._stream, timeout=timeout))

    def _same(self, info: StreamInfo) -> StreamInfo:
        self._created_ns = self._created_ns or info.created_ns
        if info.created_ns != self._created_ns:
            raise StreamRecreatedError(
                f"stream {self._stream} was created at {format_rfc3339(info.created_ns)}, "
                f"not at {format_rfc3339(self._created_ns)}: it was deleted and created again",
                hint="its sequences mean other messages now: start from the beginning",
            )
        self._deleted = info.state.num_deleted
        return info

    def is_believed(self, info: StreamInfo, sequence: int) -> bool:
        """Return True if an info tells where the stream ends: a short one may be stale.

        Args:
            info: The answer.
            sequence: A sequence that the stream has had.
        """
        return self._short.is_believed(
            is_short=info.state.last_seq < sequence,
            replicas=info.config.replicas,
            now=asyncio.get_running_loop().time(),
        )

    async def explain(self, sequences: Callable[[], Sequence[int]], start: int) -> None:
        """Ask why some are missing from `start` on, until it has been said or will not be.

        Args:
            sequences: Returns what was delivered, ascending; the last one ends the question.
            start: The sequence that was expected first.
        """
        # Sequences before the stream's first one were evicted, whatever filters hide.
        evicts = self._missing.eviction_is_loss
        lists = not self.filters and self._deleted <= _DELETED_LISTED_MAX
        if not (lists or evicts):
            return
        holes = holes_between(sequences(), start) if lists else []
        for look in range(_LOOKS_MAX):
            if lists and all(self._missing.explain(*hole) for hole in holes):
                return
            if look:
                await asyncio.sleep(_LOOK_WAIT_S)
            if not lists:
                await self.learn_evicted(await self.info(), start)
                return
            info, deleted = await stream_deleted(self._api, self._stream)
            await self.learn_evicted(self._same(info), start)
            self._missing.learn(deleted=deleted, lost=info.state.lost)
            if has_unnamed_loss(info):
                self._missing.has_unnamed_loss = True
                _log.warning(
                    "stream %s lost messages and cannot say which: they count as deleted",
                    self._stream,
                )

    async def learn_evicted(self, info: StreamInfo, start: int) -> None:
        """Learn what is gone from the stream's beginning, and which of it held control records.

        Args:
            info: The stream now.
            start: The sequence that was expected first.
        """
        self._missing.learn(first_held=info.state.first_seq)
        if not self._missing.eviction_is_loss or start >= info.state.first_seq:
            return
        try:
            control = named_control(info.config)
        except ConfigError:
            control = None
        if control is None:
            return
        states, sequence = control.state("*"), 1
        for _ in range(_SKIPS_MAX):
            record = await get_message(self._api, self._stream, sequence, next_by_subject=states)
            if record is None:
                return
            self._missing.learn(records=past_of(record.data))
            sequence = record.sequence + 1

    async def sequence_at(self, time_ns: int) -> int | None:
        """Return the first sequence stored at or after a moment; None when there is none.

        Raises:
            UnsupportedServerError: The server would answer with the first sequence of all.
        """
        return _sequence_of(await get_message(self._api, self._stream, start_time=time_ns))

    async def next_held(self, sequence: int, *, hidden: bytes = b"") -> int | None:
        """Return the next sequence of the subjects that it holds, from `sequence` on.

        Args:
            sequence: The first one that counts.
            hidden: The first bytes of subjects that do not count; empty for none.

        Cost: one request for each filter, 64 of them in flight; one if there are many filters and
        no new message. Again for each message that does not count, of which 1,000 are passed.
        """
        for _ in range(_SKIPS_MAX):
            found = await self._next_message(sequence)
            if found is None or not (hidden and messages_below([found], hidden)):
                return _sequence_of(found)
            sequence = found.sequence + 1
        return sequence

    async def _next_message(self, sequence: int) -> Message | None:
        is_many = len(self.filters) > _FILTERS_FEW
        if is_many and (await self.info()).state.last_seq < sequence:
            return None
        found = await self._ask_each(
            lambda subject: get_message(self._api, self._stream, sequence, next_by_subject=subject)
        )
        return min(found, key=lambda message: message.sequence, default=None)

    async def _ask_each(
        self, question: Callable[[str], Coroutine[None, None, Message | None]]
    ) -> list[Message]:
        """Ask a question about each filter, some of them at once; return the messages found."""
        answers = await at_once(question, self.filters or (">",))
        return [each for each in answers if each is not None]

    async def end_of(self, info: StreamInfo) -> Message | None:
        """Return the record that ends the stream; None while it is open.

        Raises:
            ConfigError: The stream has no control subjects, so nothing can end it.
        """
        control = named_control(info.config)
        if control is not None:
            return await get_message(self._api, self._stream, last_by_subject=control.end)
        if info.config.sealed:
            return None
        raise ConfigError(
            f"stream {self._stream} has no control subjects: no producer can end it",
            hint="open a producer first: js.producer(..., update_stream=True); or follow it with "
            "stream.ordered()",
        )

    async def last_held(self) -> int | None:
        """Return the last sequence of the subjects that it holds."""
        held = await self._ask_each(
            lambda subject: get_message(self._api, self._stream, last_by_subject=subject)
        )
        return max((each.sequence for each in held), default=None)


def _sequence_of(message: Message | None) -> int | None:
    return None if message is None else message.sequence


def shortened(stream: str, last_seq: int, seen: int, *, detail: str) -> StreamRecreatedError:
    """Return the error of a stream that ends before a sequence that it has had.

    Args:
        stream: Its name.
        last_seq: Where it ends.
        seen: The sequence.
        detail: How that came about.
    """
    return StreamRecreatedError(
        f"stream {stream} ends at {last_seq}, before {seen}",
        detail=detail,
        hint="resume at a sequence that it has, or start from the beginning",
    )
