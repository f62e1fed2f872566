"""A lock that expires, with a fencing token against holders that have lost it.

Law: **a holder that does not know whether it holds the lock does not hold it.** It counts on the
lock only until its own clock says that the server may free it; a process that was stopped meanwhile
finds out at its next check. A process may be stopped between the check and a write, so `lock.put`
and every store that compares tokens refuse the late write.
"""

from __future__ import annotations

import asyncio
from typing import Generic, Literal, Self

from natsstream.errors import ConfigError, LockLostError, UsageError, WrongRevisionError
from natsstream.foreign_names import answers_names
from natsstream.kv.codecs import T
from natsstream.kv.formats import ValueFormat
from natsstream.kv.locks.acquisition import Acquisition
from natsstream.kv.locks.lease_renewer import LeaseRenewer
from natsstream.kv.locks.leases import Lease, check_bucket, now_ns
from natsstream.kv.locks.lock_key import LockKey
from natsstream.kv.status import BucketStatus

_RETRY_S = 0.1


@answers_names("lock", calls=False)
class Lock(Generic[T]):
    """A lock on a key that expires; made by `KeyValue.lock`, held in its `async with` block.

    Attributes:
        name: The key.
        holder: This holder's name, for others to see.
    """

    def __init__(
        self,
        key: LockKey,
        form: ValueFormat[T],
        *,
        timeout_s: float | None,
        on_loss: Literal["cancel", "tell"],
        made_by: str = "kv.lock",
    ) -> None:
        self.name: str = key.name
        self.holder: str = key.holder
        self._key = key
        self._bucket = key.bucket
        self._form = form
        self._timeout_s = timeout_s
        self._cancels_on_loss = on_loss == "cancel"
        self._made_by = made_by
        self._keeper: LeaseRenewer | None = None
        self._is_entered = False
        self._is_refused = False
        # The task that is cancelled by a loss, how many cancels it had before, and whether it was.
        self._owner: asyncio.Task[object] | None = None
        self._cancels_before = 0
        self._has_cancelled = False

    # Acquire and release.

    async def __aenter__(self) -> Self:
        """Wait for the lock and hold it.

        Raises:
            LockHeldError: Another holder had it all the time; `holder` is its name.
            ConfigError: The bucket cannot keep locks; the hint has the missing settings.
            BucketNotFoundError: The bucket was deleted.
            LockLostError: It was acquired and lost before the block began.
            ConnectionLostError: The server was away until `timeout`.
            NatsStreamError: The server did not answer until `timeout`.

        Cost: one round trip if the lock was never held or was free for its ttl, else three. While
        waiting one consumer, and a round trip when the lock becomes free.
        """
        if self._is_entered:
            raise UsageError("a lock is entered once", hint=f"call {self._made_by}() again")
        self._is_entered = True
        try:
            await self._check_bucket()
            await Acquisition(self._key, self._hold).run(self._timeout_s)
            self.check()
        except BaseException:
            self._is_refused = True
            if self._keeper is not None:
                await self._keeper.leave()
            elif self._key.is_unsure:
                giving_back = self._key.endings.begin(self._key.give_back(None))
                if self._bucket.is_connected:  # Else there is nothing to wait for.
                    await asyncio.shield(giving_back)
            raise
        self._owner = asyncio.current_task()
        self._cancels_before = 0 if self._owner is None else self._owner.cancelling()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release the lock.

        Raises:
            LockLostError: It was lost before the block ended, also where the block was cancelled
                because of that. Another error of the block takes precedence.
        """
        keeper = self._held()
        loss = keeper.look(is_told=True)
        try:
            await keeper.leave()
        except asyncio.CancelledError:
            if not self._takes_back_cancel():
                raise
            is_by_loss = True
        else:
            is_by_loss = self._takes_back_cancel()
        is_good = kind is None or (is_by_loss and issubclass(kind, asyncio.CancelledError))
        if is_good and loss is not None:
            raise loss from None

    async def release(self) -> None:
        """Release the lock before the block ends; twice is fine.

        Raises:
            LockLostError: It was lost before.
            UsageError: It was never held.
        """
        keeper = self._held()
        if not keeper.is_left:
            self.check()
        elif keeper.loss is not None:
            raise keeper.loss
        await keeper.leave()

    # State.

    @property
    def is_held(self) -> bool:
        """True while this holder has the lock, as far as this process can know."""
        keeper = self._keeper
        return keeper is not None and not keeper.is_left and keeper.look() is None

    @property
    def is_in_use(self) -> bool:
        """True while it is awaited or held: from entering it to its refusal, loss or release."""
        keeper = self._keeper
        is_ended = keeper is not None and (keeper.is_left or keeper.loss is not None)
        return self._is_entered and not self._is_refused and not is_ended

    @property
    def token(self) -> int:
        """The fencing token: the revision of the acquisition; later holders have greater ones.

        Raises:
            UsageError: The lock was never held.
        """
        return self._held().lease.token

    @property
    def revision(self) -> int:
        """The present revision of the key; renewals change it.

        Raises:
            UsageError: The lock was never held.
        """
        return self._held().lease.revision

    @property
    def remaining(self) -> float:
        """Seconds until this holder counts the lock as lost, unless renewed; 0 if not held."""
        return self._held().lease.remaining_s(now_ns()) if self.is_held else 0.0

    def check(self) -> None:
        """Raise if the lock is not held.

        Raises:
            LockLostError: It is lost.
            UsageError: It was never held, or is released.
        """
        keeper = self._held()
        loss = keeper.look(is_told=self._is_asked_by_owner())
        if loss is not None:
            raise loss
        if keeper.is_left:
            raise self._given_back()

    async def lost(self) -> LockLostError:
        """Wait until the lock is lost, and return the error.

        Raises:
            UsageError: It was released, or never held.
        """
        keeper = self._held()
        await keeper.ended()
        if keeper.loss is None:
            raise self._given_back()
        return keeper.loss

    async def put(self, key: str, value: T) -> int:
        """Store a value of the same bucket if the lock is held, and return its revision.

        The server itself compares revisions, so a holder that has lost the lock changes nothing,
        even if it does not know of the loss yet.

        Raises:
            LockLostError: The lock is lost; nothing was written.
            UsageError: It was never held, or is released.
            ConfigError: The key is the lock's own.
            NatsStreamError: As for `KeyValue.put`.

        Cost: one round trip, behind other guarded writes and renewals in flight.
        """
        keeper = self._held()
        if key == self.name:
            raise ConfigError(
                f"key {key!r} is the lock itself: a value there would end it",
                hint="give the key of what the lock protects",
            )
        data = self._form.to_bytes(value, bucket=self._bucket.name, key=key)
        while True:
            async with keeper.turn:
                self.check()
                lease = keeper.lease
                try:
                    return await self._bucket.put_guarded(
                        key, data, guard=self.name, revision=lease.revision
                    )
                except WrongRevisionError as error:
                    if not error.retryable and not self._key.is_unsure and not keeper.is_left:
                        loss = self._key.lost(lease, "its key has changed")
                        raise keeper.lose(loss, is_told=self._is_asked_by_owner()) from error
            # A renewal, or another guarded write, is in flight.
            await asyncio.sleep(_RETRY_S)

    # Internals.

    async def _check_bucket(self) -> None:
        try:
            check_bucket(BucketStatus.from_stream(self._bucket.stream.cached), self._key.terms)
        except UsageError:  # It may have been changed since it was opened.
            check_bucket(await self._bucket.status(), self._key.terms)

    def _hold(self, lease: Lease) -> None:
        self._keeper = LeaseRenewer(self._key, lease, self._on_loss)

    def _on_loss(self) -> None:
        if self._cancels_on_loss and self._owner is not None:
            self._has_cancelled = self._owner.cancel()

    def _is_asked_by_owner(self) -> bool:
        owner = self._owner
        return owner is not None and owner is asyncio.current_task(owner.get_loop())

    def _takes_back_cancel(self) -> bool:
        """Return True, and take the cancel back, if the loss alone has cancelled the block."""
        if not self._has_cancelled or self._owner is None:
            return False
        self._has_cancelled = False
        return self._owner.uncancel() <= self._cancels_before

    def _held(self) -> LeaseRenewer:
        if self._keeper is None:
            raise UsageError(
                f"lock {self.name!r} is not held yet",
                hint=f"use it as `async with {self._made_by}(...)`",
            )
        return self._keeper

    def _given_back(self) -> UsageError:
        return UsageError(f"lock {self.name!r} is given back", hint=f"call {self._made_by}() again")

    def __repr__(self) -> str:
        if self._keeper is None:
            return f"<Lock {self.name!r} not held>"
        keeper, state = self._keeper, "held"
        if keeper.loss is not None or not keeper.lease.is_good(now_ns()):
            state = "lost"
        if keeper.is_left and keeper.loss is None:
            state = "given back"
        return f"<Lock {self.name!r} {state}, token {keeper.lease.token}>"
