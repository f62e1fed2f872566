"""How much a server sends to a connection until it sends no more."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.support.eventually import eventually_async
from tests.support.streams import connection_of

if TYPE_CHECKING:
    from natsstream.testing import NatsNode

# By the clock: looks that take long on a busy machine must not meet the next heartbeat each time.
QUIET_S = 0.5


async def sent_until_quiet(server: NatsNode, name: str) -> int:
    """Return how many bytes the server has sent to a connection when it sends no more."""
    sent, since = -1, 0.0

    async def is_quiet() -> bool:
        nonlocal sent, since
        now, before = time.monotonic(), sent
        sent = connection_of(server, name)["out_bytes"]
        if sent != before:
            since = now
        return now - since >= QUIET_S

    await eventually_async(is_quiet)
    return sent
