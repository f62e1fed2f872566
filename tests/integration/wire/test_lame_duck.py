"""A server that announces its end: the application is told, and moves over without a loss."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from natsstream.events import Connected, Disconnected, LameDuck
from natsstream.testing import NatsServer
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from tests.integration.wire.conftest import Opener

pytestmark = pytest.mark.asyncio


async def test_lame_duck_is_an_event_and_the_connection_moves_over(
    server: NatsServer, open_client: Opener
) -> None:
    config = 'lame_duck_grace_period: "100ms", lame_duck_duration: "30s"'
    with NatsServer(config=config) as leaving:
        async with open_client(leaving.url, server.url) as (client, events):
            os.kill(leaving.pid, signal.SIGUSR2)

            async def is_elsewhere() -> bool:
                return client.is_connected and client.url == server.url

            await eventually_async(is_elsewhere, within_s=40)
            kinds = [type(event) for event in events]
            await client.flush(30)

    assert kinds[0] is LameDuck
    assert events[0].url == leaving.url
    assert kinds[-2:] == [Disconnected, Connected]
