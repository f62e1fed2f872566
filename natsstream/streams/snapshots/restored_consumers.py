"""Waits until the consumers of a restored stream can be used.

Law: a restore returns when its consumers exist and tell the messages that wait for them. A cluster
of nats-server 2.15 answers a second before the first, and up to four seconds before the second: a
consumer with messages tells none, and a worker that ends with the last one would end at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from natsstream.api.at_once import at_once
from natsstream.api.consumer_info import ConsumerInfo
from natsstream.api.consumer_requests import consumer_infos
from natsstream.api.paging import Gaps
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import get_message
from natsstream.errors import NatsStreamError

_WAIT_S = 20.0
_PAUSE_S = 0.05

_log = logging.getLogger("natsstream.consumer")


async def wait_for_consumers(api: Api, info: StreamInfo) -> None:
    """Return when all consumers of a restored stream are there, or after 20 s with a warning.

    The stream is restored either way, so an error is logged too.

    Cost: a list of the consumers; again until they are there.
    """
    if not info.state.consumer_count:
        return
    problem = "they are not there yet"
    try:
        async with asyncio.timeout(_WAIT_S):
            while not await _are_ready(api, info):
                await asyncio.sleep(_PAUSE_S)
        return
    except TimeoutError:
        pass
    except NatsStreamError as error:
        problem = error.message
    _log.warning("restored stream %s: its consumers may not be ready: %s", info.name, problem)


async def _are_ready(api: Api, info: StreamInfo) -> bool:
    gaps = Gaps(f"consumers of stream {info.name}", "report")
    found = [each async for each in consumer_infos(api, gaps, info.name)]
    if len(found) < info.state.consumer_count:
        return False
    return not any(await at_once(lambda each: _has_more(api, each), _without_pending(found)))


def _without_pending(found: Sequence[ConsumerInfo]) -> list[ConsumerInfo]:
    return [each for each in found if not each.num_pending]


async def _has_more(api: Api, consumer: ConsumerInfo) -> bool:
    """Return True if the stream holds a message that the consumer has yet to deliver."""
    following = consumer.delivered.stream_seq + 1
    for subject in consumer.config.filters or (">",):
        if await get_message(api, consumer.stream, following, next_by_subject=subject):
            return True
    return False
