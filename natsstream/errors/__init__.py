"""Every error that natsstream raises, in one tree.

What lives here: the classes and what they carry, a file for each branch. What must not: the mapping
from a server's answer to a class (`_wire/errors_map.py`) and anything that waits.

```
NatsStreamError
├── UsageError (also ValueError)         you called it wrong; nothing was sent
│   ├── ConfigError                      an option or a config field has no legal value
│   ├── MessageSettledError              a delivered message got its verdict already
│   ├── StreamNameError                  not a legal stream name
│   ├── ConsumerNameError                not a legal consumer name
│   ├── SubjectError                     not a legal subject or filter
│   ├── HeaderError                      a header that would break the wire format
│   ├── PayloadTooLargeError             larger than the server's max_payload
│   ├── SequenceRangeError               a range that the stream does not hold
│   └── MissingExtraError                an optional dependency is not installed
├── ServerError                          the server said no (`code`, `err_code`)
│   ├── NotFoundError
│   │   ├── StreamNotFoundError
│   │   ├── ConsumerNotFoundError
│   │   │   └── ConsumerDeletedError     it was deleted while it was being read
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
│   │   ├── PullLimitError                a pull asks for more than the consumer allows
│   │   ├── StreamFullError
│   │   ├── MessageTooLargeError
│   │   └── ResourceExhaustedError
│   ├── NotPermittedError
│   │   └── StreamSealedError
│   ├── PermissionDeniedError            the user may not publish or subscribe there
│   ├── BatchError
│   │   ├── BatchDisabledError           the stream takes no batches of this kind
│   │   ├── BatchIncompleteError         a message of it is missing, or it is not known any more
│   │   │   └── BatchExpiredError        nothing came for longer than an open batch is kept
│   │   ├── BatchTooLargeError
│   │   ├── TooManyBatchesError          retryable: as many are open as may be
│   │   ├── BatchDuplicateError          a message id is stored already
│   │   └── BatchBrokenError             a fast batch ended before it was closed
│   ├── MessageRuleError                 TTL, schedule, counter or rollup refused
│   │   ├── ScheduleError
│   │   └── CounterError
│   ├── UnsupportedServerError           the server is too old for the feature
│   └── UnavailableError                 retryable: no leader, overload, shutting down
├── TransportError                       no answer
│   ├── ConnectError                     no server could be reached
│   │   └── TlsError                     no TLS session, or a certificate that is not trusted
│   ├── AuthenticationError              the server refused the credentials
│   ├── ConnectionLostError              retryable: the connection broke and did not come back
│   ├── ConnectionClosedError            used after close
│   ├── RequestTimeoutError              retryable: nobody answered within the deadline
│   ├── BatchOutcomeUnknownError         whether an atomic batch was stored can not be told
│   ├── NoRespondersError                retryable: nobody listens on the subject
│   ├── LeaseLostError                   a message being handled may be another's by now
│   └── ProtocolError                    an answer that is not NATS or not JetStream
└── IntegrityError                       what is stored is not what was promised
    ├── MessagesLostError
    ├── BackupError                      a backup is not whole, or damaged
    ├── ChainBrokenError                 a chain of messages is not as its writer made it
    ├── ChainForkedError                 two write with the same writer id
    ├── IncompleteReadError              retryable: a direct read ended early
    ├── SlowReaderError                  a plain subscription dropped what was not read in time
    └── StreamRecreatedError
```

Source: nats-server's `server/errors.json` for the meaning of each `err_code`.
"""

from __future__ import annotations

from natsstream.errors.base import (
    NatsStreamError,
)
from natsstream.errors.integrity import (
    BackupError,
    ChainBrokenError,
    ChainForkedError,
    IncompleteReadError,
    IntegrityError,
    MessagesLostError,
    SlowReaderError,
    StreamRecreatedError,
)
from natsstream.errors.server import (
    BatchBrokenError,
    BatchDisabledError,
    BatchDuplicateError,
    BatchError,
    BatchExpiredError,
    BatchIncompleteError,
    BatchTooLargeError,
    ConflictError,
    ConsumerDeletedError,
    ConsumerExistsError,
    ConsumerNotFoundError,
    CounterError,
    InvalidConfigError,
    JetStreamNotEnabledError,
    LimitExceededError,
    MessageNotFoundError,
    MessageRuleError,
    MessageTooLargeError,
    NotFoundError,
    NotPermittedError,
    PermissionDeniedError,
    PullLimitError,
    ResourceExhaustedError,
    ScheduleError,
    ServerError,
    StreamExistsError,
    StreamFullError,
    StreamNotFoundError,
    StreamSealedError,
    SubjectOverlapError,
    TooManyBatchesError,
    UnavailableError,
    UnsupportedServerError,
    WrongLastMessageIdError,
    WrongLastSequenceError,
    WrongStreamError,
)
from natsstream.errors.transport import (
    AuthenticationError,
    BatchOutcomeUnknownError,
    ConnectError,
    ConnectionClosedError,
    ConnectionLostError,
    LeaseLostError,
    NoRespondersError,
    ProtocolError,
    RequestTimeoutError,
    TlsError,
    TransportError,
)
from natsstream.errors.usage import (
    ConfigError,
    ConsumerNameError,
    HeaderError,
    MessageSettledError,
    MissingExtraError,
    PayloadTooLargeError,
    SequenceRangeError,
    StreamNameError,
    SubjectError,
    UsageError,
)

__all__ = [
    "AuthenticationError",
    "BackupError",
    "BatchBrokenError",
    "BatchDisabledError",
    "BatchDuplicateError",
    "BatchError",
    "BatchExpiredError",
    "BatchIncompleteError",
    "BatchOutcomeUnknownError",
    "BatchTooLargeError",
    "ChainBrokenError",
    "ChainForkedError",
    "ConfigError",
    "ConflictError",
    "ConnectError",
    "ConnectionClosedError",
    "ConnectionLostError",
    "ConsumerDeletedError",
    "ConsumerExistsError",
    "ConsumerNameError",
    "ConsumerNotFoundError",
    "CounterError",
    "HeaderError",
    "IncompleteReadError",
    "IntegrityError",
    "InvalidConfigError",
    "JetStreamNotEnabledError",
    "LeaseLostError",
    "LimitExceededError",
    "MessageNotFoundError",
    "MessageRuleError",
    "MessageSettledError",
    "MessageTooLargeError",
    "MessagesLostError",
    "MissingExtraError",
    "NatsStreamError",
    "NoRespondersError",
    "NotFoundError",
    "NotPermittedError",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "ProtocolError",
    "PullLimitError",
    "RequestTimeoutError",
    "ResourceExhaustedError",
    "ScheduleError",
    "SequenceRangeError",
    "ServerError",
    "SlowReaderError",
    "StreamExistsError",
    "StreamFullError",
    "StreamNameError",
    "StreamNotFoundError",
    "StreamRecreatedError",
    "StreamSealedError",
    "SubjectError",
    "SubjectOverlapError",
    "TlsError",
    "TooManyBatchesError",
    "TransportError",
    "UnavailableError",
    "UnsupportedServerError",
    "UsageError",
    "WrongLastMessageIdError",
    "WrongLastSequenceError",
    "WrongStreamError",
]
