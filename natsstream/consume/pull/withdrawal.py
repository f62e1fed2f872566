"""How a reader ends its open pulls.

A pull is withdrawn by an unsubscribe. Messages that the server is sending at that moment reach
nobody, and it counts them as delivered: with a low `max_deliver` they are lost. Law: a reader waits
until its pulls are not being filled any more, within limits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from math import inf

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.consume.delivery.ack_kinds import AckKind
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.limit_watch import is_held_up
from natsstream.consume.delivery.look import look
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.consume.pull.open_pulls import OpenPulls
from natsstream.consume.pull.subscription import PullSubscription
from natsstream.errors import NatsStreamError, RequestTimeoutError


async def withdraw(subscription: PullSubscription, ack_sender: AckSender) -> bool:
    """Ask for no more, and wait for what is in flight, within limits.

    Returns:
        False when the server, which is there, has not said that it heard it.

    Cost: a round trip; where pulls are open one or two more with 20 ms between them, and up to a
    quarter of a second while the consumer delivers.
    """
    await _wait_while_filled(subscription.pulls, ack_sender)
    subscription.stop()
    return await flush_acks(ack_sender)


async def flush_acks(ack_sender: AckSender) -> bool:
    """Wait until the server has heard all; False when it has not said so in time."""
    source = ack_sender.source
    ack_sender.flush()
    try:
        await source.api.client.flush(source.tuning.flush_s)
    except RequestTimeoutError:
        return False
    except NatsStreamError:  # Without a server nothing is in flight.
        pass
    return True


def give_back(ack_sender: AckSender, messages: list[DeliveredMessage]) -> int:
    """Give messages back that nobody took, for others to get at once; return how many it gave."""
    count = 0
    if ack_sender.source.ack_policy == "none":
        return count
    with suppress(NatsStreamError):  # On a closed connection they come again by themselves.
        for message in messages:
            if not message.is_settled:
                ack_sender.send(message.reply, b"-NAK")
                message.begin_verdict(AckKind.NAK)
                count += 1
        ack_sender.flush()
    return count


async def _wait_while_filled(pulls: OpenPulls, ack_sender: AckSender) -> None:
    """Wait until the server sends nothing to the pulls any more, or does so for too long."""
    source, now = ack_sender.source, asyncio.get_running_loop().time
    tuning = source.tuning
    until = now() + tuning.busy_max_s
    last = until + tuning.flush_s
    looks, looked_at, seen = 0, -inf, -1
    while pulls.left(now()) and now() < until:
        if max(pulls.delivered_at, looked_at) <= now() - tuning.busy_s * max(looks, 1):
            begun_at = now()
            info = await _look(pulls, ack_sender, min(tuning.flush_s, last - begun_at))
            if pulls.delivered_at > looked_at:
                seen = -1  # That answer was older than these messages.
            is_over = info is None or _is_quiet(info, source, seen)
            if is_over and pulls.delivered_at < begun_at:
                return
            looks, looked_at = looks + 1, now()
            seen = -1 if info is None else info.delivered.consumer_seq
            until = min(until + looked_at - begun_at, last)
        await asyncio.sleep(tuning.busy_s / 4)


async def _look(pulls: OpenPulls, ack_sender: AckSender, timeout: float) -> ConsumerInfo | None:
    """Look at the consumer while pulls are open; a lost connection takes them with it."""
    source, now = ack_sender.source, asyncio.get_running_loop().time
    looking = asyncio.create_task(look(source, ack_sender.limit_watch, timeout))
    try:
        while not looking.done() and pulls.left(now()):
            await asyncio.wait({looking}, timeout=source.tuning.busy_s / 4)
        return looking.result() if looking.done() else None
    finally:
        looking.cancel()


def _is_quiet(info: ConsumerInfo, source: ConsumerSource, seen: int) -> bool:
    """Return True if a consumer sends nothing to open pulls.

    Args:
        info: The consumer.
        source: The same as its reader knows it.
        seen: The number of its last delivery, one look before.
    """
    # Messages in flight count as pending, unless the consumer wants no acks.
    if not info.lag and source.ack_policy != "none":
        return True
    is_shut = is_held_up(info) or info.pause.is_paused or source.priority_policy != "none"
    if info.num_pending and not is_shut:
        return False  # However slow it is.
    # One answer is not enough: redeliveries are not counted, and the server may have been frozen.
    return info.delivered.consumer_seq == seen
