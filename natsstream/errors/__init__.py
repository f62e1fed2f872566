"""Every error that natsstream raises, in one tree.

```
NatsStreamError
├── UsageError (also ValueError)         you called it wrong; nothing was sent
│   ├── ConfigError                      an option or a config field has no legal value
│   ├── MessageSettledError              a delivered message got its verdict already
│   ├── StreamNameError                  not a legal stream name
│   ├── ConsumerNameError                not a legal consumer name
│   ├── BucketNameError                  not a legal name of a bucket
│   ├── ObjectNameError                  not a legal name of an object
│   ├── KeyNameError                     not a legal key of a bucket, or filter of keys
│   ├── SubjectError                     not a legal subject or filter
│   ├── HeaderError                      a header that would break the wire format
│   ├── PayloadTooLargeError             larger than the server's max_payload
│   ├── SequenceRangeError               a range that the stream does not hold
│   └── MissingExtraError                an optional dependency is not installed
├── ServerError                          the server said no (`code`, `err_code`)
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
│   │   ├── ObjectLinkError              a link can not be made, or not be followed
│   │   ├── SubjectOverlapError
│   │   ├── WrongLastSequenceError
│   │   │   ├── KeyExistsError            the key has a value already
│   │   │   └── WrongRevisionError        the key's newest revision is another one
│   │   ├── WrongLastMessageIdError
│   │   └── WrongStreamError
│   ├── InvalidConfigError
│   ├── NotABucketError                  a stream of a bucket's name that is no bucket
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
│   ├── DeliveryForgottenError           the server does not know of a delivery any more
│   ├── LeaseLostError                   a message being handled may be another's by now
│   ├── LockLostError                    a lock is not held any more; another may hold it
│   └── ProtocolError                    an answer that is not NATS or not JetStream
└── IntegrityError                       what is stored is not what was promised
    ├── MessagesLostError
    ├── ValueDecodeError                 a key's value is none of the format it is read with
    ├── CacheFullError                   a local mirror would grow beyond its limit
    ├── ChunksDamagedError               chunks of a value are missing, surplus or wrong
    ├── CodecError                       a stored key or value is not of the codec's form
    ├── ObjectChangedError               replaced or deleted while it was being read
    ├── ObjectMetaError                  what is stored of an object can not be read
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
    CacheFullError,
    ChainBrokenError,
    ChainForkedError,
    ChunksDamagedError,
    CodecError,
    IncompleteReadError,
    IntegrityError,
    MessagesLostError,
    ObjectChangedError,
    ObjectMetaError,
    SlowReaderError,
    StreamRecreatedError,
    ValueDecodeError,
)
from natsstream.errors.server import (
    BatchBrokenError,
    BatchDisabledError,
    BatchDuplicateError,
    BatchError,
    BatchExpiredError,
    BatchIncompleteError,
    BatchTooLargeError,
    BucketExistsError,
    BucketNotFoundError,
    ConflictError,
    ConsumerDeletedError,
    ConsumerExistsError,
    ConsumerNotFoundError,
    CounterError,
    InvalidConfigError,
    JetStreamNotEnabledError,
    KeyExistsError,
    LimitExceededError,
    LockHeldError,
    MessageNotFoundError,
    MessageRuleError,
    MessageTooLargeError,
    NotABucketError,
    NotFoundError,
    NotPermittedError,
    ObjectExistsError,
    ObjectExpiredError,
    ObjectLinkError,
    ObjectNotFoundError,
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
    WrongRevisionError,
    WrongStreamError,
)
from natsstream.errors.transport import (
    AuthenticationError,
    BatchOutcomeUnknownError,
    ConnectError,
    ConnectionClosedError,
    ConnectionLostError,
    DeliveryForgottenError,
    LeaseLostError,
    LockLostError,
    NoRespondersError,
    ProtocolError,
    RequestTimeoutError,
    TlsError,
    TransportError,
)
from natsstream.errors.usage import (
    BucketNameError,
    ConfigError,
    ConsumerNameError,
    HeaderError,
    KeyNameError,
    MessageSettledError,
    MissingExtraError,
    ObjectNameError,
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
    "BucketExistsError",
    "BucketNameError",
    "BucketNotFoundError",
    "CacheFullError",
    "ChainBrokenError",
    "ChainForkedError",
    "ChunksDamagedError",
    "CodecError",
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
    "DeliveryForgottenError",
    "HeaderError",
    "IncompleteReadError",
    "IntegrityError",
    "InvalidConfigError",
    "JetStreamNotEnabledError",
    "KeyExistsError",
    "KeyNameError",
    "LeaseLostError",
    "LimitExceededError",
    "LockHeldError",
    "LockLostError",
    "MessageNotFoundError",
    "MessageRuleError",
    "MessageSettledError",
    "MessageTooLargeError",
    "MessagesLostError",
    "MissingExtraError",
    "NatsStreamError",
    "NoRespondersError",
    "NotABucketError",
    "NotFoundError",
    "NotPermittedError",
    "ObjectChangedError",
    "ObjectExistsError",
    "ObjectExpiredError",
    "ObjectLinkError",
    "ObjectMetaError",
    "ObjectNameError",
    "ObjectNotFoundError",
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
    "ValueDecodeError",
    "WrongLastMessageIdError",
    "WrongLastSequenceError",
    "WrongRevisionError",
    "WrongStreamError",
]
