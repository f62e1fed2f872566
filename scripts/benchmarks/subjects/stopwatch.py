"""Measures inside the process of a subject, and runs the one that the command line names."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import TypeAlias

from scripts.benchmarks.rounds import Figure

_DEADLINE_S = 240.0

Subjects: TypeAlias = Mapping[str, Callable[[str, str, int], Awaitable[Figure]]]
"""By name: functions of (url, stream, count) that move `count` messages and return the figure."""


class Stopwatch:
    """Measures wall and CPU time from `start` on."""

    def start(self) -> None:
        """Begin."""
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self, messages: int, times_s: Sequence[float] = (), *, checksum: int = 0) -> Figure:
        """Return the figure, with the percentiles of the single times where there are some."""
        seconds = time.perf_counter() - self._wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        ordered = sorted(times_s) or [0.0]
        return Figure(
            messages,
            seconds,
            time.process_time() - self._cpu,
            peak,
            p50_us=ordered[len(ordered) // 2] * 1e6,
            p99_us=ordered[len(ordered) * 99 // 100] * 1e6,
            checksum=checksum,
        )


def run_subject(subjects: Subjects) -> None:
    """Run the subject that the command line names, and print its figure."""
    name, url, stream, count = sys.argv[1:]

    async def work() -> Figure:
        return await asyncio.wait_for(subjects[name](url, stream, int(count)), _DEADLINE_S)

    with suppress(KeyboardInterrupt):
        print(json.dumps(asdict(asyncio.run(work()))), flush=True)  # noqa: T201
        # The threads of natsrpy now and then panic when Python is taken down around them.
        os._exit(0)
