"""The name that a request for one message has in errors."""

from __future__ import annotations

from typing import Any

import pytest

from natsstream.api.message_query import described_query, message_query
from natsstream.errors import ConfigError

NAMES: dict[str, dict[str, Any]] = {
    "message 41 of stream ORDERS": {"sequence": 41},
    "last message of orders.> in stream ORDERS": {"last_by_subject": "orders.>"},
    "first message of orders.a from sequence 7 on in stream ORDERS": {
        "sequence": 7,
        "next_by_subject": "orders.a",
    },
    "first message from 1970-01-01T00:00:01.000000000Z on in stream ORDERS": {"start_time": 10**9},
    "first message of a from 1970-01-01T00:00:01.000000000Z on in stream ORDERS": {
        "start_time": 10**9,
        "next_by_subject": "a",
    },
}


def test_subject_in_the_place_of_a_sequence_is_told_where_it_goes() -> None:
    given: Any = "orders.new"
    with pytest.raises(ConfigError) as raised:
        message_query(given)
    assert "last_by_subject='orders.new'" in raised.value.hint


@pytest.mark.parametrize("name", NAMES)
def test_error_names_the_message_that_was_asked_for(name: str) -> None:
    assert described_query(message_query(**NAMES[name]), "ORDERS") == name
