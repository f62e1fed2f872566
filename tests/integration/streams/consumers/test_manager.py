"""Making, changing, finding and deleting consumers, with a real server."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import ConsumerConfig
from natsstream.errors import (
    ConfigError,
    ConsumerExistsError,
    ConsumerNameError,
    ConsumerNotFoundError,
    InvalidConfigError,
    ResourceExhaustedError,
    StreamNotFoundError,
)
from tests.support.eventually import eventually_async
from tests.support.streams import change, consumer_count
from tests.unit.api.test_consumer_config import WHOLE

if TYPE_CHECKING:
    from natsstream import JetStream, Stream

pytestmark = pytest.mark.asyncio


@pytest.mark.proves("1c", "durable / ephemeral / named")
async def test_consumer_with_a_name_is_durable(stream: Stream) -> None:
    consumer = await stream.consumers.create("billing", ack_wait=5)

    assert (consumer.name, consumer.stream) == ("billing", stream.name)
    config = consumer.cached.config
    assert (config.is_durable, config.ack_policy, config.ack_wait) == (True, "explicit", 5)
    assert config.inactive_threshold is None


@pytest.mark.proves("1c", "durable / ephemeral / named")
async def test_consumer_without_a_name_gets_one_and_is_deleted_by_itself(stream: Stream) -> None:
    consumer = await stream.consumers.create(inactive_threshold=0.1)

    assert consumer.cached.config.is_durable is False
    assert len(consumer.name) == 16

    async def is_gone() -> bool:
        return await consumer_count(stream) == 0

    await eventually_async(is_gone)


@pytest.mark.proves("1c", "durable / ephemeral / named")
async def test_named_consumer_need_not_be_durable(stream: Stream) -> None:
    consumer = await stream.consumers.create("tail", durable=False)

    assert consumer.name == "tail"
    assert consumer.cached.config.is_durable is False
    assert consumer.cached.config.inactive_threshold == 5


@pytest.mark.proves("1c", "pull limits max_batch / max_expires / max_bytes")
async def test_every_field_is_taken_and_comes_back(stream: Stream) -> None:
    filters = [f"{stream.name}.a", f"{stream.name}.b"]
    fields: dict[str, Any] = {**WHOLE, "filters": filters, "start_seq": 1}
    wanted = ConsumerConfig(**fields)

    consumer = await stream.consumers.create(wanted)

    held = consumer.cached.config
    assert not (await stream.consumers.diff(wanted)).fields
    assert held.filters == (f"{stream.name}.a", f"{stream.name}.b")
    assert held.pause_until == wanted.pause_until
    assert consumer.cached.pause.is_paused
    others = WHOLE.keys() - {"filters", "start_seq", "metadata"}
    assert {name: getattr(held, name) for name in others} == {name: WHOLE[name] for name in others}


@pytest.mark.proves("1c", "create strict / update strict / create-or-update")
@pytest.mark.finding(11)
async def test_create_leaves_a_consumer_that_exists_alone(stream: Stream) -> None:
    await stream.consumers.create("billing", ack_wait=5)

    with pytest.raises(ConsumerExistsError):
        await stream.consumers.create("billing", ack_wait=99)

    assert (await stream.consumers.get("billing")).cached.config.ack_wait == 5


async def test_create_returns_the_consumer_that_is_exactly_so(stream: Stream) -> None:
    first = await stream.consumers.create("billing", ack_wait=5)

    second = await stream.consumers.create("billing", ack_wait=5)

    assert second.cached.created_ns == first.cached.created_ns


@pytest.mark.proves("1c", "create strict / update strict / create-or-update")
@pytest.mark.finding(11)
async def test_update_makes_no_consumer(stream: Stream) -> None:
    with pytest.raises(ConsumerNotFoundError):
        await stream.consumers.update("billing", ack_wait=5)

    assert await consumer_count(stream) == 0


async def test_update_changes_what_is_given_and_nothing_else(stream: Stream) -> None:
    await stream.consumers.create("billing", ack_wait=5, max_batch=7, description="kept")

    consumer = await stream.consumers.update("billing", ack_wait=6, filters=[f"{stream.name}.a"])

    config = consumer.cached.config
    assert (config.ack_wait, config.max_batch, config.description) == (6, 7, "kept")
    assert config.filters == (f"{stream.name}.a",)
    assert [each.name for each in consumer.change.fields] == ["filters", "ack_wait"]
    # A single filter goes into the subject of the request, many do not.
    many = [f"{stream.name}.b", f"{stream.name}.c"]
    assert (await stream.consumers.update("billing", filters=many)).cached.config.filters == (
        tuple(many)
    )
    assert (await stream.consumers.update("billing", filters=[])).cached.config.filters is None


@pytest.mark.proves("1c", "create strict / update strict / create-or-update")
async def test_ensure_creates_changes_or_leaves(stream: Stream) -> None:
    actions = [
        (await stream.consumers.ensure("billing", ack_wait=wait, metadata={"a": "b"})).change.action
        for wait in (5, 5, 6)
    ]

    assert actions == ["created", "unchanged", "updated"]


async def test_diff_does_nothing(stream: Stream) -> None:
    change = await stream.consumers.diff("billing", ack_wait=5)
    assert change.action == "created"
    assert await consumer_count(stream) == 0

    await stream.consumers.create("billing", ack_wait=5)
    change = await stream.consumers.diff("billing", ack_wait=6, replay_policy="original")

    assert [(each.name, each.before, each.after) for each in change.fields] == [
        ("ack_wait", 5.0, 6),
        ("replay_policy", "instant", "original"),
    ]
    assert [each.name for each in change.refused] == ["replay_policy"]
    assert (await stream.consumers.get("billing")).cached.config.ack_wait == 5


REFUSED: dict[str, Any] = {
    "deliver_policy": "new",
    "start_seq": 5,
    "start_time": datetime(2026, 1, 1, tzinfo=UTC),
    "ack_policy": "all",
    "replay_policy": "original",
    "max_waiting": 9,
    "memory_storage": True,
}


@pytest.mark.parametrize("field", REFUSED)
async def test_change_that_is_marked_is_refused_by_the_server(stream: Stream, field: str) -> None:
    await stream.consumers.create("billing")
    marked = (await stream.consumers.diff("billing", **{field: REFUSED[field]})).refused

    with pytest.raises(InvalidConfigError, match="can not be updated") as caught:
        await stream.consumers.ensure("billing", **{field: REFUSED[field]})

    assert field in [each.name for each in marked]
    assert f"{field}: cannot be changed" in caught.value.hint or len(marked) > 1


@pytest.mark.parametrize("field", ["idle_heartbeat", "flow_control"])
async def test_change_of_a_push_consumer_that_is_marked_is_refused(
    stream: Stream, field: str
) -> None:
    await stream.consumers.create("push", deliver_subject=f"d.{stream.name}", idle_heartbeat=5)
    value: Any = {"idle_heartbeat": 6, "flow_control": True}[field]

    with pytest.raises(InvalidConfigError, match="can not be updated"):
        await stream.consumers.update("push", **{field: value})

    assert [each.name for each in (await stream.consumers.diff("push", **{field: value})).refused]


async def test_kind_and_durability_are_not_changed_behind_the_callers_back(stream: Stream) -> None:
    """The server would take the second without a word, and delete the consumer some day."""
    await stream.consumers.create("billing")

    with pytest.raises(ConfigError, match="push consumer"):
        await stream.consumers.update("billing", deliver_subject=f"d.{stream.name}")
    with pytest.raises(ConfigError, match="durable"):
        await stream.consumers.ensure("billing", durable=False)

    assert (await stream.consumers.get("billing")).cached.config.is_durable


@pytest.mark.proves("1c", "pull limits max_batch / max_expires / max_bytes")
@pytest.mark.finding(10)
async def test_update_erases_no_field(stream: Stream) -> None:
    await stream.consumers.create(
        "billing",
        ack_wait=5,
        priority_groups=["g"],
        priority_policy="overflow",
        max_bytes=77,
        max_expires=3,
    )
    before = cast("dict[str, Any]", (await stream.consumers.get("billing")).cached.raw["config"])

    await stream.consumers.update("billing", description="new")

    after = cast("dict[str, Any]", (await stream.consumers.get("billing")).cached.raw["config"])
    assert after == {**before, "description": "new"}


async def test_metadata_of_the_server_is_not_touched(stream: Stream) -> None:
    made = await stream.consumers.create("billing", metadata={"team": "x"})
    own = {key: value for key, value in _metadata(made).items() if key.startswith("_nats.")}
    assert own

    changed = await stream.consumers.update("billing", metadata={"team": "y", "_nats.ver": "0"})

    assert _metadata(changed) == {**own, "team": "y"}
    assert not (await stream.consumers.diff("billing", metadata={"team": "y"})).fields


async def test_configuration_of_one_consumer_makes_another(stream: Stream) -> None:
    first = await stream.consumers.create(
        "a", ack_wait=1.25, backoff=[1.25, 3], metadata={"x": "y"}
    )

    second = await stream.consumers.create(replace(first.cached.config, name="b"))

    assert second.cached.config.ack_wait == 1.25
    assert not (await stream.consumers.diff(replace(first.cached.config, name="b"))).fields


@pytest.mark.proves("1c", "list + names, paged")
@pytest.mark.finding(25, 32)
async def test_all_are_listed_beyond_a_page(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(
        stream_name, subjects=[stream_name], storage="memory", max_consumers=2000
    )
    names = [f"c{number:04}" for number in range(1030)]
    for name in names:
        config = {"name": name, "durable_name": name, "ack_policy": "none", "mem_storage": True}
        await change(
            js,
            f"CONSUMER.CREATE.{stream_name}.{name}",
            {"stream_name": stream_name, "config": config},
        )

    assert sorted([name async for name in stream.consumers.names()]) == names
    infos = [info async for info in stream.consumers.list()]
    assert sorted(info.name for info in infos) == names


async def test_delete_leaves_nothing(stream: Stream) -> None:
    consumer = await stream.consumers.create("billing")

    await stream.consumers.delete("billing")

    for ask in (
        consumer.info(),
        stream.consumers.get("billing"),
        stream.consumers.delete("billing"),
    ):
        with pytest.raises(ConsumerNotFoundError):
            await ask
    assert [name async for name in stream.consumers.names()] == []


async def test_missing_stream_is_told_as_such(js: JetStream, stream: Stream) -> None:
    await js.streams.delete(stream.name)

    for ask in (
        stream.consumers.get("x"),
        stream.consumers.create("x"),
        stream.consumers.ensure("x"),
        stream.consumers.diff("x"),
        stream.consumers.delete("x"),
    ):
        with pytest.raises(StreamNotFoundError):
            await ask


async def test_what_is_given_wrongly_is_told_before_anything_is_sent(stream: Stream) -> None:
    consumers = stream.consumers
    misspelt: dict[str, Any] = {"ack_polcy": "none"}
    again: dict[str, Any] = {"name": "y"}
    wrong: list[Any] = [
        consumers.create("x", **misspelt),
        consumers.create(ConsumerConfig(name="x"), ack_wait=5),
        consumers.create("x", **again),
        consumers.create("x", deliver_group="g"),
        consumers.update(ConsumerConfig(ack_wait=5)),
        consumers.ensure(cast("Any", 5)),
        consumers.pause("x"),
        consumers.pause("x", duration=5, until=5),
        consumers.pause("x", until=5),
        consumers.pause("x", duration=cast("Any", "5")),
        consumers.reset("x", sequence=0),
        consumers.reset("x", sequence=2**64),
        consumers.ensure(),
        consumers.create("x", durable=False, inactive_threshold=0),
        consumers.unpin("x", group="a b"),
    ]

    for ask in wrong:
        with pytest.raises((ConfigError, ConsumerNameError)):
            await ask
    assert await consumer_count(stream) == 0


async def test_name_may_be_a_keyword_in_every_call(stream: Stream) -> None:
    named: dict[str, Any] = {"name": "c"}
    made = await stream.consumers.ensure(**named, ack_wait=5)

    assert made.change.action == "created"
    assert not await stream.consumers.diff(**named, ack_wait=5)
    assert (await stream.consumers.update(**named, ack_wait=6)).cached.config.ack_wait == 6


async def test_misspelt_field_names_the_right_one(stream: Stream) -> None:
    for name in ("filter", "subjects", "filter_subject"):
        misspelt: dict[str, Any] = {name: ["a"]}
        with pytest.raises(ConfigError) as caught:
            await stream.consumers.create("x", **misspelt)

        assert caught.value.hint.startswith(("did you mean filters?", "in natsstream: filters;"))


async def test_filter_too_long_for_the_subject_of_the_request_goes_into_its_body(
    stream: Stream,
) -> None:
    long = f"{stream.name}.{'x' * 3_500}"

    consumer = await stream.consumers.create("long", filters=[long])

    assert consumer.cached.config.filters == (long,)


def _metadata(consumer: Any) -> dict[str, str]:
    return dict(consumer.cached.config.metadata or {})


async def test_the_limit_of_a_stream_is_named_before_that_of_the_account(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[stream_name], max_consumers=1)
    await stream.consumers.ensure("a")
    with pytest.raises(ResourceExhaustedError) as told:
        await stream.consumers.ensure("b")
    assert told.value.hint.startswith("raise the stream's max_consumers, 1,000 by default")

    await js.streams.update(stream_name, max_consumers=-1)
    await stream.consumers.ensure("b")


async def test_ack_wait_beside_a_backoff_that_is_there_is_refused(stream: Stream) -> None:
    await stream.consumers.ensure("c", backoff=[1, 2], max_deliver=5)
    for call in (stream.consumers.diff, stream.consumers.ensure, stream.consumers.update):
        with pytest.raises(ConfigError, match="ack_wait and backoff exclude each other"):
            await call("c", ack_wait=30)
    await stream.consumers.ensure("c", ack_wait=1)
    consumer = await stream.consumers.ensure("c", backoff=[], ack_wait=30)
    assert consumer.cached.config.ack_wait == 30
    await stream.consumers.ensure("c", backoff=[1, 2], max_deliver=5)
