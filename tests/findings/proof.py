"""Which test proves which of nats-py's findings: the number, and the tests' node ids.

The findings are faults of nats-py 2.16 that were shown on a real server; the tests make the same
situation with natsstream. A test that existed where its room is tested is named here, not repeated.
"""

from __future__ import annotations

from typing import Final

DEMANDED: Final = frozenset(range(1, 35))
"""Findings about what exists: by now, all of them."""


PROOF: Final[dict[int, tuple[str, ...]]] = {
    1: (
        "tests/findings/test_ack_form.py::test_new_ack_form_leaves_the_connection_working",
        "tests/findings/test_ack_form.py::test_keys_of_a_bucket_are_read_with_the_new_ack_form",
        "tests/integration/read/test_ordered.py::test_ack_subjects_of_version_2_are_read",
        "tests/integration/streams/test_odd_streams.py::test_ack_subjects_of_the_second_form_are_read_both_ways",
        "tests/findings/test_kv_watches.py::test_bucket_is_watched_with_the_new_ack_form",
    ),
    2: (
        "tests/findings/test_kv_keys.py::test_call_with_a_pattern_for_a_key_is_refused_and_nothing_is_lost",
        "tests/findings/test_kv_keys.py::test_many_keys_are_purged_by_a_call_of_its_own",
    ),
    3: (
        "tests/findings/test_slow_reader.py::test_reader_that_stands_still_gets_every_message_later",
        "tests/integration/read/test_ordered_leaks.py::test_slow_reader_loses_nothing",
    ),
    4: (
        "tests/integration/read/test_ordered_leaks.py::test_reader_that_stops_reading_holds_a_window",
        "tests/integration/read/test_read_memory.py::test_reader_that_stops_reading_holds_a_few_pulls",
        "tests/integration/consume/push/test_flow.py::test_server_waits_for_a_reader_that_stands_still",
        "tests/integration/consume/push/test_flow.py::test_request_is_answered_when_the_messages_before_it_were_taken",
    ),
    5: (
        "tests/integration/publish/test_publisher_retry.py::test_every_future_of_a_plain_publisher_settles_when_its_server_dies",
        "tests/integration/publish/test_publisher_window.py::test_every_future_settles_when_the_server_dies",
        "tests/integration/publish/test_publish.py::test_message_without_an_ack_in_time_fails",
        "tests/findings/test_publisher.py::test_message_that_can_not_be_sent_takes_no_room",
    ),
    6: (
        "tests/findings/test_publisher.py::test_cancelled_call_is_cancelled",
        "tests/findings/test_publisher.py::test_call_ends_at_the_deadline_around_it",
        "tests/findings/test_publisher.py::test_block_of_a_publisher_can_be_cancelled_while_it_waits",
    ),
    7: ("tests/integration/wire/test_silent_peer.py::test_frozen_server_is_left_for_another_one",),
    8: (
        "tests/findings/test_object_chunks.py::test_missing_chunk_is_an_error_and_no_wait",
        "tests/findings/test_object_chunks.py::test_purged_chunks_are_an_error_and_no_wait",
        "tests/findings/test_object_chunks.py::test_chunks_of_another_writer_are_no_part_of_an_object",
    ),
    9: (
        "tests/findings/test_consumers.py::test_fetch_ends_at_once_when_its_consumer_is_deleted",
        "tests/findings/test_consumers.py::test_fetch_beyond_a_limit_ends_at_once",
        "tests/integration/consume/push/test_faults.py::test_deletion_is_told_to_a_reader_that_waits",
    ),
    10: (
        "tests/findings/test_consumers.py::test_configuration_that_was_read_is_written_back_whole",
        "tests/integration/streams/consumers/test_manager.py::test_update_erases_no_field",
        "tests/compat/test_consumers.py::test_update_sends_back_every_field_of_the_consumer",
        "tests/compat/test_configs.py::test_update_sends_back_every_field_of_the_server",
    ),
    11: (
        "tests/findings/test_consumers.py::test_create_does_not_change_a_live_consumer",
        "tests/integration/streams/consumers/test_manager.py::test_create_leaves_a_consumer_that_exists_alone",
        "tests/integration/streams/consumers/test_manager.py::test_update_makes_no_consumer",
    ),
    12: (
        "tests/findings/test_object_metas.py::test_metadata_survives_every_change",
        "tests/interop/test_objects.py::test_metadata_is_shown",
    ),
    13: (
        "tests/findings/test_object_metas.py::test_object_deleted_by_nats_py_is_gone_and_its_name_is_free",
        "tests/findings/test_object_metas.py::test_our_deletion_is_read_by_everybody",
        "tests/findings/test_object_metas.py::test_headers_of_nats_py_are_read",
        "tests/findings/test_object_metas.py::test_unreadable_object_is_told_and_hides_no_other",
        "tests/interop/test_objects.py::test_name_that_nats_py_has_lost_is_given_back",
        "tests/interop/test_objects.py::test_description_and_headers_are_shown_by_every_client",
        "tests/interop/test_object_stores.py::test_deletion_is_stored_in_the_form_of_the_conventions",
    ),
    14: (
        "tests/findings/test_object_metas.py::test_object_is_renamed_and_refuses_a_name_that_is_taken",
        "tests/interop/test_objects.py::test_renamed_object_is_found_under_its_new_name_alone",
    ),
    15: (
        "tests/findings/test_kv_entries.py::test_expired_key_has_no_value_and_is_created_again_at_once",
        "tests/interop/test_kv_markers.py::test_expired_key_is_gone_for_every_client_and_can_be_created_at_once",
    ),
    16: (
        "tests/findings/test_kv_buckets.py::test_stream_of_a_bucket_is_that_of_the_conventions",
        "tests/findings/test_kv_buckets.py::test_bucket_of_nats_py_is_used_and_left_as_it_is",
        "tests/findings/test_kv_buckets.py::test_placement_of_a_bucket_is_kept",
        "tests/interop/test_kv_buckets.py::test_creating_again_with_the_other_client_changes_nothing",
        "tests/interop/test_kv_buckets.py::test_stream_of_a_bucket_has_what_nats_js_gives_it",
        "tests/interop/test_kv_buckets.py::test_ensure_over_a_bucket_of_another_client_changes_nothing",
    ),
    17: ("tests/findings/test_kv_entries.py::test_entry_says_all_that_is_stored",),
    18: (
        "tests/findings/test_kv_entries.py::test_every_conflict_has_one_type",
        "tests/findings/test_kv_entries.py::test_every_conflict_has_one_type_on_a_cluster",
    ),
    19: (
        "tests/findings/test_kv_keys.py::test_filters_of_keys_are_those_of_the_server",
        "tests/findings/test_kv_keys.py::test_empty_bucket_has_no_keys",
    ),
    20: (
        "tests/findings/test_kv_watches.py::test_watch_follows_many_filters",
        "tests/findings/test_kv_watches.py::test_watch_of_updates_begins_with_the_next_one",
        "tests/findings/test_kv_watches.py::test_watch_goes_on_after_a_revision",
        "tests/findings/test_kv_watches.py::test_watch_of_metadata_gets_no_values",
        "tests/findings/test_kv_watches.py::test_watch_replays_nothing_when_its_consumer_is_deleted",
    ),
    21: (
        "tests/findings/test_kv_watches.py::test_forty_calls_on_a_bucket_leave_nothing",
        "tests/findings/test_nothing_left.py::test_forty_readers_leave_no_consumer",
        "tests/integration/read/test_ordered_leaks.py::test_forty_tails_leave_nothing",
    ),
    22: (
        "tests/findings/test_prefix.py::test_every_request_goes_under_the_prefix",
        "tests/integration/connect/test_domain.py::test_everything_is_published_and_read_through_a_domain",
        "tests/integration/connect/test_domain.py::test_everything_works_over_an_imported_api",
        "tests/findings/test_kv_buckets.py::test_mirror_is_read_here_and_written_at_its_origin",
        "tests/interop/test_view_places.py::test_bucket_of_another_domain_is_everybodys",
        "tests/interop/test_view_places.py::test_bucket_of_another_account_is_everybodys",
        "tests/interop/test_view_places.py::test_mirror_of_a_bucket_in_another_domain_is_written_at_its_origin",
    ),
    23: (
        "tests/findings/test_header_values.py::test_headers_arrive_whole_by_every_way",
        "tests/findings/test_header_values.py::test_headers_of_the_caller_are_only_read",
        "tests/findings/test_header_values.py::test_values_of_one_name_survive_a_request_and_its_answer",
        "tests/integration/read/test_read.py::test_header_values_come_back_in_order",
    ),
    24: (
        "tests/findings/test_error_types.py::test_deleted_stream_has_one_error_for_every_call",
        "tests/findings/test_error_types.py::test_message_is_got_without_direct_access",
        "tests/findings/test_error_types.py::test_stranger_on_the_api_is_a_protocol_error",
        "tests/integration/publish/test_publish_one.py::test_answer_that_is_no_ack_is_a_protocol_error",
        "tests/integration/read/test_ordered_faults.py::test_consumer_that_is_deleted_while_the_reader_is_away_is_made_again",
    ),
    25: (
        "tests/findings/test_consumers.py::test_info_has_what_the_server_says",
        "tests/integration/streams/consumers/test_manager.py::test_all_are_listed_beyond_a_page",
        "tests/integration/streams/consumers/test_control.py::test_info_counts_what_is_out_and_what_is_to_come",
    ),
    26: (
        "tests/findings/test_tasks.py::test_reading_makes_no_task_for_a_message",
        "tests/integration/wire/test_core.py::test_iteration_ends_when_the_subscription_is_closed",
        "tests/integration/read/test_ordered_leaks.py::test_closing_ends_a_loop_that_waits",
    ),
    27: (
        "tests/findings/test_nothing_left.py::test_closed_connection_leaves_nothing_of_what_was_open",
        "tests/integration/wire/test_silent_peer.py::test_closing_leaves_no_task_and_no_connection",
        "tests/integration/wire/test_core.py::test_drain_of_the_connection_keeps_what_is_under_way_and_waits_for_no_reader",
    ),
    28: (
        "tests/findings/test_next_major.py::test_server_of_the_next_major_version_has_every_feature",
        "tests/unit/api/test_features.py::test_versions_compare_as_numbers",
    ),
    29: (
        "tests/findings/test_cancelled_read.py::test_cancelled_reads_leave_no_request_behind",
        "tests/findings/test_cancelled_read.py::test_cancelled_range_leaves_the_messages_to_the_next",
        "tests/integration/read/test_ordered_faults.py::test_missed_heartbeats_make_another_consumer",
        "tests/integration/read/test_ordered_faults.py::test_consumer_that_is_deleted_is_made_again_at_once",
    ),
    30: (
        "tests/findings/test_leaders.py::test_leader_changes_under_load_fail_no_message",
        "tests/findings/test_leaders.py::test_message_waits_for_the_next_leader",
        "tests/integration/publish/test_publisher_retry.py::test_leader_changes_under_load_lose_and_double_nothing",
    ),
    31: (
        "tests/integration/publish/test_publish_one.py::test_expected_sequence_of_another_subject_is_checked_there",
        "tests/integration/publish/test_publish_one.py::test_ttl_stands_in_the_message_as_it_was_asked",
        "tests/integration/publish/test_publish.py::test_other_expectations_are_refused_by_type",
        "tests/integration/publish/test_expectations.py::test_sequences_are_compared",
    ),
    32: (
        "tests/integration/streams/consumers/test_control.py::test_unpin_takes_the_pin",
        "tests/integration/streams/consumers/test_manager.py::test_all_are_listed_beyond_a_page",
        "tests/integration/api/test_leaders.py::test_step_down_returns_the_next_leader",
        "tests/integration/consume/pull/test_settling.py::test_terminated_message_does_not_come_again_and_its_reason_is_told",
    ),
    33: (
        "tests/findings/test_object_chunks.py::test_get_costs_what_the_size_says",
        "tests/findings/test_object_chunks.py::test_put_does_not_wait_for_each_chunk",
    ),
    34: (
        "tests/findings/test_recreating.py::test_deleted_consumer_is_replaced_before_a_heartbeat_is_due",
        "tests/integration/read/test_ordered_faults.py::test_consumer_that_is_deleted_is_made_again_at_once",
    ),
}
