"""What a worker has done so far, in numbers; pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class WorkReport:
    """Counts of one worker.

    Attributes:
        received: Messages that a handler began, or that were dead on arrival.
        running: Handlers under way now.
        acked: Messages that were handled.
        retried: Messages given back after a failure or `Retry`.
        returned: Messages given back because the worker ended, with nothing said against them.
        dead_lettered: Letters that were stored, and whose messages were then terminated.
        letters_found: Messages that were terminated because their letter was there already: they
            had been delivered again, or the letter's ack was lost.
        terminated: Messages terminated without a letter.
        settled_by_handler: Messages that the handler has settled itself.
        failures: Handlers that raised something other than `Reject` and `Retry`.
        lost_leases: Messages that the server may have given to somebody else while their handler
            ran, because it heard nothing of them for `ack_wait`.
        unstored: Times that a dead letter could not be stored; its message came again, or was held.
        unconfirmed: Verdicts that were not known to have reached the server.
    """

    received: int = 0
    running: int = 0
    acked: int = 0
    retried: int = 0
    returned: int = 0
    dead_lettered: int = 0
    letters_found: int = 0
    terminated: int = 0
    settled_by_handler: int = 0
    failures: int = 0
    lost_leases: int = 0
    unstored: int = 0
    unconfirmed: int = 0
