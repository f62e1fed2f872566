"""The unsaved values of a DKV, and the effect of remote changes on them; pure rules.

Law: an unsaved value is forgotten when its own message comes back, or when a rule says that the
remote value is right. A value is never forgotten because it is only equal in part. A value
whose message may be in flight is stored before a newer one of its key.
Source: Conat sync/dkv.ts `handleRemoteChange`; core-stream.md section 2.2.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, final

from natsstream.conat.undefined import UNDEFINED

_log = logging.getLogger("natsstream.conat")


@final
class Tombstone:
    """The class of `TOMBSTONE`, its only instance."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "TOMBSTONE"

    def __reduce__(self) -> str:
        return "TOMBSTONE"


TOMBSTONE: Final = Tombstone()
"""A merge that returns this deletes the key."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A remote change of a key that has an unsaved value; the argument of a merge function.

    Attributes:
        key: The key.
        local: The unsaved value.
        remote: The value that came; UNDEFINED if the key was deleted.
        prev: The remote value before; UNDEFINED for none.
    """

    key: str
    local: Any
    remote: Any
    prev: Any


Merge = Callable[[Conflict], Any]
"""Returns the value to keep: None keeps the local one, TOMBSTONE deletes the key."""


class Unsaved(NamedTuple):
    """A value that is not saved.

    Attributes:
        value: The value; UNDEFINED deletes the key.
        headers: The user's headers; None for none.
        ttl: Milliseconds to live; None for no end.
        msg_id: The id of the message that saves it.
    """

    value: Any
    headers: Mapping[str, object] | None
    ttl: int | None
    msg_id: str


class Outcome(Enum):
    """The decision about a key's unsaved value after a remote change."""

    NOTHING = "there is none"
    SAVED = "it was the message that saves it"
    DROPPED = "the remote value counts"
    KEPT = "the local value counts, and is still to be saved"
    MERGED = "a new value is to be saved"


class UnsavedKeys:
    """The unsaved values of one DKV by their keys, in the order of their writes.

    Args:
        merge: Resolves conflicts; None lets the local value count.
        check: Raises an error for a value that cannot be saved.
        new_id: Returns a new message id.
    """

    def __init__(
        self,
        merge: Merge | None = None,
        check: Callable[[Any], object] = lambda _: None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        self._held: dict[str, Unsaved] = {}
        self._doubtful: dict[str, Unsaved] = {}
        self._merge = merge
        self._check = check
        self._new_id = new_id or new_msg_id

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def items(self) -> list[tuple[str, Unsaved]]:
        """Return all keys with their unsaved values."""
        return list(self._held.items())

    def get(self, key: str) -> Unsaved | None:
        """Return the unsaved value of a key; None for none."""
        return self._held.get(key)

    def set(
        self,
        key: str,
        value: object,
        headers: Mapping[str, object] | None = None,
        ttl: int | None = None,
    ) -> None:
        """Write a value; UNDEFINED deletes the key."""
        self._held.pop(key, None)
        self._held[key] = Unsaved(value, headers, ttl, self._new_id())

    def doubt(self, key: str, held: Unsaved) -> None:
        """Take note that a message without an expectation got no answer: it may come late."""
        self._doubtful[key] = held

    def overtaken(self) -> list[tuple[str, Unsaved]]:
        """Return values in doubt that newer ones have replaced; they are to be stored before these.

        A late copy of them is refused then, as the server stores an id once.
        """
        return [
            (key, each)
            for key, each in self._doubtful.items()
            if key in self._held and self._held[key].msg_id != each.msg_id
        ]

    def forget(self, key: str, msg_id: str) -> bool:
        """Forget a value that is saved or refused; False if a newer one has its place."""
        self._settle(key, msg_id)
        held = self._held.get(key)
        if held is None or held.msg_id != msg_id:
            return False
        del self._held[key]
        return True

    def remote(self, key: str, remote: object, prev: object, msg_id: str | None) -> Outcome:
        """Decide about a key's unsaved value when a message of the key comes.

        Args:
            key: The key.
            remote: Its value; UNDEFINED for a tombstone.
            prev: The remote value before; UNDEFINED for none.
            msg_id: The id of the message; None for none.
        """
        self._settle(key, msg_id)
        held = self._held.get(key)
        if held is None:
            return Outcome.NOTHING
        if held.msg_id == msg_id:
            del self._held[key]
            return Outcome.SAVED
        if held.value is UNDEFINED and remote is not UNDEFINED:
            return Outcome.KEPT
        if _is_same(held.value, remote):
            del self._held[key]
            return Outcome.DROPPED
        if self._merge is None:
            return Outcome.KEPT
        wanted = self._resolve(self._merge, Conflict(key, held.value, remote, prev))
        if _is_same(wanted, remote):
            del self._held[key]
            return Outcome.DROPPED
        # A new id: the message of the old one may be stored, below the remote one.
        self.set(key, wanted, held.headers, held.ttl)
        return Outcome.MERGED

    def _resolve(self, merge: Merge, conflict: Conflict) -> object:
        """Return the value to keep; UNDEFINED deletes the key."""
        try:
            wanted = merge(conflict)
            if wanted is TOMBSTONE:
                return UNDEFINED
            if wanted is None or wanted is UNDEFINED:
                return conflict.local
            self._check(wanted)
        except Exception:  # noqa: BLE001 - Logged; it is the user's function.
            _log.exception("the merge of key %r failed; its local value counts", conflict.key)
            return conflict.local
        return wanted

    def _settle(self, key: str, msg_id: str | None) -> None:
        if key in self._doubtful and self._doubtful[key].msg_id == msg_id:
            del self._doubtful[key]


def new_msg_id() -> str:
    """Return an id that no other message has."""
    return secrets.token_urlsafe(12)


def _is_same(one: object, other: object) -> bool:
    # True and 1 are equal in Python, and two values in MessagePack.
    return type(one) is type(other) and one == other
