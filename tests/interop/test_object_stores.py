"""Object stores are the same whoever makes them, and so is what their streams hold."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import ObjectLink
from tests.interop.clients.objects import About, StoreOptions

if TYPE_CHECKING:
    from tests.interop.clients.client import Config
    from tests.interop.clients.objects import ObjectClient
    from tests.interop.clients.ours import Ours
    from tests.interop.clients.ours_objects import OurObjects

pytestmark = pytest.mark.asyncio

HOUR_S = 3_600
CHUNK = 131_072
STORES: dict[str, StoreOptions] = {
    "plain": StoreOptions(name="o"),
    "described": StoreOptions(name="o", description="Fichiers : été", metadata={"a": "b: c"}),
    "limits": StoreOptions(name="o", bytes_max=1_000_000, ttl_s=HOUR_S),
    "memory": StoreOptions(name="o", in_memory=True),
    "compressed": StoreOptions(name="o", compressed=True),
}
NUID = re.compile(r"[0-9A-Za-z]{22}")
ABOUT = About(description="d", headers={"A": ["1", "2"]})

CLI = pytest.param("cli_objects", id="nats-cli", marks=pytest.mark.needs_go)
JS = pytest.param("js_objects", id="nats-js", marks=pytest.mark.needs_node)
PY = pytest.param("py_objects", id="nats-py")
OURS = pytest.param("our_objects", id="ours")


@pytest.fixture(params=STORES.values(), ids=list(STORES))
def options(request: pytest.FixtureRequest, stream_name: str) -> StoreOptions:
    """One store of the table, with this test's name."""
    return replace(request.param, name=stream_name)


@pytest.mark.proves("1e", "bucket create/update/delete/list")
@pytest.mark.needs_go
async def test_creating_again_with_the_other_client_changes_nothing(
    ours: Ours, our_objects: OurObjects, cli_objects: ObjectClient, options: StoreOptions
) -> None:
    made: list[Config] = []
    clients: list[ObjectClient] = [our_objects, cli_objects]
    for first, second in (clients, clients[::-1]):
        await first.create_store(options)
        made.append(await ours.config(f"OBJ_{options.name}"))

        await second.create_store(options)

        assert await ours.config(f"OBJ_{options.name}") == made[-1]
        await ours.js.objects.delete(options.name)
    # Also where the server would take a difference for none.
    assert made[0] == made[1]


@pytest.mark.proves("1e", "chunk size / headers / metadata / TTL / compression")
@pytest.mark.needs_node
async def test_stream_of_a_store_is_the_one_that_nats_js_makes(
    ours: Ours, our_objects: OurObjects, js_objects: ObjectClient, options: StoreOptions
) -> None:
    await our_objects.create_store(options)
    made = await ours.config(f"OBJ_{options.name}")
    await ours.js.objects.delete(options.name)

    await js_objects.create_store(options)

    assert made == await ours.config(f"OBJ_{options.name}")


@pytest.mark.parametrize("object_writer", [CLI, JS, PY], indirect=True)
@pytest.mark.parametrize("kind", ["plain", "limits"])
async def test_ensure_over_a_store_of_another_client_changes_nothing(
    ours: Ours, object_writer: ObjectClient, kind: str, stream_name: str
) -> None:
    await object_writer.create_store(replace(STORES[kind], name=stream_name))
    before = await ours.config(f"OBJ_{stream_name}")

    box = await ours.js.objects.ensure(stream_name)

    assert await ours.config(f"OBJ_{stream_name}") == before
    assert (await box.put("o", b"data")).size == 4


async def stored_meta(
    ours: Ours, store: str, name: str
) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return the headers and the body of an object's meta, as its stream holds them."""
    token = base64.urlsafe_b64encode(name.encode()).decode()
    stream = await ours.js.streams.get(f"OBJ_{store}")
    message = await stream.get(last_by_subject=f"$O.{store}.M.{token}")
    assert message is not None
    headers = {name: list(message.headers.all(name)) for name in message.headers}
    return headers, json.loads(message.data)


def check_headers(headers: dict[str, list[str]]) -> None:
    """Check the headers of a meta; ours says beside which meta it means to replace."""
    assert headers.pop("Nats-Rollup") == ["sub"]
    assert headers.keys() <= {"Nats-Expected-Last-Subject-Sequence"}


def check_time(text: str | None) -> None:
    """Check the time in a meta, which nobody reads: Go's zero, one of nats.js, or none."""
    assert text != ""
    if text is not None:
        datetime.fromisoformat(text)


@pytest.mark.parametrize("object_writer", [OURS, CLI, JS], indirect=True)
async def test_object_is_stored_in_the_form_of_the_conventions(
    ours: Ours, object_writer: ObjectClient, stream_name: str
) -> None:
    await object_writer.create_store(StoreOptions(name=stream_name))

    await object_writer.put(stream_name, "a b>*", b"x" * (2 * CHUNK + 5), ABOUT)

    headers, body = await stored_meta(ours, stream_name, "a b>*")
    nuid = body.pop("nuid")
    check_headers(headers)
    assert NUID.fullmatch(nuid)
    check_time(body.pop("mtime", None))
    # nats.js says what the others leave out.
    assert body.pop("deleted", False) is False
    assert body.pop("metadata", None) in (None, {})
    assert body == {
        "name": "a b>*",
        "description": "d",
        "headers": {"A": ["1", "2"]},
        "options": {"max_chunk_size": CHUNK},
        "bucket": stream_name,
        "size": 2 * CHUNK + 5,
        "chunks": 3,
        "digest": body["digest"],
    }
    chunks = await ours.read(f"OBJ_{stream_name}", 3, only=f"$O.{stream_name}.C.>")
    assert {(m.subject, tuple(m.headers)) for m in chunks} == {(f"$O.{stream_name}.C.{nuid}", ())}
    assert [len(m.data) for m in chunks] == [CHUNK, CHUNK, 5]


@pytest.mark.proves("1e", "delete")
@pytest.mark.finding(13)
@pytest.mark.parametrize("object_writer", [OURS, CLI, JS], indirect=True)
async def test_deletion_is_stored_in_the_form_of_the_conventions(
    ours: Ours, object_writer: ObjectClient, stream_name: str
) -> None:
    await object_writer.create_store(StoreOptions(name=stream_name))
    await object_writer.put(stream_name, "o", b"data", ABOUT)
    _, before = await stored_meta(ours, stream_name, "o")

    await object_writer.delete(stream_name, "o")

    headers, body = await stored_meta(ours, stream_name, "o")
    check_headers(headers)
    assert body["deleted"] is True
    # Go leaves out what is empty, nats.js does not.
    assert [body.get(name) or 0 for name in ("size", "chunks", "digest")] == [0, 0, 0]
    check_time(body.get("mtime"))
    kept = ("name", "description", "headers", "bucket", "nuid")
    assert {name: body[name] for name in kept} == {name: before[name] for name in kept}
    # The chunks are gone.
    assert (await (await ours.js.streams.get(f"OBJ_{stream_name}")).info()).state.messages == 1


@pytest.mark.parametrize("object_writer", [OURS, JS], indirect=True)
async def test_link_is_stored_in_the_form_of_the_conventions(
    ours: Ours, object_writer: Any, stream_name: str
) -> None:
    await object_writer.create_store(StoreOptions(name=stream_name))
    await object_writer.put(stream_name, "target", b"data")

    await object_writer.link(stream_name, "l", stream_name, "target")

    _, body = await stored_meta(ours, stream_name, "l")
    assert body["options"] == {"link": {"bucket": stream_name, "name": "target"}}
    assert (body["name"], body["bucket"]) == ("l", stream_name)
    assert not body.get("chunks")
    assert not body.get("size")


@pytest.mark.proves("1e", "add link / bucket link")
@pytest.mark.parametrize("object_writer", [OURS, JS], indirect=True)
async def test_link_to_a_store_is_stored_in_the_form_of_the_conventions(
    ours: Ours, object_writer: Any, stream_name: str
) -> None:
    target = f"{stream_name}_target"
    for name in (stream_name, target):
        await object_writer.create_store(StoreOptions(name=name))

    await object_writer.link_store(stream_name, "l", target)

    headers, body = await stored_meta(ours, stream_name, "l")
    check_headers(headers)
    # nats.js also says how large the chunks would be.
    assert body["options"].pop("max_chunk_size", CHUNK) == CHUNK
    assert body["options"] == {"link": {"bucket": target}}
    assert (body["name"], body["bucket"]) == ("l", stream_name)
    assert not body.get("chunks")
    assert not body.get("size")
    info = await (await ours.js.objects.get(stream_name)).info("l")
    assert info is not None
    assert info.link == ObjectLink(target)
