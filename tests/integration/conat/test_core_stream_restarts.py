"""Conat's tests of core streams whose server is away, restarts or loses connections.

Source: Conat backend/conat/test/core/core-stream-break.test.ts and core-stream-recovery.test.ts,
persist/persist-client*.test.ts and persist-dstream.test.ts; core-stream.md section 6.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.conat.codes import conat_code
from natsstream.errors import ConnectionLostError, NatsStreamError
from natsstream.testing import FaultProxy
from tests.support.core_streams import (
    clients,
    clients_by,
    context_of,
    heard,
    names_of,
    new_name,
    until,
    until_equal,
)
from tests.support.eventually import eventually_async
from tests.support.streams import server_subscriptions

if TYPE_CHECKING:
    from natsstream import CoreStream, JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


async def publish_eventually(stream: CoreStream, value: object, msg_id: str) -> None:
    """Publish once a server takes it; the id stores it once."""

    async def is_stored() -> bool:
        try:
            await stream.publish(value, msg_id=msg_id, timeout=1)
        except NatsStreamError as error:
            if conat_code(error) not in (408, 503):
                raise
            return False
        return True

    await eventually_async(is_stored)


async def test_CB1_a_server_that_is_down_answers_nothing(fresh_server: NatsServer) -> None:
    async with clients(fresh_server, 1) as [stream]:
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        with pytest.raises(NatsStreamError) as caught:
            await stream.publish("x", timeout=0.2)
        assert conat_code(caught.value) in (408, 503)
        await asyncio.to_thread(fresh_server.start)


async def test_CB2_a_stream_is_made_once_the_server_has_started(fresh_server: NatsServer) -> None:
    async with connect(fresh_server.url) as js:
        await asyncio.to_thread(fresh_server.restart)
        async with await js.core_stream(new_name(), ephemeral=True) as stream:
            await stream.publish("x")
            assert stream.get_all() == ["x"]


async def test_CB3_opening_waits_for_the_server(fresh_server: NatsServer) -> None:
    name = new_name()
    async with connect(fresh_server.url) as js:
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        opening = asyncio.ensure_future(js.core_stream(name))
        done, _ = await asyncio.wait([opening], timeout=0.3)
        assert not done
        await asyncio.to_thread(fresh_server.start)
        async with await opening as stream:
            await publish_eventually(stream, "x", "1")
            assert stream.get_all() == ["x"]


async def test_opening_ends_when_no_server_comes_back_in_time(fresh_server: NatsServer) -> None:
    """A stream that is open already survives the same outage."""
    async with (
        connect(fresh_server.url, reconnect_timeout=1, request_timeout=0.5) as js,
        await js.core_stream("open", ephemeral=False) as stream,
    ):
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        openers = (js.core_stream, js.dstream, js.dkv, js.dko, js.akv, js.astream)
        began = asyncio.get_running_loop().time()
        ended = await asyncio.gather(
            *(each("log/x") for each in openers), js.inventory(), return_exceptions=True
        )
        assert asyncio.get_running_loop().time() - began < 10
        for error in ended:
            assert isinstance(error, ConnectionLostError)
        assert "core stream 'hub/log/x': " in str(ended[0])
        assert "core stream 'hub/log/x': " in str(ended[4])
        await asyncio.to_thread(fresh_server.start)
        await publish_eventually(stream, "x", "1")
        assert stream.get_all() == ["x"]
        async with await js.core_stream("log/x") as later:
            assert later.get_all() == []


async def test_CB5_publishing_works_again_after_a_restart(fresh_server: NatsServer) -> None:
    async with clients(fresh_server) as [one, two]:
        await one.publish("x")
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        publishing = asyncio.ensure_future(publish_eventually(one, "y", "1"))
        await asyncio.to_thread(fresh_server.start)
        await publishing
        await until_equal(one, two, values=["x", "y"])


async def test_CR1_an_open_stream_has_one_feed(fresh_server: NatsServer) -> None:
    name = new_name()
    async with clients_by([connect(fresh_server.url, name=name)]) as [stream]:
        assert await feeds(fresh_server, name, stream) == 1


@pytest.mark.parametrize("times", [1, 2], ids=["CR2", "CR3"])
async def test_CR2_CR3_a_restart_makes_no_other_feed(fresh_server: NatsServer, times: int) -> None:
    name = new_name()
    async with clients_by([connect(fresh_server.url, name=name)]) as [stream]:
        for number in range(times):
            await asyncio.to_thread(fresh_server.restart)
            await publish_eventually(stream, number, str(number))
        assert stream.get_all() == list(range(times))
        assert await feeds(fresh_server, name, stream) == 1


async def feeds(server: NatsServer, name: str, stream: CoreStream) -> int:
    """Return how many subscriptions there are beside the inbox of the connection."""
    await stream.inventory()
    return server_subscriptions(server, name) - 1


async def test_PC1_a_write_returns_its_sequence_and_the_time_of_the_server(js: JetStream) -> None:
    async with await js.astream(new_name()) as log:
        stored = [await log.publish(number) for number in range(2)]
        assert [each.seq for each in stored if each is not None] == [1, 2]
        held = [message async for message in log.get_all()]
        assert [each.time for each in held] == [each.time for each in stored if each is not None]
        assert held[0].time <= held[1].time


async def test_PC2_a_message_is_read_by_its_sequence_with_its_headers(js: JetStream) -> None:
    async with await js.astream(new_name()) as log:
        await log.publish("x", headers={"foo": {"bar": 10}})
        await log.publish("y")
        message = await log.get_message(1)
        assert message is not None
        assert (message.mesg, message.seq, message.headers["foo"]) == ("x", 1, {"bar": 10})


async def test_PC3_a_key_is_read_by_another_client(fresh_server: NatsServer) -> None:
    async with clients(fresh_server) as [one, two]:
        await one.set_kv("key", {"foo": "bar"}, headers={"a": [1, {"b": None}]})
        await until(lambda: two.get_kv("key", None) == {"foo": "bar"})
        assert two.headers_kv("key") == {"a": [1, {"b": None}]}


async def test_PC4_a_read_fails_while_the_server_is_away(fresh_server: NatsServer) -> None:
    async with (
        connect(fresh_server.url, request_timeout=0.5) as js,
        await js.astream(new_name()) as log,
    ):
        await log.publish("x")
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        with pytest.raises(NatsStreamError) as caught:
            await log.get(1)
        assert conat_code(caught.value) in (408, 503)
        await asyncio.to_thread(fresh_server.start)


async def test_PC5_the_read_works_again_after_the_restart(fresh_server: NatsServer) -> None:
    async with (
        connect(fresh_server.url, request_timeout=0.5) as js,
        await js.astream(new_name()) as log,
    ):
        await log.publish("x", headers={"foo": "bar"})
        await asyncio.to_thread(fresh_server.restart)

        async def is_read() -> bool:
            with suppress(NatsStreamError):
                return (await log.get(1), (await log.headers(1) or {})["foo"]) == ("x", "bar")
            return False

        await eventually_async(is_read)


async def test_PC6_an_ephemeral_stream_is_empty_after_a_restart(fresh_server: NatsServer) -> None:
    async with clients(fresh_server, ephemeral=True) as [one, two]:
        changes = heard(two)
        await one.publish("x")
        await until_equal(two, values=["x"])
        await asyncio.to_thread(fresh_server.restart)
        await until_equal(one, two, values=[])
        await publish_eventually(one, "y", "2")
        await until_equal(one, two, values=["y"])
    assert [(each.seq, each.is_removal) for each in changes] == [(1, False), (1, True), (1, False)]


async def test_PC7_messages_outlive_broken_connections(fresh_server: NatsServer) -> None:
    with FaultProxy(fresh_server.port) as proxy:
        async with clients_by([connect(proxy.url)], ephemeral=True) as [stream]:
            await stream.publish("x")
            proxy.reset()
            await publish_eventually(stream, "y", "2")
            assert stream.get_all() == ["x", "y"]


async def test_PC8_a_changefeed_begins_with_what_comes_after_it(js: JetStream) -> None:
    async with await js.astream(new_name()) as log:
        await log.publish("before")
        async with await log.changefeed() as feed:
            reading = asyncio.ensure_future(anext(feed))
            done, _ = await asyncio.wait([reading], timeout=0.1)
            assert not done
            await log.publish("after")
            assert (await reading).mesg == "after"


async def test_PC9_a_change_has_sequence_key_and_headers(fresh_server: NatsServer) -> None:
    async with clients(fresh_server, 1) as [stream]:
        changes = heard(stream)
        await stream.publish("v", key="k", headers={"foo": "bar"}, msg_id="id")
        [change] = changes
        assert (change.seq, change.key, change.mesg, change.msg_id) == (1, "k", "v", "id")
        assert change.raw.headers == {"foo": "bar"}


async def test_PC10_a_change_of_another_client_comes_alone(fresh_server: NatsServer) -> None:
    async with clients(fresh_server) as [one, two]:
        await one.publish("a")
        await until_equal(two, values=["a"])
        changes = two.changes()
        await one.publish("b")
        change = await anext(changes)
        assert (change.seq, change.mesg) == (2, "b")


async def test_PC12_a_write_fails_while_the_server_is_away_and_works_later(
    fresh_server: NatsServer,
) -> None:
    async with clients(fresh_server) as [one, two]:
        await one.set_kv("key", "one")
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        with pytest.raises(NatsStreamError):
            await one.set_kv("key", "two", msg_id="id", timeout=0.2)
        await asyncio.to_thread(fresh_server.start)

        async def is_set() -> bool:
            with suppress(NatsStreamError):
                await one.set_kv("key", "two", msg_id="id", timeout=1)
                return True
            return False

        await eventually_async(is_set)
        await until(lambda: one.get_all() == two.get_all() == ["two"])


async def test_PC13_changes_go_on_after_a_restart(fresh_server: NatsServer) -> None:
    async with clients(fresh_server) as [one, two]:
        changes = two.changes()
        await one.publish("a")
        assert (await anext(changes)).mesg == "a"
        await asyncio.to_thread(fresh_server.restart)
        await publish_eventually(one, "b", "1")
        assert (await anext(changes)).mesg == "b"


async def test_PR1_values_are_set_and_read(fresh_server: NatsServer) -> None:
    async with clients(fresh_server) as [one, two]:
        await one.set_kv("test", "one")
        await until(lambda: two.get_kv("test", None) == "one")
        assert (one.get_kv("test"), one.seq_kv("test")) == ("one", two.seq_kv("test"))


@pytest.mark.parametrize("what", ["connections", "server", "both"], ids=["PR2", "PR3", "PR4"])
async def test_PR2_PR3_PR4_values_outlive_restarts(fresh_server: NatsServer, what: str) -> None:
    with FaultProxy(fresh_server.port) as proxy:
        async with clients_by([connect(proxy.url)]) as [stream]:
            await stream.set_kv("test", "one")
            if what != "server":
                proxy.cut()
            if what != "connections":
                await asyncio.to_thread(fresh_server.kill)
                await asyncio.to_thread(fresh_server.start)
                proxy.target_port = fresh_server.port
            proxy.heal()
            await publish_eventually(stream, "x", "1")
            assert stream.get_kv("test") == "one"
            assert stream.get_all() == ["one", "x"]


async def test_PD1_PD2_a_stream_is_opened_anew_after_closing(fresh_server: NatsServer) -> None:
    name = new_name()
    async with connect(fresh_server.url) as js:
        stream = await js.core_stream(name)
        await stream.publish("x")
        await stream.close()
        again = await js.core_stream(name)
        assert again is not stream
        assert again.get_all() == ["x"]
        await again.close()


async def test_opening_and_waits_end_with_the_connection(fresh_server: NatsServer) -> None:
    """Nothing retries for ever on a connection that was closed for good."""
    async with connect(fresh_server.url) as js:
        stream = await js.core_stream("a")
        changes = stream.changes()
        reading = asyncio.ensure_future(anext(changes))
        await asyncio.to_thread(fresh_server.stop, keep_store=True)
        opening = asyncio.ensure_future(js.core_stream("b"))
        settling = asyncio.ensure_future(stream.config())
        await asyncio.wait([opening], timeout=0.2)
        await js.close()
        ended = await asyncio.gather(reading, opening, settling, return_exceptions=True)
        assert all(isinstance(each, NatsStreamError) for each in ended), ended
        with pytest.raises(NatsStreamError):
            await stream.publish("x")
        await stream.close()
        await asyncio.to_thread(fresh_server.start)


async def test_a_stream_that_is_deleted_is_made_anew_empty(fresh_server: NatsServer) -> None:
    async with clients(fresh_server) as [one, two]:
        changes = heard(two)
        for number in range(3):
            await one.publish(number)
        await until_equal(two, values=[0, 1, 2])
        await context_of(one).streams.delete(names_of(one).stream)
        await one.config()
        await one.publish("new")
        await until_equal(one, two, values=["new"])
        assert (one.seq(0), two.seq(0)) == (1, 1)
        assert [each.seq for each in changes] == [1, 2, 3, 1, 2, 3, 1]
        assert [each.is_removal for each in changes] == [False] * 3 + [True] * 3 + [False]


async def test_closing_ends_writes_that_wait_and_readers(fresh_server: NatsServer) -> None:
    """The server answers nothing: the writes end with the connection's own deadline."""
    with FaultProxy(fresh_server.port) as proxy:
        async with connect(proxy.url, request_timeout=1) as js:
            stream = await js.core_stream("a")
            reading = asyncio.ensure_future(anext(stream.changes(), None))
            await stream.publish("x")
            proxy.stall()
            writes = [asyncio.ensure_future(stream.publish(number)) for number in range(3)]
            settling = asyncio.ensure_future(stream.config())
            await asyncio.wait(writes, timeout=0.1)
            await stream.close()
            ended = await asyncio.gather(*writes, return_exceptions=True)
            assert all(isinstance(each, NatsStreamError) for each in ended)
            await settling
            assert await reading is not None
            proxy.heal()
