"""Integration tests of pulls and verdicts that the user's permissions forbid."""

from __future__ import annotations

import pytest

from natsstream import connect
from natsstream.errors import PermissionDeniedError
from natsstream.testing import NatsServer
from tests.support.pulling import worker_of

pytestmark = pytest.mark.asyncio

CONFIG = """
authorization {
  users = [
    { user: all, password: p }
    { user: few, password: p, permissions: { publish: { deny: ["$JS.API.CONSUMER.MSG.NEXT.>"] } } }
    { user: mute, password: p, permissions: { publish: { deny: ["$JS.ACK.>"] } } }
  ]
}
"""


def url_of(server: NatsServer, user: str) -> str:
    """Return the address of a server for a user."""
    return server.url.replace("nats://", f"nats://{user}:p@")


async def test_pull_that_is_not_allowed_is_a_typed_error() -> None:
    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "all")) as js:
            await worker_of(js, "S", 1)
        async with connect(url_of(server, "few")) as js:
            worker = await (await js.streams.get("S")).consumers.get("work")
            with pytest.raises(PermissionDeniedError, match=r"MSG\.NEXT"):
                await worker.next()
            async with worker.consume() as messages:
                with pytest.raises(PermissionDeniedError, match=r"MSG\.NEXT"):
                    await anext(messages)


async def test_confirmed_ack_that_is_not_allowed_is_a_typed_error() -> None:
    with NatsServer(config=CONFIG) as server:
        async with connect(url_of(server, "mute")) as js:
            worker = await worker_of(js, "S", 1)
            message = await worker.next()
            assert message is not None
            with pytest.raises(PermissionDeniedError, match=r"JS\.ACK"):
                await message.ack(confirm=True)
            assert not message.is_settled
