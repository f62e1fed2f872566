"""Removing what deleted keys take: ours leaves what the nats CLI, nats.js and nats.go leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.kv import BucketOptions, Seen

if TYPE_CHECKING:
    from tests.interop.clients.kv import KvClient
    from tests.interop.clients.nats_cli_kv import CliBuckets
    from tests.interop.clients.nats_go import NatsGo
    from tests.interop.clients.nats_js_kv import JsBuckets
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio

# Later than now: every marker is older.
IN_AN_HOUR_MS = -3_600_000
Left = list[tuple[str, int, bytes]]


async def fill(client: KvClient, bucket: str) -> None:
    """Make a bucket with values, markers, and keys that were written again behind a marker."""
    await client.create_bucket(BucketOptions(name=bucket, history=5))
    for key in ("a.deleted", "a.purged", "again", "kept"):
        await client.put(bucket, key, b"1")
        await client.put(bucket, key, b"2")
    await client.delete(bucket, "a.deleted")
    await client.purge(bucket, "a.purged")
    await client.delete(bucket, "again")
    await client.create(bucket, "again", b"3")


async def left_in(ours: Ours, bucket: str) -> Left:
    """Return the key, the revision and the value of all that a bucket's stream holds."""
    stream = await ours.js.streams.get(f"KV_{bucket}")
    prefix = f"$KV.{bucket}."
    return [
        (message.subject.removeprefix(prefix), message.sequence, message.data)
        async for message in stream.read()
    ]


@pytest.mark.proves("1d", "purge deletes")
@pytest.mark.needs_go
async def test_young_markers_stay_and_their_history_goes_as_with_the_cli(
    ours: Ours, our_buckets: KvClient, cli_buckets: CliBuckets, stream_name: str
) -> None:
    """The CLI has no option for the age: markers younger than half an hour stay."""
    by_ours, by_cli = f"{stream_name}_ours", f"{stream_name}_cli"
    for name in (by_ours, by_cli):
        await fill(our_buckets, name)
    before = await left_in(ours, by_ours)

    await cli_buckets.compact(by_cli)
    removed = await (await ours.js.kv.get(by_ours)).purge_deletes()

    left = await left_in(ours, by_ours)
    assert left == await left_in(ours, by_cli)
    assert (len(before), removed, len(left)) == (10, 2, 8)
    assert await cli_buckets.keys(by_ours) == ["again", "kept"]
    assert await cli_buckets.history(by_ours, "a.deleted") == [Seen("a.deleted", "DEL")]


@pytest.mark.proves("1d", "purge deletes")
@pytest.mark.needs_node
async def test_all_markers_go_as_with_nats_js(
    ours: Ours, our_buckets: KvClient, js_buckets: JsBuckets, stream_name: str
) -> None:
    """Of nats.js 3.4 nothing is asked that was written again behind a marker: it removes that too.

    It looks at every marker of the history, and purges the whole key.
    """
    by_ours, by_js = f"{stream_name}_ours", f"{stream_name}_js"
    for name in (by_ours, by_js):
        await fill(our_buckets, name)
        await our_buckets.purge(name, "again")

    removed = await (await ours.js.kv.get(by_ours)).purge_deletes(older_than=0)

    assert await js_buckets.purge_deletes(by_js, older_ms=IN_AN_HOUR_MS) == removed
    left = await left_in(ours, by_ours)
    assert left == await left_in(ours, by_js)
    assert [(key, data) for key, _, data in left] == [("kept", b"1"), ("kept", b"2")]
    assert await js_buckets.keys(by_ours) == ["kept"]


@pytest.mark.needs_go
@pytest.mark.sampled
@pytest.mark.parametrize("which", ["old", "all"])
async def test_markers_go_as_with_nats_go(
    ours: Ours, our_buckets: KvClient, nats_go: NatsGo, stream_name: str, which: str
) -> None:
    """Its limit for the age is half an hour as well; a negative one removes all markers."""
    by_ours, by_go = f"{stream_name}_ours", f"{stream_name}_go"
    for name in (by_ours, by_go):
        await fill(our_buckets, name)

    await nats_go.call("kv_purge_deletes", bucket=by_go, older_ms=0 if which == "old" else -1)
    bucket = await ours.js.kv.get(by_ours)
    removed = await (
        bucket.purge_deletes(older_than=0) if which == "all" else bucket.purge_deletes()
    )

    left = await left_in(ours, by_ours)
    assert left == await left_in(ours, by_go)
    assert removed == (4 if which == "all" else 2)
    assert [key for key, _, _ in left if key == "again"] == ["again"] * 4
