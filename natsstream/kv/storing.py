"""Stores one record of a key, and says in the bucket's words why it was not stored.

Law: a write is sent once; again only where nobody was there to take it (ADR-22). Whether one whose
ack was lost is stored is not known, and is never guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from natsstream.errors import (
    BucketNotFoundError,
    ConnectionLostError,
    KeyExistsError,
    MessageRuleError,
    MessageTooLargeError,
    NatsStreamError,
    NoRespondersError,
    RequestTimeoutError,
    StreamFullError,
    StreamNotFoundError,
    WrongLastSequenceError,
    WrongRevisionError,
)
from natsstream.kv.bucket_subjects import BucketSubjects
from natsstream.kv.buckets.conventions import BUCKET
from natsstream.kv.entry import OPERATION_HEADER
from natsstream.publish.outgoing import Expect, Rollup
from natsstream.publish.schedule import Ttl
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream

PURGE_HEADERS: Mapping[str, str] = {OPERATION_HEADER: "PURGE"}
DELETE_HEADERS: Mapping[str, str] = {OPERATION_HEADER: "DEL"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What is to be stored.

    Attributes:
        key: The key, for errors.
        subject: Where it is published to.
        payload: The bytes as they are stored.
        headers: What makes it a marker; None for a value.
        revision: The newest revision of the key, or of its guard, as it is expected; None expects
            nothing.
        guard: Another key whose newest revision is expected instead; empty for none.
        guard_subject: Where that one is stored.
        ttl: Seconds that it lives.
        rollup: "subject" removes the key's history.
    """

    key: str
    subject: str
    payload: bytes = b""
    headers: Mapping[str, str] | None = None
    revision: int | None = None
    guard: str = ""
    guard_subject: str = ""
    ttl: Ttl | None = None
    rollup: Rollup | None = None


async def store(js: JetStreamContext, stream: Stream, place: BucketSubjects, record: Record) -> int:
    """Store a record and return its revision.

    Raises:
        WrongRevisionError: Another revision is the newest.
        BucketNotFoundError: The bucket is gone.
        NatsStreamError: What `JetStream.publish` raises.
    """
    expect = None
    if record.revision is not None:
        subject = record.guard_subject or None
        expect = Expect(last_subject_seq=record.revision, subject=subject)
    try:
        ack = await js.publish(
            record.subject,
            record.payload,
            headers=record.headers,
            expect=expect,
            ttl=record.ttl,
            rollup=record.rollup,
        )
    except WrongLastSequenceError as error:
        raise _wrong_revision(place.bucket, record, error) from error
    except NoRespondersError as error:
        raise await _why_nobody(stream, place.bucket, error) from error
    except (RequestTimeoutError, ConnectionLostError) as error:
        error.hint = (
            f"get({record.key!r}, consistent=True) tells what is stored; a create or update may be "
            "repeated, for a second copy is refused"
        )
        raise
    except (MessageRuleError, MessageTooLargeError, StreamFullError) as error:
        error.hint = _what_to_change(place.bucket, record, error)
        raise
    return ack.sequence


def key_exists(
    bucket: str, key: str, revision: int | None, error: WrongLastSequenceError
) -> KeyExistsError:
    """Return the error of a key that was to be created and has a value.

    Args:
        bucket: The bucket.
        key: The key.
        revision: The value's revision; None where others write and remove the key all the time.
        error: What the server said.
    """
    told = f"exists, its revision is {revision}", f"update(key, value, revision={revision})"
    if revision is None:
        told = "is written and removed by others all the time", "create it again later"
    failure = KeyExistsError(
        f"bucket {bucket}: key {key!r} {told[0]}",
        code=error.code,
        err_code=error.err_code,
        description=error.description,
        hint=f"{told[1]}, or put() to write over it",
        retryable=revision is None,
    )
    failure.bucket, failure.key = bucket, key
    failure.last_seq = failure.revision = revision
    return failure


def _wrong_revision(
    bucket: str, record: Record, error: WrongLastSequenceError
) -> WrongRevisionError:
    is_now = "" if error.last_seq is None else f", it is {error.last_seq}"
    told = f"the newest revision of key {record.key!r} is not {record.revision}{is_now}"
    hint = "somebody wrote it in between: get(key, consistent=True), decide again, update"
    if record.guard:
        told = (
            f"key {record.key!r} was not written: the newest revision of its guard "
            f"{record.guard!r} is not {record.revision}{is_now}"
        )
        hint = "somebody else may hold the guard by now"
    failure = WrongRevisionError(
        f"bucket {bucket}: {told}",
        code=error.code,
        err_code=error.err_code,
        description=error.description,
        hint=hint,
        retryable=error.retryable,
    )
    failure.bucket, failure.key = bucket, record.guard or record.key
    failure.last_seq = failure.revision = error.last_seq
    return failure


def _what_to_change(bucket: str, record: Record, error: NatsStreamError) -> str:
    """Return what makes room for a record that a bucket's configuration refuses."""
    change = f"js.kv.update({bucket!r}, "
    if isinstance(error, MessageTooLargeError):
        return f"{change}max_value_size=...), or js.objects for large values"
    if isinstance(error, StreamFullError):
        return (
            f"{change}max_bytes=...), or remove what is old: markers are refused too, but not "
            "purge_deletes(older_than=0) and kv.stream.purge(subject=...)"
        )
    return error.hint if record.ttl is None else f"a ttl needs {change}limit_marker_ttl=60)"


async def _why_nobody(
    stream: Stream, bucket: str, error: NoRespondersError
) -> NoRespondersError | BucketNotFoundError:
    """Return what it means that no stream takes a key: the bucket is gone, or its leader."""
    try:
        await stream.info()
    except StreamNotFoundError as gone:
        return BUCKET.not_found(bucket, gone)
    except NatsStreamError:
        return error
    error.hint = f"bucket {bucket} has no leader now, or its origin is away: try again"
    return error
