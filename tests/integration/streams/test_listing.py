"""Listing, naming and finding streams, more than one answer holds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import ConfigError, SubjectError, UnavailableError
from natsstream.testing import NatsCluster, NatsServer, server_binary
from tests.support.clusters import connect_to

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

LIST_PAGE = 256
NAMES_PAGE = 1_024


async def make(js: JetStream, count: int) -> list[str]:
    """Make streams in memory, several at a time; return their names."""
    names = [f"S{number:04d}" for number in range(count)]
    for start in range(0, count, 100):
        async with asyncio.TaskGroup() as group:
            for name in names[start : start + 100]:
                group.create_task(js.streams.create(name, subjects=[f"s.{name}"], storage="memory"))
    return names


@pytest.mark.proves("1a", "list, auto-paged")
@pytest.mark.proves("1a", "names")
async def test_all_streams_are_listed_named_and_found(fresh_js: JetStream) -> None:
    names = await make(fresh_js, NAMES_PAGE + 6)

    listing = fresh_js.streams.list()
    listed = [info.name async for info in listing]

    assert sorted(listed) == names
    assert (listing.missing, listing.offline) == ((), {})
    assert sorted([name async for name in fresh_js.streams.names()]) == names
    assert await fresh_js.streams.find(f"s.{names[-1]}") == names[-1]
    assert await fresh_js.streams.find("nothing") is None
    some = [info.name async for info in fresh_js.streams.list(subject="s.S000*")]
    assert some == []
    some = [info.name async for info in fresh_js.streams.list(subject="s.*")]
    assert len(some) == len(names) > 4 * LIST_PAGE


@pytest.mark.proves("1a", "find by subject")
async def test_streams_are_found_by_the_subjects_that_they_capture(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.ensure(f"{stream_name}_a", subjects=[f"{stream_name}.a.*"])
    await js.streams.ensure(f"{stream_name}_b", subjects=[f"{stream_name}.b"])

    assert await js.streams.find(f"{stream_name}.a.x") == f"{stream_name}_a"
    assert await js.streams.find(f"{stream_name}.b") == f"{stream_name}_b"
    assert await js.streams.find(f"{stream_name}.c") is None
    unset: Any = None
    with pytest.raises(SubjectError, match="subject"):
        await js.streams.find(unset)
    every = [name async for name in js.streams.names(subject=f"{stream_name}.>")]
    assert every == [f"{stream_name}_a", f"{stream_name}_b"]


async def test_a_listing_can_be_read_twice(js: JetStream, stream_name: str) -> None:
    listing = js.streams.list(subject=f"{stream_name}.>")
    assert [info.name async for info in listing] == []
    await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])

    assert [info.name async for info in listing] == [stream_name]


async def test_wrong_arguments_are_refused_before_sending(js: JetStream) -> None:
    with pytest.raises(SubjectError):
        js.streams.list(subject="a b")
    with pytest.raises(ConfigError, match="on_missing") as caught:
        js.streams.list(on_missing="rise")  # pyright: ignore[reportArgumentType] - What is tested.
    assert "raise" in caught.value.hint
    with pytest.raises(SubjectError):
        await js.streams.find("")


@pytest.mark.proves("1a", "list, auto-paged")
async def test_streams_that_do_not_answer_are_told(stream_name: str) -> None:
    """A node goes down with its streams of one replica: they are named, not left out."""
    with NatsCluster() as cluster:
        async with connect_to(cluster) as js:
            names = [f"{stream_name}_{number}" for number in range(4)]
            for name in names:
                await js.streams.ensure(name, subjects=[name])
            leaders = {name: cluster.wait_for_leader(name).name for name in names}
            lost = leaders[names[0]]
            gone = {name for name, leader in leaders.items() if leader == lost}
            await asyncio.to_thread(cluster.node(lost).kill)

            listing = js.streams.list(on_missing="report")
            listed = {info.name async for info in listing}

            assert (listed, set(listing.missing)) == (set(names) - gone, gone)
            found: list[str] = []
            error = await read_to_the_error(js, found)
            assert set(found) == set(names) - gone
            assert error.retryable
            assert all(name in error.message for name in gone)
            assert {name async for name in js.streams.names()} == set(names)


@pytest.mark.needs_versions
async def test_stream_that_the_server_is_too_old_for_is_told_with_its_reason(
    tmp_path: Path,
) -> None:
    """A server that went back a version can not run it."""
    with NatsServer(store_dir=tmp_path) as server:
        async with connect(server.url) as js:
            await js.streams.ensure("NEW", subjects=["new"], allow_batched=True)
            await js.streams.ensure("OLD", subjects=["old"])
    with NatsServer(store_dir=tmp_path, binary=server_binary("2.12")) as server:
        async with connect(server.url) as js:
            listing = js.streams.list(on_missing="report")

            assert [info.name async for info in listing] == ["OLD"]
            assert listing.missing == ()
            assert listing.offline.keys() == {"NEW"}
            assert "allow_batched" in listing.offline["NEW"]
            found: list[str] = []
            error = await read_to_the_error(js, found)

    assert found == ["OLD"]
    assert (error.retryable, "allow_batched" in error.detail) == (False, True)


async def read_to_the_error(js: JetStream, into: list[str]) -> UnavailableError:
    """List the streams until an error ends it; return that."""
    try:
        async for info in js.streams.list():
            into.append(info.name)  # noqa: PERF401 - What came before the error counts.
    except UnavailableError as error:
        return error
    pytest.fail("the list is whole")
