"""Conat's own tests of AKV, one a row of its table, on a real server.

AK9 is left out: a core stream has no SQLite file to ask. AK10 is with the other big values.
Source: Conat backend/conat/test/sync/akv.test.ts; core-stream.md section 6.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from natsstream.conat.undefined import UNDEFINED
from natsstream.errors import UsageError, WrongLastSequenceError
from tests.support.conat_layers import milliseconds, new_name, opened, until

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio


@pytest.mark.smoke
async def test_AK1_AK2_AK3_AK4_AK5_values_are_set_read_listed_and_deleted(
    server: NatsNode,
) -> None:
    async with opened("akv", server) as [kv]:
        await kv.set("x", 10)
        assert await kv.get("x") == 10
        assert await kv.get("missing") is UNDEFINED
        assert await kv.get("missing", 5) == 5
        await kv.set("y", None)
        assert await kv.get("y") is None
        assert await kv.keys() == ["x", "y"]
        await kv.set("x", 11)
        assert await kv.keys() == ["y", "x"]
        await kv.delete("x")
        assert await kv.get("x") is UNDEFINED
        assert await kv.get_message("x") is None
        assert await kv.keys() == ["y"]


async def test_AK6_AK7_AK8_a_dkv_of_the_same_name_has_the_same_values_and_headers(
    server: NatsNode,
) -> None:
    async with opened("dkv", server) as [dkv], opened("akv", server, name=dkv.name) as [akv]:
        dkv.set("dkv", "from dkv", headers={"foo": "bar"})
        await dkv.save()
        assert await akv.get("dkv") == "from dkv"
        stored = await akv.set("akv", "from akv", headers={"hello": {"x": 1}})
        await until(lambda: dkv.get("akv") == "from akv")
        assert dkv.headers("akv") == {"hello": {"x": 1}}
        headers = await akv.headers("dkv")
        time_ms = milliseconds(dkv.time("dkv"))
        assert headers == {"foo": "bar", "seq": 1, "time": time_ms, "key": "dkv"}
        assert (await akv.seq("akv"), await akv.time("akv")) == (stored.seq, stored.time)
        assert abs(stored.time - datetime.now(UTC)) < timedelta(minutes=1)


async def test_compare_and_set_knows_tombstones(server: NatsNode) -> None:
    async with opened("akv", server) as [kv]:
        one = await kv.set("x", 1, previous_seq=0)
        with pytest.raises(WrongLastSequenceError):
            await kv.set("x", 2, previous_seq=0)
        two = await kv.delete("x")
        with pytest.raises(WrongLastSequenceError):
            await kv.set("x", 2, previous_seq=one.seq)
        await kv.set("x", 2, previous_seq=two.seq)
        assert await kv.get("x") == 2


async def test_B15_tombstones_expire(server: NatsNode) -> None:
    async with opened("akv", server, tombstone_ttl=1_000) as [kv]:
        await kv.set("x", 1)
        await kv.delete("x")

        async def count() -> int:
            return (await kv._leader.stream.info()).state.messages

        assert await count() == 1
        while await count():
            pass


async def test_B3_setting_undefined_is_done_when_the_call_returns(server: NatsNode) -> None:
    async with opened("akv", server) as [kv]:
        await kv.set("x", 1)
        stored = await kv.set("x", UNDEFINED)
        assert stored.seq == 2
        assert await kv.get("x") is UNDEFINED


async def test_a_value_is_hidden_from_the_moment_of_its_expiry(server: NatsNode) -> None:
    async with opened("akv", server) as [kv]:
        late = timedelta.max
        # The server removes it after a second; on a busy machine a look may come later than that.
        for key in "abcdefgh":
            stored = await kv.set(key, 1, ttl=300)
            while await kv.get(key) is not UNDEFINED:
                pass
            late = min(late, datetime.now(UTC) - stored.time)
            if late < timedelta(milliseconds=900):
                break
        # The server's clock is known as well as half of a round trip.
        assert timedelta(milliseconds=200) <= late < timedelta(milliseconds=900)
        assert await kv.keys() == []


async def test_a_closed_map_of_the_leader_raises(js: JetStream) -> None:
    kv = await js.akv(new_name())
    await kv.close()
    with pytest.raises(UsageError, match="closed"):
        await kv.get("x")
    with pytest.raises(UsageError, match="closed"):
        await kv.set("x", 1)
