"""How a reader ends its open pulls.

A pull is withdrawn by an unsubscribe. Messages that the server is sending at that moment reach
nobody, and it counts them as delivered: with a low `max_deliver` they are lost. Law: a reader waits
until its pulls are not being filled any more, within limits.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from math import inf

from natsstream.consume.delivery.ack_kinds import AckKind
from natsstream.consume.delivery.delivered import AckSender, DeliveredMessage
from natsstream.consume.delivery.limit_watch import is_held_up
from natsstream.consume.pull.open_pulls import OpenPulls
from natsstream.consume.pull.subscription import PullSubscription
from natsstream.errors import NatsStreamError, PermissionDeniedError, RequestTimeoutError


async def withdraw(subscription: PullSubscription, ack_sender: AckSender) -> bool:
    """Ask for no more; messages in flight have arrived when it returns.

    Returns:
        False when the server, which is there, has not said that it heard it.

    Cost: a round trip; one more where pulls are open, and up to a quarter of a second while
    messages come.
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
    """Wait until the server has no more for the pulls, or fills them for too long."""
    tuning, now = ack_sender.source.tuning, asyncio.get_running_loop().time
    until, looked_at = now() + tuning.busy_max_s, -inf
    while pulls.left(now()) and now() < until:
        if max(pulls.delivered_at, looked_at) <= now() - tuning.busy_s:
            begun_at = now()
            if not await _are_filled(pulls, ack_sender):
                return
            looked_at = now()
            until += looked_at - begun_at  # The server may have been frozen.
        await asyncio.sleep(tuning.busy_s / 4)


async def _are_filled(pulls: OpenPulls, ack_sender: AckSender) -> bool:
    """Return whether a silence is only a pause of the server, or of this process."""
    source, watch, since = ack_sender.source, ack_sender.limit_watch, pulls.delivered_at
    if not watch.may_look:
        return False
    try:
        info = await source.info(source.tuning.flush_s)
    except PermissionDeniedError:
        watch.may_look = False
        return False
    except NatsStreamError:
        return False
    # This process was slower than the server.
    if pulls.delivered_at > since:
        return True
    return info.num_pending > 0 and not (is_held_up(info) or info.pause.is_paused)
