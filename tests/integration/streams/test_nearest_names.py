"""Hints at the nearest name, where no stream, bucket or store has the name that was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import BucketNotFoundError, ConsumerNotFoundError, StreamNotFoundError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream import JetStream
    from natsstream.streams.consumers.manager import ConsumerManager

pytestmark = pytest.mark.asyncio

CALLS: dict[str, Callable[[JetStream, str], Awaitable[object]]] = {
    "get a stream": lambda js, name: js.streams.get(f"{name}_ORDERSS"),
    "update a stream": lambda js, name: js.streams.update(f"{name}_ORDERSS", description="x"),
    "delete a stream": lambda js, name: js.streams.delete(f"{name}_ORDERSS"),
    "append to a stream": lambda js, name: js.producer(f"{name}_ORDERSS", "p-1"),
    "get a bucket": lambda js, name: js.kv.get(f"{name}_settingss"),
    "update a bucket": lambda js, name: js.kv.update(f"{name}_settingss", description="x"),
    "delete a bucket": lambda js, name: js.kv.delete(f"{name}_settingss"),
    "get a store": lambda js, name: js.objects.get(f"{name}_filess"),
}
OF_CONSUMERS: dict[str, Callable[[ConsumerManager], Awaitable[object]]] = {
    "get": lambda consumers: consumers.get("biling"),
    "update": lambda consumers: consumers.update("biling", description="x"),
    "delete": lambda consumers: consumers.delete("biling"),
    "pause": lambda consumers: consumers.pause("biling", duration=1),
    "resume": lambda consumers: consumers.resume("biling"),
    "reset": lambda consumers: consumers.reset("biling"),
    "unpin": lambda consumers: consumers.unpin("biling", group="g"),
}
PREFIXED: dict[str, tuple[Callable[[JetStream, str], Awaitable[object]], str]] = {
    "bucket": (lambda js, n: js.kv.get(f"KV_{n}_settings"), "did you mean {}_settings, without"),
    "store": (lambda js, n: js.objects.get(f"OBJ_{n}_files"), "did you mean {}_files, without"),
    "bucket as a stream": (lambda js, n: js.streams.get(f"{n}_settings"), "mean js.kv.get('{}_set"),
    "store as a bucket": (lambda js, n: js.kv.get(f"{n}_files"), "mean js.objects.get('{}_files')"),
}


async def make_all(js: JetStream, name: str) -> None:
    """Make a stream, a bucket and a store."""
    await js.streams.create(f"{name}_ORDERS", subjects=[f"{name}.>"])
    await js.kv.create(f"{name}_settings")
    await js.objects.create(f"{name}_files")


@pytest.mark.sampled_variants
@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
async def test_misspelt_name_is_answered_with_the_nearest(
    js: JetStream, stream_name: str, call: Callable[[JetStream, str], Awaitable[object]]
) -> None:
    await make_all(js, stream_name)
    with pytest.raises(StreamNotFoundError) as caught:
        await call(js, stream_name)

    assert caught.value.hint.startswith(f"did you mean {stream_name}_")
    assert "ensure" in caught.value.hint or "create" in caught.value.hint


@pytest.mark.parametrize("which", sorted(PREFIXED))
async def test_name_of_another_kind_is_answered_with_its_kind(
    js: JetStream, stream_name: str, which: str
) -> None:
    await make_all(js, stream_name)
    call, told = PREFIXED[which]
    with pytest.raises(StreamNotFoundError) as caught:
        await call(js, stream_name)

    assert told.format(stream_name) in caught.value.hint


@pytest.mark.parametrize("call", OF_CONSUMERS.values(), ids=list(OF_CONSUMERS))
async def test_misspelt_consumer_is_answered_with_the_nearest_of_its_stream(
    js: JetStream, stream_name: str, call: Callable[[ConsumerManager], Awaitable[object]]
) -> None:
    stream = await js.streams.create(stream_name)
    await stream.consumers.create("billing")
    other = await js.streams.create(f"{stream_name}_OTHER")
    await other.consumers.create("bilin")
    with pytest.raises(ConsumerNotFoundError) as caught:
        await call(stream.consumers)

    assert caught.value.hint.startswith("did you mean billing? create it with consumers.ensure()")


async def test_name_that_resembles_none_has_the_usual_hint(js: JetStream) -> None:
    with pytest.raises(BucketNotFoundError) as caught:
        await js.kv.get("qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq")

    assert caught.value.hint.startswith("create it: ")
