"""Who runs client programs, kills them, freezes them, and starts the next one beside them.

Law: every process that was started is awaited. One that was replaced and still runs must say that
it was told so.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, TypeAlias

from scripts.chaos_runs.load import Load
from scripts.chaos_runs.producers.book import ProducerBook
from scripts.chaos_runs.producers.sources import Post
from scripts.chaos_runs.views.worker import Worker

Fate: TypeAlias = Literal["kill", "replace", "freeze", "end"]
_FATES: dict[Fate, int] = {"kill": 6, "replace": 2, "freeze": 2, "end": 1}
_LIFE_S = (0.1, 6.0)
_FROZEN_S = (0.0, 3.0)
# Python starts, connects and claims its epoch, while servers may be away for a round.
OPEN_S = 180.0
_TOLD_S = 120.0


class Programs(Worker):
    """The programs of one producer.

    Args:
        load: What all workers share.
        urls: The servers.
        post: Where they work.
        book: What they append.
    """

    def __init__(self, load: Load, urls: Sequence[str], post: Post, book: ProducerBook) -> None:
        super().__init__(load, book.name)
        self.book: ProducerBook = book
        self.post: Post = post
        self._urls = urls
        self._draw = load.draw(book.name)
        self._zombies: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run programs until writing is over, and the last one until all is stored."""
        current = await self._start()
        try:
            while not self.load.writing_is_over.is_set():
                await self.load.pause(self._draw.uniform(*_LIFE_S))
                current = await self._replace(current)
            while not await self._end(current):
                current = await self._start()
            if self._zombies:
                await asyncio.wait(self._zombies)
        finally:
            for zombie in self._zombies:
                zombie.cancel()
            await asyncio.gather(*self._zombies, return_exceptions=True)
            await current.kill()

    async def _replace(self, current: Program) -> Program:
        (fate,) = self._draw.choices([*_FATES], [*_FATES.values()])
        self.book.counts[f"programs: {fate}"] += 1
        try:
            if fate == "kill":
                await current.kill()
            elif fate == "end":
                await self._end(current)
            elif fate == "freeze":
                current.signal(signal.SIGSTOP)
            heir = await self._start()
        except BaseException:
            await current.kill()
            raise
        if fate in ("replace", "freeze"):
            frozen_s = self._draw.uniform(*_FROZEN_S) if fate == "freeze" else None
            zombie = asyncio.create_task(self._await_zombie(current, frozen_s))
            self._zombies.add(zombie)
            zombie.add_done_callback(self._zombies.discard)
        return heir

    async def _start(self) -> Program:
        """Start a program, and wait until it has its epoch."""
        program = Program(self, self.book.begin_life())
        with self.activity.limit("open a program", OPEN_S):
            await program.start(self._urls)
            await program.is_open.wait()
        return program

    async def _end(self, program: Program) -> bool:
        """Let a program end in good order; return True if it has stored all."""
        program.signal(signal.SIGTERM)
        with self.activity.limit("end a program", _TOLD_S):
            last = await program.wait()
        if last.startswith("gone "):
            self.book.counts["programs gone"] += 1
        elif not last.startswith("end "):
            self.load.findings.add("program", f"{self.name} {program.life} has ended by {last!r}")
        return not last.startswith("gone ")

    async def _await_zombie(self, program: Program, frozen_s: float | None) -> None:
        """Wait until a program that was replaced has learnt it."""
        activity = self.load.watch.activity(f"{self.name} {program.life}")
        self.book.counts["zombies"] += 1
        try:
            if frozen_s is not None:
                await asyncio.sleep(frozen_s)
                program.signal(signal.SIGCONT)
            with activity.limit("be told", _TOLD_S):
                last = await program.wait()
            if last == "stale":
                self.book.counts["zombies fenced"] += 1
            elif last == "gone ProducerTimeoutError":
                self.book.counts["zombies timed out"] += 1
            else:
                self.load.findings.add("fenced", f"{self.name} {program.life} ended by {last!r}")
        finally:
            await program.kill()

    def heard(self, line: str) -> None:
        """Take down what a program tells."""
        word, _, rest = line.partition(" ")
        self.done += word in ("open", "at", "end")
        if word in ("at", "end"):
            self.book.flush(int(rest))
        elif word in ("again", "gone"):
            self.load.errors[f"{self.name}: {rest}"] += 1
        elif word == "error":
            self.load.findings.add("program", f"{self.name}: {rest}")


class Program:
    """One process.

    Args:
        owner: Whose it is.
        life: Its number.

    Attributes:
        life: As given.
        is_open: Set when it has claimed its epoch, and when it has ended.
    """

    def __init__(self, owner: Programs, life: int) -> None:
        self.life: int = life
        self.is_open: asyncio.Event = asyncio.Event()
        self._owner = owner
        self._process: asyncio.subprocess.Process | None = None
        self._hearing: asyncio.Task[str] | None = None

    async def start(self, urls: Sequence[str]) -> None:
        """Start it."""
        post, name = self._owner.post, self._owner.book.name
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "scripts.chaos_runs.producers.program", ",".join(urls)),
            *(post.stream, post.subject, post.mode, name, str(self.life)),
            stdout=asyncio.subprocess.PIPE,
        )
        self._hearing = asyncio.create_task(self._hear(self._process))

    async def _hear(self, process: asyncio.subprocess.Process) -> str:
        assert process.stdout is not None  # noqa: S101 - It is a pipe.
        last = ""
        try:
            async for line in process.stdout:
                last = line.decode().rstrip()
                if last == "open":
                    self.is_open.set()
                self._owner.heard(last)
        finally:
            self.is_open.set()
        await process.wait()
        return last

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def wait(self) -> str:
        """Wait until it has ended; return the last line that it has told."""
        assert self._hearing is not None  # noqa: S101 - It was started.
        return await asyncio.shield(self._hearing)

    async def kill(self) -> None:
        """End it as a crash does, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        if self._hearing is not None:
            await self.wait()
