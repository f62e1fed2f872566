"""Conat's own tests of DStream, one a row of its tables, on a real server.

Each test makes what the earlier tests of its `describe` leave behind, so that it can run alone.
Source: Conat backend/conat/test/sync/dstream.test.ts, dstream-ephemeral.test.ts,
dstream-stress.test.ts and persist/persist-dstream.test.ts; core-stream.md section 6.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.conat.undefined import UNDEFINED
from natsstream.errors import ConfigError, MessageRuleError, UsageError
from tests.support.conat_layers import heard, new_name, opened, settled, until
from tests.support.streams import server_subscriptions

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

BIG_TIME = timedelta(minutes=1)
both_kinds = pytest.mark.parametrize("ephemeral", [False, True], ids=["file", "memory"])


@both_kinds
async def test_DS1_DS2_DS3_DE1_DE2_DE3_a_message_is_here_at_once_and_unsaved(
    server: NatsNode, *, ephemeral: bool
) -> None:
    async with opened("dstream", server, no_autosave=True, ephemeral=ephemeral) as [log]:
        assert (log.get_all(), log.length, len(log)) == ([], 0, 0)
        log.push({"hello": "world"})
        assert log.get_all() == log.get() == [{"hello": "world"}]
        assert (log[0], log.get(0), log.length) == ({"hello": "world"},) * 2 + (1,)
        assert log.has_unsaved_changes()
        assert log.unsaved_changes() == [{"hello": "world"}]
        await log.save()
        assert not log.has_unsaved_changes()
        assert log.unsaved_changes() == []
        assert log.get_all() == [{"hello": "world"}]


@pytest.mark.smoke
async def test_DS4_PD1_PD2_messages_are_there_when_the_log_is_opened_again(js: JetStream) -> None:
    name = new_name()
    log = await js.dstream(name)
    log.push({"hello": "world"})
    await log.save()
    await log.close()
    with pytest.raises(UsageError, match="closed"):
        log.get_all()
    with pytest.raises(UsageError, match="closed"):
        log.push(1)
    async with await js.dstream(name) as later:
        assert later is not log
        assert later[0] == {"hello": "world"}


async def test_DS5_logs_that_are_not_shared_are_two(js: JetStream) -> None:
    name = new_name()
    async with (
        await js.dstream(name, no_cache=True) as one,
        await js.dstream(name, no_cache=True) as two,
    ):
        assert one is not two
        assert one.core is not two.core


@both_kinds
async def test_DS6_DS7_DE5_DE6_DE7_DE8_messages_are_elsewhere_when_they_are_saved(
    server: NatsNode, *, ephemeral: bool
) -> None:
    async with opened("dstream", server, server, no_autosave=True, ephemeral=ephemeral) as [
        one,
        two,
    ]:
        changes = heard(two)
        one.push("one")
        assert (one[0], two.length) == ("one", 0)
        await one.save()
        await until(lambda: two.get_all() == ["one"])
        assert [(each.mesg, each.seq) for each in changes] == [("one", 1)]
        two.push("two")
        await two.save()
        await until(lambda: one.get_all() == ["one", "two"])
        assert one.core.get_all() == two.core.get_all()
        assert one.get_all() == two.get_all()


async def test_DE9_logs_saved_at_the_same_time_have_the_same_order(server: NatsNode) -> None:
    async with opened("dstream", server, server, no_autosave=True, ephemeral=True) as [one, two]:
        one.push("from one")
        two.push("from two")
        await asyncio.gather(one.save(), two.save())
        await until(lambda: one.length == two.length == 2)
        assert one.get_all() == two.get_all()


@both_kinds
async def test_DS9_to_DS15_DE10_to_DE15_the_server_gives_sequence_and_time(
    server: NatsNode, *, ephemeral: bool
) -> None:
    async with opened("dstream", server, no_autosave=True, ephemeral=ephemeral) as [log]:
        log.publish("hello")
        assert (log.seq(0), log.time(0), log.times()) == (None, None, [None])
        await log.save()
        assert log.seq(0) > 0
        assert log.seqs() == [log.seq(0)]
        assert abs(log.time(0) - datetime.now(UTC)) < BIG_TIME
        log.publish("there")
        await log.save()
        assert log.seq(1) > log.seq(0)
        assert log.seqs() == [log.seq(0), log.seq(1)]
        assert log.time(1) > log.time(0)
        assert log.times() == [log.time(0), log.time(1)]


async def test_DS16_closing_saves_if_that_is_automatic(js: JetStream) -> None:
    name = new_name()
    log = await js.dstream(name)
    log.push(389)
    await log.close()
    async with await js.dstream(name) as later:
        assert later.get_all() == [389]


async def test_DS17_closing_loses_messages_without_autosave(js: JetStream) -> None:
    name = new_name()
    log = await js.dstream(name, no_autosave=True)
    log.push(389)
    await log.close()
    async with await js.dstream(name) as later:
        assert later.get_all() == []


@both_kinds
async def test_DS18_DS19_DS20_DE16_DE17_DE18_older_messages_are_loaded_on_demand(
    server: NatsNode, *, ephemeral: bool
) -> None:
    async with opened("dstream", server, ephemeral=ephemeral) as [log]:
        log.push(1, 2, 3)
        await log.save()
        seqs = log.seqs()
        assert seqs == [1, 2, 3]
        async with opened("dstream", server, name=log.name, start_seq=seqs[-1]) as [late]:
            assert (late.get_all(), late.start_seq) == ([3], 3)
            await late.load(start_seq=seqs[1])
            assert (late.get_all(), late.start_seq) == ([2, 3], 2)


@both_kinds
async def test_DS22_DE19_many_messages_keep_the_length_while_they_are_saved(
    server: NatsNode, *, ephemeral: bool
) -> None:
    async with opened("dstream", server, ephemeral=ephemeral) as [log]:
        for number in range(100):
            log.push(number)
            assert log.length == number + 1
        saving = asyncio.create_task(log.save())
        while not saving.done():
            assert log.get_all() == list(range(100))
            await asyncio.sleep(0)
        await saving
        assert log.get_all() == log.core.get_all() == list(range(100))


@pytest.mark.parametrize("with_push", [False, True], ids=["DS23_DE20", "DS24_DE21"])
async def test_DS23_DS24_DE20_DE21_logs_that_are_closed_leave_nothing_behind(
    server: NatsNode, *, with_push: bool
) -> None:
    client, name = new_name(), new_name()
    async with connect(server.url, name=client) as js:
        await settled(js, "dstream")
        tasks = len(asyncio.all_tasks())
        before = server_subscriptions(server, client)
        for number in range(20):
            async with await js.dstream(name, no_cache=True) as log:
                if with_push:
                    log.push(number)
        await js.core.rtt()
        assert server_subscriptions(server, client) == before
        await until(lambda: len(asyncio.all_tasks()) <= tasks)


async def test_DS25_DS26_DS27_deleting_all_empties_both_logs(server: NatsNode) -> None:
    async with opened("dstream", server, server) as [one, two]:
        for deleting, count in ((one, 1), (two, 10)):
            one.push(*range(count))
            await until(lambda count=count: two.length == count)
            await deleting.delete(all=True)
            await until(lambda: one.get_all() == two.get_all() == [])


async def test_DS28_deleting_to_an_index_leaves_the_rest(server: NatsNode) -> None:
    async with opened("dstream", server, server) as [one, two]:
        one.push("x", "y", "z")
        await until(lambda: two.length == 3)
        await one.delete(last_index=1)
        await until(lambda: one.get_all() == two.get_all() == ["z"])


async def test_DS29_DS31_deleting_sequences_returns_them_and_leaves_the_rest(
    server: NatsNode,
) -> None:
    async with opened("dstream", server, server) as [one, two]:
        one.push("x", "y", "z", "a", "b", "c")
        await one.save()
        seqs = one.seqs()
        assert await one.delete(seq=seqs[2]) == [seqs[2]]
        await until(lambda: one.get_all() == two.get_all() == ["x", "y", "a", "b", "c"])
        assert await one.delete(seqs=[seqs[1], seqs[4]]) == [seqs[1], seqs[4]]
        await until(lambda: one.get_all() == two.get_all() == ["x", "a", "c"])


async def test_delete_saves_first(server: NatsNode) -> None:
    async with opened("dstream", server, no_autosave=True) as [log]:
        log.push(1, 2)
        assert await log.delete(all=True) == [1, 2]
        assert log.get_all() == []


async def test_DX1_DX2_two_thousand_messages_are_saved_and_deleted(server: NatsNode) -> None:
    async with opened("dstream", server, ephemeral=True) as [log]:
        for number in range(2_000):
            log.push(number)
        assert log.length == 2_000
        await log.save()
        assert log.core.get_all() == list(range(2_000))
        seqs = log.seqs()
        assert await log.delete(seqs=seqs) == seqs
        assert log.length == 0


async def test_B7_positions_count_messages_and_not_sequences(server: NatsNode) -> None:
    async with opened("dstream", server, no_autosave=True) as [log]:
        log.push("a", "b", "c", "d")
        await log.save()
        await log.delete(last_seq=2)
        log.push("e", "f")
        assert [log.get(n) for n in range(4)] == ["c", "d", "e", "f"]
        assert [log.seq(n) for n in range(4)] == [3, 4, None, None]
        assert (log[-1], log[-3], log[1:3]) == ("f", "d", ["d", "e"])
        assert (log.get(4), log.get(4, None), log.get(-5)) == (UNDEFINED, None, UNDEFINED)
        with pytest.raises(IndexError):
            _ = log[4]
        assert list(log) == ["c", "d", "e", "f"]


async def test_B13_a_refused_message_is_told_and_leaves_nothing(server: NatsNode) -> None:
    async with opened("dstream", server, config={"max_msgs": 2, "discard_policy": "new"}) as [log]:
        rejected, stable = heard(log, "reject"), heard(log, "stable")
        log.push(1, 2, 3)
        await log.save()
        assert [each.mesg for each in rejected] == [3]
        assert log.get_all() == [1, 2]
        assert log.is_stable()
        assert stable == [log]
        assert log._unsaved == {}


async def test_B14_logs_with_other_arguments_are_not_shared(js: JetStream) -> None:
    name = new_name()
    async with (
        await js.dstream(name) as plain,
        await js.dstream(name, config={"max_msgs": 5}) as limited,
        await js.dstream(name, start_seq=7) as late,
        await js.dstream(name) as same,
    ):
        assert plain is same
        await same.close()
        assert len({id(plain), id(limited), id(late)}) == 3
        assert late.start_seq == 7


async def test_undefined_and_values_without_a_form_are_refused_at_once(server: NatsNode) -> None:
    async with opened("dstream", server) as [log]:
        for mesg in (UNDEFINED, object(), 1 << 70):
            with pytest.raises(ConfigError):
                log.push(mesg)
        log.push(None)
        assert log.get_all() == [None]


async def test_the_headers_of_a_message_are_there_when_it_is_saved(server: NatsNode) -> None:
    async with opened("dstream", server, no_autosave=True) as [log]:
        log.publish(1, headers={"a": {"b": 1}})
        assert log.headers(0) is None
        await log.save()
        assert log.headers(0) == {"a": {"b": 1}}


async def test_changes_of_a_log_are_iterated_until_it_is_closed(server: NatsNode) -> None:
    async with opened("dstream", server, server) as [one, two]:
        changes, ends = two.changes(), heard(two, "closed")
        one.push("hi")
        change = await anext(changes)
        assert (change.mesg, change.seq) == ("hi", 1)
        await two.close()
        assert [change async for change in changes] == []
        assert ends == [None]
        with pytest.raises(UsageError, match="no event"):
            one.on("reset", print)


async def test_a_ttl_that_the_log_does_not_keep_is_refused(server: NatsNode) -> None:
    async with opened("dstream", server) as [log]:
        with pytest.raises(MessageRuleError, match="ttl of 500 ms"):
            log.publish("stays for ever", ttl=500)
        assert not log.has_unsaved_changes()
        await log.config({"allow_msg_ttl": True})
        log.publish("goes", ttl=50)
        await log.save()
        await until(lambda: log.get_all() == [])
