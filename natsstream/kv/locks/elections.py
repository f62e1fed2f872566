"""One leader among many candidates: a lock with a visible holder.

Law: the leader holds the lock, so the promises of locks are those of leaders: one at a time, with a
growing token, and the work of a leader that lost its leadership is cancelled.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic

from natsstream.arguments import check_callable, check_seconds, described
from natsstream.errors import ConfigError, ConnectionLostError, LockLostError, UsageError
from natsstream.iteration import Steps
from natsstream.kv.bucket import Bucket
from natsstream.kv.codecs import T
from natsstream.kv.entry import Entry
from natsstream.kv.formats import RAW, ValueFormat
from natsstream.kv.locks.leases import Claim, Terms
from natsstream.kv.locks.lock_key import LockKey
from natsstream.kv.locks.locks import Lock
from natsstream.kv.watch import Watch


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of an election, or its absence.

    Attributes:
        candidate: The leader's name; None if there is no leader.
        revision: The key's revision; those of later leaders are greater.
        since: When that revision was stored, UTC, by the server's clock.
    """

    candidate: str | None
    revision: int
    since: datetime


class Election(Generic[T]):
    """An election on a key; made by `KeyValue.election`.

    Attributes:
        name: The key.
        candidate: The name of this candidate.
    """

    def __init__(
        self, bucket: Bucket, form: ValueFormat[T], name: str, *, candidate: str, terms: Terms
    ) -> None:
        self.name: str = name
        self.candidate: str = candidate
        self._bucket = bucket
        self._form = form
        self._terms = terms
        self._term: Lock[T] | None = None

    @property
    def is_leader(self) -> bool:
        """True while this candidate leads, as far as this process can know."""
        return self._term is not None and self._term.is_held

    def lead(self, *, timeout: float | None = None) -> Lock[T]:
        """Describe one term: `async with election.lead() as term` waits until elected, and leads.

        The block is cancelled when the leadership is lost, and raises LockLostError then. Leaving
        it resigns.

        Args:
            timeout: Seconds to wait for the election; None waits without limit.

        Raises:
            UsageError: This candidate leads or campaigns already.
            ConfigError: The timeout has no legal value.
        """
        if self._term is not None and self._term.is_in_use:
            raise UsageError(
                f"{self.candidate} campaigns in {self.name!r} already",
                hint="make another election for another candidate",
            )
        if timeout is not None:
            check_seconds(timeout, "timeout", may_be_zero=True)
        key = LockKey(self._bucket, self.name, self.candidate, self._terms)
        self._term = Lock(
            key, self._form, timeout_s=timeout, on_loss="cancel", made_by="election.lead"
        )
        return self._term

    async def run(self, work: Callable[[Lock[T]], Awaitable[object]]) -> None:
        """Campaign, and work whenever elected, until the work returns.

        The work is cancelled when the leadership is lost, and starts again with the next term.

        Args:
            work: An async function; it takes the term, with its `token`.

        Raises:
            ConfigError: The work is no async function, or the bucket cannot keep locks.
            NatsStreamError: The bucket is gone, or the user may not use it.
            Exception: An error of the work; the candidate resigns then.
        """
        check_callable(work, "work", takes="the term", count=1)
        while True:
            term = self.lead()
            try:
                async with term:
                    working = work(term)
                    if not inspect.isawaitable(working):
                        raise ConfigError(
                            f"work returned {described(working)}, and nothing to await",
                            hint="write it as async def work(term): ...; put work that blocks into "
                            "await asyncio.to_thread(function, term)",
                        )
                    await working
            except LockLostError as error:
                if (error.name, error.token) != (self.name, term.token):
                    raise  # It is of a lock that the work holds.
            else:
                return

    async def resign(self) -> None:
        """Resign; the term's block continues, and others may lead at once.

        Raises:
            UsageError: This candidate does not lead.
            LockLostError: It was lost before.
        """
        if self._term is None:
            raise UsageError(f"{self.candidate} does not lead in {self.name!r}")
        await self._term.release()

    async def leader(self) -> Leader | None:
        """Return the present leader, or None.

        Raises:
            NatsStreamError: As for `KeyValue.get`.

        Cost: one round trip to the leader of the bucket's stream.
        """
        found = await self._bucket.get(self.name, consistent=True)
        return None if found is None else _leader(found)

    def changes(self) -> AsyncGenerator[Leader]:
        """Yield the leader, then each change, until the loop is left.

        A change to no leader has `candidate=None`; renewals are no changes. Of quick changes only
        the newest may come.

        Raises:
            BucketNotFoundError: The bucket was deleted.
            NatsStreamError: As for `KeyValue.watch`.

        Cost: one consumer on the server.
        """
        return Steps(self._changes())

    async def _changes(self) -> AsyncGenerator[Leader]:
        told: str | None = None
        async with Watch(self._bucket, RAW, (self.name,)) as watch:
            while True:
                try:
                    entry = await anext(watch)
                except ConnectionLostError:
                    continue  # Iterating again retries.
                claim_id = "" if entry.is_deleted else _claim_id(entry)
                if claim_id != told:
                    told = claim_id
                    yield _leader(entry)

    def __repr__(self) -> str:
        return f"<Election {self.name!r}: {self.candidate}{' leads' if self.is_leader else ''}>"


def _leader(entry: Entry) -> Leader:
    candidate = None if entry.is_deleted else Claim.from_bytes(entry.value).holder
    return Leader(candidate, entry.revision, entry.created)


def _claim_id(entry: Entry) -> str:
    # The value of another program has no id: then its text distinguishes two leaders.
    claim = Claim.from_bytes(entry.value)
    return claim.claim_id or f"{claim.holder} "
