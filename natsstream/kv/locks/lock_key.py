"""One lock's key: claimed, renewed, given back.

Law: a request without an answer may have been stored at any time. So what is found stored counts
from the first request that may have stored it, and only the holder's own id makes it the holder's.
A request whose caller is cancelled continues, so that `give_back` learns its outcome: reading the
key instead may be faster than the request in flight.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from contextlib import suppress

from natsstream.errors import (
    BucketNotFoundError,
    ConnectionLostError,
    KeyExistsError,
    LockLostError,
    NatsStreamError,
    RequestTimeoutError,
    WrongLastSequenceError,
    WrongRevisionError,
)
from natsstream.kv.bucket import Bucket
from natsstream.kv.entry import Entry
from natsstream.kv.locks.leases import Claim, Lease, Terms, begun, now_ns
from natsstream.streams.endings import Endings

_CLEAN_UP_S = 2.0
_RETRY_S = 0.05


class LockKey:
    """Claims and keeps one key for one holding.

    Args:
        bucket: The bucket.
        name: The key.
        holder: The holder's name.
        terms: For how long.

    Attributes:
        endings: Carries out what removes the key, also when its caller is cancelled meanwhile.
    """

    def __init__(self, bucket: Bucket, name: str, holder: str, terms: Terms) -> None:
        self.bucket: Bucket = bucket
        self.name: str = name
        self.holder: str = holder
        self.terms: Terms = terms
        self.endings: Endings = bucket.endings
        self._claim = Claim(holder, uuid.uuid4().hex, terms.ttl_s)
        self._value = self._claim.to_bytes()
        # When the first request was sent that has no answer: it may be stored, or may be yet.
        self._unsure_ns: int | None = None
        self._request: asyncio.Task[int] | None = None

    async def take(self, timeout_s: float, *, marker: int = 0) -> Lease | None:
        """Claim the key; None where another has it.

        Args:
            timeout_s: Seconds to wait for an answer.
            marker: The revision of the marker that is known to free the key; 0 for none. Over a
                known one it is claimed in one round trip.

        Raises:
            NatsStreamError: As for `create`; the key may be claimed by now.
        """
        if marker:
            sent_ns = now_ns()
            try:
                revision = await self._asked(self._update(marker), "claim", timeout_s)
                return await self._believed(None, revision, sent_ns)
            except WrongRevisionError as error:
                is_newer = error.revision is not None and error.revision > marker
                if is_newer and not self.is_unsure:
                    return None  # Another was faster.
        sent_ns = now_ns()
        create = self.bucket.create(self.name, self._value, ttl=self.terms.ttl_s, is_lock=True)
        try:
            revision = await self._asked(create, "claim", timeout_s)
        except KeyExistsError:
            if not self.is_unsure:
                return None
            # An earlier claim may be what exists.
            found = await self._own(timeout_s)
            if found is None:
                return None
            revision, sent_ns = found.revision, self._unsure_ns or sent_ns
        return await self._believed(None, revision, sent_ns)

    async def renew(self, lease: Lease, timeout_s: float) -> Lease:
        """Write the key again, so that it lives on, and return the lease that follows.

        Args:
            lease: The one that is held; it must be good still.
            timeout_s: Seconds to wait for an answer.

        Raises:
            LockLostError: The key is another's or nobody's by now, or the answer came too late.
            NatsStreamError: As for `update`; retrying is right while the lease is good.
        """
        sent_ns = now_ns()
        try:
            revision = await self._asked(self._update(lease.revision), "renewal", timeout_s)
        except WrongRevisionError as error:
            found = await self._newest(timeout_s)
            if found is None or not self._is_own(found):
                raise self.lost(lease, _whose(found)) from error
            if found.revision <= lease.revision:
                # An earlier renewal is in flight, or the answer is of a former leader.
                raise
            revision, sent_ns = found.revision, self._unsure_ns or sent_ns
        except BucketNotFoundError as error:
            raise self.lost(lease, "its bucket is gone") from error
        renewed = await self._believed(lease, revision, sent_ns)
        if renewed is None:
            raise self.lost(lease, "the server's answer came too late")
        return renewed

    async def give_back(self, lease: Lease | None) -> None:
        """Remove the key if it is this holding's; a server that is away lets it expire.

        It takes 2 seconds at most.

        Args:
            lease: The lease; None for a claim without an answer.
        """
        with suppress(NatsStreamError, TimeoutError):
            async with asyncio.timeout(_CLEAN_UP_S):
                revision = await self._stored(lease)
                while revision is not None:
                    try:
                        await self._purge(revision)
                        break
                    except WrongRevisionError:
                        # Another's by now, or on replicated buckets a write is in flight.
                        await asyncio.sleep(_RETRY_S)
                        found = await self._own(_CLEAN_UP_S)
                        revision = None if found is None else found.revision
        if self._request is not None:
            self._request.cancel()

    @property
    def is_unsure(self) -> bool:
        """Whether something may be stored of which nothing is known."""
        return self._unsure_ns is not None

    def lost(self, lease: Lease, why: str, *, detail: str = "") -> LockLostError:
        """Return the error of a loss."""
        return LockLostError(
            f"lock {self.name!r} of bucket {self.bucket.name} is lost: {why}",
            name=self.name,
            token=lease.token,
            detail=detail,
            hint="another may hold it; writes with lock.put() or a checked token changed nothing",
        )

    def no_answer(self, what: str) -> RequestTimeoutError:
        """Return the error of a request that nobody answered."""
        return RequestTimeoutError(
            f"lock {self.name!r} of bucket {self.bucket.name}: no answer to its {what} in time",
            hint="try again, or wait longer: timeout=...",
            retryable=True,
        )

    def away(self, waited_s: float) -> ConnectionLostError:
        """Return the error of one that has waited for the lock without a server."""
        return ConnectionLostError(
            f"lock {self.name!r} of bucket {self.bucket.name}: no reconnect within "
            f"{waited_s:.3g} s",
            hint="check the servers, or wait longer: timeout=...",
            retryable=True,
        )

    async def _asked(self, request: Coroutine[object, object, int], what: str, limit: float) -> int:
        """Return the answer to a request; who is cancelled here leaves it to `give_back`."""
        unsure_before_ns = self._unsure_ns
        if unsure_before_ns is None:
            self._unsure_ns = now_ns()
        task = self._request = asyncio.create_task(request)
        # A caller cancelled twice, here and in `give_back`, does not see how it ends.
        task.add_done_callback(_take_error)
        done, _ = await asyncio.wait([task], timeout=limit)
        self._request = None
        if not done:
            task.cancel()
            raise self.no_answer(what)
        try:
            return task.result()
        except WrongLastSequenceError:  # Refused: this one is not stored, and never will be.
            self._unsure_ns = unsure_before_ns
            raise

    async def _believed(self, held: Lease | None, revision: int, sent_ns: int) -> Lease | None:
        """Return the lease of an answer; None, and remove the key, if the answer came too late."""
        self._unsure_ns, answered_ns = None, now_ns()
        if held is None:
            lease = begun(self.terms, revision, sent_ns=sent_ns, answered_ns=answered_ns)
        else:
            lease = held.renewed(revision, sent_ns=sent_ns, answered_ns=answered_ns)
        if lease is None:  # Others wait no longer than they must.
            await self.endings.run(self._remove(revision))
        return lease

    async def _stored(self, lease: Lease | None) -> int | None:
        """Return which revision is this holding's; None where there is none."""
        if self._request is not None:
            await asyncio.wait([self._request])
            if not self._request.cancelled() and self._request.exception() is None:
                return self._request.result()
        if self.is_unsure:
            found = await self._own(_CLEAN_UP_S)
            return None if found is None else found.revision
        return None if lease is None else lease.revision

    async def _newest(self, timeout_s: float) -> Entry | None:
        try:
            async with asyncio.timeout(timeout_s):
                return await self.bucket.get(self.name, consistent=True)
        except TimeoutError:
            raise self.no_answer("reading") from None

    async def _own(self, timeout_s: float) -> Entry | None:
        found = await self._newest(timeout_s)
        return found if found is not None and self._is_own(found) else None

    def _is_own(self, entry: Entry) -> bool:
        return Claim.from_bytes(entry.value).claim_id == self._claim.claim_id

    async def _remove(self, revision: int) -> None:
        with suppress(NatsStreamError, TimeoutError):
            async with asyncio.timeout(_CLEAN_UP_S):
                await self._purge(revision)

    async def _update(self, revision: int) -> int:
        return await self.bucket.update(
            self.name, self._value, revision=revision, ttl=self.terms.ttl_s, is_lock=True
        )

    async def _purge(self, revision: int) -> None:
        # The marker wakes those who wait, and goes by itself: no rubbish stays of many locks.
        await self.bucket.purge(self.name, revision=revision, ttl=self.terms.ttl_s, is_lock=True)


def _take_error(task: asyncio.Task[int]) -> None:
    """Retrieve the error of a request, so that the loop does not log it."""
    if not task.cancelled():
        task.exception()


def _whose(found: Entry | None) -> str:
    if found is None:
        return "its key is gone: it has expired, or somebody removed it"
    holder = Claim.from_bytes(found.value).holder
    return f"{holder or 'somebody'} holds it at revision {found.revision}"
