"""Conat's own tests of core streams, one a row of its table, on a real server.

Each test makes what the earlier tests of its `describe` leave behind, so that it can run alone.
Source: Conat backend/conat/test/core/core-stream.test.ts; core-stream.md section 6.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from natsstream import UNDEFINED, PublishItem, PublishOptions, connect
from natsstream.errors import ConfigError, UsageError, WrongLastSequenceError
from tests.support.core_streams import clients, new_name, remove, until_equal, until_kv
from tests.support.eventually import eventually_async
from tests.support.streams import server_subscriptions

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

COUNT = 100


@pytest.mark.smoke
async def test_CS1_a_new_ephemeral_stream_is_empty(server: NatsNode) -> None:
    async with clients(server, 1, ephemeral=True) as [stream]:
        assert stream.length == len(stream) == 0
        assert stream.get_all() == []


async def test_CS3_publishing_undefined_is_refused(server: NatsNode) -> None:
    async with clients(server, 1, ephemeral=True) as [stream]:
        with pytest.raises(ConfigError, match="must not be 'undefined'"):
            await stream.publish(UNDEFINED)
        await stream.publish(None)
        assert stream.get_all() == [None]


async def test_CS4_a_second_client_has_the_same_messages(server: NatsNode) -> None:
    async with clients(server, ephemeral=True) as [one, two]:
        for each in ("a", 17, {"x": [1, None]}):
            await one.publish(each)
        await until_equal(two, values=one.get_all())
        assert two.length == 3


async def test_CS6_messages_appear_in_the_order_of_publishing(server: NatsNode) -> None:
    async with clients(server, 1, ephemeral=True) as [stream]:
        for number in range(COUNT):
            await stream.publish(number)
            assert stream.length == number + 1
        assert stream.get_all() == list(range(COUNT))


async def test_CS8_times_are_those_of_the_server(server: NatsNode) -> None:
    async with clients(server, 1, ephemeral=True) as [stream]:
        before = datetime.now(UTC)
        await stream.publish("x")
        await stream.publish("y")
        times = stream.times()
        assert len(times) == stream.length
        assert stream.time(1) == times[-1]
        assert times[0] <= times[1]
        # One machine, one clock.
        assert before - timedelta(seconds=1) < times[0] < datetime.now(UTC) + timedelta(seconds=1)


async def test_CS9_stats_count_messages_and_bytes(server: NatsNode) -> None:
    async with clients(server, 1, ephemeral=True) as [stream]:
        for number in range(COUNT):
            await stream.publish(number)
        stats = stream.stats()
        assert stats.count == stream.length
        assert stats.bytes == sum(len(each.raw) for each in stream.raw) >= COUNT
        last = stream.seq(COUNT - 1)
        assert last is not None
        assert stream.stats(start_seq=last).count == 1


async def test_CS10_everything_can_be_deleted(server: NatsNode) -> None:
    async with clients(server, ephemeral=True) as [one, two]:
        for number in range(COUNT):
            await one.publish(number)
        assert len(await one.delete(all=True)) == COUNT
        assert one.length == 0
        assert (one.stats().count, one.stats().bytes) == (0, 0)
        await until_equal(two, values=[])


async def test_CS11_a_new_persistent_stream_is_empty(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        assert stream.length == 0
        assert stream.start_seq is None


async def test_CS13_all_keys_are_one_dict(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        await stream.set_kv("my-key", {"a": 5})
        assert stream.get_all_kv() == {"my-key": {"a": 5}}
        assert stream.get_kv("my-key") == {"a": 5}
        assert stream.length == 1


async def test_CS14_a_key_is_there_after_closing_and_opening(js: JetStream) -> None:
    name = new_name()
    try:
        async with await js.core_stream(name) as stream:
            await stream.set_kv("my-key", "value")
            seq = stream.seq_kv("my-key")
        with pytest.raises(UsageError, match="closed"):
            stream.get_all_kv()
        async with await js.core_stream(name) as again:
            assert again is not stream
            assert again.has_kv("my-key")
            assert not again.has_kv("my-key2")
            assert again.length == 1
            assert again.get_kv("my-key") == "value"
            assert again.seq_kv("my-key") == seq
    finally:
        await remove(js, name)


async def test_CS15_a_second_client_has_the_value_when_it_is_open(js: JetStream) -> None:
    name = new_name()
    try:
        async with await js.core_stream(name) as one:
            await one.set_kv("my-key", "value")
            async with await js.core_stream(name, no_cache=True) as two:
                assert two is not one
                assert two.get_kv("my-key") == "value"
    finally:
        await remove(js, name)


async def test_CS16_a_value_of_one_client_is_seen_by_the_other(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        await one.set_kv("my-key", 1)
        await two.set_kv("my-key", 2)
        assert two.get_kv("my-key") == 2
        await until_kv(one, values={"my-key": 2})


async def test_CS17_overwriting_a_key_does_not_make_the_stream_longer(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        for number in range(5):
            await one.set_kv("my-key", number)
            assert one.length == 1
        await until_equal(one, two, values=[4])


async def test_CS18_an_overwritten_message_is_gone_from_both(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        await one.set_kv("my-key", "old", headers={"a": 1})
        await two.set_kv("my-key", "new")
        await until_equal(one, two, values=["new"])
        for each in (one, two):
            each.gc_kv()
            assert each.get_all() == ["new"]
            assert each.headers(0) is None
            assert each.get_all_kv() == {"my-key": "new"}


async def test_CS20_only_the_newest_value_is_there_after_opening_again(js: JetStream) -> None:
    name = new_name()
    try:
        async with await js.core_stream(name) as one:
            for number in range(5):
                await one.set_kv("my-key", number)
            async with await js.core_stream(name, no_cache=True) as again:
                assert again.get_all() == [4]
                assert again.seq_kv("my-key") == one.seq_kv("my-key")
    finally:
        await remove(js, name)


async def test_CS21_two_clients_of_one_stream_are_two_objects(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        assert one is not two
        assert (one.length, two.length) == (0, 0)


@pytest.mark.parametrize("key", ["foo", ""])
async def test_CS22_a_key_may_be_empty(server: NatsNode, key: str) -> None:
    async with clients(server) as [one, two]:
        await one.set_kv(key, "bar")
        await until_kv(one, two, values={key: "bar"})
        assert two.keys_kv() == [key]


async def test_CS24_a_deletion_of_the_empty_key_is_seen_by_the_other(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        await one.set_kv("", "bar")
        await until_kv(two, values={"": "bar"})
        await two.delete_kv("")
        assert two.get_kv("") is UNDEFINED
        await until_kv(one, values={})
        assert not one.has_kv("")


async def test_CS25_deleting_a_key_that_has_no_value_stores_nothing(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        await stream.set_kv("a", 1)
        assert await stream.delete_kv("fake key") is None
        assert stream.length == 1
        stored = await stream.set_kv("a", 2)
        assert stored is not None
        assert stored.seq == 2


async def test_CS26_a_purged_stream_is_empty_for_both(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        await one.publish(1)
        await until_equal(two, values=[1])
        await one.delete(all=True)
        await until_equal(one, two, values=[])


async def test_CS28_many_keys_have_one_message_each(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        keys = [f"key{number}" for number in range(5)]
        for count in range(5):
            for key in keys:
                await one.set_kv(key, count)
        await until_kv(one, two, values=dict.fromkeys(keys, 4))
        assert one.length == two.length == len(keys)


async def test_CS29_clients_that_take_turns_leave_one_message(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        await one.publish("before")
        for number in range(10):
            await (one, two)[number % 2].set_kv("shared", number)
        await until_equal(one, two, values=["before", 9])
        assert one.get_kv("shared") == two.get_kv("shared") == 9


async def test_CS30_raw_and_messages_are_equally_long(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        for number in range(4):
            await one.set_kv(f"key{number % 3}", number)
            await one.publish(number)
        await until_equal(two, values=one.get_all())
        for each in (one, two):
            assert len(each.raw) == len(each.messages) == 7
            assert each.length_kv == len(each.kv) == 3


async def test_CS31_a_stream_for_compare_and_set_is_empty(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        assert stream.seq_kv("my-key") is None


async def test_CS32_setting_a_value_returns_its_sequence(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        stored = await stream.set_kv("my-key", "my-value")
        assert stored is not None
        assert stored.seq > 0
        assert stream.seq_kv("my-key") == stored.seq
        assert stream.time_kv("my-key") == stored.time


async def test_CS34_the_right_previous_seq_sets_the_value(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        first = await stream.set_kv("my-key", "my-value")
        assert first is not None
        with pytest.raises(WrongLastSequenceError):
            await stream.set_kv("my-key", "wrong", previous_seq=first.seq + 1)
        second = await stream.set_kv("my-key", "new", previous_seq=first.seq)
        assert second is not None
        assert stream.seq_kv("my-key") == second.seq
        assert stream.get_kv("my-key") == "new"


async def test_CS35_a_previous_seq_without_a_key_is_refused(server: NatsNode) -> None:
    """Conat ignores it, and the writer believes that it has compared."""
    async with clients(server, 1) as [stream]:
        with pytest.raises(ConfigError, match="has no key") as caught:
            await stream.publish("stuff", previous_seq=10_000)
        assert "key=" in caught.value.hint
        item = PublishItem("stuff", PublishOptions(previous_seq=0))
        [result] = await stream.publish_many([item])
        assert isinstance(result.error, ConfigError)
        assert stream.get_all() == []


async def test_CS36_two_clients_have_no_message_ids(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        assert one is not two
        assert one.msg_ids == two.msg_ids == frozenset()


async def test_CS37_a_message_id_stores_a_message_once(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        first = await one.publish("x", msg_id="myid")
        await one.publish("y", msg_id="myid2")
        assert one.msg_ids == {"myid", "myid2"}
        assert await one.publish("x", msg_id="myid") is None
        # Another object does not know the id: the server does.
        assert await two.publish("x", msg_id="myid") == first
        await until_equal(one, two, values=["x", "y"])


async def test_CS41_a_connection_without_streams_has_its_inbox_only(server: NatsNode) -> None:
    name = new_name()
    async with connect(server.url, name=name) as js:
        await js.core.flush()
        assert server_subscriptions(server, name) <= 1


async def test_CS42_an_open_stream_has_one_subscription(server: NatsNode) -> None:
    name = new_name()
    async with connect(server.url, name=name) as js:
        await js.account()
        before = server_subscriptions(server, name)
        try:
            async with await js.core_stream(name) as stream:
                await stream.publish("x")
                assert server_subscriptions(server, name) == before + 1
        finally:
            await remove(js, name)


async def test_CS43_closing_a_stream_ends_its_subscription(server: NatsNode) -> None:
    name = new_name()
    async with connect(server.url, name=name) as js:
        await js.account()
        before, tasks = server_subscriptions(server, name), len(asyncio.all_tasks())
        try:
            stream = await js.core_stream(name)
            await stream.publish("x")
            await stream.close()
        finally:
            await remove(js, name)
        await js.core.flush()
        assert server_subscriptions(server, name) == before

        async def are_ended() -> bool:
            return len(asyncio.all_tasks()) == tasks

        await eventually_async(are_ended)
