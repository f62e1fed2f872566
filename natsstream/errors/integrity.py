"""What is stored is not what was promised."""

from __future__ import annotations

from natsstream.errors.base import NatsStreamError


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


class IncompleteReadError(IntegrityError):
    """The answer to a direct read ended early, or something is missing in its middle.

    Attributes:
        last_seq: Last sequence that came before the hole; 0 for none.
    """

    def __init__(
        self, message: str, *, last_seq: int = 0, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint, retryable=True)
        self.last_seq = last_seq


class BackupError(IntegrityError):
    """A backup could not be made whole, is damaged, or could not be restored whole."""


class ChainBrokenError(IntegrityError):
    """A chain of messages is not as its writer made it.

    Attributes:
        writer: Whose chain.
        sequence: The first broken link's sequence in the stream; 0 where the end is missing.
        kind: What differs, one of `natsstream.streams.chain.verify.BreakKind`.
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
    """Somebody else writes with the same writer id.

    Attributes:
        writer: The id.
        sequence: Sequence of the other one's link in the stream; 0 where it is not known.
    """

    def __init__(self, message: str, *, writer: str, sequence: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.writer = writer
        self.sequence = sequence


class StreamRecreatedError(IntegrityError):
    """The stream was deleted and made again: its sequences mean other messages now."""


class ObjectMetaError(IntegrityError):
    """What a store says of an object is no object's description.

    Attributes:
        name: The object's name.
        revision: The sequence of the message that holds it.
    """

    def __init__(
        self, message: str, *, name: str, revision: int, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.name = name
        self.revision = revision


class ChunksDamagedError(IntegrityError):
    """A value that is stored as chunks is not what its writer stored.

    Attributes:
        subject: The subject of its chunks.
        kind: What differs: "missing" chunks or bytes, "surplus" ones, or the "digest".
    """

    def __init__(
        self, message: str, *, subject: str, kind: str, detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.subject = subject
        self.kind = kind


class ObjectChangedError(IntegrityError):
    """The object was replaced or deleted while it was being read or written; begin again."""


class CodecError(IntegrityError):
    """A stored key or value is not of the form that the bucket's codec writes.

    Attributes:
        bucket: The bucket.
        key: The key as it is stored, in the codec's form where it has one.
        revision: The revision; 0 where it is the key that can not be decoded.
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


class ValueDecodeError(IntegrityError):
    """The value of a key is none of the format that it is read with.

    Attributes:
        bucket: The bucket's name.
        key: The key.
        revision: The revision whose value it is.
    """

    def __init__(
        self,
        message: str,
        *,
        bucket: str,
        key: str,
        revision: int,
        detail: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.bucket = bucket
        self.key = key
        self.revision = revision


class CacheFullError(IntegrityError):
    """A local mirror would grow beyond its limit: it has ended rather than to miss a key.

    Attributes:
        limit_bytes: The most that its keys and values may take together.
    """

    def __init__(self, message: str, *, limit_bytes: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.limit_bytes = limit_bytes
