"""Numbers of maps and logs, and the list of an owner's stores.

Source: Conat backend/conat/test/sync/inventory.test.ts; core-stream.md sections 2.5 and 6.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from natsstream.conat.dko import DKO
from natsstream.conat.dkv import DKV
from natsstream.conat.dstream import DStream
from tests.support.conat_layers import new_name, opened

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


async def test_IN1_IN2_IN4_the_numbers_of_a_map(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        numbers = await kv.inventory()
        assert (numbers.bytes, numbers.count, numbers.seq) == (0, 0, 0)
        assert numbers.limits == {"allow_msg_ttl": True}
        kv.a = 5
        await kv.save()
        numbers = await kv.inventory()
        assert (numbers.bytes, numbers.count, numbers.seq) == (2, 1, 1)
        kv.delete("a")
        await kv.save()
        numbers = await kv.inventory()
        assert (numbers.bytes, numbers.count, numbers.seq) == (23, 1, 2)
        await kv.config({"max_msgs": 10, "max_bytes": -1})
        assert (await kv.inventory()).limits == {"allow_msg_ttl": True, "max_msgs": 10}


async def test_IN5_IN6_IN7_IN8_the_numbers_of_a_log(server: NatsNode) -> None:
    async with opened("dstream", server) as [log]:
        numbers = await log.inventory()
        assert (numbers.bytes, numbers.count, numbers.seq) == (0, 0, 0)
        assert numbers.limits == {}
        for count in (1, 5):
            log.push(*range(log.length, count))
            await log.save()
            numbers = await log.inventory()
            assert (numbers.bytes, numbers.count, numbers.seq) == (count, count, count)
        await log.config({"max_msgs": 10})
        assert (await log.inventory()).limits == {"max_msgs": 10}


@pytest.mark.smoke
async def test_stores_are_listed_found_opened_and_taken_from_the_list(js: JetStream) -> None:
    owner = str(uuid.uuid4())
    names = [new_name() for _ in range(3)]
    async with (
        await js.inventory(project_id=owner) as inventory,
        await js.dkv(names[0], project_id=owner) as kv,
        await js.dstream(names[1], project_id=owner) as log,
        await js.dko(names[2], project_id=owner) as objects,
    ):
        assert inventory.get_all() == []
        kv.a = 1
        await kv.save()
        inventory.set(kv.name, "kv", await kv.inventory(), desc={"path": "Chat"})
        inventory.set(log.name, "stream", await log.inventory())
        inventory.set(objects.dkv.name, "kv", await objects.dkv.inventory())
        await inventory.save()

        item = inventory.get(kv.name)
        assert item is not None
        assert (item.name, item.type, item.count, item.seq) == (kv.name, "kv", 1, 1)
        assert (item.desc, item.limits) == ({"path": "Chat"}, {"allow_msg_ttl": True})
        assert item.created == item.last
        assert abs(item.last - datetime.now(UTC)) < timedelta(minutes=1)
        assert inventory.get(log.name) == inventory.get(log.name, "stream")
        assert inventory.get(log.name, "kv") is None
        assert len(inventory.get_all()) == len(inventory.ls().splitlines()) == 3
        assert [each.name for each in inventory.get_all(filter="chat")] == [kv.name]

        inventory.set(kv.name, "kv", await kv.inventory())
        again = inventory.get(kv.name)
        assert again is not None
        assert (again.created, again.desc) == (item.created, {"path": "Chat"})

        stores = await inventory.get_stores()
        assert {type(each) for each in stores} == {DKV, DStream, DKO}
        for store in stores:
            await store.close()
        inventory.delete(kv.name, "kv")
        assert inventory.get(kv.name) is None
