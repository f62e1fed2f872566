"""Pausing, resetting and unpinning consumers, and what their infos say."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from natsstream.errors import ConfigError, ConsumerNotFoundError, NotFoundError, ServerError
from tests.support.raw_pulls import pull

if TYPE_CHECKING:
    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio
FAR = datetime(2100, 1, 1, microsecond=5, tzinfo=UTC)


@pytest.mark.proves("1c", "pause / resume")
async def test_paused_consumer_delivers_nothing_until_it_is_resumed(
    js: JetStream, stream: Stream
) -> None:
    await js.publish(f"{stream.name}.a", b"x")
    await stream.consumers.create("c")

    pause = await stream.consumers.pause("c", until=FAR)
    assert (pause.is_paused, pause.until) == (True, FAR)
    assert await pull(js, stream.name, "c") == []
    resumed = await stream.consumers.resume("c")

    assert (resumed.is_paused, resumed.until, resumed.remaining) == (False, None, 0)
    assert [data for _, data in await pull(js, stream.name, "c")] == [b"x"]
    assert not (await stream.consumers.get("c")).cached.pause.is_paused


@pytest.mark.proves("1c", "pause / resume")
async def test_pause_is_a_time_or_a_duration(stream: Stream) -> None:
    await stream.consumers.create("c")

    for duration in (3600, timedelta(hours=1)):
        before = time.time()
        pause = await stream.consumers.pause("c", duration=duration)
        assert pause.until is not None
        assert before + 3599 < pause.until.timestamp() < time.time() + 3601
        assert 0 < pause.remaining <= 3600


@pytest.mark.parametrize(
    ("given", "told"), [({}, "neither"), ({"until": FAR, "duration": 1}, "both")]
)
async def test_pause_takes_one_end(stream: Stream, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=f"until or duration, and has {told}"):
        await stream.consumers.pause("c", **given)


@pytest.mark.proves("1c", "pause / resume")
async def test_ensure_pauses_a_consumer_that_exists(stream: Stream) -> None:
    """The server takes no notice of the field in an update."""
    await stream.consumers.create("c")

    consumer = await stream.consumers.ensure("c", pause_until=FAR, ack_wait=5)

    assert [each.name for each in consumer.change.fields] == ["ack_wait", "pause_until"]
    assert consumer.cached.pause.until == FAR
    assert consumer.cached.config.ack_wait == 5
    assert not (await stream.consumers.ensure("c", pause_until=FAR)).change


async def test_pause_that_is_over_asks_for_nothing(stream: Stream) -> None:
    past = datetime(2020, 1, 1, tzinfo=UTC)
    made = await stream.consumers.create("c", pause_until=past)
    assert not made.cached.pause.is_paused
    await stream.consumers.pause("c", until=FAR)

    consumer = await stream.consumers.ensure("c", pause_until=past)

    assert not consumer.change
    assert (await consumer.info()).pause.is_paused


@pytest.mark.proves("1c", "reset (ADR-60)")
async def test_reset_delivers_again_from_a_sequence(js: JetStream, stream: Stream) -> None:
    for number in range(5):
        await js.publish(f"{stream.name}.a", b"%d" % number)
    # Behind them: one that is there learns of a message a moment after its publisher.
    await stream.consumers.create("c")
    assert len(await pull(js, stream.name, "c", batch=5, ack=True)) == 5

    assert await stream.consumers.reset("c", sequence=3) == 3

    again = await pull(js, stream.name, "c", batch=5)
    assert [data for _, data in again] == [b"2", b"3", b"4"]
    info = (await stream.consumers.get("c")).cached
    assert (info.delivered.consumer_seq, info.num_ack_pending) == (3, 3)


@pytest.mark.proves("1c", "reset (ADR-60)")
async def test_reset_without_a_sequence_delivers_what_is_not_settled(
    js: JetStream, stream: Stream
) -> None:
    for number in range(4):
        await js.publish(f"{stream.name}.a", b"%d" % number)
    await stream.consumers.create("c")
    await pull(js, stream.name, "c", batch=2, ack=True)
    await pull(js, stream.name, "c", batch=2)

    assert await stream.consumers.reset("c") == 3

    assert [data for _, data in await pull(js, stream.name, "c", batch=4)] == [b"2", b"3"]


@pytest.mark.proves("1c", "reset (ADR-60)")
async def test_reset_before_the_start_is_refused(stream: Stream) -> None:
    await stream.consumers.create("c", start_seq=10)

    with pytest.raises(ServerError) as caught:
        await stream.consumers.reset("c", sequence=3)

    assert caught.value.err_code == 10204


@pytest.mark.proves("1c", "priority: pinned client (id, 423) + unpin")
@pytest.mark.finding(32)
async def test_unpin_takes_the_pin(js: JetStream, stream: Stream) -> None:
    await js.publish(f"{stream.name}.a", b"x")
    await stream.consumers.create(
        "c", priority_groups=["g"], priority_policy="pinned_client", priority_timeout=60
    )
    await pull(js, stream.name, "c", group="g")
    (group,) = (await stream.consumers.get("c")).cached.priority_groups
    assert (group.group, bool(group.pinned_client_id), group.pinned_ns > 0) == ("g", True, True)

    await stream.consumers.unpin("c", group="g")

    (group,) = (await stream.consumers.get("c")).cached.priority_groups
    assert (group.pinned_client_id, group.pinned_ns) == ("", 0)
    with pytest.raises(NotFoundError):
        await stream.consumers.unpin("c", group="other")


async def test_missing_consumer_is_told_by_each_call(stream: Stream) -> None:
    for ask in (
        stream.consumers.pause("c", duration=5),
        stream.consumers.resume("c"),
        stream.consumers.reset("c"),
        stream.consumers.unpin("c", group="g"),
    ):
        with pytest.raises(ConsumerNotFoundError):
            await ask


async def test_server_without_cluster_has_no_leader_to_step_down(stream: Stream) -> None:
    consumer = await stream.consumers.create("c")

    with pytest.raises(ServerError) as caught:
        await consumer.step_down()
    assert "not part of a cluster" in caught.value.hint
    await stream.consumers.delete("c")
    with pytest.raises(ConsumerNotFoundError):
        await consumer.step_down()


@pytest.mark.finding(25)
async def test_info_counts_what_is_out_and_what_is_to_come(js: JetStream, stream: Stream) -> None:
    for _ in range(5):
        await js.publish(f"{stream.name}.a", b"x")
    await js.publish(f"{stream.name}.b", b"x")
    consumer = await stream.consumers.create("c", filters=[f"{stream.name}.a"])
    await pull(js, stream.name, "c", batch=2)

    info = await consumer.info()

    assert (info.num_pending, info.num_ack_pending, info.num_redelivered) == (3, 2, 0)
    assert (info.delivered.consumer_seq, info.delivered.stream_seq) == (2, 2)
    assert info.ack_floor.stream_seq == 0
    assert info.delivered.last_active_ns >= info.created_ns > 0
    assert info.time_ns >= info.delivered.last_active_ns
    assert not info.is_push
    assert "3 pending, 2 out" in repr(info)
