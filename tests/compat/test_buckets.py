"""Every server version: buckets work on each, and what one lacks is told with the version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream import StreamSource, connect
from natsstream.errors import MessageRuleError, UnavailableError, UnsupportedServerError
from natsstream.testing import NatsServer, server_binary
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream, KeyValue

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]

MARKERS_SINCE = (2, 11)


async def values_of(bucket: KeyValue) -> dict[str, bytes]:
    return {entry.key: entry.value async for entry in bucket.entries()}


@pytest.mark.proves("1d", "create/get/list/delete bucket")
async def test_bucket_is_made_changed_used_and_listed(js: JetStream, stream_name: str) -> None:
    bucket = await js.kv.create(
        stream_name, history=3, ttl=3_600, compression=True, metadata={"a": "1"}
    )
    again = await js.kv.create(bucket.config)
    same = await js.kv.ensure(bucket.config)
    changed = await js.kv.ensure(stream_name, history=5, ttl=60)

    await changed.put("a.b", b"1")
    await changed.update("a.b", b"2", revision=1)
    await changed.create("c", b"")
    await changed.delete("a.b")
    await changed.create("a.b", b"3")
    await changed.put("d", b"4")
    await changed.purge("d")

    assert again.config == same.config == bucket.config
    assert not same.change
    assert [each.name for each in changed.change.fields] == ["ttl", "history", "duplicate_window"]
    assert await values_of(changed) == {"a.b": b"3", "c": b""}
    assert [entry.operation async for entry in changed.history("a.b")] == [
        "PUT",
        "PUT",
        "DEL",
        "PUT",
    ]
    status = await changed.status()
    assert (status.history, status.ttl, status.is_compressed) == (5, 60, True)
    assert (status.limit_marker_ttl, status.metadata) == (0, {"a": "1"})
    assert stream_name in [each.name async for each in js.kv.list()]
    await js.kv.delete(stream_name)


async def test_markers_are_taken_whole_or_refused_with_the_version(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    if line < MARKERS_SINCE:
        for call in (js.kv.create, js.kv.ensure):
            with pytest.raises(UnsupportedServerError) as refused:
                await call(stream_name, limit_marker_ttl=60)
            assert refused.value.needs == "2.11"
        assert stream_name not in [name async for name in js.kv.names()]
        await js.kv.create(stream_name)
        with pytest.raises(UnsupportedServerError):
            await js.kv.update(stream_name, limit_marker_ttl=60)
        return

    bucket = await js.kv.create(stream_name, limit_marker_ttl=60)
    same = await js.kv.create(stream_name, limit_marker_ttl=60)
    await bucket.create("short", b"v", ttl=1)

    async def is_gone() -> bool:
        return await bucket.get("short") is None

    assert await eventually_async(is_gone)
    await bucket.create("short", b"again")

    assert same.config == bucket.config
    assert (await bucket.status()).limit_marker_ttl == 60
    none = await js.kv.update(stream_name, limit_marker_ttl=0)
    assert none.config.limit_marker_ttl is None
    assert none.config.extra == {"allow_msg_ttl": True}


async def test_key_s_ttl_needs_a_bucket_that_allows_it(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    bucket = await js.kv.create(stream_name)
    expected = UnsupportedServerError if line < MARKERS_SINCE else MessageRuleError

    with pytest.raises(expected):
        await bucket.create("k", b"v", ttl=5)

    assert await bucket.get("k") is None


async def test_mirror_and_sources_bring_their_keys(js: JetStream, stream_name: str) -> None:
    origin = await js.kv.create(stream_name)
    await origin.put("a", b"1")
    mirror = await js.kv.create(f"{stream_name}_mirror", mirror=stream_name)
    copy = await js.kv.create(f"{stream_name}_copy", sources=[StreamSource(name=stream_name)])
    await mirror.put("b", b"2")
    await copy.put("c", b"3")

    async def has_both(bucket: KeyValue, *more: str) -> bool:
        return set(await values_of(bucket)) == {"a", "b", *more}

    assert await eventually_async(lambda: has_both(mirror))
    assert await eventually_async(lambda: has_both(copy, "c"))
    assert set(await values_of(origin)) == {"a", "b"}


async def test_bucket_that_the_server_is_too_old_for_is_told_and_no_other_stream_is(
    tmp_path: Path,
) -> None:
    """A server that went back a version can not run it."""
    with NatsServer(store_dir=tmp_path) as server:
        async with connect(server.url) as js:
            await js.kv.create("new", extra={"allow_batched": True})
            await js.kv.create("old")
            await js.streams.create("NEW", subjects=["new"], allow_batched=True)
    with NatsServer(store_dir=tmp_path, binary=server_binary("2.12")) as server:
        async with connect(server.url) as js:
            listing = js.kv.list(on_missing="report")
            listed = [status.name async for status in listing]
            found: list[str] = []
            error = await read_to_the_error(js, found)

    assert (listed, found) == (["old"], ["old"])
    assert listing.missing == ()
    assert listing.offline.keys() == {"new"}
    assert "allow_batched" in listing.offline["new"]
    assert ("lacks 1: new" in error.message, "allow_batched" in error.detail) == (True, True)


async def read_to_the_error(js: JetStream, into: list[str]) -> UnavailableError:
    """List the buckets until an error ends it; return that."""
    try:
        async for status in js.kv.list():
            into.append(status.name)  # noqa: PERF401 - What came before the error counts.
    except UnavailableError as error:
        return error
    pytest.fail("the list is whole")
