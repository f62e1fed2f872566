"""The look at a consumer's info by readers that can do without it.

Law: it raises nothing. Once the server has refused it, the readers of that handle do not ask again:
each refusal is logged.
"""

from __future__ import annotations

import logging

from natsstream.api.consumer_info import ConsumerInfo
from natsstream.consume.delivery.limit_watch import LimitWatch
from natsstream.consume.delivery.source import ConsumerSource
from natsstream.errors import NatsStreamError, PermissionDeniedError

_log = logging.getLogger("natsstream.consumer")

LOOK_TIMEOUT_S = 2.0
"""Seconds in which the server answers a look."""


async def look(
    source: ConsumerSource, limit_watch: LimitWatch, timeout: float = LOOK_TIMEOUT_S
) -> ConsumerInfo | None:
    """Return the consumer's info; None if there is no answer, or the user may not look.

    Args:
        source: The consumer.
        limit_watch: The handle's; it knows if the user may look.
        timeout: Seconds to wait.
    """
    if not limit_watch.may_look:
        return None
    try:
        return await source.info(timeout)
    except PermissionDeniedError:
        limit_watch.may_look = False
    except NatsStreamError:
        pass  # Pulls report what ends a reader.
    except Exception:  # noqa: BLE001 - a fault of ours must not end a reader either.
        _log.warning("the info of %s could not be read", source.what, exc_info=True)
    return None
