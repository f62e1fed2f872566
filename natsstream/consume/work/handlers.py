"""Checks of handlers; pure.

Law: an invalid handler is refused before the first message, not once for each message.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

from natsstream.arguments import check_callable, misfit
from natsstream.consume.delivery.delivered import DeliveredMessage
from natsstream.errors import ConfigError, ConnectionClosedError, UsageError

Handler: TypeAlias = Callable[[DeliveredMessage], Awaitable[object]]
"""Handles one message: returning acks it, raising naks it."""

ErrorSink: TypeAlias = Callable[[BaseException, DeliveredMessage], Awaitable[object] | object]
"""Called with the error of a message; a coroutine function is awaited."""

_EXAMPLE = "async def handle(message): ..."


class NotBegunError(ConnectionClosedError):
    """The connection is closed, and the handler was not called: its message had no attempt."""


def check_handler(handler: object) -> Handler:
    """Return a handler.

    Raises:
        ConfigError: It is no coroutine function, or does not take one argument.
    """
    function = check_callable(handler, "handler")
    looked_at = inspect.unwrap(function)
    if not _is_one_of(looked_at, inspect.isroutine, type):
        looked_at = getattr(looked_at, "__call__", looked_at)  # noqa: B004 - a callable object.
    name = getattr(handler, "__qualname__", type(handler).__name__)
    if _is_one_of(looked_at, inspect.isasyncgenfunction, None):
        raise ConfigError(
            f"handler {name} is an async generator: it would never run",
            hint="take the yield out",
        )
    if _is_one_of(looked_at, inspect.isgeneratorfunction, None):
        raise ConfigError(
            f"handler {name} is a generator: it would never run", hint="take the yield out"
        )
    if not inspect.iscoroutinefunction(function) and not inspect.iscoroutinefunction(looked_at):
        raise ConfigError(
            f"handler {name} is not a coroutine function",
            hint=f"write it as {_EXAMPLE}; put work that blocks into "
            "await asyncio.to_thread(function, message)",
        )
    _check_arguments(function, name)
    # The cast says what the checks above have found out.
    return cast("Handler", function)


def check_result(result: object, handler: object) -> None:
    """Refuse a coroutine that a handler has not awaited: it would look like success.

    Raises:
        UsageError: The handler has returned a coroutine.
    """
    if inspect.iscoroutine(result):
        result.close()
        name = getattr(handler, "__qualname__", type(handler).__name__)
        raise UsageError(
            f"handler {name} returned a coroutine without awaiting it: nothing was done",
            hint="write `return await other(message)`",
        )


def _is_one_of(function: object, test: Callable[[object], bool], kind: type[object] | None) -> bool:
    return test(function) or (kind is not None and isinstance(function, kind))


def _check_arguments(function: Callable[..., object], name: str) -> None:
    if wrong := misfit(function, 1):
        raise ConfigError(
            f"handler {name}{inspect.signature(function)} does not take one message: {wrong}",
            hint="let it take one argument, the message; give it more with functools.partial",
        )
