"""Counts of a worker, and what ended it; pure."""

from __future__ import annotations

from dataclasses import dataclass

from natsstream.errors import NatsStreamError
from natsstream.notebook import NotebookTable


@dataclass(slots=True)
class WorkReport(NotebookTable):
    """Counts of one worker, and its failure.

    Attributes:
        received: Messages that a handler began, or that had used up their attempts.
        running: Handlers running now.
        acked: Messages that were handled, and whose ack was sent, or with `confirm` confirmed. The
            server may have refused some that `unconfirmed` counts too.
        retried: Messages nak'ed after a failure or `Retry`.
        returned: Messages nak'ed because the worker ended, or because their task was cancelled
            while their outcome was being sent.
        dead_lettered: Letters that were stored, and whose messages were then terminated.
        letters_found: Messages that were terminated because their letter was there already: they
            had been delivered again, or the letter's ack was lost.
        terminated: Messages terminated without a letter.
        given_up: Messages that failed at the consumer's `max_deliver`: without a `dead_letter` they
            stay in their stream, and are not delivered again.
        settled_by_handler: Messages that the handler has settled itself.
        failures: Handlers that raised something other than `Reject` and `Retry`.
        lost_leases: Messages that the server may have redelivered while their handler ran, because
            no `in_progress` reached it for `ack_wait`.
        unstored: Dead letters that could not be stored; the message was redelivered, or held.
        unconfirmed: Messages whose ack may not have reached the server, or whose ack or
            `in_progress` it refused.
        failure: The error that ended the worker; None while it runs, and after a normal end.
    """

    received: int = 0
    running: int = 0
    acked: int = 0
    retried: int = 0
    returned: int = 0
    dead_lettered: int = 0
    letters_found: int = 0
    terminated: int = 0
    given_up: int = 0
    settled_by_handler: int = 0
    failures: int = 0
    lost_leases: int = 0
    unstored: int = 0
    unconfirmed: int = 0
    failure: NatsStreamError | None = None
