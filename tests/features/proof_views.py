"""Which tests prove which rows of the tables of what a client does with buckets and objects."""

from __future__ import annotations

from typing import Final

ROWS_OF_VIEWS: Final[dict[str, tuple[str, ...]]] = {
    "1d": (
        "create/get/list/delete bucket",
        "update / create-or-update bucket",
        "config equal to Go's (CreateKeyValue idempotent)",
        "allow_direct on by default (ADR-8)",
        "put / get / update(rev)",
        "create (recreate after delete)",
        "get revision",
        "delete(last rev) / purge(last rev)",
        "per-key TTL create / purge TTL",
        "key validation on every op",
        "watch: key/wildcard",
        "watch many filters",
        "include_history / ignore_deletes / meta_only / updates_only",
        "resume from revision",
        "end-of-initial-data signal",
        "keys / list keys streaming / filtered",
        "history",
        "purge deletes",
        "status",
        "mirror / sources / republish",
        "mirror & API-prefix aware reads/writes (ADR-19)",
        "limit marker TTL",
        "compression / metadata / placement",
        "codecs (ADR-54)",
    ),
    "1e": (
        "bucket create/update/delete/list",
        "put stream / bytes / string / file",
        "get stream / bytes / file",
        "info, info incl. deleted",
        "update meta / rename",
        "delete",
        "add link / bucket link",
        "seal",
        "watch options",
        "list (hides deleted by default)",
        "status (ttl, sealed, size, meta, compressed)",
        "digest check",
        "chunk size / headers / metadata / TTL / compression",
    ),
}


PROOF_1D: Final[dict[str, tuple[str, ...]]] = {
    "create/get/list/delete bucket": (
        "tests/integration/kv/test_buckets.py::test_bucket_is_made_once_and_opened_by_its_name",
        "tests/integration/kv/test_buckets.py::test_buckets_are_listed_whole_and_streams_are_not_among_them",
        "tests/integration/kv/test_buckets.py::test_bucket_that_is_not_there_is_not_found",
        "tests/compat/test_buckets.py::test_bucket_is_made_changed_used_and_listed",
    ),
    "update / create-or-update bucket": (
        "tests/integration/kv/test_buckets.py::test_bucket_is_ensured_changed_and_left_alone",
        "tests/integration/kv/test_buckets.py::test_diff_tells_what_ensure_would_do_and_does_nothing",
        "tests/integration/kv/test_buckets.py::test_nothing_of_a_bucket_is_lost_by_ensure_and_update",
    ),
    "config equal to Go's (CreateKeyValue idempotent)": (
        "tests/interop/test_kv_buckets.py::test_creating_again_with_the_other_client_changes_nothing",
        "tests/interop/test_kv_buckets.py::test_stream_of_a_bucket_has_what_nats_js_gives_it",
        "tests/unit/kv/test_bucket_config.py::test_stream_of_a_bucket_is_the_one_of_nats_go",
    ),
    "allow_direct on by default (ADR-8)": (
        "tests/findings/test_kv_buckets.py::test_stream_of_a_bucket_is_that_of_the_conventions",
        "tests/integration/kv/test_operations.py::test_bucket_without_direct_reads_is_read_through_its_leader",
    ),
    "put / get / update(rev)": (
        "tests/integration/kv/test_operations.py::test_value_comes_back_with_its_revision_time_and_operation",
        "tests/integration/kv/test_operations.py::test_update_with_the_newest_revision_succeeds",
        "tests/integration/kv/test_operations.py::test_update_fails_when_the_revision_is_stale",
        "tests/findings/test_kv_entries.py::test_entry_says_all_that_is_stored",
        "tests/interop/test_kv.py::test_every_operation_is_seen_by_every_client",
    ),
    "create (recreate after delete)": (
        "tests/integration/kv/test_operations.py::test_key_is_created_again_behind_a_marker",
        "tests/integration/kv/test_operations.py::test_key_is_created_again_right_after_it_expired",
        "tests/integration/kv/test_operations.py::test_one_of_many_who_create_a_key_at_once_succeeds",
        "tests/interop/test_kv.py::test_deleted_and_purged_key_is_created_again_by_every_client",
    ),
    "get revision": (
        "tests/integration/kv/test_operations.py::test_an_older_revision_is_read_while_the_history_has_it",
        "tests/integration/kv/test_operations.py::test_a_revision_of_another_key_or_of_a_marker_is_none",
    ),
    "delete(last rev) / purge(last rev)": (
        "tests/integration/kv/test_operations.py::test_removal_with_a_stale_revision_changes_nothing",
        "tests/integration/kv/test_operations.py::test_delete_keeps_the_history_and_purge_removes_it",
    ),
    "per-key TTL create / purge TTL": (
        "tests/integration/kv/test_operations.py::test_purge_marker_with_a_life_time_goes_by_itself",
        "tests/integration/kv/test_operations.py::test_key_is_created_again_right_after_it_expired",
        "tests/integration/kv/test_refusals.py::test_life_time_that_the_server_would_raise_is_refused",
        "tests/interop/test_kv_stored.py::test_life_of_a_key_is_stored_with_it",
    ),
    "key validation on every op": (
        "tests/integration/kv/test_refusals.py::test_every_call_for_one_key_refuses_what_is_no_key",
        "tests/unit/kv/test_keys.py::test_a_key_is_taken_exactly_when_go_takes_it",
        "tests/findings/test_kv_keys.py::test_call_with_a_pattern_for_a_key_is_refused_and_nothing_is_lost",
    ),
    "watch: key/wildcard": (
        "tests/integration/kv/test_watch.py::test_watch_begins_with_the_newest_of_each_key_and_goes_on",
        "tests/integration/kv/test_watch.py::test_filters_choose_and_may_overlap",
        "tests/integration/kv/test_watch_cluster.py::test_watch_goes_on_when_the_leader_changes",
    ),
    "watch many filters": (
        "tests/integration/kv/test_watch.py::test_filters_choose_and_may_overlap",
        "tests/integration/kv/test_watch.py::test_as_many_filters_as_are_allowed_work",
        "tests/findings/test_kv_watches.py::test_watch_follows_many_filters",
    ),
    "include_history / ignore_deletes / meta_only / updates_only": (
        "tests/integration/kv/test_watch.py::test_history_comes_in_the_order_of_the_revisions",
        "tests/integration/kv/test_watch.py::test_deletes_are_left_out_on_request",
        "tests/integration/kv/test_watch.py::test_meta_only_leaves_out_the_values",
        "tests/findings/test_kv_watches.py::test_watch_of_updates_begins_with_the_next_one",
    ),
    "resume from revision": (
        "tests/integration/kv/test_watch.py::test_watch_goes_on_after_a_revision",
        "tests/integration/kv/test_watch_faults.py::test_resumed_watch_misses_and_repeats_nothing_across_a_restart",
    ),
    "end-of-initial-data signal": (
        "tests/integration/kv/test_watch.py::test_initial_ends_when_there_is_nothing",
        "tests/integration/kv/test_watch.py::test_key_that_is_replaced_during_the_beginning_is_part_of_it",
    ),
    "keys / list keys streaming / filtered": (
        "tests/integration/kv/test_listing.py::test_keys_are_those_with_a_value",
        "tests/integration/kv/test_listing.py::test_filters_are_the_servers",
        "tests/integration/kv/test_listing.py::test_each_key_comes_once_while_others_write",
        "tests/integration/kv/test_listing.py::test_many_keys_are_all_listed",
    ),
    "history": (
        "tests/integration/kv/test_listing.py::test_history_has_the_markers",
        "tests/interop/test_kv.py::test_every_operation_is_seen_by_every_client",
    ),
    "purge deletes": (
        "tests/integration/kv/test_removals.py::test_old_markers_go_and_values_stay",
        "tests/integration/kv/test_removals.py::test_key_that_is_written_again_meanwhile_keeps_its_value",
        "tests/integration/kv/test_removals.py::test_removals_leave_no_consumer",
        "tests/interop/test_kv_compacting.py::test_young_markers_stay_and_their_history_goes_as_with_the_cli",
        "tests/interop/test_kv_compacting.py::test_all_markers_go_as_with_nats_js",
    ),
    "status": ("tests/integration/kv/test_buckets.py::test_status_tells_what_the_bucket_holds",),
    "mirror / sources / republish": (
        "tests/integration/kv/test_places.py::test_mirror_is_read_here_and_written_at_its_origin",
        "tests/integration/kv/test_places.py::test_sources_bring_their_keys_and_the_bucket_has_its_own",
        "tests/interop/test_kv_buckets.py::test_creating_again_with_the_other_client_changes_nothing",
    ),
    "mirror & API-prefix aware reads/writes (ADR-19)": (
        "tests/integration/kv/test_places.py::test_bucket_of_another_domain_is_used_like_one_s_own",
        "tests/integration/kv/test_places.py::test_bucket_of_another_account_is_used_through_an_import",
        "tests/integration/kv/test_places.py::test_mirror_in_another_domain_writes_to_the_hub",
        "tests/interop/test_view_places.py::test_bucket_of_another_domain_is_everybodys",
    ),
    "limit marker TTL": (
        "tests/integration/kv/test_operations.py::test_the_servers_own_marker_is_no_value_and_no_obstacle",
        "tests/integration/kv/test_watch.py::test_expired_keys_are_told_as_purged",
        "tests/interop/test_kv_markers.py::test_expired_key_is_gone_for_every_client_and_can_be_created_at_once",
    ),
    "compression / metadata / placement": (
        "tests/unit/kv/test_bucket_config.py::test_stream_of_a_bucket_that_a_server_has_is_made_again_as_it_was",
        "tests/integration/kv/test_buckets.py::test_status_tells_what_the_bucket_holds",
        "tests/findings/test_kv_buckets.py::test_placement_of_a_bucket_is_kept",
    ),
    "codecs (ADR-54)": (
        "tests/integration/kv/test_codec_buckets.py::test_every_call_takes_any_text_as_a_key",
        "tests/integration/kv/test_codec_buckets.py::test_filters_keep_their_wildcards",
        "tests/integration/kv/test_codec_buckets.py::test_values_go_through_their_codec_and_markers_do_not",
        "tests/interop/test_kv_codecs.py::test_keys_of_the_base64_codec_are_those_of_nats_js",
        "tests/interop/test_kv_codecs.py::test_filters_with_the_base64_codec_find_what_those_of_nats_js_find",
    ),
}


PROOF_1E: Final[dict[str, tuple[str, ...]]] = {
    "bucket create/update/delete/list": (
        "tests/integration/objects/test_objects_buckets.py::test_create_is_idempotent_and_opens_what_is_there",
        "tests/integration/objects/test_objects_buckets.py::test_ensure_creates_then_changes_nothing_then_what_is_given",
        "tests/integration/objects/test_objects_buckets.py::test_update_is_strict",
        "tests/integration/objects/test_objects_buckets.py::test_stores_are_deleted_with_what_is_in_them",
        "tests/integration/objects/test_objects_buckets.py::test_listing_finds_every_store_and_nothing_else",
        "tests/interop/test_object_stores.py::test_creating_again_with_the_other_client_changes_nothing",
    ),
    "put stream / bytes / string / file": (
        "tests/integration/objects/test_transfers.py::test_an_object_comes_back_with_all_that_was_said_of_it",
        "tests/integration/objects/test_object_files.py::test_a_file_goes_in_and_comes_out",
        "tests/integration/streams/chunks/test_putting.py::test_every_source_gives_the_same_bytes",
        "tests/interop/test_objects.py::test_objects_are_read_and_listed_by_every_client",
    ),
    "get stream / bytes / file": (
        "tests/integration/objects/test_transfers.py::test_parts_are_read_by_offset_and_length",
        "tests/integration/objects/test_transfers.py::test_an_empty_object_is_no_absent_one",
        "tests/integration/objects/test_object_files.py::test_a_download_that_broke_goes_on",
        "tests/findings/test_object_chunks.py::test_get_costs_what_the_size_says",
    ),
    "info, info incl. deleted": (
        "tests/integration/objects/test_objects_infos.py::test_info_tells_what_put_was_given",
        "tests/integration/objects/test_objects_infos.py::test_delete_leaves_the_marker_of_nats_go_and_no_chunk",
        "tests/integration/objects/test_objects_infos.py::test_an_object_that_never_was_has_no_info",
    ),
    "update meta / rename": (
        "tests/integration/objects/test_objects_infos.py::test_update_changes_what_is_given_and_keeps_the_rest",
        "tests/integration/objects/test_objects_infos.py::test_concurrent_updates_lose_none",
        "tests/integration/objects/test_objects_renaming.py::test_the_object_has_its_new_name_and_not_the_old_one",
        "tests/integration/objects/test_objects_renaming.py::test_an_object_that_exists_is_never_overwritten",
        "tests/interop/test_objects.py::test_renamed_object_is_found_under_its_new_name_alone",
    ),
    "delete": (
        "tests/integration/objects/test_objects_infos.py::test_delete_leaves_the_marker_of_nats_go_and_no_chunk",
        "tests/interop/test_object_stores.py::test_deletion_is_stored_in_the_form_of_the_conventions",
    ),
    "add link / bucket link": (
        "tests/integration/objects/test_objects_links.py::test_a_link_reads_what_its_target_holds_at_that_time",
        "tests/integration/objects/test_objects_links.py::test_a_link_leads_to_another_store",
        "tests/integration/objects/test_objects_links.py::test_a_link_to_a_store_has_no_bytes",
        "tests/interop/test_objects.py::test_link_is_followed_by_every_client",
        "tests/interop/test_object_stores.py::test_link_to_a_store_is_stored_in_the_form_of_the_conventions",
    ),
    "seal": (
        "tests/integration/objects/test_objects_buckets.py::test_a_sealed_store_is_read_and_refuses_every_write",
        "tests/interop/test_objects.py::test_sealed_store_is_read_and_refuses_every_client",
    ),
    "watch options": (
        "tests/integration/objects/test_objects_watching.py::test_a_watch_tells_what_is_there_then_what_comes",
        "tests/integration/objects/test_objects_watching.py::test_deletes_are_left_out_where_wanted",
        "tests/integration/objects/test_objects_watching.py::test_updates_only_leaves_out_what_is_there",
        "tests/integration/objects/test_objects_watching.py::test_history_is_all_that_the_stream_holds",
        "tests/interop/test_object_watches.py::test_watch_tells_what_another_client_did_and_does",
    ),
    "list (hides deleted by default)": (
        "tests/integration/objects/test_objects_watching.py::test_every_object_is_listed_and_deleted_ones_where_asked_for",
        "tests/integration/objects/test_objects_watching.py::test_an_empty_store_lists_nothing",
    ),
    "status (ttl, sealed, size, meta, compressed)": (
        "tests/integration/objects/test_objects_buckets.py::test_status_tells_what_the_store_is",
    ),
    "digest check": (
        "tests/integration/objects/test_transfers.py::test_damage_is_told_as_damage",
        "tests/integration/streams/chunks/test_getting.py::test_a_missing_chunk_raises_and_does_not_hang",
        "tests/unit/objects/test_info.py::test_digests_are_written_with_padding_and_read_in_any_base64",
    ),
    "chunk size / headers / metadata / TTL / compression": (
        "tests/integration/objects/test_transfers.py::test_an_object_comes_back_with_all_that_was_said_of_it",
        "tests/integration/streams/chunks/test_putting.py::test_all_chunks_but_the_last_have_the_same_size",
        "tests/interop/test_object_stores.py::test_stream_of_a_store_is_the_one_that_nats_js_makes",
        "tests/interop/test_objects.py::test_description_and_headers_are_shown_by_every_client",
        "tests/interop/test_objects.py::test_metadata_is_shown",
    ),
}
