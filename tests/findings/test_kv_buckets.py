"""Findings 16 and 22: what a bucket's stream is, and where its keys are.

16: a bucket of nats-py 2.16 is another stream than the one that everybody makes, so neither client
can create it over the other's; placement is taken and dropped. 22: the prefix of its keys is built
in, so mirrors, domains and imported APIs are out of its reach.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import Placement
from natsstream.errors import BucketExistsError
from tests.support.clusters import connect_to

if TYPE_CHECKING:
    from natsstream import JetStream, Stream
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio

# What nats.go gives a bucket; clients.md, table 5b.
CONVENTION: dict[str, object] = {
    "retention": "limits",
    "max_consumers": -1,
    "max_msgs_per_subject": 3,
    "max_msgs": -1,
    "max_bytes": -1,
    "max_age": 30_000_000_000,
    "max_msg_size": -1,
    "storage": "file",
    "discard": "new",
    "num_replicas": 1,
    "duplicate_window": 30_000_000_000,
    "deny_delete": True,
    "deny_purge": False,
    "allow_rollup_hdrs": True,
    "allow_direct": True,
    "mirror_direct": False,
    "compression": "none",
    "allow_msg_ttl": False,
}


async def stored_config(stream: Stream) -> dict[str, object]:
    """Return a stream's configuration as the server has it."""
    return cast("dict[str, object]", (await stream.info()).raw["config"])


@pytest.mark.proves("1d", "allow_direct on by default (ADR-8)")
@pytest.mark.finding(16)
async def test_stream_of_a_bucket_is_that_of_the_conventions(
    js: JetStream, stream_name: str
) -> None:
    bucket = await js.kv.create(stream_name, history=3, ttl=30)

    config = await stored_config(bucket.stream)

    assert config["name"] == f"KV_{stream_name}"
    assert config["subjects"] == [f"$KV.{stream_name}.>"]
    # What is not there is false, or nothing.
    absent = {"allow_msg_ttl": False, "compression": "none"}
    assert {name: config.get(name, absent.get(name)) for name in CONVENTION} == CONVENTION


@pytest.mark.finding(16)
async def test_bucket_of_nats_py_is_used_and_left_as_it_is(
    js: JetStream, nats_py: Any, stream_name: str
) -> None:
    """Its fields are others, and `create` says which; `ensure` asks for none of them."""
    theirs = await nats_py.jetstream(timeout=30).create_key_value(bucket=stream_name, history=3)
    await theirs.put("k", b"v")
    before = await stored_config(await js.streams.get(f"KV_{stream_name}"))

    bucket = await js.kv.ensure(stream_name, history=3)

    assert await stored_config(bucket.stream) == before
    entry = await bucket.get("k")
    assert entry is not None
    assert entry.value == b"v"
    assert (await theirs.get("k")).value == b"v"
    with pytest.raises(BucketExistsError, match="allow_msg_ttl"):
        await js.kv.create(stream_name, history=3)


@pytest.mark.proves("1d", "compression / metadata / placement")
@pytest.mark.finding(16)
async def test_placement_of_a_bucket_is_kept(nats_cluster: NatsCluster, stream_name: str) -> None:
    async with connect_to(nats_cluster) as js:
        first = await js.kv.create(f"{stream_name}_where")
        info = await first.stream.info()
        assert info.cluster is not None
        where = Placement(cluster=info.cluster.name)

        bucket = await js.kv.create(stream_name, placement=where)

        assert (await bucket.stream.info()).config.placement == where


@pytest.mark.finding(22)
async def test_mirror_is_read_here_and_written_at_its_origin(
    js: JetStream, stream_name: str
) -> None:
    origin = await js.kv.create(stream_name)
    mirror = await js.kv.create(f"{stream_name}_mirror", mirror=stream_name)

    revision = await mirror.put("k", b"v")

    found = await origin.get("k")
    assert found is not None
    assert (found.value, found.revision) == (b"v", revision)
    async with mirror.watch("k") as watch:
        entry = await anext(watch)
    assert (entry.key, entry.value) == ("k", b"v")
    assert [key async for key in mirror.keys()] == ["k"]
