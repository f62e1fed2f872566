"""Promises of core streams that Conat's own tests do not look at, defects of Conat among them.

Source: core-stream.md sections 1, 5 and appendix B.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import UNDEFINED, connect
from natsstream.conat.writer import PublishItem, PublishOptions
from natsstream.errors import (
    ConfigError,
    MessageRuleError,
    MessageTooLargeError,
    NatsStreamError,
    RejectedError,
    WrongLastSequenceError,
)
from tests.support.clusters import connect_to
from tests.support.core_streams import (
    clients,
    clients_by,
    context_of,
    delete_foreign,
    heard,
    held,
    names_of,
    new_name,
    purge_foreign,
    remove,
    until,
    until_equal,
    until_kv,
)
from tests.support.dropping import Relay, dropping
from tests.support.eventually import eventually_async
from tests.support.raw_nats import request

if TYPE_CHECKING:
    from natsstream import CoreStream, JetStream
    from natsstream.conat.views import Change
    from natsstream.testing import NatsCluster, NatsNode

pytestmark = pytest.mark.asyncio

KEYS = ("", "*", ">", "a.b", "line\nbreak", "🎉", " ", "\x00", "k" * 10_000)


def item(mesg: object, **options: Any) -> PublishItem:
    return PublishItem(mesg, PublishOptions(**options))


def is_feed(line: bytes, _: bytes) -> bool:
    """Tell whether a frame is part of a core stream's feed."""
    return b" cn.f." in line


@asynccontextmanager
async def relayed(
    server: NatsNode, **options: Any
) -> AsyncGenerator[tuple[Relay, CoreStream, CoreStream]]:
    """Open a core stream for two clients, the second one over a relay that loses frames."""
    async with (
        dropping(server.port) as relay,
        clients_by([connect(server.url), connect(relay.url)], **options) as [one, two],
    ):
        yield relay, one, two


async def test_200_overwrites_of_one_key_are_200_changes_of_another_client(
    server: NatsNode,
) -> None:
    async with clients(server) as [one, two]:
        changes = heard(two)
        results = await one.set_kv_many([item(number, key="k") for number in range(200)])
        assert all(each.error is None for each in results)
        await until_kv(one, two, values={"k": 199})
        assert [each.mesg for each in changes] == list(range(200))
        assert [each.prev for each in changes] == [UNDEFINED, *range(199)]
        assert not any(each.is_conflated or each.is_removal for each in changes)
        assert one.length == two.length == 1


@pytest.mark.sampled_variants
@pytest.mark.parametrize("key", KEYS, ids=lambda key: ascii(key[:10]))
async def test_any_text_is_a_key(server: NatsNode, key: str) -> None:
    async with clients(server) as [one, two]:
        await one.set_kv(key, 1)
        await until_kv(two, values={key: 1})
        assert two.keys_kv() == [key]
        assert two.raw[0].key == key
        await two.delete_kv(key)
        await until_kv(one, two, values={})
        name = one.name
        third = await context_of(one).core_stream(name, no_cache=True)
        assert (third.length, third.keys_kv()) == (1, [])
        await third.close()


async def test_a_foreign_purge_converges(server: NatsNode) -> None:
    async with clients(server, look_every=0.1) as [one, two]:
        changes = heard(two)
        for number in range(10):
            await one.publish(number)
        await until_equal(two, values=list(range(10)))
        await purge_foreign(one, seq=8)
        await until_equal(one, two, values=[7, 8, 9])
        await purge_foreign(one)
        await until_equal(one, two, values=[])
        await one.publish("next")
        await until_equal(one, two, values=["next"])
        assert [each.seq for each in changes if each.is_removal] == list(range(1, 11))


@pytest.mark.parametrize("block", [b"bad\r\n\r\n", b"\r\n\r\n", b"NATS/9.9\r\nA: b\r\n\r\n"])
async def test_headers_that_are_none_stop_nobody(server: NatsNode, block: bytes) -> None:
    """The server stores them: such a message once kept the core stream from being opened."""
    async with clients(server) as [one, two]:
        await one.publish("before")
        subject = names_of(one).unkeyed
        await asyncio.to_thread(request, server.port, subject, b"\xa5value", headers=block)
        await one.publish("behind")
        values = ["before", b"\xa5value", "behind"]
        await until_equal(one, two, values=values)
        third = await context_of(one).core_stream(one.name, no_cache=True)
        assert third.get_all() == values
        assert third.headers(2) is None
        await third.close()


async def test_a_foreign_deletion_converges_and_names_its_key(server: NatsNode) -> None:
    """B2: Conat's deletions have no key."""
    async with clients(server, look_every=0.1) as [one, two]:
        changes = heard(two)
        await one.publish("first")
        await one.set_kv("k", "old")
        await one.publish("last")
        await until_equal(two, values=["first", "old", "last"])
        await delete_foreign(one, 2)
        await until_equal(one, two, values=["first", "last"])
        removal = changes[-1]
        assert (removal.is_removal, removal.key, removal.prev) == (True, "k", "old")
        assert removal.is_key_removed
        assert not two.has_kv("k")


async def test_a_foreign_deletion_in_a_full_stream_converges(server: NatsNode) -> None:
    """The eviction that the limit lets clients expect does not happen: the counts are equal."""
    async with clients(server, config={"max_msgs": 3}, look_every=0.1) as [one, two]:
        for number in range(3):
            await one.publish(number)
        await until_equal(two, values=[0, 1, 2])
        await delete_foreign(one, 2)
        await one.publish(3)
        await until_equal(one, two, values=[0, 2, 3])


async def test_deletions_of_another_client_have_the_key(server: NatsNode) -> None:
    """B2, by the announced way."""
    async with clients(server) as [one, two]:
        changes = heard(two)
        await one.set_kv("k", "v")
        await until_kv(two, values={"k": "v"})
        assert await one.delete(key="k") == [1]
        await until_kv(one, two, values={})
        assert [(each.key, each.is_removal) for each in changes] == [("k", False), ("k", True)]
        assert changes[1].mesg is UNDEFINED


async def test_a_hole_from_9_to_10_is_filled(server: NatsNode) -> None:
    """B1: Conat sorts the missing sequences as text, and never reads 9 and 10."""
    async with relayed(server) as (relay, one, two):
        changes = heard(two)
        for number in range(1, 9):
            await one.publish(number)
        await until_equal(two, values=list(range(1, 9)))
        relay.drop(is_feed, count=2)
        for number in range(9, 12):
            await one.publish(number)
        await until_equal(two, values=list(range(1, 12)))
        assert [each.seq for each in changes] == list(range(1, 12))
        assert len(relay.dropped) == 2


async def test_a_lost_last_message_is_found(server: NatsNode) -> None:
    async with relayed(server, look_every=0.1) as (relay, one, two):
        relay.drop(is_feed)
        await one.publish("x")
        await relay.wait_dropped()
        await until_equal(two, values=["x"])


async def test_a_write_whose_copy_is_lost_returns_with_the_message(server: NatsNode) -> None:
    async with relayed(server) as (relay, _, stream):
        relay.drop(is_feed)
        stored = await stream.publish("x")
        assert stream.get_all() == ["x"]
        assert stored is not None
        assert stored.time == stream.time(0)


async def test_setting_a_deleted_key_removes_its_tombstone(server: NatsNode) -> None:
    """B4."""
    async with clients(server) as [one, two]:
        await one.set_kv("k", 1)
        await one.delete_kv("k")
        assert one.length == 1
        assert one.headers(0) == {"CN-Tombstone": True}
        await one.set_kv("k", 2)
        await until_equal(one, two, values=[2])
        one.gc_kv()  # B5: Conat's throws when there is a tombstone.
        assert len(await held(one)) == 1


async def test_a_refused_message_evicts_nothing(server: NatsNode) -> None:
    """B6: Conat checks the size of the message after it has removed others."""
    config = {"max_msgs": 2, "max_msg_size": 50}
    async with clients(server, config=config) as [one, two]:
        await one.publish("a")
        await one.publish("b")
        with pytest.raises((RejectedError, MessageTooLargeError)):
            await one.publish("x" * 200_000)
        await until_equal(one, two, values=["a", "b"])


@pytest.mark.parametrize("clustered", [False, True], ids=["R1", "R3"])
async def test_previous_seq_of_a_key_without_value(
    clustered: bool,  # noqa: FBT001 - a parameter of the test
    request: pytest.FixtureRequest,
) -> None:
    """B11: 0 is a key that has none; Conat's server fails."""
    async with on(request, clustered=clustered) as [one, two]:
        with pytest.raises(WrongLastSequenceError):
            await one.set_kv("k", "x", previous_seq=7)
        first = await one.set_kv("k", 1, previous_seq=0)
        assert first is not None
        with pytest.raises(WrongLastSequenceError):
            await two.set_kv("k", 2, previous_seq=0)
        await one.delete_kv("k", previous_seq=first.seq)
        with pytest.raises(WrongLastSequenceError):
            await one.set_kv("k", 3, previous_seq=0)
        await one.set_kv("k", 3, previous_seq=first.seq + 1)
        await until_kv(one, two, values={"k": 3})


@pytest.mark.parametrize("clustered", [False, True], ids=["R1", "R3"])
async def test_a_retry_with_id_and_previous_seq_is_the_first_write(
    clustered: bool,  # noqa: FBT001 - a parameter of the test
    request: pytest.FixtureRequest,
) -> None:
    """One server looks at the expectation first and answers 10071, a cluster at the id."""
    async with on(request, clustered=clustered) as [one, two]:
        first = await one.set_kv("k", 1, previous_seq=0, msg_id="id")
        assert await two.set_kv("k", 1, previous_seq=0, msg_id="id") == first
        [again] = await two.set_kv_many([item(1, key="k", previous_seq=0, msg_id="id")])
        assert (again.error, again.stored) == (None, first)
        with pytest.raises(WrongLastSequenceError):
            await two.set_kv("k", 2, previous_seq=0, msg_id="another id")
        assert len(await held(one)) == 1


@pytest.mark.parametrize("clustered", [False, True], ids=["R1", "R3"])
async def test_publish_many_has_a_result_for_each_message(
    clustered: bool,  # noqa: FBT001 - a parameter of the test
    request: pytest.FixtureRequest,
) -> None:
    async with on(request, clustered=clustered) as [one, two]:
        results = await one.publish_many(
            [
                item("a"),
                item(1, key="k", previous_seq=0),
                item(2, key="k", previous_seq=99),
                item(1 << 70),
                item("b"),
                item(UNDEFINED),
                item("a", msg_id="id"),
                item("a", msg_id="id"),
            ]
        )
        assert [each.seq for each in results] == [1, 2, None, None, 3, 4, 5, 5]
        assert results[2].code == "wrong-last-sequence"
        assert isinstance(results[3].error, NatsStreamError)
        await until_equal(one, two, values=["a", 1, "b", None, "a"])


async def test_a_message_that_comes_twice_is_told_once(server: NatsNode) -> None:
    """B16."""
    async with clients(server) as [one, two]:
        names, js = names_of(one), context_of(one)
        changes = heard(two)
        async with js.core.subscribe(names.feed_filter) as feed:
            await one.publish("x")
            copy = await feed.next(timeout=5)
        assert copy is not None
        await js.core.publish(copy.subject, copy.data, headers=dict(copy.headers))
        await one.publish("y")
        await until_equal(one, two, values=["x", "y"])
        assert [each.mesg for each in changes] == ["x", "y"]


async def test_a_purged_history_is_not_missing(server: NatsNode) -> None:
    """B17: in Conat the first live message makes all earlier ones missing."""
    async with clients(server) as [one, two]:
        for number in range(5):
            await one.publish(number)
        await one.delete(all=True)
        third = await context_of(two).core_stream(one.name, no_cache=True)
        changes = heard(third)
        await one.publish("x")
        await until_equal(third, values=["x"])
        assert [each.seq for each in changes] == [6]
        await third.close()


async def test_deletions_while_a_client_was_away_reach_it(server: NatsNode) -> None:
    """B18."""
    async with relayed(server) as (relay, one, two):
        changes = heard(two)
        for number in range(6):
            await one.set_kv(f"k{number}", number)
        await until_equal(two, values=list(range(6)))
        relay.drop(is_feed, count=1_000)
        await one.delete(seq=2)
        await one.delete(seqs=[4, 5])
        await one.set_kv("k0", "a")
        await one.set_kv("k0", "b")
        relay.drop(is_feed, count=0)
        await relay.close()
        await until_kv(two, values={"k0": "b", "k2": 2, "k5": 5})
        await until_equal(one, two, values=[2, 5, "b"])
        later = [(each.seq, each.is_removal, each.is_conflated) for each in changes[6:]]
        assert sorted(later) == [
            (2, True, False),
            (4, True, False),
            (5, True, False),
            (8, False, True),
        ]


async def test_older_messages_are_loaded_on_demand(server: NatsNode) -> None:
    async with clients(server, 1) as [one]:
        for number in range(1, 10):
            await one.publish(number)
        js = context_of(one)
        async with await js.core_stream(one.name, start_seq=7) as late:
            assert (late.start_seq, late.get_all()) == (7, [7, 8, 9])
            changes = heard(late)
            await late.load(start_seq=8)
            assert late.start_seq == 7
            await late.load(start_seq=5)
            assert (late.start_seq, late.get_all()) == (5, [5, 6, 7, 8, 9])
            assert [each.seq for each in changes] == [5, 6]
            await late.load(start_seq=0, no_emit=True)
            assert late.get_all() == list(range(1, 10))
            assert len(changes) == 2
            await asyncio.gather(late.load(start_seq=1), one.delete(last_seq=3))
            await until_equal(late, values=list(range(4, 10)))


async def test_loads_at_the_same_time_load_each_message_once(server: NatsNode) -> None:
    async with clients(server, 1) as [one]:
        for number in range(1, 10):
            await one.publish(number)
        async with await context_of(one).core_stream(one.name, start_seq=9) as late:
            changes = heard(late)
            await asyncio.gather(*(late.load(start_seq=first) for first in (7, 1, 4, 1)))
            assert late.get_all() == list(range(1, 10))
            assert sorted(each.seq for each in changes) == list(range(1, 9))


async def test_a_start_behind_the_end_waits_for_its_sequence(server: NatsNode) -> None:
    async with clients(server, 1) as [one]:
        await one.publish("old")
        async with await context_of(one).core_stream(one.name, start_seq=3) as late:
            await late.config()
            await one.publish("skipped")
            await one.publish("wanted")
            await until_equal(late, values=["wanted"])
            await late.load(start_seq=0)
            assert late.get_all() == ["old", "skipped", "wanted"]


async def test_positions_and_slices_are_those_of_a_list(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        values = list("abcde")
        for each in values:
            await stream.publish(each)
        assert stream[-1] == stream.messages[-1] == stream.get(-1) == "e"
        assert stream[1:4] == stream.messages[1:4] == values[1:4]
        assert stream[::-2] == values[::-2]
        assert [each.seq for each in stream.raw[-2:]] == [4, 5]
        assert stream.seq(-1) == 5
        assert stream.get(5) is UNDEFINED
        assert stream.get(-6, "none") == "none"
        for index in (5, -6):
            with pytest.raises(IndexError):
                stream[index]
        assert (stream.seq(5), stream.time(9), stream.headers(-9)) == (None, None, None)


async def test_undefined_deletes_a_key_and_null_is_a_value(server: NatsNode) -> None:
    """B3: the deletion is awaited, and its error raised."""
    async with clients(server) as [one, two]:
        await one.set_kv("k", None)
        await until_kv(two, values={"k": None})
        assert two.has_kv("k")
        with pytest.raises(WrongLastSequenceError):
            await one.set_kv("k", UNDEFINED, previous_seq=99)
        assert await one.publish(UNDEFINED, key="k") is not None
        assert one.get_kv("k") is UNDEFINED
        assert one.get_kv("k", 5) == 5
        await until_kv(two, values={})
        with pytest.raises(ConfigError):
            await one.delete()


async def test_a_handler_that_raises_stops_nothing(
    server: NatsNode, caplog: pytest.LogCaptureFixture
) -> None:
    async with clients(server) as [one, two]:

        def fail(_: Change) -> None:
            raise ValueError("a bug of the user")

        two.on("change", fail)
        changes = heard(two)
        await one.publish("x")
        await one.publish("y")
        await until_equal(two, values=["x", "y"])
        assert [each.mesg for each in changes] == ["x", "y"]
    assert "a bug of the user" in caplog.text


async def test_a_handler_may_publish(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        tasks: list[asyncio.Task[Any]] = []

        def answer(change: Change) -> None:
            assert two.messages[-1] == change.mesg
            if change.mesg < 5:
                tasks.append(asyncio.ensure_future(two.publish(change.mesg + 1)))

        two.on("change", answer)
        await one.publish(0)
        await until_equal(one, two, values=list(range(6)))
        await asyncio.gather(*tasks)


async def test_a_ttl_that_the_stream_does_not_keep_is_refused(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        with pytest.raises(MessageRuleError, match="ttl of 500 ms") as caught:
            await stream.publish("stays for ever", ttl=500)
        assert "allow_msg_ttl" in caught.value.hint
        [result] = await stream.publish_many([PublishItem("x", PublishOptions(ttl=500))])
        assert isinstance(result.error, MessageRuleError)
        wrong_type: Any = timedelta(seconds=1)
        with pytest.raises(ConfigError) as caught_unit:
            await stream.publish("x", ttl=wrong_type)
        assert "milliseconds" in caught_unit.value.hint
        await stream.set_kv("k", 1)
        await stream.delete_kv("k")  # Its tombstone stays, as nothing may expire.
        assert stream.keys_kv() == []
        await stream.config({"allow_msg_ttl": True})
        await stream.publish("goes", ttl=50)
        await until(lambda: "goes" not in stream.get_all())


async def test_a_message_with_a_ttl_expires_at_its_moment(server: NatsNode) -> None:
    async with clients(server, config={"allow_msg_ttl": True}) as [one, two]:
        changes = heard(two)
        await one.publish("stays")
        await one.publish("goes", ttl=50, key="k")
        await until(lambda: len(changes) == 3)
        await until_equal(one, two, values=["stays"])
        assert [each.is_removal for each in changes] == [False, False, True]
        assert changes[-1].key == "k"
        seen = changes[-1].raw.time

        async def is_gone() -> bool:
            return len(await held(one)) == 1

        await eventually_async(is_gone)
        assert seen == changes[1].raw.time
        await one.config()
        assert one.get_all() == ["stays"]


async def test_closing_while_publishing_ends_the_writes(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        writes = [asyncio.ensure_future(stream.publish(number)) for number in range(50)]
        await asyncio.sleep(0)
        await stream.close()
        await stream.close()
        ended = await asyncio.gather(*writes, return_exceptions=True)
        assert all(not isinstance(each, BaseException) for each in ended), ended
        assert len(await held(stream)) == 50


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 8, 13, 21])
async def test_opening_that_is_cancelled_leaves_nothing(js: JetStream, steps: int) -> None:
    """It is cancelled after so many turns of the loop, with another user of the same stream."""
    name = new_name()
    await js.account()
    tasks = len(asyncio.all_tasks())
    opening = asyncio.ensure_future(js.core_stream(name))
    other = asyncio.ensure_future(js.core_stream(name))
    for _ in range(steps):
        await asyncio.sleep(0)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)
    stream = await other
    await stream.publish("x")
    if not opening.cancelled():
        await opening.result().close()
    await stream.close()
    await remove(js, name)
    await until(lambda: len(asyncio.all_tasks()) == tasks)


async def test_users_that_are_cancelled_together_all_end(js: JetStream) -> None:
    name = new_name()
    tasks = len(asyncio.all_tasks())
    users = [asyncio.ensure_future(js.core_stream(name)) for _ in range(3)]
    await asyncio.sleep(0)
    for each in users:
        each.cancel()
    await asyncio.gather(*users, return_exceptions=True)
    assert all(each.cancelled() for each in users)
    await remove(js, name)
    await until(lambda: len(asyncio.all_tasks()) == tasks)


async def test_clients_that_create_a_stream_together_share_it(server: NatsNode) -> None:
    """Their configurations differ: the slower one changes the stream that the other has made."""
    name = new_name()
    async with connect(server.url) as js, connect(server.url) as other:
        try:
            one, two, three = await asyncio.gather(
                js.core_stream(name, config={"max_msgs": 5}),
                other.core_stream(name, config={"max_age": 60_000}),
                other.core_stream(name),
            )
            await one.publish("x")
            await until_equal(one, two, three, values=["x"])
            for each in (one, two, three):
                await each.close()
        finally:
            await remove(js, name)


def on(request: pytest.FixtureRequest, *, clustered: bool) -> Any:
    """Return two clients on one server, or on a cluster with three replicas."""
    if clustered:
        cluster: NatsCluster = request.getfixturevalue("nats_cluster")
        return clients_by([connect_to(cluster), connect_to(cluster)], replicas=3)
    server: NatsNode = request.getfixturevalue("server")
    return clients(server)


async def test_deleting_what_is_gone_removes_it_here(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        for number in range(4):
            await one.publish(number)
        await delete_foreign(one, 3)
        assert await one.delete(seqs=[2, 3, 99]) == [2]
        await until_equal(one, two, values=[0, 3])
        assert await one.delete(seq=3) == []
        assert await one.delete(last_index=-1) == []
        assert await one.delete(last_index=5) == [1, 4]
        await one.publish("y")
        await until_equal(one, two, values=["y"])


async def test_a_failure_ends_readers_and_calls_with_its_error(
    server: NatsNode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A fault of ours is no silence: it is logged, raised, and nothing waits for ever."""
    async with clients(server) as [one, two]:
        reading = asyncio.ensure_future(anext(two.changes()))
        await asyncio.sleep(0)

        def broken(*_: object) -> None:
            raise RuntimeError("a bug of ours")

        monkeypatch.setattr("natsstream.conat.feed.Announcement.from_json", broken)
        await one.publish("x")
        await one.delete(seq=1)
        assert (await reading).mesg == "x"
        changes: CoreStream = two

        async def has_failed() -> bool:
            try:
                changes.get_all()
            except NatsStreamError as error:
                return "a bug of ours" in error.detail
            return False

        await eventually_async(has_failed)
    assert "a bug of ours" in caplog.text
