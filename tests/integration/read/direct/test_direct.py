"""Direct reads: the same messages as the leader's, whole answers, and typed refusals."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from natsstream.errors import (
    ConfigError,
    IncompleteReadError,
    PayloadTooLargeError,
    SubjectError,
)
from tests.support.clusters import connect_to
from tests.support.eventually import eventually_async
from tests.support.streams import fill

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsCluster, NatsServer

pytestmark = pytest.mark.asyncio


def sinks_of(js: JetStream) -> dict[bytes, Any]:
    """Return the subscriptions that a connection has."""
    return js._client.parser.sinks  # pyright: ignore[reportPrivateUsage, reportReturnType]


@pytest.mark.smoke
@pytest.mark.proves("1c", "direct get")
async def test_direct_get_is_what_the_leader_gives(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 5, allow_direct=True)
    await js.publish(f"{stream_name}.0", b"last", headers={"A": ["1", "2"], "B": " b "})
    moment = (await stream.read(first_seq=3).__aiter__().__anext__()).time_ns

    questions: list[dict[str, Any]] = [
        {"sequence": 3},
        {"sequence": 6},
        {"last_by_subject": f"{stream_name}.*"},
        {"last_by_subject": f"{stream_name}.2"},
        {"next_by_subject": f"{stream_name}.1"},
        {"sequence": 3, "next_by_subject": f"{stream_name}.1"},
        {"start_time": moment},
    ]
    for question in questions:
        leader, direct = await stream.get(**question), await stream.direct.get(**question)
        assert leader is not None
        assert direct is not None
        assert direct.headers.source == leader.headers.source
        assert (direct.subject, direct.sequence, direct.time_ns, direct.data) == (
            leader.subject,
            leader.sequence,
            leader.time_ns,
            leader.data,
        )


async def test_last_of_all_subjects_is_found_behind_a_deleted_one(
    js: JetStream, stream_name: str
) -> None:
    """For ">" servers look at their last sequence alone."""
    stream = await fill(js, stream_name, 4, allow_direct=True)
    await stream.delete_message(4)

    last = await stream.direct.get(last_by_subject=">")

    assert last is not None
    assert last.sequence == 3


@pytest.mark.proves("1c", "direct get")
async def test_direct_get_of_what_is_not_there_is_none(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 2, allow_direct=True)

    assert await stream.direct.get(99) is None
    assert await stream.direct.get(last_by_subject="nothing.here") is None


async def test_headers_that_look_like_the_servers_are_the_messages_own(
    js: JetStream, stream_name: str
) -> None:
    # As they stand on messages that a stream has republished into another one.
    stream = await fill(js, stream_name, 0, allow_direct=True)
    forged = {"Nats-Sequence": "77", "Nats-Subject": "forged", "Nats-Stream": "OTHER"}
    await js.publish(f"{stream_name}.0", b"x", headers=forged)

    message = await stream.direct.get(1)
    batch = await stream.direct.batch(5)

    for found in (message, batch.messages[0]):
        assert found is not None
        assert (found.sequence, found.subject) == (1, f"{stream_name}.0")
        assert dict(found.headers) == forged


@pytest.mark.proves("1c", "batch direct get / multi-last snapshot (ADR-31)")
async def test_batch_reads_on_where_the_last_one_ended(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 20, allow_direct=True)
    await stream.delete_message(7)

    one = await stream.direct.batch(8, first_seq=2)
    two = await stream.direct.batch(100, first_seq=one.last_seq + 1)

    assert [each.sequence for each in one.messages] == [2, 3, 4, 5, 6, 8, 9, 10]
    assert (len(one), one.num_pending, two.num_pending) == (8, 10, 0)
    assert [each.sequence for each in two.messages] == list(range(11, 21))
    assert len(await stream.direct.batch(5, first_seq=21)) == 0


async def test_batch_ends_after_max_bytes(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 10, size=1_000, allow_direct=True)

    batch = await stream.direct.batch(10, max_bytes=2_500)

    assert (len(batch), batch.num_pending) == (3, 7)


@pytest.mark.proves("1c", "batch direct get / multi-last snapshot (ADR-31)")
async def test_batch_of_a_subject(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 9, allow_direct=True)

    batch = await stream.direct.batch(2, subject=f"{stream_name}.2")

    assert [each.sequence for each in batch.messages] == [3, 6]
    assert batch.num_pending == 1


@pytest.mark.proves("1c", "batch direct get / multi-last snapshot (ADR-31)")
async def test_latest_is_the_newest_of_each_subject_as_of_one_moment(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 10, allow_direct=True)

    now = await stream.direct.latest([f"{stream_name}.*"])
    then = await stream.direct.latest([f"{stream_name}.*"], last_seq=5)

    assert [each.sequence for each in now.messages] == [8, 9, 10]
    assert (now.up_to_seq, then.up_to_seq) == (10, 5)
    assert [each.sequence for each in then.messages] == [3, 4, 5]
    assert len(await stream.direct.latest(["nothing.here"])) == 0


async def test_latest_reads_more_subjects_than_the_server_answers_at_once(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"], allow_direct=True)
    async with js.publisher() as publisher:
        for number in range(2_600):
            await publisher.send(f"{stream_name}.{number % 1300}", b"%d" % number)

    found = await stream.direct.latest()

    assert [int(each.data) for each in found.messages] == list(range(1_300, 2_600))
    assert found.up_to_seq == 2_600


async def test_latest_reads_pages_as_of_one_sequence(js: JetStream, stream_name: str) -> None:
    # Twelve subjects of 1 MiB are more than one page of 8 MiB.
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"], allow_direct=True)
    for number in range(12):
        await js.publish(f"{stream_name}.{number}", bytes([number]) * (1 << 20))

    found = await stream.direct.latest()

    assert [each.sequence for each in found.messages] == list(range(1, 13))
    assert all(each.data == bytes([each.sequence - 1]) * (1 << 20) for each in found.messages)


async def test_stream_without_allow_direct_is_refused_until_it_has_it(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 2)

    for call in (stream.direct.get(1), stream.direct.batch(1), stream.direct.latest()):
        with pytest.raises(ConfigError, match="allow_direct"):
            await call
    await js.streams.update(stream_name, allow_direct=True)

    assert await stream.direct.get(1) is not None


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("call", "arguments", "error"),
    [
        ("get", {}, ConfigError),
        ("get", {"sequence": 0}, ConfigError),
        ("get", {"sequence": "1"}, ConfigError),
        ("get", {"sequence": 1, "last_by_subject": "a"}, ConfigError),
        ("get", {"last_by_subject": "a b"}, SubjectError),
        ("get", {"last_by_subject": 7}, SubjectError),
        ("get", {"start_time": "yesterday"}, ConfigError),
        ("batch", {"count": 0}, ConfigError),
        ("batch", {"count": 1_001}, ConfigError),
        ("batch", {"count": 5, "first_seq": 1, "start_time": 10**18}, ConfigError),
        ("batch", {"count": 5, "max_bytes": 0}, ConfigError),
        ("batch", {"count": 5, "timeout": -1}, ConfigError),
        ("latest", {"filters": []}, ConfigError),
        ("latest", {"filters": "a"}, ConfigError),
        ("latest", {"filters": ["a..b"]}, SubjectError),
        ("latest", {"last_seq": 0}, ConfigError),
        ("latest", {"filters": [f"{'x' * 3_000}.{number}" for number in range(6_000)]},
         PayloadTooLargeError),
    ],
)  # fmt: skip
async def test_wrong_arguments_are_refused(
    js: JetStream, stream_name: str, call: str, arguments: dict[str, Any], error: type[Exception]
) -> None:
    stream = await fill(js, stream_name, 1, allow_direct=True)

    with pytest.raises(error):
        await getattr(stream.direct, call)(**arguments)


async def test_batch_whose_server_stops_is_an_error_and_not_a_short_answer(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await fill(js, stream_name, 10, allow_direct=True)
        await stream.direct.batch(1)  # What the connection says of the server is known now.
        fresh_server.pause()
        try:
            with pytest.raises(IncompleteReadError) as caught:
                await stream.direct.batch(5, timeout=0.3)
        finally:
            fresh_server.resume()

        assert caught.value.retryable
        assert len(await stream.direct.batch(5)) == 5


async def test_cancelled_batch_leaves_no_subscription(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await fill(js, stream_name, 10, allow_direct=True)
        await stream.direct.batch(1)
        sinks = dict(sinks_of(js))
        fresh_server.pause()
        try:
            task = asyncio.create_task(stream.direct.batch(5))
            while len(sinks_of(js)) == len(sinks):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        finally:
            fresh_server.resume()

        assert sinks_of(js) == sinks


async def test_direct_reads_work_on_replicated_streams(
    nats_cluster: NatsCluster, stream_name: str
) -> None:
    async with connect_to(nats_cluster) as js:
        stream = await fill(js, stream_name, 30, allow_direct=True, replicas=3)

        # Any replica answers, also one that lags behind.
        async def all_there() -> bool:
            return len(await stream.direct.batch(100)) == 30

        async def newest_there() -> bool:
            found = await stream.direct.latest()
            return [each.sequence for each in found.messages] == [28, 29, 30]

        await eventually_async(all_there)
        await eventually_async(newest_there)
        await stream.delete()
