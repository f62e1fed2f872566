"""The arrays of a core stream: edits are told from here, and calls wait here for messages.

Law: an edit is told after the arrays have it, and before anything else is awaited.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from natsstream.api.message import Message
from natsstream.conat.blobs import Blobs
from natsstream.conat.headers import is_big
from natsstream.conat.names import KeySubjects
from natsstream.conat.reconcile import Doubt, Edit, Reconciler
from natsstream.conat.record import Record
from natsstream.errors import NatsStreamError, RequestTimeoutError
from natsstream.units import NS_PER_SECOND
from natsstream.waiters import Waiters

CALL_WAIT_S = 30.0
"""Seconds that a call waits for what the server has confirmed, as Conat's requests do."""

# The copy of an own message comes before its ack, unless it was lost.
_COPY_WAIT_S = 1.0
_TIMES_KEPT = 4_096

OnEdit = Callable[[Edit], None]


class Arrays:
    """The arrays of one core stream; the feed and the answers to questions change them.

    Args:
        names: The core stream's names.
        blobs: Its big values; None if it cannot have any.
        on_edit: Called with each edit after `begin`; must not wait and must not raise.
        start_seq: The first sequence to load; None is the first.

    Attributes:
        names: As given.
        reconciler: The rules that hold them.
        wake: Set when there may be something to ask the server.
        suspected: The worst doubt since the stream's info was asked for, which cannot settle it.
        clock_offset_ns: Nanoseconds that the server's clock is ahead of ours.
        error: The error that has ended them.
        is_closed: True after the end.
    """

    def __init__(
        self,
        names: KeySubjects,
        blobs: Blobs | None,
        on_edit: OnEdit,
        *,
        start_seq: int | None = None,
    ) -> None:
        self.names: KeySubjects = names
        self.reconciler: Reconciler = Reconciler(start_seq=start_seq or 1)
        self.wake: asyncio.Event = asyncio.Event()
        self.suspected: Doubt = Doubt.NONE
        self.clock_offset_ns: int = 0
        self.error: NatsStreamError | None = None
        self.is_closed: bool = False
        self._blobs = blobs
        self._on_edit = on_edit
        self._is_loaded = False
        self._expiry: asyncio.TimerHandle | None = None
        # Calls that wait for a sequence in a life of the stream.
        self._waiters: Waiters[tuple[int, int]] = Waiters()
        # When the newest messages were stored, by sequence: acks do not tell.
        self._times_ns: dict[int, int] = {}

    def begin(self) -> None:
        """Tell edits from now on: the first load is over."""
        self._is_loaded = True

    def end(self) -> None:
        """End all waits; ending twice is fine."""
        self.is_closed = True
        self._cancel_expiry()
        self._waiters.release_all()

    def check(self) -> None:
        """Raise the error that has ended them."""
        if self.error is not None:
            raise self.error.with_traceback(None)

    def now_ns(self) -> int:
        """Return the time by the server's clock, in Unix nanoseconds."""
        return time.time_ns() + self.clock_offset_ns

    # Changing.

    def take(self, edits: Iterable[Edit], *, is_told: bool = True) -> None:
        """Make edits, and tell each of them."""
        rules, life = self.reconciler, self.reconciler.life
        for edit in edits:
            if edit.previous is not None and self._blobs is not None:
                self._blobs.note(edit)
            if is_told and self._is_loaded:
                self._on_edit(edit)
        if life != rules.life:
            self._times_ns.clear()
        if rules.doubt or rules.is_behind:
            self.wake.set()
        self._plan_expiry()
        self._arrive()

    def suspect(self, doubt: Doubt) -> None:
        """Compare with the stream, by an answer that is asked for from now on."""
        self.suspected = max(self.suspected, doubt)
        self.reconciler.suspect(doubt)
        self.wake.set()

    def expect(self, seq: int) -> None:
        """Ask for a message that is stored, and did not come."""
        self.reconciler.expect(seq)
        self.wake.set()

    def record(self, message: Message) -> Record:
        """Return a stored message as a record; a big value that is held need not be read again."""
        subject = message.subject
        key_subject = subject if self.names.is_keyed(subject) else ""
        block = message.header_block
        if is_big(block):
            held = self.reconciler.log.find(message.sequence)
            if held is not None and held.time_ns == message.time_ns:
                return held
        return Record(message.sequence, message.time_ns, key_subject, block, message.data)

    def note_time(self, record: Record) -> None:
        """Remember when a message was stored, for its writer."""
        self._times_ns[record.seq] = record.time_ns
        if len(self._times_ns) > _TIMES_KEPT:
            del self._times_ns[next(iter(self._times_ns))]

    # Waiting.

    async def reach(self, seq: int) -> None:
        """Wait until the arrays have passed a stored message.

        Raises:
            RequestTimeoutError: They have not, because the server no longer answers.
        """
        rules = self.reconciler
        life = rules.life
        if seq > rules.applied:
            await self._wait_for(seq, life, _COPY_WAIT_S)
        if seq > rules.applied and life == rules.life and not self.is_closed:
            self.expect(seq)
            await self._wait_for(seq, life, CALL_WAIT_S)
        self.check()
        if seq > rules.applied and life == rules.life and not self.is_closed:
            raise RequestTimeoutError(
                f"message {seq} is stored, and was not received in {CALL_WAIT_S:.0f} s",
                hint="the arrays get it when the server answers again",
            )

    async def stored_ns(self, seq: int) -> int | None:
        """Wait as `reach` does; return when the message was stored, in Unix nanoseconds.

        None is for a message that was never seen.
        """
        await self.reach(seq)
        held = self.reconciler.log.find(seq)
        return self._times_ns.get(seq) if held is None else held.time_ns

    async def _wait_for(self, seq: int, life: int, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._waiters.wait((life, seq))

    def _arrive(self) -> None:
        # Those of an earlier life stand before it: they wait for nothing any more.
        self._waiters.release_below((self.reconciler.life, self.reconciler.applied + 1))

    # Time.

    def _plan_expiry(self) -> None:
        """Let the next message expire at its moment, whether or not the server answers."""
        expiry_ns = self.reconciler.next_expiry_ns
        if expiry_ns is None or not self._is_loaded or self.is_closed:
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + (expiry_ns - self.now_ns()) / NS_PER_SECOND
        if self._expiry is None or at < self._expiry.when():
            self._cancel_expiry()
            self._expiry = loop.call_at(at, self._expire)

    def _expire(self) -> None:
        self._expiry = None
        self.take(self.reconciler.tick(self.now_ns()))

    def _cancel_expiry(self) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
