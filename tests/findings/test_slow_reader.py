"""Finding 3: an ordered consumer whose reader is slow.

nats-py 2.16 counts a message as delivered before it has room for it: with a limit of 50 and a slow
callback, of 301 messages arrived 1 to 50 and the last one, and nobody was told of the hole.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect
from tests.support.eventually import eventually_async
from tests.support.ordered import take_sequences
from tests.support.streams import connection_of, fill

if TYPE_CHECKING:
    from collections.abc import Callable

    from natsstream import JetStream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

COUNT = 301
# 301 of them are 75 MiB, and at most 16 MiB are on their way to a reader.
SIZE = 256 << 10


@pytest.mark.finding(3)
async def test_reader_that_stands_still_gets_every_message_later(
    js: JetStream,
    server: NatsServer,
    nats_py: Any,
    stream_name: str,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    async with connect(server.url) as other:
        stream = await fill(js, stream_name, 0, storage="memory")
        async with stream.ordered() as tail:
            await other.publish(f"{stream_name}.0", b"first")
            found = await take_sequences(tail, 1)
            before = connection_of(server, stream_name)["out_bytes"]
            await fill(other, stream_name, COUNT - 1, size=SIZE)
            peer = await read_with_nats_py(nats_py, stream_name)
            sent = connection_of(server, stream_name)["out_bytes"] - before
            found += await take_sequences(tail, COUNT - 1)

    assert found == list(range(1, COUNT + 1))
    assert tail.report.lost == 0
    assert tail.report.resumes == 0
    assert sent < COUNT * SIZE / 2
    record_testsuite_property("finding 3: nats-py delivered", f"{len(peer)} of {COUNT}")


async def read_with_nats_py(client: Any, stream: str) -> list[int]:
    """Return the sequences that a slow callback of nats-py gets within a limit of 50."""
    found: list[int] = []
    may_go = asyncio.Event()

    async def take_slowly(message: Any) -> None:
        await may_go.wait()
        found.append(message.metadata.sequence.stream)

    subscription = await client.jetstream(timeout=30).subscribe(
        f"{stream}.>", cb=take_slowly, ordered_consumer=True, pending_msgs_limit=50
    )

    async def is_overrun() -> bool:
        return subscription.pending_msgs >= 50 or subscription._received >= COUNT

    try:
        await eventually_async(is_overrun)
        await client.flush(30)
        may_go.set()

        async def is_read() -> bool:
            return subscription.pending_msgs == 0

        await eventually_async(is_read)
    finally:
        await subscription.unsubscribe()
    return found
