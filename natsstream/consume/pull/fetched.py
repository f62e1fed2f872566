"""What a fetch brought.

Law: messages that came are never dropped for an error that came behind them.
"""

from __future__ import annotations

from collections.abc import Iterable

from natsstream.consume.delivery.delivered import DeliveredMessage
from natsstream.errors import NatsStreamError


class FetchedMessages(list[DeliveredMessage]):
    """The messages of one fetch, in the order of delivery.

    Attributes:
        error: What ended the fetch early, behind the messages; None when nothing went wrong. With
            no message at all it is raised instead.
        complete: True when all that was asked for came: `n` messages, or `max_bytes` are used up.
    """

    def __init__(
        self,
        messages: Iterable[DeliveredMessage] = (),
        *,
        error: NatsStreamError | None = None,
        complete: bool = False,
    ) -> None:
        super().__init__(messages)
        self.error: NatsStreamError | None = error
        self.complete: bool = complete

    def __repr__(self) -> str:
        end = "complete" if self.complete else "not complete"
        failed = f", {type(self.error).__name__}" if self.error is not None else ""
        return f"<Fetched {len(self)} messages, {end}{failed}>"
