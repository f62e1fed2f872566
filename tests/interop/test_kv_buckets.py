"""Buckets are the same whoever makes them: creating again, ensuring, and what is stored of them.

nats.js opens a bucket that exists without a look at its configuration. nats-py 2.16 asks for
`allow_msg_ttl` in every bucket, so the server takes its request for the same bucket with markers
alone (finding 16).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.client import RefusedError
from tests.interop.clients.kv import BucketOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.interop.clients.client import Config
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.nats_go import NatsGo
    from tests.interop.clients.ours import Ours
    from tests.interop.clients.ours_kv import OurBuckets

pytestmark = pytest.mark.asyncio

MINUTE_S = 60
STREAM_EXISTS = 10058

# The names of buckets stand for those of the test: see `named`.
BUCKETS: dict[str, BucketOptions] = {
    "plain": BucketOptions(name="b"),
    "history": BucketOptions(name="b", history=64, description="Données : été"),
    "short-lived": BucketOptions(name="b", ttl_s=30),
    "long-lived": BucketOptions(name="b", ttl_s=90 * MINUTE_S, history=3),
    "limits": BucketOptions(name="b", bytes_max=1_000_000, value_bytes_max=4_096),
    "memory": BucketOptions(name="b", in_memory=True),
    "compressed": BucketOptions(name="b", compressed=True),
    "markers": BucketOptions(name="b", marker_ttl_s=45),
    "markers-and-ttl": BucketOptions(name="b", marker_ttl_s=60, ttl_s=3_600, history=5),
    "republished": BucketOptions(name="b", republish=("$KV.{}.>", "copy.{}.>")),
    "mirror": BucketOptions(name="b", mirror="{}_origin"),
    "sources": BucketOptions(name="b", sources=("{}_origin", "{}_other")),
}
# Fields of a stream that nats.js leaves to the server, where nats.go writes them.
NOT_BY_NATS_JS = {"deny_delete", "duplicate_window", "max_bytes", "max_msg_size", "max_consumers"}


@pytest.fixture(params=BUCKETS.values(), ids=list(BUCKETS))
def options(request: pytest.FixtureRequest, stream_name: str) -> BucketOptions:
    """One bucket of the table, with this test's names."""
    return named(request.param, stream_name)


def named(options: BucketOptions, name: str) -> BucketOptions:
    """Return the options with a test's own names."""
    republish = options.republish
    return replace(
        options,
        name=name,
        mirror=options.mirror.format(name),
        sources=tuple(source.format(name) for source in options.sources),
        republish=republish and (republish[0].format(name), republish[1].format(name)),
    )


async def make_origins(client: KvClient, options: BucketOptions) -> None:
    """Make the buckets that another one names."""
    for name in (options.mirror, *options.sources):
        if name:
            await client.create_bucket(BucketOptions(name=name))


def without_servers_own(config: Mapping[str, object]) -> Config:
    """Return a configuration without the metadata that the server writes itself."""
    return {name: value for name, value in config.items() if name != "metadata"}


@pytest.mark.proves("1d", "config equal to Go's (CreateKeyValue idempotent)")
@pytest.mark.proves("1d", "mirror / sources / republish")
@pytest.mark.finding(16)
@pytest.mark.needs_go
async def test_creating_again_with_the_other_client_changes_nothing(
    ours: Ours, our_buckets: OurBuckets, cli_buckets: KvClient, options: BucketOptions
) -> None:
    made: list[Config] = []
    clients: list[KvClient] = [our_buckets, cli_buckets]
    await make_origins(our_buckets, options)
    for first, second in (clients, clients[::-1]):
        await first.create_bucket(options)
        made.append(await ours.config(f"KV_{options.name}"))

        await second.create_bucket(options)

        assert await ours.config(f"KV_{options.name}") == made[-1]
        await ours.js.kv.delete(options.name)
    # Also where the server would take a difference for none.
    assert made[0] == made[1]


@pytest.mark.proves("1d", "config equal to Go's (CreateKeyValue idempotent)")
@pytest.mark.finding(16)
@pytest.mark.needs_node
async def test_stream_of_a_bucket_has_what_nats_js_gives_it(
    ours: Ours, our_buckets: OurBuckets, js_buckets: KvClient, options: BucketOptions
) -> None:
    await make_origins(our_buckets, options)
    await our_buckets.create_bucket(options)
    made = await ours.config(f"KV_{options.name}")
    await (await ours.js.streams.get(f"KV_{options.name}")).delete()

    await js_buckets.create_bucket(options)

    theirs = await ours.config(f"KV_{options.name}")
    different = {name for name in made.keys() | theirs.keys() if made.get(name) != theirs.get(name)}
    assert different - NOT_BY_NATS_JS == set()


@pytest.mark.finding(16)
@pytest.mark.parametrize(
    "kv_writer",
    [
        pytest.param("cli_buckets", id="nats-cli", marks=pytest.mark.needs_go),
        pytest.param("js_buckets", id="nats-js", marks=pytest.mark.needs_node),
        pytest.param("py_buckets", id="nats-py"),
    ],
    indirect=True,
)
@pytest.mark.parametrize("kind", ["plain", "limits", "markers-and-ttl", "republished"])
async def test_ensure_over_a_bucket_of_another_client_changes_nothing(
    ours: Ours, kv_writer: KvClient, kind: str, stream_name: str
) -> None:
    options = named(BUCKETS[kind], stream_name)
    await kv_writer.create_bucket(options)
    before = await ours.config(f"KV_{stream_name}")

    bucket = await ours.js.kv.ensure(stream_name, history=options.history)

    assert await ours.config(f"KV_{stream_name}") == before
    assert await bucket.put("k", b"v") == 1


@pytest.mark.parametrize("kind", ["markers", "markers-and-ttl"])
@pytest.mark.parametrize("first", ["ours", "nats-py"])
async def test_creating_again_with_nats_py_changes_nothing_with_markers(
    ours: Ours,
    our_buckets: OurBuckets,
    py_buckets: KvClient,
    stream_name: str,
    kind: str,
    first: str,
) -> None:
    clients: list[KvClient] = [our_buckets, py_buckets]
    if first == "nats-py":
        clients.reverse()
    options = named(BUCKETS[kind], stream_name)
    await clients[0].create_bucket(options)
    before = await ours.config(f"KV_{stream_name}")

    await clients[1].create_bucket(options)

    assert await ours.config(f"KV_{stream_name}") == before


@pytest.mark.needs_go
async def test_another_bucket_of_the_same_name_is_refused_by_both(
    our_buckets: OurBuckets, cli_buckets: KvClient, stream_name: str
) -> None:
    clients: list[KvClient] = [our_buckets, cli_buckets]
    for number, (first, second) in enumerate([clients, clients[::-1]]):
        name = f"{stream_name}_{number}"
        await first.create_bucket(BucketOptions(name=name, history=3))

        with pytest.raises(RefusedError) as refused:
            await second.create_bucket(BucketOptions(name=name, history=4))

        assert refused.value.err_code == STREAM_EXISTS


@pytest.mark.needs_go
@pytest.mark.sampled
async def test_bucket_that_nats_go_updates_is_ours_with_its_keys(
    ours: Ours, our_buckets: KvClient, nats_go: NatsGo, go_buckets: KvClient, stream_name: str
) -> None:
    await our_buckets.create_bucket(BucketOptions(name=stream_name, history=2))
    await our_buckets.put(stream_name, "a", b"1")

    options = {"history": 9, "description": "Zähler", "ttl": 3_600_000, "max_bytes": 1_000_000}
    await nats_go.call("kv_update_bucket", bucket=stream_name, options=options)
    bucket = await ours.js.kv.get(stream_name)
    changed = bucket.config
    await ours.js.kv.update(stream_name, history=5)

    assert (changed.history, changed.description, changed.ttl) == (9, "Zähler", 3_600)
    assert changed.max_bytes == 1_000_000
    shown = await nats_go.config(f"KV_{stream_name}")
    assert (shown["max_msgs_per_subject"], shown["description"]) == (5, "Zähler")
    assert (shown["max_age"], shown["max_bytes"]) == (3_600_000_000_000, 1_000_000)
    await go_buckets.create_bucket(
        BucketOptions(
            name=stream_name, history=5, description="Zähler", ttl_s=3_600, bytes_max=1_000_000
        )
    )
    assert await go_buckets.get(stream_name, "a") == b"1"
