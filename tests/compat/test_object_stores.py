"""Object stores on every promised version: all that they can do needs nats-server 2.10."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from natsstream.errors import StreamSealedError

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]


async def test_object_stores_do_the_same_everywhere(js: JetStream, stream_name: str) -> None:
    fields: dict[str, Any] = {
        "compression": True,
        "metadata": {"a": "b"},
        "ttl": 60,
        "description": "d",
    }
    await js.objects.create(stream_name, **fields)
    box = await js.objects.create(stream_name, **fields)
    assert not box.config.extra
    assert (await js.objects.ensure(stream_name, ttl=60)).change.action == "unchanged"

    await box.put("a", b"xyz" * 100_000, headers={"K": ["1", "2"]})
    await box.rename("a", "b")
    await box.link("l", "b")

    assert await box.get("l") == b"xyz" * 100_000
    assert sorted([name async for name in box.names()]) == ["b", "l"]
    async with box.watch() as watch:
        assert sorted([info.name async for info in watch.initial()]) == ["b", "l"]
        await box.delete("b")
        assert (await anext(watch)).deleted
    assert (await box.seal()).is_sealed
    with pytest.raises(StreamSealedError):
        await box.delete("l")
