"""Two holders never at once: processes that are stopped, servers that are killed.

Processes hold one lock in turn and write down when they believed in it; a moment is of
CLOCK_MONOTONIC, which they share. A holder that believed in its lock after a later one did is what
must not be. The order of guarded writes in the bucket must be that of their tokens.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import natsstream as ns
from natsstream.errors import TransportError
from natsstream.testing import NatsCluster
from tests.support.clusters import connect_to
from tests.support.eventually import eventually_async

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from natsstream.testing import NatsServer, ServerOptions

pytestmark = [pytest.mark.asyncio, pytest.mark.spread, pytest.mark.timeout(150)]

ROOT = Path(__file__).parents[3]
TTL_S = 1
HOLDINGS_MIN = 5
LAST = 2**62
REQUEST_S = 2


@dataclass(frozen=True, slots=True)
class Look:
    """The lock was believed to be held at some moment between two others."""

    token: int
    before_ns: int
    after_ns: int


def find_overlap(looks: list[Look]) -> str:
    """Return how an earlier holder believed in its lock after a later one did; empty if none."""
    first_after: dict[int, int] = {}
    last_before: dict[int, int] = {}
    for look in looks:
        first_after[look.token] = min(look.after_ns, first_after.get(look.token, look.after_ns))
        last_before[look.token] = max(look.before_ns, last_before.get(look.token, 0))
    tokens = sorted(first_after)
    for index, earlier in enumerate(tokens):
        for later in tokens[index + 1 :]:
            late_ns = last_before[earlier] - first_after[later]
            if late_ns > 0:
                return f"holder {earlier} believed {late_ns / 1e6:.3f} ms after holder {later} did"
    return ""


async def test_an_overlap_of_two_holders_would_be_found() -> None:
    good = [Look(1, 0, 10), Look(1, 20, 90), Look(2, 30, 40)]
    assert not find_overlap(good)
    assert "holder 1 believed" in find_overlap([*good, Look(1, 41, 42)])


@dataclass(slots=True)
class Scene:
    """Two processes that hold one lock in turn, in a bucket that is watched.

    Attributes:
        kv: The bucket.
        processes: The processes; each calls itself by its index.
        written: Tokens of the guarded writes, in the order in which the bucket has them.
    """

    kv: ns.KeyValue
    processes: list[asyncio.subprocess.Process]
    written: list[int] = field(default_factory=list[int])

    async def follow(self) -> None:
        """Note the guarded writes."""
        async with self.kv.watch("guarded") as watch:
            async for entry in watch:
                self.written += [int(entry.value)]

    async def next_holder(self) -> None:
        """Wait until a holder with a greater token has written."""
        last = self.written[-1] if self.written else 0

        async def has_come() -> bool:
            return bool(self.written) and self.written[-1] > last

        await eventually_async(has_come, within_s=60)

    async def stop_holder(self) -> None:
        """Stop the process that holds the lock until the other one has it."""

        async def find() -> ns.Entry | None:
            try:
                return await self.kv.get("l", consistent=True)
            except TransportError:
                return None

        held = await eventually_async(find, within_s=60)
        assert held is not None
        holder = self.processes[int(json.loads(held.value)["holder"])]
        holder.send_signal(signal.SIGSTOP)
        try:
            await self.next_holder()
        finally:
            holder.send_signal(signal.SIGCONT)


async def opened(js: ns.JetStream) -> list[ns.KeyValue]:
    """Return the bucket in a list, or none where the question had no answer."""
    try:
        return [await js.kv.get("locks")]
    except TransportError:
        return []


async def put_last(kv: ns.KeyValue) -> None:
    """Write behind all the others, if there is a leader."""
    with suppress(TransportError):
        await kv.put("guarded", b"%d" % LAST)


async def check_one_at_a_time(
    kv: ns.KeyValue, urls: list[str], disturb: Callable[[Scene], Awaitable[None]]
) -> None:
    """Let two processes hold the lock in turn, disturb them, check what they believed and wrote."""
    processes = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.lock_worker", ",".join(urls), kv.name),
            *(str(index), str(TTL_S)),
            cwd=ROOT,
            stdout=asyncio.subprocess.PIPE,
        )
        for index in range(2)
    ]
    outputs = [asyncio.create_task(process.communicate()) for process in processes]
    scene = Scene(kv, processes)
    following = asyncio.create_task(scene.follow())
    try:
        await scene.next_holder()
        await scene.next_holder()
        await disturb(scene)
        for process in processes:
            process.kill()

        async def has_all() -> bool:
            if following.done():
                following.result()  # Only an error ends it.
            # Again and again: what a killed process had on its way may replace it unseen.
            await put_last(kv)
            return LAST in scene.written

        await eventually_async(has_all, within_s=60)
    finally:
        for process in processes:
            if process.returncode is None:
                process.kill()
        told = await asyncio.gather(*outputs)
        following.cancel()
        await asyncio.wait([following])
    lines = b"".join(out for out, _ in told).splitlines()
    looks = [Look(*map(int, line.split()[:3])) for line in lines]
    assert find_overlap(looks) == ""
    # What a process had on its way when it was killed may be stored behind the last one.
    tokens = [token for token in scene.written if token != LAST]
    assert tokens == sorted(tokens)
    holdings = sorted({*tokens})
    assert len(holdings) >= HOLDINGS_MIN
    # Each holder tells what it believed; only the two that are killed may not come to it.
    assert {*holdings[:-2]} <= {look.token for look in looks}


async def test_two_holders_never_at_once_on_a_single_server(fresh_server: NatsServer) -> None:
    async def disturb(scene: Scene) -> None:
        await scene.stop_holder()
        await asyncio.to_thread(fresh_server.kill)
        await asyncio.to_thread(fresh_server.start)
        await scene.next_holder()
        await scene.stop_holder()

    async with ns.connect(fresh_server.url, reconnect_timeout=60) as js:
        kv = await js.kv.create("locks", limit_marker_ttl=1)
        await check_one_at_a_time(kv, [fresh_server.url], disturb)


async def test_two_holders_never_at_once_on_three_servers(
    nats_server_options: ServerOptions,
) -> None:
    with NatsCluster(**nats_server_options) as cluster:

        async def disturb(scene: Scene) -> None:
            await scene.stop_holder()
            leader = await asyncio.to_thread(cluster.wait_for_leader, "KV_locks")
            await asyncio.to_thread(leader.kill)
            await scene.next_holder()
            await asyncio.to_thread(leader.start)
            await scene.stop_holder()

        async with (
            connect_to(cluster) as patient,
            # Its watch asks again soon: a request is lost with the leader that is killed.
            ns.connect(cluster.urls, request_timeout=REQUEST_S, reconnect_timeout=60) as js,
        ):
            await patient.kv.ensure("locks", limit_marker_ttl=1, replicas=3)
            # An election, or a node that stands still, may lose the question.
            (kv,) = await eventually_async(lambda: opened(js), within_s=60)
            await check_one_at_a_time(kv, cluster.urls, disturb)
