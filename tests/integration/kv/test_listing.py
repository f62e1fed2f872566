"""Listings of a bucket: its keys, entries and history; what they cost, and what they leave."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import BucketNotFoundError, StreamRecreatedError
from natsstream.read import session
from tests.support.ordered import delete_consumers
from tests.support.raw_nats import request
from tests.support.streams import connection_of
from tests.support.watches import names, no_consumers_stay, told

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.kv.key_value import KeyValue
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


async def filled(js: JetStream, name: str, count: int, *, history: int = 1) -> KeyValue:
    """Return a bucket with the keys `k0` to `k<count - 1>`."""
    kv = await js.kv.create(name, history=history, storage="memory")
    async with js.publisher() as publisher:
        for number in range(count):
            await publisher.send(f"$KV.{name}.k{number}", b"%d" % number)
    return kv


async def test_headers_that_are_none_hide_no_other_key(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    """Servers store any bytes as headers; nats.go takes such a message for one without any."""
    kv = await filled(js, stream_name, 1, history=3)
    await asyncio.to_thread(
        request, server.port, f"$KV.{stream_name}.odd", b"x", headers=b"odd\r\n\r\n"
    )
    await kv.put("last", b"2")

    entry = await kv.get("odd")
    assert entry is not None
    assert entry.value == b"x"
    assert [key async for key in kv.keys()] == ["k0", "odd", "last"]
    assert [each.value async for each in kv.history("odd")] == [b"x"]
    async with kv.watch() as watch:
        assert [(await anext(watch)).key for _ in range(3)] == ["k0", "odd", "last"]
    async with kv.cached() as mirror:
        assert mirror.get("last") is not None
    await kv.delete("odd")
    await kv.purge_deletes(older_than=0)
    assert [key async for key in kv.keys()] == ["k0", "last"]


@pytest.mark.proves("1d", "keys / list keys streaming / filtered")
async def test_keys_are_those_with_a_value(js: JetStream, stream_name: str) -> None:
    """What is deleted, purged or expired is no key; what was written again is one."""
    kv = await js.kv.create(stream_name, history=3, limit_marker_ttl=1, storage="memory")
    for key in ("kept", "deleted", "purged", "again"):
        await kv.put(key, b"1")
    await kv.create("expired", b"1", ttl=1)
    await kv.delete("deleted")
    await kv.purge("purged")
    await kv.delete("again")
    await kv.put("again", b"")
    async with kv.watch("expired", ignore_deletes=False) as watch:
        while (await anext(watch)).operation == "PUT":
            pass

    assert await names(kv) == ["kept", "again"]
    assert told([entry async for entry in kv.entries()]) == [
        ("kept", "PUT", b"1"), ("again", "PUT", b""),
    ]  # fmt: skip


async def test_empty_bucket_has_no_keys(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name)

    assert await names(kv) == []
    assert await names(kv, "a.*", "b") == []
    assert [entry async for entry in kv.entries()] == []
    assert [entry async for entry in kv.history("a")] == []


@pytest.mark.proves("1d", "keys / list keys streaming / filtered")
async def test_filters_are_the_servers(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name, history=5)
    for key in ("user.1", "superuser.1", "user.1.name", "order.1"):
        await kv.put(key, key.encode())
    await kv.put("order.1", b"2")

    assert await names(kv, "user.*") == ["user.1"]
    assert await names(kv, "user.>", "order.*", "user.1") == [
        "user.1", "user.1.name", "order.1",
    ]  # fmt: skip
    assert await names(kv, "user") == []
    assert [entry.value async for entry in kv.entries("order.*")] == [b"2"]
    assert [entry.value async for entry in kv.history("order.1")] == [b"order.1", b"2"]
    assert [entry.revision async for entry in kv.history("user.1", "order.*")] == [1, 4, 5]


@pytest.mark.proves("1d", "history")
async def test_history_has_the_markers(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name, history=3)
    for number in range(4):
        await kv.put("a", b"%d" % number)
    await kv.delete("a")
    await kv.put("b", b"x")
    history = [entry async for entry in kv.history("a")]
    await kv.purge("a")

    assert told(history) == [("a", "PUT", b"2"), ("a", "PUT", b"3"), ("a", "DEL", b"")]
    assert [entry.delta for entry in history] == [2, 1, 0]
    assert told([entry async for entry in kv.history("a")]) == [("a", "PURGE", b"")]


async def test_revisions_of_a_range_are_those_that_are_left_of_it(
    js: JetStream, stream_name: str
) -> None:
    kv = await js.kv.create(stream_name, history=2)
    for number in range(4):
        await kv.put("a.1", b"%d" % number)
    await kv.put("b", b"x")
    await kv.delete("a.1")

    async def between(first: int | None, last: int | None, *filters: str) -> list[int]:
        return [each.revision async for each in kv.revisions(*filters, first=first, last=last)]

    assert await between(None, None) == [4, 5, 6]
    assert await between(1, 4) == [4]
    assert await between(1, 3) == []
    assert await between(5, None, "a.*", "a.>") == [6]
    assert await between(None, None, "a.*", "*.1") == [4, 6]
    assert [each.operation async for each in kv.revisions(first=6)] == ["DEL"]


async def test_revisions_of_a_bucket_made_anew_are_refused(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name)
    created_ns = (await kv.stream.info()).created_ns
    await js.kv.delete(stream_name)
    again = await js.kv.create(stream_name)
    await again.put("a", b"1")

    with pytest.raises(StreamRecreatedError):
        _ = [each async for each in kv.revisions(created_ns=created_ns)]

    await js.kv.delete(stream_name)
    with pytest.raises(BucketNotFoundError):
        _ = [each async for each in kv.revisions(first=1)]


@pytest.mark.proves("1d", "keys / list keys streaming / filtered")
@pytest.mark.parametrize("deletes", [True, False])
async def test_each_key_comes_once_while_others_write(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch, *, deletes: bool
) -> None:
    """Keys that were listed are written again, and keys that were not, before their turn."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 2)
    kv = await filled(js, stream_name, 30)

    async with aclosing(kv.keys()) as keys:
        found = [await anext(keys) for _ in range(3)]
        for key in ("k0", "k1", "k28", "k29", "k29", "k0"):
            await kv.put(key, b"new")
        if deletes:
            await kv.delete("k28")
            await kv.delete("k1")
        found += [key async for key in keys]

    left = {f"k{number}" for number in range(30)}
    assert len(found) == len(set(found))
    assert set(found) == (left - {"k28"} if deletes else left)
    await no_consumers_stay(kv)


async def test_entries_come_once_while_others_write(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 2)
    kv = await filled(js, stream_name, 30)

    async with aclosing(kv.entries()) as entries:
        found = [await anext(entries) for _ in range(3)]
        for key in ("k0", "k29"):
            await kv.put(key, b"new")
        found += [entry async for entry in entries]

    values = {entry.key: entry.value for entry in found}
    assert len(found) == len(values) == 30
    assert (values["k0"], values["k29"]) == (b"0", b"new")


async def test_key_that_is_always_written_is_listed(js: JetStream, stream_name: str) -> None:
    """A writer replaces one key as fast as it can while the others are read."""
    kv = await filled(js, stream_name, 5_000)
    is_over = False

    async def write() -> None:
        async with js.publisher(max_pending=8) as publisher:
            while not is_over:
                await publisher.send(f"$KV.{stream_name}.k0", b"hot")
                await asyncio.sleep(0)

    writer = asyncio.ensure_future(write())
    try:
        for _ in range(3):
            keys = await names(kv)
            assert len(keys) == len(set(keys)) == 5_000
    finally:
        is_over = True
        await writer


@pytest.mark.parametrize("history", [1, 5])
async def test_listing_goes_on_when_its_consumer_is_deleted(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch, *, history: int
) -> None:
    """In the middle and behind it, and what was deleted before does not come from the history."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 2)
    kv = await filled(js, stream_name, 30, history=history)
    await kv.put("k3", b"second")
    await kv.delete("k4")

    async with aclosing(kv.entries()) as entries:
        found = [await anext(entries) for _ in range(3)]
        await delete_consumers(js, kv.stream.name)
        for key in ("k0", "k29", "k29"):
            await kv.put(key, b"new")
        while found[-1].key != "k3":
            found.append(await anext(entries))
        await delete_consumers(js, kv.stream.name)
        found += [entry async for entry in entries]

    values = {entry.key: entry.value for entry in found}
    assert len(found) == len(values)
    assert values == {
        **{f"k{number}": b"%d" % number for number in range(30) if number != 4},
        "k3": b"second", "k29": b"new",
    }  # fmt: skip
    await no_consumers_stay(kv)


async def test_forty_listings_leave_no_consumer(server: NatsServer, stream_name: str) -> None:
    async with connect(server.url, name=stream_name) as js:
        kv = await filled(js, stream_name, 100)
        # With its answer, what the publisher has left behind is gone from the server too.
        await no_consumers_stay(kv)
        tasks = len(asyncio.all_tasks())
        before = connection_of(server, stream_name)["subscriptions"]

        for _ in range(40):
            assert len(await names(kv)) == 100

        await no_consumers_stay(kv)
        assert connection_of(server, stream_name)["subscriptions"] == before
        assert len(asyncio.all_tasks()) == tasks


async def test_listings_that_are_left_leave_no_consumer(js: JetStream, stream_name: str) -> None:
    kv = await filled(js, stream_name, 100, history=2)

    async for _ in kv.keys(">"):
        break
    async for _ in kv.entries():
        break
    async for _ in kv.history(">"):
        break

    await no_consumers_stay(kv)


@pytest.mark.proves("1d", "keys / list keys streaming / filtered")
async def test_many_keys_are_all_listed(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window is a tenth of the keys, so that the listing takes many pulls."""
    monkeypatch.setattr(session, "WINDOW_MESSAGES_MAX", 1_000)
    kv = await filled(js, stream_name, 10_000)

    keys = await names(kv)

    assert len(keys) == 10_000
    assert set(keys) == {f"k{number}" for number in range(10_000)}


async def test_listings_of_no_bucket_say_so(js: JetStream, stream_name: str) -> None:
    kv = await js.kv.create(stream_name)
    await js.kv.delete(stream_name)

    for listing in (kv.keys(), kv.entries(), kv.history("a")):
        with pytest.raises(BucketNotFoundError):
            await anext(listing)
