"""The same nouns without async: one loop in a thread, and everything else borrowed from it.

`with natsstream.blocking.connect(url) as js:` gives the context of `natsstream.connect` with `for`
instead of `async for` and no `await`. There is no second set of classes: each object here stands
for one of the async ones and runs its methods on the loop. The types are in `blocking.pyi`, which
`scripts/generate_blocking_types` writes from the async signatures.

Objects may be used from several threads. After `close`, and in a process that was forked off,
their methods raise.

Law: leaving the context frees the loop and its thread, also after an error or Ctrl-C in the middle
of a read; what an iterator took before an error is yielded before the error is raised.
"""

from __future__ import annotations

import asyncio
import atexit
import functools
import importlib
import inspect
import logging
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass
from operator import attrgetter
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, NoReturn, TypeAlias, cast

from natsstream import connection
from natsstream.errors import ConnectionClosedError, NatsStreamError, UsageError

# Closing a connection takes 2 s at most; the rest is for a busy machine.
_STOP_TIMEOUT_S = 5.0
# Items cross between the threads in runs: a crossing costs as much as fifty messages.
_RUN_ITEMS_MAX = 512
_RUN_BYTES_MAX = 1 << 20
# While the caller works on one run the loop fills the next: 2 + 2 runs x 1 MiB = 4 MiB, and one
# item that is larger.
_RUNS_AHEAD_MAX = 2
# Attributes by which an item tells its size: of columns, messages, entries.
_SIZES = ("nbytes", "data", "value")
# Where the classes live that blocking.pyi names beside Connection; each is found when asked for.
_HOMES = {
    "JetStream": "natsstream.streams.jetstream",
    "Publisher": "natsstream.streams.publish",
    "Stream": "natsstream.streams.stream",
    "StreamManager": "natsstream.streams.manager",
    "StreamRange": "natsstream.streams.ranges",
}

_log = logging.getLogger("natsstream")


class _Portal:
    """An open connection on an event loop in a thread of its own."""

    def __init__(self, opened: connection.Connection) -> None:
        self._connection = opened
        self._pid = os.getpid()
        # Reentrant: a collection of garbage may close an iterator in the middle of any line.
        self._lock = threading.RLock()
        self._is_stopped = False
        self._main: asyncio.Task[Any] | None = None
        self._opening: Future[Any] = Future()
        self._thread = threading.Thread(target=self._run, name="natsstream", daemon=True)
        self.root: object = None

    @property
    def is_stopped(self) -> bool:
        """True once `stop` was called."""
        return self._is_stopped

    @property
    def is_current_thread(self) -> bool:
        """True on the loop's own thread."""
        return threading.get_ident() == self._thread.ident

    def open(self) -> Any:
        """Connect and return the async JetStream context."""
        # A daemon thread is frozen at the interpreter's exit; whoever waits for it then, hangs.
        atexit.register(self.stop)
        self._thread.start()
        try:
            self.root = self._opening.result()
        except BaseException:
            self.stop()
            raise
        return self.root

    def stop(self) -> None:
        """Close the connection, end what still runs and the thread; stopping twice is fine."""
        atexit.unregister(self.stop)
        # In a fork there is no thread to end, and the socket and the selector are the parent's.
        if self._is_stopped or self._pid != os.getpid():
            return
        with self._lock:
            self._is_stopped = True
            if self._main is not None:
                with suppress(RuntimeError):  # The loop is closed when the opening failed.
                    self._main.get_loop().call_soon_threadsafe(self._main.cancel)
        if self.is_current_thread:
            return
        self._thread.join(_STOP_TIMEOUT_S)
        if self._thread.is_alive():
            _log.warning("the loop of %r did not end in %g s", self._connection, _STOP_TIMEOUT_S)

    def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Run a function or coroutine function on the loop and return its result.

        An interrupt cancels it.

        Raises:
            ConnectionClosedError: The connection is closed, or was closed meanwhile.
            UsageError: This is a fork, or the loop's own thread.
        """
        self.check_process()
        if self.is_current_thread:
            raise UsageError(
                "a blocking call on the loop's own thread would wait for itself",
                hint="call it from another thread, or use natsstream.connect()",
            )
        with self._lock:
            loop = self._open_loop()
            future = asyncio.run_coroutine_threadsafe(_run(function, args, options), loop)
        try:
            return future.result()
        except CancelledError:
            raise _closed() from None
        except BaseException:
            future.cancel()
            raise
        finally:
            del future  # It holds the error, whose traceback holds this frame.

    def post(self, callback: Callable[[], object]) -> None:
        """Run a callback on the loop soon; raises as `call` does."""
        self.check_process()
        with self._lock:
            self._open_loop().call_soon_threadsafe(callback)

    def check_process(self) -> None:
        """Raise UsageError in a process that was forked off after the connection was made."""
        if self._pid != os.getpid():
            raise UsageError(
                f"the connection belongs to process {self._pid}, and this is {os.getpid()}, a fork",
                hint="connect in the new process",
            )

    def _open_loop(self) -> asyncio.AbstractEventLoop:
        # What is put on the loop under the lock comes before the end of `_live`, and so it is
        # cancelled at the latest when `asyncio.run` leaves: nobody waits for ever.
        if self._is_stopped or self._main is None:
            raise _closed()
        return self._main.get_loop()

    def _run(self) -> None:
        with suppress(asyncio.CancelledError):
            asyncio.run(self._live())

    async def _live(self) -> None:
        with self._lock:
            if self._is_stopped:
                return
            self._main = asyncio.current_task()
        try:
            opened = await self._connection.open()
        except BaseException as error:  # noqa: BLE001 - `open` raises it in the caller's thread.
            self._opening.set_exception(error)
            return
        try:
            self._opening.set_result(opened)
            await asyncio.get_running_loop().create_future()
        finally:
            await self._connection.close()

    def __reduce__(self) -> NoReturn:
        raise UsageError(
            "an open connection can not be pickled or copied",
            hint="send the URL and the names instead, and connect where they arrive",
        )


async def _run(
    function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> object:
    result = function(*args, **options)
    return await result if inspect.iscoroutine(result) else result


def _closed() -> ConnectionClosedError:
    return ConnectionClosedError(
        "the connection is closed", hint="open a new one with natsstream.blocking.connect()"
    )


@dataclass(frozen=True, slots=True)
class _End:
    """Comes after the last run."""

    error: BaseException | None


class _Reader:
    """Runs an async iterator in one task, a little ahead of the thread that takes its items."""

    def __init__(self, items: AsyncIterable[Any], portal: _Portal) -> None:
        self._items = items
        self._portal = portal
        self._runs: SimpleQueue[list[Any] | _End] = SimpleQueue()
        # All below belongs to the loop's thread; `_is_full` is looked at from the other.
        self._run: list[Any] = []
        self._run_bytes = 0
        self._is_scheduled = False
        self._is_full = False
        self._room: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Yield the items; leaving early closes an async generator before this returns."""
        self._portal.post(self._begin)
        is_done = False
        try:
            while True:
                self._portal.check_process()
                run = self._runs.get()
                if isinstance(run, _End):
                    is_done = True
                    if run.error is not None:
                        raise run.error
                    return
                if self._is_full:
                    with suppress(ConnectionClosedError):  # The end comes after what was taken.
                        self._portal.post(self._make_room)
                yield from _container(run, self._portal)
        finally:
            if not is_done:
                self._close()

    def _close(self) -> None:
        with suppress(NatsStreamError, Empty):  # Closed or forked: there is nothing left to free.
            self._portal.post(self._cancel)
            # On the loop's thread only garbage is collected; what is cancelled ends by itself.
            while not self._portal.is_current_thread:
                if isinstance(self._runs.get(timeout=_STOP_TIMEOUT_S), _End):
                    return

    # On the loop's thread.

    def _begin(self) -> None:
        # No task group holds it: `_close` ends it, or the end of the loop.
        self._task = asyncio.get_running_loop().create_task(self._drive())
        self._task.add_done_callback(self._end)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        self._hand_over()
        self._runs.put(_End(_closed() if task.cancelled() else task.exception()))

    async def _drive(self) -> None:
        loop = asyncio.get_running_loop()
        items = aiter(self._items)
        try:
            async for item in items:
                self._run.append(item)
                self._run_bytes += _size_of(cast("type[Any]", type(item)))(item)
                if len(self._run) >= _RUN_ITEMS_MAX or self._run_bytes >= _RUN_BYTES_MAX:
                    self._offer()
                    while self._run:
                        self._room = loop.create_future()
                        await self._room
                elif not self._is_scheduled:
                    # Runs as soon as the iterator waits: an item is never held back for a next.
                    self._is_scheduled = True
                    loop.call_soon(self._offer_soon)
        finally:
            if isinstance(items, AsyncGenerator):
                await cast("AsyncGenerator[Any]", items).aclose()

    def _offer_soon(self) -> None:
        self._is_scheduled = False
        self._offer()

    def _offer(self) -> None:
        """Hand the run over when there is room; otherwise the other thread tells when there is."""
        self._is_full = True  # Before the look, as the other thread takes before it looks at this.
        if self._runs.qsize() < _RUNS_AHEAD_MAX:
            self._is_full = False
            self._hand_over()

    def _make_room(self) -> None:
        self._offer()
        if self._room is not None and not self._run and not self._room.done():
            self._room.set_result(None)

    def _hand_over(self) -> None:
        if self._run:
            run, self._run, self._run_bytes = self._run, [], 0
            self._runs.put(run)


@functools.cache
def _size_of(kind: type[Any]) -> Callable[[Any], int]:
    """Return what tells the bytes that an item of a class holds; 0 for those that do not say."""
    name = next((name for name in _SIZES if hasattr(kind, name)), None)
    if name is None:
        return lambda _: 0
    get = attrgetter(name)
    return get if name == "nbytes" else lambda item: len(get(item) or b"")


class _Twin:
    """Stands for one async object; its methods return results instead of awaitables.

    Each class of async objects has its own subclass, made when the first object of it crosses.
    """

    __slots__ = ("__weakref__", "_ahead", "_held", "_portal")

    def __init__(self, held: Any, portal: _Portal) -> None:
        self._held = held
        self._portal = portal
        self._ahead: Iterator[Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = getattr(self._held, name)
        return self._method(name) if inspect.isroutine(value) else self._cross(value)

    def __dir__(self) -> list[str]:
        own = [name for name in super().__dir__() if name.startswith("__")]
        return [*own, *(name for name in dir(self._held) if not name.startswith("_"))]

    def __repr__(self) -> str:
        return f"<blocking {self._held!r}>"

    def __reduce__(self) -> NoReturn:
        self._portal.__reduce__()

    def _cross(self, value: Any) -> Any:
        return self if value is self._held else _cross(value, self._portal)

    def _method(self, name: str) -> Callable[..., Any]:
        method = getattr(self._held, name)

        @functools.wraps(method)
        def call(*args: Any, **options: Any) -> Any:
            if name == "close" and self._portal.is_stopped:
                return None
            if name == "close" and self._held is self._portal.root:
                # The context's own `close` is the connection's, and frees the thread as well.
                return self._portal.stop()
            args = tuple(map(_async_side, args))
            options = {key: _async_side(value) for key, value in options.items()}
            return self._cross(self._portal.call(method, *args, **options))

        return call


class _Iterable(_Twin):
    """Each loop over it is one of its own."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return _items(self._held, self._portal)


class _OwnIterator(_Twin):
    """It is its own iterator: what was taken ahead is kept for the next loop over it."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        if self._ahead is None:
            self._ahead = _items(self._held, self._portal)
        return self._ahead

    def __next__(self) -> Any:
        return next(iter(self))


class _Context(_Twin):
    __slots__ = ()

    def __enter__(self) -> Any:
        return self._cross(self._portal.call(self._held.__aenter__))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._ahead = None
        try:
            return self._portal.call(self._held.__aexit__, kind, error, traceback)
        except ConnectionClosedError:
            if error is None:
                raise
            return None  # Why the block was left tells more.


_Rule: TypeAlias = Callable[[Any, _Portal], Any]
_RULES: dict[type[Any], _Rule | None] = {}


def _cross(value: Any, portal: _Portal) -> Any:
    """Return values as they are, and whatever has something to await as its blocking twin."""
    rule = _rule(cast("type[Any]", type(value)))
    return value if rule is None else rule(value, portal)


def _async_side(value: Any) -> Any:
    return object.__getattribute__(value, "_held") if isinstance(value, _Twin) else value


def _rule(kind: type[Any]) -> _Rule | None:
    """Return how values of a class cross to the caller; None when they cross as they are."""
    try:
        return _RULES[kind]
    except KeyError:
        # Two threads may come here together: the first one's twin is the twin.
        return _RULES.setdefault(kind, _make_rule(kind))


def _make_rule(kind: type[Any]) -> _Rule | None:
    if issubclass(kind, asyncio.Future):
        return _waiter
    if issubclass(kind, AsyncGenerator):
        return _items
    if kind in (list, tuple, dict):
        return _container
    return _make_twin(kind) if _has_async(kind) else None


def _has_async(kind: type[Any]) -> bool:
    if hasattr(kind, "__aiter__") or hasattr(kind, "__aenter__"):
        return True
    return kind.__module__.startswith("natsstream.") and any(
        inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)
        for name, member in inspect.getmembers_static(kind)
        if not name.startswith("_")
    )


def _make_twin(kind: type[Any]) -> type[_Twin]:
    bases: list[type[_Twin]] = []
    if hasattr(kind, "__anext__"):
        bases.append(_OwnIterator)
    elif hasattr(kind, "__aiter__"):
        bases.append(_Iterable)
    if hasattr(kind, "__aenter__"):
        bases.append(_Context)
    members = {"__slots__": (), "__doc__": kind.__doc__, "__module__": __name__}
    return type(kind.__name__, tuple(bases) or (_Twin,), members)


def _items(items: AsyncIterable[Any], portal: _Portal) -> Iterator[Any]:
    return iter(_Reader(items, portal))


def _waiter(future: asyncio.Future[Any], portal: _Portal) -> Callable[[], Any]:
    def wait() -> Any:
        """Wait for the result and return it, or raise what went wrong; may be called again."""
        # One that is done changes no more, so any thread may look at it.
        return _cross(future.result() if future.done() else portal.call(_wait, future), portal)

    return wait


async def _wait(future: asyncio.Future[Any]) -> Any:
    # Unlike `await future`, an interrupt leaves the future as it is.
    await asyncio.wait([future])
    return future.result()


def _container(values: Any, portal: _Portal) -> Any:
    """Return the same container, or another one where values have twins."""
    if isinstance(values, dict):
        pairs = cast("dict[Any, Any]", values)
        before = [*pairs.values()]
        after = _container(before, portal)
        return pairs if after is before else dict(zip(pairs, after, strict=True))
    kinds = cast("set[type[Any]]", set(map(type, values)))
    if all(_rule(kind) is None for kind in kinds):
        return values
    return type(values)(_cross(value, portal) for value in values)


class Connection:
    """A connection that is not open yet: `with` opens it and gives its JetStream context."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._connection = connection.connect(*args, **options)
        self._portal: _Portal | None = None

    def open(self) -> Any:
        """Connect and return the JetStream context; `close` ends it."""
        if self._portal is not None and not self._portal.is_stopped:
            raise UsageError("the connection is open", hint="connect() again for a second one")
        self._portal = _Portal(self._connection)
        return _cross(self._portal.open(), self._portal)

    def close(self) -> None:
        """Close the connection and end the loop's thread; closing twice is fine."""
        if self._portal is not None:
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


@functools.wraps(connection.connect, assigned=(), updated=())
def connect(*args: Any, **options: Any) -> Connection:
    """Describe a connection, with the arguments of `natsstream.connect`; `with` opens it."""
    return Connection(*args, **options)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _rule(getattr(importlib.import_module(home), name))
