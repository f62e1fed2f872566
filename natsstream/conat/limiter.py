"""Enforces the limits of a core stream that servers do not have.

Law: a message is refused before it is sent. The oldest messages go after a new one is stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from natsstream.conat.deletion import Deletion
from natsstream.conat.limits import refusal, surplus
from natsstream.conat.sync import StreamSync
from natsstream.conat.usage import Usage
from natsstream.conat.views import Codec
from natsstream.errors import NatsStreamError
from natsstream.publish.pub_ack import PubAck

_log = logging.getLogger("natsstream.conat")


class InFlight:
    """A message of this client that the arrays may not have yet.

    Attributes:
        size: Its logical size.
        seq: Its sequence; 0 before its ack.
        is_over: True if it is not counted any more.
    """

    __slots__ = ("_limiter", "is_over", "seq", "size")

    def __init__(self, size: int, limiter: Limiter | None = None) -> None:
        self.size: int = size
        self.seq: int = 0
        self.is_over: bool = False
        self._limiter = limiter

    def on_ack(self, ack: asyncio.Future[PubAck]) -> None:
        """Take the answer of the server."""
        is_stored = not ack.cancelled() and ack.exception() is None
        if is_stored:
            self.seq = ack.result().sequence
        if self._limiter is not None:
            self._limiter.answered(self)


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
        # Number and size of the messages in flight, and those among them that are stored.
        self._count = 0
        self._size = 0
        self._stored: deque[InFlight] = deque()

    @property
    def size(self) -> int:
        """Logical size of the stream with what is in flight; 0 if not all of it is loaded."""
        if not self._sync.reconciler.is_whole:
            return 0
        return self._usage.size + self._size

    def recent(self) -> tuple[int, int]:
        """Return number and logical size of the last second's messages and those in flight."""
        count, size = self._usage.recent(self._sync.arrays.now_ns())
        return count + self._count, size + self._size

    def admit(self, size: int, *, is_retry: bool = False) -> InFlight:
        """Take note of a message that is about to be sent, until `forget`.

        Args:
            size: Its logical size.
            is_retry: True if it was sent before, and may be stored: it is not refused.

        Raises:
            RejectedError: A limit refuses it.
        """
        config, applied = self._sync.config, self._sync.reconciler.applied
        self._usage.follow(config)
        # Acks come in the order of the sequences, but for copies of older messages.
        while self._stored and self._stored[0].seq <= applied:
            self.forget(self._stored.popleft())
        error = refusal(config, size, self)
        if error is not None and not is_retry:
            raise error
        self._count += 1
        self._size += size
        return InFlight(size, self)

    def answered(self, message: InFlight) -> None:
        """Take note that a message is stored, and the arrays may not have it; or was refused."""
        if message.seq:
            self._stored.append(message)
        else:
            self.forget(message)

    def forget(self, *messages: InFlight) -> None:
        """Take note that the arrays have passed these messages, or that they were refused."""
        for message in messages:
            if not message.is_over:
                message.is_over = True
                self._count -= 1
                self._size -= message.size

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
