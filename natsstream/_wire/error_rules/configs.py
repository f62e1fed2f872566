"""Configurations that the server refuses."""

from __future__ import annotations

from natsstream import errors
from natsstream._wire.error_rules.rule import rule

RULES = (
    rule(
        errors.InvalidConfigError,
        "STREAM_REPLICAS_NOT_SUPPORTED",
        "set replicas to 1, or connect to a cluster",
    ),
    rule(
        errors.InvalidConfigError,
        "STREAM_MAX_BYTES_REQUIRED",
        "set max_bytes on the stream",
    ),
    rule(
        errors.InvalidConfigError,
        "CONSUMER_FILTER_NOT_SUBSET",
        "filters must lie within the stream's subjects",
    ),
    rule(
        errors.InvalidConfigError,
        "CONSUMER_WQ_CONSUMER_NOT_UNIQUE CONSUMER_WQ_MULTIPLE_UNFILTERED",
        "consumers of a work-queue stream may not share messages: give each its own filters",
    ),
    rule(
        errors.InvalidConfigError,
        "CONSUMER_PULL_REQUIRES_ACK CONSUMER_WQ_CONSUMER_NOT_DELIVER_ALL "
        "CONSUMER_WQ_REQUIRES_EXPLICIT_ACK",
        "a work-queue stream delivers each message to one consumer, which acks it: use a consumer "
        "of stream.consumers with ack_policy explicit and deliver_policy all, or read single "
        "messages with stream.get(sequence)",
    ),
    rule(
        errors.InvalidConfigError,
        "CONSUMER_DELIVER_CYCLE",
        "give a deliver_subject that the stream does not capture",
    ),
    rule(
        errors.InvalidConfigError,
        "MIRROR_WITH_SOURCES MIRROR_WITH_SUBJECTS",
        "a mirror copies one stream and captures nothing: leave subjects= and sources= out, or "
        "give sources= in place of mirror=; if the stream is a mirror already, mirror={} beside "
        "them makes it independent",
    ),
    rule(
        errors.InvalidConfigError,
        "SOURCE_DUPLICATE_DETECTED",
        "name each source once; its transforms may copy several subjects",
    ),
    rule(
        errors.InvalidConfigError,
        "CLUSTER_TAGS CONSUMER_ACK_FC_REQUIRES_FC CONSUMER_ACK_FC_REQUIRES_MAX_ACK_PENDING "
        "CONSUMER_ACK_FC_REQUIRES_NO_ACK_WAIT CONSUMER_ACK_FC_REQUIRES_NO_MAX_DELIVER "
        "CONSUMER_ACK_FC_REQUIRES_PUSH CONSUMER_ACK_POLICY_INVALID CONSUMER_ACK_WAIT_NEGATIVE "
        "CONSUMER_BACK_OFF_NEGATIVE CONSUMER_BAD_DURABLE_NAME CONSUMER_CONFIG_REQUIRED "
        "CONSUMER_CREATE CONSUMER_CREATE_DURABLE_AND_NAME_MISMATCH "
        "CONSUMER_CREATE_FILTER_SUBJECT_MISMATCH "
        "CONSUMER_DELIVER_TO_WILDCARDS CONSUMER_DESCRIPTION_TOO_LONG "
        "CONSUMER_DIRECT_REQUIRES_EPHEMERAL CONSUMER_DIRECT_REQUIRES_PUSH "
        "CONSUMER_DUPLICATE_FILTER_SUBJECTS CONSUMER_DURABLE_NAME_NOT_IN_SUBJECT "
        "CONSUMER_DURABLE_NAME_NOT_MATCH_SUBJECT CONSUMER_DURABLE_NAME_NOT_SET "
        "CONSUMER_EMPTY_FILTER CONSUMER_EMPTY_GROUP_NAME "
        "CONSUMER_EPHEMERAL_WITH_DURABLE_IN_SUBJECT CONSUMER_EPHEMERAL_WITH_DURABLE_NAME "
        "CONSUMER_FC_REQUIRES_PUSH CONSUMER_HB_REQUIRES_PUSH CONSUMER_INACTIVE_THRESHOLD_EXCESS "
        "CONSUMER_INVALID_DELIVER_SUBJECT CONSUMER_INVALID_GROUP_NAME CONSUMER_INVALID_POLICY "
        "CONSUMER_INVALID_SAMPLING CONSUMER_MAX_DELIVER_BACKOFF CONSUMER_MAX_PENDING_ACK_EXCESS "
        "CONSUMER_MAX_PENDING_ACK_POLICY_REQUIRED CONSUMER_MAX_REQUEST_BATCH_EXCEEDED "
        "CONSUMER_MAX_REQUEST_BATCH_NEGATIVE CONSUMER_MAX_REQUEST_EXPIRES_TOO_SMALL "
        "CONSUMER_MAX_WAITING_NEGATIVE CONSUMER_METADATA_LENGTH "
        "CONSUMER_MULTIPLE_FILTERS_NOT_ALLOWED CONSUMER_NAME_CONTAINS_PATH_SEPARATORS "
        "CONSUMER_NAME_TOO_LONG CONSUMER_ON_MAPPED CONSUMER_OVERLAPPING_SUBJECT_FILTERS "
        "CONSUMER_PINNED_TTL_WITHOUT_PRIORITY_POLICY_NONE "
        "CONSUMER_PRIORITY_GROUP_WITH_POLICY_NONE CONSUMER_PRIORITY_POLICY_WITHOUT_GROUP "
        "CONSUMER_PULL_NOT_DURABLE CONSUMER_PULL_WITH_RATE_LIMIT "
        "CONSUMER_PUSH_MAX_WAITING CONSUMER_PUSH_WITH_PRIORITY_GROUP "
        "CONSUMER_REPLAY_POLICY_INVALID CONSUMER_REPLICAS_EXCEEDS_STREAM "
        "CONSUMER_REPLICAS_SHOULD_MATCH_STREAM CONSUMER_SMALL_HEARTBEAT "
        "CONSUMER_WITH_FLOW_CONTROL_NEEDS_HEARTBEATS "
        "MIRROR_CONSUMER_REQUIRES_ACK_FC "
        "MIRROR_DURABLE_CONSUMER_CFG_INVALID MIRROR_INVALID_STREAM_NAME "
        "MIRROR_INVALID_SUBJECT_FILTER MIRROR_INVALID_TRANSFORM_DESTINATION "
        "MIRROR_MAX_MESSAGE_SIZE_TOO_BIG MIRROR_MULTIPLE_FILTERS_NOT_ALLOWED "
        "MIRROR_OVERLAPPING_SUBJECT_FILTERS MIRROR_WITH_ATOMIC_PUBLISH MIRROR_WITH_BATCH_PUBLISH "
        "MIRROR_WITH_COUNTERS MIRROR_WITH_FIRST_SEQ MIRROR_WITH_MSG_SCHEDULES "
        "MIRROR_WITH_START_SEQ_AND_TIME MIRROR_WITH_SUBJECT_FILTERS "
        "PEDANTIC REPLICAS_COUNT_CANNOT_BE_NEGATIVE SOURCE_CONSUMER_REQUIRES_ACK_FC "
        "SOURCE_DURABLE_CONSUMER_CFG_INVALID "
        "SOURCE_DURABLE_CONSUMER_DUPLICATE_DETECTED SOURCE_INVALID_STREAM_NAME "
        "SOURCE_INVALID_SUBJECT_FILTER SOURCE_INVALID_TRANSFORM_DESTINATION "
        "SOURCE_MAX_MESSAGE_SIZE_TOO_BIG SOURCE_MULTIPLE_FILTERS_NOT_ALLOWED "
        "SOURCE_OVERLAPPING_SUBJECT_FILTERS SOURCE_WITH_MSG_SCHEDULES STREAM_EXTERNAL_API_OVERLAP "
        "STREAM_EXTERNAL_DEL_PREFIX_OVERLAPS STREAM_INVALID_CONFIG "
        "STREAM_INVALID_EXTERNAL_DELIVERY_SUBJ STREAM_MIRROR_NOT_UPDATABLE STREAM_MOVE_AND_SCALE "
        "STREAM_NAME_CONTAINS_PATH_SEPARATORS STREAM_REPLICAS_NOT_UPDATABLE "
        "STREAM_TRANSFORM_INVALID_DESTINATION STREAM_TRANSFORM_INVALID_SOURCE",
        "change what the server names",
    ),
)

# STREAM_INVALID_CONFIG stands for many causes, which only the server's words tell apart. A server
# with other words gets the hint of the rule.
HINTS_BY_WORDS = (
    ("overlaps with", "leave out the subject that the other one covers"),
    (
        "no-ack to be true",
        'name other subjects, such as subjects=["orders.>"], or set no_ack=True: nothing is acked',
    ),
    (
        "max age needs to be",
        "give max_age, which is ttl in a bucket, as seconds, 0.1 or more; 0 is no limit",
    ),
    ("larger then max age", "give duplicate_window=, at most max_age"),
    ("duplicates window needs to be", "give duplicate_window as seconds, 0.1 or more"),
    ("requires discard new policy", 'also set discard="new" and max_msgs_per_subject='),
    ("requires max msgs per subject", "also set max_msgs_per_subject="),
    ("republish destination", "republish to subjects that the stream does not capture"),
    (
        "message counter",
        "chosen at creation: create another with js.counters.ensure(); it copies no plain stream",
    ),
    (
        "not change",
        "chosen at creation: create another stream, whose sources=[StreamSource(name=...)] copy it",
    ),
    ("not cancel", "once set it stays: leave it as it is, or create another stream without it"),
    ("not be disabled", "once set it stays: leave it as it is"),
    ("detected cycle", "mirror or source a stream that does not get its messages from this one"),
)
