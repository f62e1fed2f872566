"""A watch of a bucket whose entries have objects for values.

Law: one value that can not be read ends no watch: it is handed out as such, or raised, and the next
entry is behind it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Generic, Self

from natsstream.kv.entry import Entry
from natsstream.kv.typed.formats import T, ValueFormat
from natsstream.kv.typed.typed_entry import TypedEntry, decoded, readable
from natsstream.kv.watch import Watch
from natsstream.read.read_events import OrderedReport, ReadEvent


class TypedWatch(Generic[T]):
    """A watch whose entries have objects; made by `TypedKeyValue.watch`, used as a `Watch`.

    Attributes:
        plain: The watch below, which gives the bytes.
    """

    def __init__(self, watch: Watch, form: ValueFormat[T], *, raises: bool) -> None:
        self.plain: Watch = watch
        self._form = form
        self._raises = raises

    async def __aenter__(self) -> Self:
        """Begin to follow the bucket.

        Raises:
            NatsStreamError: What a plain watch raises.
        """
        await self.plain.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.plain.__aexit__(kind, error, traceback)

    async def close(self) -> None:
        """Follow no more; closing twice is fine."""
        await self.plain.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> TypedEntry[T]:
        """Return the next entry, and wait for it.

        Raises:
            ValueDecodeError: Its value can not be read, and `on_unreadable` is "raise"; iterating
                again goes on behind it.
            NatsStreamError: What a plain watch raises.
        """
        return self._typed(await self.plain.__anext__())

    def take_ready(self) -> TypedEntry[T] | None:
        """Return the next entry if it came together with the last one; None if it did not.

        Raises:
            ValueDecodeError: As for `__anext__`.
        """
        entry = self.plain.take_ready()
        return None if entry is None else self._typed(entry)

    async def initial(self) -> AsyncGenerator[TypedEntry[T]]:
        """Yield the entries that were there when the block was entered; ends behind the last.

        Raises:
            ValueDecodeError: A value can not be read, and `on_unreadable` is "raise"; another
                `initial()` goes on behind it.
            NatsStreamError: What a plain watch raises.
        """
        async with aclosing(self.plain.initial()) as entries:
            async for entry in entries:
                yield self._typed(entry)

    @property
    def revision(self) -> int:
        """The last revision that was handed out: `resume_after` of another watch."""
        return self.plain.revision

    @property
    def is_caught_up(self) -> bool:
        """True when everything that was there at the beginning was handed out."""
        return self.plain.is_caught_up

    @property
    def created_ns(self) -> int:
        """The bucket's identity; with `revision` it is a place that only this bucket has."""
        return self.plain.created_ns

    @property
    def report(self) -> OrderedReport:
        """What was done so far: revisions received, and why consumers were made again."""
        return self.plain.report

    async def events(self) -> AsyncGenerator[ReadEvent]:
        """Yield what happens to the watch, as `Watch.events` does."""
        async with aclosing(self.plain.events()) as events:
            async for event in events:
                yield event

    def _typed(self, entry: Entry) -> TypedEntry[T]:
        return readable(decoded(entry, self._form), raises=self._raises)

    def __repr__(self) -> str:
        return f"<TypedWatch {self._form.name} of {self.plain!r}>"
