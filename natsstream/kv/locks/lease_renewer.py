"""Keeps a lease: renews it in time, and knows when it is lost.

Law: the lease ends by the clock whatever the renewals do; a loss is final.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from natsstream.errors import LockLostError, NatsStreamError
from natsstream.kv.locks.leases import Lease, now_ns
from natsstream.kv.locks.lock_key import LockKey
from natsstream.own_loop import OwnLoop
from natsstream.units import NS_PER_SECOND

_RETRY_S = 0.1

_log = logging.getLogger("natsstream.kv")


class LeaseRenewer:
    """Renews a lease until it is given back or lost.

    Args:
        key: The key that is held.
        lease: The lease that it was taken with.
        on_loss: Called once when it is lost, unless who finds it is told by an error.

    Attributes:
        lease: The newest lease.
        loss: How it was lost; None while it is held, and when it was given back before.
        is_left: Whether it is given back, or on the way.
        turn: Held by what expects the key's revision: a renewal changes it.
    """

    def __init__(self, key: LockKey, lease: Lease, on_loss: Callable[[], None]) -> None:
        self.lease: Lease = lease
        self.loss: LockLostError | None = None
        self.is_left: bool = False
        self.turn: asyncio.Lock = asyncio.Lock()
        self._key = key
        self._on_loss = on_loss
        self._has_ended = asyncio.Event()
        self._own_loop = OwnLoop()
        self._end = self._timer()
        self._renewing = asyncio.create_task(self._renew_always())
        self._giving_back: asyncio.Task[None] | None = None

    def look(self, *, is_told: bool = False, trouble: str = "") -> LockLostError | None:
        """Return how it was lost, None while it is held; a lease that has ended is a loss.

        Args:
            is_told: Whether who asks raises the error in the holder.
            trouble: Why it could not be renewed, if that is known.
        """
        if self.loss is None and not self.is_left and not self.lease.is_good(now_ns()):
            why = "it could not be renewed before the server may give it to another"
            error = self._key.lost(self.lease, why, detail=trouble)
            if not self._own_loop.is_running_here:
                return error  # The timer takes it for lost in the loop's thread.
            self.lose(error, is_told=is_told)
        return self.loss

    def lose(self, error: LockLostError, *, is_told: bool = False) -> LockLostError:
        """Take it for lost, and return the error that tells so: the first one counts."""
        if self.loss is None and not self.is_left:
            self.loss = error
            self._has_ended.set()
            _log.warning("%s", error.message)
            if not is_told:
                self._on_loss()
        return self.loss or error

    async def ended(self) -> None:
        """Wait until it is lost or given back."""
        self._own_loop.check()
        await self._has_ended.wait()

    async def leave(self) -> None:
        """Stop, and give the key back.

        A caller that is cancelled once waits for that all the same. One that is cancelled again
        does not wait; the key is given back still.
        """
        self._own_loop.check()
        self.is_left = True
        self._has_ended.set()
        self._end.cancel()
        self._renewing.cancel()
        if self._giving_back is None:
            self._giving_back = self._key.endings.begin(self._give_back())
        try:
            await asyncio.shield(self._giving_back)
        except asyncio.CancelledError:
            await asyncio.wait([self._giving_back])
            raise

    async def _give_back(self) -> None:
        await asyncio.wait([self._renewing])
        await self._key.give_back(self.lease)

    def _timer(self) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        return loop.call_later(self.lease.remaining_s(now_ns()), self._on_end)

    def _on_end(self) -> None:
        # Timers may come early by a clock's tick.
        if not self.is_left and self.look() is None:
            self._end = self._timer()

    async def _renew_always(self) -> None:
        while self.loss is None:
            due_ns = self.lease.sent_ns + round(self.lease.terms.renew_every_s * NS_PER_SECOND)
            await asyncio.sleep(max(due_ns - now_ns(), 0) / NS_PER_SECOND)
            await self._renew()

    async def _renew(self) -> None:
        """Renew once, with as many tries as the lease has time for."""
        trouble = ""
        while self.loss is None and self.lease.is_good(now_ns()):
            try:
                async with self.turn:
                    left_s = self.lease.remaining_s(now_ns())
                    limit_s = min(self.lease.terms.renew_every_s, left_s)
                    self.lease = await self._key.renew(self.lease, limit_s)
            except LockLostError as error:
                self.lose(error)
                return
            except NatsStreamError as error:
                trouble = error.message
                await asyncio.sleep(min(_RETRY_S, self.lease.terms.renew_every_s))
            else:
                self._end.cancel()
                self._end = self._timer()
                return
        self.look(trouble=trouble)
