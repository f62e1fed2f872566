"""A subscription that was ended is ended on every server, also on one that comes later."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from natsstream.testing import FaultProxy
from natsstream.testing.monitoring import fetch_page
from tests.support.eventually import eventually, eventually_async

if TYPE_CHECKING:
    from natsstream.testing import NatsServer
    from tests.integration.wire.conftest import Opener

pytestmark = pytest.mark.asyncio


def subscribed(server: NatsServer) -> int:
    """Return how many subscriptions all clients have there."""
    page = eventually(lambda: fetch_page(server.monitor_url, "/connz"))
    assert page is not None
    rows = cast("list[dict[str, int]]", page[1]["connections"])
    return sum(row["subscriptions"] for row in rows)


async def test_subscription_that_ends_without_a_connection_is_not_made_later(
    fresh_server: NatsServer, open_client: Opener
) -> None:
    """nats-py keeps the SUB of a broken connection for the next one; it was sent without an end."""
    with FaultProxy(fresh_server.port) as proxy:
        async with open_client(proxy.url) as (client, _):
            await client.flush(30)
            before = subscribed(fresh_server)
            kept = await client.subscribe("kept", lambda _: None)
            proxy.cut()

            async def is_down() -> bool:
                return not client.is_connected

            await eventually_async(is_down)
            for _ in range(3):
                (await client.subscribe("ended", lambda _: None)).close()
            kept.close()
            proxy.heal()
            await client.wait_connected(30)
            # The new connection's subscriptions are all made; the broken one may still be listed.
            await client.flush(30)
            eventually(lambda: subscribed(fresh_server) == before)
