"""One revision of a key, as reads and watches hand it out.

Law: what a server's delete marker says (`Nats-Marker-Reason`, ADR-43) is as good as a client's own
`KV-Operation` (ADR-8): a key that has expired is deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from natsstream.api.message import Message
from natsstream.errors import CodecError
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.units import time_from_ns

Operation = Literal["PUT", "DEL", "PURGE"]

OPERATION_HEADER = "KV-Operation"
"""The header of a marker that a client has written (ADR-8)."""

# As nats.go reads them: other operations are values, other reasons too.
_OPERATIONS: Mapping[str, Operation] = {"DEL": "DEL", "PURGE": "PURGE"}
_REASONS: Mapping[str, Operation] = {"MaxAge": "PURGE", "Purge": "PURGE", "Remove": "DEL"}
_OPERATION, _REASON = OPERATION_HEADER.encode(), b"Nats-Marker-Reason"


@dataclass(frozen=True, slots=True)
class Entry:
    """One revision of a key.

    Attributes:
        bucket: The bucket's name.
        key: The key.
        value: The bytes as stored, or as the bucket's codec decodes them; empty for a marker.
        revision: The stream's sequence of this revision.
        created_ns: When it was stored, in Unix nanoseconds.
        operation: "PUT" for a value, "DEL" for a deletion, "PURGE" where the history went too,
            also where the server has let the key expire.
        delta: How many revisions a watch or history still had to deliver behind this one; 0 for
            other reads.
        ttl: Whole seconds after which the server lets this revision go, as its writer wished; -1
            is never, None is the bucket's own rule.
    """

    bucket: str
    key: str
    value: bytes
    revision: int
    created_ns: int
    operation: Operation
    delta: int = 0
    ttl: int | None = None

    @property
    def created(self) -> datetime:
        """When it was stored, in UTC, cut to microseconds."""
        return time_from_ns(self.created_ns)

    @property
    def is_deleted(self) -> bool:
        """True for a marker: the key has no value."""
        return self.operation != "PUT"


@dataclass(frozen=True, slots=True)
class UnreadableEntry(Entry):
    """A revision whose key or value is not of the form of the bucket's codecs.

    Attributes:
        error: Why it can not be read; `value` is what is stored.
        has_key: False where `key` is the key as it is stored, since it is what can not be decoded.
    """

    error: CodecError = field(kw_only=True)
    has_key: bool = field(default=True, kw_only=True)


def operation_of(message: Message) -> Operation:
    """Return what a stored message did to its key: a client's word first, then the server's."""
    headers = message.headers
    # Looked for before anything is parsed: a listing of 100,000 keys asks this of each.
    source = headers.source
    if not source or (_OPERATION not in source and _REASON not in source):
        return "PUT"
    operation = headers.get(OPERATION_HEADER)
    if operation:
        return _OPERATIONS.get(operation, "PUT")
    return _REASONS.get(message.marker_reason or "", "PUT")


def entry_of(
    place: BucketSubjects, message: Message, *, delta: int = 0, has_value: bool = True
) -> Entry:
    """Return the revision that a stored message is.

    Args:
        place: The bucket's place; its codecs are applied.
        message: What the stream holds.
        delta: How many revisions still come behind it.
        has_value: False where only its headers were read.

    Raises:
        CodecError: Key or value are not of the codec's form.
    """
    operation = operation_of(message)
    sequence = message.sequence
    key = place.key_of(message.subject)
    value = message.data
    if has_value and operation == "PUT":
        value = place.value_of(value, key, sequence)
    return Entry(place.bucket, key, value, sequence, message.time_ns, operation, delta, message.ttl)


def any_entry_of(
    place: BucketSubjects, message: Message, *, delta: int = 0, has_value: bool = True
) -> Entry:
    """Return the revision that a stored message is, as `entry_of`; unreadable where it is that."""
    try:
        return entry_of(place, message, delta=delta, has_value=has_value)
    except CodecError as error:
        return UnreadableEntry(
            place.bucket,
            error.key,
            message.data,
            message.sequence,
            message.time_ns,
            operation_of(message),
            delta,
            message.ttl,
            error=error.with_traceback(None),
            has_key=error.revision > 0,
        )


def readable(entry: Entry) -> Entry:
    """Return an entry, or raise why it can not be read.

    Raises:
        CodecError: It is not of the form of the bucket's codecs.
    """
    if isinstance(entry, UnreadableEntry):
        raise entry.error.with_traceback(None)  # Else it would grow with each look.
    return entry
