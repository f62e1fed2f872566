"""Async iterators that outlive a cancelled reader.

Law: cancelling a call that waits for the next item loses none, and ends nothing: the next call goes
on. An async generator would be at its end then, as if there were nothing more.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, Final, Generic, TypeVar

from natsstream.eager import Begun
from natsstream.errors import UsageError
from natsstream.own_loop import OwnLoop

T = TypeVar("T")
P = TypeVar("P")

_END: Final = object()


class Resumable(AsyncGenerator[T]):
    """An iterator in the place of an async generator: it can be left, taken up again and closed."""

    @abstractmethod
    async def __anext__(self) -> T:
        """Return the next item, and wait for it; may be cancelled and called again."""

    @abstractmethod
    async def aclose(self) -> None:
        """End the iteration and free everything; closing twice is fine."""

    async def asend(self, _value: None, /) -> T:
        """Return the next item; nothing can be sent."""
        return await self.__anext__()

    async def athrow(self, typ: Any, val: Any = None, _traceback: object = None, /) -> T:
        """End the iteration and raise an error."""
        await self.aclose()
        raise typ if val is None else val


class Calls(Resumable[T]):
    """The results of an async function, call after call, until it returns None.

    Args:
        take: Cancelling a call of it loses nothing.
        source: An iterator that it reads from; closing closes that too.
    """

    def __init__(
        self,
        take: Callable[[], Awaitable[T | None]],
        source: AsyncGenerator[Any] | None = None,
    ) -> None:
        self._take = take
        self._source = source
        self._reader: asyncio.Task[Any] | None = None
        self._is_closed = False

    async def __anext__(self) -> T:
        item = None if self._is_closed else await self._result()
        if item is None:
            raise StopAsyncIteration
        return item

    async def _result(self) -> T | None:
        self._reader = asyncio.current_task()
        try:
            return await self._take()
        except asyncio.CancelledError:
            # By `aclose`, and by nobody else.
            if self._is_closed and self._reader is not None and not self._reader.uncancel():
                return None
            raise
        finally:
            self._reader = None

    async def aclose(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._reader is not None:
            self._reader.cancel()
        if self._source is not None:
            await self._source.aclose()


class Steps(Resumable[T]):
    """The items of a generator; a step that has to wait is a task, which outlives its waiter.

    For generators whose steps are large or rare: one that waits costs about 20 microseconds.

    Args:
        items: The generator.
        wait: Waits until the next step can probably run without waiting. Cancelling it loses
            nothing, and closing the generator ends it. It runs in the reader's own task, which is
            two turns of the event loop faster: in each, the socket may deliver another megabyte.
    """

    # The traceback of an error keeps the frames that it has passed. So the frames forget the
    # iterator, whose step ends when nobody has it any more, and the step, which keeps the error.

    def __init__(
        self, items: AsyncGenerator[T], *, wait: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._items = items
        self._wait = wait
        self._step: asyncio.Task[T | object] | None = None
        self._own_loop: OwnLoop | None = None
        self._is_waited = False
        self._is_closed = False

    async def __anext__(self) -> T:
        try:
            begun = await self._begin()
            item: Any = await self._rest_of_step() if begun is None else begun.result()
        except BaseException:
            del self
            raise
        if item is _END:
            raise StopAsyncIteration
        return item

    async def _begin(self) -> Begun[T | object] | None:
        """Begin the next step; return it if it has ended already, and None if it waits."""
        if self._own_loop is None:
            self._own_loop = OwnLoop()
        loop = self._own_loop.check()
        if self._is_waited:
            raise UsageError(
                "another task waits for the next item of this loop", hint="one task iterates"
            )
        if self._step is not None:
            return None
        if self._wait is not None:
            self._is_waited = True
            try:
                await self._wait()
            except BaseException:
                self._is_waited = False
                del self
                raise
            self._is_waited = False
            if self._is_closed:
                raise StopAsyncIteration
        begun = Begun(_next(self._items), loop)
        if not begun.is_waiting:
            return begun
        self._step = begun.task
        # The error of a step that nobody comes back for is not asyncio's to log.
        self._step.add_done_callback(_take_error)
        return None

    async def _rest_of_step(self) -> T | object:
        step = self._step
        assert step is not None  # noqa: S101 - `_begin` has set it.
        self._is_waited = True
        try:
            await asyncio.wait([step])
        except BaseException:
            self._is_waited = False
            del self, step
            raise
        self._is_waited, self._step = False, None
        try:
            return _END if self._is_closed else step.result()
        finally:
            del self, step

    async def aclose(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._step is not None:
            self._step.cancel()
            await asyncio.wait([self._step])
        await self._items.aclose()

    def __del__(self) -> None:
        # Its loop was left by an error or a cancellation, and the step still waits.
        if self._step is not None:
            with suppress(RuntimeError):  # The event loop is closed.
                self._step.get_loop().call_soon_threadsafe(self._step.cancel)


class Flattened(Resumable[T], Generic[P, T]):
    """The items in what a generator yields.

    Args:
        parts: Yields what has several items, such as lists; one that waits is a task of its own.
        items_of: Returns the items of one, which are then read without waiting.
        wait: As for `Steps`.
    """

    def __init__(
        self,
        parts: AsyncGenerator[P],
        items_of: Callable[[P], Iterable[T]],
        *,
        wait: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._parts = Steps(parts, wait=wait)
        self._items_of = items_of
        self._ready: Iterator[T] = iter(())

    async def __anext__(self) -> T:
        while True:
            try:
                for item in self._ready:
                    return item
            except Exception:  # An item that cannot be read ends them.
                await self.aclose()
                raise
            try:
                part = await self._parts.__anext__()
            except BaseException:
                del self  # See `Steps`.
                raise
            # Lazily, so that a part that cannot be read ends the items as one of them does.
            self._ready = chain.from_iterable(map(self._items_of, (part,)))

    async def aclose(self) -> None:
        self._ready = iter(())
        await self._parts.aclose()


async def _next(items: AsyncGenerator[T]) -> T | object:
    return await anext(items, _END)


def _take_error(step: asyncio.Task[Any]) -> None:
    if not step.cancelled():
        step.exception()
