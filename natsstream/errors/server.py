"""The server said no."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from natsstream.errors.base import NatsStreamError


class ServerError(NatsStreamError):
    """The server answered with an error.

    Attributes:
        code: The HTTP-like class of the error (400, 404, 500, 503); never tells errors apart.
        err_code: The error's identity in the server's catalogue; 0 when the server gave none.
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
    """The thing named does not exist on the server."""


class StreamNotFoundError(NotFoundError):
    """No stream of this name exists in the account."""


class ConsumerNotFoundError(NotFoundError):
    """The stream has no consumer of this name."""


class ConsumerDeletedError(ConsumerNotFoundError):
    """The consumer, or its stream, was deleted while it was being read."""


class MessageNotFoundError(NotFoundError):
    """The stream holds no message at the sequence or subject."""


class ConflictError(ServerError):
    """The request contradicts what the server holds now."""


class StreamExistsError(ConflictError):
    """A stream of this name exists with another configuration.

    Attributes:
        differences: The fields that differ, by name: what the server has, and what was asked for,
            None where that was the server's default; empty where they were not compared.
    """

    differences: Mapping[str, tuple[object, object]] = MappingProxyType({})


class BucketExistsError(StreamExistsError):
    """A bucket or an object store of this name exists with another configuration."""


class ConsumerExistsError(ConflictError):
    """A consumer of this name exists already.

    Attributes:
        differences: The fields that differ, by name: what the server has, and what was asked for,
            None where that was the server's default; empty where they were not compared.
    """

    differences: Mapping[str, tuple[object, object]] = MappingProxyType({})


class SubjectOverlapError(ConflictError):
    """Another stream of the account captures some of the subjects."""


class WrongLastSequenceError(ConflictError):
    """An expected last sequence did not hold when the message reached the stream.

    Attributes:
        last_seq: The sequence that the server found; None where it does not tell, on replicated
            streams, where `retryable` is True: another write to the subject is under way.
    """

    last_seq: int | None = None


class KeyExistsError(WrongLastSequenceError):
    """A key was to be created, and has a value.

    Attributes:
        bucket: The bucket.
        key: The key.
        revision: The revision of the value that it has; None where it could not be told.
    """

    bucket: str = ""
    key: str = ""
    revision: int | None = None


class WrongRevisionError(WrongLastSequenceError):
    """The newest revision of a key is not the one that a write expected; nothing was written.

    Attributes:
        bucket: The bucket.
        key: The key.
        revision: Its newest revision, 0 for none; None where the server does not tell, on
            replicated buckets, where `retryable` is True: another write of the key is under way.
    """

    bucket: str = ""
    key: str = ""
    revision: int | None = None


class WrongLastMessageIdError(ConflictError):
    """The expected last message id did not hold."""


class WrongStreamError(ConflictError):
    """The subject is stored by another stream than the one expected."""


class InvalidConfigError(ServerError):
    """The server refused a stream or consumer configuration."""


class NotABucketError(ServerError):
    """There is a stream of a bucket's or an object store's name, and it is none."""


class JetStreamNotEnabledError(ServerError):
    """The server or the account has no JetStream."""


class LimitExceededError(ServerError):
    """A limit of the stream, the account or the server is reached."""


class PullLimitError(LimitExceededError):
    """A pull asks for more than the consumer's configuration allows.

    Attributes:
        limit: The consumer's field: "max_batch", "max_expires", "max_bytes" or "max_waiting".
    """

    limit: str = ""


class StreamFullError(LimitExceededError):
    """The stream has `discard=new` and is at its limit."""


class MessageTooLargeError(LimitExceededError):
    """The message exceeds the stream's `max_msg_size` or the header limit."""


class ResourceExhaustedError(LimitExceededError):
    """Account or server have no memory, storage, streams or consumers left."""


class NotPermittedError(ServerError):
    """The stream's configuration forbids the operation."""


class StreamSealedError(NotPermittedError):
    """The stream is sealed: it takes no writes and no deletes, for ever."""


class BatchError(ServerError):
    """An atomic or fast batch was refused."""


class BatchDisabledError(BatchError):
    """The stream takes no batches of this kind: `allow_atomic`, `allow_batched`."""


class BatchIncompleteError(BatchError):
    """A message of the batch is missing, or the server does not know the batch any more."""


class BatchExpiredError(BatchIncompleteError):
    """No message came for longer than the server keeps an open batch; nothing of it is stored."""


class BatchTooLargeError(BatchError):
    """The atomic batch has more messages than one may have."""


class TooManyBatchesError(BatchError):
    """The stream or the server has as many open batches as it may have. Retry later."""


class BatchDuplicateError(BatchError):
    """A message id of the atomic batch is in the stream already, or twice in the batch."""


class BatchBrokenError(BatchError):
    """A fast batch ended before it was closed: `report` says what is stored."""


class MessageRuleError(ServerError):
    """A per-message rule was refused: TTL, schedule, counter, rollup or source header."""


class ScheduleError(MessageRuleError):
    """A schedule was refused, or the stream takes none: `allow_msg_schedules`."""


class CounterError(MessageRuleError):
    """A counter's increment was refused, or the stream counts nothing: `allow_msg_counter`."""


class PermissionDeniedError(ServerError):
    """The user's permissions forbid to publish to a subject, or to subscribe to it.

    Attributes:
        operation: "publish" or "subscription".
        subject: The subject that is not allowed.
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


class UnsupportedServerError(ServerError):
    """The server is too old for what was asked; where something was done, the message says what.

    Attributes:
        feature: What it lacks; empty where only the server knows.
        needs: The first nats-server that has it, such as `2.11`; empty where only the server knows.
        version: The version of the server that lacks it; empty where it does not tell.
    """

    feature: str = ""
    needs: str = ""
    version: str = ""


class UnavailableError(ServerError):
    """The server can not answer now: no leader, overload, shutting down. Retry later."""


class BucketNotFoundError(StreamNotFoundError):
    """No bucket of this name exists in the account."""


class ObjectNotFoundError(NotFoundError):
    """The store has no object of this name, or a link leads to none."""


class ObjectExpiredError(ObjectNotFoundError):
    """The object's bytes are older than the store keeps messages; what is said of it is younger."""


class ObjectExistsError(ConflictError):
    """The store has an object of this name already."""


class ObjectLinkError(ConflictError):
    """What is named can not be linked to, or a link leads to no object that could be read."""


class LockHeldError(ConflictError):
    """Another holds the lock, and went on to hold it for as long as was waited.

    Attributes:
        name: The lock's key.
        holder: What its holder calls itself; empty where that was not seen.
    """

    name: str = ""
    holder: str = ""
