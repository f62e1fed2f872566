"""Which tests prove which rows of the tables of what a JetStream client can do.

Rows are spelled as in the project's comparison of clients: table 1a streams, 1b publishing, 1c
consumers, and from `proof_views.py` 1d buckets, 1e object stores. A row in `NOT_YET` has no test;
the list becomes empty, it never grows.
"""

from __future__ import annotations

from typing import Final

from tests.features.proof_views import PROOF_1D, PROOF_1E, ROWS_OF_VIEWS

Proof = dict[str, tuple[str, ...]]

ROWS: Final[dict[str, tuple[str, ...]]] = {
    "1a": (
        "account info (limits, tiers, API level)",
        "create",
        "update (full config)",
        "create-or-update",
        "info",
        "state first_ts/last_ts/num_subjects, alternates",
        "list, auto-paged",
        "names",
        "find by subject",
        "delete",
        "purge all / filter / seq / keep (count returned)",
        "get msg by seq / last-by-subject",
        "next-by-subject from seq; by start_time",
        "delete msg: plain / secure erase",
        'seal, deny_delete, deny_purge ("immutable sets")',
        "mirror / sources / transforms / external / ADR-60 consumer",
        "republish, compression, placement, metadata, consumer_limits, first_seq",
        "message TTL, delete markers, counters, schedules, atomic, batched, persist_mode flags",
        "advisories as a typed stream",
        "snapshot / restore (backup)",
        "leader step-down, peer remove, balance",
        "stream templates (seed 004 item)",
        "Nats-Required-Api-Level (ADR-44)",
    ),
    "1b": (
        "sync publish + PubAck",
        "async, max pending, stall wait, ack timeout, handlers",
        "dedup Nats-Msg-Id",
        "expect stream",
        "expect last seq / last msg id",
        "expect last subject seq",
        "...-Subject (seq for another / wildcard subject)",
        'per-message TTL (fraction, "never")',
        "retry on no responders (ADR-22)",
        "atomic batch (ADR-50)",
        "fast batch / ingest (ADR-50)",
        "schedules (at/every/cron/tz/source/ttl/rollup, cancel)",
        "counters (Nats-Incr, PubAck.val)",
    ),
    "1c": (
        "durable / ephemeral / named",
        "create strict / update strict / create-or-update",
        "list + names, paged",
        "pull limits max_batch / max_expires / max_bytes",
        "next(one)",
        "fetch(n)",
        "fetch_bytes",
        "fetch_no_wait",
        "consume(callback)",
        "messages()/async iterator",
        "thresholds",
        "heartbeats",
        "status/notification events",
        "stop / drain / closed signal, stop-after-N",
        "consumer deleted -> typed error",
        "ordered: single filter",
        "ordered: many filters",
        "ordered: recreate on gap / hb / delete",
        "push legacy, flow control, queue",
        "priority: overflow (min_pending/min_ack_pending)",
        "priority: pinned client (id, 423) + unpin",
        "priority: prioritized",
        "pause / resume",
        "reset (ADR-60)",
        "ack / double ack",
        "nak / nak(delay) / in_progress",
        "term / term(reason)",
        "ack+next (+NXT)",
        "direct get",
        "batch direct get / multi-last snapshot (ADR-31)",
    ),
    **ROWS_OF_VIEWS,
}

_ADMIN: Final = "tests/integration/admin"
_STREAMS: Final = "tests/integration/streams"
_MANAGER: Final = f"{_STREAMS}/test_manager.py"
_COMPAT: Final = "tests/compat"
_CONSUMERS: Final = "tests/integration/consumers"
_DIRECT: Final = "tests/integration/direct"
_PULLING: Final = "tests/integration/pulling"
_PUSHING: Final = "tests/integration/pushing"
_UNIT_PULLING: Final = "tests/unit/pulling"
_WORK: Final = "tests/integration/work"
_NAMED: Final = f"{_CONSUMERS}/test_manager.py"
_CONTROL: Final = f"{_CONSUMERS}/test_control.py"
_FETCH: Final = f"{_PULLING}/test_fetch.py"
_CONSUME: Final = f"{_PULLING}/test_consume.py"
_SETTLING: Final = f"{_PULLING}/test_settling.py"
_PUBLISHING: Final = "tests/integration/publishing"
_EXPECTATIONS: Final = f"{_PUBLISHING}/test_expectations.py"
_BATCHES: Final = "tests/integration/batches"
_SCHEDULES: Final = "tests/integration/schedules/test_schedules.py"
_REPEATED: Final = (
    "test_repeated_message_comes_again_with_a_copy_of_the_source_and_replaces_the_last"
)
_COUNTERS: Final = "tests/integration/counters/test_counters.py"
_OPERATIONS: Final = "tests/integration/operations"
_REMOVALS: Final = f"{_OPERATIONS}/test_removals.py"
_LEADERS: Final = f"{_OPERATIONS}/test_leaders.py"
_BACKUP: Final = "tests/integration/snapshots/test_backup.py"
_ADVISORIES: Final = "tests/integration/advisories/test_advisories.py"
_CHAIN: Final = "tests/integration/chain"
_LEVEL: Final = "test_upgrade.py::test_level_is_read_once_a_connection_and_again_after_a_reconnect"

PROOF_1A: Final[Proof] = {
    "account info (limits, tiers, API level)": (
        f"{_ADMIN}/test_settings.py::test_account_tells_everything",
        f"{_ADMIN}/test_settings.py::test_account_with_tiers_tells_each",
        "tests/unit/streams/test_account.py::test_account_has_usage_limits_and_tiers",
        f"{_COMPAT}/test_versions.py::test_account_tells_the_level_of_its_server",
    ),
    "create": (
        f"{_MANAGER}::test_created_stream_has_what_was_given",
        f"{_MANAGER}::test_creating_another_stream_of_the_name_fails",
    ),
    "update (full config)": (
        f"{_MANAGER}::test_update_keeps_every_field_that_the_server_sent",
        f"{_ADMIN}/test_changes.py::test_metadata_of_the_server_is_neither_compared_nor_touched",
        f"{_COMPAT}/test_configs.py::test_update_sends_back_every_field_of_the_server",
    ),
    "create-or-update": (
        f"{_ADMIN}/test_changes.py::test_ensure_says_what_it_changed_from_and_to",
        f"{_ADMIN}/test_changes.py::test_diff_says_what_ensure_then_does_and_does_nothing",
        f"{_ADMIN}/test_changes.py::test_diff_refuses_what_the_server_refuses",
    ),
    "info": (
        f"{_ADMIN}/test_inspection.py::test_info_counts_the_messages_of_each_subject",
        f"{_ADMIN}/test_inspection.py::test_info_tells_what_is_deleted",
        f"{_ADMIN}/test_inspection.py::test_more_subjects_than_one_answer_holds_come_whole",
        f"{_ADMIN}/test_inspection.py::test_info_says_how_far_mirrors_and_sources_are",
    ),
    "state first_ts/last_ts/num_subjects, alternates": (
        f"{_ADMIN}/test_inspection.py::test_info_has_times_domain_and_leader",
        f"{_ADMIN}/test_inspection.py::test_replicas_and_alternates_are_told_on_a_cluster",
    ),
    "list, auto-paged": (
        f"{_ADMIN}/test_listing.py::test_all_streams_are_listed_named_and_found",
        f"{_ADMIN}/test_listing.py::test_streams_that_do_not_answer_are_told",
    ),
    "names": (f"{_ADMIN}/test_listing.py::test_all_streams_are_listed_named_and_found",),
    "find by subject": (
        f"{_ADMIN}/test_listing.py::test_streams_are_found_by_the_subjects_that_they_capture",
    ),
    "delete": (f"{_COMPAT}/test_versions.py::test_streams_are_made_changed_found_and_deleted",),
    "purge all / filter / seq / keep (count returned)": (
        f"{_REMOVALS}::test_purge_removes_all_and_says_how_many",
        f"{_REMOVALS}::test_purge_before_leaves_the_sequence_itself",
        f"{_REMOVALS}::test_purge_keep_leaves_the_newest",
        f"{_REMOVALS}::test_purge_of_a_subject_leaves_the_others",
    ),
    "get msg by seq / last-by-subject": (
        f"{_COMPAT}/test_versions.py::test_one_message_is_found_by_sequence_and_subject",
        f"{_ADMIN}/test_inspection.py::test_last_message_of_all_is_found_behind_a_deleted_end",
    ),
    "next-by-subject from seq; by start_time": (
        f"{_COMPAT}/test_versions.py::test_one_message_is_found_by_sequence_and_subject",
        f"{_COMPAT}/test_versions.py::test_time_finds_messages_or_the_server_is_too_old",
    ),
    "delete msg: plain / secure erase": (
        f"{_REMOVALS}::test_deleted_message_is_gone_and_the_others_stay",
        f"{_REMOVALS}::test_deleting_what_is_not_there_says_so",
    ),
    'seal, deny_delete, deny_purge ("immutable sets")': (
        f"{_REMOVALS}::test_sealed_stream_takes_no_writes_and_no_removals",
        f"{_REMOVALS}::test_deny_delete_and_deny_purge_are_told_apart",
        f"{_CHAIN}/test_chain.py::test_attack_is_named_where_it_happened",
        f"{_CHAIN}/test_writers.py::test_second_process_with_the_same_writer_id_is_refused",
        "tests/unit/chain/test_links.py::test_nothing_can_be_hidden_in_a_header_block",
    ),
    "mirror / sources / transforms / external / ADR-60 consumer": (
        f"{_ADMIN}/test_settings.py::test_typed_parts_are_stored_and_come_back",
        f"{_ADMIN}/test_settings.py::test_mirror_is_made_and_given_up",
        f"{_ADMIN}/test_settings.py::test_source_of_another_domain_is_copied",
        f"{_ADMIN}/test_settings.py::test_source_reads_a_work_queue_by_a_consumer_and_empties_it",
    ),
    "republish, compression, placement, metadata, consumer_limits, first_seq": (
        f"{_ADMIN}/test_settings.py::test_typed_parts_are_stored_and_come_back",
        f"{_ADMIN}/test_settings.py::test_placement_that_no_server_has_is_refused_on_a_cluster",
    ),
    "message TTL, delete markers, counters, schedules, atomic, batched, persist_mode flags": (
        f"{_ADMIN}/test_settings.py::test_flags_and_limits_are_stored_and_come_back",
        f"{_COMPAT}/test_configs.py::test_stream_field_is_taken_or_refused",
    ),
    "advisories as a typed stream": (
        f"{_ADVISORIES}::test_life_of_a_stream_is_told",
        f"{_ADVISORIES}::test_fate_of_messages_is_told",
        f"{_ADVISORIES}::test_pins_and_their_end_are_told",
        f"{_ADVISORIES}::test_leaders_of_a_cluster_are_told",
        f"{_ADVISORIES}::test_slow_reader_is_told_how_many_were_dropped",
    ),
    "snapshot / restore (backup)": (
        f"{_BACKUP}::test_restored_stream_is_what_was_saved",
        f"{_BACKUP}::test_damaged_backup_is_refused_before_anything_is_sent",
        f"{_BACKUP}::test_replicated_stream_is_saved_and_restored",
        "tests/interop/test_backups.py::test_cli_restores_what_natsstream_saved",
        "tests/interop/test_backups.py::test_natsstream_restores_what_the_cli_saved",
    ),
    "leader step-down, peer remove, balance": (
        f"{_LEADERS}::test_step_down_returns_the_next_leader",
        f"{_LEADERS}::test_preferred_server_leads_afterwards",
        f"{_LEADERS}::test_replica_of_a_removed_peer_moves_to_another_server",
    ),
    "stream templates (seed 004 item)": (
        f"{_ADMIN}/test_templates.py::test_publish_makes_the_stream_and_stores_the_message",
        f"{_ADMIN}/test_templates.py::test_subjects_that_differ_get_streams_that_differ",
        f"{_ADMIN}/test_templates.py::test_many_publishers_at_once_make_one_stream",
        f"{_ADMIN}/test_templates.py::test_publisher_makes_streams_and_loses_nothing",
    ),
    "Nats-Required-Api-Level (ADR-44)": (
        f"{_COMPAT}/test_configs.py::test_stream_field_is_taken_or_refused",
        f"{_COMPAT}/{_LEVEL}",
    ),
}

PROOF_1B: Final[Proof] = {
    "sync publish + PubAck": (f"{_STREAMS}/test_publish.py::test_ack_names_stream_and_sequence",),
    "async, max pending, stall wait, ack timeout, handlers": (
        f"{_STREAMS}/test_publish.py::test_publisher_keeps_the_order_and_its_window",
        f"{_STREAMS}/test_publish.py::test_message_without_an_ack_in_time_fails",
        f"{_STREAMS}/test_publisher_many.py::test_window_in_bytes_is_never_exceeded",
        f"{_STREAMS}/test_publisher_window.py::test_many_senders_share_a_window_of_one",
        f"{_STREAMS}/test_publisher_window.py::test_every_future_settles_when_the_server_dies",
        f"{_STREAMS}/test_publisher_retry.py::test_crash_under_load_loses_and_doubles_nothing",
    ),
    "dedup Nats-Msg-Id": (
        f"{_STREAMS}/test_publish.py::test_second_message_with_an_id_is_a_duplicate",
    ),
    "expect stream": (
        f"{_STREAMS}/test_publish.py::test_stream_refuses_what_another_stream_captures",
        f"{_PUBLISHING}/test_one_stream.py::test_message_for_another_stream_is_refused",
    ),
    "expect last seq / last msg id": (
        f"{_STREAMS}/test_publish.py::test_stale_expectation_is_refused_with_the_last_sequence",
        f"{_EXPECTATIONS}::test_sequences_are_compared",
        f"{_EXPECTATIONS}::test_last_message_id_is_compared_where_there_are_no_replicas",
        f"{_EXPECTATIONS}::test_last_message_id_never_reaches_a_stream_with_replicas",
    ),
    "expect last subject seq": (
        f"{_EXPECTATIONS}::test_sequences_are_compared",
        f"{_EXPECTATIONS}::test_of_many_at_once_one_holds",
    ),
    "...-Subject (seq for another / wildcard subject)": (
        f"{_STREAMS}/test_publish_one.py::test_expected_sequence_of_another_subject_is_checked_there",
        f"{_EXPECTATIONS}::test_wildcard_in_an_expectation_is_refused_with_the_reason",
    ),
    'per-message TTL (fraction, "never")': (
        f"{_STREAMS}/test_publish_one.py::test_ttl_stands_in_the_message_as_it_was_asked",
        f"{_STREAMS}/test_publish_one.py::test_message_is_gone_after_its_ttl",
        f"{_STREAMS}/test_publish_one.py::test_ttl_is_refused_by_a_stream_that_does_not_allow_it",
    ),
    "retry on no responders (ADR-22)": (
        f"{_STREAMS}/test_publish_one.py::test_message_is_sent_again_until_a_stream_is_there",
    ),
    "atomic batch (ADR-50)": (
        f"{_BATCHES}/test_atomic.py::test_a_batch_is_stored_as_a_whole_at_the_commit",
        f"{_BATCHES}/test_atomic.py::test_an_expectation_that_fails_refuses_the_whole_batch",
        f"{_BATCHES}/test_outcome.py::test_outcomes_are_true_while_leaders_are_killed",
        "tests/interop/test_consumers.py::test_atomic_batch_of_one_client_is_read_whole_by_the_others",
    ),
    "fast batch / ingest (ADR-50)": (
        f"{_BATCHES}/test_fast.py::test_messages_are_stored_in_order_and_the_report_says_so",
        f"{_BATCHES}/test_fast.py::test_gaps_that_are_allowed_are_told_in_the_report",
        f"{_BATCHES}/test_fast_faults.py::test_a_killed_leader_leaves_a_true_report",
        f"{_BATCHES}/test_fast_truth.py::test_a_refusal_whose_answer_is_lost_is_never_told_as_stored",
    ),
    "schedules (at/every/cron/tz/source/ttl/rollup, cancel)": (
        f"{_SCHEDULES}::test_message_for_a_moment_is_published_once_and_its_schedule_is_gone",
        f"{_SCHEDULES}::{_REPEATED}",
        f"{_SCHEDULES}::test_list_and_get_tell_what_was_asked_for",
        f"{_SCHEDULES}::test_cancelled_schedule_is_gone_and_nothing_else",
    ),
    "counters (Nats-Incr, PubAck.val)": (
        f"{_STREAMS}/test_publish_one.py::test_counter_tells_its_total",
        f"{_COUNTERS}::test_totals_are_the_servers_and_exact",
        f"{_COUNTERS}::test_same_message_id_adds_once_and_tells_the_true_total",
        f"{_COUNTERS}::test_sources_of_a_counter_are_told_one_by_one",
    ),
}

PROOF_1C: Final[Proof] = {
    "durable / ephemeral / named": (
        f"{_NAMED}::test_consumer_with_a_name_is_durable",
        f"{_NAMED}::test_consumer_without_a_name_gets_one_and_is_deleted_by_itself",
        f"{_NAMED}::test_named_consumer_need_not_be_durable",
    ),
    "create strict / update strict / create-or-update": (
        f"{_NAMED}::test_create_leaves_a_consumer_that_exists_alone",
        f"{_NAMED}::test_update_makes_no_consumer",
        f"{_NAMED}::test_ensure_creates_changes_or_leaves",
        f"{_COMPAT}/test_consumers.py::test_create_update_and_ensure_keep_apart",
    ),
    "list + names, paged": (
        f"{_NAMED}::test_all_are_listed_beyond_a_page",
        f"{_CONSUMERS}/test_replicated.py::test_consumers_that_do_not_answer_are_told",
    ),
    "pull limits max_batch / max_expires / max_bytes": (
        f"{_NAMED}::test_every_field_is_taken_and_comes_back",
        f"{_NAMED}::test_update_erases_no_field",
        f"{_FETCH}::test_fetch_beyond_the_limits_of_the_consumer_is_done_in_parts",
        f"{_PULLING}/test_limits.py::test_flow_asks_for_no_more_bytes_than_the_consumer_allows",
    ),
    "next(one)": (
        f"{_FETCH}::test_cancelled_fetches_keep_no_message_from_the_next",
        f"{_PULLING}/test_priority.py::test_pinned_fetches_of_one_handle_go_on_with_their_pin",
    ),
    "fetch(n)": (
        f"{_FETCH}::test_fetch_returns_as_many_as_asked_for",
        f"{_FETCH}::test_fetch_returns_what_came_in_time",
        f"{_FETCH}::test_messages_before_a_deletion_are_returned_with_the_error",
    ),
    "fetch_bytes": (f"{_FETCH}::test_fetch_is_bounded_by_bytes",),
    "fetch_no_wait": (
        f"{_FETCH}::test_fetch_that_does_not_wait_takes_what_is_there",
        f"{_PULLING}/test_limits.py::test_fetch_without_waiting_takes_all_that_is_there_in_parts",
    ),
    "consume(callback)": (
        f"{_WORK}/test_run.py::test_handled_messages_are_acked",
        f"{_WORK}/test_run.py::test_never_more_handlers_run_than_were_asked_for",
    ),
    "messages()/async iterator": (
        f"{_CONSUME}::test_each_message_comes_once_and_in_order",
        f"{_CONSUME}::test_loop_that_was_left_goes_on_with_the_next_message",
    ),
    "thresholds": (
        f"{_UNIT_PULLING}/test_flow.py::test_next_pull_is_due_when_half_of_the_window_is_taken",
        f"{_UNIT_PULLING}/test_flow.py::test_window_is_never_exceeded_and_never_stands_still",
        f"{_CONSUME}::test_bytes_that_wait_are_bounded",
    ),
    "heartbeats": (
        f"{_PULLING}/test_consume_faults.py::test_paused_server_is_noticed_and_the_flow_goes_on",
        f"{_FETCH}::test_silent_server_is_told",
    ),
    "status/notification events": (
        f"{_PULLING}/test_priority.py::test_unpinned_flow_is_told_and_goes_on",
        f"{_PULLING}/test_consume_faults.py::test_paused_server_is_noticed_and_the_flow_goes_on",
        f"{_PUSHING}/test_faults.py::test_silence_is_told_and_the_reader_goes_on",
    ),
    "stop / drain / closed signal, stop-after-N": (
        f"{_CONSUME}::test_flow_ends_after_exactly_so_many",
        f"{_CONSUME}::test_draining_hands_out_what_has_arrived_and_ends",
        f"{_CONSUME}::test_stopping_ends_loops_that_wait_and_events",
    ),
    "consumer deleted -> typed error": (
        f"{_CONSUME}::test_deletion_ends_a_flow_with_a_typed_error",
        f"{_FETCH}::test_deletion_ends_a_fetch_with_a_typed_error",
        f"{_PUSHING}/test_faults.py::test_deletion_is_told_to_a_reader_that_waits",
    ),
    "ordered: single filter": (
        f"{_STREAMS}/test_ordered.py::test_tail_is_caught_up_with_the_last_old_message",
        f"{_STREAMS}/test_ordered.py::test_initial_messages_that_a_filter_hides_end_at_once",
    ),
    "ordered: many filters": (
        f"{_STREAMS}/test_ordered.py::test_filters_are_applied_by_the_server",
    ),
    "ordered: recreate on gap / hb / delete": (
        f"{_STREAMS}/test_ordered_faults.py::test_consumer_that_is_deleted_is_made_again_at_once",
        f"{_STREAMS}/test_ordered_faults.py::test_missed_heartbeats_make_another_consumer",
    ),
    "push legacy, flow control, queue": (
        f"{_PUSHING}/test_push.py::test_messages_come_in_order_and_are_settled",
        f"{_PUSHING}/test_push.py::test_members_of_a_group_share_the_messages",
        f"{_PUSHING}/test_flow.py::test_request_is_answered_when_the_messages_before_it_were_taken",
        f"{_PUSHING}/test_flow.py::test_server_waits_for_a_reader_that_stands_still",
    ),
    "priority: overflow (min_pending/min_ack_pending)": (
        f"{_PULLING}/test_priority.py::test_overflow_pulls_wait_until_enough_is_pending",
    ),
    "priority: pinned client (id, 423) + unpin": (
        f"{_PULLING}/test_priority.py::test_pinned_flow_gets_all_and_the_other_stands_by",
        f"{_PULLING}/test_priority.py::test_unpinned_flow_is_told_and_goes_on",
        f"{_CONTROL}::test_unpin_takes_the_pin",
    ),
    "priority: prioritized": (
        f"{_PULLING}/test_priority.py::test_pulls_with_the_lower_priority_number_come_first",
    ),
    "pause / resume": (
        f"{_CONTROL}::test_paused_consumer_delivers_nothing_until_it_is_resumed",
        f"{_CONTROL}::test_pause_is_a_time_or_a_duration",
        f"{_CONTROL}::test_ensure_pauses_a_consumer_that_exists",
    ),
    "reset (ADR-60)": (
        f"{_CONTROL}::test_reset_delivers_again_from_a_sequence",
        f"{_CONTROL}::test_reset_without_a_sequence_delivers_what_is_not_settled",
        f"{_CONTROL}::test_reset_before_the_start_is_refused",
    ),
    "ack / double ack": (
        f"{_SETTLING}::test_acked_message_does_not_come_again",
        f"{_PULLING}/test_cluster.py::test_confirmed_acks_hold_when_the_leader_moves",
        f"{_SETTLING}::test_confirming_on_a_deleted_consumer_is_told",
    ),
    "nak / nak(delay) / in_progress": (
        f"{_SETTLING}::test_message_given_back_comes_again_after_its_delay",
        f"{_SETTLING}::test_message_in_progress_is_not_given_to_others",
    ),
    "term / term(reason)": (
        f"{_SETTLING}::test_terminated_message_does_not_come_again_and_its_reason_is_told",
    ),
    "ack+next (+NXT)": (
        f"{_SETTLING}::test_ack_and_next_is_one_round_trip",
        f"{_SETTLING}::test_cancelled_ack_and_next_loses_nothing",
    ),
    "direct get": (
        f"{_DIRECT}/test_direct.py::test_direct_get_is_what_the_leader_gives",
        f"{_DIRECT}/test_direct.py::test_direct_get_of_what_is_not_there_is_none",
    ),
    "batch direct get / multi-last snapshot (ADR-31)": (
        f"{_DIRECT}/test_direct.py::test_batch_reads_on_where_the_last_one_ended",
        f"{_DIRECT}/test_direct.py::test_batch_of_a_subject",
        f"{_DIRECT}/test_direct.py::test_latest_is_the_newest_of_each_subject_as_of_one_moment",
    ),
}

PROOF: Final[dict[str, Proof]] = {
    "1a": PROOF_1A,
    "1b": PROOF_1B,
    "1c": PROOF_1C,
    "1d": PROOF_1D,
    "1e": PROOF_1E,
}

NOT_YET: Final[dict[str, frozenset[str]]] = {
    "1a": frozenset(),
    "1b": frozenset(),
    "1c": frozenset(),
    "1d": frozenset(),
    "1e": frozenset(),
}
"""Rows that have no test yet: whoever adds a proof takes its row out."""
