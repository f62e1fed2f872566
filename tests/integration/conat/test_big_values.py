"""Values that do not fit into a message: chunks in a stream of their own, on a real server.

Source: core-stream.md sections 5.8 and 6; Conat backend/conat/test, the rows named in the tests.
"""

# The tests hold back a reader or an ack, which no public call does.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import UNDEFINED, PublishItem, PublishOptions, connect
from natsstream.conat import blobs
from natsstream.conat.names import StreamNames
from natsstream.conat.reconcile import Doubt
from natsstream.errors import (
    CodecError,
    RejectedError,
    RequestTimeoutError,
    StreamNotFoundError,
    WrongLastSequenceError,
)
from natsstream.testing import NatsServer
from tests.support import conat_layers as layers
from tests.support.core_streams import (
    clients,
    context_of,
    heard,
    held,
    names_of,
    new_name,
    purge_foreign,
    until,
    until_equal,
    until_kv,
)
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Iterator

    from natsstream import CoreStream, JetStream
    from natsstream.conat.headers import Blob
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

MAX_PAYLOAD = 1 << 20
# Conat's own tests have values of 1.5 times that size.
BIG = b"\0\xff" * (3 * MAX_PAYLOAD // 4)
OTHER = b"\1" * len(BIG)


@pytest.fixture(scope="module")
def server() -> Iterator[NatsNode]:
    """A server with the usual limit; that of the other tests takes larger messages."""
    with NatsServer(max_payload_bytes=MAX_PAYLOAD) as server:
        yield server


async def big_values(js: JetStream, names: StreamNames) -> set[str]:
    """Return the subjects of all chunks that the server holds."""
    with suppress(StreamNotFoundError):
        stream = await js.streams.get(names.blob_stream)
        return {each.subject for each in await stream.subjects()}
    return set()


async def stored(stream: CoreStream) -> set[str]:
    return await big_values(context_of(stream), names_of(stream))


async def orphan(stream: CoreStream) -> None:
    """Store chunks as a writer that was killed before it named them."""
    names = names_of(stream)
    chunks = (await context_of(stream).streams.get(names.blob_stream)).chunks
    await chunks.put(names.blob("orphan"), b"x" * 1_000)


async def until_stored(stream: CoreStream, count: int) -> None:
    async def is_so() -> bool:
        return len(await stored(stream)) == count

    await eventually_async(is_so)


@pytest.mark.smoke
async def test_a_value_of_16_MB_is_the_same_for_both_clients(server: NatsNode) -> None:
    value = {"bytes": secrets.token_bytes(16 << 20), "text": "x"}
    async with clients(server) as [one, two]:
        published = await one.publish(value, headers={"a": 1}, timeout=30)
        assert published is not None
        assert one[0] == value
        await until_equal(two, values=[value])
        assert two.headers(0) == {"a": 1}
        assert (published.seq, two.seq(0)) == (1, 1)
        assert published.time == two.time(0)
        assert len((await held(one))[0].data) == 0


async def test_sizes_count_the_whole_value(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        await stream.publish(BIG)
        assert stream.stats().bytes == len(stream.raw[0].raw) > len(BIG)
        inventory = await stream.inventory()
        assert (inventory.count, inventory.bytes) == (1, stream.stats().bytes)
        await stream.config({"max_msg_size": len(BIG)})
        with pytest.raises(RejectedError, match="max_msg_size"):
            await stream.publish(BIG)
        assert len(await stored(stream)) == 1


async def test_no_stream_of_chunks_is_made_for_small_values(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        await stream.publish(b"x" * (MAX_PAYLOAD - 70_000))
        with pytest.raises(StreamNotFoundError):
            await context_of(stream).streams.get(names_of(stream).blob_stream)


@pytest.mark.parametrize("ephemeral", [True, False])
async def test_chunks_are_kept_as_their_messages_are(server: NatsNode, *, ephemeral: bool) -> None:
    async with clients(server, 1, ephemeral=ephemeral) as [stream]:
        await stream.publish(BIG)
        js, names = context_of(stream), names_of(stream)
        core = (await js.streams.get(names.stream)).cached.config
        chunks = (await js.streams.get(names.blob_stream)).cached.config
        assert (chunks.storage, chunks.replicas) == (core.storage, core.replicas)
        assert chunks.storage == ("memory" if ephemeral else "file")


async def test_BI3_a_big_value_of_a_log_is_there_after_it_is_opened_again(
    server: NatsNode,
) -> None:
    async with layers.opened("dstream", server) as [log]:
        log.publish(BIG)
        assert log.get_all() == [BIG]
        await log.save()
        async with layers.opened("dstream", server, name=log.name) as [other]:
            assert other.get_all() == [BIG]


async def test_BI5_a_big_value_of_a_map_is_there_for_others(server: NatsNode) -> None:
    async with layers.opened("dkv", server, server) as [one, two]:
        one.set("key", BIG)
        await one.save()
        assert one.get("key") == BIG
        await layers.until(lambda: two.get("key") == BIG)


async def test_AK10_a_big_text_is_set_and_read_without_loading(server: NatsNode) -> None:
    text = "z" * len(BIG)
    async with layers.opened("akv", server, server) as [one, two]:
        await one.set("key", text)
        assert await one.get("key") == await two.get("key") == text
        assert await two.keys() == ["key"]
        js, names = two._leader._js, StreamNames(f"hub/{one.name}")
        assert len(await big_values(js, names)) == 1
        await two.set("key", "small")
        assert await big_values(js, names) == set()
        await one.set("key", BIG)
        await one.delete("key")
        assert await one.get("key") is UNDEFINED
        assert await big_values(js, names) == set()


async def test_big_values_of_an_unloaded_log_are_read_in_order_and_deleted(
    server: NatsNode,
) -> None:
    async with layers.opened("astream", server) as [log]:
        for each in (1, BIG, 2):
            await log.publish(each)
        assert [each.mesg async for each in log.get_all()] == [1, BIG, 2]
        js, names = log._leader._js, StreamNames(f"hub/{log.name}")
        await log.publish(OTHER)
        assert await log.delete(seq=2) == 1
        assert len(await big_values(js, names)) == 1
        assert await log.delete(last_seq=3) == 2
        assert len(await big_values(js, names)) == 1
        assert await log.delete(all=True) == 1
        assert await big_values(js, names) == set()


async def test_KO8_a_big_field_of_an_object_is_saved(server: NatsNode) -> None:
    async with layers.opened("dko", server, server) as [one, two]:
        value = {"a": BIG[: 13 * MAX_PAYLOAD // 10], "b": 1}
        one.set("object", value)
        await one.save()
        await layers.until(lambda: two.get("object") == value)


async def test_big_values_keep_their_place_among_small_ones(server: NatsNode) -> None:
    values = [1, BIG, 2, OTHER, 3]
    async with clients(server) as [one, two]:
        changes = heard(two)
        for each in values:
            await one.publish(each)
        await until(lambda: len(changes) == len(values))
        assert [each.mesg for each in changes] == one.get_all() == two.get_all() == values


async def test_many_messages_are_published_with_big_ones_in_order(server: NatsNode) -> None:
    async with clients(server) as [one, two]:
        wrong = PublishOptions(key="k", previous_seq=99)
        items = [PublishItem(1), PublishItem(BIG), PublishItem(OTHER, wrong), PublishItem(2)]
        results = await one.publish_many(items)
        assert [each.seq for each in results] == [1, 2, None, 3]
        assert results[2].code == "wrong-last-sequence"
        await until_equal(one, two, values=[1, BIG, 2])
        assert len(await stored(one)) == 1


async def test_a_key_that_is_written_twice_in_one_call_keeps_one_big_value(
    server: NatsNode,
) -> None:
    async with clients(server, 1) as [stream]:
        options = PublishOptions(key="k")
        await stream.set_kv_many([PublishItem(BIG, options), PublishItem(OTHER, options)])
        assert stream.get_all_kv() == {"k": OTHER}
        assert len(await stored(stream)) == 1


@pytest.mark.parametrize("value", [OTHER, "small", UNDEFINED], ids=["big", "small", "tombstone"])
async def test_overwriting_a_big_value_removes_its_chunks(server: NatsNode, value: Any) -> None:
    async with clients(server) as [one, two]:
        await one.set_kv("k", BIG)
        await until_kv(two, values={"k": BIG})
        [before] = await stored(one)
        await two.set_kv("k", value)
        after = await stored(one)
        assert before not in after
        assert len(after) == (1 if value is OTHER else 0)
        await until_kv(one, two, values={} if value is UNDEFINED else {"k": value})


@pytest.mark.parametrize("how", [{"all": True}, {"seq": 2}, {"seqs": [2, 3]}, {"last_seq": 2}])
async def test_deleting_big_messages_removes_their_chunks(
    server: NatsNode, how: dict[str, Any]
) -> None:
    async with clients(server) as [one, two]:
        for each in ("x", BIG, "y"):
            await one.publish(each)
        await until_equal(two, values=["x", BIG, "y"])
        await two.delete(**how)
        assert await stored(one) == set()
        await until_equal(one, values=two.get_all())


async def test_a_cancelled_write_leaves_no_chunks_and_no_message(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        await stream.publish(BIG)
        writing = asyncio.create_task(stream.publish(b"x" * (64 << 20)))
        await until_stored(stream, 2)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert len(await stored(stream)) == 1
        await stream.publish("after")
        assert stream.get_all() == [BIG, "after"]


async def test_a_lost_compare_and_set_leaves_no_chunks(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        first = await stream.set_kv("k", BIG, previous_seq=0)
        assert first is not None
        with pytest.raises(WrongLastSequenceError):
            await stream.set_kv("k", OTHER, previous_seq=0)
        assert len(await stored(stream)) == 1
        assert stream.get_kv("k") == BIG
        await stream.set_kv("k", OTHER, previous_seq=first.seq)
        assert stream.get_kv("k") == OTHER


async def test_a_duplicate_returns_the_first_and_leaves_its_chunks_alone(
    server: NatsNode,
) -> None:
    async with clients(server) as [one, two]:
        first = await one.publish(BIG, msg_id="id")
        again = await two.publish(OTHER, msg_id="id")
        assert first == again
        assert await one.publish(OTHER, msg_id="id") is None
        [result] = await two.publish_many([PublishItem(OTHER, PublishOptions(msg_id="id"))])
        assert result.stored == first
        assert len(await stored(one)) == 1
        await until_equal(one, two, values=[BIG])


async def test_chunks_of_killed_writers_are_swept_when_the_stream_is_opened(
    server: NatsNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with clients(server, 1) as [stream]:
        await stream.publish(BIG)
        await orphan(stream)
        async with connect(server.url) as js, await js.core_stream(stream.name) as young:
            assert young.get_all() == [BIG]
            assert len(await stored(stream)) == 2
        monkeypatch.setattr(blobs, "GRACE_S", 0.0)
        async with connect(server.url) as js, await js.core_stream(stream.name) as later:
            await until_stored(stream, 1)
            assert later.get_all() == [BIG]
        async with connect(server.url) as js, await js.core_stream(stream.name) as last:
            assert last.get_all() == [BIG]


async def test_big_values_are_loaded_when_the_stream_is_opened(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        values = ["x", BIG, "y", OTHER]
        for each in values:
            await stream.publish(each)
        await stream.set_kv("k", BIG)
        async with connect(server.url) as js:
            async with await js.core_stream(stream.name) as later:
                assert later.get_all() == [*values, BIG]
                assert later.get_kv("k") == BIG
            async with await js.core_stream(stream.name, start_seq=3) as part:
                assert part.get_all() == ["y", OTHER, BIG]
                await part.load(start_seq=0)
                assert part.get_all() == [*values, BIG]


async def test_values_that_are_overwritten_faster_than_they_are_read_hold_nothing_up(
    server: NatsNode,
) -> None:
    async with clients(server) as [one, two]:
        for number in range(12):
            await one.set_kv("k", bytes([number]) * len(BIG))
        await one.publish("after")
        last = bytes([11]) * len(BIG)
        await until(lambda: len(two) == 2 and two[-1] == "after")
        assert two.get_all() == one.get_all() == [last, "after"]


@pytest.mark.parametrize("how", ["overwritten", "deleted"])
async def test_a_value_that_is_gone_before_it_is_read_is_passed_over(
    server: NatsNode, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async with clients(server) as [one, two]:
        asked, gone = asyncio.Event(), asyncio.Event()
        reader = two._own.blobs
        read = reader._read

        async def read_late(blob: Blob) -> bytes:
            asked.set()
            await gone.wait()
            return await read(blob)

        monkeypatch.setattr(reader, "_read", read_late)
        changes = heard(two)
        published = await one.set_kv("k", BIG)
        assert published is not None
        await asked.wait()
        if how == "overwritten":
            await one.set_kv("k", "small")
        else:
            await one.delete(seq=published.seq)
        await one.publish("after")
        gone.set()
        expected = ["small", "after"] if how == "overwritten" else ["after"]
        await until_equal(one, two, values=expected)
        assert [each.mesg for each in changes] == expected


async def test_a_write_whose_ack_is_lost_keeps_the_chunks_of_its_message(
    server: NatsNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with clients(server) as [one, two]:
        send = one._own.writer._send

        async def lose(*args: Any) -> int:
            await send(*args)
            raise RequestTimeoutError("no ack")

        monkeypatch.setattr(one._own.writer, "_send", lose)
        with pytest.raises(RequestTimeoutError):
            await one.publish(BIG)
        await until_equal(one, two, values=[BIG])
        assert len(await stored(one)) == 1


async def test_a_write_that_is_cancelled_with_its_message_in_flight_is_whole(
    server: NatsNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with clients(server) as [one, two]:
        sending, goes_on = asyncio.Event(), asyncio.Event()
        send = one._own.writer._send

        async def send_late(*args: Any) -> int:
            sending.set()
            await goes_on.wait()
            return await send(*args)

        monkeypatch.setattr(one._own.writer, "_send", send_late)
        writing = asyncio.create_task(one.publish(BIG))
        await sending.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        goes_on.set()
        await until_equal(one, two, values=[BIG])
        assert len(await stored(one)) == 1


async def test_a_comparison_with_the_stream_reads_no_value_again(
    server: NatsNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with clients(server, 1) as [stream]:
        await stream.publish(BIG)
        await stream.publish("x")
        await stream.publish("y")
        monkeypatch.setattr(stream._own.blobs, "_read", None)
        rules = stream._sync.reconciler
        rules.suspect(Doubt.ALL)
        await stream.config()
        assert rules.doubt is Doubt.NONE
        assert stream.get_all() == [BIG, "x", "y"]


async def test_a_value_whose_chunks_alone_are_gone_makes_one_message_unreadable(
    server: NatsNode,
) -> None:
    async with clients(server, 1) as [stream]:
        await stream.publish(BIG)
        await stream.publish("after")
        js, names = context_of(stream), names_of(stream)
        await (await js.streams.get(names.blob_stream)).purge()
        async with connect(server.url) as other, await other.core_stream(stream.name) as later:
            assert later[1] == "after"
            with pytest.raises(CodecError):
                later.get(0)


async def test_a_stream_that_another_program_purged_sweeps_its_chunks_later(
    server: NatsNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "GRACE_S", 0.0)
    async with clients(server, 1, name=new_name()) as [stream]:
        await stream.publish(BIG)
        await purge_foreign(stream)
        async with connect(server.url) as js, await js.core_stream(stream.name) as later:
            await until_stored(stream, 0)
            assert cast("list[object]", later.get_all()) == []
