"""Locks and elections on keys of a bucket."""

from __future__ import annotations

import os
import socket
from typing import Literal

from natsstream.arguments import check_choice, check_seconds
from natsstream.kv.locks.elections import Election
from natsstream.kv.locks.leases import TTL_S, check_holder, make_terms
from natsstream.kv.locks.locks import Lock, LockOptions
from natsstream.kv.plain import PlainBucket

_TIMEOUT_S = 30.0
_ON_LOSS = ("cancel", "tell")


class Locking(PlainBucket):
    """Locks and elections."""

    def lock(
        self,
        name: str,
        *,
        ttl: float = TTL_S,
        timeout: float | None = _TIMEOUT_S,
        holder: str | None = None,
        on_loss: Literal["cancel", "tell"] = "cancel",
        margin: float | None = None,
    ) -> Lock:
        """Describe a lock, to be used as `async with kv.lock("jobs.nightly") as lock`.

        One holder at a time, all over the account. The lock is a key of this bucket that expires:
        the holder renews it three times in its ttl, and one that dies frees it after the ttl. The
        bucket needs `limit_marker_ttl` and a history of 1, the server 2.11.

        Args:
            name: The key; no wildcards. A lock is not reentrant: whoever takes the same name again
                inside the block waits for himself.
            ttl: Whole seconds, at most a day, after which the server frees the lock of a holder
                that is gone.
            timeout: Seconds to wait for it; 0 is one try, None is as long as it takes. Where a
                server is away, up to 2 s more to take back a claim that it may have stored.
            holder: What others see of the holder; None is host and process id.
            on_loss: What becomes of the block when the lock is lost. "cancel" cancels it, and it
                raises LockLostError; "tell" lets it go on, and the error comes at its end:
                `lock.lost()` and `lock.check()` tell of it.
            margin: Seconds before the server's expiry when the holder stops believing that it has
                the lock; None is a fifth of the ttl.

        Raises:
            KeyNameError: The name is no key.
            ConfigError: An option has no legal value.

        Cost: entering: one round trip where it is free, three where it was given back within its
        ttl. Held: one round trip for each third of the ttl. Leaving: one round trip, at most 2 s.
        """
        check_choice(on_loss, "on_loss", _ON_LOSS)
        if timeout is not None:
            check_seconds(timeout, "timeout", may_be_zero=True)
        options = LockOptions(make_terms(ttl, margin), timeout, _holder(holder, "holder"), on_loss)
        self._place.read_subject(name)
        return Lock(self, name, options)

    def election(
        self,
        name: str,
        *,
        candidate: str | None = None,
        ttl: float = TTL_S,
        margin: float | None = None,
    ) -> Election:
        """Describe an election: `async with election.lead() as term` waits until elected.

        Args:
            name: The key; no wildcards. Each candidate gives the same.
            candidate: What this candidate calls itself; None is host and process id.
            ttl: Whole seconds, at most a day, after which the server drops a leader that is gone;
                so long nobody leads then. One that resigns is followed at once.
            margin: As for `lock`.

        Raises:
            KeyNameError: The name is no key.
            ConfigError: An option has no legal value.

        Cost: none; nothing is sent. A term costs what a lock does.
        """
        self._place.read_subject(name)
        terms = make_terms(ttl, margin)
        return Election(self, name, candidate=_holder(candidate, "candidate"), terms=terms)


def _holder(given: str | None, name: str) -> str:
    return f"{socket.gethostname()}:{os.getpid()}" if given is None else check_holder(given, name)
