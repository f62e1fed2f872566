"""The first change of a consumer after a restart: the server stores it, and its answer lacks it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from natsstream import connect

if TYPE_CHECKING:
    from natsstream import JetStream, Stream
    from natsstream.testing import NatsServer

pytestmark = pytest.mark.asyncio

# The consumers' fields before the restart, and what is changed after it.
CHANGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "filter": ({}, {"filters": ("S.new",)}),
    "filters": ({"filters": ("S.a", "S.b")}, {"filters": ("S.c", "S.d")}),
    "number": ({"max_ack_pending": 9}, {"max_ack_pending": 200}),
    "backoff": ({}, {"backoff": (1.0, 2.0), "max_deliver": 5}),
    "metadata": ({}, {"metadata": {"team": "risk"}}),
    "replicas": ({}, {"replicas": 1}),
    "field given up": ({"description": "x"}, {"description": ""}),
}


async def test_first_change_after_a_restart_is_told_as_it_is_stored(
    fresh_server: NatsServer,
) -> None:
    async with connect(fresh_server.url) as js:
        stream = await js.streams.create("S", subjects=["S.>"])
        for number, (before, _) in enumerate(CHANGES.values()):
            await stream.consumers.create(f"c{number}", **before)
    await asyncio.to_thread(fresh_server.restart)

    async with connect(fresh_server.url) as js:
        stream = await js.streams.get("S")
        for number, (_, after) in enumerate(CHANGES.values()):
            consumer = await stream.consumers.ensure(f"c{number}", **after)

            assert consumer.change.action == "updated"
            assert consumer.cached.config == (await consumer.info()).config
            assert not (await stream.consumers.diff(f"c{number}", **after)).fields


async def test_change_is_looked_up_only_where_the_answer_lacks_it(
    js: JetStream, stream: Stream
) -> None:
    await stream.consumers.create("c")

    async with js.core.subscribe(f"$JS.API.CONSUMER.INFO.{stream.name}.c") as looks:
        await stream.consumers.ensure(
            "c", filters=[f"{stream.name}.a", f"{stream.name}.b"], metadata={"a": "b"}, ack_wait=5
        )
        await js.core.publish(f"$JS.API.CONSUMER.INFO.{stream.name}.c", b"end")
        found = [await anext(looks), await anext(looks)]

    assert [message.data for message in found] == [b"", b"end"]
