"""Streams, consumers and messages that are missing, in conflict, or not as expected."""

from __future__ import annotations

from natsstream import errors
from natsstream._wire.error_rules.rule import rule

RULES = (
    rule(
        errors.StreamNotFoundError,
        "STREAM_NOT_FOUND",
        "list the streams of the account, or create it with streams.ensure(); names are "
        "case-sensitive and belong to one account and domain",
    ),
    rule(
        errors.ConsumerNotFoundError,
        "CONSUMER_DOES_NOT_EXIST CONSUMER_NOT_FOUND",
        "create it with consumers.ensure(); an ephemeral consumer disappears after its "
        "inactive_threshold",
    ),
    rule(
        errors.MessageNotFoundError,
        "NO_MESSAGE_FOUND SEQUENCE_NOT_FOUND",
        "it may be deleted, expired or not written yet: compare with the stream's first and last "
        "sequence",
    ),
    rule(
        errors.NotFoundError,
        "CLUSTER_PEER_NOT_MEMBER CLUSTER_SERVER_NOT_MEMBER CONSUMER_INVALID_PRIORITY_GROUP "
        "NO_ACCOUNT STREAM_TEMPLATE_NOT_FOUND",
    ),
    rule(
        errors.StreamExistsError,
        "STREAM_NAME_EXIST STREAM_NAME_EXIST_RESTORE_FAILED",
        "streams.get() returns it as it is, streams.ensure() updates it",
    ),
    rule(
        errors.SubjectOverlapError,
        "STREAM_SUBJECT_OVERLAP",
        "find the other stream with streams.find(subject), then narrow the subjects of one of the "
        "two",
    ),
    rule(
        errors.ConsumerExistsError,
        "CONSUMER_ALREADY_EXISTS CONSUMER_EXISTING_ACTIVE CONSUMER_NAME_EXIST "
        "CONSUMER_REPLACEMENT_WITH_DIFFERENT_NAME",
        "consumers.update() changes it, consumers.get() returns it as it is; another kind of "
        "consumer needs another name",
    ),
    rule(
        errors.WrongLastSequenceError,
        "STREAM_WRONG_LAST_SEQUENCE",
        "another write came first: read the newest message, decide again, and expect its sequence",
    ),
    # Replicated streams answer so while another write to the subject is in flight: this one was
    # not stored, and the other may fail as well. A batch also gets it for a second check after it
    # wrote the subject itself; that never succeeds, and the limit of the retry loop ends it.
    rule(
        errors.WrongLastSequenceError,
        "STREAM_WRONG_LAST_SEQUENCE_CONSTANT",
        "another write to the subject is in flight: wait a moment, read the newest message and "
        "decide again",
        retryable=True,
    ),
    rule(
        errors.WrongLastMessageIdError,
        "STREAM_WRONG_LAST_MSG_ID",
        "read the last message's Nats-Msg-Id and decide again",
    ),
    rule(
        errors.WrongStreamError,
        "STREAM_NOT_MATCH",
        "another stream captures this subject: find it with streams.find(subject), or drop the "
        "expected stream",
    ),
    rule(
        errors.ConflictError,
        "STREAM_DUPLICATE_MESSAGE_CONFLICT",
        "the first message with this id is not stored yet: retry later",
        retryable=True,
    ),
    rule(
        errors.ConflictError,
        "CLUSTER_SERVER_MEMBER_CHANGE_INFLIGHT STREAM_MOVE_IN_PROGRESS "
        "STREAM_RECONFIGURE_IN_PROGRESS",
        "wait until the running change has ended",
        retryable=True,
    ),
    rule(
        errors.ConflictError,
        "CONSUMER_STREAM_IDENTITY_MISMATCH",
        "the stream was deleted and created again: open it again",
    ),
    rule(
        errors.ConflictError,
        "STREAM_RECONFIGURE_NOT_IN_PROGRESS STREAM_SEQUENCE_NOT_MATCH",
    ),
)
