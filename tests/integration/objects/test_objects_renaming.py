"""A rename never loses the object: not to another writer, and not where its process is killed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from natsstream._wire.endings import Endings
from natsstream.errors import (
    NatsStreamError,
    ObjectExistsError,
    ObjectNameError,
    ObjectNotFoundError,
    WrongLastSequenceError,
)
from natsstream.objects.meta_store import MetaStore
from natsstream.objects.store_subjects import StoreSubjects

if TYPE_CHECKING:
    from natsstream import JetStream, ObjectInfo, ObjectStore

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def box(js: JetStream, stream_name: str) -> ObjectStore:
    """An empty object store."""
    return await js.objects.create(stream_name, storage="memory")


async def names(box: ObjectStore) -> list[str]:
    """Return the names of a store's objects."""
    return sorted([name async for name in box.names()])


async def subjects(js: JetStream, box: ObjectStore) -> int:
    """Return how many subjects the store has: metas, and nuids with chunks."""
    return (await (await js.streams.get(f"OBJ_{box.name}")).info()).state.num_subjects


async def killed_rename(
    js: JetStream, box: ObjectStore, old: str, new: str, *, writes: int
) -> None:
    """Do what a rename has done when its process is killed after so many of its writes."""
    meta_store = MetaStore(
        js, await js.streams.get(f"OBJ_{box.name}"), StoreSubjects(box.name), Endings()
    )
    held = await meta_store.read(old)
    assert held.live is not None
    await meta_store.write(held.live, revision=held.revision, renamed_to=new)
    if writes > 1:
        target = await meta_store.read(new)
        renamed = replace(held.live, name=new)
        await meta_store.write(renamed, revision=target.revision, renamed_from=old)


@pytest.mark.proves("1e", "update meta / rename")
async def test_the_object_has_its_new_name_and_not_the_old_one(
    js: JetStream, box: ObjectStore
) -> None:
    await box.put("a", b"xyz", description="d", headers={"K": "1"})

    info = await box.rename("a", "b")

    assert (info.name, info.description, info.headers) == ("b", "d", {"K": ("1",)})
    assert await names(box) == ["b"]
    assert await box.get("b") == b"xyz"
    assert await box.info("a", include_deleted=True) is None
    assert await subjects(js, box) == 2


async def test_update_renames_and_describes_in_one_call(box: ObjectStore) -> None:
    await box.put("a", b"xyz", metadata={"m": "n"})

    info = await box.update("a", new_name="b", description="d")

    assert (info.name, info.description, info.metadata) == ("b", "d", {"m": "n"})
    assert (await box.update("b", new_name="b", description="e")).description == "e"


@pytest.mark.proves("1e", "update meta / rename")
async def test_an_object_that_exists_is_never_overwritten(box: ObjectStore) -> None:
    await box.put("a", b"one")
    await box.put("b", b"two")

    with pytest.raises(ObjectExistsError):
        await box.rename("a", "b")

    assert (await box.get("a"), await box.get("b")) == (b"one", b"two")


async def test_a_deleted_objects_name_is_free(box: ObjectStore) -> None:
    await box.put("a", b"one")
    await box.put("b", b"two")
    await box.delete("b")

    await box.rename("a", "b")

    assert (await box.get("a"), await box.get("b")) == (None, b"one")


async def test_nothing_can_be_renamed_that_is_not_there(box: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        await box.rename("a", "b")
    await box.put("a", b"x")
    with pytest.raises(ObjectNameError):
        await box.rename("a", "a")
    await box.delete("a")
    with pytest.raises(ObjectNotFoundError):
        await box.rename("a", "b")


@pytest.mark.parametrize("writes", [1, 2])
async def test_a_killed_rename_leaves_the_object_readable(
    js: JetStream, box: ObjectStore, writes: int
) -> None:
    await box.put("a", b"xyz")

    await killed_rename(js, box, "a", "b", writes=writes)

    name = "b" if writes == 2 else "a"
    assert await names(box) == [name]
    assert await box.get(name) == b"xyz"


@pytest.mark.parametrize("writes", [1, 2])
async def test_a_killed_rename_is_done_again(js: JetStream, box: ObjectStore, writes: int) -> None:
    await box.put("a", b"xyz")
    await killed_rename(js, box, "a", "b", writes=writes)

    if writes == 1:
        await box.rename("a", "b")
    else:
        with pytest.raises(ObjectNotFoundError):
            await box.rename("a", "c")

    assert await names(box) == ["b"]
    assert await box.get("b") == b"xyz"
    assert await subjects(js, box) == 2


@pytest.mark.parametrize("call", ["delete", "put", "update", "link"])
async def test_writing_the_old_name_after_a_killed_rename_loses_nothing(
    js: JetStream, box: ObjectStore, call: str
) -> None:
    # In other clients the deletion of the old name takes the chunks of the new one along.
    await box.put("a", b"xyz")
    await killed_rename(js, box, "a", "b", writes=2)

    if call == "put":
        await box.put("a", b"new")
    elif call == "link":
        await box.link("a", "b")
    else:
        with pytest.raises(ObjectNotFoundError):
            await (box.delete("a") if call == "delete" else box.update("a", description="d"))

    assert await box.get("b") == b"xyz"
    assert await box.get("a") == {"put": b"new", "link": b"xyz"}.get(call)
    await box.delete("b")
    assert await box.get("a") == (b"new" if call == "put" else None)


@pytest.mark.parametrize("call", ["delete", "put", "rename"])
async def test_writing_the_new_name_after_a_killed_rename_ends_the_old_one(
    js: JetStream, box: ObjectStore, call: str
) -> None:
    await box.put("a", b"xyz")
    await killed_rename(js, box, "a", "b", writes=2)

    if call == "put":
        await box.put("b", b"new")
    elif call == "delete":
        await box.delete("b")
    else:
        await box.rename("b", "c")

    assert await names(box) == {"put": ["b"], "delete": [], "rename": ["c"]}[call]
    assert await box.info("a", include_deleted=True) is None
    assert await box.get("b") == (b"new" if call == "put" else None)
    assert await box.get("c") == (b"xyz" if call == "rename" else None)


@pytest.mark.parametrize("call", ["put", "update", "delete", "rename", "link"])
async def test_a_rename_under_way_ends_where_another_call_writes_the_old_name(
    js: JetStream, box: ObjectStore, call: str
) -> None:
    # Its second write comes late: two names would point to chunks that one of them removes.
    await box.put("a", b"old")
    meta_store = MetaStore(
        js, await js.streams.get(f"OBJ_{box.name}"), StoreSubjects(box.name), Endings()
    )
    held = await meta_store.read("a")
    assert held.live is not None
    await meta_store.write(held.live, revision=held.revision, renamed_to="b")
    calls = {
        "put": lambda: box.put("a", b"new"),
        "update": lambda: box.update("a", description="d"),
        "delete": lambda: box.delete("a"),
        "rename": lambda: box.rename("a", "c"),
        "link": lambda: box.link("a", "x"),
    }
    await box.put("x", b"x")
    if call == "link":
        with pytest.raises(ObjectExistsError):
            await calls[call]()
    else:
        await calls[call]()

    with pytest.raises(WrongLastSequenceError):
        await meta_store.write(replace(held.live, name="b"), revision=0, renamed_from="a")

    left = {name: await box.get(name) for name in await names(box) if name != "x"}
    assert (
        left
        == {
            "put": {"a": b"new"},
            "update": {"a": b"old"},
            "delete": {},
            "rename": {"c": b"old"},
            "link": {"a": b"old"},
        }[call]
    )
    assert (await box.sweep(older_than=0)).chunks == 0


async def test_a_rename_is_done_again_where_another_client_writes_the_old_name(
    box: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Other clients know nothing of the mark, and do not see that the object is being renamed.
    await box.put("a", b"xyz")
    write = MetaStore.write
    updates = 0

    async def then_update(meta_store: MetaStore, info: ObjectInfo, **fields: Any) -> ObjectInfo:
        nonlocal updates
        stored = await write(meta_store, info, **fields)
        if fields.get("renamed_to") and not updates:
            updates += 1
            await write(meta_store, replace(info, description="theirs"), revision=None)
        return stored

    monkeypatch.setattr(MetaStore, "write", then_update)
    info = await box.rename("a", "b")

    assert updates
    assert info.description == "theirs"
    assert await names(box) == ["b"]
    assert await box.get("b") == b"xyz"


async def test_renames_and_updates_at_once_never_share_bytes(box: ObjectStore) -> None:
    for _ in range(6):
        await box.put("a", b"xyz")
        calls = (box.rename("a", "b"), box.rename("a", "c"), box.update("a", description="d"))
        await asyncio.gather(*calls, return_exceptions=True)

        [name] = await names(box)
        assert await box.get(name) == b"xyz"
        await box.delete(name)


@pytest.mark.parametrize("other", ["a", "x" * 4_000])
async def test_a_mark_that_nobody_has_written_so_does_no_harm(box: ObjectStore, other: str) -> None:
    # The object itself would be removed, or the server would close the connection.
    await box.put("a", b"xyz")
    meta_store = box._meta_store  # pyright: ignore[reportPrivateUsage]
    held = await meta_store.read("a")
    assert held.live is not None
    await meta_store.write(held.live, revision=held.revision, renamed_to=other, renamed_from=other)

    await box.update("a", description="d")

    assert await box.get("a") == b"xyz"


async def test_renames_to_one_name_leave_every_object(box: ObjectStore) -> None:
    for number in range(4):
        await box.put(f"a{number}", b"%d" % number)

    calls = (box.rename(f"a{number}", "b") for number in range(4))
    done = await asyncio.gather(*calls, return_exceptions=True)

    assert sum(isinstance(each, ObjectExistsError) for each in done) == 3
    found = {await box.get(name) for name in await names(box)}
    assert found == {b"0", b"1", b"2", b"3"}
    assert len(await names(box)) == 4


async def test_renames_puts_and_deletes_at_once_leave_whole_objects(box: ObjectStore) -> None:
    for _ in range(8):
        await box.put("a", b"old")
        calls = (box.rename("a", "b"), box.put("a", b"new"), box.rename("a", "c"))
        done = await asyncio.gather(*calls, return_exceptions=True)

        assert all(
            not isinstance(each, BaseException) or isinstance(each, NatsStreamError)
            for each in done
        )
        left = {name: await box.get(name) for name in await names(box)}
        assert set(left.values()) <= {b"old", b"new"}
        assert b"new" in left.values()
        for name in left:
            await box.delete(name)
