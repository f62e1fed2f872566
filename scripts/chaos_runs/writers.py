"""The writers of a run: one publish after the other, and pipelined publishers of each kind.

Law: what a writer writes down is what the documentation of its call says that its outcome means.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from functools import partial

from natsstream import JetStream, NatsStreamError, PubAck, Publisher
from natsstream.errors import NoRespondersError, UsageError
from scripts.chaos_runs.ledger import WriterBook
from scripts.chaos_runs.letters import HEADER, make_letter
from scripts.chaos_runs.load import REQUEST_S, Load
from scripts.chaos_runs.watch import GRACE_S, Activity

# Of one writer: the machine is shared with the servers and with others.
LETTERS_PER_S = 100
_BURST = 10
_RESEND_FOR_S = 60.0
_RESEND_WAIT_S = 0.25
_ACK_TIMEOUT_S = 4.0
_RETRY_FOR_S = 30.0
_MAX_PENDING = 256
# A publisher is left and opened again after so many messages; one time in so many by an error.
_SESSION = (100, 1_500)
_LEFT_BY_ERROR_PART = 0.25


class _LeftError(Exception):
    """A publisher's block is left by an error."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a publisher works.

    Attributes:
        retry_for: As for `JetStream.publisher`.
        max_pending: As for `JetStream.publisher`; 1 keeps the order.
        letters_per_s: Messages in a second, at most.
    """

    retry_for: float | None
    max_pending: int = _MAX_PENDING
    letters_per_s: int = LETTERS_PER_S


WAYS: dict[str, Way] = {
    "once": Way(None),
    "again": Way(_RETRY_FOR_S),
    "ordered": Way(_RETRY_FOR_S, max_pending=1),
}


async def publish_singly(load: Load, js: JetStream, book: WriterBook) -> None:
    """Publish one message after the other, each with an id, and again until it is acknowledged."""
    activity = load.watch.activity(book.name)
    loop = asyncio.get_running_loop()
    while not load.writing_is_over.is_set() and not book.is_full:
        number = book.begin()
        give_up = loop.time() + _RESEND_FOR_S
        while not await _publish(load, js, book, number, activity):
            if loop.time() >= give_up:
                book.unknown(number)
                break
            await asyncio.sleep(_RESEND_WAIT_S)
        await load.pause(1 / LETTERS_PER_S)


async def _publish(
    load: Load, js: JetStream, book: WriterBook, number: int, activity: Activity
) -> bool:
    letter = make_letter(book.index, number)
    headers = {HEADER: letter.mark}
    try:
        with activity.limit("publish", REQUEST_S):
            ack = await js.publish(letter.subject, letter.data, headers=headers, msg_id=letter.mark)
    except NatsStreamError as error:
        load.note(book.name, error)
        return False
    book.acked(number, ack.sequence, duplicate=ack.duplicate)
    return True


async def publish_pipelined(load: Load, js: JetStream, book: WriterBook, way: Way) -> None:
    """Publish through pipelined publishers, one after the other."""
    draw = load.draw(book.name)
    activity = load.watch.activity(book.name)
    while not load.writing_is_over.is_set() and not book.is_full:
        session = _Session(load, book, way, activity)
        try:
            async with js.publisher(
                max_pending=way.max_pending,
                ack_timeout=_ACK_TIMEOUT_S,
                retry_for=way.retry_for,
            ) as publisher:
                await session.send_letters(publisher, draw)
                activity.task = asyncio.current_task()
                session.begin_flush()
        except _LeftError:
            load.counts["publishers left by an error"] += 1
        except NatsStreamError as error:
            load.note(book.name, error)
        finally:
            session.end()
        load.counts["publishers"] += 1


class _Session:
    """One publisher's block: what was sent in it, and how that ended."""

    def __init__(self, load: Load, book: WriterBook, way: Way, activity: Activity) -> None:
        self._load = load
        self._book = book
        self._way = way
        self._activity = activity
        self._open: dict[int, float] = {}
        # No message waits for longer, and so nothing that waits for messages.
        self._settle_s = _ACK_TIMEOUT_S + (way.retry_for or 0.0)

    async def send_letters(self, publisher: Publisher, draw: random.Random) -> None:
        """Send some messages in bursts."""
        book, load = self._book, self._load
        count = draw.randint(*_SESSION)
        is_left = draw.random() < _LEFT_BY_ERROR_PART
        for index in range(count):
            if load.writing_is_over.is_set() or book.is_full:
                return
            await self._send(publisher)
            if index % _BURST == 0:
                await load.pause(_BURST / self._way.letters_per_s)
            self._check_overdue()
        if is_left:
            raise _LeftError

    async def _send(self, publisher: Publisher) -> None:
        book = self._book
        number = book.begin()
        letter = make_letter(book.index, number)
        headers = {HEADER: letter.mark}
        # The first one looks at the stream as well: two requests.
        limit_s = self._settle_s + 2 * REQUEST_S
        try:
            with self._activity.limit("send", limit_s):
                future = await publisher.send(letter.subject, letter.data, headers=headers)
        except NatsStreamError as error:
            self._load.note(book.name, error)
            book.refused(number)
            await asyncio.sleep(_RESEND_WAIT_S)
            return
        self._open[number] = asyncio.get_running_loop().time()
        future.add_done_callback(partial(self._settle, number))

    def _settle(self, number: int, future: asyncio.Future[PubAck]) -> None:
        book, load = self._book, self._load
        self._open.pop(number, None)
        if future.cancelled():
            load.findings.add("future", f"{book.name}: message {number} was cancelled")
            return
        error = future.exception()
        if error is None:
            ack = future.result()
            book.acked(number, ack.sequence, duplicate=ack.duplicate)
            if ack.duplicate and self._way.retry_for is None:
                load.findings.add("future", f"{book.name}: message {number} without id: {ack}")
            return
        load.note(book.name, error)
        if self._way.retry_for is None and isinstance(error, NoRespondersError | UsageError):
            book.refused(number)
        else:
            book.unknown(number)

    def _check_overdue(self) -> None:
        """The oldest message that waits must not have waited for too long."""
        for number, since in self._open.items():
            waited_s = asyncio.get_running_loop().time() - since
            if waited_s > self._settle_s + GRACE_S:
                self._load.findings.add(
                    "hangs", f"{self._book.name}: message {number} has waited for {waited_s:.0f} s"
                )
            return

    def begin_flush(self) -> None:
        """Say that the block is about to end, which waits for all acks."""
        self._activity.what = "leave"
        self._activity.deadline = asyncio.get_running_loop().time() + self._settle_s + GRACE_S

    def end(self) -> None:
        """Everything has settled when the block is left; callbacks may be a turn behind."""
        self._activity.what = ""
        asyncio.get_running_loop().call_later(1.0, self._check_settled)

    def _check_settled(self) -> None:
        if self._open:
            self._load.findings.add(
                "future", f"{self._book.name}: {len(self._open)} never settled: {[*self._open][:5]}"
            )
