"""Listing objects, and following what changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream.errors import (
    BucketNotFoundError,
    ConfigError,
    ObjectMetaError,
    StreamRecreatedError,
    UsageError,
)
from natsstream.objects.info import ObjectInfo
from natsstream.objects.store_subjects import StoreSubjects
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import JetStream, ObjectStore, ObjectWatch

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def box(js: JetStream, stream_name: str) -> ObjectStore:
    """An empty object store."""
    return await js.objects.create(stream_name, storage="memory")


async def take(watch: ObjectWatch, count: int) -> list[ObjectInfo]:
    """Return the next infos of a watch."""
    return [await anext(watch) for _ in range(count)]


async def consumers(js: JetStream, box: ObjectStore) -> int:
    """Return how many consumers the store has."""
    return (await (await js.streams.get(f"OBJ_{box.name}")).info()).state.consumer_count


@pytest.mark.proves("1e", "list (hides deleted by default)")
async def test_an_empty_store_lists_nothing(box: ObjectStore) -> None:
    assert [info async for info in box.list()] == []
    assert [name async for name in box.names()] == []


@pytest.mark.proves("1e", "list (hides deleted by default)")
async def test_every_object_is_listed_and_deleted_ones_where_asked_for(
    js: JetStream, box: ObjectStore
) -> None:
    async with js.publisher() as publisher:
        for number in range(300):
            info = ObjectInfo(name=f"o{number}", bucket=box.name, nuid=f"N{number}")
            await publisher.send(StoreSubjects(box.name).meta_subject(info.name), info.to_json())
    await box.delete("o0")
    await box.link("l", "o1")

    infos = [info async for info in box.list()]
    with_deleted = [info async for info in box.list(include_deleted=True)]

    assert sorted(info.name for info in infos) == sorted(
        ["l", *(f"o{number}" for number in range(1, 300))]
    )
    assert len(with_deleted) == 301
    assert [info.name for info in with_deleted if info.deleted] == ["o0"]
    assert {name async for name in box.names()} == {info.name for info in infos}


async def test_what_can_not_be_read_is_told_and_ends_no_listing(
    js: JetStream, box: ObjectStore
) -> None:
    await box.put("a", b"x")
    await js.publish(StoreSubjects(box.name).meta_subject("bad"), b"nonsense")
    await js.publish(f"$O.{box.name}.M.nobase64", b"{}")
    await box.put("b", b"x")

    listing = box.list()
    names = [info.name async for info in listing]

    assert names == ["a", "b"]
    assert listing.unreadable_count == 2
    assert [error.name for error in listing.unreadable] == ["bad", ""]
    with pytest.raises(ObjectMetaError):
        _ = [info async for info in box.list(on_unreadable="raise")]
    async with box.watch() as watch:
        assert [info.name async for info in watch.initial()] == ["a", "b"]
        assert watch.unreadable_count == 2


async def test_a_watch_that_raises_goes_on_behind_what_it_raised(
    js: JetStream, box: ObjectStore
) -> None:
    await js.publish(StoreSubjects(box.name).meta_subject("bad"), b"nonsense")
    await box.put("a", b"x")

    async with box.watch(on_unreadable="raise") as watch:
        with pytest.raises(ObjectMetaError):
            await anext(watch)
        assert (await anext(watch)).name == "a"


async def test_no_listing_leaves_a_consumer(js: JetStream, box: ObjectStore) -> None:
    for name in ("a", "b", "c"):
        await box.put(name, b"x")

    for _ in range(5):
        _ = [name async for name in box.names()]
    infos = box.list().infos()
    await anext(infos)
    await infos.aclose()

    async def is_free() -> bool:
        return await consumers(js, box) == 0

    await eventually_async(is_free)


@pytest.mark.proves("1e", "watch options")
async def test_a_watch_tells_what_is_there_then_what_comes(box: ObjectStore) -> None:
    await box.put("a", b"x")
    await box.put("b", b"x")
    await box.delete("b")

    async with box.watch() as watch:
        initial = [(info.name, info.deleted) async for info in watch.initial()]
        caught_up = watch.is_caught_up
        await box.put("a", b"longer")
        await box.delete("a")
        after = await take(watch, 2)

    assert initial == [("a", False), ("b", True)]
    assert caught_up
    assert [(info.name, info.size, info.deleted) for info in after] == [
        ("a", 6, False),
        ("a", 0, True),
    ]
    assert all(info.mtime is not None for info in after)


async def test_a_watch_of_an_empty_store_is_caught_up_at_once(box: ObjectStore) -> None:
    async with box.watch() as watch:
        assert [info async for info in watch.initial()] == []
        await box.put("a", b"x")
        assert (await anext(watch)).name == "a"


@pytest.mark.proves("1e", "watch options")
async def test_deletes_are_left_out_where_wanted(box: ObjectStore) -> None:
    await box.put("a", b"x")
    await box.delete("a")

    async with box.watch(ignore_deletes=True) as watch:
        assert [info async for info in watch.initial()] == []
        await box.put("b", b"x")
        await box.delete("b")
        await box.put("c", b"x")
        assert [info.name for info in await take(watch, 1)] in (["b"], ["c"])


@pytest.mark.proves("1e", "watch options")
async def test_updates_only_leaves_out_what_is_there(box: ObjectStore) -> None:
    await box.put("a", b"x")

    async with box.watch(updates_only=True) as watch:
        assert [info async for info in watch.initial()] == []
        await box.put("b", b"x")
        assert (await anext(watch)).name == "b"


@pytest.mark.proves("1e", "watch options")
async def test_history_is_all_that_the_stream_holds(js: JetStream, box: ObjectStore) -> None:
    # Clients keep one message an object; one that comes without a rollup stays beside.
    info = ObjectInfo(name="a", bucket=box.name, nuid="N")
    for _ in range(3):
        await js.publish(StoreSubjects(box.name).meta_subject("a"), info.to_json())

    async with box.watch(include_history=True) as watch:
        assert [info.revision async for info in watch.initial()] == [1, 2, 3]
    async with box.watch() as watch:
        assert [info.revision async for info in watch.initial()] == [3]


async def test_a_rename_tells_the_old_name_with_the_new_one(box: ObjectStore) -> None:
    await box.put("a", b"x")

    async with box.watch(updates_only=True) as watch:
        await box.rename("a", "b")
        infos = [await anext(watch)]
        while infos[-1].name != "b":
            infos.append(await anext(watch))

    assert infos[-1].renamed_from == "a"


async def test_a_watch_resumes_behind_a_revision_of_the_same_store_only(
    js: JetStream, box: ObjectStore
) -> None:
    async with box.watch() as watch:
        await box.put("a", b"x")
        await take(watch, 1)
        revision, created_ns = watch.revision, watch.created_ns
    await box.put("b", b"x")

    async with box.watch(resume_after=revision, created_ns=created_ns) as watch:
        assert [info.name async for info in watch.initial()] == ["b"]
    await js.objects.delete(box.name)
    await js.objects.create(box.name)

    with pytest.raises(StreamRecreatedError):
        async with box.watch(resume_after=revision, created_ns=created_ns):
            pass


async def test_a_store_that_is_deleted_ends_its_watches(js: JetStream, box: ObjectStore) -> None:
    async with box.watch() as watch:
        waiting = asyncio.ensure_future(anext(watch))
        await js.objects.delete(box.name)
        with pytest.raises(BucketNotFoundError):
            await waiting

    with pytest.raises(BucketNotFoundError):
        async with box.watch():
            pass
    with pytest.raises(BucketNotFoundError):
        _ = [info async for info in box.list()]


READS: dict[str, Callable[[ObjectWatch], Any]] = {
    "loop": anext,
    "initial": lambda watch: watch.initial(),
    "events": lambda watch: watch.events(),
    "revision": lambda watch: watch.revision,
    "created_ns": lambda watch: watch.created_ns,
    "is_caught_up": lambda watch: watch.is_caught_up,
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
async def test_unopened_watch_names_the_call_that_opens_it(
    box: ObjectStore, read: Callable[[ObjectWatch], Any]
) -> None:
    with pytest.raises(UsageError, match="the watch is not open") as caught:
        await read(box.watch())

    assert caught.value.hint == "async with box.watch() as watch: async for info in watch"


async def test_watch_opens_once(box: ObjectStore) -> None:
    watch = box.watch()
    async with watch:
        pass

    with pytest.raises(UsageError, match="a watch opens once"):
        async with watch:
            pass
    assert [event async for event in watch.events()] == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"include_history": True, "updates_only": True}, "include_history and updates_only"),
        ({"resume_after": 3, "updates_only": True}, "updates_only and resume_after are two starts"),
        ({"resume_after": -1}, "resume_after"),
        ({"resume_after": 2**64 - 1}, "resume_after"),
        ({"ignore_deletes": 1}, "ignore_deletes"),
        ({"on_unreadable": "rais"}, "on_unreadable"),
    ],
)
async def test_options_that_can_not_be_are_refused(
    box: ObjectStore, options: Any, text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        box.watch(**options)


async def test_listing_refuses_what_is_no_boolean(box: ObjectStore) -> None:
    with pytest.raises(ConfigError):
        box.list(include_deleted="yes")  # pyright: ignore[reportArgumentType] - It is refused.
