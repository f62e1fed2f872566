"""Integration tests of what an ordered consumer refuses, and when it says so."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from natsstream import ConfigError, NatsStreamError, UsageError, connect
from natsstream.errors import (
    PermissionDeniedError,
    StreamNotFoundError,
    StreamRecreatedError,
    SubjectError,
)
from natsstream.testing import NatsServer
from tests.support.streams import consumer_count, fill

if TYPE_CHECKING:
    from natsstream import JetStream

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    "options",
    [
        {"first_seq": 1, "deliver_policy": "new"},
        {"first_seq": 1, "start_time": 10**18},
        {"start_time": 10**18, "deliver_policy": "last"},
        {"first_seq": 0},
        {"start_time": datetime(2026, 1, 1)},  # noqa: DTZ001 - that is the mistake.
        {"start_time": 1 << 80},
        {"deliver_policy": "newest"},
        {"on_loss": "ignore"},
        {"filters": "a.>"},
    ],
    ids=str,
)
async def test_options_that_can_not_work_are_refused(
    js: JetStream, stream_name: str, options: dict[str, object]
) -> None:
    stream = await js.streams.ensure(stream_name)

    with pytest.raises(ConfigError):
        stream.ordered(**options)  # pyright: ignore[reportArgumentType]


async def test_illegal_filter_is_refused(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name)

    with pytest.raises(SubjectError):
        stream.ordered(filters=["a b"])


async def test_overlapping_filters_are_refused_on_entering(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name, subjects=[f"{stream_name}.>"])

    with pytest.raises(NatsStreamError, match="overlap"):
        async with stream.ordered(filters=[f"{stream_name}.>", f"{stream_name}.a"]):
            pass

    assert await consumer_count(stream) == 0


async def test_deleted_stream_is_refused_on_entering(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name)
    await js.streams.delete(stream_name)

    with pytest.raises(StreamNotFoundError):
        async with stream.ordered():
            pass


async def test_stream_of_another_identity_is_refused_on_entering(
    js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.ensure(stream_name)

    with pytest.raises(StreamRecreatedError):
        async with stream.ordered(created_ns=1):
            pass

    async with stream.ordered(created_ns=stream.cached.created_ns) as tail:
        assert tail.created_ns == stream.cached.created_ns


async def test_closed_or_unopened_consumer_can_not_be_read(js: JetStream, stream_name: str) -> None:
    stream = await fill(js, stream_name, 1)
    tail = stream.ordered()

    with pytest.raises(UsageError, match="not open"):
        await anext(tail)
    async with tail:
        pass
    await tail.close()

    assert [message async for message in tail] == []
    with pytest.raises(UsageError, match="opens once"):
        async with tail:
            pass


async def test_events_of_an_unopened_consumer_are_refused_and_those_of_a_closed_one_end(
    js: JetStream, stream_name: str
) -> None:
    tail = (await js.streams.ensure(stream_name)).ordered()

    with pytest.raises(UsageError, match="the ordered consumer is not open"):
        tail.events()
    async with tail:
        pass

    assert [event async for event in tail.events()] == []


async def test_two_tasks_can_not_read_one_consumer(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.ensure(stream_name)

    async with stream.ordered() as tail:
        waiting = asyncio.ensure_future(anext(tail))
        await stream.info()
        with pytest.raises(UsageError, match="another task"):
            await anext(tail)
        await js.publish(stream_name, b"x")
        assert (await waiting).sequence == 1


PERMISSIONS = """
    authorization {{
        users = [
            {{ user: all, password: p }}
            {{ user: some, password: p, permissions: {permissions} }}
        ]
    }}
"""


@pytest.mark.parametrize(
    "permissions",
    [
        '{ subscribe: { allow: ["_INBOX.*.*"] } }',
        '{ publish: { deny: ["$JS.API.CONSUMER.CREATE.>"] } }',
        '{ publish: { deny: ["$JS.API.CONSUMER.MSG.NEXT.>"] } }',
    ],
    ids=["inbox", "create", "next"],
)
async def test_user_without_permission_is_told(permissions: str) -> None:
    with NatsServer(config=PERMISSIONS.format(permissions=permissions)) as server:
        async with (
            connect(server.url, user="all", password="p") as owner,  # noqa: S106 - a test's own.
            connect(server.url, user="some", password="p") as user,  # noqa: S106
        ):
            await fill(owner, "S", 3)
            stream = await user.streams.get("S")

            with pytest.raises(PermissionDeniedError):
                async with stream.ordered() as tail:
                    await anext(tail)


async def test_denied_read_names_the_stream_and_a_rule_and_deletes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    permissions = '{ publish: { deny: ["$JS.API.CONSUMER.>"] } }'
    with NatsServer(config=PERMISSIONS.format(permissions=permissions)) as server:
        async with connect(server.url, user="all", password="p") as js:  # noqa: S106
            await js.streams.create("S", subjects=["s"])
            await js.publish("s", b"x")
        async with connect(server.url, user="some", password="p") as js:  # noqa: S106
            stream = await js.streams.get("S")
            with pytest.raises(PermissionDeniedError, match="read of stream S: ") as told:
                _ = [message async for message in stream.read()]
    assert told.value.hint.endswith(": publish $JS.API.CONSUMER.CREATE.S.>")
    assert not [each for each in caplog.records if "CONSUMER.DELETE" in each.getMessage()]
