"""Watches that nothing hangs: each worker says what it does and until when that may take.

Law: a wait that passes its own deadline, with a generous time on top for a busy machine, is a
finding with the place where it waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import cast

from scripts.chaos_runs.ledger import Findings

# On top of every deadline: two busy cores and paused processes cost some seconds.
GRACE_S = 30.0
_LOOK_S = 1.0
_DEPTH_MAX = 40


class Activity:
    """What one worker does now.

    Attributes:
        name: The worker.
        steps: How often something came to its end.
        what: What it does; empty while it may wait for as long as it likes.
        deadline: When that should have ended, on the loop's clock.
        task: The task that does it.
    """

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.steps: int = 0
        self.what: str = ""
        self.deadline: float = 0.0
        self.task: asyncio.Task[object] | None = None
        self._seconds = 0.0

    @contextmanager
    def limit(self, what: str, seconds: float) -> Generator[None]:
        """Say that what follows ends within some seconds; `beat` begins them anew."""
        self.what, self._seconds = what, seconds
        self.task = cast("asyncio.Task[object] | None", asyncio.current_task())
        self.beat()
        try:
            yield
        finally:
            self.what = ""
            self.steps += 1

    def beat(self) -> None:
        """Say that something came: the time begins anew."""
        self.steps += 1
        self.deadline = asyncio.get_running_loop().time() + self._seconds + GRACE_S


class Watch:
    """Looks at all activities once a second."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._activities: list[Activity] = []
        self._told: set[str] = set()

    def activity(self, name: str) -> Activity:
        """Return a new activity."""
        made = Activity(name)
        self._activities.append(made)
        return made

    async def run(self) -> None:
        """Look until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_LOOK_S)
            for each in self._activities:
                if each.what and loop.time() > each.deadline and each.name not in self._told:
                    self._told.add(each.name)
                    place = describe_task(each.task) if each.task is not None else ""
                    self._findings.add("hangs", f"{each.name}: {each.what}\n{place}")


def describe_task(task: asyncio.Task[object]) -> str:
    """Return where a task waits, from its outermost function to its innermost."""
    lines: list[str] = []
    waits: object = task.get_coro()
    # Bounded: a chain of awaits is as deep as the calls in it.
    while len(lines) < _DEPTH_MAX:
        frame: FrameType | None = None
        inner: object = None
        if isinstance(waits, CoroutineType):
            frame, inner = waits.cr_frame, waits.cr_await
        elif isinstance(waits, AsyncGeneratorType):
            frame, inner = waits.ag_frame, waits.ag_await
        elif isinstance(waits, GeneratorType):
            frame, inner = waits.gi_frame, cast("object", waits.gi_yieldfrom)
        if frame is None:
            lines.append(f"    in {waits!r}"[:200])
            break
        code = frame.f_code
        lines.append(f"    {code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {code.co_name}")
        waits = inner
    return "\n".join(lines)


def describe_all_tasks(names: Sequence[str] = ()) -> str:
    """Return where all other tasks wait, and which of some names no task has.

    Args:
        names: How the names of those begin that are told first.
    """
    others = asyncio.all_tasks() - {asyncio.current_task()}
    ranked = sorted(others, key=lambda task: not task.get_name().startswith(tuple(names)))
    lines = [f"  {task.get_name()}\n{describe_task(task)}" for task in ranked]
    for name in reversed(names):
        if not any(task.get_name().startswith(name) for task in others):
            lines.insert(0, f"  no task of {name} is there")
    return "\n".join(lines)
