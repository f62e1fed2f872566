"""Changes that are carried out, or not, and nobody answers: a relay keeps the answer to itself.

A cluster does the same when a leader changes at that moment.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.errors import (
    NotFoundError,
    RequestTimeoutError,
    StreamNotFoundError,
    UnavailableError,
)
from tests.support.patience import set_patience

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from contextlib import AbstractAsyncContextManager

    from natsstream import CoreMessage, JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio


# What a server says that knows no leader; the leader may make the change all the same.
LEADERLESS = (
    b'{"type":"io.nats.jetstream.api.v1.error","error":{"code":503,"err_code":10008,'
    b'"description":"JetStream system temporarily unavailable"}}'
)


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Silence is looked into sooner than after a second."""
    monkeypatch.setattr("natsstream.api.requests._LOOK_EVERY_S", 0.2)


@asynccontextmanager
async def silent(
    url: str, prefix: str, *, changes: bool, told: bytes = b""
) -> AsyncGenerator[JetStream]:
    """Connect through a relay of the API that answers no change, and may not pass it on.

    With `told` it answers the first change with that, and passes the others on.
    """
    async with (
        connect(url) as direct,
        direct.core.subscribe(f"{prefix}.>") as requests,
        asyncio.TaskGroup() as group,
        connect(url, api_prefix=prefix, request_timeout=30) as js,
    ):
        told_to: list[str] = []

        async def relay(request: CoreMessage) -> None:
            subject = f"$JS.API{request.subject.removeprefix(prefix)}"
            is_change = any(verb in subject for verb in (".CREATE.", ".UPDATE.", ".DELETE."))
            if is_change and told:
                is_change = not told_to
                told_to.append(subject)
            if changes or not is_change:
                answer = await direct.core.request(subject, request.data, timeout=30)
                if not is_change:
                    await request.respond(answer.data)
            if is_change and told:
                await request.respond(told)

        async def relay_all() -> None:
            async for request in requests:
                group.create_task(relay(request))

        relaying = group.create_task(relay_all())
        yield js
        relaying.cancel()


async def test_stream_that_was_deleted_without_an_answer_is_deleted(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}_a.>"])

    async with silent(server.url, f"{stream_name}_api", changes=True) as there:
        await (await there.streams.get(stream_name)).delete()

    with pytest.raises(StreamNotFoundError):
        await js.streams.get(stream_name)


async def test_consumer_that_was_deleted_without_an_answer_is_deleted(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}_a.>"])
    await stream.consumers.create("c")

    async with silent(server.url, f"{stream_name}_api", changes=True) as there:
        await (await there.streams.get(stream_name)).consumers.delete("c")

    assert [name async for name in stream.consumers.names()] == []


async def test_deletion_that_was_lost_is_no_deletion(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}_a.>"])
    await stream.consumers.create("c")

    async with silent(server.url, f"{stream_name}_api", changes=False) as there:
        consumers = (await there.streams.get(stream_name)).consumers
        set_patience(there, request_timeout=1)
        with pytest.raises(RequestTimeoutError, match="DELETE"):
            await there.streams.delete(stream_name)
        with pytest.raises(RequestTimeoutError, match="DELETE"):
            await consumers.delete("c")

    assert [name async for name in stream.consumers.names()] == ["c"]


async def test_stream_that_was_made_and_changed_without_an_answer_is_there(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    subjects = [f"{stream_name}_a.>"]
    async with silent(server.url, f"{stream_name}_api", changes=True) as there:
        await there.streams.create(stream_name, subjects=subjects, max_msgs=5)
        stream = await there.streams.update(stream_name, max_age=3600, metadata={"team": "x"})
        assert stream.change.action == "updated"
        assert stream.cached.config.max_age == 3600

    config = (await js.streams.get(stream_name)).cached.config
    assert (config.max_msgs, config.max_age, (config.metadata or {})["team"]) == (5, 3600, "x")


async def test_field_that_was_given_up_without_an_answer_is_given_up(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    subjects = [f"{stream_name}_a.>"]
    await js.streams.create(stream_name, subjects=subjects, republish={"src": ">", "dest": "r.>"})

    async with silent(server.url, f"{stream_name}_api", changes=True) as there:
        await there.streams.update(stream_name, republish={})

    assert (await js.streams.get(stream_name)).cached.config.republish is None


async def test_change_that_was_lost_is_no_change(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}_a.>"], max_age=7200)

    async with silent(server.url, f"{stream_name}_api", changes=False) as there:
        set_patience(there, request_timeout=1)
        with pytest.raises(RequestTimeoutError, match="UPDATE"):
            await there.streams.update(stream_name, max_age=3600)
        with pytest.raises(RequestTimeoutError, match="CREATE"):
            await there.streams.create(f"{stream_name}_b", subjects=[f"{stream_name}_b.>"])

    assert (await js.streams.get(stream_name)).cached.config.max_age == 7200


async def test_what_does_not_exist_is_told_at_once(js: JetStream, stream_name: str) -> None:
    stream = await js.streams.create(stream_name, subjects=[f"{stream_name}_a.>"])

    with pytest.raises(NotFoundError):
        await stream.consumers.delete("c")
    await stream.delete()
    with pytest.raises(StreamNotFoundError):
        await stream.delete()


async def test_cancelled_deletion_waits_for_nothing(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    await js.streams.create(stream_name, subjects=[f"{stream_name}_a.>"])

    async with silent(server.url, f"{stream_name}_api", changes=False) as there:
        deleting = asyncio.ensure_future(there.streams.delete(stream_name))
        done, _ = await asyncio.wait({deleting}, timeout=0.5)
        deleting.cancel()
        await asyncio.wait({deleting})
        await there.core.flush()

        assert not done
        assert deleting.cancelled()
        waiting = there._client.requests._waiting  # pyright: ignore[reportPrivateUsage]
        assert waiting == {}


@pytest.mark.parametrize("is_made", [True, False])
async def test_change_that_a_server_without_a_leader_refuses_is_made(
    server: NatsServer, js: JetStream, stream_name: str, *, is_made: bool
) -> None:
    def leaderless() -> AbstractAsyncContextManager[JetStream]:
        prefix = f"{stream_name}_api"
        return silent(server.url, prefix, changes=is_made, told=LEADERLESS)

    subjects = [f"{stream_name}_a.>"]
    async with leaderless() as there:
        await there.streams.create(stream_name, subjects=subjects, max_msgs=5)
    async with leaderless() as there:
        await there.streams.update(stream_name, max_age=3600)
    stream = await js.streams.get(stream_name)
    assert (stream.cached.config.max_msgs, stream.cached.config.max_age) == (5, 3600)
    await stream.consumers.create("c")
    async with leaderless() as there:
        await (await there.streams.get(stream_name)).consumers.delete("c")
    assert [name async for name in stream.consumers.names()] == []
    async with leaderless() as there:
        await there.streams.delete(stream_name)
    with pytest.raises(StreamNotFoundError):
        await js.streams.get(stream_name)


@pytest.mark.parametrize("answers", [1, 1_000])
async def test_cluster_that_stays_without_a_leader_is_told(
    server: NatsServer, js: JetStream, stream_name: str, answers: int
) -> None:
    """Also when it falls silent after its first answer."""
    prefix = f"{stream_name}_api"
    async with (
        js.core.subscribe(f"{prefix}.>") as requests,
        asyncio.TaskGroup() as group,
        connect(server.url, api_prefix=prefix, request_timeout=1) as there,
    ):

        async def refuse_all() -> None:
            for _ in range(answers):
                await (await anext(requests)).respond(LEADERLESS)

        refusing = group.create_task(refuse_all())
        with pytest.raises(UnavailableError, match="10008"):
            await there.streams.create(stream_name, subjects=[stream_name])
        refusing.cancel()
