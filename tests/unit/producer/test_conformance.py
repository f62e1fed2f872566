"""Each row of the protocol's conformance tables is a test of that name, and only one."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest

_TESTS = Path(__file__).parents[2]
_FOLDER = _TESTS / "integration" / "producer"

# As the suites of the protocol name them; those of forks and of content types are left out.
ROWS = {
    "test_sequence_validation.py": """
        first_append_accepted sequential_sequences sequence_gap_rejected new_producer_seq_not_zero
        duplicate_returns_204 duplicate_seq_zero_preserves_state duplicate_ignores_different_data
        duplicate_old_sequence ordering_preserved_in_stream""",
    "test_epoch_management.py": """
        epoch_upgrade_accepted sequence_resets_on_epoch_upgrade stale_epoch_rejected
        epoch_rollback_rejected epoch_zero_after_higher_epoch large_epoch_numbers
        split_brain_fencing epoch_increase_requires_seq_zero epoch_gap_allowed
        autoclaim_recovers_from_stale_epoch autoclaim_recovers_from_403
        autoclaim_batch_recovers_from_403""",
    "test_concurrent_requests.py": """
        concurrent_batches_all_delivered concurrent_json_batches_all_delivered
        producer_with_stream_seq duplicate_json_different_payload batch_retry_deduplication
        partial_headers_rejected invalid_integer_formats_rejected empty_producer_id_rejected""",
    "test_multi_producer.py": """
        multiple_producers_independent interleaved_producers_ordering producer_scope_per_stream
        producer_epoch_per_stream producer_id_long producer_id_with_special_chars""",
    "test_json_batching.py": """
        json_batch_single_item json_batch_multiple_items json_batch_nested_arrays
        json_batch_mixed_types bytes_batch_concatenates""",
    "test_error_context.py": """
        sequence_conflict_returns_expected_seq stale_epoch_returns_current_epoch""",
    "test_batching.py": """
        batch_preserves_order batch_partial_failure batch_concurrent_appends
        client_deduplication_works idempotent_producer_detach_does_not_close
        idempotent_producer_close_idempotent append_to_closed_stream_fails
        close_nonexistent_stream delete_closed_stream""",
    "test_operations.py": """
        duplicate_response_should_return_highest_accepted_seq_not_request_seq
        producer_duplicate_should_return_204_even_with_stream_seq_header
        json_duplicate_should_not_corrupt_data should_return_404_for_non_existent_stream
        should_return_400_for_empty_body should_reject_invalid_json_with_producer_headers
        should_reject_empty_json_array_with_producer_headers""",
    "test_closure.py": """
        idempotent_close_with_append idempotent_close_only_with_producer_headers
        idempotent_close_duplicate_returns_204 idempotent_close_different_tuple_returns_409
        idempotent_close_different_seq_returns_409 producer_state_survives_close
        409_includes_stream_offset""",
    "test_offsets.py": """
        tracks_the_last_successful_append_offset
        does_not_clear_the_last_successful_offset_on_duplicate_writes
        does_not_move_the_last_successful_offset_backward_when_writes_complete_out_of_order
        waits_for_the_first_auto_claiming_batch_before_sending_later_batches
        tracks_the_final_close_offset""",
    "test_beyond_the_protocol.py": """
        close_racing_appends_of_another_producer 10164_storm_of_busy_producers batch_limit_10210
        leader_step_down_with_staged_batches max_msgs_evicts_the_state sealed
        checkpoint_atomic_with_data""",
}
_ELSEWHERE = {
    _TESTS / "compat" / "test_producers.py": "old_server_refuses_shared_mode_naming_the_version",
}


def collected(path: Path) -> Counter[str]:
    """Return the tests of a file and how often each is there."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    named = (each.name for each in module.body if isinstance(each, ast.AsyncFunctionDef))
    return Counter(name.removeprefix("test_") for name in named if name.startswith("test_"))


@pytest.mark.parametrize("name", ROWS)
def test_each_row_is_a_test(name: str) -> None:
    found = collected(_FOLDER / name)
    assert {row: found[row] for row in ROWS[name].split()} == dict.fromkeys(ROWS[name].split(), 1)


@pytest.mark.parametrize("path", _ELSEWHERE, ids=lambda path: path.name)
def test_each_row_that_needs_other_servers_is_a_test(path: Path) -> None:
    assert collected(path)[_ELSEWHERE[path]] == 1


def test_no_row_is_tested_twice() -> None:
    rows = " ".join(ROWS.values()).split()
    everywhere = sum((collected(path) for path in _FOLDER.glob("test_*.py")), Counter[str]())
    assert [row for row in rows if everywhere[row] != 1] == []
