"""Lists the fields that a call takes as keywords, for `help()` and interactive completion.

Type checkers and editors read `**fields: Unpack[StreamFields]`; Python itself shows only its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

CallT = TypeVar("CallT", bound=Callable[..., Any])


def shows_fields(fields: type) -> Callable[[CallT], CallT]:
    """Return a decorator that lists the fields in a method's signature.

    Args:
        fields: The `TypedDict` of its keywords.
    """

    def decorate(call: CallT) -> CallT:
        signature = inspect.signature(call)
        *others, last = signature.parameters.values()
        if last.kind is not last.VAR_KEYWORD:
            raise TypeError(f"{call} takes no fields as keywords")
        # As text, as all annotations of this library are.
        named = [
            inspect.Parameter(name, last.KEYWORD_ONLY, default=None, annotation=_text(kind))
            for name, kind in fields.__annotations__.items()
        ]
        setattr(call, "__signature__", signature.replace(parameters=[*others, *named]))  # noqa: B010 - functions have no such attribute for type checkers.
        return call

    return decorate


def _text(kind: Any) -> str:
    return getattr(kind, "__forward_arg__", None) or repr(kind)
