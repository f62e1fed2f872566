"""Looking at a stream: subjects, holes, times, the servers that hold it, and what it copies."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from natsstream import DeletedRange, StreamSource, SubjectTransform, connect
from natsstream.errors import ConfigError, StreamNotFoundError, SubjectError
from tests.support.eventually import eventually_async
from tests.support.streams import delete_message, fill, purge

if TYPE_CHECKING:
    from natsstream import JetStream, ReplicaInfo, Stream, StreamInfo
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

PAGE = 100_000


@pytest.mark.proves("1a", "info")
async def test_info_counts_the_messages_of_each_subject(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 7)

    info = await stream.info(subjects=">")

    assert info.state.subjects == {f"{stream_name}.{n}": (3, 2, 2)[n] for n in range(3)}
    assert info.state.num_subjects == 3
    some = await stream.info(subjects=f"{stream_name}.1")
    assert some.state.subjects == {f"{stream_name}.1": 2}
    assert (await stream.info(subjects="none")).state.subjects == {}
    assert (await stream.info()).state.subjects is None


@pytest.mark.proves("1a", "info")
async def test_info_tells_what_is_deleted(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)
    for sequence in (3, 4, 7):
        await delete_message(js, stream_name, sequence)

    info = await stream.info(deleted_details=True, subjects=">")

    assert info.state.deleted == (DeletedRange(3, 4), DeletedRange(7, 7))
    assert (info.state.num_deleted, info.state.lost) == (3, ())
    assert (await stream.info()).state.deleted is None
    await purge(js, stream_name)
    assert (await stream.info(deleted_details=True)).state.deleted == ()


@pytest.mark.proves("1a", "get msg by seq / last-by-subject")
async def test_last_message_of_all_is_found_behind_a_deleted_end(
    js: JetStream, stream_name: str
) -> None:
    """Servers answer that there is none."""
    stream = await js.streams.ensure(stream_name, subjects=[stream_name, f"{stream_name}.>"])
    for subject in (stream_name, f"{stream_name}.a", f"{stream_name}.b.c"):
        await js.publish(subject, b"")
    await delete_message(js, stream_name, 3)

    last = await stream.get(last_by_subject=">")

    assert last is not None
    assert (last.sequence, last.subject) == (2, f"{stream_name}.a")
    await delete_message(js, stream_name, 2)
    last = await stream.get(last_by_subject=">")
    assert last is not None
    assert last.sequence == 1
    await purge(js, stream_name)
    assert await stream.get(last_by_subject=">") is None


async def test_gaps_are_ranges_between_first_and_last(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10)
    assert await stream.gaps() == []
    for sequence in (1, 3, 4, 5, 9):
        await delete_message(js, stream_name, sequence)

    gaps = await stream.gaps()

    assert gaps == [DeletedRange(3, 5), DeletedRange(9, 9)]
    assert [len(gap) for gap in gaps] == [3, 1]
    assert 4 in gaps[0]
    assert 6 not in gaps[0]


async def test_subjects_come_the_largest_first(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 5)
    await js.publish(f"{stream_name}.2", b"")
    await js.publish(f"{stream_name}.2", b"")

    counts = await stream.subjects()

    assert counts == [(f"{stream_name}.2", 3), (f"{stream_name}.0", 2), (f"{stream_name}.1", 2)]
    assert await stream.subjects(top=1) == counts[:1]
    assert await stream.subjects(f"{stream_name}.1") == [(f"{stream_name}.1", 2)]
    assert [each async for each in stream.subject_counts()] == sorted(counts)


@pytest.mark.proves("1a", "info")
@pytest.mark.timeout(120)
async def test_more_subjects_than_one_answer_holds_come_whole(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url, request_timeout=50) as js:
        stream = await js.streams.ensure(
            stream_name, subjects=[f"{stream_name}.>"], storage="memory", allow_batched=True
        )
        async with stream.ingest() as fast:
            await fast.send_many((f"{stream_name}.{n}", b"") for n in range(PAGE + 5))
            await fast.send_many((f"{stream_name}.{n}", b"") for n in (7, PAGE + 3))
        await check_many_subjects(stream)


async def check_many_subjects(stream: Stream) -> None:
    """Compare what is told of the subjects with what was stored."""
    info = await stream.info(subjects=">", deleted_details=True)

    assert info.state.subjects is not None
    assert len(info.state.subjects) == PAGE + 5 == info.state.num_subjects
    assert sum(info.state.subjects.values()) == info.state.messages
    assert info.state.deleted == ()
    assert await stream.subjects(top=3) == [
        (f"{stream.name}.{PAGE + 3}", 2),
        (f"{stream.name}.7", 2),
        (f"{stream.name}.0", 1),
    ]
    names = {each.subject async for each in stream.subject_counts()}
    assert names == info.state.subjects.keys()


@pytest.mark.proves("1a", "state first_ts/last_ts/num_subjects, alternates")
async def test_info_has_times_domain_and_leader(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])
    empty = await stream.info()
    assert (empty.state.first_time, empty.state.last_time) == (None, None)

    await fill(js, stream_name, 2)
    info = await stream.info()

    assert info.state.first_time is not None
    assert info.state.last_time is not None
    assert info.created <= info.state.first_time <= info.state.last_time
    assert info.state.last_time_ns <= info.time_ns <= time.time_ns()
    assert (info.domain, info.mirror, info.sources, info.alternates) == ("", None, (), ())
    assert info.cluster is not None
    assert info.cluster.leader
    assert info.cluster.replicas == ()


@pytest.mark.proves("1a", "info")
async def test_info_says_how_far_mirrors_and_sources_are(js: JetStream, stream_name: str) -> None:
    await fill(js, stream_name, 9)
    transform = SubjectTransform(source=f"{stream_name}.1", destination=f"{stream_name}_s.one")
    mirror = await js.streams.ensure(f"{stream_name}_m", mirror=StreamSource(name=stream_name))
    sourced = await js.streams.ensure(
        f"{stream_name}_s", sources=[StreamSource(name=stream_name, transforms=[transform])]
    )

    async def full() -> StreamInfo | None:
        info = await mirror.info()
        return info if info.state.messages == 9 and info.mirror and not info.mirror.lag else None

    async def sourced_all() -> StreamInfo | None:
        info = await sourced.info()
        return info if info.state.messages == 3 else None

    info = await eventually_async(full)
    assert info is not None
    assert info.mirror is not None
    assert (info.mirror.name, info.mirror.error, info.mirror.external) == (stream_name, "", None)
    assert info.mirror.active_s is not None
    info = await eventually_async(sourced_all)
    assert info is not None
    assert (info.sources[0].name, info.sources[0].transforms) == (stream_name, (transform,))
    assert info.config.sources == (StreamSource(name=stream_name, transforms=(transform,)),)


async def test_source_that_never_answered_has_no_time(js: JetStream, stream_name: str) -> None:
    source = StreamSource(name="NOWHERE", domain="nowhere", filter="x.>")

    info = await (await js.streams.ensure(stream_name, sources=[source])).info()

    assert (info.sources[0].active_s, info.sources[0].filter) == (None, "x.>")
    assert info.sources[0].external is not None
    assert info.sources[0].external.api == "$JS.nowhere.API"


async def test_wrong_arguments_are_refused(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[stream_name])
    with pytest.raises(SubjectError):
        await stream.info(subjects="a b")
    with pytest.raises(SubjectError):
        await stream.subjects(5)  # pyright: ignore[reportArgumentType] - What is tested.
    with pytest.raises(ConfigError, match="top"):
        await stream.subjects(top=0)
    await js.streams.delete(stream_name)
    with pytest.raises(StreamNotFoundError):
        await stream.gaps()
    with pytest.raises(StreamNotFoundError):
        await stream.subjects()


def is_in_step(replica: ReplicaInfo) -> bool:
    """Tell whether a replica is there and has everything."""
    return replica.is_current and not replica.is_offline and not replica.lag


@pytest.mark.proves("1a", "state first_ts/last_ts/num_subjects, alternates")
async def test_replicas_and_alternates_are_told_on_a_cluster(
    cluster_js: JetStream, stream_name: str
) -> None:
    stream = await cluster_js.streams.ensure(stream_name, subjects=[stream_name], replicas=3)
    await cluster_js.streams.ensure(f"{stream_name}_m", mirror={"name": stream_name})

    async def settled() -> StreamInfo | None:
        info = await stream.info()
        cluster = info.cluster
        is_whole = cluster and cluster.leader and all(map(is_in_step, cluster.replicas))
        return info if is_whole and len(info.alternates) == 2 else None

    info = await eventually_async(settled)

    assert info is not None
    assert info.cluster is not None
    names = {info.cluster.leader, *(each.name for each in info.cluster.replicas)}
    assert len(names) == 3
    assert all(each.peer and each.active_s >= 0 for each in info.cluster.replicas)
    assert info.cluster.raft_group
    assert 0 < info.cluster.leader_since_ns <= info.time_ns
    assert {each.name for each in info.alternates} == {stream_name, f"{stream_name}_m"}
    assert {each.cluster for each in info.alternates} == {info.cluster.name}


async def test_info_refuses_what_is_no_bool(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[stream_name])

    with pytest.raises(ConfigError):
        await stream.info(deleted_details="no")  # pyright: ignore[reportArgumentType]
