"""`create` over what exists: it is never changed, and a difference is told with its fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream import ObjectBucketConfig
from natsstream.errors import BucketExistsError, ConsumerExistsError, StreamExistsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def a_and_b(js: JetStream, stream_name: str) -> AsyncIterator[Stream]:
    """A stream of the subjects `a.>` and `b`."""
    stream = await js.streams.create(stream_name, subjects=["a.>", "b"])
    yield stream
    await stream.delete()


@pytest.mark.parametrize(
    ("held", "given", "differences"),
    [
        ({}, {"max_msgs": 5}, {"max_msgs": (-1, 5)}),
        ({"max_msgs": 5}, {}, {"max_msgs": (5, None)}),
        ({"max_msgs": 5}, {"max_msgs": 6, "max_age": 60}, {"max_msgs": (5, 6), "max_age": (0, 60)}),
        ({"max_age": 60}, {}, {"max_age": (60.0, None)}),
        ({"duplicate_window": 60}, {}, {"duplicate_window": (60.0, None)}),
        ({"allow_direct": True}, {}, {"allow_direct": (True, None)}),
        ({"metadata": {"a": "b"}}, {}, {"metadata": ({"a": "b"}, None)}),
        ({"retention": "workqueue"}, {}, {"retention": ("workqueue", None)}),
        ({"first_seq": 7}, {}, {"first_seq": (7, None)}),
    ],
)
async def test_a_stream_that_exists_with_other_fields_is_told_with_them_and_stays(
    js: JetStream,
    stream_name: str,
    held: dict[str, Any],
    given: dict[str, Any],
    differences: dict[str, Any],
) -> None:
    stream = await js.streams.create(stream_name, **held)

    with pytest.raises(StreamExistsError) as caught:
        await js.streams.create(stream_name, **given)

    assert caught.value.differences == differences
    assert all(name in caught.value.detail for name in differences)
    assert (await stream.info()).config == stream.cached.config


@pytest.mark.parametrize(
    ("held", "given", "differences"),
    [
        ({}, {"ack_wait": 6}, {"ack_wait": (30.0, 6)}),
        ({"ack_wait": 6}, {}, {"ack_wait": (6.0, None)}),
        ({"filters": ["a.>"]}, {}, {"filters": (("a.>",), None)}),
        ({"filters": ["a.>"]}, {"filters": ["b"]}, {"filters": (("a.>",), ("b",))}),
        ({"start_seq": 5}, {}, {"deliver_policy": ("by_start_sequence", None)}),
        ({"metadata": {"a": "b"}}, {}, {"metadata": ({"a": "b"}, None)}),
        ({"durable": False}, {}, {"durable": (False, True)}),
    ],
)
async def test_a_consumer_that_exists_with_other_fields_is_told_with_them_and_stays(
    a_and_b: Stream, held: dict[str, Any], given: dict[str, Any], differences: dict[str, Any]
) -> None:
    consumer = await a_and_b.consumers.create("worker", **held)

    with pytest.raises(ConsumerExistsError) as caught:
        await a_and_b.consumers.create("worker", **given)

    assert caught.value.differences.items() >= differences.items()
    assert all(name in caught.value.detail for name in differences)
    assert (await consumer.info()).config == consumer.cached.config


async def test_a_consumer_that_is_the_same_is_returned(a_and_b: Stream) -> None:
    given: dict[str, Any] = {"ack_wait": 5, "filters": ["a.>"], "backoff": [5, 6]}
    await a_and_b.consumers.create("worker", **given)

    again = await a_and_b.consumers.create("worker", **given)

    assert again.name == "worker"


@pytest.mark.parametrize(
    ("extra", "differences"),
    [
        ({"discard": "old"}, {"discard": ("old", "new")}),
        ({"allow_direct": False}, {"allow_direct": (False, True)}),
        ({"duplicate_window": 60_000_000_000}, {"duplicate_window": (60.0, 120.0)}),
        ({"max_consumers": 3}, {"max_consumers": (3, -1)}),
        ({"allow_msg_ttl": True}, {"allow_msg_ttl": (True, None)}),
    ],
)
@pytest.mark.parametrize("kind", ["kv", "objects"])
async def test_a_view_that_exists_with_other_fields_is_told_with_them_and_stays(
    js: JetStream,
    stream_name: str,
    kind: str,
    extra: dict[str, Any],
    differences: dict[str, Any],
) -> None:
    manager = getattr(js, kind)
    made = await manager.create(stream_name, extra=extra)
    before = (await made.status()).stream.config

    with pytest.raises(BucketExistsError) as caught:
        await manager.create(stream_name)

    assert caught.value.differences == differences
    assert (await made.status()).stream.config == before


async def test_a_store_of_the_same_fields_is_returned(js: JetStream, stream_name: str) -> None:
    config = ObjectBucketConfig(name=stream_name, ttl=60, extra={"republish": {"dest": "copy.>"}})
    await js.objects.create(config)

    assert (await js.objects.create(config)).name == stream_name
