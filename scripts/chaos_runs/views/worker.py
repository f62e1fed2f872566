"""What all workers on the views have: a name, a deadline for what they do, and their progress."""

from __future__ import annotations

from scripts.chaos_runs.load import RECONNECT_S, REQUEST_S, Load
from scripts.chaos_runs.watch import Activity

STEP_S = RECONNECT_S + 4 * REQUEST_S
"""What a lost connection, a leader that is away, and the requests after it may take together."""
SWEEP_S = 4 * STEP_S
"""What listing a bucket may take that others write to, up to 16 requests one after the other, and a
sweep, which lists it and asks for each marker."""


class Worker:
    """One worker.

    Args:
        load: What all workers share.
        name: For findings.

    Attributes:
        load: As given.
        name: As given.
        activity: What it does now.
        done: How often it has done what it is there for: it has to go on after each round.
        is_writer: It ends when writing is over; the others when reading is.
    """

    is_writer: bool = True

    def __init__(self, load: Load, name: str) -> None:
        self.load: Load = load
        self.name: str = name
        self.activity: Activity = load.watch.activity(name)
        self.done: int = 0

    async def run(self) -> None:
        """Work until it is over; the end of a run cancels who waits."""
        raise NotImplementedError
