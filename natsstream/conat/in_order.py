"""Stores messages of one writer in the order in which it wrote them, whatever fails.

Law: no message is stored before an earlier one that may be tried again. Of messages in flight one
after another a new leader may store the later ones, while the earlier ones were lost with the old
leader. So they go as atomic batches (ADR-50), and one by one where the stream takes no batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from natsstream.conat.codes import conat_code
from natsstream.errors import (
    MessageRuleError,
    NatsStreamError,
    TransportError,
    UsageError,
    WrongStreamError,
)
from natsstream.publish.batches.atomic_rules import MAX_MESSAGES
from natsstream.publish.outgoing import PublishMessage, options_of
from natsstream.publish.pub_ack import PubAck
from natsstream.streams.stream import Stream


class InOrder:
    """Messages that are stored in their order, when `flush` is called.

    Args:
        stream: The stream.
        publish: Stores one message, and returns its sequence.
    """

    def __init__(self, stream: Stream, publish: Callable[[PublishMessage], Awaitable[int]]) -> None:
        self._stream = stream
        self._publish = publish
        self._waiting: list[tuple[PublishMessage, asyncio.Future[PubAck]]] = []

    async def add(self, message: PublishMessage) -> asyncio.Future[PubAck]:
        """Take a message; returns the future of its ack."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((message, future))
        return future

    async def flush(self) -> None:
        """Store what was taken; behind a failure that may pass, all have its error.

        Cost: some round trips for each 1,000 messages, or one for each message.
        """
        failure: NatsStreamError | None = None
        for start in range(0, len(self._waiting), MAX_MESSAGES):
            part = self._waiting[start : start + MAX_MESSAGES]
            failure = failure or await self._store(part)
            for _, future in part:
                if failure is not None and not future.done():
                    future.set_exception(failure)

    async def _store(
        self, part: Sequence[tuple[PublishMessage, asyncio.Future[PubAck]]]
    ) -> NatsStreamError | None:
        """Store some messages; returns the error that those have which are not done then."""
        if len(part) > 1 and self._stream.cached.config.allow_atomic:
            try:
                first_seq = await self._store_together([message for message, _ in part])
            # They are stored or not, or stored by another stream.
            except (TransportError, WrongStreamError) as error:
                return error
            except NatsStreamError:
                pass  # None of them is stored: each one's own answer tells why.
            else:
                for sequence, (_, future) in enumerate(part, first_seq):
                    future.set_result(PubAck(self._stream.name, sequence))
                return None
        for message, future in part:
            try:
                future.set_result(PubAck(self._stream.name, await self._publish(message)))
            except NatsStreamError as error:
                if not is_refusal(error):
                    return error
                future.set_exception(error)
        return None

    async def _store_together(self, messages: Sequence[PublishMessage]) -> int:
        """Store messages as one batch; returns the sequence of the first one."""
        async with self._stream.batch() as batch:
            for each in messages:
                await batch.add(each.subject, each.data, **options_of(each))
            return (await batch.commit()).first_seq


def is_refusal(error: NatsStreamError) -> bool:
    """Return True if the message is refused for good; the next ones need not wait for it."""
    return conat_code(error) == "reject" or isinstance(error, UsageError | MessageRuleError)
