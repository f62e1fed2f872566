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

_COMPAT: Final = "tests/compat"
_LEVEL: Final = (
    "tests/compat/test_upgrade.py::test_level_is_read_once_a_connection_and_again_after_a_reconnect"
)

PROOF_1A: Final[Proof] = {
    "account info (limits, tiers, API level)": (
        "tests/integration/api/test_settings.py::test_account_tells_everything",
        "tests/integration/api/test_settings.py::test_account_with_tiers_tells_each",
        "tests/unit/api/test_account.py::test_account_has_usage_limits_and_tiers",
        "tests/compat/test_versions.py::test_account_tells_the_level_of_its_server",
    ),
    "create": (
        "tests/integration/streams/test_manager.py::test_created_stream_has_what_was_given",
        "tests/integration/streams/test_manager.py::test_creating_another_stream_of_the_name_fails",
    ),
    "update (full config)": (
        "tests/integration/streams/test_manager.py::test_update_keeps_every_field_that_the_server_sent",
        "tests/integration/api/test_changes.py::test_metadata_of_the_server_is_neither_compared_nor_touched",
        "tests/compat/test_configs.py::test_update_sends_back_every_field_of_the_server",
    ),
    "create-or-update": (
        "tests/integration/api/test_changes.py::test_ensure_says_what_it_changed_from_and_to",
        "tests/integration/api/test_changes.py::test_diff_says_what_ensure_then_does_and_does_nothing",
        "tests/integration/api/test_changes.py::test_diff_refuses_what_the_server_refuses",
    ),
    "info": (
        "tests/integration/streams/test_inspection.py::test_info_counts_the_messages_of_each_subject",
        "tests/integration/streams/test_inspection.py::test_info_tells_what_is_deleted",
        "tests/integration/streams/test_inspection.py::test_more_subjects_than_one_answer_holds_come_whole",
        "tests/integration/streams/test_inspection.py::test_info_says_how_far_mirrors_and_sources_are",
    ),
    "state first_ts/last_ts/num_subjects, alternates": (
        "tests/integration/streams/test_inspection.py::test_info_has_times_domain_and_leader",
        "tests/integration/streams/test_inspection.py::test_replicas_and_alternates_are_told_on_a_cluster",
    ),
    "list, auto-paged": (
        "tests/integration/streams/test_listing.py::test_all_streams_are_listed_named_and_found",
        "tests/integration/streams/test_listing.py::test_streams_that_do_not_answer_are_told",
    ),
    "names": (
        "tests/integration/streams/test_listing.py::test_all_streams_are_listed_named_and_found",
    ),
    "find by subject": (
        "tests/integration/streams/test_listing.py::test_streams_are_found_by_the_subjects_that_they_capture",
    ),
    "delete": ("tests/compat/test_versions.py::test_streams_are_made_changed_found_and_deleted",),
    "purge all / filter / seq / keep (count returned)": (
        "tests/integration/streams/test_removals.py::test_purge_removes_all_and_says_how_many",
        "tests/integration/streams/test_removals.py::test_purge_before_leaves_the_sequence_itself",
        "tests/integration/streams/test_removals.py::test_purge_keep_leaves_the_newest",
        "tests/integration/streams/test_removals.py::test_purge_of_a_subject_leaves_the_others",
    ),
    "get msg by seq / last-by-subject": (
        "tests/compat/test_versions.py::test_one_message_is_found_by_sequence_and_subject",
        "tests/integration/streams/test_inspection.py::test_last_message_of_all_is_found_behind_a_deleted_end",
    ),
    "next-by-subject from seq; by start_time": (
        "tests/compat/test_versions.py::test_one_message_is_found_by_sequence_and_subject",
        "tests/compat/test_versions.py::test_time_finds_messages_or_the_server_is_too_old",
    ),
    "delete msg: plain / secure erase": (
        "tests/integration/streams/test_removals.py::test_deleted_message_is_gone_and_the_others_stay",
        "tests/integration/streams/test_removals.py::test_deleting_what_is_not_there_says_so",
    ),
    'seal, deny_delete, deny_purge ("immutable sets")': (
        "tests/integration/streams/test_removals.py::test_sealed_stream_takes_no_writes_and_no_removals",
        "tests/integration/streams/test_removals.py::test_deny_delete_and_deny_purge_are_told_apart",
        "tests/integration/streams/chain/test_chain.py::test_attack_is_named_where_it_happened",
        "tests/integration/streams/chain/test_writers.py::test_second_process_with_the_same_writer_id_is_refused",
        "tests/unit/streams/chain/test_links.py::test_nothing_can_be_hidden_in_a_header_block",
    ),
    "mirror / sources / transforms / external / ADR-60 consumer": (
        "tests/integration/api/test_settings.py::test_typed_parts_are_stored_and_come_back",
        "tests/integration/api/test_settings.py::test_mirror_is_made_and_given_up",
        "tests/integration/api/test_settings.py::test_source_of_another_domain_is_copied",
        "tests/integration/api/test_settings.py::test_source_reads_a_work_queue_by_a_consumer_and_empties_it",
    ),
    "republish, compression, placement, metadata, consumer_limits, first_seq": (
        "tests/integration/api/test_settings.py::test_typed_parts_are_stored_and_come_back",
        "tests/integration/api/test_settings.py::test_placement_that_no_server_has_is_refused_on_a_cluster",
    ),
    "message TTL, delete markers, counters, schedules, atomic, batched, persist_mode flags": (
        "tests/integration/api/test_settings.py::test_flags_and_limits_are_stored_and_come_back",
        "tests/compat/test_configs.py::test_stream_field_is_taken_or_refused",
    ),
    "advisories as a typed stream": (
        "tests/integration/core/advisories/test_advisories.py::test_life_of_a_stream_is_told",
        "tests/integration/core/advisories/test_advisories.py::test_fate_of_messages_is_told",
        "tests/integration/core/advisories/test_advisories.py::test_pins_and_their_end_are_told",
        "tests/integration/core/advisories/test_advisories.py::test_leaders_of_a_cluster_are_told",
        "tests/integration/core/advisories/test_advisories.py::test_slow_reader_is_told_how_many_were_dropped",
    ),
    "snapshot / restore (backup)": (
        "tests/integration/streams/snapshots/test_backup.py::test_restored_stream_is_what_was_saved",
        "tests/integration/streams/snapshots/test_backup.py::test_damaged_backup_is_refused_before_anything_is_sent",
        "tests/integration/streams/snapshots/test_backup.py::test_replicated_stream_is_saved_and_restored",
        "tests/interop/test_backups.py::test_cli_restores_what_natsstream_saved",
        "tests/interop/test_backups.py::test_natsstream_restores_what_the_cli_saved",
    ),
    "leader step-down, peer remove, balance": (
        "tests/integration/api/test_leaders.py::test_step_down_returns_the_next_leader",
        "tests/integration/api/test_leaders.py::test_preferred_server_leads_afterwards",
        "tests/integration/api/test_leaders.py::test_replica_of_a_removed_peer_moves_to_another_server",
    ),
    "stream templates (seed 004 item)": (
        "tests/integration/streams/templates/test_templates.py::test_publish_makes_the_stream_and_stores_the_message",
        "tests/integration/streams/templates/test_templates.py::test_subjects_that_differ_get_streams_that_differ",
        "tests/integration/streams/templates/test_templates.py::test_many_publishers_at_once_make_one_stream",
        "tests/integration/streams/templates/test_templates.py::test_publisher_makes_streams_and_loses_nothing",
    ),
    "Nats-Required-Api-Level (ADR-44)": (
        "tests/compat/test_configs.py::test_stream_field_is_taken_or_refused",
        f"{_LEVEL}",
    ),
}

PROOF_1B: Final[Proof] = {
    "sync publish + PubAck": (
        "tests/integration/publish/test_publish.py::test_ack_names_stream_and_sequence",
    ),
    "async, max pending, stall wait, ack timeout, handlers": (
        "tests/integration/publish/test_publish.py::test_publisher_keeps_the_order_and_its_window",
        "tests/integration/publish/test_publish.py::test_message_without_an_ack_in_time_fails",
        "tests/integration/publish/test_publisher_many.py::test_window_in_bytes_is_never_exceeded",
        "tests/integration/publish/test_publisher_window.py::test_many_senders_share_a_window_of_one",
        "tests/integration/publish/test_publisher_window.py::test_every_future_settles_when_the_server_dies",
        "tests/integration/publish/test_publisher_retry.py::test_crash_under_load_loses_and_doubles_nothing",
    ),
    "dedup Nats-Msg-Id": (
        "tests/integration/publish/test_publish.py::test_second_message_with_an_id_is_a_duplicate",
    ),
    "expect stream": (
        "tests/integration/publish/test_publish.py::test_stream_refuses_what_another_stream_captures",
        "tests/integration/publish/test_one_stream.py::test_message_for_another_stream_is_refused",
    ),
    "expect last seq / last msg id": (
        "tests/integration/publish/test_publish.py::test_stale_expectation_is_refused_with_the_last_sequence",
        "tests/integration/publish/test_expectations.py::test_sequences_are_compared",
        "tests/integration/publish/test_expectations.py::test_last_message_id_is_compared_where_there_are_no_replicas",
        "tests/integration/publish/test_expectations.py::test_last_message_id_never_reaches_a_stream_with_replicas",
    ),
    "expect last subject seq": (
        "tests/integration/publish/test_expectations.py::test_sequences_are_compared",
        "tests/integration/publish/test_expectations.py::test_of_many_at_once_one_holds",
    ),
    "...-Subject (seq for another / wildcard subject)": (
        "tests/integration/publish/test_publish_one.py::test_expected_sequence_of_another_subject_is_checked_there",
        "tests/integration/publish/test_expectations.py::test_wildcard_in_an_expectation_is_refused_with_the_reason",
    ),
    'per-message TTL (fraction, "never")': (
        "tests/integration/publish/test_publish_one.py::test_ttl_stands_in_the_message_as_it_was_asked",
        "tests/integration/publish/test_publish_one.py::test_message_is_gone_after_its_ttl",
        "tests/integration/publish/test_publish_one.py::test_ttl_is_refused_by_a_stream_that_does_not_allow_it",
    ),
    "retry on no responders (ADR-22)": (
        "tests/integration/publish/test_publish_one.py::test_message_is_sent_again_until_a_stream_is_there",
    ),
    "atomic batch (ADR-50)": (
        "tests/integration/publish/batches/test_atomic.py::test_a_batch_is_stored_as_a_whole_at_the_commit",
        "tests/integration/publish/batches/test_atomic.py::test_an_expectation_that_fails_refuses_the_whole_batch",
        "tests/integration/publish/batches/test_outcome.py::test_outcomes_are_true_while_leaders_are_killed",
        "tests/interop/test_consumers.py::test_atomic_batch_of_one_client_is_read_whole_by_the_others",
    ),
    "fast batch / ingest (ADR-50)": (
        "tests/integration/publish/batches/test_fast.py::test_messages_are_stored_in_order_and_the_report_says_so",
        "tests/integration/publish/batches/test_fast.py::test_gaps_that_are_allowed_are_told_in_the_report",
        "tests/integration/publish/batches/test_fast_faults.py::test_a_killed_leader_leaves_a_true_report",
        "tests/integration/publish/batches/test_fast_truth.py::test_a_refusal_whose_answer_is_lost_is_never_told_as_stored",
    ),
    "schedules (at/every/cron/tz/source/ttl/rollup, cancel)": (
        "tests/integration/publish/schedules/test_schedules.py::test_message_for_a_moment_is_published_once_and_its_schedule_is_gone",
        "tests/integration/publish/schedules/test_schedules.py::test_repeated_message_comes_again_with_a_copy_of_the_source_and_replaces_the_last",
        "tests/integration/publish/schedules/test_schedules.py::test_list_and_get_tell_what_was_asked_for",
        "tests/integration/publish/schedules/test_schedules.py::test_cancelled_schedule_is_gone_and_nothing_else",
    ),
    "counters (Nats-Incr, PubAck.val)": (
        "tests/integration/publish/test_publish_one.py::test_counter_tells_its_total",
        "tests/integration/streams/counters/test_counters.py::test_totals_are_the_servers_and_exact",
        "tests/integration/streams/counters/test_counters.py::test_same_message_id_adds_once_and_tells_the_true_total",
        "tests/integration/streams/counters/test_counters.py::test_sources_of_a_counter_are_told_one_by_one",
    ),
}

PROOF_1C: Final[Proof] = {
    "durable / ephemeral / named": (
        "tests/integration/streams/consumers/test_manager.py::test_consumer_with_a_name_is_durable",
        "tests/integration/streams/consumers/test_manager.py::test_consumer_without_a_name_gets_one_and_is_deleted_by_itself",
        "tests/integration/streams/consumers/test_manager.py::test_named_consumer_need_not_be_durable",
    ),
    "create strict / update strict / create-or-update": (
        "tests/integration/streams/consumers/test_manager.py::test_create_leaves_a_consumer_that_exists_alone",
        "tests/integration/streams/consumers/test_manager.py::test_update_makes_no_consumer",
        "tests/integration/streams/consumers/test_manager.py::test_ensure_creates_changes_or_leaves",
        "tests/compat/test_consumers.py::test_create_update_and_ensure_keep_apart",
    ),
    "list + names, paged": (
        "tests/integration/streams/consumers/test_manager.py::test_all_are_listed_beyond_a_page",
        "tests/integration/streams/consumers/test_replicated.py::test_consumers_that_do_not_answer_are_told",
    ),
    "pull limits max_batch / max_expires / max_bytes": (
        "tests/integration/streams/consumers/test_manager.py::test_every_field_is_taken_and_comes_back",
        "tests/integration/streams/consumers/test_manager.py::test_update_erases_no_field",
        "tests/integration/consume/pull/test_fetch.py::test_fetch_beyond_the_limits_of_the_consumer_is_done_in_parts",
        "tests/integration/consume/pull/test_limits.py::test_flow_asks_for_no_more_bytes_than_the_consumer_allows",
    ),
    "next(one)": (
        "tests/integration/consume/pull/test_fetch.py::test_cancelled_fetches_keep_no_message_from_the_next",
        "tests/integration/consume/pull/test_priority.py::test_pinned_fetches_of_one_handle_go_on_with_their_pin",
    ),
    "fetch(n)": (
        "tests/integration/consume/pull/test_fetch.py::test_fetch_returns_as_many_as_asked_for",
        "tests/integration/consume/pull/test_fetch.py::test_fetch_returns_what_came_in_time",
        "tests/integration/consume/pull/test_fetch.py::test_messages_before_a_deletion_are_returned_with_the_error",
    ),
    "fetch_bytes": (
        "tests/integration/consume/pull/test_fetch.py::test_fetch_is_bounded_by_bytes",
    ),
    "fetch_no_wait": (
        "tests/integration/consume/pull/test_fetch.py::test_fetch_that_does_not_wait_takes_what_is_there",
        "tests/integration/consume/pull/test_limits.py::test_fetch_without_waiting_takes_all_that_is_there_in_parts",
    ),
    "consume(callback)": (
        "tests/integration/consume/work/test_run.py::test_handled_messages_are_acked",
        "tests/integration/consume/work/test_run.py::test_never_more_handlers_run_than_were_asked_for",
    ),
    "messages()/async iterator": (
        "tests/integration/consume/pull/test_consume.py::test_each_message_comes_once_and_in_order",
        "tests/integration/consume/pull/test_consume.py::test_loop_that_was_left_goes_on_with_the_next_message",
    ),
    "thresholds": (
        "tests/unit/consume/pull/test_window.py::test_next_pull_is_due_when_half_of_the_window_is_taken",
        "tests/unit/consume/pull/test_window.py::test_window_is_never_exceeded_and_never_stands_still",
        "tests/integration/consume/pull/test_consume.py::test_bytes_that_wait_are_bounded",
    ),
    "heartbeats": (
        "tests/integration/consume/pull/test_consume_faults.py::test_paused_server_is_noticed_and_the_flow_goes_on",
        "tests/integration/consume/pull/test_fetch.py::test_silent_server_is_told",
    ),
    "status/notification events": (
        "tests/integration/consume/pull/test_priority.py::test_unpinned_flow_is_told_and_goes_on",
        "tests/integration/consume/pull/test_consume_faults.py::test_paused_server_is_noticed_and_the_flow_goes_on",
        "tests/integration/consume/push/test_faults.py::test_silence_is_told_and_the_reader_goes_on",
    ),
    "stop / drain / closed signal, stop-after-N": (
        "tests/integration/consume/pull/test_consume.py::test_flow_ends_after_exactly_so_many",
        "tests/integration/consume/pull/test_consume.py::test_draining_hands_out_what_has_arrived_and_ends",
        "tests/integration/consume/pull/test_consume.py::test_stopping_ends_loops_that_wait_and_events",
    ),
    "consumer deleted -> typed error": (
        "tests/integration/consume/pull/test_consume.py::test_deletion_ends_a_flow_with_a_typed_error",
        "tests/integration/consume/pull/test_fetch.py::test_deletion_ends_a_fetch_with_a_typed_error",
        "tests/integration/consume/push/test_faults.py::test_deletion_is_told_to_a_reader_that_waits",
    ),
    "ordered: single filter": (
        "tests/integration/read/test_ordered.py::test_tail_is_caught_up_with_the_last_old_message",
        "tests/integration/read/test_ordered.py::test_initial_messages_that_a_filter_hides_end_at_once",
    ),
    "ordered: many filters": (
        "tests/integration/read/test_ordered.py::test_filters_are_applied_by_the_server",
    ),
    "ordered: recreate on gap / hb / delete": (
        "tests/integration/read/test_ordered_faults.py::test_consumer_that_is_deleted_is_made_again_at_once",
        "tests/integration/read/test_ordered_faults.py::test_missed_heartbeats_make_another_consumer",
    ),
    "push legacy, flow control, queue": (
        "tests/integration/consume/push/test_push.py::test_messages_come_in_order_and_are_settled",
        "tests/integration/consume/push/test_push.py::test_members_of_a_group_share_the_messages",
        "tests/integration/consume/push/test_flow.py::test_request_is_answered_when_the_messages_before_it_were_taken",
        "tests/integration/consume/push/test_flow.py::test_server_waits_for_a_reader_that_stands_still",
    ),
    "priority: overflow (min_pending/min_ack_pending)": (
        "tests/integration/consume/pull/test_priority.py::test_overflow_pulls_wait_until_enough_is_pending",
    ),
    "priority: pinned client (id, 423) + unpin": (
        "tests/integration/consume/pull/test_priority.py::test_pinned_flow_gets_all_and_the_other_stands_by",
        "tests/integration/consume/pull/test_priority.py::test_unpinned_flow_is_told_and_goes_on",
        "tests/integration/streams/consumers/test_control.py::test_unpin_takes_the_pin",
    ),
    "priority: prioritized": (
        "tests/integration/consume/pull/test_priority.py::test_pulls_with_the_lower_priority_number_come_first",
    ),
    "pause / resume": (
        "tests/integration/streams/consumers/test_control.py::test_paused_consumer_delivers_nothing_until_it_is_resumed",
        "tests/integration/streams/consumers/test_control.py::test_pause_is_a_time_or_a_duration",
        "tests/integration/streams/consumers/test_control.py::test_ensure_pauses_a_consumer_that_exists",
    ),
    "reset (ADR-60)": (
        "tests/integration/streams/consumers/test_control.py::test_reset_delivers_again_from_a_sequence",
        "tests/integration/streams/consumers/test_control.py::test_reset_without_a_sequence_delivers_what_is_not_settled",
        "tests/integration/streams/consumers/test_control.py::test_reset_before_the_start_is_refused",
    ),
    "ack / double ack": (
        "tests/integration/consume/pull/test_settling.py::test_acked_message_does_not_come_again",
        "tests/integration/consume/pull/test_cluster.py::test_confirmed_acks_hold_when_the_leader_moves",
        "tests/integration/consume/pull/test_settling.py::test_confirming_on_a_deleted_consumer_is_told",
    ),
    "nak / nak(delay) / in_progress": (
        "tests/integration/consume/pull/test_settling.py::test_message_given_back_comes_again_after_its_delay",
        "tests/integration/consume/pull/test_settling.py::test_message_in_progress_is_not_given_to_others",
    ),
    "term / term(reason)": (
        "tests/integration/consume/pull/test_settling.py::test_terminated_message_does_not_come_again_and_its_reason_is_told",
    ),
    "ack+next (+NXT)": (
        "tests/integration/consume/pull/test_settling.py::test_ack_and_next_is_one_round_trip",
        "tests/integration/consume/pull/test_settling.py::test_cancelled_ack_and_next_loses_nothing",
    ),
    "direct get": (
        "tests/integration/read/direct/test_direct.py::test_direct_get_is_what_the_leader_gives",
        "tests/integration/read/direct/test_direct.py::test_direct_get_of_what_is_not_there_is_none",
    ),
    "batch direct get / multi-last snapshot (ADR-31)": (
        "tests/integration/read/direct/test_direct.py::test_batch_reads_on_where_the_last_one_ended",
        "tests/integration/read/direct/test_direct.py::test_batch_of_a_subject",
        "tests/integration/read/direct/test_direct.py::test_latest_is_the_newest_of_each_subject_as_of_one_moment",
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
