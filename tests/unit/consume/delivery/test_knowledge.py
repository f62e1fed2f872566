"""Deliveries that a server knows of, against models of one that forgets and of a slow group."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.consume.delivery.knowledge import (
    SURE_AFTER_S,
    Knowledge,
    is_forgotten,
    read_knowledge,
)
from natsstream.errors import ProtocolError

ONE = Knowledge(last_seq=5, leader="a", is_replicated=False, at_s=1.0)
GROUP = replace(ONE, is_replicated=True)


@given(sequence=st.integers(1, 100), told=st.integers(0, 100))
def test_one_server_has_forgotten_what_is_above_its_last_delivery(sequence: int, told: int) -> None:
    assert is_forgotten(sequence, None, replace(ONE, last_seq=told)) is (sequence > told)


@given(
    # When the group agreed on the delivery, counted from the first look.
    agreed_s=st.floats(0, SURE_AFTER_S, exclude_max=True),
    looks_s=st.lists(st.floats(0, 10), min_size=1, max_size=5).map(sorted),
)
def test_group_that_is_late_to_tell_has_forgotten_nothing(
    agreed_s: float, looks_s: list[float]
) -> None:
    before: Knowledge | None = None
    for at_s in [0.0, *looks_s]:
        now = replace(GROUP, last_seq=6 if at_s >= agreed_s else 5, at_s=at_s)
        assert not is_forgotten(6, before, now)
        before = before or now


@pytest.mark.parametrize(
    ("before", "is_told"),
    [
        (None, False),
        (replace(GROUP, at_s=1.0 - SURE_AFTER_S), True),
        (replace(GROUP, at_s=1.0 - SURE_AFTER_S / 2), False),
        (replace(GROUP, at_s=0.0, leader="b"), False),
        (replace(GROUP, at_s=0.0, last_seq=6), False),
    ],
)
def test_group_has_forgotten_what_one_leader_does_not_know_for_long(
    before: Knowledge | None, *, is_told: bool
) -> None:
    assert is_forgotten(6, before, GROUP) is is_told


def info_with(fields: dict[str, object]) -> ConsumerInfo:
    """Return the info of a consumer in a server's answer."""
    usual: dict[str, object] = {
        "stream_name": "S",
        "name": "c",
        "config": {},
        "created": "2026-11-21T05:00:00Z",
        "delivered": {"stream_seq": 0},
        "ack_floor": {"stream_seq": 0},
    }
    return ConsumerInfo.from_json({**usual, **fields})


def test_info_of_a_consumer_tells_what_it_has_delivered() -> None:
    group = {"leader": "n1", "replicas": [{"name": "n2"}]}
    info: dict[str, object] = {"delivered": {"stream_seq": 7}, "cluster": group}
    assert read_knowledge(info_with(info), 2.0) == Knowledge(
        last_seq=7, leader="n1", is_replicated=True, at_s=2.0
    )
    alone = read_knowledge(info_with({}), 2.0)
    assert (alone.last_seq, alone.leader, alone.is_replicated) == (0, "", False)


@pytest.mark.parametrize(
    "delivered",
    [None, 3, {}, {"stream_seq": "7"}],
)
def test_info_without_deliveries_is_no_consumer_s(delivered: object) -> None:
    with pytest.raises(ProtocolError):
        info_with({"delivered": delivered})
