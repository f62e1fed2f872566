"""Integration tests of managing streams: creating, changing, finding and deleting them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from natsstream import ConfigError, ConnectOptions, Republish, StreamConfig, StreamSource, connect
from natsstream._wire.requests import RETRY_WAIT_S
from natsstream.errors import (
    InvalidConfigError,
    StreamExistsError,
    StreamNameError,
    StreamNotFoundError,
    SubjectOverlapError,
    UnsupportedServerError,
)
from tests.support.streams import change, connection_of, fill

if TYPE_CHECKING:
    from collections.abc import Sequence

    from natsstream import JetStream, Stream
    from natsstream._wire.parser import Frame
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


async def config_of(stream: Stream) -> dict[str, object]:
    """Return the configuration as the server sends it, without the server's own metadata."""
    raw = cast("dict[str, object]", (await stream.info()).raw["config"])
    metadata = cast("dict[str, str]", raw.get("metadata") or {})
    own = {key: value for key, value in metadata.items() if not key.startswith("_nats.")}
    return {**raw, "metadata": own}


@pytest.mark.proves("1a", "create")
async def test_created_stream_has_what_was_given(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(
        stream_name,
        subjects=[f"{stream_name}.a", f"{stream_name}.b.*"],
        description="what it is for",
        storage="memory",
        max_age=timedelta(hours=1),
        duplicate_window=30.5,
        max_msgs=10,
        discard="new",
        metadata={"owner": "me"},
    )

    held = (await stream.info()).config
    assert held.subjects == (f"{stream_name}.a", f"{stream_name}.b.*")
    assert (held.description, held.storage, held.discard) == ("what it is for", "memory", "new")
    assert (held.max_age, held.duplicate_window, held.max_msgs) == (3600, 30.5, 10)
    assert (held.metadata or {})["owner"] == "me"


async def test_creating_the_same_stream_again_is_fine(js: JetStream, stream_name: str) -> None:
    first = await js.streams.create(stream_name, subjects=[stream_name])
    second = await js.streams.create(stream_name, subjects=[stream_name])

    assert first.cached.created_ns == second.cached.created_ns


@pytest.mark.proves("1a", "create")
async def test_creating_another_stream_of_the_name_fails(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name, subjects=[stream_name])

    with pytest.raises(StreamExistsError):
        await js.streams.create(stream_name, subjects=[f"{stream_name}.other"])


async def test_empty_subjects_are_refused_where_nothing_else_fills_the_stream(
    js: JetStream, stream_name: str
) -> None:
    """Servers would give an existing stream its own name as its only subject."""
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    for call in (js.streams.ensure, js.streams.update):
        with pytest.raises(ConfigError, match="are empty"):
            await call(stream_name, subjects=[])
    with pytest.raises(ConfigError, match="are empty"):
        await js.streams.create(f"{stream_name}_new", subjects=[])

    assert (await js.streams.get(stream_name)).cached.config.subjects == (f"{stream_name}.>",)


async def test_sourcing_stream_may_lose_its_subjects(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name)
    every = f"{stream_name}_all"
    await js.streams.create(every, subjects=[every], sources=[stream_name])
    bare = await js.streams.update(every, subjects=[])
    copy = await js.streams.copy(every, f"{stream_name}_copy", subjects=[])

    assert not bare.cached.config.subjects
    assert not copy.cached.config.subjects


async def test_subjects_of_another_stream_are_refused(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])

    with pytest.raises(SubjectOverlapError) as caught:
        await js.streams.create(f"{stream_name}_b", subjects=["free", f"{stream_name}.x"])
    assert (caught.value.stream, caught.value.subject) == (stream_name, f"{stream_name}.x")
    assert f"stream {stream_name} captures {stream_name}.x" in caught.value.detail
    with pytest.raises(SubjectOverlapError):
        await js.streams.ensure(f"{stream_name}_b", subjects=[f"{stream_name}.x"])


async def test_field_that_the_server_refuses_is_typed(js: JetStream, stream_name: str) -> None:
    with pytest.raises(InvalidConfigError):
        await js.streams.create(stream_name, subjects=[stream_name], duplicate_window=9, max_age=5)


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({"subjects": ["HINT.>", "HINT.a"]}, "leave out the subject"),
        ({"subjects": [">"]}, "name other subjects"),
        ({"subjects": ["$JS.API.>"]}, "name other subjects"),
        ({"max_age": 0.01}, "ttl in a bucket, as seconds, 0.1 or more"),
        ({"max_age": 5, "duplicate_window": 60}, "duplicate_window=, at most max_age"),
        ({"duplicate_window": 0.01}, "0.1 or more"),
        ({"discard_new_per_subject": True}, 'discard="new"'),
        ({"discard_new_per_subject": True, "discard": "new"}, "max_msgs_per_subject="),
        ({"republish": Republish(source="HINT.>", destination="HINT.x.>")}, "does not capture"),
        ({"subject_delete_marker_ttl": 0.5}, "what the server names"),
    ],
)
async def test_field_that_the_server_refuses_has_a_way_out(
    js: JetStream, stream_name: str, fields: dict[str, Any], hint: str
) -> None:
    given: dict[str, Any] = {"subjects": ["HINT.>"], **fields}
    with pytest.raises(InvalidConfigError) as caught:
        await js.streams.create(stream_name, **given)

    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"storage": "memory"}, "create another stream"),
        ({"retention": "workqueue"}, "create another stream"),
        ({"deny_delete": False}, "once set it stays"),
        ({"allow_msg_ttl": False}, "once set it stays"),
    ],
)
async def test_change_that_the_server_refuses_has_a_way_out(
    js: JetStream, stream_name: str, changes: dict[str, Any], hint: str
) -> None:
    await js.streams.create(
        stream_name, subjects=[stream_name], deny_delete=True, allow_msg_ttl=True
    )
    with pytest.raises(InvalidConfigError) as caught:
        await js.streams.update(stream_name, **changes)

    assert hint in caught.value.hint


async def test_stream_that_copies_itself_has_a_way_out(js: JetStream, stream_name: str) -> None:
    itself = StreamSource(name=stream_name)
    with pytest.raises(InvalidConfigError) as caught:
        await js.streams.create(stream_name, mirror=itself)

    assert "does not get its messages from this one" in caught.value.hint


async def test_push_consumer_into_its_own_stream_has_a_way_out(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    with pytest.raises(InvalidConfigError) as caught:
        await stream.consumers.create("c", deliver_subject=f"{stream_name}.loop")

    assert "does not capture" in caught.value.hint


async def test_change_that_the_server_refuses_is_typed(js: JetStream, stream_name: str) -> None:
    await js.streams.create(stream_name, subjects=[stream_name], storage="memory")

    with pytest.raises(InvalidConfigError):
        await js.streams.update(stream_name, storage="file")


@pytest.mark.parametrize("name", ["", "a b", "a.b", "a*", "a>", "a/b", "x" * 256])
async def test_illegal_name_is_refused_before_sending(js: JetStream, name: str) -> None:
    with pytest.raises(StreamNameError):
        await js.streams.create(name)
    with pytest.raises(StreamNameError):
        await js.streams.get(name)
    with pytest.raises(StreamNameError):
        await js.streams.delete(name)


async def test_unknown_keyword_is_refused(js: JetStream, stream_name: str) -> None:
    misspelt: dict[str, Any] = {"subject": stream_name}
    with pytest.raises(ConfigError, match=r"'subject'\n.*did you mean subjects\?"):
        await js.streams.create(stream_name, **misspelt)


async def test_ensure_creates_and_then_changes_nothing(js: JetStream, stream_name: str) -> None:
    fields: dict[str, Any] = {
        "subjects": [stream_name],
        "max_age": 60,
        "duplicate_window": 10,
        "metadata": {"owner": "me"},
        "description": "",
        "max_msgs": -1,
    }
    first = await js.streams.ensure(stream_name, **fields)
    second = await js.streams.ensure(stream_name, **fields)

    assert second.cached.created_ns == first.cached.created_ns
    assert await config_of(second) == await config_of(first)
    # Nothing differs, so nothing would be sent.
    assert not second.change


async def test_ensure_changes_only_what_is_given(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(
        stream_name,
        subjects=[stream_name],
        max_msgs=100,
        max_age=60,
        duplicate_window=10,
        description="kept",
        allow_rollup_hdrs=True,
        metadata={"a": "1"},
    )
    before = await config_of(stream)

    await js.streams.ensure(stream_name, max_msgs=200)

    assert await config_of(stream) == {**before, "max_msgs": 200}


async def test_ensure_keeps_the_messages(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 5)

    await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>", f"{stream_name}_b"])

    assert (await stream.info()).state.messages == 5


async def test_metadata_is_replaced_and_the_servers_own_stays(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.ensure(stream_name, subjects=[stream_name], metadata={"a": "1", "b": "2"})

    stream = await js.streams.update(stream_name, metadata={"b": "3"})

    metadata = dict((await stream.info()).config.metadata or {})
    assert {k: v for k, v in metadata.items() if not k.startswith("_nats.")} == {"b": "3"}
    assert any(key.startswith("_nats.") for key in metadata)


async def test_explicit_zero_is_set(js: JetStream, stream_name: str) -> None:
    await js.streams.ensure(stream_name, subjects=[stream_name], max_age=60)

    stream = await js.streams.update(stream_name, max_age=0)

    assert (await stream.info()).config.max_age == 0


@pytest.mark.proves("1a", "update (full config)")
async def test_update_keeps_every_field_that_the_server_sent(
    js: JetStream, stream_name: str
) -> None:
    """Placement and transforms are set by a raw request, as another program would do it."""
    body: dict[str, object] = {
        "name": stream_name,
        "subjects": [f"{stream_name}.>"],
        "storage": "memory",
        "subject_transform": {
            "src": f"{stream_name}.a.*",
            "dest": f"{stream_name}.b.{{{{wildcard(1)}}}}",
        },
        "republish": {"src": f"{stream_name}.b.>", "dest": f"copy.{stream_name}.>"},
        "consumer_limits": {"inactive_threshold": 300_000_000_000, "max_ack_pending": 7},
        "max_msgs_per_subject": 3,
        "allow_msg_ttl": True,
        "subject_delete_marker_ttl": 10_000_000_000,
        "allow_rollup_hdrs": True,
        "compression": "s2",
        "allow_direct": True,
        "metadata": {"team": "x"},
    }
    await change(js, f"STREAM.CREATE.{stream_name}", body)
    stream = await js.streams.get(stream_name)
    before = await config_of(stream)

    await js.streams.update(stream_name, description="new")

    assert await config_of(stream) == {**before, "description": "new"}


async def test_whole_configuration_goes_back_and_forth(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(
        stream_name, subjects=[stream_name], max_age=0.5, duplicate_window=0.25
    )
    before = await config_of(stream)
    held = (await stream.info()).config

    again = await js.streams.update(replace(held, description="new"))

    assert await config_of(again) == {**before, "description": "new"}


async def test_typed_fields_cover_what_the_server_sends(js: JetStream, stream_name: str) -> None:
    """A field of a newer server lands in `extra`, and this test tells that it is there."""
    stream = await js.streams.create(stream_name, subjects=[stream_name])

    assert dict((await stream.info()).config.extra) == {}


async def test_value_that_the_server_took_as_another_is_told(
    js: JetStream, stream_name: str
) -> None:
    """A sealed stream keeps its messages for ever, whatever else was asked for."""
    await js.streams.create(stream_name)

    with pytest.raises(InvalidConfigError, match="max_age 0 for 3600000000000"):
        await js.streams.update(stream_name, sealed=True, max_age=3600)


async def test_value_that_the_server_can_not_read_is_told(js: JetStream, stream_name: str) -> None:
    config = StreamConfig(name=stream_name, extra={"max_age": "an hour"})

    with pytest.raises(UnsupportedServerError, match="cannot read") as caught:
        await js.streams.create(config)

    assert "max_age" in caught.value.detail


async def test_metadata_of_another_server_does_not_tell_its_level(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(
        stream_name, metadata={"_nats.level": "99", "_nats.ver": "9.9.9", "a": "1"}
    )

    metadata = dict(stream.cached.config.metadata or {})
    assert metadata["a"] == "1"
    assert "9.9.9" not in metadata.values()
    assert "99" not in metadata.values()


async def test_change_is_asked_again_when_nobody_was_there(
    server: NatsServer, js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API of a made-up prefix, which a leader begins to answer after the first question."""
    listening = asyncio.Event()
    sleep = asyncio.sleep

    async def wait_for_leader(seconds: float) -> None:
        # The second attempt waits for the leader itself, and not for some time.
        await (listening.wait() if seconds == RETRY_WAIT_S else sleep(seconds))

    monkeypatch.setattr(asyncio, "sleep", wait_for_leader)
    prefix = f"{stream_name}.API"
    options = ConnectOptions(
        servers=server.url, name=stream_name, api_prefix=prefix, request_timeout=30
    )
    client = js._client  # pyright: ignore[reportPrivateUsage] - plain NATS, to play the leader.
    asked: list[str] = []

    def answer(frames: Sequence[Frame]) -> None:
        for frame in frames:
            asked.append(frame[0].decode())
            reply = frame[1].decode()
            client.write(client.publish_command(reply, "", b"", b'{"success": true}'))

    async with connect(options) as other:
        deleting = asyncio.ensure_future(other.streams.delete("S"))
        while connection_of(server, stream_name)["in_msgs"] == 0:
            await asyncio.sleep(0)
        await client.subscribe(f"{prefix}.STREAM.DELETE.>", answer)
        await js.core.flush()
        listening.set()
        await deleting

    assert asked == [f"{prefix}.STREAM.DELETE.S"]


async def test_level_is_asked_once_however_many_want_it(
    fresh_js: JetStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = fresh_js._api  # pyright: ignore[reportPrivateUsage] - no public call waits for it alone.
    request = api.client.request
    asked: list[str] = []

    async def count(subject: str, payload: bytes = b"", **options: Any) -> Frame:
        asked.append(subject)
        return await request(subject, payload, **options)

    monkeypatch.setattr(api.client, "request", count)

    levels = await asyncio.gather(*[api.level() for _ in range(50)])

    # The server's own count has a question twice that it was slow to answer.
    assert asked == ["$JS.API.INFO"]
    assert levels == [(await fresh_js.account()).api_level] * 50


async def test_update_of_no_stream_fails(js: JetStream, stream_name: str) -> None:
    with pytest.raises(StreamNotFoundError):
        await js.streams.update(stream_name, max_msgs=1)


async def test_get_and_delete_of_no_stream_fail(js: JetStream, stream_name: str) -> None:
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(stream_name)
    with pytest.raises(StreamNotFoundError):
        await js.streams.delete(stream_name)


async def test_deleted_stream_is_gone(js: JetStream, stream_name: str) -> None:
    await fill(js, stream_name, 5)

    await js.streams.delete(stream_name)

    assert stream_name not in [name async for name in js.streams.names()]


async def test_find_names_the_stream_that_captures_a_subject(
    js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}.>"])

    assert await js.streams.find(f"{stream_name}.a.b") == stream_name
    assert await js.streams.find(f"{stream_name}_x.a") is None


async def test_list_and_names_filter_by_subject(js: JetStream, stream_name: str) -> None:
    for letter in "ab":
        await js.streams.create(f"{stream_name}_{letter}", subjects=[f"{stream_name}.{letter}"])

    names = [name async for name in js.streams.names(subject=f"{stream_name}.*")]
    infos = [info.name async for info in js.streams.list(subject=f"{stream_name}.b")]

    assert sorted(names) == [f"{stream_name}_a", f"{stream_name}_b"]
    assert infos == [f"{stream_name}_b"]


async def test_more_streams_than_a_page_holds_are_all_listed(fresh_js: JetStream) -> None:
    wanted = [f"S{number:03}" for number in range(300)]
    for name in wanted:
        await fresh_js.streams.create(name, storage="memory")

    assert [name async for name in fresh_js.streams.names()] == wanted
    assert [info.name async for info in fresh_js.streams.list()] == wanted


async def test_no_streams_are_an_empty_list(fresh_js: JetStream) -> None:
    assert [name async for name in fresh_js.streams.names()] == []
    assert [info async for info in fresh_js.streams.list()] == []
