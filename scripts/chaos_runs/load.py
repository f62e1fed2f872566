"""What the workers of a run share: the connections' options, the books, the events that end them.

Law: an error that a fault can explain is counted; any other is a finding.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import natsstream as ns
from natsstream.errors import (
    ConnectionClosedError,
    IntegrityError,
    SequenceRangeError,
    ServerError,
    TransportError,
)
from scripts.chaos_runs.ledger import Content, Findings
from scripts.chaos_runs.watch import Watch

STREAM = "CHAOS"
REQUEST_S = 5.0
RECONNECT_S = 20.0
PING_S = 2.0
CONNECT_S = 2.0
_INSISTS_S = 60.0
_INSISTS_EVERY_S = 0.25

T = TypeVar("T")


class Load:
    """What all workers of one run have in common.

    Args:
        seed: Draws what the workers do.
        replicas: Replicas of the stream.
        content: What readers see.
        findings: What is wrong.

    Attributes:
        seed: As given.
        replicas: As given.
        content: As given.
        findings: As given.
        watch: Watches the workers' deadlines.
        errors: Errors that faults explain, by worker and name.
        counts: Other figures.
        kills: When servers were killed, as `now_ms` tells the time.
        writing_is_over: Set when the writers have to end.
        reading_is_over: Set when the readers have to end.
    """

    def __init__(self, seed: int, replicas: int, content: Content, findings: Findings) -> None:
        self.seed: int = seed
        self.replicas: int = replicas
        self.content: Content = content
        self.findings: Findings = findings
        self.watch: Watch = Watch(findings)
        self.errors: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.kills: list[int] = []
        self._started_ns = time.time_ns()
        self.writing_is_over: asyncio.Event = asyncio.Event()
        self.reading_is_over: asyncio.Event = asyncio.Event()

    def now_ms(self) -> int:
        """Return the time, by the clock that the servers have as well."""
        return self.as_ms(time.time_ns())

    def as_ms(self, time_ns: int) -> int:
        """Return a Unix time in nanoseconds as milliseconds since the run began."""
        return max((time_ns - self._started_ns) // 1_000_000, 0)

    def note_kill(self) -> None:
        """Take down that a server is killed now."""
        self.kills.append(self.now_ms())

    def draw(self, worker: str) -> random.Random:
        """Return the random numbers of a worker, the same for the same seed."""
        return random.Random(f"{self.seed}/{worker}")  # noqa: S311 - To be repeated, no secret.

    def note(self, worker: str, error: BaseException) -> None:
        """Count an error that a fault explains, and take any other for a finding."""
        self.errors[f"{worker}: {type(error).__name__}"] += 1
        if not self._is_explained(error):
            self.findings.add("error", f"{worker}: {type(error).__name__}: {error}")

    def _is_explained(self, error: BaseException) -> bool:
        if isinstance(error, SequenceRangeError):
            # A leader that is cut off, and does not know it yet, has not come that far.
            return self.replicas > 1
        if isinstance(error, ConnectionClosedError | IntegrityError):
            return False
        if isinstance(error, TransportError):
            return True
        return isinstance(error, ServerError) and error.retryable

    async def pause(self, seconds: float) -> None:
        """Wait for some seconds, or until writing is over."""
        try:
            async with asyncio.timeout(seconds):
                await self.writing_is_over.wait()
        except TimeoutError:
            return


async def insist(ask: Callable[[], Awaitable[T]]) -> T:
    """Ask again, for a minute, while an election or a busy machine explains that it fails.

    For what is no fault's business: making what the run needs, and reading it at the end.

    Raises:
        NatsStreamError: Another error, or the last one when the minute is over.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _INSISTS_S
    while True:
        try:
            return await ask()
        except (TransportError, ServerError) as error:
            is_passing = isinstance(error, TransportError) or error.retryable
            if not is_passing or loop.time() >= deadline:
                raise
        await asyncio.sleep(_INSISTS_EVERY_S)


def describe_client(name: str, urls: Sequence[str]) -> ns.Connection:
    """Return a connection with short deadlines, so that a run of minutes has many breaks."""
    return ns.connect(
        urls,
        name=name,
        connect_timeout=CONNECT_S,
        request_timeout=REQUEST_S,
        reconnect_timeout=RECONNECT_S,
        ping_interval=PING_S,
    )
