"""What a run leaves behind, here and on the servers.

Law: what was counted before the workers is compared with what is there after them.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from unittest.mock import patch

from natsstream import JetStream
from natsstream.read import session
from natsstream.units import parse_rfc3339
from scripts.chaos_runs.ledger import Findings
from scripts.chaos_runs.load import Load, insist
from scripts.chaos_runs.site import Site

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# What the allocator keeps: runs of three minutes end up to 25 MiB above their first round, and
# five of them in one process end no higher. A leaked connection costs half a MiB and more, so a
# leak at each of some hundred reconnects shows.
GROWTH_BYTES_MAX = 48 << 20
_FOLDER = Path("/proc/self")
# The server forgets a consumer that nobody uses after a minute.
_ORPHANS_S = 150.0
# Well below that minute, and long for a busy machine.
_SPARES_S = 25.0
_LOOK_S = 0.25


@contextmanager
def patience() -> Generator[None]:
    """Let whoever leaves a read wait for the server for as long as a busy machine may take.

    Users wait a second: a deletion that is sent then can overtake the creation, and the consumer
    stays until the server forgets it. Once all is healed only a machine that stands still explains
    that, and it would look like a leak.
    """
    with patch.object(session, "_CLOSE_TIMEOUT_S", _SPARES_S):
        yield


@dataclass(frozen=True, slots=True)
class Belongings:
    """What this process holds.

    Attributes:
        tasks: Tasks of the loop, the current one left out.
        threads: Threads that end with the run.
        descriptors: Open files and sockets.
    """

    tasks: int
    threads: int
    descriptors: int

    def exceeds(self, other: Belongings) -> bool:
        """Tell whether there is more of anything."""
        return (
            self.tasks > other.tasks
            or self.threads > other.threads
            or self.descriptors > other.descriptors
        )


def count_belongings() -> Belongings:
    """Count what this process holds now."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    # What `asyncio.to_thread` uses stays for the next call.
    threads = [each for each in threading.enumerate() if not each.name.startswith("asyncio_")]
    descriptors = len(os.listdir(_FOLDER / "fd")) if _FOLDER.exists() else 0
    return Belongings(len(tasks), len(threads), descriptors)


def resident_bytes() -> int:
    """Return how much memory this process has now; 0 where the system does not tell."""
    gc.collect()
    try:
        pages = (_FOLDER / "statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return 0
    return int(pages) * _PAGE_BYTES


async def compare_belongings(before: Belongings, findings: Findings) -> None:
    """Write down what was not there before.

    Callbacks of what was closed last may be some turns behind, and other parts of this process may
    just have made what takes the place of what they close.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SPARES_S
    while (after := count_belongings()).exceeds(before) and loop.time() < deadline:
        await asyncio.sleep(_LOOK_S)
    for name in ("tasks", "threads", "descriptors"):
        was, now = getattr(before, name), getattr(after, name)
        if now > was:
            findings.add("left behind", f"{now - was} {name}")


def compare_subscriptions(
    before: dict[str, int], after: dict[str, int], findings: Findings
) -> None:
    """Write down which clients have more subscriptions than before their work."""
    for client, count in after.items():
        if count > before.get(client, 0):
            findings.add("left behind", f"{count - before.get(client, 0)} subscriptions: {client}")


def compare_memory(before: int, after: int, bytes_max: int, findings: Findings) -> None:
    """Write down when the process has grown by more than some bytes."""
    if before and after - before > bytes_max:
        findings.add(
            "memory",
            f"grew by {(after - before) >> 20} MiB; --trace-memory shows where it was made",
        )


async def check_subscriptions(site: Site, before: dict[str, int], findings: Findings) -> None:
    """Write down which clients keep more subscriptions than before their work.

    A handle of a consumer keeps its subscription for two seconds after a fetch, and the server's
    page may be behind.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SPARES_S
    while True:
        after = await site.call(site.subscriptions)
        grown = any(count > before.get(client, 0) for client, count in after.items())
        if not grown or loop.time() >= deadline:
            compare_subscriptions(before, after, findings)
            for client in after if grown else ():
                if after[client] > before.get(client, 0):
                    subjects = await site.call(lambda client=client: site.subjects_of(client))
                    findings.add("left behind", f"{client} listens to {', '.join(subjects)}")
            return
        await asyncio.sleep(_LOOK_S)


async def check_consumers(
    js: JetStream, stream: str, since_ns: int, load: Load, *, waits_for_orphans: bool
) -> None:
    """Write down consumers that were made since a moment and are left, and wait for the others.

    Args:
        js: A connection without faults.
        stream: The stream.
        since_ns: When all was healed, as Unix nanoseconds.
        load: What the workers share.
        waits_for_orphans: Wait until the server has forgotten those whose deletion was lost.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    left = f"consumers left for the server to forget, {stream}"
    while True:
        total, young = await consumers_left(js, stream, since_ns)
        load.counts[left] = max(total, load.counts[left])
        if young and loop.time() < began + _SPARES_S:
            # Nobody waits for a deletion: the question may have overtaken it.
            await asyncio.sleep(_LOOK_S)
            continue
        if young:
            names = {
                name: f"{(created - since_ns) / 1e9:.3f} s"
                for name, created in (await _consumers(js, stream)).items()
            }
            load.findings.add(
                "left behind", f"{stream}: {young} consumers made after all was healed: {names}"
            )
        if not total or young or not waits_for_orphans:
            return
        if loop.time() >= began + _ORPHANS_S:
            load.findings.add("left behind", f"{stream}: {total} consumers, {_ORPHANS_S:g} s")
            return
        await asyncio.sleep(1)


async def consumers_left(js: JetStream, stream: str, since_ns: int) -> tuple[int, int]:
    """Return how many consumers a stream has: all, and those made since a moment.

    A consumer whose deletion was lost in a fault goes by itself after a minute; one that was made
    when all was healed has no such excuse.
    """
    found = await insist(lambda: js.streams.get(stream))
    total = cast("int", cast("dict[str, object]", found.cached.raw["state"])["consumer_count"])
    young = 0
    if total:
        names = await _consumers(js, stream)
        young = sum(created > since_ns for created in names.values())
    return total, young


async def _consumers(js: JetStream, stream: str) -> dict[str, int]:
    message = await insist(lambda: js.core.request(f"$JS.API.CONSUMER.LIST.{stream}"))
    answer = cast("dict[str, list[dict[str, str]] | None]", json.loads(message.data))
    return {each["name"]: parse_rfc3339(each["created"]) for each in answer.get("consumers") or []}
