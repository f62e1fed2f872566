"""The republished feed of a core stream: copies of stored messages, and announcements of clients.

Law: messages are applied in the order in which they came; one with a big value holds up those
behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from natsstream.api.settings.mapping import Republish
from natsstream.api.stream_config import StreamConfig
from natsstream.conat.arrays import Arrays
from natsstream.conat.attempts import retried
from natsstream.conat.blobs import Blobs
from natsstream.conat.feed import Announcement, FeedMessage, stored_copy
from natsstream.conat.headers import is_big
from natsstream.conat.names import StreamNames
from natsstream.conat.reconcile import Doubt
from natsstream.conat.record import Record
from natsstream.core.message import CoreMessage
from natsstream.core.subscription import CoreSubscription
from natsstream.errors import (
    ConnectionClosedError,
    ProtocolError,
    SlowReaderError,
    TransportError,
)
from natsstream.streams.jetstream import JetStreamContext

# Subjects of which it is asked at once if the user may hear of them.
_CHECKED_MAX = 16
# As many as one read of the socket may bring, or the feed falls behind a busy publisher.
_TURN_MESSAGES = 8_192


class RepublishedFeed:
    """Brings the arrays what the server republishes, and what other clients announce.

    Args:
        js: The JetStream context.
        names: The core stream's names.
        arrays: Its arrays.
        blobs: Its big values.

    Attributes:
        is_trusted: True if the server republishes; False for a stream without that feed, whose
            clients still announce.
    """

    def __init__(
        self, js: JetStreamContext, names: StreamNames, arrays: Arrays, blobs: Blobs
    ) -> None:
        self._js = js
        self._names = names
        self._arrays = arrays
        self._blobs = blobs
        self.is_trusted: bool = True
        self._subscription: CoreSubscription | None = None

    async def open(self) -> None:
        """Subscribe; what comes from now on waits for `follow`.

        Raises:
            PermissionDeniedError: The user may not subscribe to all of it.
            TransportError: The server did not confirm in time.
        """
        names = self._names
        self._subscription = self._js.core.subscribe(names.feed_filter)
        parts = [names.control, *map(names.feed_of, (names.unkeyed, names.keys_filter))]
        await asyncio.gather(self._subscription.open(), self._check(parts))

    async def close(self) -> None:
        """End the subscription; closing twice is fine."""
        if self._subscription is not None:
            await self._subscription.close()

    def learn(self, config: StreamConfig) -> None:
        """Take note of whether the server republishes the stream's messages as they are."""
        wanted = Republish(source=self._names.data_filter, destination=self._names.feed_filter)
        held = config.republish
        self.is_trusted = (
            held is not None and replace(held, headers_only=held.headers_only or None) == wanted
        )

    async def check(self, missed: Iterable[Record]) -> None:
        """Find out if the user may hear of messages that the feed did not bring.

        A server sends nothing of a subject that is denied below the one that was subscribed to, and
        does not say so.

        Raises:
            PermissionDeniedError: The user may not.
        """
        if self.is_trusted:
            subjects = {each.key_subject or self._names.unkeyed: None for each in missed}
            newest = list(subjects)[-_CHECKED_MAX:]
            with suppress(TransportError):  # The next one that is missed comes.
                await self._check([self._names.feed_of(each) for each in newest])

    async def _check(self, subjects: list[str]) -> None:
        """Subscribe to subjects of the feed for a moment: only that tells if they are denied."""
        found = [self._js.core.subscribe(each) for each in subjects]
        try:
            await asyncio.gather(*(each.open() for each in found))
        finally:
            for each in found:
                await each.close()

    async def announce(self, note: Announcement) -> None:
        """Apply a deletion or change that the server has confirmed, and tell the others."""
        self._take_note(note)
        with suppress(TransportError):  # The others find out by comparing with the stream.
            await self._js.core.publish(self._names.control, note.to_json())

    async def follow(self) -> None:
        """Apply what comes, until it is cancelled.

        Raises:
            NatsStreamError: No more can come, such as after the connection was closed.
        """
        while self._subscription is not None:
            try:
                await self._take_all(self._subscription)
            except SlowReaderError:
                self._arrays.suspect(Doubt.DELETED)
            else:
                raise ConnectionClosedError("the feed has ended", hint="connect again")

    async def _take_all(self, subscription: CoreSubscription) -> None:
        turn = 0
        async for message in subscription:
            big = self._take_message(message)
            if big is not None:
                await self._take_big(big)
            if message.reply and message.subject == self._names.control:
                with suppress(TransportError):  # It asks if a client is here.
                    await message.respond()
            turn += 1
            if turn % _TURN_MESSAGES == 0:
                await asyncio.sleep(0)

    def _take_message(self, message: CoreMessage) -> FeedMessage | None:
        """Apply a message of the feed; one with a big value is returned, as it must wait."""
        arrays = self._arrays
        try:
            if message.subject == self._names.control:
                self._take_note(Announcement.from_json(message.data))
                return None
            block = message.headers.source
            copy = stored_copy(self._names, message.subject, block, message.data)
        except ProtocolError:
            # Another client wrote to the feed; the stream itself says what is true.
            arrays.suspect(Doubt.COUNT)
            return None
        if copy is None or not self.is_trusted:
            return None
        arrays.note_time(copy.record)
        if is_big(copy.record.headers):
            return copy
        arrays.take(arrays.reconciler.message(copy.record, copy.last_subject_seq))
        return None

    async def _take_big(self, copy: FeedMessage) -> None:
        """Fetch a big value before its message is applied; later messages wait for it."""
        arrays, rules = self._arrays, self._arrays.reconciler
        life = rules.life
        found = await retried(lambda: self._blobs.whole([copy.record]))
        if life != rules.life:
            arrays.suspect(Doubt.COUNT)
        elif found:
            arrays.take(rules.message(found[0], copy.last_subject_seq))
        else:
            # It was overwritten or deleted meanwhile: a read certifies that.
            arrays.expect(copy.record.seq)

    def _take_note(self, note: Announcement) -> None:
        arrays, rules = self._arrays, self._arrays.reconciler
        for first_seq, last_seq in note.deleted:
            arrays.take(rules.deleted(first_seq, last_seq))
        if note.purged:
            arrays.take(rules.purged(note.purged))
        if note.is_config_changed:
            arrays.suspect(Doubt.DELETED)
