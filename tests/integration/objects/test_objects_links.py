"""Links stand for objects of any store, and for whole stores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream.errors import (
    BucketNotFoundError,
    ConfigError,
    ObjectExistsError,
    ObjectLinkError,
    ObjectNameError,
    ObjectNotFoundError,
)
from natsstream.objects.info import ObjectLink
from natsstream.objects.store_subjects import StoreSubjects

if TYPE_CHECKING:
    from natsstream import JetStream, ObjectStore

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def box(js: JetStream, stream_name: str) -> ObjectStore:
    """An empty object store."""
    return await js.objects.create(stream_name, storage="memory")


@pytest_asyncio.fixture
async def other(js: JetStream, stream_name: str) -> ObjectStore:
    """Another empty object store."""
    return await js.objects.create(f"{stream_name}-other", storage="memory")


async def write_link(js: JetStream, box: ObjectStore, name: str, link: dict[str, str]) -> None:
    """Store a link as another client does, which checks nothing."""
    body = {"name": name, "bucket": box.name, "nuid": "N", "options": {"link": link}}
    await js.publish(
        StoreSubjects(box.name).meta_subject(name), json.dumps(body).encode(), rollup="subject"
    )


@pytest.mark.proves("1e", "add link / bucket link")
async def test_a_link_reads_what_its_target_holds_at_that_time(box: ObjectStore) -> None:
    await box.put("a", b"one")

    info = await box.link("l", "a")
    first = await box.get("l")
    await box.put("a", b"two")

    assert info.link == ObjectLink(box.name, "a")
    assert (first, await box.get("l")) == (b"one", b"two")
    held = await box.info("l")
    assert held is not None
    assert (held.link, held.size, held.chunks, held.digest) == (info.link, 0, 0, "")


@pytest.mark.proves("1e", "add link / bucket link")
async def test_a_link_leads_to_another_store(box: ObjectStore, other: ObjectStore) -> None:
    target = await other.put("a", b"one")

    await box.link("l", target)

    assert await box.get("l") == b"one"


async def test_what_can_not_be_linked_to_is_told(box: ObjectStore, other: ObjectStore) -> None:
    put = await other.put("a", b"one")
    await box.put("b", b"two")
    await box.link("l", "b")

    with pytest.raises(ObjectNotFoundError):
        await box.link("x", "nothing")
    with pytest.raises(ObjectLinkError):
        await box.link("x", "l")
    with pytest.raises(ConfigError):
        await box.link("x", 5)  # pyright: ignore[reportArgumentType] - It is refused.
    await other.delete("a")
    with pytest.raises(ObjectNotFoundError):
        await box.link("x", put)
    with pytest.raises(BucketNotFoundError):
        await box.link_bucket("x", f"{box.name}-nothing")
    with pytest.raises(ObjectNameError):
        await box.link("", "b")

    assert await box.info("x") is None


async def test_a_link_replaces_a_link_and_no_object(box: ObjectStore) -> None:
    await box.put("a", b"one")
    await box.put("b", b"two")
    await box.link("l", "a")

    await box.link("l", "b")

    assert await box.get("l") == b"two"
    for call in (box.link("a", "b"), box.link_bucket("a", box.name)):
        with pytest.raises(ObjectExistsError):
            await call
    assert await box.get("a") == b"one"


async def test_deleting_a_link_leaves_its_target(box: ObjectStore) -> None:
    await box.put("a", b"one")
    await box.link("l", "a")

    await box.delete("l")

    assert (await box.get("l"), await box.get("a")) == (None, b"one")


async def test_an_object_can_be_put_over_a_link(box: ObjectStore) -> None:
    await box.put("a", b"one")
    await box.link("l", "a")

    await box.put("l", b"two")

    assert (await box.get("l"), await box.get("a")) == (b"two", b"one")


@pytest.mark.proves("1e", "add link / bucket link")
async def test_a_link_to_a_store_has_no_bytes(box: ObjectStore, other: ObjectStore) -> None:
    info = await box.link_bucket("l", other.name)

    assert info.link == ObjectLink(other.name)
    with pytest.raises(ObjectLinkError) as caught:
        await box.get("l")
    assert other.name in caught.value.hint


async def test_a_target_that_is_gone_is_as_absent_as_the_object(
    box: ObjectStore, other: ObjectStore, js: JetStream
) -> None:
    await box.link("l", await other.put("a", b"one"))

    await other.delete("a")
    gone = await box.get("l")
    await js.objects.delete(other.name)

    assert (gone, await box.get("l")) == (None, None)


async def test_links_to_links_of_other_clients_are_followed_and_circles_told(
    js: JetStream, box: ObjectStore
) -> None:
    await box.put("a", b"one")
    await write_link(js, box, "l1", {"bucket": box.name, "name": "a"})
    await write_link(js, box, "l2", {"bucket": box.name, "name": "l1"})
    await write_link(js, box, "c1", {"bucket": box.name, "name": "c2"})
    await write_link(js, box, "c2", {"bucket": box.name, "name": "c1"})

    assert await box.get("l2") == b"one"
    with pytest.raises(ObjectLinkError):
        await box.get("c1")


@pytest.mark.parametrize(
    "link", [{"bucket": "a.b", "name": "x"}, {"bucket": ">", "name": "x"}, {"name": "x"}]
)
async def test_a_link_to_no_legal_name_is_told_as_the_links_fault(
    js: JetStream, box: ObjectStore, link: dict[str, str]
) -> None:
    await write_link(js, box, "l", link)

    with pytest.raises(ObjectLinkError):
        await box.get("l")


async def test_a_renamed_link_leads_where_it_did(box: ObjectStore) -> None:
    await box.put("a", b"one")
    await box.link("l", "a")

    await box.rename("l", "k")

    assert (await box.get("k"), await box.get("l")) == (b"one", None)
