"""The limits that writers enforce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.conat.configuration import Configuration
from natsstream.conat.limits import refusal, surplus


@dataclass
class Held:
    """A stream with messages of these sizes, the newest `fresh` of them in the last second."""

    all: Sequence[int] = ()
    fresh: int = 0

    @property
    def size(self) -> int:
        return sum(self.all)

    def recent(self) -> tuple[int, int]:
        return self.fresh, sum(self.all[len(self.all) - self.fresh :])


def _refusal(config: Configuration, size: int, held: Held) -> str | None:
    error = refusal(config, size, held)
    return None if error is None else error.message


def test_nothing_is_limited_by_default() -> None:
    held = Held([10**9] * 100, fresh=100)

    assert refusal(Configuration(), 10**9, held) is None
    assert _surplus(Configuration(), held.all) == 0


@pytest.mark.parametrize(
    ("limit", "size", "is_refused"), [(5, 5, False), (5, 6, True), (0, 1, True)]
)
def test_max_msg_size_refuses_larger_messages(limit: int, size: int, is_refused: bool) -> None:  # noqa: FBT001 - A parameter of a test.
    refused = _refusal(Configuration(max_msg_size=limit), size, Held())

    assert (refused == f"max_msg_size of {limit} bytes exceeded") == is_refused
    assert (refused is None) != is_refused


def test_one_message_more_than_max_msgs_per_second_passes() -> None:
    config = Configuration(max_msgs_per_second=2)

    assert _refusal(config, 1, Held([1] * 9, fresh=2)) is None
    assert _refusal(config, 1, Held([1] * 9, fresh=3)) == "max_msgs_per_second exceeded"


def test_max_bytes_per_second_counts_stored_messages_alone() -> None:
    config = Configuration(max_bytes_per_second=10)

    assert _refusal(config, 100, Held([50, 10], fresh=1)) is None
    assert _refusal(config, 0, Held([50, 11], fresh=1)) == "max_bytes_per_second exceeded"


def test_a_refusal_by_a_rate_is_worth_a_retry_and_others_are_not() -> None:
    rate = refusal(Configuration(max_msgs_per_second=1), 1, Held([1, 1], fresh=2))
    size = refusal(Configuration(max_msg_size=1), 2, Held())

    assert rate is not None
    assert (rate.limit, rate.retryable) == ("max_msgs_per_second", True)
    assert size is not None
    assert (size.limit, size.retryable) == ("max_msg_size", False)


def test_refusals_come_in_order() -> None:
    fields = {
        "max_msg_size": 1, "max_msgs_per_second": 1, "max_bytes_per_second": 1, "max_bytes": 1,
    }  # fmt: skip
    order: list[str] = []
    while fields:
        config = Configuration(discard_policy="new").merged(fields)
        error = refusal(config, 2, Held([2, 2], fresh=2))
        assert error is not None
        order.append(error.limit)
        del fields[error.limit]

    assert order == ["max_msg_size", "max_msgs_per_second", "max_bytes_per_second", "max_bytes"]


def test_only_the_size_is_refused_if_nobody_knows_the_content() -> None:
    fields = {"max_msgs_per_second": 1, "max_bytes_per_second": 1, "max_bytes": 1}
    config = Configuration(discard_policy="new").merged(fields)

    assert refusal(config, 2, None) is None
    assert refusal(config.merged({"max_msg_size": 1}), 2, None) is not None


def test_discard_new_refuses_what_discard_old_makes_room_for() -> None:
    held = Held([10, 10])
    old = Configuration(max_bytes=25)
    new = old.merged({"discard_policy": "new"})

    assert refusal(old, 10, held) is None
    assert _surplus(old, [10, 10, 10]) == 1
    assert refusal(new, 10, held) is not None
    assert _surplus(new, [10, 10, 10]) == 0


def test_the_server_counts_max_msgs() -> None:
    config = Configuration(max_msgs=1, discard_policy="new")

    assert refusal(config, 1, Held([1, 1])) is None
    assert _surplus(config.merged({"discard_policy": "old"}), [1, 1]) == 0


def test_a_message_larger_than_max_bytes_removes_all_others_and_itself() -> None:
    assert _surplus(Configuration(max_bytes=100), [1, 2, 3, 1_000]) == 4


def test_a_lower_limit_removes_the_oldest() -> None:
    assert _surplus(Configuration(max_bytes=60), [40, 45, 1]) == 1


@given(st.lists(st.integers(0, 9), max_size=9), st.integers(-1, 30))
def test_as_few_of_the_oldest_go_as_the_limit_needs(sizes: list[int], max_bytes: int) -> None:
    few = (
        gone for gone in range(len(sizes) + 1) if max_bytes < 0 or sum(sizes[gone:]) <= max_bytes
    )

    assert _surplus(Configuration(max_bytes=max_bytes), sizes) == next(few)


def _surplus(config: Configuration, sizes: Sequence[int]) -> int:
    return surplus(config, sum(sizes), sizes)
