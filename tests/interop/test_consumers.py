"""Consumers, counters and batches of one client, used and changed by the others, on R1 and R3."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from tests.interop.clients.client import RefusedError
from tests.interop.pairs import pairs
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.interop.clients.client import Client, Config
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio

SECOND_NS = 1_000_000_000
# In the server's JSON. {} stands for the name of the test's stream.
CONFIGS: dict[str, Config] = {
    "plain": {"ack_policy": "explicit", "deliver_policy": "all"},
    "full": {
        "ack_policy": "explicit",
        "deliver_policy": "by_start_sequence",
        "opt_start_seq": 2,
        "description": "Commandes : été",
        "filter_subjects": ["{}.a.>", "{}.b"],
        "ack_wait": 60 * SECOND_NS + 1,
        "max_deliver": 9,
        "replay_policy": "original",
        "sample_freq": "30%",
        "headers_only": True,
        "max_ack_pending": 77,
        "max_waiting": 33,
        "max_batch": 44,
        "max_expires": 50 * SECOND_NS,
        "max_bytes": 1_000_000,
        "inactive_threshold": 3_600 * SECOND_NS,
        "mem_storage": True,
        "metadata": {"team": "orders", "note": "a: b"},
    },
    "backoff": {
        "ack_policy": "all",
        "deliver_policy": "by_start_time",
        "opt_start_time": "2026-11-21T05:00:00.123456789Z",
        "max_deliver": 9,
        "backoff": [SECOND_NS + 1, 90 * SECOND_NS],
    },
    "pinned": {
        "ack_policy": "explicit",
        "deliver_policy": "all",
        "filter_subject": "{}.a",
        "priority_groups": ["workers"],
        "priority_policy": "pinned_client",
        "priority_timeout": 30 * SECOND_NS,
    },
    "push": {
        "ack_policy": "none",
        "deliver_policy": "last_per_subject",
        "filter_subject": "{}.>",
        "deliver_subject": "push.{}",
        "flow_control": True,
        "idle_heartbeat": 5 * SECOND_NS,
        "rate_limit_bps": 1_000_000,
    },
}
# The CLI has a flag for each of them, and the server takes both in an update.
CHANGES: Config = {"description": "changed by the other one", "max_deliver": 12}
NAME = "billing"
CONSUMER_CREATE = 10012


@pytest.fixture(params=CONFIGS.values(), ids=list(CONFIGS))
def config(request: pytest.FixtureRequest, stream_name: str) -> Config:
    """One configuration of the table, for a consumer of this test's stream."""
    text = json.dumps(request.param).replace("{}", stream_name)
    # The CLI checks a file against the API's schema, which has no defaults.
    required = {"durable_name": NAME, "name": NAME, "replay_policy": "instant"}
    return {**required, **cast("Config", json.loads(text))}


async def make(ours: Ours, stream: str, replicas: int, **fields: object) -> None:
    """Make the stream of a test."""
    subjects = [f"{stream}.>"]
    await ours.create({"name": stream, "subjects": subjects, "num_replicas": replicas, **fields})


def without_servers_own(config: Mapping[str, object]) -> Config:
    """Return a configuration without the metadata that the server writes itself."""
    metadata = cast("Mapping[str, str]", config.get("metadata") or {})
    own = {name: value for name, value in metadata.items() if not name.startswith("_nats.")}
    return {**config, "metadata": own}


@pairs("stream", replicated=True)
async def test_consumer_shows_every_field_that_another_client_gave(
    ours: Ours, writer: Client, reader: Client, config: Config, stream_name: str, replicas: int
) -> None:
    await make(ours, stream_name, replicas)

    await writer.create_consumer(stream_name, config)

    shown = without_servers_own(await reader.consumer_config(stream_name, NAME))
    assert {name: shown.get(name) for name in config} == config


@pairs("stream", replicated=True)
async def test_update_by_another_client_keeps_every_other_field_of_a_consumer(
    ours: Ours, writer: Client, reader: Client, config: Config, stream_name: str, replicas: int
) -> None:
    await make(ours, stream_name, replicas)
    await writer.create_consumer(stream_name, config)
    before = without_servers_own(await ours.consumer_config(stream_name, NAME))

    await reader.update_consumer(stream_name, NAME, CHANGES)

    after = without_servers_own(await ours.consumer_config(stream_name, NAME))
    assert after == {**before, **CHANGES}


# What nats-py 2.16 does not know, and so leaves out of what it sends back.
UNKNOWN_TO_NATS_PY = {
    "max_batch",
    "max_bytes",
    "max_expires",
    "priority_groups",
    "priority_policy",
    "priority_timeout",
}


@pytest.mark.sampled
@pairs("stream", ("our",), ("py",))
async def test_update_by_nats_py_keeps_the_fields_that_it_knows(
    ours: Ours, writer: Client, reader: Client, config: Config, stream_name: str
) -> None:
    await make(ours, stream_name, 1)
    await writer.create_consumer(stream_name, config)
    before = without_servers_own(await ours.consumer_config(stream_name, NAME))

    if "opt_start_time" in config:
        # It keeps microseconds of a time, and the server takes that for another start.
        with pytest.raises(RefusedError) as refused:
            await reader.update_consumer(stream_name, NAME, CHANGES)
        assert refused.value.err_code == CONSUMER_CREATE
        return
    await reader.update_consumer(stream_name, NAME, CHANGES)

    after = without_servers_own(await ours.consumer_config(stream_name, NAME))
    known = {name: before[name] for name in before.keys() - UNKNOWN_TO_NATS_PY}
    assert after == {**known, **CHANGES}


@pytest.mark.sampled
@pairs("stream", ("our", "py"), ("our", "py"))
async def test_consumer_of_nats_py_is_shared(
    ours: Ours, writer: Client, reader: Client, stream_name: str
) -> None:
    await make(ours, stream_name, 1)
    await writer.create_consumer(stream_name, {"durable_name": NAME, **CONFIGS["plain"]})
    for number in range(6):
        await writer.publish(f"{stream_name}.a", b"%d" % number, headers={"N": [str(number)]})

    found = [each for c in (writer, reader) for each in await c.work(stream_name, NAME, 3)]

    assert [message.data for message in found] == [b"%d" % n for n in range(6)]
    assert [message.headers for message in found] == [{"N": [str(n)]} for n in range(6)]


@pairs("stream", replicated=True)
async def test_messages_go_once_to_clients_that_share_a_consumer(
    ours: Ours, writer: Client, reader: Client, stream_name: str, replicas: int
) -> None:
    await make(ours, stream_name, replicas)
    plain: Config = {"durable_name": NAME, "name": NAME, "replay_policy": "instant"}
    plain |= CONFIGS["plain"]
    await writer.create_consumer(stream_name, plain)
    for number in range(6):
        await ours.publish(f"{stream_name}.a", b"%d" % number, headers={"N": [str(number)]})

    first = await writer.work(stream_name, NAME, 3)
    second = await reader.work(stream_name, NAME, 3)

    assert [message.data for message in first + second] == [b"%d" % n for n in range(6)]
    assert [message.sequence for message in first + second] == [1, 2, 3, 4, 5, 6]
    assert [message.headers for message in first + second] == [{"N": [str(n)]} for n in range(6)]
    left = await (await ours.js.streams.get(stream_name)).consumers.get(NAME)

    async def are_all_acknowledged() -> bool:
        # The CLI ends when its acks are sent, and the server works them off a little later.
        return (await left.info()).num_ack_pending == 0

    assert await eventually_async(are_all_acknowledged, within_s=30)


@pairs("stream", replicated=True)
async def test_counter_is_the_sum_of_what_all_clients_add(
    ours: Ours, writer: Client, reader: Client, stream_name: str, replicas: int
) -> None:
    await make(ours, stream_name, replicas, allow_msg_counter=True, allow_direct=True)
    subject = f"{stream_name}.hits"

    assert (await writer.count(subject, 2**60)).sequence == 1
    assert (await reader.count(subject, -5)).sequence == 2

    assert await writer.total(stream_name, subject) == 2**60 - 5
    assert await reader.total(stream_name, subject) == 2**60 - 5


@pytest.mark.proves("1b", "atomic batch (ADR-50)")
@pairs("stream", replicated=True)
async def test_atomic_batch_of_one_client_is_read_whole_by_the_others(
    ours: Ours, writer: Client, reader: Client, stream_name: str, replicas: int
) -> None:
    await make(ours, stream_name, replicas, allow_atomic=True)
    subject = f"{stream_name}.a"

    ack = await writer.publish_batch(subject, [b"one", b"two", b"three"])

    assert (ack.stream, ack.sequence) == (stream_name, 3)
    found = await reader.read(stream_name, 3)
    assert [message.data for message in found] == [b"one", b"two", b"three"]
    numbers = [message.headers["Nats-Batch-Sequence"] for message in found]
    assert numbers == [["1"], ["2"], ["3"]]
    assert len({message.headers["Nats-Batch-Id"][0] for message in found}) == 1
