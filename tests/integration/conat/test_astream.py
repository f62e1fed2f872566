"""Conat's own tests of AStream, one a row of its table, on a real server.

Source: Conat backend/conat/test/sync/astream.test.ts and persist/persist-client.test.ts;
core-stream.md section 6.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from natsstream.conat.undefined import UNDEFINED
from natsstream.errors import ConfigError, UsageError
from tests.support.conat_layers import milliseconds, new_name, opened

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

MANY = 1_000


@pytest.mark.smoke
async def test_AS1_AS2_PC3_messages_are_read_by_sequence_and_by_key(
    server: NatsNode,
) -> None:
    async with opened("astream", server, server) as [one, two]:
        stored = await one.publish("x")
        assert stored.seq == 1
        assert abs(stored.time - datetime.now(UTC)) < timedelta(minutes=1)
        assert await one.get(1) == await two.get(1) == "x"
        assert (await two.publish("y", key="k")).seq == 2
        assert await one.get(2) == await one.get("k") == "y"
        assert (await one.get(3), await one.get("none", 7)) == (UNDEFINED, 7)


async def test_AS4_AS5_AS6_AS7_AS8_messages_are_there_for_an_object_opened_later(
    server: NatsNode, js: JetStream
) -> None:
    async with opened("astream", server) as [log]:
        first = await log.publish("x", headers={"foo": "bar"})
        second = await log.publish("y")
        await log.close()
        with pytest.raises(UsageError, match="closed"):
            await log.get(1)
        async with await js.astream(log.name) as later:
            message = await later.get_message(1)
            time_ms = milliseconds(first.time)
            assert message is not None
            assert message.mesg == "x"
            assert message.headers == {"foo": "bar", "seq": 1, "time": time_ms}
            assert await later.headers(1) == message.headers
            found = [(each.mesg, each.seq, each.time) async for each in later.get_all()]
            assert found == [("x", 1, first.time), ("y", 2, second.time)]
            for seq, mesg in ((2, "y"), (1, "x")):
                part = later.get_all(start_seq=seq, end_seq=seq)
                assert [each.mesg async for each in part] == [mesg]


async def test_AS9_AS10_many_messages_are_pushed_and_read(server: NatsNode) -> None:
    async with opened("astream", server) as [log]:
        results = await log.push(*range(MANY))
        assert [each.seq for each in results] == list(range(1, MANY + 1))
        assert [each.mesg async for each in log.get_all()] == list(range(MANY))


async def test_AS11_AS12_AS14_AS15_PC9_PC10_each_changefeed_has_all_messages(
    server: NatsNode,
) -> None:
    async with opened("astream", server, server) as [one, two]:
        await one.publish("before")
        feeds = [await one.changefeed(), await one.changefeed(), await two.changefeed()]
        stored = await one.publish("hi", headers={"a": 1}, key="k")
        for feed in feeds:
            change = await anext(feed)
            assert (change.op, change.mesg, change.headers) == ("set", "hi", {"a": 1})
            assert (change.seq, change.time, change.key) == (stored.seq, stored.time, "k")
        await two.push(*range(MANY))
        for feed in feeds:
            assert [(await anext(feed)).mesg for _ in range(MANY)] == list(range(MANY))


async def test_a_changefeed_has_deletions_of_old_and_new_messages(server: NatsNode) -> None:
    async with opened("astream", server, server) as [one, two]:
        await one.push("a", "b", "c")
        async with await two.changefeed() as feed:
            await one.publish("d")
            assert (await anext(feed)).mesg == "d"
            for seq in (4, 2):
                assert await one.delete(seq=seq) == 1
                change = await anext(feed)
                assert (change.op, change.seqs) == ("delete", (seq,))
            assert await one.delete(last_seq=3) == 2
            assert (await anext(feed)).last_seq == 3
            assert await one.delete(seq=2) == await one.delete(all=True) == 0


async def test_a_changefeed_ends_with_its_log(server: NatsNode, js: JetStream) -> None:
    async with opened("astream", server) as [log]:
        tasks = len(asyncio.all_tasks())
        feed = await log.changefeed()
        await log.publish(1)
        await log.close()
        assert [change.mesg async for change in feed] == [1]
        assert len(asyncio.all_tasks()) <= tasks
        assert js.is_connected


async def test_AS16_AS17_keys_headers_and_ids(server: NatsNode) -> None:
    async with opened("astream", server, server) as [one, two]:
        stored = await one.publish("x", key="k", headers={"foo": "bar"}, msg_id="id")
        assert await one.get(stored.seq) == await one.get("k") == "x"
        assert (await one.headers("k"))["key"] == "k"
        again = await two.publish("x", key="k", msg_id="id")
        assert (again.seq, again.time) == (stored.seq, stored.time)
        assert [each.mesg async for each in one.get_all()] == ["x"]


async def test_AS18_a_message_is_hidden_from_the_moment_of_its_expiry(server: NatsNode) -> None:
    async with opened("astream", server) as [log]:
        assert (await log.config({"allow_msg_ttl": True})).allow_msg_ttl
        stored = await log.publish("x", key="k", ttl=25)
        while await log.get("k") is not UNDEFINED:
            pass
        assert datetime.now(UTC) - stored.time < timedelta(milliseconds=900)
        assert await log.get(stored.seq) is UNDEFINED
        assert [each async for each in log.get_all()] == []


async def test_a_message_is_named_by_a_number_or_a_text(server: NatsNode) -> None:
    async with opened("astream", server) as [log]:
        for place in (1.5, None, 0):
            with pytest.raises(ConfigError):
                await log.get(place)
        with pytest.raises(ConfigError, match="must not be 'undefined'"):
            await log.publish(UNDEFINED)
        with pytest.raises(ConfigError, match="nothing to delete"):
            await log.delete()


async def test_a_log_is_created_once_by_clients_at_the_same_time(server: NatsNode) -> None:
    name = new_name()
    async with opened("astream", server, name=name) as [one], opened("dkv", server, name=name):
        assert (await one.config()).allow_msg_ttl
