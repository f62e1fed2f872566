"""Every server version and every configuration field: taken whole, or refused with its version.

The raw requests beside ours say what each server really does, so the table of features is compared
with the servers and not with what was once written down.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import StreamConfig, connect
from natsstream.api.features import CONSUMER_FIELDS, STREAM_FIELDS, Feature, used_features
from natsstream.errors import StreamNotFoundError, UnsupportedServerError
from natsstream.testing import NatsServer, server_binary
from tests.support.streams import change

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_versions]

HOUR_NS = 3_600_000_000_000
MAPPING = {"src": "p.a.*", "dest": "p.b.{{wildcard(1)}}"}
STREAM_VALUES: dict[str, dict[str, object]] = {
    "compression": {"compression": "s2"},
    "first_seq": {"first_seq": 5},
    "subject_transform": {"subject_transform": MAPPING},
    "consumer_limits": {"consumer_limits": {"max_ack_pending": 7}},
    "metadata": {"metadata": {"team": "x"}},
    "mirror.subject_transforms": {"mirror": {"name": "M", "subject_transforms": [MAPPING]}},
    "sources.subject_transforms": {"sources": [{"name": "M", "subject_transforms": [MAPPING]}]},
    "allow_msg_ttl": {"allow_msg_ttl": True},
    "subject_delete_marker_ttl": {"subject_delete_marker_ttl": HOUR_NS},
    "allow_atomic": {"allow_atomic": True},
    "allow_msg_counter": {"allow_msg_counter": True},
    "allow_msg_schedules": {"allow_msg_schedules": True, "allow_rollup_hdrs": True},
    "persist_mode": {"persist_mode": "async"},
    "allow_batched": {"allow_batched": True},
    "mirror.consumer": {"mirror": {"name": "M", "consumer": {"name": "c", "deliver_subject": "d"}}},
    "sources.consumer": {
        "sources": [{"name": "M", "consumer": {"name": "c", "deliver_subject": "d"}}]
    },
}
# Every server refuses this one in a stream; it is in the table for those that drop it.
NOT_IN_STREAMS = {"placement.preferred"}
CONSUMER_VALUES: dict[str, dict[str, object]] = {
    "filter_subjects": {"filter_subjects": ["p.a", "p.b"]},
    "metadata": {"metadata": {"team": "x"}},
    "pause_until": {"pause_until": "2100-01-01T00:00:00Z"},
    "priority_groups": {"priority_groups": ["g"], "priority_policy": "overflow"},
    "priority_policy": {"priority_groups": ["g"], "priority_policy": "overflow"},
    "priority_timeout": {
        "priority_groups": ["g"],
        "priority_policy": "pinned_client",
        "priority_timeout": HOUR_NS,
    },
    "priority_policy=prioritized": {"priority_groups": ["g"], "priority_policy": "prioritized"},
    "ack_policy=flow_control": {
        "ack_policy": "flow_control",
        "deliver_subject": "d",
        "flow_control": True,
        "idle_heartbeat": 1_000_000_000,
        "max_ack_pending": 10,
    },
}


async def ask(js: JetStream, action: str, body: dict[str, object]) -> dict[str, object]:
    """Return the whole answer to a raw request, errors too."""
    client = js._client  # pyright: ignore[reportPrivateUsage]
    frame = await client.request(f"$JS.API.{action}", json.dumps(body).encode(), timeout=30)
    return cast("dict[str, object]", json.loads(frame[3]))


def has(answer: dict[str, object], path: str) -> bool:
    """Tell whether the configuration in an answer has what a path of the table names."""
    table = {path: Feature("the field", (2, 10))}
    return bool(used_features(table, cast("dict[str, object]", answer.get("config") or {})))


def stream_body(name: str, fields: dict[str, object]) -> dict[str, object]:
    """Return the configuration of a stream with these fields."""
    return {"name": name, "storage": "file", **fields} | (
        {} if "mirror" in fields else {"subjects": [f"{name}.>"]}
    )


async def test_every_field_of_the_table_is_tried() -> None:
    assert STREAM_VALUES.keys() | NOT_IN_STREAMS == STREAM_FIELDS.keys()
    assert CONSUMER_VALUES.keys() == CONSUMER_FIELDS.keys()


@pytest.mark.proves(
    "1a", "message TTL, delete markers, counters, schedules, atomic, batched, persist_mode flags"
)
@pytest.mark.proves("1a", "Nats-Required-Api-Level (ADR-44)")
@pytest.mark.parametrize("path", STREAM_VALUES)
async def test_stream_field_is_taken_or_refused(
    js: JetStream, line: tuple[int, int], stream_name: str, path: str
) -> None:
    body = stream_body(stream_name, STREAM_VALUES[path])
    raw = await ask(js, f"STREAM.CREATE.{stream_name}", body)
    server_has = has(raw, path)
    await ask(js, f"STREAM.DELETE.{stream_name}", {})
    needs = STREAM_FIELDS[path].needs

    assert server_has == (line >= needs)
    config = StreamConfig.from_json(body)
    if server_has:
        stream = await js.streams.ensure(config)
        assert has(dict(stream.cached.raw), path)
        return
    with pytest.raises(UnsupportedServerError, match=path.replace(".", r"\.")) as caught:
        await js.streams.ensure(config)
    assert caught.value.needs == f"{needs[0]}.{needs[1]}"
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(stream_name)


@pytest.mark.parametrize("path", CONSUMER_VALUES)
async def test_table_of_consumer_fields_is_what_servers_do(
    js: JetStream, line: tuple[int, int], stream_name: str, path: str
) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    config: dict[str, object] = {"name": "c", "ack_policy": "explicit", **CONSUMER_VALUES[path]}
    body: dict[str, object] = {"stream_name": stream_name, "config": config, "action": "create"}

    raw = await ask(js, f"CONSUMER.CREATE.{stream_name}.c", body)

    assert has(raw, path) == (line >= CONSUMER_FIELDS[path].needs)


@pytest.mark.parametrize("path", ["allow_msg_ttl", "allow_atomic", "allow_batched"])
async def test_update_with_a_field_is_done_or_changes_nothing(
    js: JetStream, line: tuple[int, int], stream_name: str, path: str
) -> None:
    stream = await js.streams.create(stream_name, max_msgs=5)
    fields: dict[str, Any] = {path: True, "max_msgs": 6}

    if line >= STREAM_FIELDS[path].needs:
        changed = await js.streams.update(stream_name, **fields)
        assert has(dict(changed.cached.raw), path)
        return
    with pytest.raises(UnsupportedServerError, match=path):
        await js.streams.update(stream_name, **fields)
    assert (await stream.info()).config.max_msgs == 5


async def test_field_that_says_nothing_is_fine_everywhere(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(
        stream_name,
        allow_msg_ttl=False,
        allow_atomic=False,
        allow_batched=False,
        persist_mode="default",
        compression="none",
        subject_delete_marker_ttl=0,
    )
    again = await js.streams.update(stream_name, allow_batched=False, max_msgs=3)

    assert again.cached.created_ns == stream.cached.created_ns


async def test_field_that_nobody_knows_is_refused(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    """Old servers make the stream without the field, which is said; newer ones refuse."""
    config = StreamConfig(name=stream_name, extra={"not_yet_invented": 1})

    with pytest.raises(UnsupportedServerError, match="not_yet_invented") as caught:
        await js.streams.create(config)

    assert caught.value.feature == "not_yet_invented"
    is_made = line < (2, 12)
    assert ("is there now" in caught.value.message) == is_made
    assert (stream_name in [name async for name in js.streams.names()]) == is_made


@pytest.mark.proves("1a", "update (full config)")
@pytest.mark.finding(10)
async def test_update_sends_back_every_field_of_the_server(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    fields: dict[str, object] = {}
    for path in STREAM_VALUES.keys() - {"allow_msg_counter", "persist_mode", "first_seq"}:
        if "." not in path and line >= STREAM_FIELDS[path].needs:
            fields |= STREAM_VALUES[path]
    fields["subject_transform"] = {
        "src": f"{stream_name}.a.*",
        "dest": f"{stream_name}.b.{{{{wildcard(1)}}}}",
    }
    await change(js, f"STREAM.CREATE.{stream_name}", stream_body(stream_name, fields))
    before = dict((await js.streams.get(stream_name)).cached.raw)

    after = dict((await js.streams.update(stream_name, description="new")).cached.raw)

    held = cast("dict[str, object]", before["config"])
    assert after["config"] == {**held, "description": "new"}
    assert not (fields.keys() - held.keys())


async def test_config_of_the_newest_server_is_taken_or_refused(
    js: JetStream, line: tuple[int, int], stream_name: str
) -> None:
    with NatsServer(binary=server_binary("2.15")) as newest:
        async with connect(newest.url) as source:
            plain = await source.streams.create(stream_name, allow_direct=True)
            moved = await js.streams.ensure(plain.cached.config)
            assert moved.cached.config.allow_direct is True

            await source.streams.update(stream_name, allow_batched=True)
            config = (await plain.info()).config
    if line >= (2, 14):
        assert (await js.streams.ensure(config)).cached.config.allow_batched is True
        return
    with pytest.raises(UnsupportedServerError, match="allow_batched"):
        await js.streams.ensure(config)
