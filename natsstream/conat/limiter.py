"""Enforces the limits of a core stream that servers do not have.

Law: a message is refused before it is sent. The oldest messages go after a new one is stored.
"""

from __future__ import annotations

import asyncio
import logging

from natsstream.conat.deletion import Deletion
from natsstream.conat.limits import refusal, surplus
from natsstream.conat.sync import StreamSync
from natsstream.conat.usage import Usage
from natsstream.conat.views import Codec
from natsstream.errors import NatsStreamError
from natsstream.publish.pub_ack import PubAck

_log = logging.getLogger(__name__)


class InFlight:
    """A message of this client that the arrays may not have yet.

    Attributes:
        size: Its logical size.
        seq: Its sequence; None before its ack, 0 if it was refused.
    """

    __slots__ = ("seq", "size")

    def __init__(self, size: int) -> None:
        self.size: int = size
        self.seq: int | None = None

    def on_ack(self, ack: asyncio.Future[PubAck]) -> None:
        """Take the answer of the server."""
        if ack.cancelled() or ack.exception() is not None:
            self.seq = 0
        else:
            self.seq = ack.result().sequence


class Limiter:
    """The limits of one core stream, for its writer.

    Args:
        sync: The arrays.
        codec: Reads their records.
        deletion: Deletes what is too old.
    """

    def __init__(self, sync: StreamSync, codec: Codec, deletion: Deletion) -> None:
        self._sync = sync
        self._deletion = deletion
        self._usage = Usage(sync.reconciler, codec)
        self._in_flight: set[InFlight] = set()

    @property
    def size(self) -> int:
        """Logical size of the stream with what is in flight; 0 if not all of it is loaded."""
        if not self._sync.reconciler.is_whole:
            return 0
        return self._usage.size + sum(each.size for each in self._in_flight)

    def recent(self) -> tuple[int, int]:
        """Return number and logical size of the last second's messages and those in flight."""
        count, size = self._usage.recent(self._sync.now_ns())
        return count + len(self._in_flight), size + sum(each.size for each in self._in_flight)

    def admit(self, size: int) -> InFlight:
        """Take note of a message that is about to be sent, until `forget`.

        Raises:
            RejectedError: A limit refuses it.
        """
        config, applied = self._sync.config, self._sync.reconciler.applied
        self._usage.follow(config)
        arrived = [each for each in self._in_flight if each.seq is not None and each.seq <= applied]
        self._in_flight.difference_update(arrived)
        error = refusal(config, size, self)
        if error is not None:
            raise error
        message = InFlight(size)
        self._in_flight.add(message)
        return message

    def forget(self, *messages: InFlight) -> None:
        """Take note that the arrays have passed these messages, or that they were refused."""
        self._in_flight.difference_update(messages)

    async def evict(self) -> None:
        """Delete the oldest messages beyond `max_bytes`.

        Raises:
            NatsStreamError: The server refused it, or did not answer.
        """
        config, rules = self._sync.config, self._sync.reconciler
        self._usage.follow(config)
        if rules.is_whole:
            count = surplus(config, self._usage.size, self._usage.sizes())
            if count:
                await self._deletion.of(last_index=count - 1)

    async def evict_after_write(self) -> None:
        """Do the same behind a message that is stored: that cannot fail any more."""
        try:
            await self.evict()
        except NatsStreamError as error:
            _log.warning("the oldest messages are kept beyond max_bytes: %s", error)
