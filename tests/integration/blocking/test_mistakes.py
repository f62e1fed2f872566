"""What a new user does wrong at the blocking door is told with the way to do it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import blocking
from natsstream.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable

ADDRESS = "nats://127.0.0.1:4222"


def unopened() -> Any:
    """Return a connection that was not opened; its class tells type checkers of these mistakes."""
    return cast("Any", blocking.connect(ADDRESS))


async def wait_for(what: Awaitable[object]) -> None:
    await what


async def enter(what: Any) -> None:
    async with what:
        pass


def test_async_with_is_told_of_plain_with() -> None:
    with pytest.raises(UsageError, match="plain `with`") as told:
        asyncio.run(enter(unopened()))

    assert "with connect(...) as js:" in told.value.hint


def test_await_is_told_of_plain_with() -> None:
    with pytest.raises(UsageError) as told:
        asyncio.run(wait_for(unopened()))

    assert "with connect(...) as js:" in told.value.hint


def test_name_of_the_context_is_told_to_be_behind_with() -> None:
    with pytest.raises(AttributeError, match=r"not open yet: `with .*js\.publish"):
        _ = unopened().publish

    assert not hasattr(unopened(), "_repr_html_")


def test_name_of_another_client_on_a_watch_is_answered_without_async(
    js: blocking.JetStream, stream_name: str
) -> None:
    bucket, store = js.kv.create(stream_name), js.objects.create(stream_name)
    with bucket.watch() as keys, store.watch() as infos, bucket.stream.ordered() as reader:
        for each, name in ((keys, "updates"), (infos, "updates"), (reader, "next_msg")):
            with pytest.raises(AttributeError, match=r"in natsstream: next\(\w+\), or `for "):
                getattr(each, name)
