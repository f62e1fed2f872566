"""Advisories of a real server as typed events, filtered, bounded, and told of gaps."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import advisories, connect
from natsstream.errors import (
    ConfigError,
    ConnectionClosedError,
    PermissionDeniedError,
    SlowReaderError,
    SubjectError,
    UsageError,
)
from natsstream.testing import NatsServer
from tests.support.clusters import connect_to
from tests.support.streams import change, fill

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import Advisories, JetStream
    from natsstream.testing import NatsCluster

pytestmark = pytest.mark.asyncio

WAIT_S = 30.0


async def take(events: Advisories, count: int) -> list[advisories.Advisory]:
    """Return the next events."""
    found: list[advisories.Advisory] = []
    for _ in range(count):
        event = await events.next(WAIT_S)
        assert event is not None, found
        found.append(event)
    return found


async def make_consumer(js: JetStream, stream: str, name: str, **config: object) -> None:
    """Make a durable pull consumer."""
    body = {"name": name, "durable_name": name, "ack_policy": "explicit", **config}
    await change(js, f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": body})


async def pull(js: JetStream, stream: str, consumer: str) -> Any:
    """Return the next message of a consumer, to be answered."""
    async with js.core.subscribe(f"pulled.{stream}") as inbox:
        await js.core.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer}", b"1", reply=f"pulled.{stream}"
        )
        return await inbox.next(WAIT_S)


@pytest.mark.smoke
@pytest.mark.proves("1a", "advisories as a typed stream")
async def test_life_of_a_stream_is_told(js: JetStream, stream_name: str, tmp_path: Path) -> None:
    async with js.advisories(stream=stream_name) as events:
        # Each is waited for: a server tells of a backup's end when it has answered already.
        stream = await fill(js, stream_name, 2)
        found = await take(events, 1)
        await js.streams.update(stream_name, max_msgs=10)
        found += await take(events, 1)
        await stream.backup(tmp_path / "backup")
        found += await take(events, 2)
        await stream.delete()
        found += await take(events, 1)
        await js.streams.restore(tmp_path / "backup")
        found += await take(events, 2)

    assert [each.kind for each in found] == [
        "stream_created",
        "stream_updated",
        "snapshot_created",
        "snapshot_completed",
        "stream_deleted",
        "restore_created",
        *[each.kind for each in found[6:]],
    ]
    assert {each.kind for each in found[6:]} <= {"restore_completed", "stream_created"}
    assert all(each.stream == stream_name and each.time_ns and each.id for each in found)
    actions = [each.action for each in found if isinstance(each, advisories.StreamAction)]
    assert actions[:3] == ["create", "modify", "delete"]
    assert [type(each) for each in found[2:4]] == [
        advisories.SnapshotCreated,
        advisories.SnapshotCompleted,
    ]


@pytest.mark.proves("1a", "advisories as a typed stream")
async def test_fate_of_messages_is_told(js: JetStream, stream_name: str) -> None:
    await fill(js, stream_name, 3)
    async with js.advisories(stream=stream_name, consumer="c") as events:
        await make_consumer(js, stream_name, "c", max_deliver=1, sample_freq="100")
        for answer in (b"-NAK", b"+TERM too old", b"+ACK"):
            message = await pull(js, stream_name, "c")
            await message.respond(answer)
        told = await take(events, 5)  # Before the consumer goes, and with it what it would tell.
        await change(js, f"CONSUMER.PAUSE.{stream_name}.c", {"pause_until": "2100-01-01T00:00:00Z"})
        await change(js, f"CONSUMER.DELETE.{stream_name}.c", {})
        found = {each.kind: each for each in [*told, *await take(events, 2)]}

    assert set(found) == {
        "consumer_created",
        "msg_naked",
        "max_deliveries",
        "msg_terminated",
        "consumer_ack",
        "consumer_paused",
        "consumer_deleted",
    }
    naked, over = found["msg_naked"], found["max_deliveries"]
    ended, acked = found["msg_terminated"], found["consumer_ack"]
    assert isinstance(naked, advisories.MessageNaked)
    assert isinstance(over, advisories.MaxDeliveries)
    assert isinstance(ended, advisories.MessageTerminated)
    assert isinstance(acked, advisories.ConsumerAck)
    assert (naked.stream_seq, over.stream_seq, over.deliveries) == (1, 1, 1)
    assert (ended.stream_seq, ended.reason) == (2, "too old")
    assert acked.stream_seq == 3
    assert acked.ack_time_ns > 0
    paused = found["consumer_paused"]
    assert isinstance(paused, advisories.ConsumerPaused)
    assert (paused.paused, paused.pause_until) == (True, "2100-01-01T00:00:00Z")
    assert all((each.stream, each.consumer) == (stream_name, "c") for each in found.values())


async def test_only_what_is_asked_for_comes(js: JetStream, stream_name: str) -> None:
    other = f"{stream_name}_2"
    async with (
        js.advisories(kinds=["consumer_created", "stream_deleted"], stream=stream_name) as events,
        js.advisories(kinds=["stream_created"]) as every,
    ):
        await fill(js, stream_name, 1)
        await fill(js, other, 1)
        await make_consumer(js, stream_name, "c")
        await make_consumer(js, other, "c")
        await js.streams.delete(other)
        await js.streams.delete(stream_name)

        assert [each.kind for each in await take(events, 2)] == [
            "consumer_created",
            "stream_deleted",
        ]
        names: list[str] = []
        while len(names) < 2:
            names += [each.stream for each in await take(every, 1) if stream_name in each.stream]
        assert names == [stream_name, other]


async def test_api_calls_are_told_only_on_request(js: JetStream, stream_name: str) -> None:
    async with js.advisories() as quiet, js.advisories(kinds=["api_audit"]) as loud:
        await fill(js, stream_name, 1)
        found: list[advisories.Advisory] = []
        while not any(
            isinstance(each, advisories.ApiAudit)
            and each.api_subject == f"$JS.API.STREAM.CREATE.{stream_name}"
            for each in found
        ):
            found += await take(loud, 1)
        heard = await take(quiet, 1)

    assert {each.kind for each in found} == {"api_audit"}
    assert not isinstance(heard[0], advisories.ApiAudit)


async def test_unknown_kinds_come_as_they_are(js: JetStream, stream_name: str) -> None:
    async with js.advisories(stream=stream_name) as events:
        await js.core.publish(f"$JS.EVENT.ADVISORY.STREAM.MELTED.{stream_name}", b'{"type":"new"}')
        await js.core.publish(f"$JS.EVENT.ADVISORY.STREAM.CREATED.{stream_name}", b"no json")
        new, odd = await take(events, 2)

    assert isinstance(new, advisories.UnknownAdvisory)
    assert (new.kind, new.type, new.raw, new.data) == ("", "new", {"type": "new"}, new.data)
    assert isinstance(odd, advisories.UnknownAdvisory)
    assert (odd.kind, odd.data) == ("stream_created", b"no json")


async def test_events_of_another_domain_are_left_out(js: JetStream, stream_name: str) -> None:
    subject = f"$JS.EVENT.ADVISORY.STREAM.CREATED.{stream_name}"
    async with js.advisories(stream=stream_name, domain="hub") as events:
        for domain in ("leaf", "hub", ""):
            body = {
                "type": "io.nats.jetstream.advisory.v1.stream_action",
                "domain": domain,
                "action": "create",
            }
            await js.core.publish(subject, json.dumps(body).encode())
        assert [each.domain for each in await take(events, 2)] == ["hub", ""]


async def test_events_under_an_imported_prefix(js: JetStream, stream_name: str) -> None:
    async with js.advisories(prefix="ACC.JS", stream=stream_name) as events:
        await js.core.publish(f"ACC.JS.ADVISORY.STREAM.QUORUM_LOST.{stream_name}", b"{}")
        (found,) = await take(events, 1)

    assert found.kind == "stream_quorum_lost"


@pytest.mark.proves("1a", "advisories as a typed stream")
async def test_slow_reader_is_told_how_many_were_dropped(js: JetStream, stream_name: str) -> None:
    async with js.advisories(stream=stream_name, max_pending=3) as events:
        for _ in range(10):
            await js.core.publish(f"$JS.EVENT.ADVISORY.STREAM.UPDATED.{stream_name}", b"{}")
        await js.core.flush()
        await take(events, 3)
        with pytest.raises(SlowReaderError) as caught:
            await events.next(WAIT_S)

        assert (caught.value.dropped, events.dropped) == (7, 7)
        await js.core.publish(f"$JS.EVENT.ADVISORY.STREAM.DELETED.{stream_name}", b"{}")
        assert [each.kind for each in await take(events, 1)] == ["stream_deleted"]


async def test_reader_survives_a_restart_and_says_that_something_may_be_missing(
    fresh_server: NatsServer, stream_name: str
) -> None:
    async with (
        connect(fresh_server.url, reconnect_timeout=30) as js,
        js.advisories(kinds=["stream_created", "stream_deleted"]) as events,
    ):
        await fill(js, stream_name, 1)
        await take(events, 1)
        fresh_server.kill()
        fresh_server.start()

        (gap,) = await take(events, 1)
        async with asyncio.timeout(30):
            await js.streams.get(stream_name)
        await js.streams.delete(stream_name)
        (deleted,) = await take(events, 1)

    assert isinstance(gap, advisories.AdvisoriesInterrupted)
    assert gap.time_ns
    assert deleted.kind == "stream_deleted"


@pytest.mark.proves("1a", "advisories as a typed stream")
async def test_pins_and_their_end_are_told(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 1)
    worker = await stream.consumers.create(
        "worker",
        priority_groups=["jobs"],
        priority_policy="pinned_client",
        priority_timeout=30,
    )
    async with js.advisories(kinds=["consumer_pinned", "consumer_unpinned"]) as events:
        message = await worker.next(timeout=WAIT_S)
        assert message is not None
        await stream.consumers.unpin("worker", group="jobs")

        pinned, unpinned = await take(events, 2)

    assert isinstance(pinned, advisories.ConsumerPinned)
    assert isinstance(unpinned, advisories.ConsumerUnpinned)
    for event in (pinned, unpinned):
        assert (event.stream, event.consumer, event.group) == (stream_name, "worker", "jobs")
    assert pinned.pinned_id
    assert unpinned.reason == "admin"


async def test_batch_that_is_given_up_is_told(js: JetStream, stream_name: str) -> None:
    await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"], allow_atomic=True)
    async with js.advisories(kinds=["stream_batch_abandoned"], stream=stream_name) as events:
        # The second message of the batch never comes.
        for number, more in (("1", {}), ("3", {"Nats-Batch-Commit": "1"})):
            headers = {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": number, **more}
            await js.core.request(f"{stream_name}.0", b"", headers=headers)

        (event,) = await take(events, 1)

    assert isinstance(event, advisories.BatchAbandoned)
    assert (event.stream, event.batch, event.reason) == (stream_name, "b", "incomplete")


@pytest.mark.proves("1a", "advisories as a typed stream")
async def test_leaders_of_a_cluster_are_told(nats_cluster: NatsCluster, stream_name: str) -> None:
    async with (
        connect_to(nats_cluster) as js,
        js.advisories(kinds=["stream_leader_elected"], stream=stream_name) as events,
        js.advisories(kinds=["consumer_leader_elected"], stream=stream_name) as of_consumers,
    ):
        stream = await js.streams.ensure(stream_name, replicas=3)
        (first,) = await take(events, 1)
        leader = await stream.step_down()
        assert isinstance(first, advisories.LeaderElected)
        assert first.leader
        told = ""
        while told != leader:  # An election more is no harm.
            (found,) = await take(events, 1)
            assert isinstance(found, advisories.LeaderElected)
            told = found.leader
        await stream.consumers.create("worker")
        (elected,) = await take(of_consumers, 1)
        assert isinstance(elected, advisories.LeaderElected)
        assert (elected.kind, elected.consumer) == ("consumer_leader_elected", "worker")
        assert elected.leader
        await stream.delete()


async def test_leaving_frees_the_subscriptions(js: JetStream) -> None:
    sinks = js._client.parser.sinks  # pyright: ignore[reportPrivateUsage]
    before = set(sinks)
    events = js.advisories()
    with pytest.raises(UsageError):
        await anext(events)
    async with events:
        for timeout in ("1", -1, None):
            with pytest.raises(ConfigError):
                await events.next(timeout)  # pyright: ignore[reportArgumentType]
        waiting = asyncio.create_task(events.next(WAIT_S))
        assert len(sinks) > len(before)

    assert set(sinks) == before
    waiting.cancel()
    with pytest.raises(StopAsyncIteration):
        await anext(events)
    with pytest.raises(UsageError):
        await events.open()


async def test_closed_connection_ends_the_reader(server: NatsServer) -> None:
    async with connect(server.url) as js:
        events = await js.advisories().open()
    with pytest.raises(ConnectionClosedError):
        await events.next(WAIT_S)


async def test_user_who_may_not_listen_is_told() -> None:
    user = '{ user: u, password: p, permissions: { subscribe: ["_INBOX.>"] } }'
    config = f"authorization {{ users: [ {user} ] }}"
    with NatsServer(config=config) as server:
        async with connect(server.url, user="u", password="p") as js:  # noqa: S106 - Of a test.
            with pytest.raises(PermissionDeniedError):
                await js.advisories().open()


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"kinds": ["max_delivery"]}, ConfigError, "did you mean max_deliveries"),
        ({"kinds": "api_audit"}, ConfigError, "give a list"),
        ({"kinds": [3]}, ConfigError, ""),
        ({"kinds": ["api_audit"], "stream": "S"}, ConfigError, "no event of api_audit"),
        ({"kinds": ["stream_created"], "consumer": "c"}, ConfigError, "no event of"),
        ({"stream": "a b"}, ValueError, ""),
        ({"stream": 5}, ConfigError, ""),
        ({"consumer": "a.b"}, ConfigError, ""),
        ({"domain": 5}, ConfigError, ""),
        ({"prefix": "a..b"}, SubjectError, ""),
        ({"prefix": "a.>"}, ConfigError, "wildcard"),
        ({"max_pending": 0}, ConfigError, ""),
    ],
)
async def test_wrong_arguments_are_refused(
    js: JetStream, arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        js.advisories(**arguments)

    assert says in str(caught.value)
