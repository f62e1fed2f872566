"""Buckets: made, changed, opened, listed and deleted, on R1 and R3."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import BucketConfig, ConfigChange, connect
from natsstream.errors import (
    BucketExistsError,
    BucketNameError,
    BucketNotFoundError,
    ConfigError,
    InvalidConfigError,
    NotABucketError,
    StreamNotFoundError,
    SubjectOverlapError,
)
from tests.support.clusters import connect_to

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

SEVERAL_PAGES = 260


def names_of(change: ConfigChange) -> dict[str, object]:
    return {each.name: each.after for each in change.fields}


async def held(js: JetStream, name: str) -> object:
    """Return the bucket's stream as the server has it."""
    return (await js.streams.get(f"KV_{name}")).cached.raw["config"]


@pytest.mark.smoke
@pytest.mark.proves("1d", "create/get/list/delete bucket")
async def test_bucket_is_made_once_and_opened_by_its_name(js: JetStream, stream_name: str) -> None:
    made = await js.kv.create(stream_name, history=5, ttl=60, metadata={"team": "x"})
    again = await js.kv.create(
        BucketConfig(name=stream_name, history=5, ttl=60, metadata={"team": "x"})
    )
    opened = await js.kv.get(stream_name)

    assert made.change.action == "created"
    assert names_of(made.change)["history"] == 5
    assert not opened.change
    assert made.config == again.config == opened.config
    assert (opened.name, opened.stream.name) == (stream_name, f"KV_{stream_name}")
    assert opened.config.metadata == {"team": "x"}


@pytest.mark.proves("1d", "update / create-or-update bucket")
@pytest.mark.parametrize("replicas", [1, 3], ids=["R1", "R3"])
async def test_bucket_is_ensured_changed_and_left_alone(
    request: pytest.FixtureRequest, stream_name: str, replicas: int
) -> None:
    nodes: Any = request.getfixturevalue("nats_cluster" if replicas > 1 else "server")
    async with connect_to(nodes) if replicas > 1 else connect(nodes.url) as js:
        first = await js.kv.ensure(stream_name, history=2, replicas=replicas)
        rev = await first.put("k", b"v")

        second = await js.kv.ensure(stream_name, history=2)
        third = await js.kv.ensure(stream_name, history=3, ttl=30, description="d")
        fourth = await js.kv.update(stream_name, ttl=0, compression=True)

        assert first.change.action == "created"
        assert second.change.action == "unchanged"
        assert names_of(third.change) == {
            "description": "d",
            "ttl": 30,
            "history": 3,
            "duplicate_window": 30,
        }
        assert names_of(fourth.change) == {"ttl": 0, "compression": True, "duplicate_window": 120}
        assert (fourth.config.description, fourth.config.history) == ("d", 3)
        assert fourth.config.replicas == replicas
        entry = await fourth.get("k", consistent=True)  # Another replica may lag behind.
        assert entry is not None
        assert entry.revision == rev
        await js.kv.delete(stream_name)


@pytest.mark.proves("1d", "update / create-or-update bucket")
async def test_diff_tells_what_ensure_would_do_and_does_nothing(
    js: JetStream, stream_name: str
) -> None:
    absent = await js.kv.diff(stream_name, history=2)
    bucket = await js.kv.create(stream_name)
    change = await js.kv.diff(stream_name, history=2, storage="memory")

    assert (absent.action, change.action) == ("created", "updated")
    assert names_of(change) == {"history": 2, "storage": "memory"}
    assert [each.name for each in change.refused] == ["storage"]
    assert (await bucket.status()).history == 1
    with pytest.raises(InvalidConfigError) as caught:
        await js.kv.ensure(stream_name, storage="memory")
    assert f"sources=[{stream_name!r}]" in caught.value.hint
    with pytest.raises(InvalidConfigError, match="replicas > 1") as caught:
        await js.kv.ensure(stream_name, storage="memory", replicas=3)
    assert "storage" not in caught.value.hint


async def test_create_over_another_bucket_says_what_differs_and_changes_nothing(
    js: JetStream, stream_name: str
) -> None:
    await js.kv.create(stream_name, history=5, description="theirs", limit_marker_ttl=60)
    before = await held(js, stream_name)

    with pytest.raises(BucketExistsError) as refused:
        await js.kv.create(stream_name, history=6)

    assert refused.value.differences == {
        "history": (5, 6),
        "description": ("theirs", None),
        "limit_marker_ttl": (60, None),
    }
    assert refused.value.err_code == 10058
    assert await held(js, stream_name) == before


async def test_create_leaves_what_older_clients_made_otherwise_and_ensure_does_too(
    js: JetStream, stream_name: str
) -> None:
    extra = {"discard": "old", "allow_direct": False}
    await js.kv.create(BucketConfig(name=stream_name, extra=extra))
    before = await held(js, stream_name)

    with pytest.raises(BucketExistsError, match="discard is 'old', not 'new'") as caught:
        await js.kv.create(stream_name)
    bucket = await js.kv.ensure(stream_name)

    assert caught.value.differences == {"discard": ("old", "new"), "allow_direct": (False, True)}
    assert bucket.config.extra == extra
    assert await held(js, stream_name) == before


@pytest.mark.proves("1d", "update / create-or-update bucket")
async def test_nothing_of_a_bucket_is_lost_by_ensure_and_update(
    js: JetStream, stream_name: str
) -> None:
    """A stream with fields that buckets have no word for, as another program may have made it."""
    await js.streams.create(
        f"KV_{stream_name}",
        subjects=[f"$KV.{stream_name}.>"],
        max_msgs_per_subject=100,
        duplicate_window=7,
        discard="old",
        allow_atomic=True,
        max_consumers=9,
        max_msgs=1000,
        consumer_limits={"max_ack_pending": 7},
        metadata={"theirs": "1"},
    )
    before = await held(js, stream_name)

    bucket = await js.kv.ensure(stream_name)
    same = await js.kv.ensure(bucket.config)

    assert (bucket.change.action, same.change.action) == ("unchanged", "unchanged")
    assert await held(js, stream_name) == before
    assert bucket.config.history == 100
    assert bucket.config.extra == {
        "duplicate_window": 7_000_000_000,
        "discard": "old",
        "allow_atomic": True,
        "max_consumers": 9,
        "max_msgs": 1000,
        "consumer_limits": {"max_ack_pending": 7},
        "allow_direct": False,
        "deny_delete": False,
        "allow_rollup_hdrs": False,
    }

    changed = await js.kv.update(stream_name, description="ours")

    assert names_of(changed.change) == {"description": "ours"}
    assert (changed.config.extra, changed.config.history) == (bucket.config.extra, 100)


@pytest.mark.proves("1d", "create/get/list/delete bucket")
async def test_bucket_that_is_not_there_is_not_found(js: JetStream, stream_name: str) -> None:
    bucket = await js.kv.create(stream_name)
    await js.kv.delete(stream_name)

    for call in (js.kv.get, js.kv.update, js.kv.delete):
        with pytest.raises(BucketNotFoundError, match=stream_name) as refused:
            await call(stream_name)
        assert isinstance(refused.value, StreamNotFoundError)
        assert refused.value.err_code == 10059
    with pytest.raises(BucketNotFoundError) as refused:
        await js.kv.get(f"KV_{stream_name}")
    assert refused.value.hint == f"only its stream has KV_ in its name: js.kv.get({stream_name!r})"
    with pytest.raises(BucketNotFoundError):
        await bucket.status()


async def test_stream_that_is_no_bucket_is_never_taken_for_one(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(f"KV_{stream_name}", subjects=[f"{stream_name}.>"])

    for call in (
        js.kv.get,
        js.kv.create,
        js.kv.ensure,
        js.kv.update,
        js.kv.diff,
        js.kv.delete,
    ):
        with pytest.raises(NotABucketError, match=stream_name):
            await call(stream_name)

    assert await js.streams.get(f"KV_{stream_name}")
    assert stream_name not in [status.name async for status in js.kv.list()]


async def test_subjects_of_another_stream_are_told(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name, subjects=[f"$KV.{stream_name}.x"])

    with pytest.raises(SubjectOverlapError):
        await js.kv.create(stream_name)


async def test_names_and_options_that_can_not_work_are_refused_before_anything_is_sent(
    js: JetStream,
) -> None:
    wrong: Any = 5
    misspelt: dict[str, Any] = {"histori": 5}
    names: list[Any] = ["a.b", "", "*", ">", "a b", wrong, None]
    for name in names:
        for call in (js.kv.get, js.kv.create, js.kv.ensure, js.kv.update, js.kv.delete, js.kv.diff):
            with pytest.raises(BucketNameError):
                await call(name)
    with pytest.raises(ConfigError, match="did you mean history"):
        await js.kv.create("b", **misspelt)
    with pytest.raises(ConfigError, match="on_missing"):
        js.kv.list(on_missing=wrong)


async def test_many_who_ensure_one_bucket_get_it(js: JetStream, stream_name: str) -> None:
    buckets = await asyncio.gather(
        *(js.kv.ensure(stream_name, history=1 + number % 2) for number in range(8))
    )

    assert {bucket.name for bucket in buckets} == {stream_name}
    assert (await buckets[0].status()).history in {1, 2}


@pytest.mark.proves("1d", "status")
@pytest.mark.proves("1d", "compression / metadata / placement")
async def test_status_tells_what_the_bucket_holds(js: JetStream, stream_name: str) -> None:
    bucket = await js.kv.create(
        stream_name,
        history=3,
        ttl=3_600,
        storage="memory",
        compression=True,
        limit_marker_ttl=30,
        metadata={"team": "x"},
    )
    for value in (b"1", b"2"):
        await bucket.put("a", value)
    last = await bucket.put("b", b"3")

    status = await bucket.status()

    assert (status.name, status.values, status.keys, status.revision) == (stream_name, 3, 2, last)
    assert (status.history, status.ttl, status.limit_marker_ttl) == (3, 3_600, 30)
    assert (status.storage, status.replicas, status.is_compressed) == ("memory", 1, True)
    assert status.metadata == {"team": "x"}
    assert status.bytes == status.stream.state.bytes > 0
    assert (status.mirror, status.sources, status.backing_store) == (None, (), "JetStream")
    assert repr(status).startswith(f"<BucketStatus {stream_name}: 3 revisions of 2 keys, ")


@pytest.mark.proves("1d", "create/get/list/delete bucket")
async def test_buckets_are_listed_whole_and_streams_are_not_among_them(
    fresh_js: JetStream,
) -> None:
    """More than a page of streams, mirrors too, which have no subjects to be looked for by."""
    js = fresh_js
    names = [f"b{number:03}" for number in range(SEVERAL_PAGES)]
    for name in names:
        await js.kv.create(name, storage="memory")
    await js.kv.create("copy", mirror="b000")
    await js.streams.create("ORDERS", subjects=["orders"])
    await js.streams.create("KV_none", subjects=["none"])

    listed = [status.name async for status in js.kv.list()]

    assert listed == [*names, "copy"]
    assert [name async for name in js.kv.names()] == [*names, "copy", "none"]


async def test_no_bucket_is_an_empty_list(fresh_js: JetStream) -> None:
    assert [status async for status in fresh_js.kv.list()] == []
    assert [name async for name in fresh_js.kv.names()] == []


@pytest.mark.parametrize("call", ["create", "ensure"])
@pytest.mark.parametrize(("manager", "prefix"), [("kv", "KV_"), ("objects", "OBJ_")])
async def test_new_name_that_doubles_the_prefix_is_reported(
    js: JetStream,
    stream_name: str,
    caplog: pytest.LogCaptureFixture,
    manager: str,
    prefix: str,
    call: str,
) -> None:
    make: Any = getattr(getattr(js, manager), call)
    with caplog.at_level("WARNING", f"natsstream.{manager}"):
        await make(stream_name)
        await make(prefix)
        assert not caplog.records
        await make(prefix + stream_name)

    (told,) = caplog.records
    assert told.name == f"natsstream.{manager}"
    assert f"is stream {prefix}{prefix}{stream_name}:" in told.getMessage()
    assert f"{stream_name!r} was probably meant" in told.getMessage()
