"""Conat's own tests of DKV, one a row of its table, on a real server.

Each test makes what the earlier tests of its `describe` leave behind, so that it can run alone.
Source: Conat backend/conat/test/sync/dkv.test.ts and dkv-basics.test.ts; core-stream.md section 6.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from natsstream import blocking, connect
from natsstream.conat.dkv import KeyChange
from natsstream.conat.undefined import UNDEFINED
from natsstream.errors import ConfigError, MessageRuleError, UsageError
from natsstream.foreign_names import DKV_MEMBERS
from tests.support.conat_layers import heard, new_name, opened, settled, until
from tests.support.streams import server_subscriptions

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

BIG_TIME = timedelta(minutes=1)


@pytest.mark.smoke
async def test_KV1_KV2_KV3_a_value_is_here_at_once_and_in_a_map_opened_later(
    js: JetStream,
) -> None:
    name = new_name()
    async with await js.dkv(name) as kv:
        assert kv.get_all() == {}
        kv.a = 10
        assert (kv.a, kv["a"], kv.get("a"), kv.get_all()) == (10, 10, 10, {"a": 10})
        await kv.save()
        assert not kv.has_unsaved_changes()
    async with await js.dkv(name) as later:
        assert later is not kv
        assert later.get_all() == {"a": 10}


async def test_KV4_a_closed_map_raises(js: JetStream) -> None:
    kv = await js.dkv(new_name())
    ends = heard(kv, "closed")
    await kv.close()
    assert ends == [None]
    assert not kv.has_unsaved_changes()
    with pytest.raises(UsageError, match="closed"):
        kv.get_all()
    with pytest.raises(UsageError, match="closed"):
        kv.set("a", 1)


async def test_KV5_KV6_KV7_KV8_equal_arguments_share_one_map_until_both_close(
    js: JetStream,
) -> None:
    name = new_name()
    one, two = await asyncio.gather(js.dkv(name), js.dkv(name, no_autosave=False))
    assert one is two
    await one.close()
    two.a = 1
    assert two.get_all() == {"a": 1}
    await two.close()
    with pytest.raises(UsageError, match="closed"):
        two.get_all()
    async with await js.dkv(name) as three:
        assert three is not one
        assert three.a == 1


async def test_B14_maps_with_another_configuration_are_not_shared(js: JetStream) -> None:
    name = new_name()
    async with (
        await js.dkv(name) as plain,
        await js.dkv(name, config={"max_msgs": 5}) as limited,
        await js.dkv(name, merge=lambda conflict: conflict.remote) as merging,
        await js.dkv(name, no_autosave=True) as manual,
    ):
        assert len({id(each) for each in (plain, limited, merging, manual)}) == 4
        assert (await limited.config()).max_msgs == 5


async def test_KV9_KV10_KV11_another_map_sees_a_value_when_it_is_saved(server: NatsNode) -> None:
    async with opened("dkv", server, server, no_autosave=True) as [one, two]:
        changes = heard(two)
        one.a = 10
        assert two.get("a") is UNDEFINED
        await one.save()
        await until(lambda: two.get("a") == 10)
        assert changes == [KeyChange("a", 10, UNDEFINED)]


async def test_KV12_KV13_KV14_a_saved_value_has_a_time_and_another_one_a_later_time(
    server: NatsNode,
) -> None:
    async with opened("dkv", server, no_autosave=True) as [kv]:
        assert kv.time() == {}
        kv.a = {"foo": "bar"}
        assert kv.time("a") is None
        await kv.save()
        first = kv.time("a")
        assert abs(first - datetime.now(UTC)) < BIG_TIME
        assert kv.time() == {"a": first}
        kv.a = {"foo": "bar2"}
        await kv.save()
        assert kv.time("a") > first


async def test_KV15_KV16_a_key_that_is_deleted_is_gone_elsewhere(server: NatsNode) -> None:
    async with opened("dkv", server, server) as [one, two]:
        one.foo = "bar"
        assert one.has("foo")
        assert not two.has("foo")
        await until(lambda: two.get("foo") == "bar")
        changes = heard(two)
        del one["foo"]
        assert not one.has("foo")
        await until(lambda: not two.has("foo"))
        assert changes == [KeyChange("foo", None, "bar", is_deleted=True)]


async def test_KV17_clear_is_seen_elsewhere(server: NatsNode) -> None:
    async with opened("dkv", server, server) as [one, two]:
        one.foo = "bar"
        await one.save()
        await until(lambda: two.get_all() == {"foo": "bar"})
        two.clear()
        assert two.get_all() == {}
        await until(lambda: one.get_all() == {})


async def test_KV18_clear_removes_only_keys_that_the_map_knows(server: NatsNode) -> None:
    async with opened("dkv", server, server, no_autosave=True) as [one, two]:
        one.foo = "bar"
        await one.save()
        await until(lambda: two.has("foo"))
        one.bar = "yes"
        two.clear()
        await two.save()
        await until(lambda: not one.has("foo"))
        assert one.bar == "yes"
        await one.save()
        await until(lambda: two.get_all() == {"bar": "yes"})


async def test_KV19_clear_removes_saved_and_unsaved_keys(server: NatsNode) -> None:
    async with opened("dkv", server, server, no_autosave=True) as [one, two]:
        one.foo = "bar"
        await one.save()
        await until(lambda: two.has("foo"))
        one.bar = "yes"
        one.clear()
        assert one.get_all() == {}
        await one.save()
        await until(lambda: two.get_all() == {})
        assert not one.has_unsaved_changes()


async def test_KV20_many_keys_are_here_at_once_and_none_stays_unsaved(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        wanted = {str(number): number for number in range(50)}
        for key, value in wanted.items():
            kv[key] = value
        assert kv.get_all() == wanted
        assert len(kv) == kv.length == 50
        await kv.save()
        assert kv.unsaved_changes() == []
        assert kv.core.get_all_kv() == wanted


async def test_KV21_many_keys_are_saved_cleared_and_saved(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        kv.set_many({f"key {number}": number for number in range(25)})
        await kv.save()
        assert kv.length == 25
        kv.clear()
        assert kv.get_all() == {}
        await kv.save()
        assert kv.core.get_all_kv() == {}


async def test_KV22_KV23_KV24_four_clients_converge_to_the_union(server: NatsNode) -> None:
    async with opened("dkv", *[server] * 4, no_autosave=True) as maps:
        for number, kv in enumerate(maps):
            kv[str(number)] = number
        await asyncio.gather(*(kv.save() for kv in maps))
        wanted = {"0": 0, "1": 1, "2": 2, "3": 3}
        await until(lambda: all(kv.get_all() == wanted for kv in maps))


async def test_KV25_KV27_KV28_setting_undefined_deletes(server: NatsNode) -> None:
    async with opened("dkv", server, server) as [one, two]:
        one.set("x", 10)
        await until(lambda: two.get("x") == 10)
        one.x = UNDEFINED
        assert "x" not in one
        assert one.get("x", "none") == "none"
        await one.save()
        await until(lambda: "x" not in two)
        one.x = None
        await until(lambda: two.get("x") is None)
        assert two.has("x")


async def test_KV29_the_empty_key_works(server: NatsNode) -> None:
    async with opened("dkv", server, server) as [one, two]:
        one.set("", 10)
        assert one.get("") == 10
        await until(lambda: two.get("") == 10)


@pytest.mark.parametrize("with_set", [False, True], ids=["KV30", "KV31"])
async def test_KV30_KV31_maps_that_are_closed_leave_nothing_behind(
    server: NatsNode, *, with_set: bool
) -> None:
    client, name = new_name(), new_name()
    async with connect(server.url, name=client) as js:
        await settled(js, "dkv")
        tasks = len(asyncio.all_tasks())
        before = server_subscriptions(server, client)
        for number in range(20):
            async with await js.dkv(name, no_cache=True) as kv:
                if with_set:
                    kv.x = number
        await js.core.rtt()
        assert server_subscriptions(server, client) == before
        await until(lambda: len(asyncio.all_tasks()) <= tasks)


async def test_KV32_KV33_an_open_map_has_one_subscription(server: NatsNode) -> None:
    client = new_name()
    async with connect(server.url, name=client) as js:
        await settled(js, "dkv")
        before = server_subscriptions(server, client)
        async with await js.dkv(new_name()):
            await js.core.rtt()
            assert server_subscriptions(server, client) == before + 1
        await js.core.rtt()
        assert server_subscriptions(server, client) == before


async def test_KB1_keys_are_set_and_deleted_here_first(server: NatsNode) -> None:
    async with opened("dkv", server, no_autosave=True) as [kv]:
        assert not kv.has("a")
        kv.set("a", {"b": "c"})
        assert kv.get("a") == {"b": "c"}
        assert kv.get() == kv.get_all() == {"a": {"b": "c"}}
        kv.delete("a")
        assert kv.get_all() == {}
        kv.set("x", 10)
        await kv.save()
        assert kv.core.get_all_kv() == {"x": 10}


async def test_KB2_a_date_is_the_same_elsewhere(server: NatsNode) -> None:
    async with opened("dkv", server, server, no_autosave=True) as [one, two]:
        when = datetime(2025, 3, 1, 12, 30, tzinfo=UTC)
        two.set("date", when)
        assert one.get("date") is UNDEFINED
        await two.save()
        await until(lambda: one.get("date") == when)


async def test_KB3_clear_empties_both(server: NatsNode) -> None:
    async with opened("dkv", server, server) as [one, two]:
        one.set_many({"a": 1, "b": 2})
        await until(lambda: len(two) == 2)
        one.clear()
        await one.save()
        await until(lambda: len(one) == len(two) == 0)


async def test_KB4_times_are_the_same_on_both_clients(server: NatsNode) -> None:
    async with opened("dkv", server, server) as [one, two]:
        key = "x" * 1_000
        one.set(key, 5)
        await one.save()
        assert abs(one.time(key) - datetime.now(UTC)) < BIG_TIME
        await until(lambda: two.time() == one.time())


async def test_KB5_headers_are_here_at_once_and_elsewhere_when_saved(server: NatsNode) -> None:
    async with opened("dkv", server, server) as [one, two]:
        headers = {"foo": {"bar": 5}}
        one.set("h", 1, headers=headers)
        assert one.headers("h") == headers
        await one.save()
        assert one.headers("h") == headers
        await until(lambda: two.headers("h") == headers)


async def test_KB6_unsaved_changes_are_listed(server: NatsNode) -> None:
    async with opened("dkv", server, server, no_autosave=True) as [one, two]:
        stable = heard(one, "stable")
        one.set("x", 1)
        assert (one.has_unsaved_changes(), one.unsaved_changes()) == (True, ["x"])
        assert not one.is_stable()
        assert (two.has_unsaved_changes(), two.unsaved_changes()) == (False, [])
        await one.save()
        assert (one.has_unsaved_changes(), one.unsaved_changes()) == (False, [])
        assert one.is_stable()
        assert stable == [one]


async def test_KB7_stats_count_messages_and_bytes(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        kv.a = 1
        await kv.save()
        assert kv.stats().count > 0
        assert kv.stats().bytes > 0


async def test_KB8_saving_a_key_twice_uses_two_sequences(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        kv.x = 1
        await kv.save()
        first = kv.seq("x")
        kv.x = 2
        await kv.save()
        assert kv.seq("x") == first + 1


async def test_B12_keys_that_are_deleted_here_are_not_listed(server: NatsNode) -> None:
    async with opened("dkv", server, no_autosave=True) as [kv]:
        kv.set_many({"a": 1, "b": 2})
        await kv.save()
        kv.delete("a")
        kv.c = 3
        assert kv.keys() == list(kv) == ["b", "c"]
        assert "a" not in kv.time()


async def test_B9_a_saved_value_is_sent_once_even_if_another_one_follows_at_once(
    server: NatsNode,
) -> None:
    async with opened("dkv", server, server) as [one, two]:
        for number in range(20):
            one.x = number
            await one.save()
        await until(lambda: two.get("x") == 19)
        assert one.seq("x") == 20


async def test_attributes_that_are_methods_cannot_be_set(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        with pytest.raises(UsageError, match="'get' is read only"):
            kv.get = 1
        kv["get"] = 1
        assert kv["get"] == 1
        assert callable(kv.get)
        with pytest.raises(AttributeError):
            _ = kv.missing
        with pytest.raises(KeyError):
            _ = kv["missing"]
        with pytest.raises(KeyError):
            del kv["missing"]
        kv.a = 1
        del kv.a
        assert "a" not in kv


async def test_values_that_cannot_be_encoded_are_refused_at_once(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        for key, value in (("a", object()), ("a", 1 << 70), ("\ud800", 1)):
            with pytest.raises(ConfigError):
                kv.set(key, value)
        assert not kv.has_unsaved_changes()


async def test_a_message_removed_by_a_limit_is_a_change_of_its_key(server: NatsNode) -> None:
    async with opened("dkv", server, config={"max_msgs": 2}) as [kv]:
        changes = heard(kv)
        for key in "abc":
            kv[key] = key
            await kv.save()
        await until(lambda: kv.get_all() == {"b": "b", "c": "c"})
        await until(lambda: KeyChange("a", None, "a", is_deleted=True) in changes)


async def test_changes_are_iterated_until_the_map_is_closed(server: NatsNode) -> None:
    async with opened("dkv", server, server) as [one, two]:
        changes = two.changes()
        one.a = 1
        assert await anext(changes) == KeyChange("a", 1, UNDEFINED)
        await two.close()
        assert [change async for change in changes] == []


async def test_names_of_a_dictionary_are_answered_with_those_of_a_map(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        with pytest.raises(AttributeError, match=r"no value; in natsstream: dkv\.set_many"):
            kv.update({"a": 1})
        for name, here in DKV_MEMBERS.items():
            assert not hasattr(kv, name)
            for member in re.findall(r"dkv\.(\w+)", here):
                assert callable(getattr(kv, member)), here


async def test_a_ttl_is_refused_once_the_map_keeps_none(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        rejected = heard(kv, "reject")
        kv.set("a", 1, ttl=1_000)
        await kv.core.config({"allow_msg_ttl": False})
        with pytest.raises(MessageRuleError):
            kv.set("b", 1, ttl=1_000)
        kv.c = 1
        await kv.save()
        assert "c" in kv
        assert not kv.has_unsaved_changes()
        assert [each.key for each in rejected] in ([], ["a"])


async def test_a_value_expires_by_its_ttl(server: NatsNode) -> None:
    async with opened("dkv", server) as [kv]:
        kv.set("a", 1, ttl=50)
        kv.set("b", 2)
        await kv.save()
        await until(lambda: kv.get_all() == {"b": 2})


async def test_maps_and_logs_work_without_async(server: NatsNode) -> None:
    def use() -> None:
        with (
            blocking.connect(server.url) as js,
            js.dkv(new_name()) as kv,
            js.dstream(new_name()) as log,
            js.akv(kv.name) as akv,
            js.dko(new_name()) as objects,
        ):
            kv["a"] = {"b": 1}
            assert (kv.a, list(kv), "a" in kv, len(kv)) == ({"b": 1}, ["a"], True, 1)
            kv.save()
            assert akv.get("a") == {"b": 1}
            del kv["a"]
            assert kv.get_all() == {}
            log.push(1, 2)
            assert (log[-1], log[:], len(log)) == (2, [1, 2], 2)
            log.save()
            assert log.seqs() == [1, 2]
            objects["x"] = {"y": 1}
            objects.save()
            assert objects.get_all() == {"x": {"y": 1}}

    await asyncio.to_thread(use)
