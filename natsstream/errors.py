"""Every error that natsstream raises, in one tree.

```
NatsStreamError
├── UsageError (also ValueError)         the call is wrong; nothing was sent
│   ├── ConfigError                      an option or a config field has no legal value
│   ├── MessageSettledError              the message was acked, nacked or terminated before
│   ├── StreamNameError                  not a legal stream name
│   ├── ConsumerNameError                not a legal consumer name
│   ├── BucketNameError                  not a legal name of a bucket
│   ├── ObjectNameError                  not a legal name of an object
│   ├── KeyNameError                     not a legal key of a bucket, or filter of keys
│   ├── SubjectError                     not a legal subject or filter
│   ├── HeaderError                      a header that would break the wire format
│   ├── PayloadTooLargeError             larger than the server's max_payload
│   ├── StoragePathError                 not a path of the core stream's owner
│   ├── SequenceRangeError               a range that the stream does not hold
│   ├── EventLoopError                   a connection is used on another event loop than its own
│   ├── ReadOnlyStreamError              a write to a core stream that is only read
│   ├── ProducerFullError                retryable: a producer's buffer is full
│   └── MissingExtraError                an optional dependency is not installed
├── ServerError                          the server refused (`code`, `err_code`)
│   ├── NotFoundError
│   │   ├── StreamNotFoundError
│   │   │   └── BucketNotFoundError
│   │   ├── ObjectNotFoundError          the store has no object of this name
│   │   │   └── ObjectExpiredError        its bytes are older than the store keeps messages
│   │   ├── ConsumerNotFoundError
│   │   │   └── ConsumerDeletedError     it was deleted while it was being read
│   │   └── MessageNotFoundError
│   ├── ConflictError
│   │   ├── StreamExistsError
│   │   │   └── BucketExistsError
│   │   ├── ConsumerExistsError
│   │   ├── LockHeldError                retryable: another holds the lock
│   │   ├── ObjectExistsError            the store has an object of this name
│   │   ├── ObjectLinkError              a link cannot be made or followed
│   │   ├── SubjectOverlapError
│   │   ├── WrongLastSequenceError
│   │   │   ├── KeyExistsError            the key has a value already
│   │   │   └── WrongRevisionError        the key's newest revision is another one
│   │   ├── WrongLastMessageIdError
│   │   ├── StreamClosedError             a producer has ended the stream
│   │   └── WrongStreamError
│   ├── InvalidConfigError
│   ├── NotABucketError                  a stream with a bucket's name that is no bucket
│   ├── JetStreamNotEnabledError
│   ├── LimitExceededError
│   │   ├── RejectedError                 a limit of a core stream
│   │   ├── PullLimitError                a pull exceeds the consumer's limits
│   │   ├── StreamFullError
│   │   ├── MessageTooLargeError
│   │   └── ResourceExhaustedError
│   ├── NotPermittedError
│   │   └── StreamSealedError
│   ├── PermissionDeniedError            the user may not publish or subscribe there
│   ├── BatchError
│   │   ├── BatchDisabledError           the stream takes no batches of this kind
│   │   ├── BatchIncompleteError         a message is missing, or the server lost the batch
│   │   │   └── BatchExpiredError        no message came within the batch's idle time
│   │   ├── BatchTooLargeError
│   │   ├── TooManyBatchesError          retryable: the limit of open batches is reached
│   │   ├── BatchDuplicateError          a message id is stored already
│   │   └── BatchBrokenError             a fast batch ended before it was closed
│   ├── MessageRuleError                 TTL, schedule, counter or rollup refused
│   │   ├── ScheduleError
│   │   └── CounterError
│   ├── ProducerFailedError              the server refused a batch of a producer for good
│   ├── UnsupportedServerError           the server is too old for the feature
│   └── UnavailableError                 retryable: no leader, overload, shutting down
├── TransportError                       no answer
│   ├── ConnectError                     no server could be reached
│   │   └── TlsError                     no TLS session, or a certificate that is not trusted
│   ├── AuthenticationError              the server refused the credentials
│   ├── ConnectionLostError              retryable: the connection broke and did not come back
│   ├── ConnectionClosedError            used after close
│   ├── RequestTimeoutError              retryable: no answer within the deadline
│   ├── BatchOutcomeUnknownError         an atomic batch may be stored or not
│   ├── NoRespondersError                retryable: the subject has no responders
│   ├── ProducerTimeoutError             a batch of a producer may be stored or not
│   ├── DeliveryForgottenError           the server no longer knows the delivery
│   ├── LeaseLostError                   a message in work may be redelivered to another
│   ├── LockLostError                    the lock is lost; another may hold it
│   └── ProtocolError                    an answer that is not NATS or not JetStream
└── IntegrityError                       stored data is not as promised
    ├── MessagesLostError
    ├── CacheFullError                   a local cache would exceed its limit
    ├── ChunksDamagedError               chunks of a value are missing, surplus or wrong
    ├── CodecError                       a stored key or value cannot be decoded
    │   └── ValueDecodeError             a typed bucket's format cannot read a value
    ├── ObjectChangedError               replaced or deleted while it was being read
    ├── ObjectMetaError                  an object's description cannot be read
    ├── BackupError                      a backup is incomplete or damaged
    ├── ChainBrokenError                 a chain of messages was changed
    ├── ChainForkedError                 two writers use the same id
    ├── ControlRecordError               a producer's state or a stream's end cannot be read
    ├── IncompleteReadError              retryable: a direct read ended early
    ├── SequenceGapError                 the stream has lost the state of a producer
    ├── SlowReaderError                  a core subscription dropped messages
    ├── StaleEpochError                  another instance of the producer has taken over
    │   └── ProducerConflictError        two instances of a producer use one epoch
    ├── StreamRecreatedError
    └── UnsavedChangesError              a map or a log was closed before all was saved
```

Source: nats-server's `server/errors.json` for the meaning of each `err_code`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

FOREIGN: Mapping[str, str] = {
    "APIError": "ServerError",
    "AuthorizationError": "AuthenticationError, or PermissionDeniedError",
    "BadBucketError": "NotABucketError",
    "BadRequestError": "ServerError, whose code is 400",
    "BadSubjectError": "SubjectError",
    "Error": "NatsStreamError",
    "FetchTimeoutError": "consumer.fetch(n) returns an empty list",
    "InvalidBucketNameError": "BucketNameError",
    "InvalidKeyError": "KeyNameError",
    "KeyDeletedError": "kv.get(key) returns None",
    "KeyNotFoundError": "kv.get(key) returns None",
    "KeyWrongLastSequenceError": "WrongRevisionError, or KeyExistsError of kv.create()",
    "MaxPayloadError": "PayloadTooLargeError",
    "MsgAlreadyAckdError": "MessageSettledError",
    "NoKeysError": "kv.keys() yields no key",
    "NoServersError": "ConnectError",
    "NoStreamResponseError": "NoRespondersError",
    "ObjectAlreadyExists": "ObjectExistsError",
    "ObjectDeletedError": "box.get(name) returns None",
    "ServiceUnavailableError": "UnavailableError, or NoRespondersError",
    "SlowConsumerError": "SlowReaderError",
    "TimeoutError": "RequestTimeoutError, or ConnectionLostError",
    "TooManyStalledMsgsError": "publisher.send() waits for a free place",
}
"""The errors of nats-py, by what stands for them here."""

if not TYPE_CHECKING:  # Type checkers report a name that is missing by themselves.

    def __getattr__(name: str) -> object:
        here = f"; in natsstream: {FOREIGN[name]}" if name in FOREIGN else ""
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{here}")

    def __dir__() -> list[str]:
        return [name for name, each in globals().items() if _is_error(each)]

    def _is_error(value: object) -> bool:
        return isinstance(value, type) and issubclass(value, NatsStreamError)


def _remade(kind: type[NatsStreamError], args: tuple[object, ...]) -> NatsStreamError:
    """Return the error of a copy or a pickle, whose attributes follow."""
    return kind.__new__(kind, *args)


class NatsStreamError(Exception):
    """The root of all errors that natsstream raises.

    Attributes:
        message: The operation that failed, its object and its values.
        detail: More about the cause, such as the server's own words; may be empty.
        hint: The next command or argument to try; may be empty.
        retryable: True when the same call may succeed later without a change.
        index: Index of the failed message where one call takes several, from 0; else None.
    """

    index: int | None = None

    def __init__(
        self, message: str, *, detail: str = "", hint: str = "", retryable: bool = False
    ) -> None:
        super().__init__(message)
        self.message: str = message
        self.detail = detail
        self.hint = hint
        self.retryable = retryable

    def __reduce__(self) -> tuple[object, ...]:
        # Without `__init__`, which wants more than the message in many classes.
        return _remade, (type(self), self.args), vars(self)

    def name_call(self, what: str) -> None:
        """Put the operation before the message, of an error that no other call holds."""
        self.message = f"{what}: {self.message}"
        super().__init__(self.message)

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UsageError(NatsStreamError, ValueError):
    """The call is wrong; nothing was sent."""


class ConfigError(UsageError):
    """An option or a config field has an illegal value."""


class MessageSettledError(UsageError):
    """The message was acked, nacked or terminated before; only the first one counts."""


class StreamNameError(UsageError):
    """The stream name is empty, too long or has a character that the server refuses."""


class ConsumerNameError(UsageError):
    """The consumer name is empty, too long or has a character that the server refuses."""


class SubjectError(UsageError):
    """The subject or filter is empty, too long, or has an illegal character or wildcard."""


class HeaderError(UsageError):
    """A header name or value would break the wire format."""


class PayloadTooLargeError(UsageError):
    """Headers and payload together exceed the server's `max_payload`."""


class StoragePathError(UsageError):
    """The path of a core stream is not legal, or not one of its owner's."""


class ReadOnlyStreamError(UsageError):
    """A core stream over a stream that is only read was told to write (403 in Conat)."""


class SequenceRangeError(UsageError):
    """The requested range lies outside of the stream's sequences.

    Attributes:
        first_seq: First sequence that the stream holds.
        last_seq: Last sequence that the stream holds.
    """

    def __init__(self, message: str, *, first_seq: int, last_seq: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.first_seq = first_seq
        self.last_seq = last_seq


class EventLoopError(UsageError):
    """A connection is used on another event loop or thread than the one it was opened on."""


class ProducerFullError(UsageError):
    """The producer holds `max_buffered_bytes` already; nothing was appended."""


class MissingExtraError(UsageError):
    """A feature needs an optional dependency that is not installed."""


class BucketNameError(UsageError):
    """The bucket name is empty, too long, or has characters other than letters, digits, - and _."""


class ObjectNameError(UsageError):
    """The object name is empty, too long for a subject, or not valid UTF-8."""


class KeyNameError(UsageError):
    """The key or key filter is not legal in a bucket."""


class ServerError(NatsStreamError):
    """The server answered with an error.

    Attributes:
        code: HTTP-like class of the error (400, 404, 500, 503); it does not identify the error.
        err_code: Identity of the error in the server's catalogue; 0 if the server gave none.
        description: The server's own words.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        err_code: int = 0,
        description: str = "",
        detail: str = "",
        hint: str = "",
        retryable: bool = False,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint, retryable=retryable)
        self.code = code
        self.err_code = err_code
        self.description = description


class NotFoundError(ServerError):
    """The named stream, consumer, message or object does not exist."""


class StreamNotFoundError(NotFoundError):
    """The account has no stream of this name."""


class BucketNotFoundError(StreamNotFoundError):
    """The account has no bucket of this name."""


class ObjectNotFoundError(NotFoundError):
    """The store has no object of this name, or a link leads to none."""


class ObjectExpiredError(ObjectNotFoundError):
    """The object's chunks exceeded the store's `max_age`, but its description did not."""


class ConsumerNotFoundError(NotFoundError):
    """The stream has no consumer of this name."""


class ConsumerDeletedError(ConsumerNotFoundError):
    """The consumer or its stream was deleted during a read."""


class MessageNotFoundError(NotFoundError):
    """The stream holds no message at the sequence or subject."""


class ConflictError(ServerError):
    """The request contradicts the server's present state."""


class StreamExistsError(ConflictError):
    """A stream of this name exists with another configuration.

    Attributes:
        differences: Each field that differs, by name: the server's value and the requested one,
            None for the server's default. Empty if they were not compared.
    """

    differences: Mapping[str, tuple[object, object]] = MappingProxyType({})


class BucketExistsError(StreamExistsError):
    """A bucket or an object store of this name exists with another configuration."""


class ConsumerExistsError(ConflictError):
    """A consumer of this name exists already.

    Attributes:
        differences: Each field that differs, by name: the server's value and the requested one,
            None for the server's default. Empty if they were not compared.
    """

    differences: Mapping[str, tuple[object, object]] = MappingProxyType({})


class LockHeldError(ConflictError):
    """Another client held the lock for the whole wait.

    Attributes:
        name: The lock's key.
        holder: The holder's name; empty if it is not known.
    """

    name: str = ""
    holder: str = ""


class ObjectExistsError(ConflictError):
    """The store has an object of this name already."""


class ObjectLinkError(ConflictError):
    """The object cannot be linked to, or the link leads to no readable object."""


class SubjectOverlapError(ConflictError):
    """Another stream of the account captures some of the subjects.

    Attributes:
        stream: The other stream; empty if it is not known.
        subject: The wanted subject that it captures, or a part of it; empty if it is not known.
    """

    stream: str = ""
    subject: str = ""


class WrongLastSequenceError(ConflictError):
    """An expected last sequence did not hold when the message reached the stream.

    Attributes:
        last_seq: The sequence that the server found. None on replicated streams where another write
            to the subject is in flight; `retryable` is then True.
    """

    last_seq: int | None = None


class KeyExistsError(WrongLastSequenceError):
    """`create` found a value of the key.

    Attributes:
        bucket: The bucket.
        key: The key.
        revision: Revision of that value; None if it is not known.
    """

    bucket: str = ""
    key: str = ""
    revision: int | None = None


class WrongRevisionError(WrongLastSequenceError):
    """The newest revision of the key is not the expected one; nothing was written.

    Attributes:
        bucket: The bucket.
        key: The key.
        revision: Its newest revision, 0 for none. None on replicated buckets where another write of
            the key is in flight; `retryable` is then True.
    """

    bucket: str = ""
    key: str = ""
    revision: int | None = None


class WrongLastMessageIdError(ConflictError):
    """The expected last message id did not hold."""


class StreamClosedError(ConflictError):
    """A producer has ended the stream: nothing is appended behind its end.

    Attributes:
        final_offset: The last sequence before the end; None if it is not known.
    """

    final_offset: int | None = None


class WrongStreamError(ConflictError):
    """Another stream than the expected one captures the subject."""


class InvalidConfigError(ServerError):
    """The server refused a stream or consumer configuration."""


class NotABucketError(ServerError):
    """The stream has a bucket's or an object store's name, but is neither."""


class JetStreamNotEnabledError(ServerError):
    """The server or the account has no JetStream."""


class LimitExceededError(ServerError):
    """A limit of the stream, the account or the server is reached."""


class RejectedError(LimitExceededError):
    """A limit of a core stream refuses the message; nothing was stored.

    Its writers enforce the limits that servers do not have. At a limit of a rate `retryable` is
    True.

    Attributes:
        limit: The field of the configuration, such as "max_msg_size"; empty if the server refused.
    """

    limit: str = ""


class PullLimitError(LimitExceededError):
    """A pull request exceeds a limit of the consumer.

    Attributes:
        limit: The consumer's field: "max_batch", "max_expires", "max_bytes" or "max_waiting".
    """

    limit: str = ""


class StreamFullError(LimitExceededError):
    """The stream is full and has `discard=new`."""


class MessageTooLargeError(LimitExceededError):
    """The message exceeds the stream's `max_msg_size` or the header limit."""


class ResourceExhaustedError(LimitExceededError):
    """The account or server has no memory, storage, streams or consumers left."""


class NotPermittedError(ServerError):
    """The stream's configuration forbids the operation."""


class StreamSealedError(NotPermittedError):
    """The stream is sealed: it takes no writes and no deletes any more."""


class BatchError(ServerError):
    """An atomic or fast batch was refused."""


class BatchDisabledError(BatchError):
    """The stream lacks `allow_atomic` or `allow_batched`."""


class BatchIncompleteError(BatchError):
    """The server lacks a message of the batch, or no longer knows the batch."""


class BatchExpiredError(BatchIncompleteError):
    """The batch was idle for longer than the server keeps it; nothing of it is stored."""


class BatchTooLargeError(BatchError):
    """The atomic batch has too many messages."""


class TooManyBatchesError(BatchError):
    """The stream or the server has too many open batches. Retry later."""


class BatchDuplicateError(BatchError):
    """A message id of the atomic batch is stored already, or twice in the batch."""


class BatchBrokenError(BatchError):
    """A fast batch ended before it was closed; see its `report`."""


class MessageRuleError(ServerError):
    """A per-message rule was refused: TTL, schedule, counter, rollup or source header."""


class ScheduleError(MessageRuleError):
    """The schedule was refused, or the stream lacks `allow_msg_schedules`."""


class CounterError(MessageRuleError):
    """The increment was refused, or the stream lacks `allow_msg_counter`."""


class PermissionDeniedError(ServerError):
    """The user may not publish or subscribe to the subject.

    Attributes:
        operation: "publish" or "subscription".
        subject: The denied subject.
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str,
        subject: str,
        detail: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.operation = operation
        self.subject = subject


class ProducerFailedError(ServerError):
    """The server refused a batch of a producer for good; this batch and later ones are not stored.

    Attributes:
        seq: The number of the batch in its epoch.
    """

    seq: int = 0


class UnsupportedServerError(ServerError):
    """The server is too old for the feature; the message says if something was done.

    Attributes:
        feature: The missing feature; empty if only the server knows.
        needs: First nats-server that has it, such as `2.11`; empty if only the server knows.
        version: Version of the connected server; empty if it is not known.
    """

    feature: str = ""
    needs: str = ""
    version: str = ""


class UnavailableError(ServerError):
    """The server cannot answer now: no leader, overload or shutdown. Retry later."""


class TransportError(NatsStreamError):
    """No answer came; the request may have been carried out or not."""


class ConnectError(TransportError):
    """None of the given servers could be reached."""


class TlsError(ConnectError):
    """No TLS session could be agreed on, or a certificate is not trusted."""


class AuthenticationError(TransportError):
    """The server refused the credentials."""


class ConnectionLostError(TransportError):
    """The connection broke and did not come back within the deadline.

    Attributes:
        is_unsent: True for a message that was never sent: sending it again stores it once.
    """

    is_unsent: bool = False


class ConnectionClosedError(TransportError):
    """The connection was closed by this side; open a new one."""


class RequestTimeoutError(TransportError):
    """No answer came within the deadline."""


class BatchOutcomeUnknownError(TransportError):
    """An atomic batch may be stored or not, and `outcome` cannot find out."""


class NoRespondersError(TransportError):
    """The subject of the request has no responders."""


class ProtocolError(TransportError):
    """The answer is not valid NATS or JetStream."""


class LeaseLostError(TransportError):
    """`ack_wait` passed without an ack; the server may have redelivered the message."""


class DeliveryForgottenError(TransportError):
    """The server no longer knows the delivery: no ack counts, the message is redelivered."""


class ProducerTimeoutError(TransportError):
    """A batch of a producer was not acknowledged in time; it may be stored or not."""


class LockLostError(TransportError):
    """The lock is lost: another client may hold it, and work done under it is in doubt.

    Attributes:
        name: The lock's key.
        token: Fencing token of the lost lock; 0 if it was never held.
    """

    def __init__(
        self, message: str, *, name: str, token: int, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.name = name
        self.token = token


class IntegrityError(NatsStreamError):
    """Stored data is not as promised."""


class MessagesLostError(IntegrityError):
    """Messages of the stream are gone, and no known rule deleted them.

    Attributes:
        first_seq: First missing sequence.
        last_seq: Last missing sequence.
    """

    def __init__(self, message: str, *, first_seq: int, last_seq: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.first_seq = first_seq
        self.last_seq = last_seq


class SlowReaderError(IntegrityError):
    """A core subscription dropped messages because its reader was too slow.

    Attributes:
        dropped: Messages dropped so far.
    """

    def __init__(self, message: str, *, dropped: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.dropped = dropped


class IncompleteReadError(IntegrityError):
    """A direct read ended early, or lacks messages in its middle.

    Attributes:
        last_seq: Last sequence before the gap; 0 for none.
    """

    def __init__(
        self, message: str, *, last_seq: int = 0, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint, retryable=True)
        self.last_seq = last_seq


class BackupError(IntegrityError):
    """A backup is incomplete or damaged, or could not be restored completely."""


class ChainBrokenError(IntegrityError):
    """A chain of messages is not as its writer wrote it.

    Attributes:
        writer: Id of the chain's writer.
        sequence: Sequence of the first broken link; 0 if the end is missing.
        kind: The difference, one of `natsstream.streams.chain.verify.BreakKind`.
    """

    def __init__(
        self,
        message: str,
        *,
        writer: str,
        sequence: int,
        kind: str,
        detail: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.writer = writer
        self.sequence = sequence
        self.kind = kind


class ChainForkedError(IntegrityError):
    """Another writer uses the same writer id.

    Attributes:
        writer: The id.
        sequence: Sequence of the other writer's link; 0 if it is not known.
    """

    def __init__(self, message: str, *, writer: str, sequence: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.writer = writer
        self.sequence = sequence


class ControlRecordError(IntegrityError):
    """The state of a producer, or the end of a stream, was not written by an idempotent producer.

    `detail` has the field, or the beginning of the record.
    """


class UnsavedChangesError(IntegrityError):
    """A map or a log was closed before all of its changes were saved; the others are lost.

    Attributes:
        count: The number of keys or messages that are lost.
        keys: The keys, of a map; empty for a log.
    """

    def __init__(self, message: str, *, count: int, keys: Sequence[str] = ()) -> None:
        super().__init__(
            message, hint="await save() before closing: it waits as long as you let it"
        )
        self.count = count
        self.keys = keys


class StaleEpochError(IntegrityError):
    """Another instance of the producer has claimed a later epoch: this one writes nothing more.

    Attributes:
        current_epoch: The epoch that the stream has.
    """

    def __init__(
        self, message: str, *, current_epoch: int, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.current_epoch = current_epoch


class ProducerConflictError(StaleEpochError):
    """Another instance of the producer writes in the same epoch."""


class SequenceGapError(IntegrityError):
    """The stream's state of a producer does not fit its next batch: the state was lost.

    Attributes:
        expected_seq: The number of the batch that the stream expects.
        received_seq: The number of the batch that was to be stored.
    """

    def __init__(
        self,
        message: str,
        *,
        expected_seq: int,
        received_seq: int,
        detail: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.expected_seq = expected_seq
        self.received_seq = received_seq


class StreamRecreatedError(IntegrityError):
    """The stream was created again, or lost its end: its sequences are other messages now."""


class ObjectMetaError(IntegrityError):
    """The stored description of an object cannot be read.

    Attributes:
        name: The object's name.
        revision: Sequence of the message that holds it.
    """

    def __init__(
        self, message: str, *, name: str, revision: int, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.name = name
        self.revision = revision


class ChunksDamagedError(IntegrityError):
    """The chunks of a value are not as its writer stored them.

    Attributes:
        subject: The subject of its chunks.
        kind: "missing" chunks or bytes, "surplus" ones, or a wrong "digest".
    """

    def __init__(
        self, message: str, *, subject: str, kind: str, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.subject = subject
        self.kind = kind


class ObjectChangedError(IntegrityError):
    """The object was replaced or deleted during the read or write; begin again."""


class CodecError(IntegrityError):
    """A stored key or value does not have the form that its codec writes.

    Attributes:
        bucket: The bucket, or the stream of a core stream.
        key: The stored key, encoded if the bucket has a key codec; empty if it is not known.
        revision: The revision, which is the message's sequence; 0 if the key itself cannot be
            decoded.
    """

    def __init__(
        self,
        message: str,
        *,
        bucket: str,
        key: str,
        revision: int = 0,
        detail: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.bucket = bucket
        self.key = key
        self.revision = revision


class ValueDecodeError(CodecError):
    """The format of a typed bucket cannot read a value.

    Attributes:
        bucket: The bucket's name.
        key: The key.
        revision: Revision of the value.
    """


class CacheFullError(IntegrityError):
    """A local cache would exceed its limit: it ended, so that no key is missing.

    Attributes:
        limit_bytes: Limit of keys and values together.
    """

    def __init__(self, message: str, *, limit_bytes: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.limit_bytes = limit_bytes
