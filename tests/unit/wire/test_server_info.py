"""What a server says of itself, before anyone acts on it."""

from __future__ import annotations

import json
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from natsstream._wire.server_info import NO_LIMIT_BYTES, URLS_MAX, read_info, settle_info
from natsstream.errors import ProtocolError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)
names = st.sampled_from(["max_payload", "connect_urls", "version", "nonce", "server_id", "x"])


@given(st.dictionaries(names, values) | values)
def test_info_of_any_json_has_the_types_of_nats_or_is_refused(said: object) -> None:
    try:
        info = read_info(json.dumps(said).encode())
    except ProtocolError:
        return
    assert 0 < info.get("max_payload", 1) < 1 << 31  # pyright: ignore[reportOperatorIssue]
    assert isinstance(info.get("version", ""), str)
    assert isinstance(info.get("nonce", ""), str)
    urls = info.get("connect_urls")
    told = cast("list[object]", urls or [])
    assert all(isinstance(each, str) for each in told)


@given(st.binary(max_size=30))
def test_info_of_any_bytes_is_read_or_refused(text: bytes) -> None:
    try:
        read_info(text)
    except ProtocolError:
        return


def test_info_is_changed_in_place() -> None:
    """nats-py keeps the object that it has read."""
    info = {"max_payload": -1, "x": 1}

    assert settle_info(info) is info
    assert info == {"max_payload": NO_LIMIT_BYTES, "x": 1}


def test_addresses_are_taken_once_each_and_up_to_a_limit() -> None:
    told = [5, "a:1", "a:1", None, *(f"n{number}:4222" for number in range(20_000))]

    urls = settle_info({"connect_urls": told})["connect_urls"]

    assert urls == ["a:1", *(f"n{number}:4222" for number in range(URLS_MAX - 1))]
