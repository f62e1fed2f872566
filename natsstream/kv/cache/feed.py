"""The changes of a local mirror, handed out one by one, also behind one that can not be decoded.

Law: an entry that can not be read is raised once and ends nothing: iterating again goes on behind
it, as that of a watch does. A plain generator would be at its end.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import TracebackType

from natsstream.kv.entry import Entry, readable


class ChangeFeed(AsyncGenerator[Entry]):
    """Entries of changes, and errors between them.

    Args:
        changes: The changes, unreadable ones among them.
    """

    def __init__(self, changes: AsyncGenerator[Entry]) -> None:
        self._changes = changes

    async def asend(self, value: None) -> Entry:
        """Return the next change; `anext` calls this.

        Raises:
            StopAsyncIteration: The mirror's block was left.
            CodecError: The entry is not of the codec's form.
            NatsStreamError: What has ended the mirror.
        """
        return readable(await self._changes.asend(value))

    async def athrow(
        self,
        typ: type[BaseException] | BaseException,
        val: BaseException | object = None,
        tb: TracebackType | None = None,
    ) -> Entry:
        """Raise an error where the changes are waited for; `aclose` calls this."""
        given = val if isinstance(val, BaseException) else typ
        error = given if isinstance(given, BaseException) else given()
        return readable(await self._changes.athrow(error.with_traceback(tb)))

    async def aclose(self) -> None:
        """Read no more; closing twice is fine."""
        await self._changes.aclose()
