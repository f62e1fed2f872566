"""Chunks of big values go with the stream that names them, and with the messages of layers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import AKV
from natsstream.conat import blobs
from natsstream.conat.names import StreamNames
from natsstream.errors import StreamExistsError, StreamNotFoundError
from tests.support.conat_layers import new_name, remove, until
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import AStream, JetStream

pytestmark = pytest.mark.asyncio


def big_of(js: JetStream, fill: bytes = b"x") -> bytes:
    """Return a value that does not fit into a message."""
    largest: int = js.raw.max_payload
    return fill * largest


async def chunked(js: JetStream, name: str) -> set[str]:
    """Return the subjects of all chunks of a core stream; empty if it has no stream for them."""
    with suppress(StreamNotFoundError):
        stream = await js.streams.get(StreamNames(f"hub/{name}").blob_stream)
        return {each.subject for each in await stream.subjects()}
    return set()


async def exists(js: JetStream, stream: str) -> bool:
    """Return True if a JetStream stream is there."""
    with suppress(StreamNotFoundError):
        await js.streams.get(stream)
        return True
    return False


async def test_a_core_stream_is_deleted_with_its_big_values(js: JetStream) -> None:
    name = new_name()
    names = StreamNames(f"hub/{name}")
    async with await js.core_stream(name) as stream:
        await stream.publish(big_of(js))
    assert await exists(js, names.blob_stream)
    assert await js.core_stream.delete(name)
    assert not await exists(js, names.stream)
    assert not await exists(js, names.blob_stream)
    assert not await js.core_stream.delete(name)


async def test_big_values_that_another_program_has_left_are_deleted(js: JetStream) -> None:
    name = new_name()
    names = StreamNames(f"hub/{name}")
    async with await js.dkv(name) as kv:
        kv.a = big_of(js)
    await js.streams.delete(names.stream)
    assert not await js.core_stream.delete(name)
    assert not await exists(js, names.blob_stream)


async def test_clients_of_a_deleted_core_stream_make_it_again_empty(js: JetStream) -> None:
    name = new_name()
    try:
        async with await js.core_stream(name) as stream:
            await stream.publish("x")
            assert await js.core_stream.delete(name)
            await until(lambda: stream.get_all() == [])
            await stream.config()
            await stream.publish("y")
            assert stream.get_all() == ["y"]
    finally:
        await remove(js, name)


async def test_a_stream_of_another_program_is_not_deleted(js: JetStream) -> None:
    name = new_name()
    names = StreamNames(f"hub/{name}")
    await js.streams.create(names.stream, subjects=[names.data_filter])
    try:
        with pytest.raises(StreamExistsError):
            await js.core_stream.delete(name)
        assert await exists(js, names.stream)
    finally:
        await remove(js, name)


async def write(layer: AKV | AStream, value: object) -> None:
    """Store a value."""
    await (layer.set("k", value) if isinstance(layer, AKV) else layer.publish(value))


@pytest.mark.sampled_variants
@pytest.mark.parametrize("layer", ["akv", "astream"])
async def test_a_writer_without_loading_sweeps_what_others_have_left(
    js: JetStream, monkeypatch: pytest.MonkeyPatch, layer: str
) -> None:
    """One value is purged as the nats CLI does, and one writer died before it named its chunks."""
    monkeypatch.setattr(blobs, "GRACE_S", 0.0)
    name = new_name()
    names = StreamNames(f"hub/{name}")
    try:
        async with await getattr(js, layer)(name) as first:
            await write(first, big_of(js))
        await (await js.streams.get(names.stream)).purge()
        chunks = (await js.streams.get(names.blob_stream)).chunks
        await chunks.put(names.blob("orphan"), b"x" * 1_000)
        before = await chunked(js, name)
        assert len(before) == 2
        async with await getattr(js, layer)(name) as later:
            await write(later, big_of(js, b"y"))

            async def are_gone() -> bool:
                held = await chunked(js, name)
                return len(held) == 1 and not held & before

            await eventually_async(are_gone)
            assert await later.get("k" if layer == "akv" else 2) == big_of(js, b"y")
    finally:
        await remove(js, name)


async def test_closing_waits_for_a_sweep_that_has_begun(
    js: JetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "GRACE_S", 0.0)
    name = new_name()
    try:
        for _ in range(2):
            async with await js.astream(name) as log:
                await log.publish(big_of(js))
            await (await js.streams.get(StreamNames(f"hub/{name}").stream)).purge()
        assert len(await chunked(js, name)) == 1
    finally:
        await remove(js, name)
