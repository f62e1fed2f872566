"""Limits, and operations that an account or a configuration does not allow."""

from __future__ import annotations

from natsstream import errors
from natsstream._wire.error_rules.rule import rule

RULES = (
    # The number is the same when the file store refuses one huge message or has closed.
    rule(
        errors.StreamFullError,
        "STREAM_STORE_FAILED",
        "the stream refuses new messages (discard=new): purge or consume old ones, raise "
        "max_msgs, max_bytes or max_msgs_per_subject, use discard=old; or the message alone is "
        "too large for a file store",
    ),
    rule(
        errors.MessageTooLargeError,
        "STREAM_MESSAGE_EXCEEDS_MAXIMUM",
        "raise the stream's max_msg_size, or put large payloads into an object store",
    ),
    rule(
        errors.MessageTooLargeError,
        "STREAM_HEADER_EXCEEDS_MAXIMUM",
        "move data from the headers into the payload",
    ),
    rule(
        errors.ResourceExhaustedError,
        "MEMORY_RESOURCES_EXCEEDED STORAGE_RESOURCES_EXCEEDED",
        "the account's limit for this storage is reached, or the server's: compare js.account() "
        "with the account's limits, free some, or lower max_bytes, which a stream reserves",
    ),
    rule(
        errors.ResourceExhaustedError,
        "INSUFFICIENT_RESOURCES",
        "the server is out of storage: free some, raise max_memory_store or max_file_store, or "
        "place the stream on other servers",
    ),
    rule(
        errors.ResourceExhaustedError,
        "MAXIMUM_CONSUMERS_LIMIT",
        "raise the stream's max_consumers, 1,000 by default from nats-server 2.15 on, or the "
        "account's limit; or delete consumers that nobody uses",
    ),
    rule(
        errors.ResourceExhaustedError,
        "ACCOUNT_RESOURCES_EXCEEDED MAXIMUM_STREAMS_LIMIT STREAM_LIMITS",
        "a limit of the account is reached: compare js.account() with its limits; streams reserve "
        "their max_bytes",
    ),
    rule(
        errors.LimitExceededError,
        "STREAM_MAX_STREAM_BYTES_EXCEEDED",
        "lower the stream's max_bytes, or raise the account's limit for one stream",
    ),
    rule(
        errors.LimitExceededError,
        "NO_LIMITS",
        "the account has no limits for this number of replicas",
    ),
    rule(
        errors.LimitExceededError,
        "STREAM_INFO_MAX_SUBJECTS",
        "ask for fewer subjects with a narrower filter",
    ),
    rule(
        errors.JetStreamNotEnabledError,
        "NOT_ENABLED",
        "start the server with JetStream (nats-server -js, or a jetstream block in its config)",
    ),
    rule(
        errors.JetStreamNotEnabledError,
        "NOT_ENABLED_FOR_ACCOUNT",
        "enable JetStream for the account that these credentials belong to, or log in to another "
        "account",
    ),
    rule(
        errors.StreamSealedError,
        "STREAM_SEALED",
        "a sealed stream never changes again: write to another stream",
    ),
    rule(
        errors.NotPermittedError,
        "STREAM_PURGE_FAILED",
        "the stream has deny_purge, which cannot be taken back",
    ),
    rule(
        errors.UnsupportedServerError,
        "REQUIRED_API_LEVEL",
        "upgrade the server, or leave the option out",
    ),
)
