"""From a server's answer to the error that the caller sees.

What lives here: one rule for every error of the server's catalogue: which class, what to try next,
whether to retry. What must not: the catalogue itself (`error_codes.py`), the classes (`errors.py`),
and errors that no server sent.

Law: only `err_code` chooses. The text changes between servers, and `code` puts a caller's fault
(10111 is a 500) beside a server's; both are shown, neither is asked.

Where one number has several causes (10057, 10077), the hint names them and the layer that knows the
noun looks further. `retryable` is True only where the server refused and stored nothing, so that
sending the same call again can not store it twice.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from natsstream import errors
from natsstream._wire.error_codes import ErrorCode, find_error_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The server's HTTP-like code for "not now", in answers that have no err_code.
_UNAVAILABLE_CODE = 503
_RETRY_LATER = "no leader or no quorum now: retry, and look at the servers if it stays so"


class Rule(NamedTuple):
    """What an error of the catalogue becomes.

    Attributes:
        error: The class to raise.
        hint: The next thing to do; empty where the server's own words say it.
        retryable: True when the same call may succeed later without a change.
    """

    error: type[errors.ServerError]
    hint: str
    retryable: bool


def server_error(error: Mapping[str, object], *, what: str) -> errors.ServerError:
    """Return the error to raise for the `error` object of a JetStream answer.

    Args:
        error: The object as it came: `code`, `err_code`, `description`; each may be missing.
        what: What was being done on what, such as `stream ORDERS` or `publish to orders.new`.

    Returns:
        The class that RULES has for the `err_code`. A number that the catalogue lacks gives a plain
        `ServerError`; no number and code 503 give an `UnavailableError`.
    """
    code, err_code = _number(error.get("code")), _number(error.get("err_code"))
    text = error.get("description")
    description = text if isinstance(text, str) else ""
    known = find_error_code(err_code)
    if known is not None:
        rule = RULES[known]
    elif err_code == 0 and code == _UNAVAILABLE_CODE:
        rule = Rule(errors.UnavailableError, _RETRY_LATER, retryable=True)
    else:
        rule = Rule(errors.ServerError, "", retryable=False)
    # Without a number the class of the error is all that identifies it.
    mark = f"[{err_code}]" if err_code else f"(code {code})"
    failure = rule.error(
        f"{what}: {description or 'the server gave no reason'} {mark}",
        code=code,
        err_code=err_code,
        description=description,
        hint=rule.hint,
        retryable=rule.retryable,
    )
    if isinstance(failure, errors.WrongLastSequenceError):
        failure.last_seq = _last_sequence(description)
    return failure


def _number(value: object) -> int:
    """Return a JSON number that is an integer, 0 for anything else."""
    return value if isinstance(value, int) else 0


def _last_sequence(description: str) -> int | None:
    """Return N of 10071's `wrong last sequence: N`; 10164 has none."""
    found = re.search(r":\s*([0-9]{1,20})\s*$", description)
    return int(found[1]) if found else None


_NamedRules: TypeAlias = tuple[Rule, tuple[ErrorCode, ...]]


def _rule(
    error: type[errors.ServerError], codes: str, hint: str = "", *, retryable: bool = False
) -> _NamedRules:
    """Give the codes, named with spaces between, one rule; an unknown name fails at import."""
    return Rule(error, hint, retryable), tuple(ErrorCode[name] for name in codes.split())


def _table(named: Iterable[_NamedRules]) -> dict[ErrorCode, Rule]:
    """Spread the rules over their codes; a code with two rules fails at import."""
    table: dict[ErrorCode, Rule] = {}
    for rule, codes in named:
        for code in codes:
            if code in table:
                raise ValueError(f"two rules for {code.name} ({code.value})")
            table[code] = rule
    return table


_NAMED_RULES = (
    _rule(
        errors.StreamNotFoundError,
        "STREAM_NOT_FOUND",
        "list the streams of the account, or create it with streams.ensure(); names are "
        "case-sensitive and belong to one account and domain",
    ),
    _rule(
        errors.ConsumerNotFoundError,
        "CONSUMER_DOES_NOT_EXIST CONSUMER_NOT_FOUND",
        "create it with consumers.ensure(); an ephemeral consumer disappears after its "
        "inactive_threshold",
    ),
    _rule(
        errors.MessageNotFoundError,
        "NO_MESSAGE_FOUND SEQUENCE_NOT_FOUND",
        "it may be deleted, expired or not written yet: compare with the stream's first and last "
        "sequence",
    ),
    _rule(
        errors.NotFoundError,
        "CLUSTER_PEER_NOT_MEMBER CLUSTER_SERVER_NOT_MEMBER CONSUMER_INVALID_PRIORITY_GROUP "
        "NO_ACCOUNT STREAM_TEMPLATE_NOT_FOUND",
    ),
    _rule(
        errors.StreamExistsError,
        "STREAM_NAME_EXIST STREAM_NAME_EXIST_RESTORE_FAILED",
        "compare with the stream's config; streams.update() changes it, streams.get() takes it as "
        "it is",
    ),
    _rule(
        errors.SubjectOverlapError,
        "STREAM_SUBJECT_OVERLAP",
        "find the other stream with streams.find(subject), then narrow the subjects of one of the "
        "two",
    ),
    _rule(
        errors.ConsumerExistsError,
        "CONSUMER_ALREADY_EXISTS CONSUMER_EXISTING_ACTIVE CONSUMER_NAME_EXIST "
        "CONSUMER_REPLACEMENT_WITH_DIFFERENT_NAME",
        "consumers.update() changes it, consumers.get() takes it as it is; another kind of "
        "consumer needs another name",
    ),
    _rule(
        errors.WrongLastSequenceError,
        "STREAM_WRONG_LAST_SEQUENCE",
        "somebody wrote in between: read the newest message, decide again, and expect its sequence",
    ),
    # Replicated streams answer so while another write to the subject is on its way: this one was
    # not stored, and who wins is not decided. A batch also gets it for a second check after it
    # wrote the subject itself; that never succeeds, and the limit of the retry loop ends it.
    _rule(
        errors.WrongLastSequenceError,
        "STREAM_WRONG_LAST_SEQUENCE_CONSTANT",
        "another write to the subject is in flight: wait a moment, read the newest message and "
        "decide again",
        retryable=True,
    ),
    _rule(
        errors.WrongLastMessageIdError,
        "STREAM_WRONG_LAST_MSG_ID",
        "read the last message's Nats-Msg-Id and decide again",
    ),
    _rule(
        errors.WrongStreamError,
        "STREAM_NOT_MATCH",
        "another stream stores this subject: see which with streams.find(subject), or drop the "
        "expected stream",
    ),
    _rule(
        errors.ConflictError,
        "STREAM_DUPLICATE_MESSAGE_CONFLICT",
        "the first send is still being stored: repeat it later",
        retryable=True,
    ),
    _rule(
        errors.ConflictError,
        "CLUSTER_SERVER_MEMBER_CHANGE_INFLIGHT STREAM_MOVE_IN_PROGRESS "
        "STREAM_RECONFIGURE_IN_PROGRESS",
        "wait until the change under way has ended",
        retryable=True,
    ),
    _rule(
        errors.ConflictError,
        "CONSUMER_STREAM_IDENTITY_MISMATCH",
        "the stream was deleted and made again: open it anew",
    ),
    _rule(
        errors.ConflictError,
        "STREAM_RECONFIGURE_NOT_IN_PROGRESS STREAM_SEQUENCE_NOT_MATCH",
    ),
    # The number is the same when the file store refuses one huge message or has closed.
    _rule(
        errors.StreamFullError,
        "STREAM_STORE_FAILED",
        "the stream refuses new messages (discard=new): purge or consume old ones, raise "
        "max_msgs, max_bytes or max_msgs_per_subject, use discard=old; or the message alone is "
        "too large for a file store",
    ),
    _rule(
        errors.MessageTooLargeError,
        "STREAM_MESSAGE_EXCEEDS_MAXIMUM",
        "raise the stream's max_msg_size, or put large payloads into an object store",
    ),
    _rule(
        errors.MessageTooLargeError,
        "STREAM_HEADER_EXCEEDS_MAXIMUM",
        "move data from the headers into the payload",
    ),
    _rule(
        errors.ResourceExhaustedError,
        "INSUFFICIENT_RESOURCES MEMORY_RESOURCES_EXCEEDED STORAGE_RESOURCES_EXCEEDED",
        "the server has no room left: free storage, raise max_memory_store or max_file_store, or "
        "place the stream on other servers",
    ),
    _rule(
        errors.ResourceExhaustedError,
        "ACCOUNT_RESOURCES_EXCEEDED MAXIMUM_CONSUMERS_LIMIT MAXIMUM_STREAMS_LIMIT STREAM_LIMITS",
        "a limit of the account is reached: compare js.account() with its limits; streams reserve "
        "their max_bytes",
    ),
    _rule(
        errors.LimitExceededError,
        "STREAM_MAX_STREAM_BYTES_EXCEEDED",
        "lower the stream's max_bytes, or raise the account's limit for one stream",
    ),
    _rule(
        errors.LimitExceededError,
        "NO_LIMITS",
        "the account has no limits for this number of replicas",
    ),
    _rule(
        errors.LimitExceededError,
        "STREAM_INFO_MAX_SUBJECTS",
        "ask for fewer subjects with a narrower filter",
    ),
    _rule(
        errors.JetStreamNotEnabledError,
        "NOT_ENABLED",
        "start the server with JetStream (nats-server -js, or a jetstream block in its config)",
    ),
    _rule(
        errors.JetStreamNotEnabledError,
        "NOT_ENABLED_FOR_ACCOUNT",
        "enable JetStream for the account that these credentials belong to, or log in to another "
        "account",
    ),
    _rule(
        errors.StreamSealedError,
        "STREAM_SEALED",
        "a sealed stream stays as it is for ever: write to another stream",
    ),
    _rule(
        errors.NotPermittedError,
        "STREAM_PURGE_FAILED",
        "the stream has deny_purge, which can not be taken back",
    ),
    _rule(
        errors.UnsupportedServerError,
        "REQUIRED_API_LEVEL",
        "upgrade the server, or do without the option that needs it",
    ),
    _rule(
        errors.MessageRuleError,
        "STREAM_ROLLUP_FAILED",
        "set allow_rollup_hdrs on the stream and leave deny_purge off; the header is sub or all",
    ),
    _rule(
        errors.MessageRuleError,
        "MESSAGE_TTL_DISABLED",
        "set allow_msg_ttl on the stream",
    ),
    _rule(
        errors.MessageRuleError,
        "MESSAGE_TTL_INVALID",
        "a TTL is at least one second, or never",
    ),
    _rule(
        errors.MessageRuleError,
        "MESSAGE_SCHEDULES_DISABLED",
        "set allow_msg_schedules on the stream",
    ),
    _rule(
        errors.MessageRuleError,
        "MESSAGE_INCR_DISABLED",
        "set allow_msg_counter when the stream is created",
    ),
    _rule(
        errors.MessageRuleError,
        "MESSAGE_SOURCE_HDR_NOT_ALLOWED",
        "drop the Nats-Stream-Source header when copying messages of a sourced stream",
    ),
    _rule(
        errors.MessageRuleError,
        "MESSAGE_COUNTER_BROKEN MESSAGE_INCR_INVALID MESSAGE_INCR_MISSING MESSAGE_INCR_PAYLOAD "
        "MESSAGE_SCHEDULES_PATTERN_INVALID MESSAGE_SCHEDULES_ROLLUP_INVALID "
        "MESSAGE_SCHEDULES_SCHEDULER_INVALID MESSAGE_SCHEDULES_SOURCE_INVALID "
        "MESSAGE_SCHEDULES_TARGET_INVALID MESSAGE_SCHEDULES_TIME_ZONE_INVALID "
        "MESSAGE_SCHEDULES_TTL_INVALID STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_INVALID",
    ),
    _rule(
        errors.BatchError,
        "ATOMIC_PUBLISH_DISABLED",
        "set allow_atomic on the stream",
    ),
    _rule(
        errors.BatchError,
        "BATCH_PUBLISH_DISABLED",
        "set allow_batched on the stream",
    ),
    # Not retryable: a commit whose answer was lost looks the same, and sending the batch again
    # would store it twice. The caller finds out first what the stream holds.
    _rule(
        errors.BatchError,
        "ATOMIC_PUBLISH_INCOMPLETE_BATCH BATCH_PUBLISH_UNKNOWN_BATCH_ID",
        "look whether it was stored; if not, send the whole batch again",
    ),
    _rule(
        errors.BatchError,
        "ATOMIC_PUBLISH_TOO_MANY_INFLIGHT BATCH_PUBLISH_TOO_MANY_INFLIGHT",
        "wait until other batches have ended, then start again",
        retryable=True,
    ),
    _rule(
        errors.BatchError,
        "ATOMIC_PUBLISH_TOO_LARGE_BATCH",
        "split the batch",
    ),
    _rule(
        errors.BatchError,
        "ATOMIC_PUBLISH_CONTAINS_DUPLICATE_MESSAGE ATOMIC_PUBLISH_INVALID_BATCH_COMMIT "
        "ATOMIC_PUBLISH_INVALID_BATCH_ID ATOMIC_PUBLISH_MISSING_SEQ "
        "ATOMIC_PUBLISH_UNSUPPORTED_HEADER_BATCH BATCH_PUBLISH_INVALID_BATCH_ID "
        "BATCH_PUBLISH_INVALID_PATTERN",
    ),
    _rule(
        errors.UnavailableError,
        "CLUSTER_INCOMPLETE CLUSTER_NOT_ASSIGNED CLUSTER_NOT_AVAIL CLUSTER_NOT_LEADER "
        "CONSUMER_OFFLINE CONSUMER_OFFLINE_REASON STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_NOT_READY "
        "STREAM_MIN_LAST_SEQ STREAM_OFFLINE STREAM_OFFLINE_REASON",
        _RETRY_LATER,
        retryable=True,
    ),
    # The stream closed while the consumer was made: it is being deleted, or its server stops.
    _rule(
        errors.UnavailableError,
        "STREAM_INVALID",
        "the stream is closing: retry",
        retryable=True,
    ),
    _rule(
        errors.UnavailableError,
        "STREAM_TOO_MANY_REQUESTS",
        "send more slowly, or keep fewer in flight",
        retryable=True,
    ),
    _rule(
        errors.InvalidConfigError,
        "STREAM_REPLICAS_NOT_SUPPORTED",
        "set replicas to 1, or connect to a cluster",
    ),
    _rule(
        errors.InvalidConfigError,
        "STREAM_MAX_BYTES_REQUIRED",
        "set max_bytes on the stream",
    ),
    _rule(
        errors.InvalidConfigError,
        "CONSUMER_FILTER_NOT_SUBSET",
        "filters must lie within the stream's subjects",
    ),
    _rule(
        errors.InvalidConfigError,
        "CONSUMER_WQ_CONSUMER_NOT_UNIQUE CONSUMER_WQ_MULTIPLE_UNFILTERED",
        "consumers of a work-queue stream may not share messages: give each its own filters",
    ),
    _rule(
        errors.InvalidConfigError,
        "CLUSTER_TAGS CONSUMER_ACK_FC_REQUIRES_FC CONSUMER_ACK_FC_REQUIRES_MAX_ACK_PENDING "
        "CONSUMER_ACK_FC_REQUIRES_NO_ACK_WAIT CONSUMER_ACK_FC_REQUIRES_NO_MAX_DELIVER "
        "CONSUMER_ACK_FC_REQUIRES_PUSH CONSUMER_ACK_POLICY_INVALID CONSUMER_ACK_WAIT_NEGATIVE "
        "CONSUMER_BACK_OFF_NEGATIVE CONSUMER_BAD_DURABLE_NAME CONSUMER_CONFIG_REQUIRED "
        "CONSUMER_CREATE CONSUMER_CREATE_DURABLE_AND_NAME_MISMATCH "
        "CONSUMER_CREATE_FILTER_SUBJECT_MISMATCH CONSUMER_DELIVER_CYCLE "
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
        "CONSUMER_PULL_NOT_DURABLE CONSUMER_PULL_REQUIRES_ACK CONSUMER_PULL_WITH_RATE_LIMIT "
        "CONSUMER_PUSH_MAX_WAITING CONSUMER_PUSH_WITH_PRIORITY_GROUP "
        "CONSUMER_REPLAY_POLICY_INVALID CONSUMER_REPLICAS_EXCEEDS_STREAM "
        "CONSUMER_REPLICAS_SHOULD_MATCH_STREAM CONSUMER_SMALL_HEARTBEAT "
        "CONSUMER_WITH_FLOW_CONTROL_NEEDS_HEARTBEATS CONSUMER_WQ_CONSUMER_NOT_DELIVER_ALL "
        "CONSUMER_WQ_REQUIRES_EXPLICIT_ACK MIRROR_CONSUMER_REQUIRES_ACK_FC "
        "MIRROR_DURABLE_CONSUMER_CFG_INVALID MIRROR_INVALID_STREAM_NAME "
        "MIRROR_INVALID_SUBJECT_FILTER MIRROR_INVALID_TRANSFORM_DESTINATION "
        "MIRROR_MAX_MESSAGE_SIZE_TOO_BIG MIRROR_MULTIPLE_FILTERS_NOT_ALLOWED "
        "MIRROR_OVERLAPPING_SUBJECT_FILTERS MIRROR_WITH_ATOMIC_PUBLISH MIRROR_WITH_BATCH_PUBLISH "
        "MIRROR_WITH_COUNTERS MIRROR_WITH_FIRST_SEQ MIRROR_WITH_MSG_SCHEDULES MIRROR_WITH_SOURCES "
        "MIRROR_WITH_START_SEQ_AND_TIME MIRROR_WITH_SUBJECTS MIRROR_WITH_SUBJECT_FILTERS "
        "PEDANTIC REPLICAS_COUNT_CANNOT_BE_NEGATIVE SOURCE_CONSUMER_REQUIRES_ACK_FC "
        "SOURCE_DUPLICATE_DETECTED SOURCE_DURABLE_CONSUMER_CFG_INVALID "
        "SOURCE_DURABLE_CONSUMER_DUPLICATE_DETECTED SOURCE_INVALID_STREAM_NAME "
        "SOURCE_INVALID_SUBJECT_FILTER SOURCE_INVALID_TRANSFORM_DESTINATION "
        "SOURCE_MAX_MESSAGE_SIZE_TOO_BIG SOURCE_MULTIPLE_FILTERS_NOT_ALLOWED "
        "SOURCE_OVERLAPPING_SUBJECT_FILTERS SOURCE_WITH_MSG_SCHEDULES STREAM_EXTERNAL_API_OVERLAP "
        "STREAM_EXTERNAL_DEL_PREFIX_OVERLAPS STREAM_INVALID_CONFIG "
        "STREAM_INVALID_EXTERNAL_DELIVERY_SUBJ STREAM_MIRROR_NOT_UPDATABLE STREAM_MOVE_AND_SCALE "
        "STREAM_NAME_CONTAINS_PATH_SEPARATORS STREAM_REPLICAS_NOT_UPDATABLE "
        "STREAM_TRANSFORM_INVALID_DESTINATION STREAM_TRANSFORM_INVALID_SOURCE",
    ),
    _rule(
        errors.ServerError,
        "STREAM_MSG_DELETE_FAILED",
        "the message may be gone already (read it to see), or the stream has deny_delete",
    ),
    _rule(
        errors.ServerError,
        "CLUSTER_NO_PEERS PEER_REMAP",
        "too few servers are up, tagged or roomy enough: lower replicas or widen the placement",
    ),
    _rule(
        errors.ServerError,
        "CLUSTER_NOT_ACTIVE CLUSTER_REQUIRED",
        "the server is not part of a cluster: connect to one that is",
    ),
    # No class says more than the server's own words do.
    _rule(
        errors.ServerError,
        "BAD_REQUEST CLUSTER_RESCUE CLUSTER_UN_SUPPORT_FEATURE CONSUMER_INVALID_RESET "
        "CONSUMER_STORE_FAILED INVALID_JSON MIRROR_CONSUMER_SETUP_FAILED NOT_EMPTY_REQUEST "
        "RAFT_GENERAL RESTORE_SUBSCRIBE_FAILED SNAPSHOT_DELIVER_SUBJECT_INVALID "
        "SOURCE_CONSUMER_FLOW_CONTROL_STALLED SOURCE_CONSUMER_SETUP_FAILED STREAM_ASSIGNMENT "
        "STREAM_CREATE STREAM_DELETE STREAM_GENERAL STREAM_MISMATCH STREAM_RESTORE "
        "STREAM_SNAPSHOT STREAM_TEMPLATE_CREATE STREAM_TEMPLATE_DELETE STREAM_UPDATE "
        "TEMPLATE_NAME_NOT_MATCH_SUBJECT TEMP_STORAGE_FAILED",
    ),
)

RULES = _table(_NAMED_RULES)
"""The rule of every error in the catalogue."""
