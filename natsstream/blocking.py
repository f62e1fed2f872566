"""The same nouns without async: one loop in a thread, and everything else borrowed from it.

`with natsstream.blocking.connect(url) as js:` gives the context of `natsstream.connect` with `for`
instead of `async for` and no `await`. There is no second set of classes: each object here holds one
of the async ones and runs its methods on the loop. The types are in `blocking.pyi`, which
`scripts/generate_blocking_types` writes from the async signatures.

Law: leaving the context frees the loop and its thread, also after an error in the middle of a read.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import suppress
from types import TracebackType
from typing import Any, cast

from natsstream import connection
from natsstream.errors import ConnectionClosedError

_STOP_TIMEOUT_S = 5.0
# Runs of messages cross from the loop's thread to the caller's in lists: a crossing costs as much
# as fifty messages.
_ITEMS_A_CROSSING = 512


class Portal:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="natsstream", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the loop and return its result; an interrupt cancels it."""
        if not self._thread.is_alive():
            coroutine.close()
            raise ConnectionClosedError(
                "the connection is closed", hint="open a new one with natsstream.blocking.connect()"
            )
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End what still runs, then the loop and its thread; stopping twice is fine."""
        if not self._thread.is_alive():
            return
        with suppress(TimeoutError, CancelledError):
            asyncio.run_coroutine_threadsafe(self._finish(), self._loop).result(_STOP_TIMEOUT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_TIMEOUT_S)
        if not self._thread.is_alive():
            self._loop.close()

    async def _finish(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


class Blocking:
    """Stands for one async object; its methods return results instead of awaitables."""

    def __init__(self, held: Any, portal: Portal) -> None:
        self._held = held
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._held, name)
        return self._method(value) if callable(value) else self._wrap(value)

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(self._held.__aiter__())

    def __enter__(self) -> Any:
        return self._wrap(self._portal.call(self._held.__aenter__()))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._portal.call(self._held.__aexit__(kind, error, traceback))

    def __repr__(self) -> str:
        return f"<blocking {self._held!r}>"

    def _method(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            if inspect.iscoroutine(result):
                result = self._portal.call(result)
            return self._wrap(result)

        return call

    def _wrap(self, value: Any) -> Any:
        """Return values as they are, and whatever has something to await in a wrapper."""
        if isinstance(value, AsyncGenerator):
            return self._iterate(cast("AsyncIterator[Any]", value))
        if isinstance(value, asyncio.Future):
            return functools.partial(self._portal.call, _wait(cast("asyncio.Future[Any]", value)))
        has_async = type(value).__module__.startswith("natsstream.") and any(
            inspect.iscoroutinefunction(member)
            or inspect.isasyncgenfunction(member)
            or name in ("__aiter__", "__aenter__")
            for name, member in inspect.getmembers_static(type(value))
        )
        return Blocking(value, self._portal) if has_async else value

    def _iterate(self, items: AsyncIterator[Any]) -> Iterator[Any]:
        """Yield an async iterator's items, which cross to this thread in lists."""
        try:
            while True:
                some, is_done = self._portal.call(_take(items))
                yield from some
                if is_done:
                    return
        finally:
            if isinstance(items, AsyncGenerator):
                with suppress(ConnectionClosedError):
                    self._portal.call(cast("AsyncGenerator[Any]", items).aclose())


async def _take(items: AsyncIterator[Any]) -> tuple[list[Any], bool]:
    """Return the next item and those that are there without waiting for the network."""
    taken: list[Any] = []
    async for item in items:
        taken.append(item)
        # Columns are large by themselves; hand each over at once.
        if len(taken) >= _ITEMS_A_CROSSING or not _is_small(item):
            return taken, False
    return taken, True


def _is_small(item: Any) -> bool:
    return not hasattr(item, "num_rows")


async def _wait(future: asyncio.Future[Any]) -> Any:
    return await future


class Connection:
    """A connection that is not open yet: `with` opens it and gives its JetStream context."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._connection = connection.connect(*args, **options)
        self._portal: Portal | None = None

    def open(self) -> Any:
        """Connect and return the JetStream context; `close` ends it."""
        self._portal = Portal()
        try:
            return Blocking(self._portal.call(self._connection.open()), self._portal)
        except BaseException:
            self._portal.stop()
            raise

    def close(self) -> None:
        """Close the connection and end the loop's thread; closing twice is fine."""
        if self._portal is not None:
            with suppress(ConnectionClosedError):
                self._portal.call(self._connection.close())
            self._portal.stop()

    def __enter__(self) -> Any:
        return self.open()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<blocking {self._connection!r}>"


def connect(*args: Any, **options: Any) -> Connection:
    """Describe a connection, with the arguments of `natsstream.connect`; `with` opens it."""
    return Connection(*args, **options)
