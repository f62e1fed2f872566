"""Object stores with three replicas: the same calls, elections and refusals of their own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream.errors import ObjectExistsError
from tests.support.clusters import step_down, wait_for_leaders

if TYPE_CHECKING:
    from natsstream import JetStream, ObjectStore
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def box(
    cluster_js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> ObjectStore:
    """An empty object store with three replicas; writes wait for elections."""
    wait_for_leaders(cluster_js, monkeypatch)
    return await cluster_js.objects.ensure(stream_name, replicas=3, storage="memory")


async def names(box: ObjectStore) -> list[str]:
    """Return the names of a store's objects."""
    return sorted([name async for name in box.names()])


async def test_every_call_sees_what_was_acknowledged_before(box: ObjectStore) -> None:
    assert (await box.status()).replicas == 3
    for number in range(5):
        await box.put("a", b"%d" % number)
        info = await box.update("a", description=str(number))
        assert await box.get("a") == b"%d" % number
        held = await box.info("a")
        assert held is not None
        assert (held.revision, held.description) == (info.revision, str(number))
        await box.rename("a", "b")
        assert set(await names(box)) - {"l"} == {"b"}
        await box.link("l", "b")
        assert await box.get("l") == b"%d" % number
        await box.delete("b")
        assert await names(box) == ["l"]


async def test_concurrent_updates_lose_none(box: ObjectStore) -> None:
    # Replicated streams refuse a write while another one to its subject is in flight (10164).
    await box.put("a", b"x")

    await asyncio.gather(
        box.update("a", description="d"),
        box.update("a", headers={"K": "1"}),
        box.update("a", metadata={"m": "n"}),
    )

    info = await box.info("a")
    assert info is not None
    assert (info.description, info.headers, info.metadata) == ("d", {"K": ("1",)}, {"m": "n"})


async def test_renames_to_one_name_leave_every_object(box: ObjectStore) -> None:
    for number in range(3):
        await box.put(f"a{number}", b"%d" % number)

    calls = (box.rename(f"a{number}", "b") for number in range(3))
    done = await asyncio.gather(*calls, return_exceptions=True)

    assert sum(isinstance(each, ObjectExistsError) for each in done) == 2
    assert {await box.get(name) for name in await names(box)} == {b"0", b"1", b"2"}


async def test_objects_and_watches_outlive_a_change_of_leaders(
    cluster_js: JetStream, nats_cluster: NatsCluster, box: ObjectStore
) -> None:
    for number in range(5):
        await box.put(f"a{number}", b"%d" % number)

    async with box.watch() as watch:
        initial = [info.name async for info in watch.initial()]
        await step_down(cluster_js, nats_cluster, f"OBJ_{box.name}")
        await box.rename("a0", "b")
        seen: list[str] = []
        async with asyncio.timeout(30):
            while "b" not in seen:
                seen.append((await anext(watch)).name)

    assert initial == [f"a{number}" for number in range(5)]
    assert await names(box) == ["a1", "a2", "a3", "a4", "b"]
    assert await box.get("b") == b"0"
