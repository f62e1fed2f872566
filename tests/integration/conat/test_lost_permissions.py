"""Permissions that are missing in part, or go while a core stream is open: never silent."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from natsstream import conat_code, connect
from natsstream.conat.keys import token_of
from natsstream.conat.names import StreamNames
from natsstream.errors import ConsumerNotFoundError, PermissionDeniedError
from tests.support.core_streams import until
from tests.support.overs import LOOK_EVERY_S
from tests.support.reloads import reload, reloadable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from natsstream import CoreStream, JetStream
    from natsstream.conat.views import Change
    from natsstream.errors import NatsStreamError
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

NAMES = StreamNames("hub/guarded")
API = "$JS.API"
FREE = 'publish: { deny: ["none"] }, subscribe: { deny: ["none"] }'


def users(permissions: str = FREE) -> str:
    """Return a configuration with a user who may do all, and one who may not."""
    return f"""
    authorization {{ users = [
      {{ user: all, password: p }}
      {{ user: some, password: p, permissions: {{ {permissions} }} }}
    ] }}
    """


def denying(subject: str, operation: str = "subscribe") -> str:
    """Return permissions without one subject."""
    return f'{operation}: {{ deny: ["{subject}"] }}'


@asynccontextmanager
async def served(folder: Path, config: str) -> AsyncGenerator[tuple[NatsServer, JetStream, str]]:
    """Run a server; yield it, a context that may do all, and the address of the other user."""
    with reloadable(folder, config) as server:
        urls = [server.url.replace("nats://", f"nats://{user}:p@") for user in ("all", "some")]
        async with connect(urls[0]) as js:
            yield server, js, urls[1]


def closings(view: CoreStream) -> list[NatsStreamError | None]:
    """Return a list to which the error of the event "closed" is added."""
    found: list[NatsStreamError | None] = []
    view.on("closed", found.append)
    return found


async def until_denied(
    view: CoreStream,
    told: list[NatsStreamError | None],
    changes: AsyncGenerator[Change],
    subject: str,
) -> None:
    """Wait for the end of a view, with 403 in its event, its iteration and its calls."""
    await until(lambda: told)
    [error] = told
    assert isinstance(error, PermissionDeniedError)
    assert error.subject == subject
    assert conat_code(error) == 403
    with pytest.raises(PermissionDeniedError):
        assert len([each async for each in changes]) <= 2
    with pytest.raises(PermissionDeniedError):
        await view.config()
    with pytest.raises(PermissionDeniedError):
        view.get_all()


@pytest.mark.parametrize("part", ["m", "k.>", "ctl", "*", "k.*"])
async def test_a_feed_that_is_denied_in_part_is_refused_with_403(tmp_path: Path, part: str) -> None:
    config = users(denying(f"cn.f.*.{part}"))
    async with (
        served(tmp_path, config) as (_, owner, url),
        connect(url) as js,
        await owner.core_stream("guarded"),
    ):
        with pytest.raises(PermissionDeniedError) as caught:
            await js.core_stream("guarded")
        assert conat_code(caught.value) == 403


async def test_one_key_that_is_denied_ends_the_view_when_it_is_written(tmp_path: Path) -> None:
    """The server filters the feed and says nothing: only a comparison finds the message."""
    secret = f"{NAMES.feed_filter[:-1]}k.{token_of('secret')}"
    async with (
        served(tmp_path, users(denying(secret))) as (_, owner, url),
        connect(url) as js,
        await owner.core_stream("guarded") as written,
        await js.core_stream("guarded", look_every=LOOK_EVERY_S) as view,
    ):
        told, changes = closings(view), view.changes()
        await written.set_kv("open", 1)
        await until(lambda: view.get_all_kv() == {"open": 1})
        await written.set_kv("secret", 2)
        await until_denied(view, told, changes, secret)
        assert written.get_all_kv() == {"open": 1, "secret": 2}


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("subject", "operation", "told_of"),
    [
        ("cn.f.>", "subscribe", NAMES.feed_filter),
        (NAMES.feed_filter, "subscribe", NAMES.feed_filter),
        ("cn.f.*.m", "subscribe", NAMES.feed_of(NAMES.unkeyed)),
        (f"{API}.STREAM.INFO.{NAMES.stream}", "publish", ""),
        (f"{API}.STREAM.MSG.GET.{NAMES.stream}", "publish", ""),
    ],
)
async def test_a_permission_that_a_reload_takes_ends_the_view(
    tmp_path: Path, subject: str, operation: str, told_of: str
) -> None:
    # Only a view that has to read asks for single messages.
    other = "cn.f.*.m" if "MSG.GET" in subject else ""
    denied = denying(subject, operation) + (f", {denying(other)}" if other else "")
    async with (
        served(tmp_path, users()) as (server, owner, url),
        connect(url) as js,
        await owner.core_stream("guarded") as written,
        await js.core_stream("guarded", look_every=LOOK_EVERY_S) as view,
    ):
        told, changes = closings(view), view.changes()
        await written.publish(1)
        await until(lambda: view.get_all() == [1])
        await reload(server, tmp_path, FREE, denied)
        await written.publish(2)
        await until_denied(view, told, changes, told_of or subject)


@pytest.mark.parametrize(
    "action", ["STREAM.INFO.F", "CONSUMER.CREATE.F.>", "CONSUMER.MSG.NEXT.F.>"]
)
async def test_a_permission_that_a_reload_takes_ends_a_view_over_a_stream(
    tmp_path: Path, action: str
) -> None:
    async with served(tmp_path, users()) as (server, owner, url), connect(url) as js:
        await owner.streams.create("F", subjects=["f"])
        async with await js.core_stream.over("F", look_every=LOOK_EVERY_S) as view:
            told = closings(view)
            await owner.publish("f", b"1")
            await until(lambda: len(view) == 1)
            await reload(server, tmp_path, FREE, denying(f"{API}.{action}", "publish"))
            stream = await owner.streams.get("F")
            async for each in stream.consumers.list():
                with suppress(ConsumerNotFoundError):  # It has just been deleted.
                    await stream.consumers.delete(each.name)
            await owner.publish("f", b"2")
            await until(lambda: told)
            assert [conat_code(each) for each in told if each is not None] == [403]


async def test_a_stream_that_may_not_be_read_is_refused_with_403(tmp_path: Path) -> None:
    for action in ("STREAM.INFO.F", "CONSUMER.CREATE.F.>"):
        folder = tmp_path / action.split(".")[0]
        config = users(denying(f"{API}.{action}", "publish"))
        async with served(folder, config) as (_, owner, url), connect(url) as js:
            stream = await owner.streams.create("F", subjects=["f"])
            await stream.publish("f", b"1")
            with pytest.raises(PermissionDeniedError) as caught:
                await js.core_stream.over("F")
            assert conat_code(caught.value) == 403
