"""Object stores of another JetStream domain."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import WrongStreamError
from natsstream.objects.info import ObjectInfo
from natsstream.objects.store_subjects import domain_of
from tests.support.leaves import start_hub, start_leaf, wait_for_link

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


@pytest.fixture
def leaf() -> Iterator[NatsServer]:
    """A leaf node with JetStream in the domain "leaf", of a hub with the domain "hub"."""
    with ExitStack() as servers:
        yield start_leaf(servers, start_hub(servers))


async def test_a_store_is_used_through_a_domain_and_a_namesake_is_told(leaf: NatsServer) -> None:
    async with connect(leaf.url, domain="hub") as hub_js, connect(leaf.url) as leaf_js:
        await wait_for_link(hub_js)
        box = await hub_js.objects.create("files")
        await box.put("a", b"xyz")
        await box.rename("a", "b")
        await box.link("l", "b")

        assert await box.get("l") == b"xyz"
        assert sorted([name async for name in box.names()]) == ["b", "l"]
        assert [name async for name in leaf_js.objects.names()] == []

        # Servers map no subject of objects under a domain, so a store of this name in the leaf's
        # own domain takes what is written to the hub's.
        await hub_js.objects.delete("files")
        await leaf_js.objects.create("files")
        info = ObjectInfo(name="a", bucket="files", nuid="N")
        with pytest.raises(WrongStreamError):
            await box._meta_store.write(info, revision=None)  # pyright: ignore[reportPrivateUsage]


async def test_the_domain_is_that_of_the_prefix() -> None:
    assert [domain_of(each) for each in ("$JS.hub.API", "$JS.API", "imported.API")] == [
        "hub",
        "",
        "",
    ]
