"""What the nats CLI tells of streams, consumers and keys that natsstream wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.interop.clients.kv import Seen
from tests.interop.clients.nats_cli import CliError

if TYPE_CHECKING:
    from natsstream import Stream
    from tests.interop.clients.client import Config
    from tests.interop.clients.nats_cli import NatsCli
    from tests.interop.clients.nats_cli_kv import CliBuckets
    from tests.interop.clients.ours import Ours

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_go, pytest.mark.sampled]

SECOND_NS = 1_000_000_000


async def fill(ours: Ours, name: str) -> Stream:
    """Make a stream with ten messages of two subjects, and holes."""
    stream = await ours.js.streams.create(name, subjects=[f"{name}.>"])
    for number in range(10):
        await stream.publish(f"{name}.{'ab'[number % 3 == 0]}", b"x" * 100)
    for sequence in (3, 4, 5, 8):
        await stream.delete_message(sequence)
    return stream


async def test_cli_counts_the_subjects_that_we_count(
    ours: Ours, nats_cli: NatsCli, stream_name: str
) -> None:
    stream = await fill(ours, stream_name)

    told = await nats_cli.json("stream", "subjects", stream_name)

    mine = {each.subject: each.messages for each in await stream.subjects()}
    assert told == mine == {f"{stream_name}.a": 3, f"{stream_name}.b": 3}


async def test_cli_tells_the_gaps_that_we_tell(
    ours: Ours, nats_cli: NatsCli, stream_name: str
) -> None:
    stream = await fill(ours, stream_name)

    said = await nats_cli.run("stream", "gaps", stream_name, "--force", "--no-progress", "--json")

    gaps = [(each.first_seq, each.last_seq) for each in await stream.gaps()]
    assert gaps == [(3, 5), (8, 8)]
    assert [tuple(gap) for gap in json.loads(said.stdout)] == gaps


async def test_cli_reports_our_streams_and_consumers(
    ours: Ours, nats_cli: NatsCli, stream_name: str
) -> None:
    stream = await fill(ours, stream_name)
    await stream.consumers.create("billing", ack_policy="explicit", deliver_policy="all")

    streams = (await nats_cli.run("stream", "report", "--raw")).stdout.decode()
    consumers = (await nats_cli.run("consumer", "report", stream_name, "--raw")).stdout.decode()

    [line] = [line for line in streams.splitlines() if f" {stream_name} " in line]
    assert line.split("│")[4].strip() == "1"
    [line] = [line for line in consumers.splitlines() if " billing " in line]
    assert "Pull" in line


async def test_cli_does_not_list_consumers_that_feed_a_source(
    ours: Ours, nats_cli: NatsCli, stream_name: str
) -> None:
    """natscli 0.3.0 does not know `flow_control` as an ack policy, and stops at it."""
    stream = await fill(ours, stream_name)
    feed: Config = {"durable_name": "feed", "ack_policy": "flow_control", "flow_control": True}
    feed |= {"deliver_subject": f"feed.{stream_name}", "idle_heartbeat": SECOND_NS}
    await ours.create_consumer(stream_name, {**feed, "max_ack_pending": 100})

    for command in ("ls", "report"):
        with pytest.raises(CliError):
            await nats_cli.run("consumer", command, stream_name)
    assert [name async for name in stream.consumers.names()] == ["feed"]


async def test_cli_reverts_a_key_as_we_do(
    ours: Ours, nats_cli: NatsCli, cli_buckets: CliBuckets, stream_name: str
) -> None:
    bucket = await ours.js.kv.create(stream_name, history=9)
    values = [b"one {{Count}}", b"2", b"3"]
    first, second, _ = [await bucket.put("a", value) for value in values]

    await nats_cli.run("kv", "revert", stream_name, "a", str(second), "--force")
    await bucket.revert("a", first)

    assert [entry.value async for entry in bucket.history("a")] == [*values, b"2", values[0]]
    assert await cli_buckets.get(stream_name, "a") == values[0]
    assert await cli_buckets.history(stream_name, "a") == [
        Seen("a", "PUT", value) for value in [*values, b"2", values[0]]
    ]
