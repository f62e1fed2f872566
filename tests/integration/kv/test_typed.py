"""A bucket of objects: round trips, and values that can not be read."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

import natsstream as ns
from natsstream.errors import (
    ConfigError,
    KeyExistsError,
    StreamRecreatedError,
    UsageError,
    ValueDecodeError,
    WrongRevisionError,
)

if TYPE_CHECKING:
    from natsstream import JetStream, KeyValue

pytestmark = pytest.mark.asyncio


@dataclass(frozen=True)
class Car:
    """What an application keeps."""

    name: str
    wheels: int


def encode(car: Car) -> bytes:
    """Write a car."""
    return json.dumps(asdict(car)).encode()


def decode(data: bytes) -> Car:
    """Read a car."""
    return Car(**json.loads(data))


@pytest_asyncio.fixture
async def kv(js: JetStream, stream_name: str) -> KeyValue:
    """A bucket with a history."""
    return await js.kv.create(stream_name, history=5, storage="memory")


async def test_objects_come_back_as_they_were_written(kv: KeyValue) -> None:
    cars = kv.typed(encode, decode)
    revision = await cars.create("a", Car("Ape", 3))
    entry = await cars.get("a")
    assert entry is not None
    assert (entry.value, entry.revision, entry.operation) == (Car("Ape", 3), revision, "PUT")
    plain = await kv.get("a")
    assert plain is not None
    assert plain.value == b'{"name": "Ape", "wheels": 3}'
    assert await cars.get("b") is None
    await cars.put("a", Car("Bus", 6))
    old = await cars.get("a", revision=revision)
    assert old is not None
    assert old.value.wheels == 3
    with pytest.raises(KeyExistsError):
        await cars.create("a", Car("Ape", 3))
    with pytest.raises(WrongRevisionError):
        await cars.update("a", Car("Ape", 3), revision=revision)
    await cars.delete("a")
    assert await cars.get("a") is None
    await cars.purge("a")
    assert [each.operation async for each in cars.history("a")] == ["PURGE"]


@pytest.mark.parametrize(
    ("form", "value", "stored"),
    [
        (ns.JSON, {"ä": [1, 2.5, None, True]}, '{"ä":[1,2.5,null,true]}'.encode()),
        (ns.JSON, None, b"null"),
        (ns.TEXT, "größer", "größer".encode()),
        (ns.TEXT, "", b""),
        (ns.RAW, b"\x00\xff", b"\x00\xff"),
        (ns.MSGPACK, {"a": b"\xff", 3: [1, "x"]}, b"\x82\xa1a\xc4\x01\xff\x03\x92\x01\xa1x"),
        (ns.MSGPACK, datetime(2026, 11, 22, tzinfo=UTC), b"\xd6\xff\x6b\x02\x30\x80"),
    ],
)
async def test_ready_formats_write_what_others_read(
    kv: KeyValue, form: ns.ValueFormat[Any], value: object, stored: bytes
) -> None:
    typed = kv.typed(form)
    await typed.put("k", value)
    entry, plain = await typed.get("k"), await kv.get("k")
    assert entry is not None
    assert plain is not None
    assert entry.value == value
    assert plain.value.hex() == stored.hex()


@pytest.mark.parametrize(
    ("form", "value"),
    [
        (ns.JSON, {1, 2}),
        (ns.JSON, float("nan")),
        (ns.TEXT, b"x"),
        (ns.RAW, "x"),
        (ns.TEXT, "\ud800"),
    ],
)
async def test_what_a_format_can_not_write_is_refused_before_anything_is_sent(
    kv: KeyValue, form: ns.ValueFormat[Any], value: object
) -> None:
    with pytest.raises(ConfigError):
        await kv.typed(form).put("k", value)
    assert await kv.get("k") is None


async def test_a_value_of_another_format_raises_with_its_key_and_revision(kv: KeyValue) -> None:
    revision = await kv.put("k", b"{oops")
    with pytest.raises(ValueDecodeError, match="JSON") as caught:
        await kv.typed(ns.JSON).get("k")
    assert (caught.value.bucket, caught.value.key, caught.value.revision) == (
        kv.name,
        "k",
        revision,
    )


async def test_one_bad_value_does_not_end_a_watch(kv: KeyValue) -> None:
    for key, value in (("a", b"1"), ("b", b"{oops"), ("c", b"3")):
        await kv.put(key, value)
    typed = kv.typed(ns.JSON)
    async with typed.watch() as watch:
        assert (await anext(watch)).value == 1
        with pytest.raises(ValueDecodeError) as caught:
            await anext(watch)
        assert caught.value.key == "b"
        assert (await anext(watch)).value == 3
        await kv.put("d", b"4")
        assert (await anext(watch)).value == 4


async def test_a_watch_hands_out_bad_values_where_it_is_told_to(kv: KeyValue) -> None:
    await kv.put("a", b"1")
    await kv.put("b", b"{oops")
    await kv.put("c", b"3")
    await kv.delete("c")
    typed = kv.typed(ns.JSON)
    async with typed.watch(on_unreadable="hand_out") as watch:
        entries = [entry async for entry in watch.initial()]
        assert watch.is_caught_up
    assert [entry.key for entry in entries] == ["a", "b", "c"]
    assert [entry.error is None for entry in entries] == [True, False, True]
    assert entries[1].data == b"{oops"
    with pytest.raises(ValueDecodeError):
        _ = entries[1].value
    assert entries[2].is_deleted
    with pytest.raises(UsageError, match="deleted"):
        _ = entries[2].value


async def test_listings_go_on_behind_bad_values_where_they_are_told_to(kv: KeyValue) -> None:
    await kv.put("a", b"1")
    await kv.put("b", b"{oops")
    typed = kv.typed(ns.JSON)
    with pytest.raises(ValueDecodeError):
        _ = [entry async for entry in typed.entries()]
    found = [entry async for entry in typed.entries(on_unreadable="hand_out")]
    assert [(entry.key, entry.error is None) for entry in found] == [("a", True), ("b", False)]
    keys = typed.keys()
    assert [key async for key in keys] == ["a", "b"]


async def test_a_typed_view_needs_both_functions(kv: KeyValue) -> None:
    with pytest.raises(ConfigError, match="nothing to read"):
        kv.typed(encode)
    with pytest.raises(ConfigError, match="decode"):
        kv.typed(ns.JSON, decode)
    with pytest.raises(ConfigError, match="encode/decode cannot write 'no car'"):
        await kv.typed(encode, decode).put("a", "no car")  # pyright: ignore[reportArgumentType] - That is the point.
    with pytest.raises(ConfigError, match="on_unreadable"):
        kv.typed(ns.JSON).watch(on_unreadable="skip")  # pyright: ignore[reportArgumentType] - That is the point.


async def test_a_mirror_of_objects_reads_and_writes_them(kv: KeyValue) -> None:
    cars = kv.typed(encode, decode)
    async with cars.cached("car.*") as mirror:
        changes = mirror.changes()
        first = await mirror.create("car.a", Car("Ape", 3))
        await mirror.update("car.a", Car("Bus", 6), revision=first)
        entry = mirror.get("car.a")
        assert entry is not None
        assert entry.value == Car("Bus", 6)
        assert (await anext(changes)).value == Car("Bus", 6)
        await mirror.wait_for(await kv.put("car.b", b"{oops"))
        with pytest.raises(ValueDecodeError) as caught:
            mirror.get("car.b")
        assert caught.value.key == "car.b"
        assert [(key, each.error is None) for key, each in mirror.items()] == [
            ("car.a", True),
            ("car.b", False),
        ]
        assert (await anext(changes)).error is not None
        assert mirror.keys() == list(mirror) == ["car.a", "car.b"]
        await mirror.put("car.b", Car("Cab", 4))
        await mirror.delete("car.b")
        await mirror.purge("car.a")
        assert len(mirror) == 0
        assert "car.a" not in mirror
        with pytest.raises(ConfigError):
            await mirror.put("car.a", "no car")  # pyright: ignore[reportArgumentType] - That is the point.


async def test_a_typed_bucket_has_the_plain_ones_calls(kv: KeyValue) -> None:
    typed = kv.typed(ns.JSON)
    first = await typed.put("a", 1)
    await typed.put("b", 2)
    await typed.put("a", 3)
    assert [entry.value async for entry in typed.history("a", "b")] == [1, 2, 3]
    await typed.revert("a", first)
    entry = await typed.get("a")
    assert entry is not None
    assert entry.value == 1
    async with typed.watch() as watch:
        last = [entry.revision async for entry in watch.initial()][-1]
        place = watch.revision, watch.created_ns
        assert watch.report.messages == 2
    await typed.put("c", 4)
    async with typed.watch(resume_after=place[0], created_ns=place[1]) as watch:
        assert (await anext(watch)).value == 4
    assert place[0] == last
    with pytest.raises(StreamRecreatedError):
        async with typed.watch(resume_after=place[0], created_ns=1):
            pass


async def test_a_typed_bucket_has_locks_elections_and_status(
    js: JetStream, stream_name: str
) -> None:
    plain = await js.kv.create(stream_name, limit_marker_ttl=1, storage="memory")
    cars = plain.typed(encode, decode)
    async with cars.lock("l") as lock:
        assert await lock.put("a", Car("Ape", 3)) > lock.token
        with pytest.raises(ConfigError):
            await lock.put("a", "no car")  # pyright: ignore[reportArgumentType] - That is the point.
    async with cars.election("e", candidate="me").lead() as term:
        await term.put("b", Car("Bus", 6))
    assert [(each.key, each.value.wheels) async for each in cars.entries()] == [("a", 3), ("b", 6)]
    assert (await cars.status()).history == 1


async def test_a_codec_lies_between_the_format_and_the_server(kv: KeyValue) -> None:
    for cars in (
        kv.typed(encode, decode).with_codec(values=ns.Base64Values(), keys=ns.Base64Keys()),
        kv.with_codec(values=ns.Base64Values(), keys=ns.Base64Keys()).typed(encode, decode),
    ):
        await cars.put("a b", Car("Ape", 3))
        entry = await cars.get("a b")
        assert entry is not None
        assert (entry.value, entry.data) == (Car("Ape", 3), encode(Car("Ape", 3)))
        raw = await cars.typed(ns.RAW).get("a b")
        assert raw is not None
        assert raw.value == entry.data


async def test_a_typed_watch_without_values_has_none_to_ask_for(kv: KeyValue) -> None:
    await kv.put("a", b"1")
    async with kv.typed(ns.JSON).watch(meta_only=True) as watch:
        entry = await anext(watch)
    assert (entry.key, entry.data, entry.error) == ("a", b"", None)
    with pytest.raises(UsageError, match="headers"):
        _ = entry.value
