"""Docstrings, hints and signatures of async methods, as they read without async; pure."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

_ASYNC_WORDS = re.compile(r"\b(async (?=with\b|for\b)|await |a(?=next\())")
# Other hints mean the async classes.
_CONNECT = re.compile(r"(?<=open a new one with )natsstream(?=\.connect\()")
_ASYNC_KINDS = re.compile(r"\bAsync(?=(Iterator|Iterable|Generator)\b)")
_AWAITED = re.compile(r"\b(?:Awaitable|Coroutine)\[([^\[\]]*)\]")


@functools.cache
def without_async(text: str) -> str:
    """Return a text whose calls are written without async."""
    return _CONNECT.sub("natsstream.blocking", _ASYNC_WORDS.sub("", text))


class Method:
    """A method of a proxy's class: `help()` and editors show that of the async class."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._shown: Callable[..., Any] | None = None

    def __get__(self, proxy: Any, kind: type[Any] | None = None) -> Any:
        name = self._function.__name__
        if proxy is not None:
            return proxy._method(name)  # noqa: SLF001 - of this room.
        if self._shown is None:

            def call(proxy: Any, *args: Any, **options: Any) -> Any:
                return getattr(proxy, name)(*args, **options)

            self._shown = shown_as(call, self._function)
        return self._shown


def shown_as(call: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that `help()` and editors show as one of the async class."""
    functools.update_wrapper(call, function)
    call.__doc__ = without_async(function.__doc__ or "")
    signature = inspect.signature(function)
    parameters = [
        each.replace(annotation=_annotation(each.annotation))
        for each in signature.parameters.values()
    ]
    vars(call)["__signature__"] = signature.replace(
        parameters=parameters, return_annotation=_annotation(signature.return_annotation)
    )
    return call


def _annotation(annotation: Any) -> Any:
    if not isinstance(annotation, str):
        return annotation
    return _AWAITED.sub(r"\1", _ASYNC_KINDS.sub("", annotation))
