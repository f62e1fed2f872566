"""Findings 12, 13 and 14: what a store says of its objects, as nats-py 2.16 leaves it.

12: it drops the metadata of an object that it updates. 13: it stores `"mtime": ""` with a deletion
and `{"K": "V"}` as headers, which Go can not read: the name is lost for everybody else. 14: it can
not rename.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from nats.js.api import ObjectMeta

from natsstream.errors import ObjectExistsError, ObjectMetaError

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


def meta_subject(store: str, name: str) -> str:
    """Return the subject of an object's meta."""
    return f"$O.{store}.M.{base64.urlsafe_b64encode(name.encode()).decode()}"


async def stored_meta(js: JetStream, store: str, name: str) -> dict[str, Any]:
    """Return what a store says of an object, as it is stored."""
    stream = await js.streams.get(f"OBJ_{store}")
    message = await stream.get(last_by_subject=meta_subject(store, name))
    assert message is not None
    return json.loads(message.data)


@pytest.mark.finding(12)
async def test_metadata_survives_every_change(js: JetStream, stream_name: str) -> None:
    """Fields that we do not know stay as well."""
    box = await js.objects.create(stream_name)
    await box.put("o", b"data", metadata={"owner": "me"}, headers={"A": ["1", "2"]})
    body = await stored_meta(js, stream_name, "o")
    rollup = {"Nats-Rollup": "sub"}
    newer = json.dumps(body | {"newer": {"x": 1}}).encode()
    await js.publish(meta_subject(stream_name, "o"), newer, headers=rollup)

    await box.update("o", description="d")
    await box.rename("o", "p")

    info = await box.info("p")
    assert info is not None
    assert (info.description, dict(info.metadata)) == ("d", {"owner": "me"})
    assert {name: list(values) for name, values in info.headers.items()} == {"A": ["1", "2"]}
    after = await stored_meta(js, stream_name, "p")
    assert after == body | {"name": "p", "description": "d", "newer": {"x": 1}}
    assert await box.get("p") == b"data"


@pytest.mark.finding(13)
async def test_object_deleted_by_nats_py_is_gone_and_its_name_is_free(
    js: JetStream, nats_py: Any, stream_name: str
) -> None:
    theirs = await nats_py.jetstream(timeout=30).create_object_store(stream_name)
    await theirs.put("o", b"data")
    await theirs.put("other", b"data")
    await theirs.delete("o")
    assert (await stored_meta(js, stream_name, "o"))["mtime"] == ""
    box = await js.objects.get(stream_name)

    assert await box.get("o") is None
    assert await box.info("o") is None
    info = await box.info("o", include_deleted=True)
    assert info is not None
    assert info.deleted
    assert [name async for name in box.names()] == ["other"]

    await box.put("o", b"again")

    assert await box.get("o") == b"again"
    assert (await theirs.get("o")).data == b"again"
    assert sorted([name async for name in box.names()]) == ["o", "other"]


@pytest.mark.finding(13)
async def test_our_deletion_is_read_by_everybody(
    js: JetStream, nats_py: Any, stream_name: str
) -> None:
    box = await js.objects.create(stream_name)
    await box.put("o", b"data", headers={"A": "1"})
    assert (await stored_meta(js, stream_name, "o"))["headers"] == {"A": ["1"]}

    await box.delete("o")

    meta = await stored_meta(js, stream_name, "o")
    assert meta.get("mtime") != ""
    assert meta["deleted"] is True
    theirs = await nats_py.jetstream(timeout=30).object_store(stream_name)
    await theirs.put("o", b"again")
    assert await box.get("o") == b"again"


@pytest.mark.finding(13)
async def test_headers_of_nats_py_are_read(js: JetStream, nats_py: Any, stream_name: str) -> None:
    theirs = await nats_py.jetstream(timeout=30).create_object_store(stream_name)
    await theirs.put("o", b"data", meta=ObjectMeta(headers={"A": "1"}))
    assert (await stored_meta(js, stream_name, "o"))["headers"] == {"A": "1"}
    box = await js.objects.get(stream_name)

    info = await box.info("o")

    assert info is not None
    assert {name: list(values) for name, values in info.headers.items()} == {"A": ["1"]}
    await box.update("o", description="d")
    assert (await stored_meta(js, stream_name, "o"))["headers"] == {"A": ["1"]}


@pytest.mark.finding(13)
async def test_unreadable_object_is_told_and_hides_no_other(
    js: JetStream, stream_name: str
) -> None:
    box = await js.objects.create(stream_name)
    for name in ("a", "b", "c"):
        await box.put(name, b"data")
    await js.publish(meta_subject(stream_name, "b"), b"{", headers={"Nats-Rollup": "sub"})

    with pytest.raises(ObjectMetaError):
        await box.info("b")

    assert sorted([name async for name in box.names()]) == ["a", "c"]
    listing = box.list()
    assert sorted([info.name async for info in listing]) == ["a", "c"]
    await box.put("b", b"again")
    assert await box.get("b") == b"again"


@pytest.mark.finding(14)
async def test_object_is_renamed_and_refuses_a_name_that_is_taken(
    js: JetStream, nats_py: Any, stream_name: str
) -> None:
    theirs = await nats_py.jetstream(timeout=30).create_object_store(stream_name)
    await theirs.put("old", b"data")
    await theirs.put("taken", b"other")
    box = await js.objects.get(stream_name)

    with pytest.raises(ObjectExistsError):
        await box.rename("old", "taken")
    await box.rename("old", "new")

    assert sorted([name async for name in box.names()]) == ["new", "taken"]
    assert await box.get("new") == b"data"
    assert (await theirs.get("new")).data == b"data"
    assert await box.get("taken") == b"other"
    assert await box.info("old", include_deleted=True) is None
