"""A leader that does not know yet that it is none answers with a meta whose chunks are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.errors import ObjectChangedError
from natsstream.objects.meta_store import MetaStore, StoredMeta

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


async def test_a_replaced_object_is_not_told_as_damaged(
    cluster_js: JetStream, nats_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    box = await cluster_js.objects.create(nats_name, replicas=3)
    await box.put("a", b"old")
    read = MetaStore.read
    left = 2

    async def read_stale(store: MetaStore, name: str) -> StoredMeta:
        nonlocal left
        left -= 1
        return old if left >= 0 else await read(store, name)

    async with box.open("a") as reader:
        meta = await box.info("a")
        assert meta is not None
        old = StoredMeta(info=meta)
        await box.put("a", b"new")
        monkeypatch.setattr(MetaStore, "read", read_stale)
        with pytest.raises(ObjectChangedError):
            await reader.read()
    assert left == -1
