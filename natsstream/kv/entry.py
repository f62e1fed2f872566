"""One revision of a key, as reads and watches return it.

Law: a server's delete marker (`Nats-Marker-Reason`, ADR-43) counts as much as a client's own
`KV-Operation` (ADR-8): an expired key is deleted. A value that cannot be decoded is never taken for
another one: its `value` raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, Literal, cast

from natsstream.api.headers import deletion_of
from natsstream.api.message import Message
from natsstream.errors import CodecError, UsageError
from natsstream.foreign_names import answers_names
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.kv.codecs import T
from natsstream.kv.formats import RAW, ValueFormat
from natsstream.notebook import shown, table
from natsstream.units import time_from_ns

Operation = Literal["PUT", "DEL", "PURGE"]

OPERATION_HEADER = "KV-Operation"
"""The header of a marker that a client has written (ADR-8)."""

_NO_VALUE: Final = object()


@answers_names("entry", calls=False)
@dataclass(frozen=True, slots=True, repr=False)
class Entry(Generic[T]):
    """One revision of a key.

    Attributes:
        bucket: The bucket's name.
        key: The key; as it is stored where the bucket's codec cannot decode it.
        data: The bytes of the value, as the bucket's codec decodes them; empty for a marker. Where
            the codec cannot decode them, as they are stored.
        revision: The stream's sequence of this revision.
        created_ns: When the server stored it, in Unix nanoseconds.
        operation: "PUT" for a value, "DEL" for a deletion, "PURGE" if the history is removed too or
            the key has expired.
        delta: How many revisions a watch or history still had to deliver behind this one; 0 for
            other reads.
        ttl: Whole seconds after which the server removes this revision, as its writer set it; -1
            is never, None is the bucket's own `ttl`.
    """

    bucket: str
    key: str
    data: bytes
    revision: int
    created_ns: int
    operation: Operation
    delta: int = 0
    ttl: int | None = None

    @property
    def value(self) -> T:
        """The value: the bytes, or the object of a typed bucket.

        Markers have `b""`, and none at all in typed buckets.

        Raises:
            CodecError: The value or the key cannot be decoded; `error` is the same error.
            UsageError: The entry is a marker of a typed bucket; look at `is_deleted` first.
        """
        return cast("T", self.data)  # Decoded entries are of the class below.

    @property
    def error(self) -> CodecError | None:
        """Why the key or the value cannot be decoded; None if they can."""
        return None

    @property
    def nbytes(self) -> int:
        """How many bytes the value has; 0 for a marker."""
        return len(self.data)

    @property
    def created(self) -> datetime:
        """When the server stored it, in UTC, cut to microseconds."""
        return time_from_ns(self.created_ns)

    @property
    def is_deleted(self) -> bool:
        """True for a marker: the key has no value."""
        return self.operation != "PUT"

    def _repr_html_(self) -> str:
        """Return a table for notebooks, without the value."""
        rows = [
            ("bucket", self.bucket),
            ("key", self.key),
            ("revision", str(self.revision)),
            ("created", shown("created_ns", self.created_ns)),
            ("operation", self.operation),
            ("value", shown("size", self.nbytes)),
        ]
        if self.ttl is not None:
            rows.append(("ttl", shown("ttl", self.ttl)))
        if self.error is not None:
            rows.append(("error", self.error.message))
        return table("Entry", rows)

    def __repr__(self) -> str:
        # Never the value: it may be large, and may be a secret.
        what = f"{self.nbytes} bytes" if self.operation == "PUT" else self.operation
        if self.error is not None:
            what += ", cannot be decoded"
        return f"<Entry {self.bucket}/{self.key} revision {self.revision}, {what}>"


@dataclass(frozen=True, slots=True, repr=False)
class _DecodedEntry(Entry[T]):
    """An entry of a typed bucket, or one that cannot be decoded."""

    decoded: T | object = _NO_VALUE
    reason: CodecError | None = None

    @property
    def value(self) -> T:
        if self.reason is not None:
            raise self.reason.with_traceback(None)  # Else it would grow with each look.
        if self.decoded is _NO_VALUE:
            raise UsageError(
                f"key {self.key!r} has no value at revision {self.revision}: "
                f"{'it was deleted there' if self.is_deleted else 'only its headers were read'}",
                hint="look at entry.is_deleted first, or watch with ignore_deletes=True",
            )
        return cast("T", self.decoded)

    @property
    def error(self) -> CodecError | None:
        return self.reason


def operation_of(message: Message) -> Operation:
    """Return what a stored message did to its key: a client's header counts before the server's."""
    return deletion_of(message.headers.source) or "PUT"


def entry_of(
    subjects: BucketSubjects,
    message: Message,
    form: ValueFormat[T],
    *,
    delta: int = 0,
    has_value: bool = True,
    raises: bool = True,
) -> Entry[T]:
    """Return the entry of a stored message.

    Args:
        subjects: The bucket's subjects and codecs.
        message: The message.
        form: The format of the bucket's values.
        delta: How many revisions still come behind it.
        has_value: False if only its headers were read.
        raises: False returns an entry that cannot be decoded with its `error`.

    Raises:
        CodecError: The key or the value cannot be decoded.
    """
    operation = operation_of(message)
    sequence = message.sequence
    data = message.data
    reason = None
    try:
        key = subjects.key_of(message.subject)
        if has_value and operation == "PUT":
            data = subjects.value_of(data, key, sequence)
    except CodecError as error:
        if raises:
            raise
        key, reason = error.key, error.with_traceback(None)
    entry: Entry[bytes] = Entry(
        subjects.bucket, key, data, sequence, message.time_ns, operation, delta, message.ttl
    )
    if reason is not None:
        return _with_value(entry, _NO_VALUE, reason)
    if form is RAW:  # Decided here too: a listing of 100,000 keys makes an entry of each.
        return cast("Entry[T]", entry)
    found = decoded(entry, form, has_value=has_value)
    return readable(found) if raises else found


def decoded(entry: Entry[bytes], form: ValueFormat[T], *, has_value: bool = True) -> Entry[T]:
    """Return an entry with its value in a format, or with its `error`.

    Args:
        entry: The entry with the bytes.
        form: The format.
        has_value: False if only its headers were read.
    """
    if form is RAW or entry.error is not None:
        return cast("Entry[T]", entry)  # A `value` that raises has any type.
    value: object = _NO_VALUE
    reason = None
    if has_value and not entry.is_deleted:
        try:
            value = form.from_bytes(
                entry.data, bucket=entry.bucket, key=entry.key, revision=entry.revision
            )
        except CodecError as error:
            reason = error.with_traceback(None)
    return _with_value(entry, value, reason)


def readable(entry: Entry[T]) -> Entry[T]:
    """Return an entry.

    Raises:
        CodecError: Its key or its value cannot be decoded.
    """
    if entry.error is not None:
        raise entry.error.with_traceback(None)  # Else it would grow with each look.
    return entry


def _with_value(entry: Entry[bytes], value: T | object, reason: CodecError | None) -> Entry[T]:
    return _DecodedEntry(
        entry.bucket,
        entry.key,
        entry.data,
        entry.revision,
        entry.created_ns,
        entry.operation,
        entry.delta,
        entry.ttl,
        value,
        reason,
    )
