"""Stores one record of a key, with the errors of a bucket.

Law: a write is sent once, and again only if there were no responders (ADR-22). A write whose ack
was lost may be stored or not; that is never guessed. A record lives as long as its `ttl` says, and
what has expired stays gone.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Literal

from natsstream.api.names import covers
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
from natsstream.kv.conventions import BUCKET, SUBJECT_PREFIX
from natsstream.kv.entry import OPERATION_HEADER
from natsstream.publish.outgoing import Expect
from natsstream.publish.schedule import Ttl
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a key.

    Attributes:
        key: The key, for errors.
        subject: The subject to publish to.
        payload: The bytes as they are stored.
        revision: The expected newest revision of the key, or of its guard; None expects nothing.
        ttl: Seconds after which the server removes it.
        marker: "DEL" or "PURGE", which also removes the key's history; None for a value.
        guard: Another key whose newest revision is expected instead.
        guard_subject: The subject of the guard.
    """

    key: str
    subject: str
    payload: bytes = b""
    _: KW_ONLY
    revision: int | None = None
    ttl: Ttl | None = None
    marker: Literal["DEL", "PURGE"] | None = None
    guard: str | None = None
    guard_subject: str | None = None


async def store(js: JetStreamContext, stream: Stream, record: Record) -> int:
    """Store a record and return its revision.

    Raises:
        WrongRevisionError: Another revision is the newest.
        BucketNotFoundError: The bucket is gone.
        NatsStreamError: As for `JetStream.publish`.
    """
    bucket, expect = BUCKET.name_of(stream.name), None
    if record.revision is not None:
        expect = Expect(last_subject_seq=record.revision, subject=record.guard_subject)
    try:
        ack = await js.publish(
            record.subject,
            record.payload,
            headers=None if record.marker is None else {OPERATION_HEADER: record.marker},
            expect=expect,
            ttl=record.ttl,
            rollup="subject" if record.marker == "PURGE" else None,
        )
    except WrongLastSequenceError as error:
        raise _wrong_revision(bucket, record, error) from error
    except NoRespondersError as error:
        raise await _why_no_responders(stream, bucket, record.subject, error) from error
    except (RequestTimeoutError, ConnectionLostError) as error:
        if isinstance(error, ConnectionLostError) and error.is_unsent:
            raise
        error.hint = (
            f"get({record.key!r}, consistent=True) returns what is stored; a create or update may "
            "be repeated, for a second copy is refused"
        )
        raise
    except (MessageRuleError, MessageTooLargeError, StreamFullError) as error:
        error.hint = _what_to_change(bucket, record, error)
        raise
    return ack.sequence


def key_exists(
    bucket: str, key: str, revision: int | None, error: WrongLastSequenceError
) -> KeyExistsError:
    """Return the error of a key that was to be created and has a value.

    Args:
        bucket: The bucket.
        key: The key.
        revision: The value's revision; None if others write and remove the key all the time.
        error: The server's refusal.
    """
    state, hint = f"exists, its revision is {revision}", f"update(key, value, revision={revision})"
    if revision is None:
        state, hint = "is written and removed by others all the time", "create it again later"
    failure = KeyExistsError(
        f"bucket {bucket}: key {key!r} {state}",
        code=error.code,
        err_code=error.err_code,
        description=error.description,
        hint=f"{hint}, or put() to write over it",
        retryable=revision is None,
    )
    failure.bucket, failure.key = bucket, key
    failure.last_seq = failure.revision = revision
    return failure


def _wrong_revision(
    bucket: str, record: Record, error: WrongLastSequenceError
) -> WrongRevisionError:
    is_now = "" if error.last_seq is None else f", it is {error.last_seq}"
    problem = f"the newest revision of key {record.key!r} is not {record.revision}{is_now}"
    hint = "another write came between: get(key, consistent=True), decide again, update"
    if error.last_seq == 0 and record.guard is None:
        problem = f"key {record.key!r} does not exist: it has no revision {record.revision}"
        hint = "create(key, value) stores the first one"
    if record.guard is not None:
        problem = (
            f"key {record.key!r} was not written: the newest revision of its guard "
            f"{record.guard!r} is not {record.revision}{is_now}"
        )
        hint = "another client may hold the guard by now"
    failure = WrongRevisionError(
        f"bucket {bucket}: {problem}",
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
    """Return the change of configuration that makes room for a refused record."""
    change = f"js.kv.update({bucket!r}, "
    if isinstance(error, MessageTooLargeError):
        return f"{change}max_value_size=...), or js.objects for large values"
    if isinstance(error, StreamFullError):
        return (
            f"{change}max_bytes=...), or remove what is old: markers are refused too, but not "
            "purge_deletes(older_than=0) and kv.stream.purge(subject=...)"
        )
    return error.hint if record.ttl is None else f"a ttl needs {change}limit_marker_ttl=60)"


async def _why_no_responders(
    stream: Stream, bucket: str, subject: str, error: NoRespondersError
) -> NoRespondersError | BucketNotFoundError:
    """Return why a key's subject has no responders: the bucket is gone, or has no leader.

    Or its stream, which any client may change, does not capture the subject any more.
    """
    try:
        config = (await stream.info()).config
    except StreamNotFoundError as gone:
        return BUCKET.not_found(bucket, gone)
    except NatsStreamError:
        return error
    error.hint = f"bucket {bucket} has no leader now: try again"
    mirror = stream.cached.config.mirror
    if mirror is not None:
        error.hint = (
            f"bucket {bucket} is a mirror: its origin, bucket {BUCKET.name_of(mirror.name)}, is "
            "away or does not exist"
        )
    every_key = f"{SUBJECT_PREFIX}{bucket}.>"
    # Through a domain or an import a key has another subject than in its stream.
    is_direct = mirror is None and covers(every_key, subject)
    if is_direct and not any(covers(each, subject) for each in config.subjects or ()):
        error.hint = (
            f"other clients changed the subjects of stream {stream.name}: add {every_key!r}"
        )
    return error
