"""A log of which nothing is loaded; Conat's AStream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Self

from natsstream.arguments import check_bool, check_int
from natsstream.conat.change_feed import ChangeFeed
from natsstream.conat.configuration import Configuration
from natsstream.conat.leader import LeaderStream, StoredMessage
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.writer import (
    PublishItem,
    PublishOptions,
    PublishResult,
    Stored,
    check_value,
)
from natsstream.errors import ConfigError


class AStream:
    """A log on a core stream; each call asks the server, and sees every acknowledged write.

    Made by `js.astream(name)`; use it with `async with`, or call `close`. Every method raises
    `UsageError` after the end.

    Args:
        name: Its name.
        leader: The core stream, open.
        new_feed: Returns a feed of changes, not open.
    """

    def __init__(self, name: str, leader: LeaderStream, new_feed: Callable[[], ChangeFeed]) -> None:
        self.name: str = name
        self._leader = leader
        self._new_feed = new_feed
        self._feeds: list[ChangeFeed] = []

    async def close(self) -> None:
        """End the object and its changefeeds; nothing is left on the server."""
        await self._leader.close()
        feeds, self._feeds = self._feeds, []
        for feed in feeds:
            await feed.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, seq_or_key: int | str, default: Any = UNDEFINED) -> Any:
        """Return the value at a sequence (a number) or of a key (a text), or the default.

        Raises:
            CodecError: Another program wrote the value.

        Cost: one round trip.
        """
        found = await self._leader.get(seq_or_key)
        return default if found is None else found.mesg

    async def get_message(self, seq_or_key: int | str) -> StoredMessage | None:
        """Return the message at a sequence or of a key; None for none. Cost as for `get`."""
        return await self._leader.get(seq_or_key)

    async def headers(self, seq_or_key: int | str) -> Mapping[str, object] | None:
        """Return the headers of a message, with seq, time and key; None for no message."""
        found = await self._leader.get(seq_or_key)
        return None if found is None else found.headers

    def get_all(
        self, *, start_seq: int | None = None, end_seq: int | None = None
    ) -> AsyncGenerator[StoredMessage]:
        """Yield all messages in order, those between two sequences, both inclusive.

        Raises:
            MessagesLostError: The server has lost a message.

        Cost: as for `Stream.read`.
        """
        return self._leader.read(start_seq, end_seq)

    async def publish(
        self,
        mesg: Any,
        *,
        headers: Mapping[str, object] | None = None,
        msg_id: str | None = None,
        key: str | None = None,
        previous_seq: int | None = None,
        ttl: int | None = None,
        timeout: float | None = None,
    ) -> Stored | None:
        """Store a message; UNDEFINED with a key deletes the key.

        Arguments, answer and errors are those of `CoreStream.publish`.

        Cost: two round trips, as acks do not tell the time.
        """
        options = PublishOptions(
            headers=headers,
            msg_id=msg_id,
            key=key,
            previous_seq=previous_seq,
            ttl=ttl,
            timeout=timeout,
        )
        if mesg is UNDEFINED and key is not None:
            return await self._leader.delete_key(key, options)
        check_value(mesg)
        return await self._leader.publish(mesg, options)

    async def push(self, *values: Any) -> list[PublishResult]:
        """Store messages in order, many in flight; each has a result or an error of its own."""
        return await self._leader.publish_many([PublishItem(each) for each in values])

    async def changefeed(self) -> ChangeFeed:
        """Return a feed of all changes from now on, one of its own for each call.

        Cost: two round trips and a subscription.
        """
        self._leader.check()
        feed = self._new_feed()
        self._feeds = [each for each in self._feeds if not each.is_closed]
        self._feeds.append(feed)
        return await feed.open()

    async def delete(
        self,
        *,
        all: bool = False,  # noqa: A002 - Conat's word.
        seq: int | None = None,
        last_seq: int | None = None,
    ) -> int:
        """Delete messages, and return how many; the first argument of this order counts.

        Args:
            all: All messages that there are now.
            seq: One message.
            last_seq: All up to a sequence, inclusive.

        Raises:
            ConfigError: No argument is given.
            TransportError: No answer. The call may be repeated.

        Cost: one or two round trips. If there were big values, one more or a read of all headers.
        """
        if check_bool(all, "all"):
            return await self._leader.purge(None)
        if seq is not None:
            return await self._leader.delete(seq)
        if last_seq is not None:
            return await self._leader.purge(check_int(last_seq, "last_seq", minimum=0))
        raise ConfigError("delete was told nothing to delete", hint="delete(all=True), or seq=")

    async def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, and return all of it; see `CoreStream.config`."""
        return await self._leader.set_config(changes)

    def __repr__(self) -> str:
        return f"<AStream {self.name}>"
