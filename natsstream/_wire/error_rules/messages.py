"""Single messages and batches that the stream refuses by their headers."""

from __future__ import annotations

from natsstream import errors
from natsstream._wire.error_rules.rule import rule

RULES = (
    rule(
        errors.MessageRuleError,
        "STREAM_ROLLUP_FAILED",
        'set allow_rollup_hdrs on the stream and leave deny_purge off; rollup= is "subject" or '
        '"all", and the header that it sets is "sub" or "all"',
    ),
    rule(
        errors.MessageRuleError,
        "MESSAGE_TTL_DISABLED",
        "set allow_msg_ttl on the stream",
    ),
    rule(
        errors.MessageRuleError,
        "MESSAGE_TTL_INVALID",
        "a TTL is at least one second, or never",
    ),
    rule(
        errors.ScheduleError,
        "MESSAGE_SCHEDULES_DISABLED",
        "set allow_msg_schedules on the stream",
    ),
    rule(
        errors.ScheduleError,
        "MESSAGE_SCHEDULES_PATTERN_INVALID",
        "make it with Schedule.at, every or cron; a cron expression has six fields, the first of "
        "them seconds, and must come true within five years",
    ),
    rule(
        errors.ScheduleError,
        "MESSAGE_SCHEDULES_TARGET_INVALID MESSAGE_SCHEDULES_SOURCE_INVALID",
        "the stream must capture target and source, and both must differ from the schedule's "
        "subject",
    ),
    rule(
        errors.ScheduleError,
        "MESSAGE_SCHEDULES_TIME_ZONE_INVALID",
        "a name such as Europe/Berlin; the server's machine needs the time zone data (tzdata)",
    ),
    rule(
        errors.ScheduleError,
        "MESSAGE_SCHEDULES_SCHEDULER_INVALID",
        "the subject to end must have a schedule, and differ from the message's",
    ),
    rule(
        errors.ScheduleError,
        "MESSAGE_SCHEDULES_ROLLUP_INVALID MESSAGE_SCHEDULES_TTL_INVALID",
    ),
    rule(
        errors.CounterError,
        "MESSAGE_INCR_MISSING",
        "the stream holds counters only: js.counters.incr(subject, delta)",
    ),
    rule(
        errors.CounterError,
        "MESSAGE_COUNTER_BROKEN MESSAGE_INCR_INVALID MESSAGE_INCR_PAYLOAD",
        "an increment is a whole number, without payload, expectation or rollup",
    ),
    rule(
        errors.CounterError,
        "MESSAGE_INCR_DISABLED",
        "set allow_msg_counter when the stream is created",
    ),
    rule(
        errors.MessageRuleError,
        "MESSAGE_SOURCE_HDR_NOT_ALLOWED",
        "drop the Nats-Stream-Source header when copying messages of a sourced stream",
    ),
    rule(
        errors.MessageRuleError,
        "STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_INVALID",
    ),
    rule(
        errors.BatchDisabledError,
        "ATOMIC_PUBLISH_DISABLED",
        "set allow_atomic on the stream",
    ),
    rule(
        errors.BatchDisabledError,
        "BATCH_PUBLISH_DISABLED",
        "set allow_batched on the stream",
    ),
    # Not retryable: a commit whose answer was lost looks the same, and sending the batch again
    # would store it twice. The caller finds out first what the stream holds.
    rule(
        errors.BatchIncompleteError,
        "ATOMIC_PUBLISH_INCOMPLETE_BATCH BATCH_PUBLISH_UNKNOWN_BATCH_ID",
        "check if it was stored; if not, send the whole batch again",
    ),
    rule(
        errors.TooManyBatchesError,
        "ATOMIC_PUBLISH_TOO_MANY_INFLIGHT BATCH_PUBLISH_TOO_MANY_INFLIGHT",
        "wait until other batches have ended, then start again",
        retryable=True,
    ),
    rule(
        errors.BatchTooLargeError,
        "ATOMIC_PUBLISH_TOO_LARGE_BATCH",
        "split the batch",
    ),
    rule(
        errors.BatchDuplicateError,
        "ATOMIC_PUBLISH_CONTAINS_DUPLICATE_MESSAGE",
        "one of its messages was stored before, so nothing of the batch is stored: leave it out",
    ),
    rule(
        errors.BatchError,
        "ATOMIC_PUBLISH_INVALID_BATCH_COMMIT "
        "ATOMIC_PUBLISH_INVALID_BATCH_ID ATOMIC_PUBLISH_MISSING_SEQ "
        "ATOMIC_PUBLISH_UNSUPPORTED_HEADER_BATCH BATCH_PUBLISH_INVALID_BATCH_ID "
        "BATCH_PUBLISH_INVALID_PATTERN",
    ),
)
