"""Core streams beside the nats CLI: what it removes and publishes is seen by all clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from natsstream.conat.names import StreamNames
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from natsstream import CoreStream
    from tests.interop.clients.nats_cli import NatsCli
    from tests.interop.clients.ours import Ours

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_go]

# Other programs announce no deletions: clients find them by comparing.
LOOK_EVERY_S = 0.1


async def until_holds(stream: CoreStream, values: list[object]) -> None:
    """Wait until a core stream has these values."""

    async def holds() -> bool:
        return list(stream.messages) == values

    await eventually_async(holds)


async def test_purges_and_deletions_of_the_cli_converge(
    ours: Ours, nats_cli: NatsCli, stream_name: str
) -> None:
    name = StreamNames(f"hub/{stream_name}").stream
    async with (
        await ours.js.core_stream(stream_name, look_every=LOOK_EVERY_S) as one,
        await ours.js.core_stream(stream_name, look_every=LOOK_EVERY_S, no_cache=True) as two,
    ):
        for number in range(10):
            await one.publish(number)

        await nats_cli.run("stream", "rmm", name, "5", "--force")
        for each in (one, two):
            await until_holds(each, [0, 1, 2, 3, 5, 6, 7, 8, 9])

        await nats_cli.run("stream", "purge", name, "--force", "--seq", "8")
        for each in (one, two):
            await until_holds(each, [7, 8, 9])

        await nats_cli.run("stream", "purge", name, "--force")
        for each in (one, two):
            await until_holds(each, [])

        stored = await one.publish("next")
        assert stored is not None
        assert stored.seq == 11
        await until_holds(two, ["next"])


async def test_messages_of_the_cli_are_read_as_they_come(
    ours: Ours, nats_cli: NatsCli, stream_name: str
) -> None:
    await ours.js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    await nats_cli.publish(f"{stream_name}.a", b"stored")

    async with await ours.js.core_stream.over(stream_name) as view:
        assert view.messages == [b"stored"]
        await nats_cli.publish(f"{stream_name}.b", b"live")
        await until_holds(view, [b"stored", b"live"])
        assert view.get_kv(f"{stream_name}.b") == b"live"
