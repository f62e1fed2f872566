"""The driver's view of one stream: a kept connection, questions, and patience in an outage.

Law: Spark ends a query at the first exception of a driver hook, so a server that is away for a
while must not become one: questions are asked again until `reconnectTimeout`. The first contact is
not repeated: a wrong address should be told at once.
"""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, TypeVar

from natsstream import blocking
from natsstream.errors import AuthenticationError, NatsStreamError, ProtocolError, TransportError
from pyspark_natsstream.plan import StreamState, check_retention

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from natsstream.blocking import Stream
    from pyspark_natsstream.options import NatsOptions

T = TypeVar("T")

STATE_AGE_MAX_S = 0.1
"""Spark asks an idle query 70 times a second; it is answered from memory for this long."""

RETRY_PAUSE_S = 0.2

_log = logging.getLogger("pyspark_natsstream")


@contextmanager
def open_stream(options: NatsOptions, *, wait_s: float = 0.0) -> Generator[Stream]:
    """Open the stream that the options name, on a connection of its own.

    Args:
        options: The options of the read.
        wait_s: Seconds to try again while there is no answer.

    Raises:
        NatsStreamError: No server, no such stream, no permission.
    """
    deadline_s = time.monotonic() + wait_s
    with ExitStack() as opened:
        while True:
            try:
                js = opened.enter_context(_connection(options))
                stream = js.streams.get(options.stream)
                break
            except NatsStreamError as error:
                opened.close()
                if not is_outage(error) or time.monotonic() >= deadline_s:
                    raise
                _log.warning("opening stream %s again: %s", options.stream, error)
                time.sleep(RETRY_PAUSE_S)
        yield stream


def is_outage(error: NatsStreamError) -> bool:
    """Tell whether the same call may succeed once the servers are back."""
    if isinstance(error, AuthenticationError | ProtocolError):
        return False
    return error.retryable or isinstance(error, TransportError)


class StreamWatch:
    """One stream, asked over a connection that is kept and replaced when it breaks.

    For one thread. Opens nothing until it is asked.
    """

    def __init__(self, options: NatsOptions) -> None:
        self._options = options
        self._opened = ExitStack()
        self._stream: Stream | None = None
        self._was_up = False
        self._state: StreamState | None = None
        self._state_time_s = 0.0

    def state(self, *, age_max_s: float = 0.0) -> StreamState:
        """Return what the stream holds.

        Args:
            age_max_s: How old an answer may be, in seconds; 0 asks the server.

        Raises:
            ConfigError: The stream's retention is not one that can be read.
            NatsStreamError: No answer within `reconnectTimeout`, or the server says no.
        """
        asked_s = time.monotonic()
        if self._state is not None and asked_s - self._state_time_s < age_max_s:
            return self._state
        self._state = self._ask(_state_of)
        self._state_time_s = asked_s
        return self._state

    def sequence_at(self, time_ns: int) -> int | None:
        """Return the sequence of the first message at or after a time, None when there is none."""
        message = self._ask(lambda stream: stream.get(start_time=time_ns))
        return None if message is None else message.sequence

    def close(self) -> None:
        """Close the connection; the next question opens another."""
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
                _log.warning("asking again about stream %s: %s", self._options.stream, error)
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
        # What is left out must not switch off what the context says.
        tls_first=options.tls_first or None,
        domain=options.domain,
        api_prefix=options.api_prefix,
        inbox_prefix=options.inbox_prefix,
        request_timeout=options.request_timeout,
        reconnect_timeout=options.reconnect_timeout,
        name=f"spark {options.stream}",
    )


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
