"""Maps and logs through restarts of servers, and on the servers of a cluster.

Source: Conat backend/conat/test/sync/connectivity.test.ts and cluster.test.ts,
core/core-stream-break.test.ts and persist/persist-client-restarts.test.ts; core-stream.md,
section 6.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import UnsavedChangesError
from natsstream.testing import FaultProxy
from tests.support.conat_layers import new_name, opened, remove, until

if TYPE_CHECKING:
    from natsstream.testing import NatsCluster, NatsServer

pytestmark = pytest.mark.asyncio


async def test_CN1_CN2_CN4_CN5_CB6_CB7_a_map_saves_what_was_written_during_restarts(
    fresh_server: NatsServer,
) -> None:
    name = new_name()
    async with connect(fresh_server.url, reconnect_timeout=60) as js:
        async with await js.dkv(name) as kv, await js.dstream(f"{name} log") as log:
            kv.a = 1
            await kv.save()
            for number in range(2):
                await asyncio.to_thread(fresh_server.stop, keep_store=True)
                kv[f"{number}"] = number
                log.push(number)
                assert kv.has_unsaved_changes()
                assert log.unsaved_changes() == [number]
                await asyncio.to_thread(fresh_server.start)
                await kv.save()
                await log.save()
                assert not kv.has_unsaved_changes()
            assert kv.core.get_all_kv() == {"a": 1, "0": 0, "1": 1}
            assert log.core.get_all() == [0, 1]
        async with await js.dstream(f"{name} log") as later:
            assert later.get_all() == [0, 1]


async def test_writes_whose_connection_is_cut_are_stored_once(fresh_server: NatsServer) -> None:
    with FaultProxy(fresh_server.port) as proxy:
        async with (
            connect(proxy.url, reconnect_timeout=60) as js,
            await js.dstream(new_name()) as log,
            await js.dkv(new_name()) as kv,
        ):
            for number in range(12):
                log.push(number)
                kv[f"{number}"] = number
                for _ in range(number):
                    await asyncio.sleep(0)  # Another turn: the messages are further on their way.
                proxy.cut()
                proxy.heal()
            await log.save()
            await kv.save()
            assert log.core.get_all() == list(range(12))
            assert kv.core.get_all_kv() == {f"{number}": number for number in range(12)}
            assert {kv.seq(key) for key in kv} == set(range(1, 13))


async def test_leaving_a_block_without_a_server_raises_what_is_lost(
    fresh_server: NatsServer, caplog: pytest.LogCaptureFixture
) -> None:
    names = new_name(), f"{new_name()} log"
    async with connect(fresh_server.url, request_timeout=1) as js:

        async def write_to_a_map() -> None:
            async with await js.dkv(names[0]) as kv:
                is_open.release()
                await away.wait()
                kv.update_many = 1
                kv.set_many({f"{number}": number for number in range(7)})

        async def write_to_a_log() -> None:
            async with await js.dstream(names[1]) as log:
                is_open.release()
                await away.wait()
                log.push(1, 2)

        async def fail_in_a_map() -> None:
            async with await js.dkv(names[0], no_cache=True) as kv:
                is_open.release()
                await away.wait()
                kv.a = 1
                raise KeyError("a")

        away, is_open = asyncio.Event(), asyncio.Semaphore(0)
        jobs = asyncio.gather(
            write_to_a_map(), write_to_a_log(), fail_in_a_map(), return_exceptions=True
        )
        for _ in range(3):
            await is_open.acquire()
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        away.set()
        of_map, of_log, of_block = await jobs
        await asyncio.to_thread(fresh_server.start)
    assert isinstance(of_map, UnsavedChangesError)
    assert (of_map.count, of_map.keys[:2]) == (8, ("update_many", "0"))
    assert f"DKV {names[0]} was closed with 8 unsaved keys: 'update_many', '0'," in str(of_map)
    assert "'3' and 3 more" in str(of_map)
    assert isinstance(of_log, UnsavedChangesError)
    assert f"DStream {names[1]} was closed with 2 unsaved messages" in str(of_log)
    assert isinstance(of_block, KeyError)
    errors = [each.name for each in caplog.records if "was closed with" in each.message]
    assert errors == ["natsstream.conat"] * 3


@pytest.mark.parametrize("is_deletion", [False, True], ids=["value", "deletion"])
async def test_a_late_copy_of_a_replaced_value_does_not_replace_the_newer_one(
    fresh_server: NatsServer, *, is_deletion: bool
) -> None:
    """One connection freezes with a message in it, and delivers it after the client left it."""
    with FaultProxy(fresh_server.port) as frozen, FaultProxy(fresh_server.port) as healthy:
        urls = [frozen.url, healthy.url]
        healthy.cut()
        connection = connect(urls, ping_interval=0.2, max_missed_pings=1, request_timeout=1)
        async with connection as js, await js.dkv(new_name()) as kv:
            assert frozen.connection_count == 1
            kv.a = "first"
            await kv.save()
            frozen.delay(600)  # A stalled proxy reads nothing, so it would not hold the message.
            if is_deletion:
                del kv.a
            else:
                kv.a = "late"
            await until(lambda: frozen.held_count > 0)
            kv.a = "newest"
            healthy.heal()
            await kv.save()
            assert healthy.connection_count == 1
            frozen.heal()
            await until(lambda: frozen.held_count == 0 and frozen.connection_count == 0)
            async with connect(fresh_server.url) as other, await other.dkv(kv.name) as theirs:
                assert theirs.a == "newest"


async def test_PR2_to_PR4_PC5_PC7_a_map_of_the_leader_works_again_after_a_restart(
    fresh_server: NatsServer,
) -> None:
    async with (
        connect(fresh_server.url, reconnect_timeout=60) as js,
        await js.akv(new_name()) as kv,
    ):
        await kv.set("x", 10)
        for number in range(2):
            if number:
                await asyncio.to_thread(fresh_server.kill)
            else:
                await asyncio.to_thread(fresh_server.stop, keep_store=True)
            await asyncio.to_thread(fresh_server.start)
            assert await kv.get("x") == 10


async def test_PC13_a_changefeed_goes_on_after_a_restart(fresh_server: NatsServer) -> None:
    async with (
        connect(fresh_server.url, reconnect_timeout=60) as js,
        await js.astream(new_name()) as log,
    ):
        feed = await log.changefeed()
        await log.publish(1)
        assert (await anext(feed)).mesg == 1
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        await asyncio.to_thread(fresh_server.start)
        await log.publish(2)
        assert (await anext(feed)).mesg == 2


async def test_CL1_CL2_CL3_clients_of_two_servers_of_a_cluster_have_the_same_logs(
    nats_cluster: NatsCluster,
) -> None:
    one_node, two_node = nats_cluster.servers[:2]
    async with opened("dstream", one_node, two_node, replicas=3) as [one, two]:
        one.push("hello")
        await one.save()
        await until(lambda: two.get_all() == ["hello"])
        two.push("from two")
        await two.save()
        await until(lambda: one.get_all() == ["hello", "from two"])
    async with connect(one_node.url) as js, connect(two_node.url) as other:
        for number in range(3):
            name = new_name()
            try:
                async with await other.dstream(name) as writing, await js.dstream(name) as reading:
                    writing.push(number)
                    await writing.save()
                    await until(lambda log=reading, number=number: log.get_all() == [number])
            finally:
                await remove(js, name)


async def test_CL4_maps_on_two_servers_of_a_cluster_are_distinct_and_merge(
    nats_cluster: NatsCluster,
) -> None:
    one_node, two_node = nats_cluster.servers[:2]
    async with opened("dkv", one_node, two_node, replicas=3) as [one, two]:
        assert one is not two
        assert (one.get_all(), two.get_all()) == ({}, {})
        one.x, two.y = 1, 2
        await until(lambda: one.get_all() == two.get_all() == {"x": 1, "y": 2})


@pytest.mark.parametrize("kind", ["dkv", "dstream"])
async def test_a_close_that_is_given_up_logs_what_is_lost(
    fresh_server: NatsServer, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    name = new_name()
    async with connect(fresh_server.url) as js:
        layer: Any = await getattr(js, kind)(name, no_cache=True)
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        if kind == "dkv":
            layer["a"] = 1
        else:
            layer.push(1)
        closing = asyncio.ensure_future(layer.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await layer.close()
        errors = [each.levelname for each in caplog.records if "with 1 unsaved" in each.message]
        assert errors == ["ERROR"]
