"""Push consumers, shared groups, priority groups, pauses and resets, between clients."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.client import Taken
from tests.interop.pairs import pairs
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from tests.interop.clients.client import Client, Config, Pushed, Stored
    from tests.interop.clients.nats_cli import NatsCli
    from tests.interop.clients.nats_js import NatsJs
    from tests.interop.clients.ours import Ours
    from tests.interop.pairs import Client as Name

pytestmark = [pytest.mark.asyncio, pytest.mark.sampled]

SECOND_NS = 1_000_000_000
NAME = "feed"
GROUP = "workers"
# Within it nothing comes where nothing may come; nats.js pulls for no shorter time.
NOTHING_S = 1.0
PUSHED: tuple[Name, ...] = ("our", "js", "go", "py")
GROUPED: tuple[Name, ...] = ("our", "js", "go")


async def make(ours: Ours, stream: str) -> None:
    """Make the stream of a test."""
    await ours.create({"name": stream, "subjects": [f"{stream}.>"]})


def config(**fields: object) -> Config:
    """Return a consumer's configuration, as a file of the CLI's needs it."""
    plain = {"durable_name": NAME, "name": NAME, "deliver_policy": "all", "ack_policy": "explicit"}
    return {**plain, "replay_policy": "instant", **fields}


async def is_settled(ours: Ours, stream: str) -> bool:
    """Tell whether the consumer's messages are all delivered and acked."""
    info = await (await ours.consumer(stream, NAME)).info()
    return (info.num_pending, info.num_ack_pending) == (0, 0)


@pairs("stream", (*PUSHED, "cli"), PUSHED)
async def test_push_consumer_of_one_client_is_read_by_the_other(
    ours: Ours, writer: Client, reader: Pushed, stream_name: str
) -> None:
    await make(ours, stream_name)
    pushes: Config = {"deliver_subject": f"push.{stream_name}"}
    await writer.create_consumer(stream_name, config(**pushes, idle_heartbeat=5 * SECOND_NS))

    listening = await reader.listen(stream_name, NAME)
    for number in range(20):
        await ours.publish(f"{stream_name}.a", b"%d" % number, headers={"N": [str(number)]})
    found = await listening.take(20)

    assert [(each.sequence, each.data) for each in found] == [
        (number + 1, b"%d" % number) for number in range(20)
    ]
    assert [each.headers["N"] for each in found] == [[str(number)] for number in range(20)]
    assert await eventually_async(lambda: is_settled(ours, stream_name), within_s=30)
    await listening.close()


@pairs("stream", PUSHED, PUSHED)
async def test_deliver_group_shares_the_messages_between_clients(
    ours: Ours, writer: Pushed, reader: Pushed, stream_name: str
) -> None:
    await make(ours, stream_name)
    pushes: Config = {"deliver_subject": f"push.{stream_name}", "deliver_group": GROUP}
    await writer.create_consumer(stream_name, config(**pushes))

    members = [await each.listen(stream_name, NAME) for each in (writer, reader)]
    for number in range(60):
        await ours.publish(f"{stream_name}.a", b"%d" % number)
    shares: tuple[list[Stored], ...] = ([], [])
    while sum(map(len, shares)) < 60:
        more = await asyncio.gather(*[each.take(60, within_s=NOTHING_S) for each in members])
        shares = (shares[0] + more[0], shares[1] + more[1])

    assert await eventually_async(lambda: is_settled(ours, stream_name), within_s=30)
    assert sorted(each.sequence for share in shares for each in share) == list(range(1, 61))
    for share in shares:
        assert share, "the server gives each member some of 60 messages"
        assert [each.sequence for each in share] == sorted(each.sequence for each in share)
    for member in members:
        await member.close()


@pairs("stream", GROUPED, GROUPED)
async def test_overflow_group_feeds_a_client_only_beyond_its_limit(
    ours: Ours, writer: Pushed, reader: Pushed, stream_name: str
) -> None:
    await make(ours, stream_name)
    groups: Config = {"priority_groups": [GROUP], "priority_policy": "overflow"}
    await writer.create_consumer(stream_name, config(**groups))
    await ours.publish(f"{stream_name}.a", b"1")

    few = await reader.settle(
        stream_name, NAME, "ack", within_s=NOTHING_S, group=GROUP, min_pending=3
    )
    for number in (2, 3, 4):
        await ours.publish(f"{stream_name}.a", b"%d" % number)
    many = await reader.settle(stream_name, NAME, "ack", group=GROUP, min_pending=3)
    free = await writer.settle(stream_name, NAME, "ack", group=GROUP)

    assert (few, many, free) == (None, Taken(1, 1), Taken(2, 1))


@pairs("stream", ("our", "go"), ("our", "go"))
async def test_pinned_group_feeds_one_client_until_it_is_unpinned(
    ours: Ours, writer: Pushed, reader: Pushed, stream_name: str
) -> None:
    await make(ours, stream_name)
    groups: Config = {"priority_groups": [GROUP], "priority_policy": "pinned_client"}
    await writer.create_consumer(stream_name, config(**groups, priority_timeout=60 * SECOND_NS))
    for number in (1, 2, 3):
        await ours.publish(f"{stream_name}.a", b"%d" % number)

    first = await writer.settle(stream_name, NAME, "ack", group=GROUP)
    shut = await reader.settle(stream_name, NAME, "ack", within_s=NOTHING_S, group=GROUP)
    second = await writer.settle(stream_name, NAME, "ack", group=GROUP)
    consumers = (await ours.js.streams.get(stream_name)).consumers
    await consumers.unpin(NAME, group=GROUP)
    third = await reader.settle(stream_name, NAME, "ack", group=GROUP)

    assert (first, shut, second, third) == (Taken(1, 1), None, Taken(2, 1), Taken(3, 1))


async def test_pin_that_one_client_takes_away_is_gone_for_the_other(
    ours: Ours, peer: NatsJs, stream_name: str
) -> None:
    await make(ours, stream_name)
    groups: Config = {"priority_groups": [GROUP], "priority_policy": "pinned_client"}
    await ours.create_consumer(stream_name, config(**groups))
    await ours.publish(f"{stream_name}.a", b"1")
    assert await ours.settle(stream_name, NAME, "ack", group=GROUP) == Taken(1, 1)
    handle = await ours.consumer(stream_name, NAME)
    [held] = (await handle.info()).priority_groups
    assert held.pinned_client_id

    await peer.unpin(stream_name, NAME, GROUP)

    [left] = (await handle.info()).priority_groups
    assert not left.pinned_client_id


async def test_pause_of_either_client_holds_until_the_other_resumes(
    ours: Ours, peer: NatsJs, stream_name: str
) -> None:
    await make(ours, stream_name)
    await ours.create_consumer(stream_name, config())
    consumers = (await ours.js.streams.get(stream_name)).consumers
    until = datetime.now(UTC) + timedelta(hours=1)
    await ours.publish(f"{stream_name}.a", b"1")
    await ours.publish(f"{stream_name}.a", b"2")

    await peer.pause(stream_name, NAME, until)
    paused = await (await ours.consumer(stream_name, NAME)).info()
    none = await ours.settle(stream_name, NAME, "ack", within_s=NOTHING_S)
    await consumers.resume(NAME)
    first = await peer.settle(stream_name, NAME, "ack")
    await consumers.pause(NAME, until=until)
    info = await peer.call("consumer_info", stream=stream_name, consumer=NAME)
    await peer.resume(stream_name, NAME)
    second = await ours.settle(stream_name, NAME, "ack")

    assert (paused.pause.is_paused, none, first) == (True, None, Taken(1, 1))
    assert (info["paused"], second) == (True, Taken(2, 1))


async def test_reset_of_either_client_moves_the_consumer_for_both(
    ours: Ours, peer: NatsJs, stream_name: str
) -> None:
    await make(ours, stream_name)
    await ours.create_consumer(stream_name, config())
    consumers = (await ours.js.streams.get(stream_name)).consumers
    for number in range(4):
        await ours.publish(f"{stream_name}.a", b"%d" % number)
    for sequence in (1, 2, 3):
        assert await peer.settle(stream_name, NAME, "ack") == Taken(sequence, 1)
    handle = await ours.consumer(stream_name, NAME)

    async def are_settled() -> bool:
        return (await handle.info()).ack_floor.stream_seq == 3

    assert await eventually_async(are_settled, within_s=30)
    assert await peer.reset(stream_name, NAME, 2) == 2
    assert await ours.settle(stream_name, NAME, "ack") == Taken(2, 1)
    assert await consumers.reset(NAME, sequence=1) == 1
    assert await peer.settle(stream_name, NAME, "ack") == Taken(1, 1)


@pytest.mark.needs_go
async def test_pause_of_the_cli_is_ours(ours: Ours, nats_cli: NatsCli, stream_name: str) -> None:
    await make(ours, stream_name)
    await ours.create_consumer(stream_name, config())

    await nats_cli.run("consumer", "pause", stream_name, NAME, "1h", "--force")

    handle = await ours.consumer(stream_name, NAME)
    assert (await handle.info()).pause.is_paused
    await nats_cli.run("consumer", "resume", stream_name, NAME, "--force")
    assert not (await handle.info()).pause.is_paused
