"""Which tests prove which rows of the tables of what a client does with buckets and objects.

What lives here: tables 1d (buckets of keys) and 1e (object stores) of the project's comparison of
clients. What must not: the tables of streams, publishing and consumers (`proof.py`, which holds
all tables together).
"""

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

_KV: Final = "tests/integration/kv"
_UNIT_KV: Final = "tests/unit/kv"
_BUCKETS: Final = f"{_KV}/test_buckets.py"
_OPERATIONS: Final = f"{_KV}/test_operations.py"
_REFUSALS: Final = f"{_KV}/test_refusals.py"
_REMOVALS: Final = f"{_KV}/test_removals.py"
_PLACES: Final = f"{_KV}/test_places.py"
_LISTING: Final = f"{_KV}/test_listing.py"
_WATCH: Final = f"{_KV}/test_watch.py"
_CODECS: Final = f"{_KV}/test_codec_buckets.py"
_FINDINGS: Final = "tests/findings"
_INTEROP: Final = "tests/interop"
_THEIR_BUCKETS: Final = f"{_INTEROP}/test_kv_buckets.py"
_THEIR_KEYS: Final = f"{_INTEROP}/test_kv.py"

PROOF_1D: Final[dict[str, tuple[str, ...]]] = {
    "create/get/list/delete bucket": (
        f"{_BUCKETS}::test_bucket_is_made_once_and_opened_by_its_name",
        f"{_BUCKETS}::test_buckets_are_listed_whole_and_streams_are_not_among_them",
        f"{_BUCKETS}::test_bucket_that_is_not_there_is_not_found",
        "tests/compat/test_buckets.py::test_bucket_is_made_changed_used_and_listed",
    ),
    "update / create-or-update bucket": (
        f"{_BUCKETS}::test_bucket_is_ensured_changed_and_left_alone",
        f"{_BUCKETS}::test_diff_tells_what_ensure_would_do_and_does_nothing",
        f"{_BUCKETS}::test_nothing_of_a_bucket_is_lost_by_ensure_and_update",
    ),
    "config equal to Go's (CreateKeyValue idempotent)": (
        f"{_THEIR_BUCKETS}::test_creating_again_with_the_other_client_changes_nothing",
        f"{_THEIR_BUCKETS}::test_stream_of_a_bucket_has_what_nats_js_gives_it",
        f"{_UNIT_KV}/test_bucket_config.py::test_stream_of_a_bucket_is_the_one_of_nats_go",
    ),
    "allow_direct on by default (ADR-8)": (
        f"{_FINDINGS}/test_kv_buckets.py::test_stream_of_a_bucket_is_that_of_the_conventions",
        f"{_OPERATIONS}::test_bucket_without_direct_reads_is_read_through_its_leader",
    ),
    "put / get / update(rev)": (
        f"{_OPERATIONS}::test_value_comes_back_with_its_revision_time_and_operation",
        f"{_OPERATIONS}::test_update_with_the_newest_revision_succeeds",
        f"{_OPERATIONS}::test_update_fails_when_the_revision_is_stale",
        f"{_FINDINGS}/test_kv_entries.py::test_entry_says_all_that_is_stored",
        f"{_THEIR_KEYS}::test_every_operation_is_seen_by_every_client",
    ),
    "create (recreate after delete)": (
        f"{_OPERATIONS}::test_key_is_created_again_behind_a_marker",
        f"{_OPERATIONS}::test_key_is_created_again_right_after_it_expired",
        f"{_OPERATIONS}::test_one_of_many_who_create_a_key_at_once_succeeds",
        f"{_THEIR_KEYS}::test_deleted_and_purged_key_is_created_again_by_every_client",
    ),
    "get revision": (
        f"{_OPERATIONS}::test_an_older_revision_is_read_while_the_history_has_it",
        f"{_OPERATIONS}::test_a_revision_of_another_key_or_of_a_marker_is_none",
    ),
    "delete(last rev) / purge(last rev)": (
        f"{_OPERATIONS}::test_removal_with_a_stale_revision_changes_nothing",
        f"{_OPERATIONS}::test_delete_keeps_the_history_and_purge_removes_it",
    ),
    "per-key TTL create / purge TTL": (
        f"{_OPERATIONS}::test_purge_marker_with_a_life_time_goes_by_itself",
        f"{_OPERATIONS}::test_key_is_created_again_right_after_it_expired",
        f"{_REFUSALS}::test_life_time_that_the_server_would_raise_is_refused",
        f"{_INTEROP}/test_kv_stored.py::test_life_of_a_key_is_stored_with_it",
    ),
    "key validation on every op": (
        f"{_REFUSALS}::test_every_call_for_one_key_refuses_what_is_no_key",
        f"{_UNIT_KV}/test_keys.py::test_a_key_is_taken_exactly_when_go_takes_it",
        f"{_FINDINGS}/test_kv_keys.py::test_call_with_a_pattern_for_a_key_is_refused_and_nothing_is_lost",
    ),
    "watch: key/wildcard": (
        f"{_WATCH}::test_watch_begins_with_the_newest_of_each_key_and_goes_on",
        f"{_WATCH}::test_filters_choose_and_may_overlap",
        f"{_KV}/test_watch_cluster.py::test_watch_goes_on_when_the_leader_changes",
    ),
    "watch many filters": (
        f"{_WATCH}::test_filters_choose_and_may_overlap",
        f"{_WATCH}::test_as_many_filters_as_are_allowed_work",
        f"{_FINDINGS}/test_kv_watches.py::test_watch_follows_many_filters",
    ),
    "include_history / ignore_deletes / meta_only / updates_only": (
        f"{_WATCH}::test_history_comes_in_the_order_of_the_revisions",
        f"{_WATCH}::test_deletes_are_left_out_on_request",
        f"{_WATCH}::test_meta_only_leaves_out_the_values",
        f"{_FINDINGS}/test_kv_watches.py::test_watch_of_updates_begins_with_the_next_one",
    ),
    "resume from revision": (
        f"{_WATCH}::test_watch_goes_on_after_a_revision",
        f"{_KV}/test_watch_faults.py::test_resumed_watch_misses_and_repeats_nothing_across_a_restart",
    ),
    "end-of-initial-data signal": (
        f"{_WATCH}::test_initial_ends_when_there_is_nothing",
        f"{_WATCH}::test_key_that_is_replaced_during_the_beginning_is_part_of_it",
    ),
    "keys / list keys streaming / filtered": (
        f"{_LISTING}::test_keys_are_those_with_a_value",
        f"{_LISTING}::test_filters_are_the_servers",
        f"{_LISTING}::test_each_key_comes_once_while_others_write",
        f"{_LISTING}::test_many_keys_are_all_listed",
    ),
    "history": (
        f"{_LISTING}::test_history_has_the_markers",
        f"{_THEIR_KEYS}::test_every_operation_is_seen_by_every_client",
    ),
    "purge deletes": (
        f"{_REMOVALS}::test_old_markers_go_and_values_stay",
        f"{_REMOVALS}::test_key_that_is_written_again_meanwhile_keeps_its_value",
        f"{_REMOVALS}::test_removals_leave_no_consumer",
        f"{_INTEROP}/test_kv_compacting.py::test_young_markers_stay_and_their_history_goes_as_with_the_cli",
        f"{_INTEROP}/test_kv_compacting.py::test_all_markers_go_as_with_nats_js",
    ),
    "status": (f"{_BUCKETS}::test_status_tells_what_the_bucket_holds",),
    "mirror / sources / republish": (
        f"{_PLACES}::test_mirror_is_read_here_and_written_at_its_origin",
        f"{_PLACES}::test_sources_bring_their_keys_and_the_bucket_has_its_own",
        f"{_THEIR_BUCKETS}::test_creating_again_with_the_other_client_changes_nothing",
    ),
    "mirror & API-prefix aware reads/writes (ADR-19)": (
        f"{_PLACES}::test_bucket_of_another_domain_is_used_like_one_s_own",
        f"{_PLACES}::test_bucket_of_another_account_is_used_through_an_import",
        f"{_PLACES}::test_mirror_in_another_domain_writes_to_the_hub",
        f"{_INTEROP}/test_view_places.py::test_bucket_of_another_domain_is_everybodys",
    ),
    "limit marker TTL": (
        f"{_OPERATIONS}::test_the_servers_own_marker_is_no_value_and_no_obstacle",
        f"{_WATCH}::test_expired_keys_are_told_as_purged",
        f"{_INTEROP}/test_kv_markers.py::test_expired_key_is_gone_for_every_client_and_can_be_created_at_once",
    ),
    "compression / metadata / placement": (
        f"{_UNIT_KV}/test_bucket_config.py::test_stream_of_a_bucket_that_a_server_has_is_made_again_as_it_was",
        f"{_BUCKETS}::test_status_tells_what_the_bucket_holds",
        f"{_FINDINGS}/test_kv_buckets.py::test_placement_of_a_bucket_is_kept",
    ),
    "codecs (ADR-54)": (
        f"{_CODECS}::test_every_call_takes_any_text_as_a_key",
        f"{_CODECS}::test_filters_keep_their_wildcards",
        f"{_CODECS}::test_values_go_through_their_codec_and_markers_do_not",
        f"{_INTEROP}/test_kv_codecs.py::test_keys_of_the_base64_codec_are_those_of_nats_js",
        f"{_INTEROP}/test_kv_codecs.py::test_filters_with_the_base64_codec_find_what_those_of_nats_js_find",
    ),
}

_OBJECTS: Final = "tests/integration/objects"
_STORES: Final = f"{_OBJECTS}/test_objects_buckets.py"
_TRANSFERS: Final = f"{_OBJECTS}/test_transfers.py"
_FILES: Final = f"{_OBJECTS}/test_object_files.py"
_INFOS: Final = f"{_OBJECTS}/test_objects_infos.py"
_RENAMING: Final = f"{_OBJECTS}/test_objects_renaming.py"
_LINKS: Final = f"{_OBJECTS}/test_objects_links.py"
_WATCHING: Final = f"{_OBJECTS}/test_objects_watching.py"
_THEIR_STORES: Final = f"{_INTEROP}/test_object_stores.py"
_THEIR_OBJECTS: Final = f"{_INTEROP}/test_objects.py"

PROOF_1E: Final[dict[str, tuple[str, ...]]] = {
    "bucket create/update/delete/list": (
        f"{_STORES}::test_create_is_idempotent_and_opens_what_is_there",
        f"{_STORES}::test_ensure_creates_then_changes_nothing_then_what_is_given",
        f"{_STORES}::test_update_is_strict",
        f"{_STORES}::test_stores_are_deleted_with_what_is_in_them",
        f"{_STORES}::test_listing_finds_every_store_and_nothing_else",
        f"{_THEIR_STORES}::test_creating_again_with_the_other_client_changes_nothing",
    ),
    "put stream / bytes / string / file": (
        f"{_TRANSFERS}::test_an_object_comes_back_with_all_that_was_said_of_it",
        f"{_FILES}::test_a_file_goes_in_and_comes_out",
        "tests/integration/chunks/test_putting.py::test_every_source_gives_the_same_bytes",
        f"{_THEIR_OBJECTS}::test_objects_are_read_and_listed_by_every_client",
    ),
    "get stream / bytes / file": (
        f"{_TRANSFERS}::test_parts_are_read_by_offset_and_length",
        f"{_TRANSFERS}::test_an_empty_object_is_no_absent_one",
        f"{_FILES}::test_a_download_that_broke_goes_on",
        f"{_FINDINGS}/test_object_chunks.py::test_get_costs_what_the_size_says",
    ),
    "info, info incl. deleted": (
        f"{_INFOS}::test_info_tells_what_put_was_given",
        f"{_INFOS}::test_delete_leaves_the_marker_of_nats_go_and_no_chunk",
        f"{_INFOS}::test_an_object_that_never_was_has_no_info",
    ),
    "update meta / rename": (
        f"{_INFOS}::test_update_changes_what_is_given_and_keeps_the_rest",
        f"{_INFOS}::test_concurrent_updates_lose_none",
        f"{_RENAMING}::test_the_object_has_its_new_name_and_not_the_old_one",
        f"{_RENAMING}::test_an_object_that_exists_is_never_overwritten",
        f"{_THEIR_OBJECTS}::test_renamed_object_is_found_under_its_new_name_alone",
    ),
    "delete": (
        f"{_INFOS}::test_delete_leaves_the_marker_of_nats_go_and_no_chunk",
        f"{_THEIR_STORES}::test_deletion_is_stored_in_the_form_of_the_conventions",
    ),
    "add link / bucket link": (
        f"{_LINKS}::test_a_link_reads_what_its_target_holds_at_that_time",
        f"{_LINKS}::test_a_link_leads_to_another_store",
        f"{_LINKS}::test_a_link_to_a_store_has_no_bytes",
        f"{_THEIR_OBJECTS}::test_link_is_followed_by_every_client",
        f"{_THEIR_STORES}::test_link_to_a_store_is_stored_in_the_form_of_the_conventions",
    ),
    "seal": (
        f"{_STORES}::test_a_sealed_store_is_read_and_refuses_every_write",
        f"{_THEIR_OBJECTS}::test_sealed_store_is_read_and_refuses_every_client",
    ),
    "watch options": (
        f"{_WATCHING}::test_a_watch_tells_what_is_there_then_what_comes",
        f"{_WATCHING}::test_deletes_are_left_out_where_wanted",
        f"{_WATCHING}::test_updates_only_leaves_out_what_is_there",
        f"{_WATCHING}::test_history_is_all_that_the_stream_holds",
        f"{_INTEROP}/test_object_watches.py::test_watch_tells_what_another_client_did_and_does",
    ),
    "list (hides deleted by default)": (
        f"{_WATCHING}::test_every_object_is_listed_and_deleted_ones_where_asked_for",
        f"{_WATCHING}::test_an_empty_store_lists_nothing",
    ),
    "status (ttl, sealed, size, meta, compressed)": (
        f"{_STORES}::test_status_tells_what_the_store_is",
    ),
    "digest check": (
        f"{_TRANSFERS}::test_damage_is_told_as_damage",
        "tests/integration/chunks/test_getting.py::test_a_missing_chunk_raises_and_does_not_hang",
        "tests/unit/objects/test_info.py::test_digests_are_written_with_padding_and_read_in_any_base64",
    ),
    "chunk size / headers / metadata / TTL / compression": (
        f"{_TRANSFERS}::test_an_object_comes_back_with_all_that_was_said_of_it",
        "tests/integration/chunks/test_putting.py::test_all_chunks_but_the_last_have_the_same_size",
        f"{_THEIR_STORES}::test_stream_of_a_store_is_the_one_that_nats_js_makes",
        f"{_THEIR_OBJECTS}::test_description_and_headers_are_shown_by_every_client",
        f"{_THEIR_OBJECTS}::test_metadata_is_shown",
    ),
}
