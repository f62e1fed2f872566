"""What `ensure` changes, what `diff` says of it before, and what servers refuse."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from nats.js import api

from natsstream import ConfigChange, FieldChange, StreamConfig, connect
from natsstream.errors import (
    ConfigError,
    InvalidConfigError,
    StreamNotFoundError,
    UnsupportedServerError,
)

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

# The stream's fields before, and what is changed.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "storage": ({}, {"storage": "memory"}),
    "max_consumers": ({}, {"max_consumers": 5}),
    "to interest": ({}, {"retention": "interest"}),
    "to work queue": ({}, {"retention": "workqueue"}),
    "from work queue": ({"retention": "workqueue"}, {"retention": "limits"}),
    "counters on": ({}, {"allow_msg_counter": True}),
    "counters off": ({"allow_msg_counter": True}, {"allow_msg_counter": False}),
    "persist mode": ({}, {"persist_mode": "async"}),
    "persist mode back": ({"persist_mode": "async"}, {"persist_mode": "default"}),
    "deny delete": ({}, {"deny_delete": True}),
    "deny delete back": ({"deny_delete": True}, {"deny_delete": False}),
    "deny purge back": ({"deny_purge": True}, {"deny_purge": False}),
    "message TTL": ({}, {"allow_msg_ttl": True}),
    "message TTL back": ({"allow_msg_ttl": True}, {"allow_msg_ttl": False}),
    "schedules": ({}, {"allow_msg_schedules": True}),
    "schedules back": ({"allow_msg_schedules": True}, {"allow_msg_schedules": False}),
    "atomic back": ({"allow_atomic": True}, {"allow_atomic": False}),
    "compression": ({}, {"compression": "s2"}),
    "discard": ({}, {"discard": "new"}),
    "no ack": ({}, {"no_ack": True}),
    "seal": ({}, {"sealed": True}),
    "mirror of a stream": ({}, {"mirror": {"name": "NONE"}}),
    "another mirror": ({"mirror": {"name": "NONE"}}, {"mirror": {"name": "OTHER"}}),
    "mirror given up": ({"mirror": {"name": "NONE"}}, {"mirror": {}}),
    "placement": ({}, {"placement": {"tags": ["x"]}}),
    "sources": ({}, {"sources": [{"name": "NONE"}]}),
    "sources given up": ({"sources": [{"name": "NONE"}]}, {"sources": []}),
}


@pytest.mark.parametrize(
    "extra", [{"subjects": "x"}, {"placement": 5}, {"mirror": "A"}, {"sources": [5]}]
)
async def test_unreadable_value_of_a_known_field_in_extra_is_told(
    js: JetStream, stream_name: str, extra: dict[str, object]
) -> None:
    await js.streams.create(stream_name)

    for call in (js.streams.update, js.streams.ensure):
        with pytest.raises(UnsupportedServerError, match="cannot read"):
            await call(stream_name, extra=extra)


async def test_hints_about_mirrors_say_what_servers_do(js: JetStream, stream_name: str) -> None:
    """A new stream, a mirror, and an existing stream each have another way out."""
    origin = await js.streams.create(stream_name, subjects=[stream_name])
    mirror = await js.streams.create(f"{stream_name}_m", mirror=stream_name)
    sourced = await js.streams.create(f"{stream_name}_s", sources=[stream_name])

    with pytest.raises(InvalidConfigError, match="10034") as caught:
        await js.streams.create(f"{stream_name}_n", mirror=stream_name, subjects=["new.>"])
    assert "leave subjects= and sources= out" in caught.value.hint

    # Servers complain of the subjects, the sources, a cycle, or the mirror itself.
    for name, of in ((origin.name, "NONE"), (sourced.name, stream_name), (mirror.name, "NONE")):
        with pytest.raises(InvalidConfigError) as caught:
            await js.streams.update(name, mirror=of)
        assert caught.value.hint == (
            "a mirror can be removed, but not added or pointed at another stream: create a new "
            "one with mirror="
        )

    with pytest.raises(InvalidConfigError, match="10034") as caught:
        await js.streams.update(mirror.name, subjects=["own.>"])
    assert "mirror={} beside them makes it independent" in caught.value.hint
    own = await js.streams.update(mirror.name, subjects=["own.>"], mirror={})
    assert own.cached.config.subjects == ("own.>",)
    for each in (own, sourced, origin):
        await each.delete()


async def test_ensure_says_that_it_created(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[stream_name], max_msgs=5)

    assert stream.change == ConfigChange(
        stream_name,
        "created",
        (FieldChange("subjects", None, (stream_name,)), FieldChange("max_msgs", None, 5)),
    )


@pytest.mark.smoke
@pytest.mark.proves("1a", "create-or-update")
async def test_ensure_says_what_it_changed_from_and_to(js: JetStream, stream_name: str) -> None:
    await js.streams.ensure(stream_name, subjects=[stream_name], max_age=60, duplicate_window=5)

    stream = await js.streams.ensure(
        stream_name, max_age=90, max_msgs=7, subjects=[stream_name], metadata={"a": "1"}
    )

    assert stream.change == ConfigChange(
        stream_name,
        "updated",
        (
            FieldChange("max_msgs", -1, 7),
            FieldChange("max_age", 60.0, 90),
            FieldChange("metadata", None, {"a": "1"}),
        ),
    )
    assert stream.cached.config.max_age == 90


async def test_ensure_says_that_nothing_differed(js: JetStream, stream_name: str) -> None:
    await js.streams.ensure(stream_name, subjects=[stream_name])

    stream = await js.streams.ensure(stream_name, subjects=[stream_name])

    assert stream.change == ConfigChange(stream_name, "unchanged")
    assert not stream.change


async def test_create_says_whether_it_created(js: JetStream, stream_name: str) -> None:
    """Servers answer the same for a stream that was made before."""
    for number in range(2):
        stream = await js.streams.create(stream_name, subjects=[stream_name])
        made = [
            stream,
            await stream.consumers.create("c"),
            await js.kv.create(stream_name),
            await js.objects.create(stream_name),
        ]
        expected = "unchanged" if number else "created"
        assert [each.change.action for each in made] == [expected] * len(made)
        assert [bool(each.change.fields) for each in made[:2]] == [not number] * 2


@pytest.mark.proves("1a", "create-or-update")
async def test_diff_says_what_ensure_then_does_and_does_nothing(
    js: JetStream, stream_name: str
) -> None:
    wanted = StreamConfig(name=stream_name, subjects=[stream_name], max_msgs=5)
    planned = await js.streams.diff(wanted)
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(stream_name)

    assert planned == (await js.streams.ensure(wanted)).change
    planned = await js.streams.diff(stream_name, max_msgs=6, replicas=1)
    assert (await js.streams.get(stream_name)).cached.config.max_msgs == 5
    assert planned == (await js.streams.ensure(stream_name, max_msgs=6, replicas=1)).change
    assert planned.fields == (FieldChange("max_msgs", 5, 6),)


async def test_diff_prints_as_a_table(js: JetStream, stream_name: str) -> None:
    await js.streams.ensure(stream_name, subjects=[stream_name])

    planned = await js.streams.diff(stream_name, storage="memory", max_msgs=100)

    assert str(planned).splitlines() == [
        f"{stream_name}: updated",
        "  field     before  after",
        "  storage   file    memory  cannot be changed after creation",
        "  max_msgs  -1      100",
    ]


@pytest.mark.sampled_variants
@pytest.mark.proves("1a", "create-or-update")
@pytest.mark.parametrize("case", CHANGES)
async def test_diff_refuses_what_the_server_refuses(
    js: JetStream, stream_name: str, case: str
) -> None:
    before, after = CHANGES[case]
    subjects = {} if "mirror" in before else {"subjects": [f"{stream_name}.>"]}
    if after.get("mirror"):
        subjects = {}
    await js.streams.create(stream_name, **subjects, **before)

    planned = await js.streams.diff(stream_name, **after)

    assert [change.name for change in planned.fields] == list(after)
    try:
        changed = await js.streams.update(stream_name, **after)
    except InvalidConfigError:
        assert planned.refused
    else:
        assert not planned.refused
        assert changed.change == planned
        assert not await js.streams.diff(stream_name, **after)


async def test_unknown_fields_go_back_whole(js: JetStream, stream_name: str) -> None:
    """A field that servers do not know is refused by name, so `extra` is really sent."""
    await js.streams.ensure(stream_name, subjects=[stream_name])

    planned = await js.streams.diff(stream_name, extra={"of_2030": {"deep": [1]}})

    assert planned.fields == (FieldChange("of_2030", None, {"deep": [1]}),)


@pytest.mark.proves("1a", "update (full config)")
async def test_metadata_of_the_server_is_neither_compared_nor_touched(
    js: JetStream, stream_name: str
) -> None:
    first = await js.streams.ensure(stream_name, subjects=[stream_name], metadata={"a": "1"})
    own = {k: v for k, v in (first.cached.config.metadata or {}).items() if k != "a"}
    assert own

    changed = await js.streams.ensure(
        stream_name, metadata={"b": "2", "_nats.level": "99", "_nats.ver": "1.0.0"}
    )

    assert changed.change.fields[0].before == {"a": "1"}
    assert dict(changed.cached.config.metadata or {}) == {**own, "b": "2"}
    same = await js.streams.diff(stream_name, metadata={"b": "2", "_nats.level": "98"})
    assert not same


async def test_settings_that_say_the_same_are_no_change(js: JetStream, stream_name: str) -> None:
    fields: dict[str, Any] = {
        "sources": [
            {
                "name": "ORIGIN",
                "opt_start_time": "2026-01-01T00:00:00Z",
                "subject_transforms": [{"src": "a.>", "dest": "b.>"}],
            },
            {"name": "FAR", "domain": "hub", "filter_subject": "x.>"},
        ],
        "republish": {"src": f"{stream_name}.>", "dest": f"copy.{stream_name}.>"},
        "consumer_limits": {"max_ack_pending": 10, "inactive_threshold": 90_000_000_000},
        "placement": {"tags": []},
    }
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"], **fields)

    assert not await js.streams.diff(stream_name, **fields)
    # And what the server gave back, given again.
    held = (await js.streams.get(stream_name)).cached.config
    assert not await js.streams.diff(held)


async def test_keywords_beside_a_config_are_refused(js: JetStream, stream_name: str) -> None:
    again: dict[str, Any] = {"name": "X"}
    with pytest.raises(ConfigError, match="not both"):
        await js.streams.ensure(StreamConfig(name=stream_name), max_msgs=1)
    with pytest.raises(ConfigError, match="name is given twice"):
        await js.streams.ensure(stream_name, **again)


async def test_configuration_of_nats_py_is_refused_with_the_class_here(
    js: JetStream, stream_name: str
) -> None:
    consumers = (await js.streams.ensure(stream_name)).consumers
    theirs: dict[str, tuple[Any, Any]] = {
        "StreamConfig": (js.streams, api.StreamConfig(name="X")),
        "ConsumerConfig": (consumers, api.ConsumerConfig(durable_name="X")),
        "BucketConfig": (js.kv, api.KeyValueConfig("X")),
        "ObjectBucketConfig": (js.objects, api.ObjectStoreConfig("X")),
    }

    for ours, (manager, config) in theirs.items():
        for call in (manager.create, manager.update, manager.ensure, manager.diff):
            with pytest.raises(ConfigError, match="is given as nats-py's ") as caught:
                await call(config)
            assert caught.value.hint == f"give ns.{ours}(...), or a name and keywords"


async def test_many_ensures_at_once_make_one_stream(
    js: JetStream, server: NatsNode, stream_name: str
) -> None:
    async with connect(server.url) as other:
        streams = await asyncio.gather(
            *(
                each.streams.ensure(stream_name, subjects=[stream_name], max_msgs=5)
                for each in (js, other)
                for _ in range(5)
            )
        )

    assert len({stream.cached.created_ns for stream in streams}) == 1
    assert {stream.change.action for stream in streams} <= {"created", "unchanged"}


async def test_ensure_that_comes_second_adds_its_fields(
    js: JetStream, server: NatsNode, stream_name: str
) -> None:
    """Both look before either has made the stream, and the strict create of one is refused."""
    async with connect(server.url) as other:
        await asyncio.gather(
            js.streams.ensure(stream_name, subjects=[stream_name], max_msgs=5),
            other.streams.ensure(stream_name, subjects=[stream_name], max_bytes=50_000),
        )

    held = (await js.streams.get(stream_name)).cached.config
    assert (held.max_msgs, held.max_bytes) == (5, 50_000)


async def test_replicas_are_changed_on_a_cluster(cluster_js: JetStream, stream_name: str) -> None:
    await cluster_js.streams.ensure(stream_name, subjects=[stream_name])
    await cluster_js.publish(stream_name, b"kept")

    planned = await cluster_js.streams.diff(stream_name, replicas=3, max_msgs=5)
    stream = await cluster_js.streams.ensure(stream_name, replicas=3, max_msgs=5)

    assert planned == stream.change
    assert [(each.name, each.before, each.after) for each in planned.fields] == [
        ("replicas", 1, 3),
        ("max_msgs", -1, 5),
    ]
    assert not await cluster_js.streams.diff(stream_name, replicas=3, max_msgs=5)
    assert (await stream.info()).state.messages == 1
