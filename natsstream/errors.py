"""Every error that natsstream raises, in one tree.

What lives here: the classes and what they carry. What must not: the mapping from a server's answer
to a class (`_wire/errors_map.py`) and anything that waits.

```
NatsStreamError
├── UsageError (also ValueError)         you called it wrong; nothing was sent
│   ├── ConfigError                      an option or a config field has no legal value
│   ├── StreamNameError                  not a legal stream name
│   ├── SubjectError                     not a legal subject or filter
│   ├── HeaderError                      a header that would break the wire format
│   ├── PayloadTooLargeError             larger than the server's max_payload
│   ├── SequenceRangeError               a range that the stream does not hold
│   └── MissingExtraError                an optional dependency is not installed
├── ServerError                          the server said no (`code`, `err_code`)
│   ├── NotFoundError
│   │   ├── StreamNotFoundError
│   │   ├── ConsumerNotFoundError
│   │   └── MessageNotFoundError
│   ├── ConflictError
│   │   ├── StreamExistsError
│   │   ├── ConsumerExistsError
│   │   ├── SubjectOverlapError
│   │   ├── WrongLastSequenceError
│   │   ├── WrongLastMessageIdError
│   │   └── WrongStreamError
│   ├── InvalidConfigError
│   ├── JetStreamNotEnabledError
│   ├── LimitExceededError
│   │   ├── StreamFullError
│   │   ├── MessageTooLargeError
│   │   └── ResourceExhaustedError
│   ├── NotPermittedError
│   │   └── StreamSealedError
│   ├── PermissionDeniedError            the user may not publish or subscribe there
│   ├── BatchError
│   ├── MessageRuleError                 TTL, schedule, counter or rollup refused
│   ├── UnsupportedServerError           the server is too old for the feature
│   └── UnavailableError                 retryable: no leader, overload, shutting down
├── TransportError                       no answer
│   ├── ConnectError                     no server could be reached
│   │   └── TlsError                     no TLS session, or a certificate that is not trusted
│   ├── AuthenticationError              the server refused the credentials
│   ├── ConnectionLostError              retryable: the connection broke and did not come back
│   ├── ConnectionClosedError            used after close
│   ├── RequestTimeoutError              retryable: nobody answered within the deadline
│   ├── NoRespondersError                retryable: nobody listens on the subject
│   └── ProtocolError                    an answer that is not NATS or not JetStream
└── IntegrityError                       what is stored is not what was promised
    ├── MessagesLostError
    ├── SlowReaderError                  a plain subscription dropped what was not read in time
    └── StreamRecreatedError
```

Source: nats-server's `server/errors.json` for the meaning of each `err_code`.
"""

from __future__ import annotations


class NatsStreamError(Exception):
    """The root: catching it catches everything that natsstream raises on purpose.

    Attributes:
        message: What failed, on what, with which values.
        detail: More of the cause, such as the server's own words; may be empty.
        hint: The next command or argument to try; may be empty.
        retryable: True when the same call may succeed later without a change.
        index: Which of several messages given in one call it is about, from 0; else None.
    """

    index: int | None = None

    def __init__(
        self, message: str, *, detail: str = "", hint: str = "", retryable: bool = False
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.retryable = retryable

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class UsageError(NatsStreamError, ValueError):
    """The call itself is wrong; nothing was sent."""


class ConfigError(UsageError):
    """An option or a config field has a value that can not work."""


class StreamNameError(UsageError):
    """The stream name is empty, too long or has a character that the server refuses."""


class SubjectError(UsageError):
    """The subject or filter is empty, too long, or has an illegal character or wildcard."""


class HeaderError(UsageError):
    """A header name or value would break the wire format."""


class PayloadTooLargeError(UsageError):
    """Headers and payload together exceed the server's `max_payload`."""


class SequenceRangeError(UsageError):
    """The range asked for lies outside of what the stream holds.

    Attributes:
        first_seq: First sequence that the stream holds.
        last_seq: Last sequence that the stream holds.
    """

    def __init__(self, message: str, *, first_seq: int, last_seq: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.first_seq = first_seq
        self.last_seq = last_seq


class MissingExtraError(UsageError):
    """A feature needs an optional dependency that is not installed."""


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


class MessageNotFoundError(NotFoundError):
    """The stream holds no message at the sequence or subject."""


class ConflictError(ServerError):
    """The request contradicts what the server holds now."""


class StreamExistsError(ConflictError):
    """A stream of this name exists with another configuration."""


class ConsumerExistsError(ConflictError):
    """A consumer of this name exists already."""


class SubjectOverlapError(ConflictError):
    """Another stream of the account captures some of the subjects."""


class WrongLastSequenceError(ConflictError):
    """An expected last sequence did not hold when the message reached the stream.

    Attributes:
        last_seq: The sequence that the server found; None where it does not tell, on replicated
            streams, where `retryable` is True: another write to the subject is under way.
    """

    last_seq: int | None = None


class WrongLastMessageIdError(ConflictError):
    """The expected last message id did not hold."""


class WrongStreamError(ConflictError):
    """The subject is stored by another stream than the one expected."""


class InvalidConfigError(ServerError):
    """The server refused a stream or consumer configuration."""


class JetStreamNotEnabledError(ServerError):
    """The server or the account has no JetStream."""


class LimitExceededError(ServerError):
    """A limit of the stream, the account or the server is reached."""


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


class MessageRuleError(ServerError):
    """A per-message rule was refused: TTL, schedule, counter, rollup or source header."""


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


class TransportError(NatsStreamError):
    """There was no answer: whether the request was carried out is not known."""


class ConnectError(TransportError):
    """None of the given servers could be reached."""


class TlsError(ConnectError):
    """No TLS session could be agreed on, or a certificate is not trusted."""


class AuthenticationError(TransportError):
    """The server refused the credentials."""


class ConnectionLostError(TransportError):
    """The connection broke and did not come back within the deadline."""


class ConnectionClosedError(TransportError):
    """The connection was closed by this side; open a new one."""


class RequestTimeoutError(TransportError):
    """Nobody answered within the deadline."""


class NoRespondersError(TransportError):
    """Nobody listens on the subject of the request."""


class ProtocolError(TransportError):
    """The answer is not what NATS or JetStream would say."""


class IntegrityError(NatsStreamError):
    """What is stored is not what was promised."""


class MessagesLostError(IntegrityError):
    """Messages that the stream had are gone, and nobody deleted them by a rule that we can name.

    Attributes:
        first_seq: First sequence of the hole.
        last_seq: Last sequence of the hole.
    """

    def __init__(self, message: str, *, first_seq: int, last_seq: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.first_seq = first_seq
        self.last_seq = last_seq


class SlowReaderError(IntegrityError):
    """A subscription outside of JetStream got more than its reader took, and had to drop some.

    Attributes:
        dropped: Messages dropped so far.
    """

    def __init__(self, message: str, *, dropped: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.dropped = dropped


class StreamRecreatedError(IntegrityError):
    """The stream was deleted and made again: its sequences mean other messages now."""
