"""Counters with sources: what each stream brought in, the same for orbit.go and for natsstream."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from tests.interop.clients.client import Client, Config
    from tests.interop.clients.nats_go import NatsGo
    from tests.interop.clients.ours import Ours

pytestmark = [pytest.mark.asyncio, pytest.mark.needs_go, pytest.mark.sampled]

LARGE = 10**40


async def make(client: Client, name: str, **fields: object) -> None:
    """Make a stream of counters."""
    config: Config = {"name": name, "num_replicas": 1, "allow_msg_counter": True}
    await client.create({**config, "allow_direct": True, **fields})


@pytest.mark.parametrize("maker", ["ours", "nats-go"])
async def test_counter_tells_both_clients_what_its_sources_brought(
    ours: Ours, nats_go: NatsGo, stream_name: str, maker: str
) -> None:
    client: Client = ours if maker == "ours" else nats_go
    north, south, total = (f"{stream_name}_{part}" for part in ("NORTH", "SOUTH", "TOTAL"))
    for name in (north, south):
        await make(client, name, subjects=[f"{name}.*"])
    sources = [
        {"name": name, "subject_transforms": [{"src": f"{name}.*", "dest": f"{total}.*"}]}
        for name in (north, south)
    ]
    for source in sources:
        transform = cast("list[dict[str, str]]", source["subject_transforms"])[0]
        transform["dest"] = f"{total}.{{{{wildcard(1)}}}}"
    await make(client, total, subjects=[f"{total}.*"], sources=sources)

    await ours.js.counters.incr(f"{north}.hits", LARGE)
    await nats_go.call("counter_add", stream=north, subject=f"{north}.hits", delta="-1")
    await nats_go.call("counter_add", stream=south, subject=f"{south}.hits", delta="5")

    async def is_whole() -> bool:
        counter = await ours.js.counters.get(f"{total}.hits")
        return counter is not None and counter.value == LARGE + 4

    assert await eventually_async(is_whole, within_s=30)
    found = await nats_go.call("counter_get", stream=total, subject=f"{total}.hits")
    mine = await ours.js.counters.get(f"{total}.hits")
    assert mine is not None
    theirs = {
        stream: {subject: int(part) for subject, part in parts.items()}
        for stream, parts in found["sources"].items()
    }
    assert (int(found["value"]), theirs) == (mine.value, mine.sources)
    assert mine.sources == {
        north: {f"{north}.hits": LARGE - 1},
        south: {f"{south}.hits": 5},
    }
