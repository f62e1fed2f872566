"""A put that is cancelled at its last steps leaves the old object or the new one, and no chunks."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.chunked import held, some_bytes

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

OLD, NEW = some_bytes(300_001), some_bytes(200_002, seed=2)


@pytest.mark.parametrize(
    ("step", "when"),
    [
        ("look at the old", "before"),
        ("look at the old", "after"),
        ("store the new", "after"),
        ("remove the old", "before"),
        ("remove the old", "after"),
    ],
)
async def test_a_put_that_is_cancelled_leaves_one_object_and_its_chunks(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    box = await js.objects.create(stream_name, storage="memory")
    await box.put("a", OLD)
    meta_store = box._meta_store  # pyright: ignore[reportPrivateUsage] - To cancel at the place.
    owner, name = {
        "look at the old": (meta_store.stream, "get"),
        "store the new": (meta_store._js, "publish"),  # pyright: ignore[reportPrivateUsage] - As above.
        "remove the old": (meta_store.stream, "purge"),
    }[step]
    real = getattr(owner, name)

    async def cancelled_once(*arguments: object, **options: object) -> object:
        monkeypatch.setattr(owner, name, real)
        task.cancel()
        if when == "before":
            await asyncio.sleep(0)  # Raises; otherwise the first wait for the answer does.
        return await real(*arguments, **options)

    monkeypatch.setattr(owner, name, cancelled_once)
    task = asyncio.create_task(box.put("a", NEW))
    with pytest.raises(asyncio.CancelledError):
        await task

    got, info = await box.get("a"), await box.info("a")
    assert got in (OLD, NEW)
    assert info is not None
    chunks = [subject for subject in await held(box.stream) if ".C." in subject]
    assert chunks == [f"$O.{stream_name}.C.{info.nuid}"]
