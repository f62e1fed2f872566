"""Findings 2 and 19: keys that are patterns, and patterns of keys.

2: `purge` of nats-py 2.16 does not look at its key: `purge(">")` destroys the whole bucket. 19:
`keys(filters=["user"])` finds `superuser.1`, `["user.*"]` nothing, and an empty bucket raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import KeyNameError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream, KeyValue

pytestmark = pytest.mark.asyncio

CALLS: dict[str, Callable[[KeyValue, str], Awaitable[object]]] = {
    "get": lambda kv, key: kv.get(key),
    "put": lambda kv, key: kv.put(key, b"x"),
    "create": lambda kv, key: kv.create(key, b"x"),
    "update": lambda kv, key: kv.update(key, b"x", revision=1),
    "delete": lambda kv, key: kv.delete(key),
    "purge": lambda kv, key: kv.purge(key),
    "revert": lambda kv, key: kv.revert(key, 1),
}
PATTERNS = ("*", ">", "a.*", "a.>", "", ".", "a.", ".a", "a..b", "a b", "é", "a\r\nb")


async def filled(js: JetStream, name: str) -> KeyValue:
    """Return a bucket with some keys."""
    bucket = await js.kv.create(name)
    for key in ("a", "b", "a.b", "user.1", "user.2", "superuser.1"):
        await bucket.put(key, b"v")
    return bucket


@pytest.mark.proves("1d", "key validation on every op")
@pytest.mark.finding(2)
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
async def test_call_with_a_pattern_for_a_key_is_refused_and_nothing_is_lost(
    js: JetStream, stream_name: str, call: Callable[[KeyValue, str], Awaitable[object]]
) -> None:
    bucket = await filled(js, stream_name)

    for key in PATTERNS:
        with pytest.raises(KeyNameError):
            await call(bucket, key)

    state = (await bucket.stream.info()).state
    assert (state.messages, state.last_seq) == (6, 6)


@pytest.mark.finding(2)
async def test_many_keys_are_purged_by_a_call_of_its_own(js: JetStream, stream_name: str) -> None:
    bucket = await filled(js, stream_name)

    assert await bucket.purge_matching("user.*") == 2

    assert sorted([key async for key in bucket.keys()]) == ["a", "a.b", "b", "superuser.1"]


@pytest.mark.finding(19)
async def test_filters_of_keys_are_those_of_the_server(js: JetStream, stream_name: str) -> None:
    bucket = await filled(js, stream_name)

    found = {
        filters: sorted([key async for key in bucket.keys(*filters)])
        for filters in [("user",), ("user.*",), ("a", "a.>"), ("none",), ()]
    }

    assert found == {
        ("user",): [],
        ("user.*",): ["user.1", "user.2"],
        ("a", "a.>"): ["a", "a.b"],
        ("none",): [],
        (): ["a", "a.b", "b", "superuser.1", "user.1", "user.2"],
    }


@pytest.mark.finding(19)
async def test_empty_bucket_has_no_keys(js: JetStream, stream_name: str) -> None:
    bucket = await js.kv.create(stream_name)

    assert [key async for key in bucket.keys()] == []
