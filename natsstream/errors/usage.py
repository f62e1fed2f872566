"""The call is wrong: nothing was sent."""

from __future__ import annotations

from natsstream.errors.base import NatsStreamError


class UsageError(NatsStreamError, ValueError):
    """The call itself is wrong; nothing was sent."""


class ConfigError(UsageError):
    """An option or a config field has a value that can not work."""


class MessageSettledError(UsageError):
    """A delivered message was acked, given back or terminated already; the server counts one."""


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


class BucketNameError(UsageError):
    """The name of a bucket is empty, too long or has other characters than letters, digits, - _."""


class ObjectNameError(UsageError):
    """The name of an object is empty, too long for a subject, or no text that UTF-8 can write."""


class KeyNameError(UsageError):
    """The key, or the filter of keys, has a form or characters that a bucket does not take."""
