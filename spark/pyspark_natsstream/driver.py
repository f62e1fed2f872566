"""The driver's view of one stream: one connection, and retries during an outage.

Law: Spark ends a query at the first exception of a driver hook. So a request that fails during an
outage is retried until `reconnectTimeout`. The first request is not retried: a wrong address fails
at once.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from natsstream import blocking
from natsstream.api.control import named_control
from natsstream.errors import (
    AuthenticationError,
    MessagesLostError,
    NatsStreamError,
    ProtocolError,
    StreamRecreatedError,
    TransportError,
)
from pyspark_natsstream.bucket_options import BucketOptions
from pyspark_natsstream.plan import StreamState, check_retention, replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from natsstream.blocking import JetStream, Stream
    from pyspark_natsstream.offsets import Offset
    from pyspark_natsstream.options import NatsOptions
    from pyspark_natsstream.read_options import ReadOptions

T = TypeVar("T")

STATE_AGE_MAX_S = 0.1
"""Spark asks an idle query 70 times a second; it is answered from the cache for this long."""

RETRY_PAUSE_S = 0.2
# A wait for a server is logged so often.
_TOLD_EACH_S = 10.0

_log = logging.getLogger("pyspark_natsstream")


@contextmanager
def connected(
    options: NatsOptions, first: Callable[[JetStream], T], *, wait_s: float = 0.0
) -> Generator[T]:
    """Open a connection, and yield what is asked first over it.

    Args:
        options: The options of the read or write.
        first: Asks the server.
        wait_s: Seconds to retry both for while no server answers.

    Raises:
        NatsStreamError: There is no server or no stream, or the user has no permission.
    """
    deadline_s = time.monotonic() + wait_s
    told_s = -_TOLD_EACH_S
    with ExitStack() as opened:
        while True:
            try:
                answer = first(opened.enter_context(_connection(options)))
                break
            except NatsStreamError as error:
                opened.close()
                if not is_outage(error) or time.monotonic() >= deadline_s:
                    raise
                if time.monotonic() - told_s >= _TOLD_EACH_S:
                    told_s = time.monotonic()
                    _log.warning("retrying to open stream %s: %s", options.stream, error.message)
                time.sleep(RETRY_PAUSE_S)
        yield answer


def open_stream(options: NatsOptions, *, wait_s: float = 0.0) -> AbstractContextManager[Stream]:
    """Open the options' stream on its own connection; arguments and errors as for `connected`."""
    return connected(options, lambda js: _stream_of(js, options), wait_s=wait_s)


def is_outage(error: NatsStreamError) -> bool:
    """Return True if the same call may succeed when the servers are back."""
    if isinstance(error, AuthenticationError | ProtocolError):
        return False
    return error.retryable or isinstance(error, TransportError)


class StreamWatch:
    """One stream, read over a connection that is kept open and replaced when it breaks.

    For one thread. The first request opens the connection.
    """

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._opened = ExitStack()
        self._stream: Stream | None = None
        self._was_up = False
        self._state: StreamState | None = None
        self._state_time_s = 0.0

    def state(self, *, age_max_s: float = 0.0) -> StreamState:
        """Return the stream's state.

        Args:
            age_max_s: Seconds for which a cached state is good; 0 requests a fresh one.

        Raises:
            ConfigError: The stream's retention is not `limits`.
            NatsStreamError: No answer within `reconnectTimeout`, or the server refused.
        """
        asked_s = time.monotonic()
        if self._state is not None and asked_s - self._state_time_s < age_max_s:
            return self._state
        has_keys = isinstance(self._options, BucketOptions)
        if self._state is None and self._options.subjects and not has_keys:
            # It warns of subjects that can match nothing, which executors would log out of sight.
            self._ask(lambda stream: stream.read(filters=self._options.subjects).bounds())
        self._state = self._ask(_state_of)
        self._state_time_s = asked_s
        return self._state

    def sequence_at(self, time_ns: int) -> int | None:
        """Return the sequence of the first message at or after a time, or None."""
        message = self._ask(lambda stream: stream.get(start_time=time_ns))
        return None if message is None else message.sequence

    def first_of_newest(self, count: int, last_seq: int) -> int:
        """Return the first sequence of the newest messages of `subjects` up to a sequence."""
        filters, control = self._options.subjects, self._options.control

        def find(stream: Stream) -> tuple[int, int]:
            newest = stream.read(newest=count, last_seq=last_seq, filters=filters, control=control)
            return newest.bounds()

        return self._ask(find)[0]

    def hidden_subjects(self) -> str | None:
        """Return the subjects of control records that a read leaves out; None for none."""
        if self._options.control:
            return None
        control = self._ask(lambda stream: named_control(stream.info().config))
        return None if control is None else control.area

    def taken_over(self, offset: Offset, state: StreamState) -> Offset:
        """Return an offset in the stream for one in the stream that it is a restored copy of.

        Any other offset is returned as it is.

        Raises:
            MessagesLostError: The backup was older, and other messages have sequences that were
                read; `failOnDataLoss` is true.
        """
        if offset.created_ns == state.created_ns or not self._options.is_restored(state.created_ns):
            return offset
        # Restored messages keep their times.
        new_seq = self.sequence_at(state.created_ns)
        if new_seq is None or offset.next_seq <= new_seq:
            return state.offset(offset.next_seq)
        error = replaced(offset, state, new_seq)
        if self._options.fail_on_data_loss:
            raise error
        _log.warning("%s", error.message)
        return state.offset(new_seq)

    def past_records(self, start: Offset, state: StreamState) -> Offset:
        """Return an offset behind what has vanished from the stream's beginning without a loss.

        That is control records, which their producers have replaced, and all revisions of a bucket.
        Any other offset is returned as it is.
        """
        last = min(state.earliest_seq, state.stop_seq) - 1
        if start.created_ns != state.created_ns or start.next_seq > last:
            return start
        if not self._options.eviction_is_loss:
            return replace(start, next_seq=last + 1)

        def find(stream: Stream) -> Offset:
            gone = stream.read(
                first_seq=start.next_seq,
                last_seq=last,
                created_ns=start.created_ns,
                eviction_is_loss=True,
            )
            try:
                gone.bounds()
            except (MessagesLostError, StreamRecreatedError):
                return start
            return replace(start, next_seq=last + 1)

        return self._ask(find)

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._stream = None
        self._opened.close()

    def _ask(self, question: Callable[[Stream], T]) -> T:
        deadline_s = time.monotonic() + self._options.reconnect_timeout
        while True:
            try:
                if self._stream is None:
                    self._stream = self._opened.enter_context(open_stream(self._options))
                answer = question(self._stream)
            except NatsStreamError as error:
                self.close()
                left_s = deadline_s - time.monotonic()
                if not (self._was_up and is_outage(error) and left_s > 0):
                    raise
                _log.warning("retrying a request about stream %s: %s", self._options.stream, error)
                time.sleep(min(RETRY_PAUSE_S, left_s))
            else:
                self._was_up = True
                return answer


def _connection(options: NatsOptions) -> blocking.Connection:
    return blocking.connect(
        list(options.servers) or None,
        context=options.context,
        creds=options.creds,
        nkey=options.nkey,
        ca=options.ca,
        cert=options.cert,
        key=options.key,
        # None, not False: the context's setting stays.
        tls_first=options.tls_first or None,
        domain=options.domain,
        api_prefix=options.api_prefix,
        inbox_prefix=options.inbox_prefix,
        request_timeout=options.request_timeout,
        reconnect_timeout=options.reconnect_timeout,
        name=f"spark {options.stream}",
    )


def _stream_of(js: JetStream, options: NatsOptions) -> Stream:
    # A bucket's own look-up says what is wrong with it in its own words.
    if isinstance(options, BucketOptions):
        return js.kv.get(options.bucket).stream
    return js.streams.get(options.stream)


def _state_of(stream: Stream) -> StreamState:
    info = stream.info()
    check_retention(info.config.name, info.config.retention or "limits")
    return StreamState(
        stream=info.config.name,
        created_ns=info.created_ns,
        messages=info.state.messages,
        stored_bytes=info.state.bytes,
        first_seq=info.state.first_seq,
        last_seq=info.state.last_seq,
    )
