"""Buckets and stores that are somewhere else: mirrors, sources, and another domain.

nats-py 2.16 knows none of these places (finding 22): its buckets have their prefix built in.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from natsstream import StreamSource, connect
from natsstream.testing import NatsServer
from tests.interop.clients.kv import BucketOptions
from tests.interop.clients.nats_cli import NatsCli
from tests.interop.clients.nats_cli_kv import CliBuckets
from tests.interop.clients.nats_cli_objects import CliObjects
from tests.interop.clients.nats_go import NatsGo
from tests.interop.clients.nats_js import NatsJs
from tests.interop.clients.nats_js_kv import JsBuckets
from tests.interop.clients.nats_js_objects import JsObjects
from tests.interop.clients.objects import StoreOptions
from tests.interop.clients.ours_kv import OurBuckets
from tests.interop.clients.ours_objects import OurObjects
from tests.support.eventually import eventually_async
from tests.support.leaves import start_hub, start_leaf, wait_for_link

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from natsstream import JetStream
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.nats_js import NodeProcess
    from tests.interop.clients.objects import ObjectClient
    from tests.interop.clients.program import Program

LIMIT_S = 30.0
# APP reaches JetStream of DATA, and buckets, under a prefix; objects have their own subjects.
IMPORT = """
accounts {
  DATA {
    jetstream: enabled
    exports: [
      { service: "$JS.API.>", response_type: stream }, { service: "$KV.>" }, { service: "$O.>" }
    ]
  }
  APP {
    users: [{ user: u, password: p }]
    imports: [
      { service: { account: DATA, subject: "$JS.API.>" }, to: "JS.data.API.>" }
      { service: { account: DATA, subject: "$KV.>" }, to: "JS.data.API.$KV.>" }
      { service: { account: DATA, subject: "$O.>" } }
    ]
  }
}
"""

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_go, pytest.mark.needs_node]


async def wait_for(client: KvClient, bucket: str, key: str, value: bytes) -> None:
    """Wait until a key has a value."""

    async def is_there() -> bool:
        return await client.get(bucket, key) == value

    assert await eventually_async(is_there, within_s=LIMIT_S)


@pytest.mark.parametrize("maker", ["ours", "js"])
async def test_mirror_of_one_client_is_read_and_written_by_the_others(
    our_buckets: KvClient,
    cli_buckets: KvClient,
    js_buckets: KvClient,
    stream_name: str,
    maker: str,
) -> None:
    """Of a mirror in its own domain nats.go reads nothing, and nats.js neither reads nor writes.

    Both look under the mirror's own name, and the keys are under the origin's.
    """
    mirror = f"{stream_name}_mirror"
    makers = {"ours": our_buckets, "cli": cli_buckets, "js": js_buckets}
    await makers[maker].create_bucket(BucketOptions(name=stream_name))
    await makers[maker].create_bucket(BucketOptions(name=mirror, mirror=stream_name))
    await makers[maker].put(stream_name, "js", b"js")
    clients = {"ours": our_buckets, "cli": cli_buckets}

    for key, client in clients.items():
        await client.put(mirror, key, b"old")
        await client.put(mirror, key, key.encode())

    for key in makers:
        await wait_for(our_buckets, mirror, key, key.encode())
        for client in makers.values():
            assert await client.get(stream_name, key) == key.encode()
    assert await our_buckets.keys(mirror) == sorted(makers)
    await our_buckets.delete(mirror, "cli")
    assert await cli_buckets.get(stream_name, "cli") is None


@pytest.mark.parametrize("maker", ["ours", "cli"])
async def test_keys_of_a_source_are_keys_for_every_client(
    our_buckets: KvClient,
    cli_buckets: KvClient,
    js_buckets: KvClient,
    stream_name: str,
    maker: str,
) -> None:
    clients = {"ours": our_buckets, "cli": cli_buckets, "js": js_buckets}
    copy = f"{stream_name}_copy"
    await clients[maker].create_bucket(BucketOptions(name=stream_name))
    await clients[maker].create_bucket(BucketOptions(name=copy, sources=(stream_name,)))
    await clients[maker].put(stream_name, "a.b", b"theirs")
    await clients[maker].put(copy, "own", b"own")

    for client in clients.values():
        await wait_for(client, copy, "a.b", b"theirs")
        assert await client.keys(copy) == ["a.b", "own"]


@pytest.fixture(scope="module")
def leaf() -> Iterator[NatsServer]:
    """A leaf node with JetStream of its own, of a server whose JetStream is the domain `hub`."""
    with ExitStack() as servers:
        yield start_leaf(servers, start_hub(servers))


@pytest_asyncio.fixture
async def hub_js(leaf: NatsServer) -> AsyncIterator[JetStream]:
    """The hub's JetStream over the leaf node."""
    async with connect(leaf.url, domain="hub") as js:
        await wait_for_link(js)
        yield js


@pytest.fixture
def places(
    hub_js: JetStream,
    leaf: NatsServer,
    nats_program: Path,
    node_process: NodeProcess,
    go_process: Program,
    tmp_path: Path,
) -> tuple[dict[str, KvClient], dict[str, ObjectClient]]:
    """The clients on the leaf node, whose buckets and stores are in the hub."""
    cli, nats_js = NatsCli(nats_program, leaf.url, tmp_path), NatsJs(node_process, leaf.url)
    nats_go = NatsGo(go_process, leaf.url)
    buckets: dict[str, KvClient] = {
        "ours": OurBuckets(hub_js),
        "cli": CliBuckets(cli, "--js-domain=hub"),
        "js": JsBuckets(nats_js, domain="hub"),
        "go": JsBuckets(nats_go, domain="hub"),
    }
    objects: dict[str, ObjectClient] = {
        "ours": OurObjects(hub_js),
        "cli": CliObjects(cli, "--js-domain=hub"),
        "js": JsObjects(nats_js, domain="hub"),
        "go": JsObjects(nats_go, domain="hub"),
    }
    return buckets, objects


@pytest.mark.proves("1d", "mirror & API-prefix aware reads/writes (ADR-19)")
@pytest.mark.finding(22)
@pytest.mark.parametrize("maker", ["ours", "cli", "go"])
async def test_bucket_of_another_domain_is_everybodys(
    places: tuple[dict[str, KvClient], dict[str, ObjectClient]], stream_name: str, maker: str
) -> None:
    clients, _ = places
    await clients[maker].create_bucket(BucketOptions(name=stream_name))

    for key, client in clients.items():
        await client.create(stream_name, key, key.encode())

    for client in clients.values():
        assert await client.keys(stream_name) == sorted(clients)
        assert [await client.get(stream_name, key) for key in clients] == [
            key.encode() for key in clients
        ]
        assert len(await client.watch(stream_name, 4)) == 4


@pytest.mark.parametrize("maker", ["ours", "js", "go"])
async def test_objects_of_another_domain_are_everybodys(
    places: tuple[dict[str, KvClient], dict[str, ObjectClient]], stream_name: str, maker: str
) -> None:
    _, clients = places
    await clients[maker].create_store(StoreOptions(name=stream_name))

    for name, client in clients.items():
        await client.put(stream_name, name, name.encode() * 100_000)

    for client in clients.values():
        assert await client.names(stream_name) == sorted(clients)
        for name in clients:
            assert await client.get(stream_name, name) == name.encode() * 100_000


@pytest.mark.finding(22)
@pytest.mark.parametrize("maker", ["ours", "cli"])
async def test_mirror_of_a_bucket_in_another_domain_is_written_at_its_origin(
    places: tuple[dict[str, KvClient], dict[str, ObjectClient]],
    leaf: NatsServer,
    nats_program: Path,
    node_process: NodeProcess,
    go_process: Program,
    tmp_path: Path,
    stream_name: str,
    maker: str,
) -> None:
    origins, _ = places
    await origins[maker].create_bucket(BucketOptions(name=stream_name))
    mirror = f"{stream_name}_mirror"
    cli = NatsCli(nats_program, leaf.url, tmp_path)
    async with connect(leaf.url) as js:
        if maker == "ours":
            await js.kv.create(mirror, mirror=StreamSource(name=stream_name, domain="hub"))
        else:
            flags = (f"--mirror={stream_name}", "--mirror-domain=hub")
            await cli.run("kv", "add", mirror, *flags)
        clients: dict[str, KvClient] = {
            "ours": OurBuckets(js),
            "cli": CliBuckets(cli),
            "js": JsBuckets(NatsJs(node_process, leaf.url)),
            "go": JsBuckets(NatsGo(go_process, leaf.url)),
        }

        for key, client in clients.items():
            await client.put(mirror, key, key.encode())

        for key, client in clients.items():
            assert await origins[key].get(stream_name, key) == key.encode()
            for other in clients:
                await wait_for(client, mirror, other, other.encode())
            assert await client.keys(mirror) == sorted(clients)


@pytest.mark.finding(22)
async def test_bucket_of_another_account_is_everybodys(
    nats_program: Path, tmp_path: Path, stream_name: str
) -> None:
    """nats.go watches with a push consumer, whose subject no import carries: no CLI lists here."""
    with NatsServer(config=IMPORT) as server:
        url = server.url.replace("nats://", "nats://u:p@")
        async with connect(url, api_prefix="JS.data.API") as js:
            cli = NatsCli(nats_program, url, tmp_path)
            prefix = "--js-api-prefix=JS.data.API"
            ours, theirs = OurBuckets(js), CliBuckets(cli, prefix)
            await ours.create_bucket(BucketOptions(name=stream_name))
            await theirs.create_bucket(BucketOptions(name=stream_name))

            await ours.put(stream_name, "ours", b"1")
            await theirs.put(stream_name, "cli", b"2")
            await theirs.create(stream_name, "deleted", b"3")
            await ours.delete(stream_name, "deleted")

            assert await ours.get(stream_name, "cli") == b"2"
            assert await theirs.get(stream_name, "ours") == b"1"
            assert await theirs.get(stream_name, "deleted") is None
            assert await ours.keys(stream_name) == ["cli", "ours"]
            assert len(await ours.watch(stream_name, 3)) == 3
