"""Counters: `js.counters`, and `stream.counters` for those of one stream.

Law: a returned total is the server's, never computed here. An addition with a message id is added
once, however often it is sent; without one it is sent once.

Source: ADR-49; orbit.go counters.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Unpack

from natsstream._wire.headers import HeaderName, HeaderValues
from natsstream.api.at_once import IN_FLIGHT_MAX, at_once
from natsstream.api.config_fields import StreamFields
from natsstream.api.features import COUNTERS
from natsstream.api.names import check_filter
from natsstream.api.paging import Gaps
from natsstream.api.requests import Api
from natsstream.api.settings.keywords import shows_fields
from natsstream.api.stream_changes import ensure_stream
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import get_message, stream_info, stream_infos
from natsstream.arguments import check_text
from natsstream.errors import (
    ConfigError,
    CounterError,
    NoRespondersError,
    ProtocolError,
    StreamNotFoundError,
    SubjectError,
    WrongStreamError,
)
from natsstream.iteration import Flattened
from natsstream.publish.admission import find_stream
from natsstream.publish.outgoing import check_publish_subject, copied_headers, prepare
from natsstream.publish.publish import publish
from natsstream.read.direct.subjects_held import subjects_held
from natsstream.streams.counters.counter import Counter, delta_text, read_counter

_STREAMS = "streams of counters"
_SUBJECTS_MAX = 1_024
# Servers refuse these headers beside an increment; the increment itself is `delta`.
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

    A counter is a subject of a stream with `allow_msg_counter`. Its first `incr` creates it, and it
    has no limit of size. It cannot be set: purge its subject to restart it at 0.

    Every call that asks the server raises `TransportError` when no answer comes in time, and
    `NoRespondersError` for a subject that no stream captures.
    """

    def __init__(self, api: Api, stream: str | None = None) -> None:
        self._api = api
        self._stream = stream
        # True once the stream is known to count, which no update changes.
        self._is_checked = False
        # The stream that captures a subject, once looked up.
        self._homes: dict[str, str] = {}

    @shows_fields(StreamFields)
    async def ensure(self, config: StreamConfig | str, **fields: Unpack[StreamFields]) -> Counters:
        """Return the counters of a stream, and create the stream if it does not exist.

        Args:
            config: A configuration, or a name with `StreamConfig`'s fields as keywords.
            fields: Fields of `StreamConfig`. `allow_msg_counter` is set, and so is `allow_direct`,
                which other clients need, if it is not given.

        Raises:
            InvalidConfigError: The stream exists without `allow_msg_counter`, which cannot be
                changed.
            UnsupportedServerError: The server is older than 2.12; nothing was sent.
            ServerError: As for `js.streams.ensure`.
        """
        given = StreamConfig.from_call(config, fields)
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
        """Add to a counter and return its new total.

        Args:
            subject: The counter's subject.
            delta: The increment, of any size; negative to subtract, 0 to only store a message.
            msg_id: Identity of this addition within the stream's duplicate window. With one it is
                safe to repeat the call after an error.
            headers: More headers of the message.
            timeout: Seconds to wait for the ack; None is `request_timeout`.

        Returns:
            The total. A `msg_id` that was added before adds nothing, and returns the total now.

        Raises:
            ConfigError: The delta is no int (bool and float are none), or a header is refused
                beside an increment; nothing was sent.
            UnsupportedServerError: The server is older than 2.12; nothing was sent.
            CounterError: The stream of the subject has no `allow_msg_counter`.
            WrongStreamError: Another stream captures the subject; nothing was sent. If it captured
                the subject only recently it has added the delta, and the error says so.
            RequestTimeoutError: No ack in time; it may be added or not. Repeat the call with the
                same `msg_id`; without one, read the total first.

        Cost: one round trip, one more after a duplicate. The counters of one stream look up the
        stream of each subject once.
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
        with _hint_at_counters():
            ack = await publish(self._api, message, timeout=timeout)
        if self._homes.get(subject, ack.stream) != ack.stream:
            self._homes.pop(subject, None)
        if self._stream is not None and ack.stream != self._stream:
            # Servers refuse an expected stream in a counter's message.
            raise WrongStreamError(
                f"counter {subject} has moved from stream {self._stream} to {ack.stream}, "
                "which has added this",
                hint="take it back there, and look at the subjects of the two",
            )
        if ack.value is not None:
            return ack.value
        if not ack.duplicate:
            raise ProtocolError(f"counter {subject}: the ack of stream {ack.stream} has no total")
        # The ack of a duplicate has no total.
        counter = await self._read(ack.stream, subject)
        if counter is None:
            raise CounterError(
                f"counter {subject}: this was added before, and the counter is gone since",
                hint="it was purged or expired: count again with another msg_id",
            )
        return counter.value

    async def get(self, subject: str) -> Counter | None:
        """Return a counter with its total, or None before its first `incr`.

        Raises:
            CounterError: The stream has no `allow_msg_counter`.

        Cost: one round trip to the stream's leader, so it sees every acknowledged addition; two
        more for the first use of a subject, to find its stream, or one for the first use of the
        counters of one stream.
        """
        with _hint_at_list():
            check_publish_subject(subject)
        # A stream with sources only captures no subject of its own.
        if self._stream is not None:
            return await self._read(await self._own(), subject)
        try:
            return await self._read(await self._home(subject), subject)
        except StreamNotFoundError:
            # It was deleted; another stream may capture the subject now.
            self._homes.pop(subject, None)
            return await self._read(await self._home(subject), subject)

    async def sources(self, subject: str) -> dict[str, dict[str, int]]:
        """Return the totals from other streams in a counter, by stream and by subject there.

        It is empty before the first addition, and for a stream without sources.

        Cost: that of `get`.
        """
        counter = await self.get(subject)
        if counter is None:
            return {}
        return {name: dict(each) for name, each in counter.sources.items()}

    def list(self, filter: str = ">") -> AsyncGenerator[Counter]:  # noqa: A002 - The field's own word.
        """Yield the counters whose subject matches.

        Args:
            filter: Subjects, with wildcards.

        Raises:
            SubjectError: The filter is no subject; nothing was sent.
            CounterError: The stream has no `allow_msg_counter`.
            UnavailableError: At the end: streams of the account cannot be described now, such as
                those without a leader; they may have counters.

        Cost: one request for each counter, 64 at once, and one for each 100,000 names; for
        `js.counters` also the infos of all streams of the account.
        """
        wanted = check_filter(check_text(filter, "filter", error=SubjectError))
        return Flattened(self._lists(wanted), iter)

    async def _lists(self, wanted: str) -> AsyncGenerator[Sequence[Counter]]:
        async for stream in self._streams():
            names, _ = await subjects_held(self._api, stream, [wanted])
            for start in range(0, len(names), IN_FLIGHT_MAX):
                yield await self._read_all(stream, names[start : start + IN_FLIGHT_MAX])

    async def _read(self, stream: str, subject: str) -> Counter | None:
        message = await get_message(self._api, stream, last_by_subject=subject)
        return None if message is None else read_counter(message)

    async def _read_all(self, stream: str, names: Sequence[str]) -> Sequence[Counter]:
        """Read some counters at once, without purged ones."""
        found = await at_once(partial(self._read, stream), names)
        return [each for each in found if each is not None]

    async def _home(self, subject: str) -> str:
        """Return the stream of a subject, looked up once; it must count."""
        home = self._homes.get(subject)
        if home is None:
            try:
                with _hint_at_counters():
                    home = await find_stream(self._api, subject)
            except NoRespondersError as error:
                # Nothing was published, and the call may be meant to open the counters of a stream.
                error.message = f"counter {subject}: no stream captures the subject"
                error.hint += "; the counters of a stream: (await js.streams.get(name)).counters"
                raise
            _check_counts(await stream_info(self._api, home))
            if len(self._homes) >= _SUBJECTS_MAX:
                self._homes.clear()
            self._homes[subject] = home
        return home

    async def _own(self) -> str:
        """Return the stream of these counters; it must count."""
        stream = self._stream or ""
        if not self._is_checked:
            _check_counts(await stream_info(self._api, stream))
            self._is_checked = True
        return stream

    async def _streams(self) -> AsyncGenerator[str]:
        if self._stream is not None:
            yield await self._own()
            return
        async for info in stream_infos(self._api, Gaps(_STREAMS, "raise")):
            if info.config.allow_msg_counter:
                yield info.name

    def __repr__(self) -> str:
        return f"<Counters of {self._stream or 'all streams'}>"


def _check_counts(info: StreamInfo) -> None:
    if not info.config.allow_msg_counter:
        raise CounterError(
            f"stream {info.name} has no counters: allow_msg_counter is not set",
            hint="set it when the stream is created: js.counters.ensure(name, subjects=[...])",
        )


@contextmanager
def _hint_at_counters() -> Generator[None]:
    """Let the error of a subject without a stream name the call that creates one that counts."""
    try:
        yield
    except NoRespondersError as error:
        error.hint = error.hint.replace("js.streams.ensure(", "js.counters.ensure(")
        raise


@contextmanager
def _hint_at_list() -> Generator[None]:
    """Let the error of a wildcard name the call that reads many."""
    try:
        yield
    except SubjectError as error:
        if "wildcard" in error.message:
            error.hint = 'name one counter; counters.list("hits.*") reads many'
        raise


def _with_delta(headers: HeaderValues | None, delta: str) -> HeaderValues:
    """Return the headers with the increment; refuse those that counters refuse."""
    merged = {} if headers is None else copied_headers(headers)
    for name in merged:
        if name in _REFUSED:
            raise ConfigError(
                f"a counter's message with {name}",
                hint="counters accept no expectation, rollup or ttl; use msg_id",
            )
    merged[HeaderName.INCREMENT.value] = delta
    return merged
