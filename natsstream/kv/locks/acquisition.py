"""Waiting for a lock: one try, then one whenever its key becomes free.

Law: nothing polls, and the wait ends at its timeout. A waiting task knows the marker that frees the
key, and claims over it in one round trip; a new one needs three. So a holder that releases the lock
and takes it again at once comes behind the waiting ones, unless it is much nearer to the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from natsstream.errors import LockHeldError, NatsStreamError, NoRespondersError
from natsstream.kv.entry import Entry
from natsstream.kv.formats import RAW
from natsstream.kv.locks.leases import EXPIRY_GRACE_S, Claim, Lease
from natsstream.kv.locks.lock_key import LockKey
from natsstream.kv.watch import Watch

_RETRY_S = 0.1
_ATTEMPT_MAX_S = 5.0
_ASK_WHO_S = 1.0


class Acquisition:
    """One wait for a lock.

    Args:
        key: The key.
        on_lease: Called with the lease at the moment that it is got.
    """

    def __init__(self, key: LockKey, on_lease: Callable[[Lease], None]) -> None:
        self._key = key
        self._on_lease = on_lease
        self._is_got = False
        # Until there is an answer, that is what is told.
        self._trouble: NatsStreamError | None = key.no_answer("claim")
        self._found: Entry | None = None

    async def run(self, timeout_s: float | None) -> None:
        """Wait until the lock is got.

        Args:
            timeout_s: Seconds to wait; 0 is one try, None is as long as it takes.

        Raises:
            LockHeldError: Another held it all the time.
            ConnectionLostError: No server was connected at the end.
            NatsStreamError: The last try had no answer, or no try can be of use.
        """
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            async with asyncio.timeout(timeout_s or None) as limit:
                await self._try(0)
                while not self._is_got and timeout_s != 0:
                    await self._follow(limit)
        except TimeoutError:
            pass
        if self._is_got:
            return
        if not self._key.bucket.is_connected:
            raise self._key.away(loop.time() - begun) from self._trouble
        raise self._trouble or await self._held()

    async def _follow(self, limit: asyncio.Timeout) -> None:
        """Try whenever the key becomes free, until the lock is got or the watch breaks."""
        marker = 0
        try:
            # It is open before the first try, so that no marker is missed.
            async with Watch(self._key.bucket, RAW, (self._key.name,)) as watch:
                while True:
                    await self._try(marker)
                    if self._is_got:
                        limit.reschedule(None)  # Only the clean-up is left.
                        return
                    if self._trouble is None:
                        marker = await self._next_marker(watch)
                    else:
                        await asyncio.sleep(_RETRY_S)
        except NatsStreamError as error:
            self._note(error)
            await asyncio.sleep(_RETRY_S)

    async def _next_marker(self, watch: Watch) -> int:
        """Wait for the marker that frees the key and return its revision, or 0 if it is late."""
        # The server's notice of an expiry may be missed while it is away: then try anyway.
        own_ttl_s = self._key.terms.ttl_s
        patience_s = own_ttl_s + EXPIRY_GRACE_S
        while True:
            try:
                async with asyncio.timeout(patience_s):
                    entry = await anext(watch)
            except TimeoutError:
                return 0
            while (later := watch.take_ready()) is not None:
                entry = later
            if entry.is_deleted:
                return entry.revision
            self._found = entry
            patience_s = (Claim.from_bytes(entry.value).ttl_s or own_ttl_s) + EXPIRY_GRACE_S

    async def _try(self, marker: int) -> None:
        """Claim the key once, and note what passing trouble was in the way."""
        limit_s = min(_ATTEMPT_MAX_S, self._key.terms.ttl_s)
        try:
            lease = await self._key.take(limit_s, marker=marker)
        except NatsStreamError as error:
            self._note(error)
            return
        self._trouble = None
        if lease is not None:
            self._is_got = True
            self._on_lease(lease)

    def _note(self, error: NatsStreamError) -> None:
        if not error.retryable and not isinstance(error, NoRespondersError):
            raise error
        self._trouble = error

    async def _held(self) -> LockHeldError:
        name, bucket = self._key.name, self._key.bucket
        if self._found is None:  # One try, or too short a wait to see it.
            with suppress(NatsStreamError, TimeoutError):
                async with asyncio.timeout(_ASK_WHO_S):
                    self._found = await bucket.get(name, consistent=True)
        claim = None if self._found is None else Claim.from_bytes(self._found.value)
        holder = "" if claim is None else claim.holder
        hint = "wait longer: timeout=..., or find out why its holder keeps it"
        if self._found is not None and self._stays(self._found):
            hint = (
                f"key {name!r} has a value that is no lock and does not expire: lock another key, "
                "or delete this one"
            )
        error = LockHeldError(
            f"lock {name!r} of bucket {bucket.name} is held by {holder or 'another'}",
            hint=hint,
            retryable=True,
        )
        error.name, error.holder = name, holder
        return error

    def _stays(self, found: Entry) -> bool:
        """Return True for a value that somebody has put, which nothing removes."""
        is_lock = bool(Claim.from_bytes(found.value).claim_id)
        return not is_lock and (found.ttl or -1) < 0 and not self._key.bucket.config.max_age
