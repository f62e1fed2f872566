"""One revision of a key with its value as an object.

Law: a value that can not be read is never taken for another one: asking for it raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, cast

from natsstream.errors import CodecError, UsageError, ValueDecodeError
from natsstream.kv.entry import Entry, Operation, UnreadableEntry
from natsstream.kv.typed.formats import T, ValueFormat


@dataclass(frozen=True, slots=True)
class TypedEntry(Generic[T]):
    """One revision of a key, as reads and watches of a typed bucket hand it out.

    Attributes:
        plain: The entry with the stored bytes.
        decoded: The object; None for a marker and for a value that can not be read.
        error: Why the value can not be read; None where it can. In mirrors it is a CodecError where
            the bucket's codec can not decode the value.
    """

    plain: Entry
    decoded: T | None = None
    error: ValueDecodeError | CodecError | None = None

    @property
    def value(self) -> T:
        """The object.

        Raises:
            ValueDecodeError: The stored bytes are none of the format.
            CodecError: They are not of the bucket's codec's form.
            UsageError: The entry is a marker; look at `is_deleted` first.
        """
        if self.error is not None:
            raise self.error.with_traceback(None)  # Else it would grow with each look.
        if self.is_deleted:
            raise UsageError(
                f"key {self.key!r} has no value at revision {self.revision}: it was deleted there",
                hint="look at entry.is_deleted first, or watch with ignore_deletes=True",
            )
        return cast("T", self.decoded)  # JSON has null, so it may well be None.

    @property
    def nbytes(self) -> int:
        """How many bytes are stored as the value; 0 for a marker."""
        return len(self.plain.value)

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self.plain.bucket

    @property
    def key(self) -> str:
        """The key."""
        return self.plain.key

    @property
    def revision(self) -> int:
        """The stream's sequence of this revision."""
        return self.plain.revision

    @property
    def created_ns(self) -> int:
        """When it was stored, in Unix nanoseconds."""
        return self.plain.created_ns

    @property
    def created(self) -> datetime:
        """When it was stored, in UTC, cut to microseconds."""
        return self.plain.created

    @property
    def operation(self) -> Operation:
        """ "PUT" for a value, "DEL" or "PURGE" for a marker."""
        return self.plain.operation

    @property
    def delta(self) -> int:
        """How many revisions a watch or history still had to deliver behind this one."""
        return self.plain.delta

    @property
    def is_deleted(self) -> bool:
        """True for a marker: the key has no value."""
        return self.plain.is_deleted


def decoded(entry: Entry, form: ValueFormat[T]) -> TypedEntry[T]:
    """Return an entry with its value as an object, or with the reason why there is none."""
    if entry.is_deleted:
        return TypedEntry(entry)
    if isinstance(entry, UnreadableEntry):
        return TypedEntry(entry, None, entry.error)
    try:
        return TypedEntry(entry, form.from_entry(entry))
    except ValueDecodeError as error:
        return TypedEntry(entry, None, error)


def readable(entry: TypedEntry[T], *, raises: bool = True) -> TypedEntry[T]:
    """Return an entry, or raise why its value can not be read where that is wanted."""
    error = entry.error
    if raises and error is not None:
        raise error.with_traceback(None)
    return entry
