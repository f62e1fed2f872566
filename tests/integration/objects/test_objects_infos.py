"""Infos of objects are read, changed and deleted; the forms of other clients are read."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream.errors import (
    ConfigError,
    ObjectMetaError,
    ObjectNameError,
    ObjectNotFoundError,
    StreamFullError,
    WrongStreamError,
)
from natsstream.objects.info import ObjectInfo
from natsstream.objects.store_subjects import StoreSubjects

if TYPE_CHECKING:
    from natsstream import JetStream, ObjectStore

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def box(js: JetStream, stream_name: str) -> ObjectStore:
    """An empty object store."""
    return await js.objects.create(stream_name, storage="memory")


async def stored(js: JetStream, box: ObjectStore, name: str) -> tuple[dict[str, object], list[str]]:
    """Return the JSON that is stored of an object, and its message's headers."""
    stream = await js.streams.get(f"OBJ_{box.name}")
    message = await stream.get(last_by_subject=StoreSubjects(box.name).meta_subject(name))
    assert message is not None
    return json.loads(message.data), sorted(message.headers)


async def chunks(js: JetStream, box: ObjectStore) -> dict[str, int]:
    """Return the chunks that are stored, by the nuid that they are kept under."""
    subjects = StoreSubjects(box.name)
    info = await (await js.streams.get(subjects.stream)).info(subjects=subjects.chunk_filter)
    return {subjects.nuid_of(name): count for name, count in (info.state.subjects or {}).items()}


async def foreign(js: JetStream, box: ObjectStore, name: str, body: object) -> None:
    """Store what another client says of an object."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    await js.publish(StoreSubjects(box.name).meta_subject(name), data, rollup="subject")


@pytest.mark.proves("1e", "info, info incl. deleted")
async def test_info_tells_what_put_was_given(box: ObjectStore) -> None:
    put = await box.put(
        "a", b"xyz", description="d", headers={"K": ["1", "2"], "L": "3"}, metadata={"m": "n"}
    )

    info = await box.info("a")

    assert info is not None
    assert (info.name, info.bucket, info.size, info.chunks) == ("a", box.name, 3, 1)
    assert (info.description, info.metadata) == ("d", {"m": "n"})
    assert info.headers == {"K": ("1", "2"), "L": ("3",)}
    assert info.digest == put.digest
    assert info.revision == put.revision
    assert info.mtime is not None
    assert put.mtime is not None


@pytest.mark.proves("1e", "info, info incl. deleted")
async def test_an_object_that_never_was_has_no_info(box: ObjectStore) -> None:
    assert await box.info("a") is None
    assert await box.info("a", include_deleted=True) is None


@pytest.mark.proves("1e", "info, info incl. deleted")
@pytest.mark.proves("1e", "delete")
async def test_delete_leaves_the_marker_of_nats_go_and_no_chunk(
    js: JetStream, box: ObjectStore
) -> None:
    put = await box.put("a", b"xyz", description="d", metadata={"m": "n"})

    await box.delete("a")

    body, headers = await stored(js, box, "a")
    assert body == {
        "name": "a",
        "description": "d",
        "metadata": {"m": "n"},
        "options": {"max_chunk_size": 131_072},
        "bucket": box.name,
        "nuid": put.nuid,
        "size": 0,
        "mtime": "0001-01-01T00:00:00Z",
        "chunks": 0,
        "deleted": True,
    }
    assert "Nats-Rollup" in headers
    assert await chunks(js, box) == {}
    assert await box.info("a") is None
    assert await box.get("a") is None
    marker = await box.info("a", include_deleted=True)
    assert marker is not None
    assert marker.deleted


async def test_a_full_store_is_made_room_in_by_deleting(js: JetStream, stream_name: str) -> None:
    box = await js.objects.create(stream_name, max_bytes=10_000)
    await box.put("a", b"x" * 8_000)
    with pytest.raises(StreamFullError, match=f"object 'b' of store {stream_name}: ") as full:
        await box.put("b", b"x" * 5_000)
    assert full.value.hint.startswith(f"js.objects.update({stream_name!r}, max_bytes=...)")
    for number in range(100):  # Up to the last byte that is left.
        try:
            await box.put(f"empty{number}", b"")
        except StreamFullError:
            break

    with pytest.raises(StreamFullError):
        await box.rename("a", "c" * 500)
    assert await box.get("a") == b"x" * 8_000
    await box.delete("a")

    assert await box.info("a") is None
    await box.put("b", b"x" * 5_000)
    assert len(await chunks(js, box)) == 1


async def test_a_deleted_object_is_put_again(js: JetStream, box: ObjectStore) -> None:
    await box.put("a", b"one")
    await box.delete("a")

    await box.put("a", b"two")

    assert await box.get("a") == b"two"
    assert len(await chunks(js, box)) == 1


async def test_deleting_twice_is_fine_and_what_never_was_is_told(box: ObjectStore) -> None:
    await box.put("a", b"x")
    await box.delete("a")
    await box.delete("a")

    with pytest.raises(ObjectNotFoundError):
        await box.delete("b")


@pytest.mark.proves("1e", "update meta / rename")
async def test_update_changes_what_is_given_and_keeps_the_rest(
    js: JetStream, box: ObjectStore
) -> None:
    await box.put("a", b"xyz", description="d", headers={"K": "1"}, metadata={"m": "n"})

    await box.update("a", description="e")
    await box.update("a", headers={"L": ["2", "3"]})
    info = await box.update("a", metadata={})

    assert (info.description, info.headers, info.metadata) == ("e", {"L": ("2", "3")}, {})
    held = await box.info("a")
    assert held is not None
    assert (held.description, held.headers, held.metadata) == ("e", {"L": ("2", "3")}, {})
    assert await box.get("a") == b"xyz"
    body, _ = await stored(js, box, "a")
    assert "metadata" not in body
    assert body["headers"] == {"L": ["2", "3"]}


async def test_update_keeps_fields_of_newer_clients(js: JetStream, box: ObjectStore) -> None:
    await box.put("a", b"xyz")
    body, _ = await stored(js, box, "a")
    await foreign(js, box, "a", {**body, "later": {"x": 1}})

    await box.update("a", description="e")

    assert (await stored(js, box, "a"))[0]["later"] == {"x": 1}
    assert await box.get("a") == b"xyz"


async def test_update_of_nothing_or_of_a_deleted_object_is_told(box: ObjectStore) -> None:
    with pytest.raises(ObjectNotFoundError):
        await box.update("a", description="d")
    await box.put("a", b"x")
    await box.delete("a")
    with pytest.raises(ObjectNotFoundError):
        await box.update("a", description="d")


@pytest.mark.proves("1e", "update meta / rename")
async def test_concurrent_updates_lose_none(box: ObjectStore) -> None:
    await box.put("a", b"x")

    await asyncio.gather(
        box.update("a", description="d"),
        box.update("a", headers={"K": "1"}),
        box.update("a", metadata={"m": "n"}),
    )

    info = await box.info("a")
    assert info is not None
    assert (info.description, info.headers, info.metadata) == ("d", {"K": ("1",)}, {"m": "n"})


async def test_a_delete_between_puts_removes_only_what_it_has_seen(
    js: JetStream, box: ObjectStore
) -> None:
    for _ in range(10):
        await box.put("a", b"old")
        await asyncio.gather(box.put("a", b"new"), box.delete("a"))

        data = await box.get("a")
        assert data in (b"new", None)
        assert len(await chunks(js, box)) == (data is not None)


async def test_what_nats_py_writes_is_read_and_mended(js: JetStream, box: ObjectStore) -> None:
    # nats-py's delete stores "mtime": "", its headers are no lists.
    body = {"name": "a", "bucket": box.name, "nuid": "N", "size": 0, "chunks": 0, "mtime": ""}
    await foreign(js, box, "a", {**body, "headers": {"K": "V"}, "digest": "SHA-256="})

    info = await box.info("a")
    assert info is not None
    assert info.headers == {"K": ("V",)}
    await box.update("a", description="d")

    mended, _ = await stored(js, box, "a")
    assert mended["mtime"] == "0001-01-01T00:00:00Z"
    assert mended["headers"] == {"K": ["V"]}


@pytest.mark.parametrize("data", [b"", b"nonsense", b'{"nuid":">"}', b'{"size":"3"}', b"null"])
async def test_what_can_not_be_read_is_told_and_can_be_replaced_or_deleted(
    js: JetStream, box: ObjectStore, data: bytes
) -> None:
    await box.put("other", b"y")
    await foreign(js, box, "a", data)
    await foreign(js, box, "b", data)

    with pytest.raises(ObjectMetaError) as caught:
        await box.info("a")
    assert caught.value.name == "a"
    with pytest.raises(ObjectMetaError):
        await box.get("a")
    with pytest.raises(ObjectMetaError):
        await box.update("a", description="d")
    await box.put("a", b"x")
    await box.delete("b")

    assert await box.get("a") == b"x"
    assert await box.info("b") is None
    assert await box.get("other") == b"y"


async def test_arguments_are_refused_before_anything_is_sent(
    box: ObjectStore,
) -> None:
    await box.put("a", b"x")
    before = (await box.status()).revision

    for name in ("", "\ud800", "x" * 4_000, 5, None, b"a"):
        for call in (box.info, box.delete, box.update, box.get):
            with pytest.raises(ObjectNameError):
                await call(name)  # pyright: ignore[reportArgumentType]
        with pytest.raises(ObjectNameError):
            await box.rename("a", name)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError):
        await box.info("a", include_deleted="no")  # pyright: ignore[reportArgumentType]
    for fields in ({"description": 5}, {"headers": "K"}, {"metadata": {"K": 1}}):
        with pytest.raises(ConfigError):
            await box.update("a", **fields)  # pyright: ignore[reportArgumentType]

    assert (await box.status()).revision == before


async def test_another_streams_ack_is_none_of_the_stores(js: JetStream, stream_name: str) -> None:
    box = await js.objects.create(stream_name)
    subjects, info = StoreSubjects(stream_name), ObjectInfo(name="a", bucket=stream_name, nuid="N")
    await js.streams.delete(subjects.stream)
    await js.streams.create(
        "X" + stream_name,
        subjects=[subjects.chunk_filter, subjects.meta_filter],
        allow_rollup_hdrs=True,
    )

    with pytest.raises(WrongStreamError):
        await box._meta_store.write(info, revision=None)  # pyright: ignore[reportPrivateUsage]
