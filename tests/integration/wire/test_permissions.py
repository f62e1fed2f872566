"""What a user may not do is told to whoever tried it, at once and by a typed error."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from natsstream.core.core import Core
from natsstream.errors import AuthenticationError, PermissionDeniedError
from natsstream.events import Closed, PermissionDenied
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.wire.conftest import Opener

pytestmark = pytest.mark.asyncio

CONFIG = """
accounts {
  A {
    jetstream: enabled
    users: [
      { user: all, password: pw }
      { user: narrow, password: pw, permissions: {
          publish: { allow: ["$JS.API.>", "_INBOX.>", "open.>"] }
          subscribe: { allow: ["_INBOX.>", "open.>"] } } }
      { user: inbox, password: pw, permissions: {
          publish: { allow: ">" }, subscribe: { allow: ["_MINE.>"] } } }
    ]
  }
}
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[NatsServer]:
    """A server with three users: one for all, a narrow one, and one with an inbox of its own."""
    with NatsServer(config=CONFIG) as server:
        yield server


def options(user: str, **more: object) -> dict[str, object]:
    """Return the options that sign a user in."""
    return {"user": user, "password": "pw", **more}


async def test_request_that_is_not_allowed_fails_at_once_with_the_subject_as_it_was_sent(
    guarded: NatsServer, open_client: Opener
) -> None:
    async with open_client(guarded.url, **options("narrow")) as (client, events):
        with pytest.raises(PermissionDeniedError) as raised:
            await client.request("Closed.Subject", b"x", timeout=30)

        assert (raised.value.operation, raised.value.subject) == ("publish", "Closed.Subject")
        assert "permissions" in raised.value.hint
        assert [event for event in events if isinstance(event, PermissionDenied)]
        assert client.connections == 1


async def test_denial_fails_the_request_that_caused_it_and_no_other(
    guarded: NatsServer, open_client: Opener
) -> None:
    async with (
        open_client(guarded.url, **options("all")) as (answering, _),
        open_client(guarded.url, **options("narrow")) as (client, _),
        Core(answering).subscribe("open.question") as questions,
    ):
        allowed = asyncio.ensure_future(client.request("open.question", b"?", timeout=30))
        denied = [
            asyncio.ensure_future(client.request(f"closed.{name}", timeout=30)) for name in "abc"
        ]
        async with asyncio.timeout(40):
            for name, request in zip("abc", denied, strict=True):
                with pytest.raises(PermissionDeniedError) as raised:
                    await request
                assert raised.value.subject == f"closed.{name}"
            assert not allowed.done()
            await (await anext(questions)).respond(b"!")
            assert (await allowed)[3] == b"!"


async def test_denied_request_to_the_own_domain_fails_at_once(open_client: Opener) -> None:
    """The server takes the domain out of the subject before it asks whether that is allowed."""
    config = """
        jetstream { domain: hub }
        authorization { users: [
            { user: a, password: pw, permissions: { publish: "$JS.hub.API.>" } } ] }
    """
    with NatsServer(config=config) as server:
        async with open_client(server.url, **options("a")) as (client, _):
            with pytest.raises(PermissionDeniedError):
                await client.request("$JS.hub.API.INFO", timeout=30)


@pytest.mark.parametrize("queue", ["", "workers"])
async def test_subscription_that_is_not_allowed_is_refused_when_it_is_opened(
    guarded: NatsServer, open_client: Opener, queue: str
) -> None:
    async with open_client(guarded.url, **options("narrow")) as (client, events):
        with pytest.raises(PermissionDeniedError) as raised:
            await Core(client).subscribe("closed.>", queue=queue or None).open()

        assert (raised.value.operation, raised.value.subject) == ("subscription", "closed.>")
        assert [e.queue for e in events if isinstance(e, PermissionDenied)] == [queue]


async def test_user_who_may_not_hear_answers_is_told_so_and_how_to_mend_it(
    guarded: NatsServer, open_client: Opener
) -> None:
    async with open_client(guarded.url, **options("inbox")) as (client, _):
        with pytest.raises(PermissionDeniedError, match="may not subscribe"):
            await client.request("$JS.API.INFO", timeout=30)
        with pytest.raises(PermissionDeniedError) as raised:
            await client.request("$JS.API.INFO", timeout=30)
        assert "inbox_prefix" in raised.value.hint

    async with open_client(guarded.url, **options("inbox", inbox_prefix="_MINE")) as (client, _):
        frame = await client.request("$JS.API.INFO", timeout=30)
    assert b"account_info_response" in frame[3]


async def test_inbox_that_a_later_connection_allows_is_used_again(open_client: Opener) -> None:
    def config(more: str) -> str:
        return f"authorization {{ users: [{{ user: u, password: pw {more} }}] }}"

    denied = ", permissions: { publish: '>', subscribe: { deny: '_INBOX.>' } }"
    with NatsServer(config=config(denied)) as first:
        async with open_client(first.url, **options("u")) as (client, _):
            for rule, is_allowed in ((denied, False), ("", True)):
                connections = client.connections
                await asyncio.to_thread(first.stop)
                with NatsServer(config=config(rule), port=first.port) as server:

                    async def is_back(before: int = connections) -> bool:
                        return client.connections > before

                    await eventually_async(is_back, within_s=40)
                    await client.flush(30)
                    if is_allowed:
                        await client.request("$JS.API.INFO", timeout=30)
                    else:
                        with pytest.raises(PermissionDeniedError):
                            await client.request("$JS.API.INFO", timeout=30)
                    assert server.is_running


async def test_credentials_that_are_withdrawn_end_the_connection_with_a_typed_error(
    open_client: Opener,
) -> None:
    """Neither a silent end nor attempts for ever."""
    with NatsServer(config="authorization { user: a, password: pw }") as first:
        port = first.port
        async with open_client(first.url, **options("a")) as (client, events):
            await asyncio.to_thread(first.stop)
            with NatsServer(config="authorization { user: a, password: other }", port=port):

                async def is_closed() -> bool:
                    return client.is_closed

                await eventually_async(is_closed, within_s=40)
                with pytest.raises(AuthenticationError, match="refuse credentials"):
                    await client.wait_connected(1)
                with pytest.raises(AuthenticationError):
                    await client.request("a", timeout=1)
    assert isinstance(events[-1], Closed)
    assert "credentials" in events[-1].reason
