"""The look of a waiting reader at its consumer's info, for `max_ack_pending`.

Law: it neither ends nor delays the wait, and is over when the wait is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from natsstream.consume.delivery.delivered import AckSender
from natsstream.consume.delivery.events import LimitExceeded
from natsstream.consume.delivery.look import look


async def look_while(
    wait: Coroutine[Any, Any, bool], ack_sender: AckSender, tell: Callable[[LimitExceeded], None]
) -> bool:
    """Return what a wait returns, and look meanwhile.

    Args:
        wait: The wait; it raises no errors.
        ack_sender: The handle's.
        tell: Gets the news, if there is some.
    """
    async with asyncio.TaskGroup() as group:
        look = group.create_task(_look(ack_sender, tell))
        try:
            return await wait
        finally:
            look.cancel()


async def _look(ack_sender: AckSender, tell: Callable[[LimitExceeded], None]) -> None:
    watch, now = ack_sender.limit_watch, asyncio.get_running_loop().time
    watch.begin(now())
    info = await look(ack_sender.source, watch)
    event = watch.find(info, now()) if info is not None else None
    if event is not None:
        tell(event)
