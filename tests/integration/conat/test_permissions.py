"""Errors of core streams as Conat's codes: permissions, account limits, and silence."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream import connect
from natsstream.conat.codes import conat_code
from natsstream.conat.names import StreamNames, storage_path
from natsstream.errors import (
    NatsStreamError,
    PermissionDeniedError,
    ResourceExhaustedError,
    StoragePathError,
)
from natsstream.testing import NatsServer
from tests.support.core_streams import clients, context_of, new_name, until

if TYPE_CHECKING:
    from natsstream import JetStream
    from natsstream.testing import NatsNode

pytestmark = pytest.mark.asyncio

NAMES = StreamNames("hub/guarded")
OWNER = "00000000-0000-4000-8000-000000000000"
OTHER = "00000000-0000-4000-8000-000000000001"
# Account and project of an owner; neither is the hub.
OWNERS = [(None, None), (None, OWNER), (OWNER, None)]

USERS = f"""
authorization {{
  users = [
    {{ user: all, password: p }}
    {{ user: deaf, password: p, permissions: {{ subscribe: {{ deny: ["cn.f.>"] }} }} }}
    {{ user: blind, password: p, permissions: {{
        publish: {{ deny: ["$JS.API.STREAM.INFO.{NAMES.stream}"] }} }} }}
    {{ user: reader, password: p, permissions: {{ publish: {{ deny: ["cn.d.>"] }} }} }}
  ]
}}
"""

ONE_STREAM = """
accounts { A { jetstream: { max_streams: 1 }, users: [{ user: u, password: p }] } }
"""


def url_of(server: NatsServer, user: str) -> str:
    """Return the address of a server for a user."""
    return server.url.replace("nats://", f"nats://{user}:p@")


@pytest.mark.parametrize("user", ["deaf", "blind"])
async def test_a_stream_that_the_user_may_not_read_is_refused_with_403(user: str) -> None:
    with NatsServer(config=USERS) as server:
        async with connect(url_of(server, user)) as js:
            with pytest.raises(PermissionDeniedError) as caught:
                await js.core_stream("guarded")
            assert conat_code(caught.value) == 403
            assert caught.value.message.startswith("core stream 'hub/guarded': ")


async def test_a_write_that_the_user_may_not_make_is_refused_with_403_and_reads_go_on() -> None:
    with NatsServer(config=USERS) as server:
        async with (
            connect(url_of(server, "all")) as owner,
            connect(url_of(server, "reader")) as js,
            await owner.core_stream("guarded") as written,
            await js.core_stream("guarded") as read,
        ):
            with pytest.raises(PermissionDeniedError) as caught:
                await read.publish("refused")
            assert conat_code(caught.value) == 403
            assert caught.value.message.startswith("core stream 'hub/guarded': ")
            await written.publish("seen")
            await until(lambda: read.get_all() == ["seen"])


async def test_an_account_without_room_for_the_stream_answers_429() -> None:
    with NatsServer(config=ONE_STREAM) as server:
        async with (
            connect(server.url.replace("nats://", "nats://u:p@")) as js,
            await js.core_stream("first") as first,
        ):
            with pytest.raises(ResourceExhaustedError) as caught:
                await js.core_stream("second")
            assert conat_code(caught.value) == 429
            await first.publish(1)
            assert first.get_all() == [1]


async def test_a_stream_that_is_gone_answers_503(server: NatsNode) -> None:
    async with clients(server, 1) as [stream]:
        js = context_of(stream)
        await js.streams.delete(StreamNames(f"hub/{stream.name}").stream)
        with pytest.raises(NatsStreamError) as caught:
            await stream.publish("lost")
        assert conat_code(caught.value) == 503


async def test_a_server_that_hangs_answers_408(fresh_server: NatsServer) -> None:
    async with clients(fresh_server, 1) as [stream]:
        await asyncio.to_thread(fresh_server.pause)
        try:
            with pytest.raises(NatsStreamError) as caught:
                await stream.publish("late", timeout=0.2)
        finally:
            await asyncio.to_thread(fresh_server.resume)
        assert conat_code(caught.value) == 408


async def test_PP1_paths_of_the_hub_of_projects_and_of_accounts_are_allowed(js: JetStream) -> None:
    name = new_name()
    for account_id, project_id in OWNERS:
        path = storage_path(name, account_id=account_id, project_id=project_id)
        async with await js.core_stream(
            name, account_id=account_id, project_id=project_id
        ) as stream:
            await stream.publish(path)
            assert stream.get_all() == [path]
        await js.streams.delete(StreamNames(path).stream)


@pytest.mark.parametrize(
    "name", ["", "/", "a/", "..", "../hub2/a", "../accounts/x/a", f"../{OTHER}/a", "x" * 4_001]
)
@pytest.mark.parametrize("owner", OWNERS)
async def test_CS39_PP2_paths_outside_of_their_folder_are_refused_with_403(
    js: JetStream, name: str, owner: tuple[str | None, str | None]
) -> None:
    with pytest.raises(StoragePathError, match="permission denied") as caught:
        await js.core_stream(name, account_id=owner[0], project_id=owner[1])
    assert conat_code(caught.value) == 403
