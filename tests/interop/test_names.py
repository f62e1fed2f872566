"""Odd names: what natsstream takes and what nats.go takes, and that both mean the same bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from natsstream.errors import NatsStreamError
from tests.interop.clients.client import RefusedError
from tests.interop.clients.kv import BucketOptions
from tests.interop.clients.objects import StoreOptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tests.interop.clients.client import Client
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.nats_go import NatsGo
    from tests.interop.clients.objects import ObjectClient
    from tests.interop.clients.ours import Ours

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_go, pytest.mark.sampled]


async def is_taken(act: Callable[[], Awaitable[object]]) -> bool:
    """Tell whether a client does something, or refuses to."""
    try:
        await act()
    except (NatsStreamError, RefusedError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class Taken:
    """Who takes a name; where the two differ, the docs say so."""

    ours: bool
    go: bool


BOTH, NEITHER = Taken(ours=True, go=True), Taken(ours=False, go=False)
# {} stands for the name of the test's stream.
STREAMS = {
    "{}-dash_und": BOTH,
    "{}=$%&'()": BOTH,
    "{}été": BOTH,
    "{}\N{SNOWMAN}": BOTH,
    "{}.dot": NEITHER,
    "{} space": NEITHER,
    "{}*": NEITHER,
    "{}>": NEITHER,
    "{}/slash": NEITHER,
    "{}\\back": NEITHER,
    "{}\ttab": NEITHER,
    "": NEITHER,
}
BUCKETS = {
    "{}-dash_und": BOTH,
    "{}été": NEITHER,
    "{}=": NEITHER,
    "{}.dot": NEITHER,
    "{} space": NEITHER,
    "": NEITHER,
}
KEYS = {
    "a.b.c": BOTH,
    "A-b_c/d=e.f": BOTH,
    "_kv.x": BOTH,
    "0": BOTH,
    ".a": NEITHER,
    "a.": NEITHER,
    "a..b": NEITHER,
    "a b": NEITHER,
    "a*": NEITHER,
    ">": NEITHER,
    "été": NEITHER,
    "a:b": NEITHER,
    "": NEITHER,
}
OBJECTS = {
    "a/b.bin": BOTH,
    " spaces und Umlaute äöü": BOTH,
    "\N{SNOWMAN}\N{ROCKET}.png": BOTH,
    "*.>": BOTH,
    "line\r\nend": BOTH,
    "n" * 300: BOTH,
    "": NEITHER,
}


@pytest.mark.parametrize(("pattern", "taken"), STREAMS.items(), ids=map(ascii, STREAMS))
async def test_name_of_a_stream_is_taken_alike(
    ours: Ours, nats_go: NatsGo, stream_name: str, pattern: str, taken: Taken
) -> None:
    name = pattern.replace("{}", stream_name)
    clients: tuple[Client, Client] = (ours, nats_go)
    by = [
        await is_taken(lambda c=client: c.create({"name": name, "subjects": [f"{stream_name}.>"]}))
        for client in clients
    ]

    assert Taken(*by) == taken
    if taken == BOTH:
        await ours.publish(f"{stream_name}.a", b"1")
        assert await nats_go.get(name, 1) == await ours.get(name, 1)
        await ours.js.streams.delete(name)


@pytest.mark.parametrize(("name", "taken"), STREAMS.items(), ids=map(ascii, STREAMS))
async def test_name_of_a_consumer_is_taken_alike(
    ours: Ours, nats_go: NatsGo, stream_name: str, name: str, taken: Taken
) -> None:
    await ours.create({"name": stream_name, "subjects": [f"{stream_name}.>"]})
    durable = name.replace("{}", "c")
    config: dict[str, object] = {"durable_name": durable, "ack_policy": "explicit"}
    if not durable:
        # An empty name is none for nats.go, which makes an ephemeral one; ours wants None.
        taken = Taken(ours=False, go=True)
    clients: tuple[Client, Client] = (ours, nats_go)
    by = [
        await is_taken(lambda c=client: c.create_consumer(stream_name, config))
        for client in clients
    ]

    assert Taken(*by) == taken
    if taken == BOTH:
        await nats_go.publish(f"{stream_name}.a", b"1")
        assert [each.data for each in await nats_go.work(stream_name, durable, 1)] == [b"1"]


@pytest.mark.parametrize(("pattern", "taken"), BUCKETS.items(), ids=map(ascii, BUCKETS))
async def test_name_of_a_bucket_is_taken_alike(
    our_buckets: KvClient, go_buckets: KvClient, stream_name: str, pattern: str, taken: Taken
) -> None:
    name = pattern.replace("{}", stream_name)
    by = [
        await is_taken(lambda c=client: c.create_bucket(BucketOptions(name=name)))
        for client in (our_buckets, go_buckets)
    ]

    assert Taken(*by) == taken
    if taken == BOTH:
        await our_buckets.put(name, "a", b"1")
        assert await go_buckets.get(name, "a") == b"1"


@pytest.mark.parametrize(("key", "taken"), KEYS.items(), ids=map(ascii, KEYS))
async def test_key_is_taken_alike(
    our_buckets: KvClient, go_buckets: KvClient, stream_name: str, key: str, taken: Taken
) -> None:
    await our_buckets.create_bucket(BucketOptions(name=stream_name))
    by = [
        await is_taken(lambda c=client, v=value: c.put(stream_name, key, v))
        for client, value in ((our_buckets, b"ours"), (go_buckets, b"go"))
    ]

    assert Taken(*by) == taken
    if taken == BOTH:
        for client in (our_buckets, go_buckets):
            assert await client.get(stream_name, key) == b"go"
            assert await client.keys(stream_name) == [key]


@pytest.mark.parametrize(
    ("name", "taken"), OBJECTS.items(), ids=[ascii(each[:30]) for each in OBJECTS]
)
async def test_name_of_an_object_is_taken_alike(
    our_objects: ObjectClient, go_objects: ObjectClient, stream_name: str, name: str, taken: Taken
) -> None:
    await our_objects.create_store(StoreOptions(name=stream_name))
    by = [
        await is_taken(lambda c=client, v=value: c.put(stream_name, name, v))
        for client, value in ((our_objects, b"ours"), (go_objects, b"go"))
    ]

    assert Taken(*by) == taken
    if taken == BOTH:
        for client in (our_objects, go_objects):
            assert await client.get(stream_name, name) == b"go"
            assert await client.names(stream_name) == [name]
