"""Object stores are made, changed, found and deleted as every client does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import (
    BucketExistsError,
    BucketNameError,
    BucketNotFoundError,
    InvalidConfigError,
    NotABucketError,
    StreamSealedError,
)
from natsstream.objects.config import ObjectBucketConfig

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


@pytest.mark.proves("1e", "bucket create/update/delete/list")
async def test_create_is_idempotent_and_opens_what_is_there(
    js: JetStream, stream_name: str
) -> None:
    first = await js.objects.create(stream_name, description="d", compression=True, ttl=60)
    again = await js.objects.create(
        ObjectBucketConfig(name=stream_name, description="d", compression=True, ttl=60)
    )

    assert first.change.action == "created"
    assert again.config == first.config
    assert (again.config.description, again.config.compression, again.config.ttl) == ("d", True, 60)
    assert not again.config.extra


async def test_create_over_another_store_says_what_differs(js: JetStream, stream_name: str) -> None:
    await js.objects.create(stream_name, max_bytes=5_000)

    with pytest.raises(BucketExistsError) as caught:
        await js.objects.create(stream_name, ttl=60)

    assert caught.value.differences == {"max_bytes": (5_000, -1), "ttl": (0, 60)}
    assert caught.value.err_code == 10058


@pytest.mark.smoke
@pytest.mark.proves("1e", "bucket create/update/delete/list")
async def test_ensure_creates_then_changes_nothing_then_what_is_given(
    js: JetStream, stream_name: str
) -> None:
    made = await js.objects.ensure(stream_name, max_bytes=5_000)
    same = await js.objects.ensure(stream_name)
    other = await js.objects.ensure(stream_name, description="d")

    assert [each.change.action for each in (made, same, other)] == [
        "created",
        "unchanged",
        "updated",
    ]
    assert [each.name for each in other.change.fields] == ["description"]
    assert other.config.max_bytes == 5_000


async def test_ensure_keeps_fields_that_no_store_of_ours_has(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(
        f"OBJ_{stream_name}",
        subjects=[f"$O.{stream_name}.C.>", f"$O.{stream_name}.M.>", f"more.{stream_name}"],
        max_consumers=7,
        metadata={"who": "me"},
    )

    box = await js.objects.ensure(stream_name, metadata={"a": "b"})

    held = (await js.streams.get(f"OBJ_{stream_name}")).cached.config
    assert (held.max_consumers, list(held.subjects or ())[2]) == (7, f"more.{stream_name}")
    assert box.config.extra["max_consumers"] == 7
    assert {"a": "b"}.items() <= dict(box.config.metadata or {}).items()


async def test_diff_tells_and_does_nothing(js: JetStream, stream_name: str) -> None:
    assert (await js.objects.diff(stream_name)).action == "created"
    await js.objects.create(stream_name)

    change = await js.objects.diff(stream_name, compression=True)

    assert [(each.name, each.before, each.after) for each in change.fields] == [
        ("compression", False, True)
    ]
    assert not (await js.objects.get(stream_name)).config.compression


@pytest.mark.proves("1e", "bucket create/update/delete/list")
async def test_update_is_strict(js: JetStream, stream_name: str) -> None:
    with pytest.raises(BucketNotFoundError):
        await js.objects.update(stream_name, description="d")
    await js.objects.create(stream_name)

    # The window in which ids are remembered has to go along.
    box = await js.objects.update(stream_name, ttl=30)

    assert box.config.ttl == 30
    with pytest.raises(InvalidConfigError) as caught:
        await js.objects.update(stream_name, storage="memory")
    assert f"js.objects.delete({stream_name!r})" in caught.value.hint


async def test_a_stream_that_is_no_store_is_refused_and_stays(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(f"OBJ_{stream_name}", subjects=[stream_name])

    for call in (
        js.objects.get(stream_name),
        js.objects.create(stream_name),
        js.objects.ensure(stream_name),
        js.objects.update(stream_name),
        js.objects.delete(stream_name),
    ):
        with pytest.raises(NotABucketError):
            await call

    assert (await js.streams.get(f"OBJ_{stream_name}")).name == f"OBJ_{stream_name}"


async def test_a_store_that_is_not_there_is_told_by_its_name(
    js: JetStream, stream_name: str
) -> None:
    for call in (js.objects.get(stream_name), js.objects.delete(stream_name)):
        with pytest.raises(BucketNotFoundError) as caught:
            await call
        assert caught.value.err_code == 10059
        assert stream_name in str(caught.value)


@pytest.mark.parametrize("name", ["", "a.b", "a b", "*", ">", "é"])
async def test_illegal_names_of_stores_are_refused(js: JetStream, name: str) -> None:
    for call in (js.objects.get(name), js.objects.create(name), js.objects.delete(name)):
        with pytest.raises(BucketNameError):
            await call


@pytest.mark.proves("1e", "bucket create/update/delete/list")
async def test_listing_finds_every_store_and_nothing_else(fresh_js: JetStream) -> None:
    assert [name async for name in fresh_js.objects.names()] == []
    wanted = {f"box{number}" for number in range(12)}
    for name in wanted:
        await fresh_js.objects.create(name, storage="memory")
    await fresh_js.streams.create("OBJ_no", subjects=["no"])
    await fresh_js.streams.create("other", subjects=["$O.x.C.>"])

    names = [name async for name in fresh_js.objects.names()]
    listing = fresh_js.objects.list()
    statuses = [status async for status in listing]

    assert set(names) == {status.name for status in statuses} == wanted
    assert len(names) == len(statuses) == 12
    assert (listing.missing, listing.offline) == ((), {})


@pytest.mark.proves("1e", "bucket create/update/delete/list")
async def test_stores_are_deleted_with_what_is_in_them(js: JetStream, stream_name: str) -> None:
    box = await js.objects.create(stream_name)
    await box.put("a", b"x")

    await js.objects.delete(stream_name)

    with pytest.raises(BucketNotFoundError):
        await box.status()
    with pytest.raises(BucketNotFoundError):
        await box.info("a")


@pytest.mark.proves("1e", "status (ttl, sealed, size, meta, compressed)")
async def test_status_tells_what_the_store_is(js: JetStream, stream_name: str) -> None:
    box = await js.objects.create(
        stream_name, description="d", ttl=60, compression=True, metadata={"a": "b"}
    )
    empty = await box.status()
    assert repr(empty) == f"<ObjectStoreStatus {empty.name}: 0 messages, 0 bytes>"

    await box.put("a", b"x" * 10_000)
    status = await box.status()

    assert (empty.size, empty.messages, empty.revision) == (0, 0, 0)
    assert status.size > 10_000
    assert (status.messages, status.revision) == (2, 2)
    assert (status.description, status.ttl, status.storage) == ("d", 60, "file")
    assert (status.replicas, status.is_compressed, status.metadata) == (1, True, {"a": "b"})
    assert not status.is_sealed
    assert status.backing_store == "JetStream"


@pytest.mark.proves("1e", "seal")
async def test_a_sealed_store_is_read_and_refuses_every_write(
    js: JetStream, stream_name: str
) -> None:
    box = await js.objects.create(stream_name)
    await box.put("a", b"x")

    status = await box.seal()

    assert status.is_sealed
    assert (await box.status()).is_sealed
    assert await box.get("a") == b"x"
    for call in (box.delete("a"), box.update("a", description="d"), box.link("l", "a")):
        with pytest.raises(StreamSealedError):
            await call
    assert await box.get("a") == b"x"


async def test_concurrent_ensures_make_one_store(js: JetStream, stream_name: str) -> None:
    calls = (js.objects.ensure(stream_name, max_bytes=1_000) for _ in range(8))

    boxes = await asyncio.gather(*calls)

    assert {box.config.max_bytes for box in boxes} == {1_000}
