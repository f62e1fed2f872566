"""The arrays of a core stream as users see them: `raw`, `messages` and `kv`.

Law: these objects stay the same for the life of a core stream, and always show what it holds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, overload

from natsstream.arguments import counted
from natsstream.conat.headers import RecordHeaders, decode_record
from natsstream.conat.names import KeySubjects
from natsstream.conat.reconcile import Edit, Reconciler
from natsstream.conat.record import Record
from natsstream.conat.undefined import UNDEFINED
from natsstream.constructors import answers_arguments
from natsstream.units import NS_PER_MS, time_from_ns


@answers_arguments
@dataclass(frozen=True, slots=True)
class RawMessage:
    """A stored message, not decoded.

    Attributes:
        seq: Its sequence.
        timestamp: When it was stored, in Unix milliseconds.
        headers: The user's headers; None for none.
        raw: The encoded value.
        key: Its key; None for none.
    """

    seq: int
    timestamp: int
    headers: Mapping[str, object] | None
    raw: bytes
    key: str | None

    @property
    def time(self) -> datetime:
        """When it was stored, in UTC."""
        return time_from_ns(self.timestamp * NS_PER_MS)


@dataclass(frozen=True, slots=True)
class KeyedMessage:
    """The current message of a key.

    Attributes:
        mesg: The value.
        raw: The message.
    """

    mesg: Any
    raw: RawMessage


class Codec:
    """Reads the records of one core stream."""

    def __init__(self, names: KeySubjects) -> None:
        self._names = names

    def headers(self, record: Record) -> RecordHeaders:
        """Return the headers of a record."""
        return RecordHeaders.parse(record.headers, stream=self._names.path, sequence=record.seq)

    def user(self, record: Record) -> dict[str, object] | None:
        """Return the user's headers of a record; None for none."""
        return self.headers(record).user

    def value(self, record: Record) -> object:
        """Return the value of a record; None for a tombstone.

        Raises:
            CodecError: Another program wrote it.
        """
        return decode_record(
            record.headers, record.data, stream=self._names.path, sequence=record.seq
        )

    def key(self, record: Record) -> str | None:
        """Return the key of a record; None for none."""
        if not record.key_subject:
            return None
        key = self._names.key_of(record.key_subject)
        return self.headers(record).key if key is None else key

    def raw(self, record: Record) -> RawMessage:
        """Return a record as users see it."""
        time_ms = record.time_ns // NS_PER_MS
        return RawMessage(record.seq, time_ms, self.user(record), record.data, self.key(record))


class RawMessages(Sequence[RawMessage]):
    """The messages of a core stream, ascending by sequence."""

    _is_live: ClassVar[bool] = True

    def __init__(self, rules: Reconciler, codec: Codec) -> None:
        self._rules = rules
        self._codec = codec

    def __len__(self) -> int:
        return len(self._rules.log)

    @overload
    def __getitem__(self, index: int) -> RawMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[RawMessage]: ...
    def __getitem__(self, index: int | slice) -> RawMessage | list[RawMessage]:
        return _item(index, len(self), lambda at: self._codec.raw(self._rules.log.record(at)))

    def __iter__(self) -> Iterator[RawMessage]:
        return map(self._codec.raw, list(self._rules.log.records()))

    def __repr__(self) -> str:
        return f"<{len(self)} raw messages>"


class Messages(Sequence[Any]):  # noqa: PLW1641 - It changes, so it has no hash.
    """The values of a core stream, as long as `raw` and in the same order.

    Each value is decoded when it is first asked for, and kept.
    """

    _is_live: ClassVar[bool] = True

    def __init__(self, rules: Reconciler, codec: Codec) -> None:
        self._rules = rules
        self._codec = codec

    def __len__(self) -> int:
        return len(self._rules.log)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        log, decode = self._rules.log, self._codec.value
        return _item(index, len(log), lambda at: log.value(at, decode))

    def __iter__(self) -> Iterator[Any]:
        return iter(self[:])

    def __eq__(self, other: object) -> bool:
        return self[:] == (other[:] if isinstance(other, Messages) else other)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'message')}>"


class KeyValues(Mapping[str, KeyedMessage]):
    """The current message of each key that has a value."""

    _is_live: ClassVar[bool] = True

    def __init__(self, rules: Reconciler, codec: Codec, names: KeySubjects) -> None:
        self._rules = rules
        self._codec = codec
        self._names = names

    def record(self, key: str) -> Record | None:
        """Return the current record of a key; None for none."""
        seq = self._rules.keys.live.get(self._names.subject_of(key))
        return None if seq is None else self._rules.log.find(seq)

    def value(self, key: str) -> object:
        """Return the value of a key; UNDEFINED for none."""
        seq = self._rules.keys.live.get(self._names.subject_of(key))
        if seq is None:
            return UNDEFINED
        log = self._rules.log
        return log.value(log.position(seq), self._codec.value)

    def __getitem__(self, key: str) -> KeyedMessage:
        record = self.record(key)
        if record is None:
            raise KeyError(key)
        return KeyedMessage(self.value(key), self._codec.raw(record))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._names.subject_of(key) in self._rules.keys.live

    def __iter__(self) -> Iterator[str]:
        for subject, seq in list(self._rules.keys.live.items()):
            record = self._rules.log.find(seq)
            key = self._names.key_of(subject)
            if key is None and record is not None:
                key = self._codec.key(record)
            if key is not None:
                yield key

    def __len__(self) -> int:
        return len(self._rules.keys.live)

    def __repr__(self) -> str:
        return f"<{counted(len(self), 'key')}>"


class Change:
    """A change of a core stream: a message came, or one is gone.

    Attributes:
        seq: The message's sequence.
        is_removal: True if the message is gone: deleted, evicted or expired.
        is_conflated: True if its key had other values in between, which were overwritten while
            this client was away.
    """

    __slots__ = ("_codec", "_edit", "is_conflated", "is_removal", "seq")

    def __init__(self, edit: Edit, codec: Codec) -> None:
        self._edit = edit
        self._codec = codec
        self.seq: int = edit.record.seq
        self.is_removal: bool = edit.is_removal
        self.is_conflated: bool = edit.is_conflated

    @property
    def mesg(self) -> Any:
        """The value; None for the tombstone of a key, UNDEFINED for a removal.

        Raises:
            CodecError: Another program wrote it.
        """
        return UNDEFINED if self.is_removal else self._codec.value(self._edit.record)

    @property
    def raw(self) -> RawMessage:
        """The message, also one that is gone."""
        return self._codec.raw(self._edit.record)

    @property
    def key(self) -> str | None:
        """The message's key; None for none."""
        return self._codec.key(self._edit.record)

    @property
    def time(self) -> datetime:
        """When the message was stored, in UTC."""
        return time_from_ns(self._edit.record.time_ns)

    @property
    def prev(self) -> Any:
        """The value before: of the key, or of the message that is gone; UNDEFINED for none."""
        before = self._edit.record if self.is_removal else self._edit.previous
        return UNDEFINED if before is None else self._codec.value(before)

    @property
    def is_tombstone(self) -> bool:
        """True if the message deletes its key."""
        return self._edit.record.is_tombstone

    @property
    def is_key_removed(self) -> bool:
        """True if a key has no value any more because of this change."""
        return self._edit.previous is not None and (
            self.is_removal or self._edit.record.is_tombstone
        )

    @property
    def msg_id(self) -> str | None:
        """The id that the message was published with; None for none."""
        return self._codec.headers(self._edit.record).msg_id

    def __repr__(self) -> str:
        kind = "removed" if self.is_removal else "set"
        return f"<Change {self.seq} {kind} {self.key or ''}>"


def _item(index: int | slice, length: int, get: Callable[[int], Any]) -> Any:
    if isinstance(index, slice):
        return [get(at) for at in range(*index.indices(length))]
    index = operator.index(index)  # The TypeError of a list.
    at = index + length if index < 0 else index
    if not 0 <= at < length:
        raise IndexError(f"message {index} of {length}")
    return get(at)
