"""A worker that is killed at the worst moment; run as a program by the tests of dead letters.

`python -m tests.support.doomed_worker URL STREAM QUEUE MOMENT`: takes the consumer `c`, rejects its
messages, and kills itself with SIGKILL at a moment: "before_copy", "after_copy" (the letter is
stored, the message not terminated) or "after_term".
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any, cast

import natsstream
from natsstream.consume.delivery.ack_kinds import Reject
from natsstream.consume.delivery.delivered import DeliveredMessage
from natsstream.consume.work import outcomes


def die() -> None:
    """End as a crash does: nothing is sent, nothing is closed."""
    os.kill(os.getpid(), signal.SIGKILL)


async def reject(message: DeliveredMessage) -> None:
    """Handle nothing."""
    raise Reject(message.subject)


def arm(moment: str) -> None:
    """See to it that the process dies at a moment."""
    store, term = outcomes.store_letter, DeliveredMessage.term

    async def store_then_die(*args: Any, **options: Any) -> bool:
        if moment == "before_copy":
            die()
        is_new = await store(*args, **options)
        if moment == "after_copy":
            die()
        return is_new

    async def term_then_die(message: DeliveredMessage, *, reason: str = "", **_: Any) -> None:
        await term(message, reason=reason, confirm=True)
        die()

    outcomes.store_letter = store_then_die
    # What it takes is what `Outcomes` calls it with.
    DeliveredMessage.term = cast("Any", term_then_die)


async def main(url: str, stream: str, queue: str, moment: str) -> None:
    """Work until killed."""
    arm(moment)
    async with natsstream.connect(url.split(",")) as js:
        consumer = await (await js.streams.get(stream)).consumers.get("c")
        await consumer.run(reject, dead_letter=queue, concurrency=1)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
