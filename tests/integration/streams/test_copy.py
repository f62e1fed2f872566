"""Copying a stream: its configuration, and its messages as they are."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import Republish, connect
from natsstream.errors import (
    ConfigError,
    RequestTimeoutError,
    StreamExistsError,
    StreamNameError,
    StreamNotFoundError,
    SubjectOverlapError,
    UnsupportedServerError,
)
from natsstream.streams import copying
from natsstream.testing import NatsServer, server_binary
from tests.support.streams import delete_message, fill, purge

if TYPE_CHECKING:
    from natsstream import JetStream, Stream, StreamInfo
    from natsstream.api.requests import Api

pytestmark = pytest.mark.asyncio


async def contents(stream: Stream) -> list[tuple[object, ...]]:
    """Return all that a stream holds, with everything that a message has."""
    return [
        (message.sequence, message.time_ns, message.subject, message.headers, message.data)
        async for message in stream.read()
    ]


async def filled(js: JetStream, name: str, **fields: Any) -> Stream:
    """Return a stream with a hole in the middle, headers and several subjects."""
    stream = await fill(js, name, 6, **fields)
    await js.publish(f"{name}.x", b"\x00\xff", headers={"A": ["1", "2"]}, msg_id="id-7")
    await delete_message(js, name, 3)
    return stream


async def test_copy_has_the_configuration_with_changes(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(
        stream_name,
        subjects=[f"{stream_name}.>"],
        max_age=60,
        duplicate_window=5,
        max_msgs=9,
        description="the first",
        metadata={"a": "1"},
        republish={"src": f"{stream_name}.>", "dest": f"copy.{stream_name}.>"},
    )
    held = stream.cached.config

    copy = await js.streams.copy(
        stream_name, f"{stream_name}_c", subjects=[f"{stream_name}_c.>"], max_msgs=3, republish={}
    )

    made = copy.cached.config
    assert (made.name, made.subjects) == (f"{stream_name}_c", (f"{stream_name}_c.>",))
    assert (made.max_age, made.duplicate_window, made.max_msgs) == (60, 5, 3)
    assert (made.description, made.republish) == ("the first", None)
    assert isinstance(held.republish, Republish)
    assert copy.change.action == "created"
    assert (made.metadata or {})["a"] == "1"
    assert (await copy.info()).state.messages == 0
    assert (await js.streams.get(stream_name)).cached.config == held


@pytest.mark.smoke
async def test_copied_messages_keep_sequence_time_subject_and_headers(
    js: JetStream, stream_name: str
) -> None:
    stream = await filled(js, stream_name, allow_atomic=True, allow_rollup_hdrs=True)
    before = await contents(stream)
    assert [each[0] for each in before] == [1, 2, 4, 5, 6, 7]

    copy = await js.streams.copy(
        stream_name, f"{stream_name}_c", messages=True, subjects=[f"{stream_name}_c.>"]
    )

    assert await contents(copy) == before == await contents(stream)
    made = copy.cached.config
    assert (made.mirror, made.subjects) == (None, (f"{stream_name}_c.>",))
    assert (made.allow_atomic, made.allow_rollup_hdrs) == (True, True)
    # It is a stream of its own from here on.
    ack = await js.publish(f"{stream_name}_c.new", b"")
    assert (ack.stream, ack.sequence) == (f"{stream_name}_c", 8)
    await js.publish(f"{stream_name}.y", b"")
    await js.streams.delete(stream_name)
    assert (await copy.info()).state.messages == len(before) + 1


async def test_work_queue_keeps_its_messages_when_it_is_copied(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 5, retention="workqueue")

    copy = await js.streams.copy(
        stream_name, f"{stream_name}_c", messages=True, subjects=[f"{stream_name}_c.>"]
    )

    assert [(await each.info()).state.messages for each in (stream, copy)] == [5, 5]
    assert copy.cached.config.retention == "workqueue"


async def test_copy_of_an_emptied_stream_goes_on_with_its_sequences(
    js: JetStream, stream_name: str
) -> None:
    await fill(js, stream_name, 5)
    await purge(js, stream_name)

    await js.streams.copy(
        stream_name, f"{stream_name}_c", messages=True, subjects=[f"{stream_name}_c"]
    )

    assert (await js.publish(f"{stream_name}_c", b"")).sequence == 6


async def test_deleted_last_messages_do_not_hold_the_copy_up(
    js: JetStream, stream_name: str
) -> None:
    stream = await fill(js, stream_name, 5)
    await delete_message(js, stream_name, 5)

    copy = await js.streams.copy(
        stream_name, f"{stream_name}_c", messages=True, subjects=[f"{stream_name}_c.>"]
    )

    assert await contents(copy) == await contents(stream)


async def test_what_can_not_be_copied_is_refused_and_makes_nothing(
    js: JetStream, stream_name: str
) -> None:
    name = f"{stream_name}_c"
    await fill(js, stream_name, 1)
    counters = await js.streams.create(
        f"{stream_name}_n", subjects=[f"{stream_name}_n.>"], allow_msg_counter=True
    )
    interest = await js.streams.create(
        f"{stream_name}_i", subjects=[f"{stream_name}_i.>"], retention="interest"
    )
    sourced = await js.streams.create(f"{stream_name}_s", sources=[{"name": stream_name}])
    mirror = await js.streams.create(f"{stream_name}_m", mirror={"name": stream_name})
    fields: dict[str, Any] = {"messages": True, "subjects": [f"{name}.>"]}
    misspelt: dict[str, Any] = {"subject": "x"}

    for origin in (counters, interest, sourced):
        with pytest.raises(ConfigError):
            await js.streams.copy(origin.name, name, **fields)
    with pytest.raises(ConfigError, match="by itself"):
        await js.streams.copy(mirror.name, name, messages=True)
    with pytest.raises(ConfigError, match="cannot have its subjects"):
        await js.streams.copy(stream_name, name)
    with pytest.raises(ConfigError, match="messages"):
        await js.streams.copy(stream_name, name, messages=1)  # pyright: ignore[reportArgumentType] - What is tested.
    with pytest.raises(ConfigError, match="no StreamConfig field"):
        await js.streams.copy(stream_name, name, **misspelt)
    with pytest.raises(SubjectOverlapError):
        await js.streams.copy(stream_name, name, messages=True, subjects=[f"{stream_name}.new"])
    with pytest.raises(StreamNotFoundError):
        await js.streams.copy(f"{stream_name}_none", name, **fields)
    with pytest.raises(StreamNameError):
        await js.streams.copy(stream_name, "a.b", **fields)
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(name)


async def test_stream_of_the_copys_name_stays_as_it_is(js: JetStream, stream_name: str) -> None:
    """Also a mirror just like the one that the copy would begin as."""
    await fill(js, stream_name, 2)
    mirror = await js.streams.create(f"{stream_name}_c", mirror={"name": stream_name})

    with pytest.raises(StreamExistsError):
        await js.streams.copy(
            stream_name, f"{stream_name}_c", messages=True, subjects=[f"{stream_name}_c.>"]
        )

    assert (await mirror.info()).config.mirror is not None


async def test_copy_that_is_late_or_cancelled_leaves_nothing(
    js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mirror always looks as it does in the beginning, so the copy does not come to its end."""
    await fill(js, stream_name, 10)
    fields: dict[str, Any] = {"messages": True, "subjects": [f"{stream_name}_c.>"]}
    read = copying.stream_info
    is_begun = asyncio.Event()

    async def as_empty(api: Api, name: str) -> StreamInfo:
        info = await read(api, name)
        if name != f"{stream_name}_c":
            return info
        is_begun.set()
        return replace(info, state=replace(info.state, messages=0, last_seq=0))

    monkeypatch.setattr(copying, "stream_info", as_empty)

    with pytest.raises(RequestTimeoutError, match="copy was deleted"):
        await js.streams.copy(stream_name, f"{stream_name}_c", timeout=0.1, **fields)
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(f"{stream_name}_c")

    is_begun.clear()
    task = asyncio.ensure_future(js.streams.copy(stream_name, f"{stream_name}_c", **fields))
    await is_begun.wait()
    # A second time while it clears up: what it made has to go all the same.
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(f"{stream_name}_c")


async def test_copy_that_is_cancelled_while_it_begins_leaves_nothing(
    js: JetStream, stream_name: str
) -> None:
    await fill(js, stream_name, 10)
    task = asyncio.ensure_future(
        js.streams.copy(stream_name, f"{stream_name}_c", messages=True, subjects=["none.of.it"])
    )
    created = f"$JS.API.STREAM.CREATE.{stream_name}_c"
    async with js.core.subscribe(created) as asked:
        await js.core.flush()
        assert await asked.next(10) is not None
        # The server has the request, and nobody here has its answer.
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert f"{stream_name}_c" not in [name async for name in js.streams.names()]


async def test_stream_of_a_cluster_is_copied_with_three_replicas(
    cluster_js: JetStream, stream_name: str
) -> None:
    stream = await filled(cluster_js, stream_name, replicas=3)

    copy = await cluster_js.streams.copy(
        stream_name, f"{stream_name}_c", messages=True, subjects=[f"{stream_name}_c.>"]
    )

    assert await contents(copy) == await contents(stream)
    assert copy.cached.config.replicas == 3
    await cluster_js.publish(f"{stream_name}_c.new", b"")


@pytest.mark.needs_versions
@pytest.mark.parametrize(("version", "retention"), [("2.11", "limits"), ("2.12", "workqueue")])
async def test_old_server_refuses_to_copy_messages_and_keeps_them(
    stream_name: str, version: str, retention: str
) -> None:
    """A work queue of 2.12 would be emptied by a mirror."""
    with NatsServer(binary=server_binary(version)) as server:
        async with connect(server.url) as js:
            stream = await fill(js, stream_name, 3, retention=retention)

            with pytest.raises(UnsupportedServerError):
                await js.streams.copy(stream_name, "C", messages=True, subjects=["c"])

            assert (await stream.info()).state.messages == 3
            await js.streams.copy(stream_name, "C", subjects=["c"])
