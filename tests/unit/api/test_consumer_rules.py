"""Which fields of a consumer go together."""

from __future__ import annotations

from typing import Any

import pytest

from natsstream.api import consumer_rules as rules
from natsstream.errors import ConfigError, SubjectError

PUSH: dict[str, Any] = {"deliver_subject": "d.x"}
FLOW: dict[str, Any] = {**PUSH, "flow_control": True, "idle_heartbeat": 1, "max_ack_pending": 5}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"deliver_group": "g"}, "deliver_group is for push consumers"),
        ({"flow_control": True}, "flow_control is for push"),
        ({"idle_heartbeat": 5}, "idle_heartbeat is for push"),
        ({"rate_limit": 5}, "rate_limit is for push"),
        ({**PUSH, "max_batch": 5}, "max_batch is for pull"),
        ({**PUSH, "max_waiting": 5}, "max_waiting is for pull"),
        ({**PUSH, "max_expires": 5}, "max_expires is for pull"),
        ({**PUSH, "max_bytes": 5}, "max_bytes is for pull"),
        ({**PUSH, "priority_groups": ["g"]}, "priority_groups is for pull"),
        ({"deliver_subject": "d.*"}, "wildcard"),
        ({"deliver_subject": "d.>"}, "wildcard"),
        ({**PUSH, "idle_heartbeat": 0.05}, "idle_heartbeat"),
        ({**PUSH, "flow_control": True}, "needs idle_heartbeat"),
        ({"backoff": [1, 2, 3], "max_deliver": 2}, "backoff has 3 waits"),
        ({"priority_groups": ["g"]}, "needs priority_policy"),
        ({"priority_policy": "overflow"}, "needs priority_groups"),
        (
            {"priority_groups": ["g"], "priority_policy": "overflow", "priority_timeout": 5},
            "priority_timeout",
        ),
        ({"inactive_threshold": 0, "durable": False}, "5 seconds"),
        ({"deliver_policy": "last_per_subject"}, "needs filters"),
        ({"ack_policy": "flow_control"}, "needs deliver_subject"),
        ({**FLOW, "ack_policy": "flow_control", "ack_wait": 5}, "ack_wait"),
        ({**FLOW, "ack_policy": "flow_control", "max_ack_pending": None}, "max_ack_pending"),
    ],
)
def test_fields_that_do_not_go_together_are_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        rules.check_whole(values)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"backoff": [1, 2], "max_deliver": 2},
        {"backoff": [1, 2]},
        {"backoff": [1, 2], "max_deliver": -1},
        {"ack_policy": "none", "max_deliver": 1},
        {"inactive_threshold": 0, "durable": True},
        {"inactive_threshold": 1, "durable": False},
        {"priority_groups": ["g"], "priority_policy": "pinned_client", "priority_timeout": 5},
        {"priority_policy": "none"},
        {**FLOW, "deliver_group": "g", "rate_limit": 8},
        {**FLOW, "ack_policy": "flow_control"},
        {**PUSH, "priority_policy": "none", "max_batch": 0},
        {"deliver_policy": "last_per_subject", "filters": (">",)},
    ],
)
def test_fields_that_go_together_are_taken(values: dict[str, Any]) -> None:
    rules.check_whole(values)


def test_group_that_would_break_the_readers_line_is_refused() -> None:
    with pytest.raises(SubjectError):
        rules.check_whole({**PUSH, "deliver_group": "a b"})
