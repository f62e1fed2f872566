"""A key-value map of which nothing is loaded; Conat's AKV."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self

from natsstream.arguments import check_text
from natsstream.conat.configuration import Configuration
from natsstream.conat.leader import LeaderStream, StoredMessage
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.writer import PublishOptions, Stored


class AKV:
    """A map on a core stream; each call asks the server, and sees every acknowledged write.

    Made by `js.akv(name)`; use it with `async with`, or call `close`. A `js.dkv` of the same name
    has the same keys. Every method raises `UsageError` after the end.

    Args:
        name: Its name.
        leader: The core stream, open.
    """

    def __init__(self, name: str, leader: LeaderStream) -> None:
        self.name: str = name
        self._leader = leader

    async def close(self) -> None:
        """End the object; nothing is left on the server."""
        await self._leader.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def get(self, key: str, default: Any = UNDEFINED) -> Any:
        """Return the value of a key, or the default.

        Raises:
            CodecError: Another program wrote the value.

        Cost: one round trip.
        """
        found = await self._leader.get(key)
        return default if found is None else found.mesg

    async def get_message(self, key: str) -> StoredMessage | None:
        """Return the message of a key; None for none. Cost as for `get`."""
        return await self._leader.get(key)

    async def headers(self, key: str) -> Mapping[str, object] | None:
        """Return the headers of a key's message, with seq, time and key; None for none."""
        found = await self._leader.get(key)
        return None if found is None else found.headers

    async def time(self, key: str) -> datetime | None:
        """Return when a key's value was stored, in UTC; None for none."""
        found = await self._leader.get(key)
        return None if found is None else found.time

    async def seq(self, key: str) -> int | None:
        """Return the sequence of a key's value; None for none."""
        found = await self._leader.get(key)
        return None if found is None else found.seq

    async def keys(self) -> list[str]:
        """Return the keys that have a value, by the sequences of their values.

        Cost: as for a read of all keys' messages.
        """
        return await self._leader.keys()

    async def set(
        self,
        key: str,
        value: Any,
        *,
        headers: Mapping[str, object] | None = None,
        previous_seq: int | None = None,
        msg_id: str | None = None,
        ttl: int | None = None,
        timeout: float | None = None,
    ) -> Stored | None:
        """Set the value of a key; UNDEFINED deletes it.

        Arguments, answer and errors are those of `CoreStream.publish`.

        Cost: two round trips, as acks do not tell the time.
        """
        options = PublishOptions(
            headers=headers,
            msg_id=msg_id,
            key=check_text(key, "key"),
            previous_seq=previous_seq,
            ttl=ttl,
            timeout=timeout,
        )
        if value is UNDEFINED:
            return await self._leader.delete_key(key, options)
        return await self._leader.publish(value, options)

    async def delete(self, key: str, *, timeout: float | None = None) -> Stored | None:
        """Delete a key by a tombstone, whether or not it has a value.

        Raises:
            NatsStreamError: As for `set`.
        """
        return await self._leader.delete_key(key, PublishOptions(key=key, timeout=timeout))

    async def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, and return all of it; see `CoreStream.config`."""
        return await self._leader.set_config(changes)

    def __repr__(self) -> str:
        return f"<AKV {self.name}>"
