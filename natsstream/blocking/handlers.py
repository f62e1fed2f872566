"""Functions that the caller gives for the loop to await: plain ones, run in threads.

Law: a handler runs in a thread of its own, never on the loop's, so it may block and use everything
of the blocking door; what it returns or raises reaches the method as if it had been awaited.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any

from natsstream.blocking.portal import Portal
from natsstream.errors import ConfigError

_AWAITED = re.compile(r"\b(Awaitable|Coroutine)\b")
_HINT = "give a plain function, which runs in a thread; async ones belong to natsstream.connect()"


def find_handlers(method: Callable[..., Any]) -> frozenset[int | str]:
    """Return names and places of the parameters whose annotation says that they are awaited.

    A type alias counts if the method's module has it at run time, not for type checkers alone.
    """
    function = getattr(method, "__func__", method)
    return _handlers_of(function, is_bound=function is not method)


def is_awaited(annotation: object, names: dict[str, Any]) -> bool:
    """Return True if an annotation is of a function whose result is awaited.

    Args:
        annotation: As the signature has it: a text, or what it means.
        names: The names of its module.
    """
    if not isinstance(annotation, str):
        return not inspect.isclass(annotation) and bool(_AWAITED.search(repr(annotation)))
    if _AWAITED.search(annotation):
        return True
    found = (names.get(word) for word in re.findall(r"\w+", annotation))
    return any(not isinstance(each, str) and is_awaited(each, names) for each in found)


def as_awaited(
    handler: Callable[..., Any],
    portal: Portal,
    *,
    to_caller: Callable[[Any], Any],
    to_loop: Callable[[Any], Any],
) -> Callable[..., Awaitable[Any]]:
    """Return the coroutine function that runs a handler in a thread of the portal.

    Args:
        handler: The caller's function.
        portal: Has the threads.
        to_caller: Gives what the caller sees in place of an argument.
        to_loop: Gives back what the loop sees in place of a result.

    Raises:
        ConfigError: It is an async function, whose coroutine nobody would await.
    """
    called = getattr(handler, "__call__", None)  # noqa: B004 - whether it is async, not whether.
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called):
        raise ConfigError(f"{_name(handler)} is an async function", hint=_HINT)

    def run(*args: Any) -> Any:
        try:
            result = handler(*args)
        except (StopIteration, SystemExit, KeyboardInterrupt) as error:
            # No future takes the first, and the others would end the loop of everybody.
            raise RuntimeError(f"{_name(handler)} raised {error!r}") from error
        if inspect.iscoroutine(result):
            result.close()
            raise ConfigError(f"{_name(handler)} returned a coroutine", hint=_HINT)
        return result

    @functools.wraps(handler, updated=())
    async def call(*args: Any) -> Any:
        return to_loop(await portal.run_in_thread(run, *map(to_caller, args)))

    return call


@functools.cache
def _handlers_of(function: Callable[..., Any], *, is_bound: bool) -> frozenset[int | str]:
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        parameters = [*inspect.signature(function).parameters.values()][is_bound:]
    except ValueError:  # Of a builtin.
        return frozenset()
    found: set[int | str] = set()
    for index, each in enumerate(parameters):
        if each.annotation is not each.empty and is_awaited(each.annotation, names):
            found |= {each.name} if each.kind is each.KEYWORD_ONLY else {each.name, index}
    return frozenset(found)


def _name(handler: Callable[..., Any]) -> str:
    return getattr(handler, "__qualname__", None) or repr(handler)
