"""Objects: what one client stores, every other one reads, shows and replaces, on R1 and on R3.

natscli 0.3.0 can neither rename nor link, and gives objects no metadata; nats-py 2.16 has none of
these, and what it writes as headers and as a deletion is unreadable for Go (findings 12 to 14).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, cast

import pytest

from tests.interop.clients.client import RefusedError
from tests.interop.clients.objects import About, StoreOptions
from tests.interop.pairs import pairs
from tests.interop.replicas import holds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.interop.clients.nats_cli import NatsCli
    from tests.interop.clients.nats_cli_objects import CliObjects
    from tests.interop.clients.objects import NamingClient, ObjectClient
    from tests.interop.clients.ours import Ours
    from tests.interop.clients.ours_objects import OurObjects

pytestmark = pytest.mark.asyncio

CHUNK = 131_072
# Names that no subject could carry as they are; sizes around the chunk's.
CONTENTS = {
    "plain.bin": b"some bytes\n\0\xff",
    "folder/o? >*.": bytes(range(256)) * 3,
    "empty": b"",
    "large": b"x" * (2 * CHUNK + 1),
}
ABOUT = About(description="Données : été", headers={"A": ["1", "2"], "b-c": ["x: y"]})
WITH_METADATA = About(description="d", headers={"A": ["1"]}, metadata={"owner": "me", "k": "ü"})


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.proves("1e", "put stream / bytes / string / file")
@pairs("object", replicated=True, with_peers=True)
async def test_objects_are_read_and_listed_by_every_client(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str, replicas: int
) -> None:
    await object_writer.create_store(StoreOptions(name=stream_name, replicas=replicas))
    for name, data in CONTENTS.items():
        await object_writer.put(stream_name, name, data)

    async def check() -> None:
        assert await object_reader.names(stream_name) == sorted(CONTENTS)
        for name, data in CONTENTS.items():
            assert await object_reader.get(stream_name, name) == data
        shown = await object_reader.info(stream_name, "folder/o? >*.")
        assert shown is not None
        assert (shown.size, shown.chunks) == (768, 1)
        assert shown.digest == sha256(CONTENTS["folder/o? >*."])
        assert await object_reader.get(stream_name, "none") is None

    await holds(check, replicas=replicas)


@pairs("object", ("our", "cli", "py"), ("our", "cli", "py"), with_peers=True)
async def test_name_beyond_ascii_is_found(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    """nats.js 3.4 makes the subject of such a name from Latin-1: nobody else finds it there."""
    await object_writer.create_store(StoreOptions(name=stream_name))

    await object_writer.put(stream_name, "dossier/été €", b"data")

    assert await object_reader.get(stream_name, "dossier/été €") == b"data"
    assert await object_reader.names(stream_name) == ["dossier/été €"]


@pytest.mark.proves("1e", "chunk size / headers / metadata / TTL / compression")
@pytest.mark.finding(13)
@pairs("object", ("our", "cli", "js"))
async def test_description_and_headers_are_shown_by_every_client(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    await object_writer.create_store(StoreOptions(name=stream_name))

    await object_writer.put(stream_name, "o", b"data", ABOUT)

    shown = await object_reader.info(stream_name, "o")
    assert shown is not None
    assert (shown.description, shown.headers) == (ABOUT.description, ABOUT.headers)


@pytest.mark.proves("1e", "chunk size / headers / metadata / TTL / compression")
@pytest.mark.finding(12)
@pairs("object", ("our", "js"), ("our", "js"))
async def test_metadata_is_shown(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    await object_writer.create_store(StoreOptions(name=stream_name))

    await object_writer.put(stream_name, "o", b"data", WITH_METADATA)

    shown = await object_reader.info(stream_name, "o")
    assert shown is not None
    assert shown.metadata == WITH_METADATA.metadata


@pairs("object", ("our", "cli", "js"), ("our", "cli", "js"), replicated=True)
async def test_object_is_replaced_deleted_and_put_again_by_every_client(
    ours: Ours,
    object_writer: ObjectClient,
    object_reader: ObjectClient,
    stream_name: str,
    replicas: int,
    settle: Callable[[str], Awaitable[None]],
) -> None:
    await object_writer.create_store(StoreOptions(name=stream_name, replicas=replicas))
    await object_writer.put(stream_name, "o", b"first" * CHUNK)
    # nats.go and nats.js look for the chunks that have to go on any replica.
    await settle(f"OBJ_{stream_name}")
    await object_reader.put(stream_name, "o", b"second")

    async def expect(content: bytes | None) -> None:
        for client in (object_writer, object_reader):
            assert await client.get(stream_name, "o") == content
            assert await client.names(stream_name) == ([] if content is None else ["o"])

    await holds(lambda: expect(b"second"), replicas=replicas)
    await settle(f"OBJ_{stream_name}")
    await object_writer.delete(stream_name, "o")
    await holds(lambda: expect(None), replicas=replicas)
    await settle(f"OBJ_{stream_name}")
    await object_reader.put(stream_name, "o", b"third")
    await holds(lambda: expect(b"third"), replicas=replicas)

    # One meta, and the chunk of what is stored now.
    info = await (await ours.js.streams.get(f"OBJ_{stream_name}")).info()
    assert info.state.messages == 2


@pytest.mark.proves("1e", "update meta / rename")
@pytest.mark.finding(14)
@pairs("object", ("our", "js"))
async def test_renamed_object_is_found_under_its_new_name_alone(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    writer = cast("NamingClient", object_writer)
    await writer.create_store(StoreOptions(name=stream_name))
    await writer.put(stream_name, "old", b"data" * CHUNK)

    await writer.rename(stream_name, "old", "new/n")

    assert await object_reader.names(stream_name) == ["new/n"]
    assert await object_reader.get(stream_name, "old") is None
    assert await object_reader.get(stream_name, "new/n") == b"data" * CHUNK


async def check_link(writer: NamingClient, reader: ObjectClient, store: str) -> None:
    """Link to an object with one client, and read it with the other."""
    await writer.create_store(StoreOptions(name=store))
    await writer.put(store, "target", b"data")

    await writer.link(store, "link", store, "target")

    assert await reader.get(store, "link") == b"data"
    assert await reader.names(store) == ["link", "target"]


@pytest.mark.proves("1e", "add link / bucket link")
@pairs("object", ("our",))
async def test_link_is_followed_by_every_client(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    await check_link(cast("NamingClient", object_writer), object_reader, stream_name)


@pairs("object", ("js",), ("our",))
async def test_link_of_nats_js_is_followed(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    """It has no nuid, and nats.go and nats-py refuse a meta without one."""
    await check_link(cast("NamingClient", object_writer), object_reader, stream_name)


@pairs("object", ("our", "js"))
async def test_link_to_a_store_is_listed_by_every_client(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    writer = cast("NamingClient", object_writer)
    for name in (stream_name, f"{stream_name}_target"):
        await writer.create_store(StoreOptions(name=name))

    await writer.link_store(stream_name, "l", f"{stream_name}_target")

    assert await object_reader.names(stream_name) == ["l"]


@pytest.mark.proves("1e", "seal")
@pairs("object", readers=("our", "cli", "js"))
async def test_sealed_store_is_read_and_refuses_every_client(
    object_writer: ObjectClient, object_reader: ObjectClient, stream_name: str
) -> None:
    await object_writer.create_store(StoreOptions(name=stream_name))
    await object_writer.put(stream_name, "o", b"data")

    await object_writer.seal(stream_name)

    assert await object_reader.get(stream_name, "o") == b"data"
    with pytest.raises(RefusedError):
        await object_reader.put(stream_name, "o", b"other")


@pytest.mark.needs_go
async def test_chunks_of_any_size_are_read(
    our_objects: OurObjects, cli_objects: CliObjects, stream_name: str
) -> None:
    """The CLI makes a chunk of what one read of a pipe returns, which is less than it says."""
    data = bytes(range(256)) * 2_000
    await cli_objects.create_store(StoreOptions(name=stream_name))
    await cli_objects.put_from_pipe(stream_name, "o", data)
    box = await our_objects.js.objects.get(stream_name)
    info = await box.info("o")
    assert info is not None
    assert info.chunks > len(data) // CHUNK + 1

    assert await box.get("o") == data
    async with box.open("o", offset=100_001, length=300_000) as part:
        assert b"".join([piece async for piece in part]) == data[100_001:400_001]


@pytest.mark.finding(13)
@pytest.mark.needs_go
async def test_name_that_nats_py_has_lost_is_given_back(
    our_objects: ObjectClient,
    cli_objects: ObjectClient,
    py_objects: ObjectClient,
    stream_name: str,
) -> None:
    """The deletion of nats-py stands in the way of Go, which can not even put over it."""
    await cli_objects.create_store(StoreOptions(name=stream_name))
    await py_objects.put(stream_name, "o", b"old")
    await py_objects.delete(stream_name, "o")
    with pytest.raises(RefusedError, match="meta"):
        await cli_objects.put(stream_name, "o", b"new")

    await our_objects.put(stream_name, "o", b"ours")

    assert await cli_objects.get(stream_name, "o") == b"ours"
    await cli_objects.put(stream_name, "o", b"new")
    assert await our_objects.get(stream_name, "o") == b"new"


@pytest.mark.needs_go
async def test_cli_has_no_command_that_renames_or_links(nats_cli: NatsCli) -> None:
    """The day that it has them, it joins the tests above."""
    said = (await nats_cli.run("object", "--help")).stdout.decode()

    assert "put" in said
    assert "rename" not in said
    assert "link" not in said
