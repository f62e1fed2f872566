"""Streams: what one client makes, the others show, change and ensure without losing a field."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from natsstream import StreamConfig
from natsstream.errors import StreamExistsError
from tests.interop.clients.client import RefusedError
from tests.interop.pairs import pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.interop.clients.client import Client, Config
    from tests.interop.clients.nats_cli import NatsCli
    from tests.interop.clients.nats_js import NatsJs
    from tests.interop.clients.ours import Ours

pytestmark = pytest.mark.asyncio

HOUR_NS = 3_600_000_000_000
MINUTE_NS = 60_000_000_000
SECOND_NS = 1_000_000_000
STREAM_EXISTS = 10058
SECOND_ADVISORY_S = 10.0

# The CLI checks a file against the API's schema, which has no defaults.
REQUIRED: Config = {"num_replicas": 1}
# In the server's JSON. {} stands for the name of the test's stream; <name>_ORIGIN exists as well.
CONFIGS: dict[str, Config] = {
    "plain": {"subjects": ["{}.>"]},
    "full": {
        "subjects": ["{}.a.>", "{}.b"],
        "description": "Commandes : été",
        "retention": "limits",
        "storage": "file",
        "max_msgs": 1_000,
        "max_bytes": 1_000_000,
        "max_age": 24 * HOUR_NS + 1,
        "max_msgs_per_subject": 7,
        "max_msg_size": 65_536,
        "max_consumers": 9,
        "discard": "new",
        "discard_new_per_subject": True,
        "duplicate_window": 90_000_000_001,
        "compression": "s2",
        "first_seq": 100,
        "allow_direct": True,
        "allow_rollup_hdrs": True,
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": MINUTE_NS,
        "allow_atomic": True,
        "republish": {"src": "{}.>", "dest": "copy.{}.>", "headers_only": True},
        "subject_transform": {"src": "{}.b", "dest": "{}.c"},
        "consumer_limits": {"inactive_threshold": HOUR_NS, "max_ack_pending": 500},
        "metadata": {"team": "orders", "note": "a: b"},
    },
    "work-queue": {
        "subjects": ["{}.>"],
        "retention": "workqueue",
        "storage": "memory",
        "deny_purge": True,
    },
    "mirror": {
        "mirror": {"name": "{}_ORIGIN", "opt_start_seq": 3, "filter_subject": "{}_ORIGIN.a"},
        "mirror_direct": True,
    },
    "sources": {
        "sources": [
            {
                "name": "{}_ORIGIN",
                "subject_transforms": [{"src": "{}_ORIGIN.>", "dest": "{}.from.>"}],
            }
        ],
    },
}
# Fields of newer servers. natscli 0.3.0 knows neither
# `allow_batched` nor the consumer of a source.
NEWER: dict[str, Config] = {
    "batched": {
        "subjects": ["{}.>"],
        "allow_batched": True,
        "allow_atomic": True,
        "allow_msg_schedules": True,
        "allow_msg_ttl": True,
        "allow_rollup_hdrs": True,
    },
    "counting": {"subjects": ["{}.>"], "allow_msg_counter": True, "allow_direct": True},
    "source-with-consumer": {
        "sources": [
            {
                "name": "{}_ORIGIN",
                "consumer": {"name": "feed", "deliver_subject": "feed.{}"},
            }
        ],
    },
}
CHANGES: Config = {"description": "changed by the other one", "max_msgs": 500}


@pytest.fixture(params=CONFIGS.values(), ids=list(CONFIGS))
def config(request: pytest.FixtureRequest, stream_name: str) -> Config:
    """One configuration of the table, for this test's stream."""
    text = json.dumps(request.param).replace("{}", stream_name)
    return {"name": stream_name, **REQUIRED, **cast("Config", json.loads(text))}


async def make_origin(ours: Ours, stream: str) -> None:
    """Make the stream that mirrors and sources name."""
    # A mirror's mirror_direct is what the origin's allow_direct says, whatever one asks for.
    fields: Config = {"subjects": [f"{stream}_ORIGIN.>"], "allow_direct": True}
    await ours.create({"name": f"{stream}_ORIGIN", **fields})


def without_servers_own(config: Mapping[str, object]) -> Config:
    """Return a configuration without the metadata that the server writes itself."""
    metadata = cast("Mapping[str, str]", config.get("metadata") or {})
    own = {name: value for name, value in metadata.items() if not name.startswith("_nats.")}
    return {**config, "metadata": own}


@pairs("stream", with_peers=True)
async def test_stream_shows_every_field_that_another_client_gave(
    ours: Ours, writer: Client, reader: Client, config: Config, stream_name: str
) -> None:
    await make_origin(ours, stream_name)

    await writer.create(config)

    shown = without_servers_own(await reader.config(stream_name))
    assert {name: shown.get(name) for name in config} == config


@pairs("stream", with_peers=True)
async def test_update_by_another_client_keeps_every_other_field(
    ours: Ours, writer: Client, reader: Client, config: Config, stream_name: str
) -> None:
    await make_origin(ours, stream_name)
    await writer.create(config)
    before = without_servers_own(await ours.config(stream_name))

    await reader.update(stream_name, CHANGES)

    after = without_servers_own(await ours.config(stream_name))
    assert after == {**before, **CHANGES}


@pytest.mark.sampled
@pairs("stream", ("our", "py"), ("our", "py"))
async def test_stream_is_shown_and_changed_by_nats_py_without_losing_a_field(
    ours: Ours, writer: Client, reader: Client, config: Config, stream_name: str
) -> None:
    await make_origin(ours, stream_name)
    await writer.create(config)
    before = without_servers_own(await ours.config(stream_name))
    shown = without_servers_own(await reader.config(stream_name))

    await reader.update(stream_name, CHANGES)

    assert {name: shown.get(name) for name in config} == config
    after = without_servers_own(await ours.config(stream_name))
    assert after == {**before, **CHANGES}


async def make_fed_origin(ours: Ours, stream: str) -> None:
    """Make the origin, and the consumer by which another stream may read it."""
    await make_origin(ours, stream)
    feed: Config = {"durable_name": "feed", "name": "feed", "ack_policy": "flow_control"}
    feed |= {"deliver_subject": f"feed.{stream}", "flow_control": True, "max_ack_pending": 100}
    feed |= {"idle_heartbeat": SECOND_NS, "deliver_policy": "all", "replay_policy": "instant"}
    await ours.create_consumer(f"{stream}_ORIGIN", feed)


def newer(stream: str, fields: str) -> Config:
    """Return a configuration with fields of newer servers."""
    text = json.dumps(NEWER[fields]).replace("{}", stream)
    return {"name": stream, **REQUIRED, **json.loads(text)}


@pytest.mark.sampled
@pytest.mark.parametrize("fields", NEWER)
@pairs("stream", ("our", "js", "go", "py"), ("our", "js", "go", "py"))
async def test_fields_of_newer_servers_are_shown_and_kept_by_every_client(
    ours: Ours, writer: Client, reader: Client, stream_name: str, fields: str
) -> None:
    await make_fed_origin(ours, stream_name)
    config = newer(stream_name, fields)
    await writer.create(config)
    before = without_servers_own(await ours.config(stream_name))
    shown = await reader.config(stream_name)

    await reader.update(stream_name, CHANGES)

    after = without_servers_own(await ours.config(stream_name))
    assert {name: before.get(name) for name in config} == config
    assert {name: shown.get(name) for name in config} == config
    assert after == {**before, **CHANGES}


@pytest.mark.needs_go
@pytest.mark.sampled
@pytest.mark.parametrize("fields", NEWER)
async def test_cli_keeps_the_fields_that_it_knows_and_drops_the_others(
    ours: Ours, nats_cli: NatsCli, stream_name: str, fields: str
) -> None:
    """`nats stream edit` of 0.3.0 turns `allow_batched` off, and has sources read by themselves."""
    await make_fed_origin(ours, stream_name)
    await ours.create(newer(stream_name, fields))
    before = without_servers_own(await ours.config(stream_name))

    await nats_cli.update(stream_name, CHANGES)

    dropped: dict[str, Config] = {
        "batched": {"allow_batched": None},
        "source-with-consumer": {"sources": [{"name": f"{stream_name}_ORIGIN"}]},
    }
    wanted = {**before, **CHANGES, **dropped.get(fields, {})}
    after = without_servers_own(await ours.config(stream_name))
    assert {name: after.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("replicas", [3], ids=["R3"])
@pairs("stream")
async def test_replicated_stream_is_changed_by_all_clients_without_losing_a_field(
    ours: Ours, writer: Client, reader: Client, stream_name: str, replicas: int
) -> None:
    text = json.dumps(CONFIGS["full"]).replace("{}", stream_name)
    config: Config = {"name": stream_name, "num_replicas": replicas, **json.loads(text)}
    await writer.create(config)
    before = without_servers_own(await ours.config(stream_name))

    await reader.update(stream_name, CHANGES)
    await writer.update(stream_name, {"max_msgs": 600})
    change = (await ours.js.streams.ensure(stream_name, max_msgs=600)).change

    assert {name: before.get(name) for name in config} == config
    after = {**before, **CHANGES, "max_msgs": 600}
    assert without_servers_own(await ours.config(stream_name)) == after
    shown = without_servers_own(await reader.config(stream_name))
    # nats.go leaves out what is false.
    assert {name: shown.get(name, False) for name in after} == after
    assert change.action == "unchanged"


async def told_by(nats_js: NatsJs, advisories: int) -> list[str]:
    """Return what the first two advisories tell of; the second may never come."""
    told = await nats_js.take(advisories, 1)
    told += await nats_js.take(advisories, 1, within_s=SECOND_ADVISORY_S)
    return [json.loads(each.data)["action"] for each in told]


@pytest.mark.needs_node
@pairs("stream")
async def test_stream_is_not_changed_by_a_client_that_wants_the_same(
    ours: Ours,
    nats_js: NatsJs,
    writer: Client,
    reader: Client,
    config: Config,
    stream_name: str,
) -> None:
    await make_origin(ours, stream_name)
    subject = f"$JS.EVENT.ADVISORY.STREAM.*.{stream_name}"
    advisories = await nats_js.call("subscribe", subject=subject)
    await writer.create(config)

    await reader.create(config)

    # An update would have been told between the two. Of the deletion the server may say nothing.
    await ours.js.streams.delete(stream_name)
    assert await told_by(nats_js, advisories) in (["create"], ["create", "delete"])
    await nats_js.drop(advisories)


@pytest.mark.needs_go
@pytest.mark.needs_node
async def test_ensure_leaves_a_stream_with_the_defaults_of_the_cli_as_it_is(
    ours: Ours, nats_cli: NatsCli, nats_js: NatsJs, stream_name: str
) -> None:
    subject = f"$JS.EVENT.ADVISORY.STREAM.*.{stream_name}"
    advisories = await nats_js.call("subscribe", subject=subject)
    flags = (f"--subjects={stream_name}.>", "--defaults")
    await nats_cli.run("stream", "add", stream_name, *flags)
    before = await ours.config(stream_name)

    stream = await ours.js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])

    assert stream.cached.raw["config"] == before
    await ours.js.streams.delete(stream_name)
    assert await told_by(nats_js, advisories) in (["create"], ["create", "delete"])
    await nats_js.drop(advisories)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param("nats_cli", marks=pytest.mark.needs_go),
        pytest.param("nats_js", marks=pytest.mark.needs_node),
    ],
)
async def test_create_with_another_configuration_is_refused_alike(
    request: pytest.FixtureRequest, ours: Ours, other: str, stream_name: str
) -> None:
    client = cast("Client", request.getfixturevalue(other))
    wanted: Config = {"name": stream_name, "subjects": [f"{stream_name}.>"], **REQUIRED}
    await client.create(wanted)

    with pytest.raises(StreamExistsError) as ours_refused:
        await ours.js.streams.create(StreamConfig.from_json({**wanted, "max_msgs": 5}))
    with pytest.raises(RefusedError) as refused:
        await client.create({**wanted, "max_msgs": 5})

    assert ours_refused.value.err_code == refused.value.err_code == STREAM_EXISTS


async def test_metadata_that_we_change_is_what_other_clients_show(
    ours: Ours, reader: Client, stream_name: str
) -> None:
    await ours.create({"name": stream_name, "metadata": {"team": "orders", "old": "1"}})

    await ours.js.streams.update(stream_name, metadata={"team": "billing"})

    shown = await reader.config(stream_name)
    assert without_servers_own(shown)["metadata"] == {"team": "billing"}
    assert "_nats.ver" in cast("dict[str, str]", shown["metadata"])
