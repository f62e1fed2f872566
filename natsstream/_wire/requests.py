"""Requests over one connection: one subscription for all answers, one deadline for each.

Law: every future settles, by its answer, by the server's refusal, or by the connection's end; a
request that nobody waits for any more is not sent later.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from natsstream._wire.parser import Frame
from natsstream._wire.permission_violations import denied_error
from natsstream._wire.status import StatusCode, parse_status
from natsstream._wire.subjects import is_same_request
from natsstream.errors import NatsStreamError, NoRespondersError
from natsstream.events import PermissionDenied
from natsstream.own_loop import OwnLoop

RETRY_WAIT_S = 0.25
"""Between two attempts at a request that found no responders (ADR-22)."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    subject: str
    future: asyncio.Future[Frame]


class Requests:
    """The requests of one connection.

    Args:
        inbox_prefix: First tokens of the reply subjects.
        own_loop: The connection's event loop.

    Attributes:
        inbox: Prefix of all reply subjects of this connection.
    """

    def __init__(self, inbox_prefix: str, own_loop: OwnLoop) -> None:
        self._own_loop = own_loop
        self.inbox: str = f"{inbox_prefix}.{secrets.token_hex(11)}"
        self._waiting: dict[bytes, _Waiting] = {}
        # Replies by subject as of the last look, oldest first. A look for each of thousands of
        # denials took seconds; kept up with each request they would cost half of `expect`.
        self._alike: dict[str, deque[bytes]] = {}
        self._looked_at = 0
        self._count = 0
        self._refusal: NatsStreamError | None = None

    @property
    def is_refused(self) -> bool:
        """True while the user may not subscribe to the inbox: all requests have one error."""
        return self._refusal is not None

    def check_inbox(self) -> None:
        """Raise PermissionDeniedError while the user may not subscribe to the inbox."""
        if self._refusal is not None:
            # Raised again and again, it would keep a longer traceback each time.
            raise self._refusal.with_traceback(None)

    def expect(self, subject: str) -> tuple[str, asyncio.Future[Frame]]:
        """Return a reply subject for a request, and the future of its answer.

        The caller waits with a deadline and calls `forget`.

        Raises:
            PermissionDeniedError: The user may not subscribe to the inbox.
            EventLoopError: The connection belongs to another event loop.
        """
        loop = self._own_loop.check()
        self.check_inbox()
        self._count += 1
        reply = f"{self.inbox}.{self._count:x}"
        future: asyncio.Future[Frame] = loop.create_future()
        self._waiting[reply.encode()] = _Waiting(subject, future)
        return reply, future

    def forget(self, reply: str) -> None:
        """Drop a reply subject; an answer that comes later is ignored."""
        waiting = self._waiting.pop(reply.encode(), None)
        if waiting is not None and waiting.future.done() and not waiting.future.cancelled():
            # A caller that was cancelled during a disconnect has not read the error: asyncio would
            # complain.
            waiting.future.exception()

    def settle(self, frames: Sequence[Frame]) -> None:
        """Set answers on their futures; the sink of the inbox."""
        for frame in frames:
            waiting = self._waiting.get(frame[0])
            if waiting is not None and not waiting.future.done():
                waiting.future.set_result(frame)

    def deny(self, event: PermissionDenied) -> None:
        """Fail the oldest request that a permission violation can be about."""
        # The server names the reply if that is what it does not allow.
        waiting = self._open(event.subject.encode("utf-8", "surrogateescape"))
        waiting = waiting or self._oldest(event.subject)
        if waiting is not None:
            waiting.future.set_exception(denied_error(event))

    def _open(self, reply: bytes) -> _Waiting | None:
        """Return the request that waits for a reply; None if it has ended."""
        waiting = self._waiting.get(reply)
        return None if waiting is None or waiting.future.done() else waiting

    def _oldest(self, named: str) -> _Waiting | None:
        """Return the oldest request that a server can mean by a subject; None for none."""
        request = _request(named)
        while True:
            alike = self._alike.get(request, deque[bytes]())
            while alike and self._open(alike[0]) is None:
                alike.popleft()
            for waiting in filter(None, map(self._open, alike)):
                if is_same_request(waiting.subject, named):
                    return waiting
            if self._looked_at == self._count:
                return None
            self._look()

    def _look(self) -> None:
        self._alike, self._looked_at = {}, self._count
        for reply, waiting in self._waiting.items():
            self._alike.setdefault(_request(waiting.subject), deque()).append(reply)

    def refuse(self, error: NatsStreamError) -> None:
        """Fail all requests until `allow`: their answers cannot come."""
        self._refusal = error
        self.lose(lambda: error)

    def allow(self) -> None:
        """Take requests again: a later connection does not refuse the inbox."""
        self._refusal = None

    def lose(self, make_error: Callable[[], NatsStreamError]) -> None:
        """Fail all requests in flight."""
        for waiting in self._waiting.values():
            if not waiting.future.done():
                waiting.future.set_exception(make_error())


def _request(subject: str) -> str:
    """Return the part of a subject by which it is looked up; the same for the same request."""
    return subject.rpartition(".API.")[2]


def check_responders(frame: Frame, subject: str) -> None:
    """Raise NoRespondersError when a frame is the server's 503."""
    if not frame[3] and frame[2]:
        status = parse_status(frame[2])
        if status is not None and status.code == StatusCode.NO_RESPONDERS:
            raise NoRespondersError(
                f"no responders on {subject}",
                hint="is the service running? For JetStream: does a stream capture the subject, "
                "and is JetStream enabled?",
                retryable=True,
            )
