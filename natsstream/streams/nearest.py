"""The nearest existing name, for the hint of an error.

Law: a look costs one request and a second at most, and its failure changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from natsstream.arguments import did_you_mean
from natsstream.errors import ConsumerNotFoundError, NatsStreamError, StreamNotFoundError

VIEWS = {"KV_": "js.kv", "OBJ_": "js.objects"}
"""The prefixes of the streams of views, and what opens these."""

_NAMES_MAX = 1_024  # A page of the server's answer.
_TIMEOUT_S = 1.0


@asynccontextmanager
async def hint_at_nearest(
    wanted: str, names: Callable[[], AsyncIterator[str]], prefix: str = ""
) -> AsyncGenerator[None]:
    """Let a StreamNotFoundError hint at the nearest name that exists.

    Args:
        wanted: The name that was asked for, of a stream or a view.
        names: Yields the names of all streams.
        prefix: Prefix of the streams of this kind of view; empty for streams.
    """
    try:
        yield
    except StreamNotFoundError as error:
        error.hint = nearest(wanted, await _collected(names), prefix) + error.hint
        raise


@asynccontextmanager
async def hint_at_nearest_consumer(
    wanted: str, names: Callable[[], AsyncIterator[str]]
) -> AsyncGenerator[None]:
    """Let a ConsumerNotFoundError hint at the nearest consumer of the stream.

    Args:
        wanted: The name that was asked for.
        names: Yields the names of the stream's consumers.
    """
    try:
        yield
    except ConsumerNotFoundError as error:
        error.hint = did_you_mean(wanted, await _collected(names)) + error.hint
        raise


def nearest(wanted: str, streams: list[str], prefix: str) -> str:
    """Return a question with the nearest name, and a space behind it; empty if none is near."""
    if not prefix:
        for start, opens in VIEWS.items():
            if start + wanted in streams:
                return f"did you mean {opens}.get({wanted!r})? "
        return did_you_mean(wanted, streams)
    views = [name.removeprefix(prefix) for name in streams if name.startswith(prefix)]
    bare = wanted.removeprefix(prefix)
    if bare in views:
        return f"did you mean {bare}, without the stream's prefix {prefix}? "
    for start, opens in VIEWS.items():
        if start != prefix and start + wanted in streams:
            return f"did you mean {opens}.get({wanted!r})? "
    return did_you_mean(wanted, views)


async def _collected(names: Callable[[], AsyncIterator[str]]) -> list[str]:
    """Return the names of one page, or the fewer that came in time."""
    found: list[str] = []
    with suppress(NatsStreamError, TimeoutError):
        async with asyncio.timeout(_TIMEOUT_S):
            async for name in names():
                found.append(name)
                if len(found) >= _NAMES_MAX:
                    break
    return found
