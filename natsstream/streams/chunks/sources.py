"""The sources of a value, read as chunks of one size.

Law: a blocking source is read in a thread of its own, a few chunks ahead and no more, so the loop
never waits for a disk or a pipe. Files opened here are closed here; open files stay open.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import inspect
import io
import os
import stat
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol, TypeAlias, cast, runtime_checkable

from natsstream.arguments import described
from natsstream.errors import ConfigError
from natsstream.streams.chunks.rechunk import Rechunker, flat

# One read of a file; chunks are cut from it.
READ_BYTES = 1 << 20
# A thread reads at most 2 runs ahead, of about 1 MiB or of one larger chunk.
_RUNS_AHEAD_MAX = 2
_END_WAIT_S = 1.0

_HINT = "give bytes, a path, an open binary file, or an iterable of bytes"


@runtime_checkable
class Readable(Protocol):
    """An open binary file, or any object with its `read`."""

    def read(self, size: int, /) -> bytes | None:
        """Return up to `size` bytes; empty at the end."""
        ...


@runtime_checkable
class AsyncReadable(Protocol):
    """An object with an async `read`: `asyncio.StreamReader`, uploads of web frameworks."""

    def read(self, size: int, /) -> Awaitable[bytes]:
        """Return up to `size` bytes; empty at the end."""
        ...


Buffer: TypeAlias = bytes | bytearray | memoryview
Source: TypeAlias = (
    Buffer | os.PathLike[str] | Readable | AsyncReadable | Iterable[Buffer] | AsyncIterable[Buffer]
)
"""A source of bytes."""


def check_source(source: object) -> None:
    """Refuse a value that is no source of bytes, before anything is sent.

    Raises:
        ConfigError: It is no source.
    """
    kinds = (bytes, bytearray, memoryview, os.PathLike, Iterable, AsyncIterable)
    is_reader = callable(getattr(source, "read", None))
    if isinstance(source, str):
        raise ConfigError(
            f"the source is text: {described(source, with_type=False)}",
            hint="text.encode() for its bytes, pathlib.Path(text) for the file of that name",
        )
    # The keys of a dict are no bytes; an empty one would be stored as no bytes at all.
    if not is_reader and (isinstance(source, dict) or not isinstance(source, kinds)):
        raise ConfigError(f"the source is {described(cast('object', source))}", hint=_HINT)
    if isinstance(source, memoryview):
        try:
            _ = source.nbytes
        except ValueError as error:
            raise ConfigError("the source is a memoryview that was released", hint=_HINT) from error


def known_size(source: object) -> int | None:
    """Return how many bytes a source has; None if it must be read to know."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return memoryview(cast("Buffer", source)).nbytes
    try:
        if isinstance(source, os.PathLike):
            return os.stat(cast("os.PathLike[str]", source)).st_size or None
        if isinstance(source, io.BytesIO):
            return max(source.getbuffer().nbytes - source.tell(), 0)
        # Only a plain file: a decompressing one has its descriptor, and another size.
        raw: object = getattr(source, "raw", source)
        if isinstance(raw, io.FileIO):
            left = os.fstat(raw.fileno()).st_size - cast("io.FileIO", source).tell()
            return left if left > 0 else None
    except (OSError, ValueError):
        return None  # Opening it raises the error; a pipe has no size.
    return None


def is_repeatable(source: object) -> bool:
    """Return True if a source can be read again."""
    if isinstance(source, os.PathLike):
        try:
            return stat.S_ISREG(os.stat(cast("os.PathLike[str]", source)).st_mode)
        except OSError:
            return False
    return isinstance(source, (bytes, bytearray, memoryview))


async def chunks_of(source: Source, size: int) -> AsyncGenerator[bytes]:
    """Yield a source's chunks.

    Args:
        source: A source that `check_source` has accepted.
        size: Bytes of a chunk; the last may have fewer.

    Raises:
        ConfigError: The source gave an item that is no bytes.
        Exception: The error of the source itself, such as OSError.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        view = flat(cast("Buffer", source))
        for start in range(0, len(view), size):
            yield bytes(view[start : start + size])
        return
    waiting: AsyncIterable[object] | None = None
    if inspect.iscoroutinefunction(getattr(source, "read", None)):
        # Before iteration, which yields lines of such a reader.
        waiting = _read_async(cast("AsyncReadable", source), size)
    elif isinstance(source, AsyncIterable):
        waiting = source
    if waiting is not None:
        async for chunk in _of_async(waiting, size):
            yield chunk
        return
    blocking = cast("os.PathLike[str] | Readable | Iterable[Buffer]", source)
    ahead = _ReadAhead(lambda: _of_blocking(blocking, size), max(1, READ_BYTES // size))
    try:
        while (run := await ahead.next_run()) is not None:
            for chunk in run:
                yield chunk
    finally:
        await ahead.close()


async def _read_async(source: AsyncReadable, size: int) -> AsyncGenerator[object]:
    wanted = max(READ_BYTES // size, 1) * size
    while piece := await source.read(wanted):
        yield piece


async def _of_async(source: AsyncIterable[object], size: int) -> AsyncGenerator[bytes]:
    rechunker = Rechunker(size)
    async for piece in source:
        for chunk in rechunker.feed(_checked(piece)):
            yield chunk
    if rest := rechunker.end():
        yield rest


def _of_blocking(
    source: os.PathLike[str] | Readable | Iterable[Buffer], size: int
) -> Iterator[bytes]:
    """Yield the chunks of a blocking source; runs in the thread."""
    rechunker = Rechunker(size)
    with contextlib.ExitStack() as stack:
        pieces: Iterable[object]
        if isinstance(source, os.PathLike):
            pieces = _pieces(stack.enter_context(open(source, "rb", buffering=0)), size)
        elif isinstance(source, Readable):
            pieces = _pieces(source, size)
        else:
            pieces = source
        for piece in pieces:
            yield from rechunker.feed(_checked(piece))
        if rest := rechunker.end():
            yield rest


def _pieces(file: Readable, size: int) -> Iterator[object]:
    wanted = max(READ_BYTES // size, 1) * size
    while piece := file.read(wanted):
        yield piece
    if piece is None:  # Not the end: a non-blocking file has no bytes at the moment.
        raise BlockingIOError(errno.EAGAIN, "the source is a file that does not block")


def _checked(piece: object) -> Buffer:
    if isinstance(piece, (bytes, bytearray, memoryview)):
        return cast("Buffer", piece)  # A memoryview of any items is bytes here.
    raise ConfigError(f"the source gave {described(piece)}", hint=_HINT)


class _ReadAhead:
    """Runs an iterator in a thread, a few runs ahead of the loop.

    The thread is a daemon: one that waits for a pipe forever cannot be ended, and must not keep
    the process alive.
    """

    def __init__(self, make: Callable[[], Iterator[bytes]], run_length: int) -> None:
        self._make = make
        self._run_length = run_length
        self._loop = asyncio.get_running_loop()
        self._runs: deque[list[bytes]] = deque()
        self._news = asyncio.Event()
        self._room = threading.Semaphore(_RUNS_AHEAD_MAX)
        self._is_ended = False
        self._is_left = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="natsstream-source", daemon=True)
        self._thread.start()

    async def next_run(self) -> list[bytes] | None:
        """Return the next chunks; None at the end."""
        while not self._runs:
            if self._is_ended:
                if self._error is not None:
                    raise self._error
                return None
            self._news.clear()
            await self._news.wait()
        self._room.release()
        return self._runs.popleft()

    async def close(self) -> None:
        """End the thread, and wait a moment for it: the caller may use its file again."""
        self._is_left = True
        self._room.release()
        if not self._is_ended:
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_WAIT_S):
                    while not self._is_ended:
                        self._news.clear()
                        await self._news.wait()

    # In the thread.

    def _work(self) -> None:
        error: BaseException | None = None
        try:
            self._pump()
        except BaseException as raised:  # noqa: BLE001 - raised again in the loop.
            error = raised
        with suppress(RuntimeError):  # The loop is closed, so no task waits.
            self._loop.call_soon_threadsafe(self._end, error)

    def _pump(self) -> None:
        items = self._make()
        try:
            while True:
                self._room.acquire()
                run: list[bytes] = []
                for chunk in items:
                    run.append(chunk)
                    if len(run) >= self._run_length or self._is_left:
                        break
                if not run or self._is_left:
                    return
                self._loop.call_soon_threadsafe(self._push, run)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    # In the loop.

    def _push(self, run: list[bytes]) -> None:
        self._runs.append(run)
        self._news.set()

    def _end(self, error: BaseException | None) -> None:
        self._is_ended, self._error = True, error
        self._news.set()
