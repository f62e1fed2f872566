"""Servers and clusters that cannot serve the request now, or at all."""

from __future__ import annotations

from natsstream import errors
from natsstream._wire.error_rules.rule import rule

RETRY_LATER = "no leader or no quorum now: retry, and check the servers if it persists"

RULES = (
    rule(
        errors.UnavailableError,
        "CLUSTER_INCOMPLETE CLUSTER_NOT_ASSIGNED CLUSTER_NOT_AVAIL CLUSTER_NOT_LEADER "
        "CONSUMER_OFFLINE CONSUMER_OFFLINE_REASON STREAM_EXPECTED_LAST_SEQ_PER_SUBJECT_NOT_READY "
        "STREAM_MIN_LAST_SEQ STREAM_OFFLINE STREAM_OFFLINE_REASON",
        RETRY_LATER,
        retryable=True,
    ),
    # The stream closed while the consumer was made: it is being deleted, or its server stops.
    rule(
        errors.UnavailableError,
        "STREAM_INVALID",
        "the stream is closing: retry",
        retryable=True,
    ),
    rule(
        errors.UnavailableError,
        "STREAM_TOO_MANY_REQUESTS",
        "send more slowly, or keep fewer in flight",
        retryable=True,
    ),
    rule(
        errors.ServerError,
        "STREAM_MSG_DELETE_FAILED",
        "the message may be deleted already, or the stream has deny_delete",
    ),
    rule(
        errors.ServerError,
        "CLUSTER_NO_PEERS PEER_REMAP",
        "too few servers are up, have the tags and enough storage: lower replicas or widen the "
        "placement",
    ),
    rule(
        errors.ServerError,
        "CLUSTER_NOT_ACTIVE CLUSTER_REQUIRED",
        "the server is not part of a cluster: connect to one that is",
    ),
    # No class says more than the server's own words do.
    rule(
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
