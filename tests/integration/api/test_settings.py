"""Every field of a stream's configuration, made with typed parts and read back as such."""

from __future__ import annotations

import json
import urllib.request
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import (
    ConsumerLimits,
    ExternalStream,
    Placement,
    Republish,
    SourceConsumer,
    StreamConfig,
    StreamSource,
    SubjectTransform,
    connect,
)
from natsstream.errors import ConfigError, ServerError, StreamNotFoundError
from natsstream.testing import NatsServer
from tests.support.accounts import KeyPair, Operator, creds_text
from tests.support.eventually import eventually_async
from tests.support.streams import change, fill

if TYPE_CHECKING:
    from pathlib import Path

    from natsstream import JetStream

pytestmark = pytest.mark.asyncio

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.proves("1a", "mirror / sources / transforms / external / ADR-60 consumer")
@pytest.mark.proves("1a", "republish, compression, placement, metadata, consumer_limits, first_seq")
async def test_typed_parts_are_stored_and_come_back(js: JetStream, stream_name: str) -> None:
    wanted = StreamConfig(
        name=stream_name,
        subjects=[f"{stream_name}.>"],
        compression="s2",
        first_seq=10,
        placement=Placement(tags=[]),
        subject_transform=SubjectTransform(
            source=f"{stream_name}.a.*", destination=f"{stream_name}.b.{{{{wildcard(1)}}}}"
        ),
        republish=Republish(
            source=f"{stream_name}.b.>", destination=f"copy.{stream_name}.>", headers_only=True
        ),
        consumer_limits=ConsumerLimits(inactive_threshold=30, max_ack_pending=7),
        metadata={"team": "x"},
        sources=[
            StreamSource(
                name="ORIGIN",
                start_time=MIDNIGHT,
                external=ExternalStream(api="JS.far.API", deliver="far.deliver"),
                transforms=[SubjectTransform(source="a.>", destination="b.>")],
            ),
            StreamSource(name="OTHER", start_seq=5, filter="x.>"),
            StreamSource(
                name="QUEUE", consumer=SourceConsumer(name="c", deliver_subject=f"d.{stream_name}")
            ),
        ],
    )

    stream = await js.streams.create(wanted)

    held = (await stream.info()).config
    assert (held.compression, held.first_seq) == ("s2", 10)
    assert held.subject_transform == wanted.subject_transform
    assert held.republish == wanted.republish
    assert held.consumer_limits == wanted.consumer_limits
    assert {source.name: source for source in held.sources or ()} == {
        source.name: source for source in wanted.sources or ()
    }
    assert not await js.streams.diff(wanted)
    await js.publish(f"{stream_name}.a.1", b"")
    message = await stream.get(10)
    assert message is not None
    assert message.subject == f"{stream_name}.b.1"


@pytest.mark.proves(
    "1a", "message TTL, delete markers, counters, schedules, atomic, batched, persist_mode flags"
)
@pytest.mark.parametrize(
    "fields",
    [
        {"allow_msg_ttl": True, "subject_delete_marker_ttl": 5, "allow_rollup_hdrs": True},
        {"allow_msg_counter": True},
        {"allow_msg_schedules": True},
        {"allow_atomic": True, "allow_batched": True},
        {"persist_mode": "async"},
        {"deny_delete": True, "deny_purge": True, "no_ack": True},
        {"discard": "new", "discard_new_per_subject": True, "max_msgs_per_subject": 2},
        {"max_msg_size": 10, "max_bytes": 1_000_000, "max_consumers": 3, "allow_direct": True},
    ],
)
async def test_flags_and_limits_are_stored_and_come_back(
    js: JetStream, stream_name: str, fields: dict[str, Any]
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"], **fields)

    held = (await stream.info()).config
    assert {name: getattr(held, name) for name in fields} == fields
    assert not await js.streams.diff(stream_name, **fields)


@pytest.mark.proves("1a", "mirror / sources / transforms / external / ADR-60 consumer")
async def test_mirror_is_made_and_given_up(js: JetStream, stream_name: str) -> None:
    await fill(js, stream_name, 3)
    mirror = await js.streams.create(
        f"{stream_name}_m", mirror=StreamSource(name=stream_name), mirror_direct=False
    )

    async def is_full() -> bool:
        return (await mirror.info()).state.messages == 3

    await eventually_async(is_full)
    own = await js.streams.update(f"{stream_name}_m", mirror={}, subjects=[f"{stream_name}_m.>"])

    assert own.cached.config.mirror is None
    assert [each.name for each in own.change.fields] == ["subjects", "mirror"]
    assert (await js.publish(f"{stream_name}_m.x", b"")).sequence == 4


@pytest.mark.proves("1a", "mirror / sources / transforms / external / ADR-60 consumer")
async def test_source_of_another_domain_is_copied(stream_name: str) -> None:
    hub_config = 'jetstream { domain: hub }\nleafnodes { host: "127.0.0.1", port: -1 }'
    with ExitStack() as servers:
        hub = servers.enter_context(NatsServer(config=hub_config))
        with urllib.request.urlopen(f"{hub.monitor_url}/varz", timeout=30) as answer:  # noqa: S310, ASYNC210 - our own server.
            port = json.load(answer)["leaf"]["port"]
        remote = f'leafnodes {{ remotes: [{{ url: "nats-leaf://127.0.0.1:{port}" }}] }}'
        leaf = servers.enter_context(NatsServer(config=f"jetstream {{ domain: leaf }}\n{remote}"))
        async with connect(hub.url) as far, connect(leaf.url) as js:
            await fill(far, stream_name, 5)
            near = await js.streams.create(
                "NEAR", sources=[StreamSource(name=stream_name, domain="hub")]
            )

            async def is_full() -> bool:
                return (await near.info()).state.messages == 5

            await eventually_async(is_full)
            info = await near.info()

    assert info.domain == "leaf"
    assert info.sources[0].external is not None
    assert info.sources[0].external.api == "$JS.hub.API"


async def test_unknown_fields_inside_a_part_stay_in_an_update(
    js: JetStream, stream_name: str
) -> None:
    """Metadata of a source is such a field to this version."""
    body: dict[str, object] = {
        "name": stream_name,
        "subjects": [f"{stream_name}.>"],
        "sources": [{"name": "ORIGIN", "external": {"api": "$JS.x.API", "deliver": ""}}],
    }
    await change(js, f"STREAM.CREATE.{stream_name}", body)

    stream = await js.streams.update(stream_name, max_msgs=5)

    assert stream.cached.raw["config"]["sources"] == body["sources"]  # pyright: ignore[reportIndexIssue, reportUnknownVariableType] - JSON.
    extra = StreamSource.from_json({"name": "A", "of_2030": 1})
    assert extra.to_json() == {"name": "A", "of_2030": 1}


async def requests_of(js: JetStream) -> int:
    """Return how many requests the account has made.

    Asked once: the library asks again after a second of silence, and each time counts.
    """
    answer = await js.core.request("$JS.API.INFO", timeout=30)
    return json.loads(answer.data)["api"]["total"]


async def test_wrong_values_are_refused_before_anything_is_sent(
    fresh_js: JetStream, stream_name: str
) -> None:
    wrong: list[dict[str, Any]] = [
        {"retention": "work"},
        {"subjects": [1]},
        {"replicas": "3"},
        {"placement": "here"},
        {"sources": {"name": "A"}},
        {"mirror": {"name": "a.b"}},
        {"metadata": {"a": 1}},
        {"max_age": "1h"},
    ]
    before = await requests_of(fresh_js)
    for fields in wrong:
        for call in (fresh_js.streams.create, fresh_js.streams.ensure, fresh_js.streams.diff):
            with pytest.raises(ConfigError if "mirror" not in fields else ValueError):
                await call(stream_name, **fields)

    assert await requests_of(fresh_js) - before <= 1  # The question for the account itself.


@pytest.mark.proves("1a", "republish, compression, placement, metadata, consumer_limits, first_seq")
async def test_placement_that_no_server_has_is_refused_on_a_cluster(
    cluster_js: JetStream, stream_name: str
) -> None:
    with pytest.raises(ServerError, match="nowhere"):
        await cluster_js.streams.create(
            stream_name, subjects=[stream_name], placement=Placement(tags=["nowhere"])
        )
    with pytest.raises(StreamNotFoundError):
        await cluster_js.streams.get(stream_name)


@pytest.mark.proves("1a", "account info (limits, tiers, API level)")
async def test_account_tells_everything(fresh_js: JetStream, stream_name: str) -> None:
    await fresh_js.streams.create(stream_name, subjects=[stream_name], max_bytes=1_000_000)
    # Once: the library asks again after a second of silence, and each time would count.
    await fresh_js.core.request("$JS.API.STREAM.INFO.NONE", timeout=30)

    account = await fresh_js.account()

    assert (account.usage.streams, account.usage.reserved_storage) == (1, 1_000_000)
    assert (account.usage.reserved_memory, account.tiers, account.domain) == (0, {}, "")
    assert account.api_errors == 1
    assert account.api_requests >= 2
    assert account.api_inflight >= 0
    assert (account.api_level or 0) >= 5


@pytest.mark.proves("1a", "account info (limits, tiers, API level)")
async def test_account_with_tiers_tells_each(tmp_path: Path) -> None:
    some = {"mem_storage": 1 << 20, "disk_storage": 1 << 24, "streams": 3, "consumer": 7}
    operator = Operator({"R1": some, "R3": {**some, "streams": 1}})
    user = KeyPair.new("user")
    creds = tmp_path / "user.creds"
    creds.write_text(creds_text(operator.user_jwt(user), user.seed))
    with NatsServer(config=operator.server_config) as server:
        async with connect(server.url, creds=creds) as js:
            await js.streams.create("ONE", subjects=["one"])
            await js.publish("one", b"x")

            account = await js.account()

    assert set(account.tiers) == {"R1", "R3"}
    assert (account.tiers["R3"].streams, account.tiers["R3"].limits.max_streams) == (0, 1)
    first = account.tiers["R1"]
    assert (first.streams, first.limits.max_streams, first.limits.max_consumers) == (1, 3, 7)
    assert (first.limits.max_memory, first.limits.max_storage) == (1 << 20, 1 << 24)
    assert first.storage > 0


@pytest.mark.proves("1a", "mirror / sources / transforms / external / ADR-60 consumer")
async def test_source_reads_a_work_queue_by_a_consumer_and_empties_it(
    js: JetStream, stream_name: str
) -> None:
    """The origin forgets a message only when the copy has it (ADR-60)."""
    queue = await fill(js, stream_name, 20, retention="workqueue")
    deliver = f"deliver.{stream_name}"
    await queue.consumers.create(
        "copier",
        deliver_subject=deliver,
        ack_policy="flow_control",
        flow_control=True,
        idle_heartbeat=1,
        max_ack_pending=100,
    )

    copy = await js.streams.create(
        f"{stream_name}_c",
        sources=[
            StreamSource(
                name=stream_name, consumer=SourceConsumer(name="copier", deliver_subject=deliver)
            )
        ],
    )

    async def is_moved() -> bool:
        held = (await copy.info()).state.messages, (await queue.info()).state.messages
        return held == (20, 0)

    await eventually_async(is_moved)
    assert [each.data[:2].strip() async for each in copy.read()] == [b"%d" % n for n in range(20)]


async def test_the_longest_durations_of_a_server_can_be_used(
    js: JetStream, stream_name: str
) -> None:
    """Go programs write "never" as the largest number; as seconds it is no whole nanosecond."""
    never = 2**63 - 1

    async def ask(subject: str, body: dict[str, object]) -> None:
        answer = await js.core.request(f"$JS.API.{subject}", json.dumps(body).encode())
        assert "error" not in json.loads(answer.data)

    config: dict[str, object] = {"name": stream_name, "subjects": [stream_name]}
    config |= {"storage": "memory", "max_age": never, "duplicate_window": never}
    await ask(f"STREAM.CREATE.{stream_name}", config)
    consumer: dict[str, object] = {"durable_name": "c", "ack_policy": "explicit"}
    consumer |= {"max_deliver": 3, "backoff": [never, never]}
    await ask(
        f"CONSUMER.DURABLE.CREATE.{stream_name}.c",
        {"stream_name": stream_name, "config": consumer},
    )

    stream = await js.streams.get(stream_name)
    async with js.publisher(retry_for=5) as publisher:
        await publisher.send(stream_name, b"1")
    reader = await stream.consumers.get("c")
    message = await reader.next()
    assert message is not None
    with pytest.raises(ZeroDivisionError):
        async with message.processing():
            raise ZeroDivisionError
    for held in (await reader.info(), stream.cached, stream.cached.config):
        assert "<table>" in held._repr_html_()  # pyright: ignore[reportPrivateUsage] - Jupyter calls it.
    await js.streams.update(stream.cached.config)
    assert (await stream.info()).config.to_json()["max_age"] == never
    # The nats CLI refuses each listing with such a stream, and other tests share the server.
    await js.streams.delete(stream_name)
