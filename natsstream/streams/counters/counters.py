"""Counting: `js.counters`, and `stream.counters` for those of one stream.

Law: a total that is returned is the server's, never one that was computed here. What was added with
a message id is added once, however often it is sent; without one it is sent once.

Source: ADR-49; orbit.go counters.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from natsstream._wire import subjects
from natsstream._wire.headers import HeaderName, HeaderValues
from natsstream.api.features import COUNTERS
from natsstream.api.names import check_filter, check_stream_name
from natsstream.api.paging import Gaps, listed_streams, pages
from natsstream.api.requests import Api
from natsstream.api.stream_changes import ensure_stream
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.arguments import check_names, check_text
from natsstream.errors import (
    ConfigError,
    CounterError,
    MessageNotFoundError,
    ProtocolError,
    StreamNotFoundError,
    SubjectError,
    WrongStreamError,
)
from natsstream.publish.admission import find_stream
from natsstream.publish.outgoing import check_publish_subject, copied_headers, prepare
from natsstream.publish.publish import publish
from natsstream.read.direct.subjects_held import subjects_held
from natsstream.streams.counters.counter import Counter, delta_text, read_counter

_AT_ONCE = 64
_STREAMS = "streams of counters"
_SUBJECTS_MAX = 1_024
# Servers refuse these beside an increment; the increment itself is `delta`.
_REFUSED = (
    HeaderName.INCREMENT.value,
    HeaderName.ROLLUP.value,
    HeaderName.EXPECTED_STREAM.value,
    HeaderName.EXPECTED_LAST_SEQUENCE.value,
    HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE.value,
    HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT.value,
    HeaderName.EXPECTED_LAST_MSG_ID.value,
)


class Counters:
    """The counters of the account, or those of one stream.

    A counter is a subject of a stream with `allow_msg_counter`. It is there from its first `incr`
    and has no limit of size. Nothing sets it: to begin again purge its subject.
    """

    def __init__(self, api: Api, stream: str | None = None) -> None:
        self._api = api
        self._stream = stream
        # That it is one of counters, which no update changes.
        self._is_checked = False
        # Which stream captures a subject, where it was looked up.
        self._homes: dict[str, str] = {}

    async def ensure(self, config: StreamConfig | str, **fields: Any) -> Counters:
        """Return the counters of a stream, which is made where there is none.

        Args:
            config: A configuration, or a name with `StreamConfig`'s fields as keywords.
            fields: Fields of `StreamConfig`. `allow_msg_counter` is set, and `allow_direct`, which
                other clients ask for, where it is not given.

        Raises:
            InvalidConfigError: The stream exists and is none of counters: that can not be changed.
            UnsupportedServerError: The server is older than 2.12; nothing was sent.
            ServerError: What `js.streams.ensure` raises.
        """
        if isinstance(config, StreamConfig):
            if fields:
                raise ConfigError("give a StreamConfig or keywords, not both")
            given = config
        else:
            check_stream_name(check_text(config, "config"))
            check_names(fields, StreamConfig.__dataclass_fields__, "stream field")
            given = StreamConfig(name=config, **fields)
        if given.allow_msg_counter is False:
            raise ConfigError("allow_msg_counter is False", hint="counters need it; leave it out")
        wanted = replace(
            given,
            allow_msg_counter=True,
            allow_direct=True if given.allow_direct is None else given.allow_direct,
        )
        await self._api.require(COUNTERS)
        info, _ = await ensure_stream(self._api, wanted)
        return Counters(self._api, info.name)

    async def incr(
        self,
        subject: str,
        delta: int = 1,
        *,
        msg_id: str | None = None,
        headers: HeaderValues | None = None,
        timeout: float | None = None,
    ) -> int:
        """Add to a counter and return its total after that.

        Args:
            subject: The counter; made where it is not there.
            delta: What to add, of any size; negative to subtract, 0 to write nothing but a message.
            msg_id: Identity of this addition for the stream's duplicate window. With one it is safe
                to call again after an error.
            headers: More headers of the message.
            timeout: Seconds to wait for the ack; None is `request_timeout`.

        Returns:
            The total. Where `msg_id` was added before, nothing is added, and it is the total now.

        Raises:
            ConfigError: The delta is no int (bool and float are none), or a header expects
                something; nothing was sent.
            UnsupportedServerError: The server is older than 2.12; nothing was sent.
            CounterError: The stream that captures the subject counts nothing.
            WrongStreamError: Another stream captures the subject; nothing was sent. Where it has
                taken the subject over since the last look it has added, and the error says so.
            NoRespondersError: No stream captures the subject.
            RequestTimeoutError: No ack in time; it may be added or not. Call again with the same
                `msg_id`; without one, read the total first.

        Cost: one round trip, one more after a duplicate. The counters of one stream look up who
        captures each subject once.
        """
        check_publish_subject(subject)
        text = delta_text(delta)
        message = prepare(subject, b"", _with_delta(headers, text), msg_id)
        if self._stream is not None and await self._home(subject) != self._stream:
            raise WrongStreamError(
                f"counter {subject} is not one of stream {self._stream}: stream "
                f"{self._homes[subject]} captures it",
                hint="js.counters counts on whatever stream captures the subject",
            )
        ack = await publish(self._api, message, timeout=timeout)
        if self._homes.get(subject, ack.stream) != ack.stream:
            self._homes.pop(subject, None)
        if self._stream is not None and ack.stream != self._stream:
            # A counter's message can not say which stream it is for: servers refuse that.
            raise WrongStreamError(
                f"counter {subject} has moved from stream {self._stream} to {ack.stream}, "
                "which has added this",
                hint="take it back there, and look at the subjects of the two",
            )
        if ack.value is not None:
            return ack.value
        if not ack.duplicate:
            raise ProtocolError(f"counter {subject}: the ack of stream {ack.stream} has no total")
        # The ack of a duplicate says no total.
        held = await self._read(ack.stream, subject)
        if held is None:
            raise CounterError(
                f"counter {subject}: this was added before, and the counter is gone since",
                hint="it was purged or expired: count again with another msg_id",
            )
        return held.value

    async def get(self, subject: str) -> Counter | None:
        """Return a counter with its total, or None where nothing was ever added.

        Raises:
            NoRespondersError: No stream captures the subject.
            CounterError: The stream counts nothing.
            TransportError: The server did not answer in time.

        Cost: one round trip to the stream's leader, so it sees every addition that was
        acknowledged; two more for the first use of a subject, to find its stream, or one for the
        first use of the counters of one stream.
        """
        check_publish_subject(subject)
        # A stream that only sources others captures no subject of its own.
        if self._stream is not None:
            return await self._read(await self._own(), subject)
        try:
            return await self._read(await self._home(subject), subject)
        except StreamNotFoundError:
            # It was deleted since; another one may capture the subject now.
            self._homes.pop(subject, None)
            return await self._read(await self._home(subject), subject)

    async def sources(self, subject: str) -> dict[str, dict[str, int]]:
        """Return what other streams have brought into a counter: stream, subject there, total.

        It is empty where nothing was ever added, and where the stream sources no other.

        Raises:
            NoRespondersError: No stream captures the subject.
            TransportError: The server did not answer in time.

        Cost: that of `get`.
        """
        held = await self.get(subject)
        return {} if held is None else {name: dict(each) for name, each in held.sources.items()}

    async def list(self, filter: str = ">") -> AsyncIterator[Counter]:  # noqa: A002 - The field's own word.
        """Yield the counters whose subject matches, each as it is when it is read.

        Args:
            filter: Which subjects, with wildcards.

        Raises:
            SubjectError: The filter is no subject; nothing was sent.
            CounterError: These are the counters of a stream that counts nothing.
            UnavailableError: At the end: streams of the account can not be described now, such as
                those without a leader; they may have counters.
            TransportError: The server did not answer in time.

        Cost: one request for each counter, 64 at once, and one for each 100,000 names; where these
        are not the counters of one stream, the infos of all streams of the account.
        """
        check_filter(check_text(filter, "filter", error=SubjectError))
        async for stream in self._streams():
            names, _ = await subjects_held(self._api, stream, [filter])
            for start in range(0, len(names), _AT_ONCE):
                for held in await self._read_all(stream, names[start : start + _AT_ONCE]):
                    yield held

    async def _read(self, stream: str, subject: str) -> Counter | None:
        body = {"last_by_subj": subject}
        what = f"counter {subject} of stream {stream}"
        try:
            answer = await self._api.read(subjects.message_get(stream), body, what=what)
        except MessageNotFoundError:
            return None
        return read_counter(answer)

    async def _read_all(self, stream: str, names: Sequence[str]) -> Sequence[Counter]:
        """Read some counters at once, without those that were purged since."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._read(stream, name)) for name in names]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed
        return [held for task in tasks if (held := task.result()) is not None]

    async def _home(self, subject: str) -> str:
        """Return the stream of a subject, looked up once; it must be one of counters."""
        home = self._homes.get(subject)
        if home is None:
            home = await find_stream(self._api, subject)
            _check_counts(await stream_info(self._api, home))
            if len(self._homes) >= _SUBJECTS_MAX:
                self._homes.clear()
            self._homes[subject] = home
        return home

    async def _own(self) -> str:
        """Return the stream whose counters these are; it must be one of counters."""
        stream = self._stream or ""
        if not self._is_checked:
            _check_counts(await stream_info(self._api, stream))
            self._is_checked = True
        return stream

    async def _streams(self) -> AsyncIterator[str]:
        if self._stream is not None:
            yield await self._own()
            return
        gaps = Gaps(_STREAMS, "raise")
        async for answer in pages(
            self._api, subjects.STREAM_LIST, {}, what=_STREAMS, names=listed_streams
        ):
            gaps.add(answer)
            for each in answer.parts("streams"):
                info = StreamInfo.from_json(each)
                if info.config.allow_msg_counter:
                    yield info.name
        gaps.check()

    def __repr__(self) -> str:
        return f"<Counters of {self._stream or 'all streams'}>"


def _check_counts(info: StreamInfo) -> None:
    if not info.config.allow_msg_counter:
        raise CounterError(
            f"stream {info.name} counts nothing: it has no allow_msg_counter",
            hint="that is set when a stream is made: js.counters.ensure(name, subjects=[...])",
        )


def _with_delta(headers: HeaderValues | None, delta: str) -> HeaderValues:
    """Return the headers with the increment; none of them may say what counters refuse."""
    merged = {} if headers is None else copied_headers(headers)
    for name in merged:
        if name in _REFUSED:
            raise ConfigError(
                f"a counter's message with {name}",
                hint="counters take no expectation, rollup or life time; use msg_id",
            )
    merged[HeaderName.INCREMENT.value] = delta
    return merged
