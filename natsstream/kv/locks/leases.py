"""How long a lock may be believed to be held: arithmetic of leases, without waiting.

Law: **who holds a lock stops believing in it before the server can give it to another.** A lease
is counted from the moment before its request was sent, which no server can have seen later, and
ends a margin before the server lets the key expire. It is renewed only by an answer that came
before that end. Clocks of two machines are never compared.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace

from natsstream.arguments import check_seconds, check_utf8, described
from natsstream.errors import ConfigError, ProtocolError
from natsstream.fields import Fields
from natsstream.kv.status import BucketStatus
from natsstream.units import NS_PER_SECOND

TTL_S = 10.0
_MARGIN_OF_TTL = 0.2
_MARGIN_MIN_S = 0.1
_TRIES_IN_LEASE = 3
_HOLDER_BYTES_MAX = 1_024
# A dead holder's lock with a longer ttl would have to be removed by hand.
_TTL_MAX_S = 86_400
EXPIRY_GRACE_S = 1.0
"""How long after a key's ttl a try is worth it, though no notice of its expiry came."""
# A clock that counts the machine's sleep if there is one: asyncio's may stand still.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_ns() -> int:
    """Return this machine's own time in nanoseconds; only differences mean anything."""
    return time.clock_gettime_ns(_CLOCK)


@dataclass(frozen=True, slots=True)
class Terms:
    """The ttl and the margin of a lease.

    Attributes:
        ttl_s: Whole seconds after which the server lets the key expire.
        margin_s: How many seconds before that the holder stops believing in it.
    """

    ttl_s: int
    margin_s: float

    @property
    def belief_ns(self) -> int:
        """Nanoseconds that one renewal is good for, from before it was sent."""
        return round((self.ttl_s - self.margin_s) * NS_PER_SECOND)

    @property
    def renew_every_s(self) -> float:
        """Seconds from one renewal to the next: a lease has room for three."""
        return (self.ttl_s - self.margin_s) / _TRIES_IN_LEASE


@dataclass(frozen=True, slots=True)
class Lease:
    """The lease of a holder.

    Attributes:
        token: The revision that it began with: greater than that of all holders before.
        revision: The revision that the key has now.
        sent_ns: By `now_ns`, when the request was sent that this belief rests on.
        terms: The ttl and the margin.
    """

    token: int
    revision: int
    sent_ns: int
    terms: Terms

    @property
    def ends_ns(self) -> int:
        """By `now_ns`: from then on another may hold it."""
        return self.sent_ns + self.terms.belief_ns

    def remaining_s(self, at_ns: int) -> float:
        """Return how many seconds it is good for; 0 when it has ended."""
        return max(self.ends_ns - at_ns, 0) / NS_PER_SECOND

    def is_good(self, at_ns: int) -> bool:
        """Return True if the lease is valid at a moment."""
        return at_ns < self.ends_ns

    def renewed(self, revision: int, *, sent_ns: int, answered_ns: int) -> Lease | None:
        """Return the lease after a renewal; None where the answer came too late to be believed.

        nats-server lets a key expire in two steps, and the marker that it writes in the second
        one also removes what was stored between them. So a renewal counts only when it was stored
        before the old lease could end, which is sure only where the answer was here before.

        Args:
            revision: The revision of the renewal.
            sent_ns: When the first request was sent that may have become this revision.
            answered_ns: When the answer was here.
        """
        if not self.is_good(answered_ns):
            return None
        return replace(self, revision=revision, sent_ns=sent_ns)


def begun(terms: Terms, revision: int, *, sent_ns: int, answered_ns: int) -> Lease | None:
    """Return the lease of a key that was just made; None where the answer came too late."""
    lease = Lease(revision, revision, sent_ns, terms)
    return lease if lease.is_good(answered_ns) else None


def make_terms(ttl: object, margin: object = None) -> Terms:
    """Return the terms of a lease.

    Args:
        ttl: Seconds after which the server frees the lock of a holder that is gone; whole ones.
        margin: Seconds before that when the holder stops believing; None is a fifth of it.

    Raises:
        ConfigError: The server counts whole seconds, it is more than a day, or nothing is left
            beside the margin.
    """
    ttl_s = check_seconds(ttl, "ttl")
    if ttl_s != int(ttl_s):
        raise ConfigError(
            f"ttl is {described(ttl, with_type=False)}",
            hint="give whole seconds, 1 or more: the server lets keys expire by the second",
        )
    if ttl_s > _TTL_MAX_S:
        raise ConfigError(
            f"ttl is {described(ttl, with_type=False)}",
            hint="give a day at most: it is how long a holder that died keeps the lock; one that "
            "lives keeps it for as long as it wants",
        )
    if margin is None:
        return Terms(int(ttl_s), max(ttl_s * _MARGIN_OF_TTL, _MARGIN_MIN_S))
    margin_s = check_seconds(margin, "margin")
    if margin_s > ttl_s / 2:
        raise ConfigError(
            f"margin is {margin_s:g} s of a ttl of {ttl_s:g} s",
            hint="give at most half of the ttl: the rest is what the lock can be used for",
        )
    return Terms(int(ttl_s), margin_s)


@dataclass(frozen=True, slots=True)
class Claim:
    """The value of a lock's key: its holder.

    Attributes:
        holder: The holder's name, for people.
        claim_id: The id of this holding alone; empty if another program wrote the key.
        ttl_s: Seconds after which it expires, as the holder says; 0 where it does not say.
    """

    holder: str
    claim_id: str
    ttl_s: int

    def to_bytes(self) -> bytes:
        """Return the key's value."""
        body = {"holder": self.holder, "claim_id": self.claim_id, "ttl": self.ttl_s}
        return json.dumps(body).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> Claim:
        """Return the claim of a key's value; that of another program is a holder without an id."""
        try:
            fields = Fields.parse(value, "a lock").raw
        except ProtocolError:
            return cls(value[:_HOLDER_BYTES_MAX].decode("utf-8", "replace"), "", 0)
        ttl = fields.get("ttl")
        if not isinstance(ttl, int) or isinstance(ttl, bool) or not 0 < ttl <= _TTL_MAX_S:
            ttl = 0
        holder = str(fields.get("holder", ""))[:_HOLDER_BYTES_MAX]
        return cls(holder, str(fields.get("claim_id", "")), ttl)


def check_bucket(status: BucketStatus, terms: Terms) -> None:
    """Refuse a bucket that cannot keep locks.

    Raises:
        ConfigError: Its keys cannot expire one by one, or do so before the lease ends, or older
            revisions would come back, or writes go elsewhere.
    """
    name = status.name
    if status.mirror is not None:
        raise ConfigError(
            f"bucket {name} is a mirror, which has no locks of its own",
            hint="lock in its origin, which is where writes go",
        )
    if status.history != 1:
        # No update to history=1, which would remove the older revisions of all keys.
        raise ConfigError(
            f"bucket {name} keeps {status.history} revisions of a key: when a lock expires, the"
            " revision before would be there again",
            hint='lock in a bucket of its own: js.kv.ensure("locks", limit_marker_ttl=60)',
        )
    if not status.limit_marker_ttl:
        raise ConfigError(
            f"bucket {name} has no limit_marker_ttl: keys of a holder that is gone would stay",
            hint=f"js.kv.update({name!r}, limit_marker_ttl=60), on a server of 2.11 or newer",
        )
    if status.ttl and status.ttl < terms.ttl_s:
        raise ConfigError(
            f"bucket {name} forgets its keys after {status.ttl:g} s, before the lock's ttl of"
            f" {terms.ttl_s} s is over",
            hint="give a shorter ttl to the lock, or lock in a bucket without ttl",
        )


def check_holder(holder: object, name: str = "holder") -> str:
    """Return a holder's name.

    Raises:
        ConfigError: It is no text that UTF-8 can encode, or longer than 1,024 bytes.
    """
    text = check_utf8(holder, name)
    size_bytes = len(text.encode())
    if size_bytes > _HOLDER_BYTES_MAX:
        raise ConfigError(f"{name} has {size_bytes} bytes", hint="give at most 1,024")
    return text
