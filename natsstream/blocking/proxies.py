"""The blocking proxies of async objects: made from the async classes, not written.

Law: what a method or an iterator returns crosses as it is, unless there is something to await or to
iterate in it, or it is live: the loop changes it. Then its proxy crosses. Methods run on the loop;
attributes are read where one is, those of live objects on the loop. A function that a method awaits
is a plain one here (`handlers.py`).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from abc import ABCMeta
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from contextlib import closing, suppress
from types import TracebackType
from typing import Any, NoReturn, TypeAlias, cast

from natsstream.blocking.answer import Answer
from natsstream.blocking.handlers import as_awaited, find_handlers
from natsstream.blocking.portal import Portal, say_it_blocking
from natsstream.blocking.reader import Reader
from natsstream.blocking.words import Method, shown_as, without_async
from natsstream.errors import ConnectionClosedError, NatsStreamError


class SyncProxy:
    """Stands for one async object; its methods return results instead of awaitables.

    Each class of async objects has its own subclass, made when the first object of it crosses.
    """

    __slots__ = ("__weakref__", "_held", "_portal")

    def __init__(self, held: Any, portal: Portal) -> None:
        self._held = held
        self._portal = portal

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        try:
            value = getattr(self._held, name)
        except (AttributeError, NatsStreamError) as error:
            say_it_blocking(error)
            raise
        return self._method(name) if inspect.isroutine(value) else self._wrap(value)

    def __dir__(self) -> list[str]:
        own = [name for name in super().__dir__() if name.startswith("__")]
        return [*own, *(name for name in dir(self._held) if not name.startswith("_"))]

    def __repr__(self) -> str:
        return f"<blocking {self._held!r}>"

    def __reduce__(self) -> NoReturn:
        self._portal.__reduce__()

    def _wrap(self, value: Any) -> Any:
        return self if value is self._held else wrap(value, self._portal)

    def _async_side(self, value: Any, is_handler: bool) -> Any:  # noqa: FBT001 - by place, in a row.
        if is_handler and callable(value) and not isinstance(value, SyncProxy):
            portal = self._portal
            to_caller = functools.partial(wrap, portal=portal)
            return as_awaited(value, portal, to_caller=to_caller, to_loop=_held_by)
        return _held_by(value)

    def _method(self, name: str) -> Callable[..., Any]:
        method = getattr(self._held, name)

        @functools.wraps(method)
        def call(*args: Any, **options: Any) -> Any:
            if name == "close" and self._portal.is_stopped:
                return None
            if name == "close" and self._held is self._portal.root:
                # The context's own `close` is the connection's, and frees the thread as well.
                return self._portal.stop()
            handlers = find_handlers(method)
            places = [self._async_side(each, index in handlers) for index, each in enumerate(args)]
            options = {
                key: self._async_side(value, key in handlers) for key, value in options.items()
            }
            return self._wrap(self._portal.call(method, *places, **options))

        call.__doc__ = without_async(method.__doc__ or "")
        # A signature of its own still has `self`; that of the bound method has not.
        vars(call).pop("__signature__", None)
        return call


class _Iterable(SyncProxy):
    """Each loop over it is one of its own."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return _items(self._held, self._portal)


class _ArrowIterable(_Iterable):
    """Whatever reads Arrow's C stream reads it: record batches as they arrive, none twice."""

    __slots__ = ()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        # The schema first: it says what is to be installed where pyarrow is not.
        schema = self.schema()
        import pyarrow as pa  # noqa: PLC0415 - pyarrow is an extra.

        batches = pa.RecordBatchReader.from_batches(schema, self.batches())
        return batches.__arrow_c_stream__(requested_schema)


class _OwnIterator(SyncProxy):
    """It is its own iterator: nothing is read ahead, so that what it says of itself stays true.

    A loop that was left can be taken up by another one, or by another of its ways to read.
    """

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        take_ready = getattr(self._held, "take_ready", None)
        item = take_ready() if take_ready is not None else None
        if item is not None:
            return self._wrap(item)  # It was there: no need to cross into the loop's thread.
        try:
            return self._wrap(self._portal.call(_next, self._held))
        except StopAsyncIteration:
            raise StopIteration from None

    def _wrap(self, value: Any) -> Any:
        if isinstance(value, AsyncGenerator):
            return _steps(cast("AsyncGenerator[Any]", value), self._portal)
        return super()._wrap(value)


class _Context(SyncProxy):
    __slots__ = ()

    def __enter__(self) -> Any:
        return self._wrap(self._portal.call(self._held.__aenter__))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            return self._portal.call(self._held.__aexit__, kind, error, traceback)
        except ConnectionClosedError:
            if error is None:
                raise
            return None  # Why the block was left tells more.


class _Settable(SyncProxy):
    """Its attributes are set and deleted, as the keys of a map are."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
        else:
            self._portal.call(self._held.__setattr__, name, _held_by(value))

    def __delattr__(self, name: str) -> None:
        self._portal.call(self._held.__delattr__, name)


class _Collection(SyncProxy):
    """It holds things that it is asked for without waiting, as a dictionary does its keys."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._portal.call(list, self._held))


class _Live(_Collection):
    """The loop changes it: all that one call reads of it is of one moment."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if inspect.isroutine(inspect.getattr_static(self._held, name, None)):
            return self._method(name)
        value = self._read(getattr, self._held, name)
        return self._method(name) if inspect.isroutine(value) else self._wrap(value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._wrap(self._read(list, self._held)))

    def _read(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function where nothing changes meanwhile."""
        portal = self._portal
        is_safe = portal.is_stopped or portal.is_current_thread
        return function(*args) if is_safe else portal.call(function, *args)


class _LiveView(_Live):
    """It has nothing to await; what a method yields is read to its end."""

    __slots__ = ()

    def _method(self, name: str) -> Callable[..., Any]:
        method = getattr(self._held, name)

        @functools.wraps(method)
        def call(*args: Any) -> Any:
            return self._read(_at_once, method, *map(_held_by, args))

        return call


def _at_once(method: Callable[..., Any], *args: Any) -> Any:
    result = method(*args)
    is_lazy = isinstance(result, (Iterator, KeysView, ValuesView, ItemsView))
    return list(cast("Iterable[Any]", result)) if is_lazy else result


# Special methods that a proxy has if its object has them.
_SPECIAL = (
    "__call__", "__contains__", "__delitem__", "__getitem__", "__len__", "__setitem__",
    "_repr_html_",
)  # fmt: skip
_SPECIAL_OF_VIEWS = (*_SPECIAL, "__eq__", "__reversed__")


_Rule: TypeAlias = Callable[[Any, Portal], Any]
_RULES: dict[type[Any], _Rule | None] = {}


def wrap(value: Any, portal: Portal) -> Any:
    """Return values as they are, and whatever has something to await as its blocking proxy."""
    rule = _rule(cast("type[Any]", type(value)))
    return value if rule is None else rule(value, portal)


def find_proxy(kind: type[Any]) -> type[Any] | None:
    """Return the proxy of a class; None for a class whose objects cross as they are."""
    rule = _rule(kind)
    if isinstance(rule, functools.partial):
        return cast("type[Any]", rule.args[0])  # As `_make_rule` has put it there.
    return rule if isinstance(rule, type) else None


def _held_by(value: Any) -> Any:
    """Return what a proxy stands for, and everything else as it is."""
    return object.__getattribute__(value, "_held") if isinstance(value, SyncProxy) else value


def _rule(kind: type[Any]) -> _Rule | None:
    """Return how values of a class cross to the caller; None when they cross as they are."""
    try:
        return _RULES[kind]
    except KeyError:
        # Two threads may come here together: the first one's proxy is the proxy.
        return _RULES.setdefault(kind, _make_rule(kind))


def _make_rule(kind: type[Any]) -> _Rule | None:
    if issubclass(kind, asyncio.Future):
        return _answer
    if issubclass(kind, AsyncGenerator):
        return _items
    if kind in (list, tuple, dict):
        return _container
    if _is_list(kind):
        members = {"__doc__": kind.__doc__, "__module__": "natsstream.blocking"}
        proxy = type(kind.__name__, (kind,), members)
        return functools.partial(_filled, cast("type[list[Any]]", proxy))  # As its base is one.
    return _make_proxy(kind) if _has_async(kind) or _is_live(kind) else None


def _is_list(kind: type[Any]) -> bool:
    return issubclass(kind, list) and kind.__module__.startswith("natsstream.")


def _is_live(kind: type[Any]) -> bool:
    return getattr(kind, "_is_live", False) is True


def _has_async(kind: type[Any]) -> bool:
    if hasattr(kind, "__aiter__") or hasattr(kind, "__aenter__"):
        return True
    if inspect.iscoroutinefunction(inspect.getattr_static(kind, "__call__", None)):
        return True
    return kind.__module__.startswith("natsstream.") and any(
        inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member)
        for name, member in inspect.getmembers_static(kind)
        if not name.startswith("_")
    )


def _make_proxy(kind: type[Any]) -> type[SyncProxy]:
    bases: list[type[SyncProxy]] = []
    if hasattr(kind, "__anext__"):
        bases.append(_OwnIterator)
    elif hasattr(kind, "__aiter__"):
        bases.append(_ArrowIterable if hasattr(kind, "__arrow_c_stream__") else _Iterable)
    elif _is_live(kind):
        bases.append(_Live if _has_async(kind) else _LiveView)
    elif hasattr(kind, "__contains__"):
        bases.append(_Collection)
    if hasattr(kind, "__aenter__"):
        bases.append(_Context)
    if _has_own(kind, "__setattr__"):
        bases.append(_Settable)
    special = _SPECIAL_OF_VIEWS if _LiveView in bases else _SPECIAL
    members: dict[str, Any] = {
        "__slots__": (),
        "__doc__": without_async(kind.__doc__ or ""),
        "__module__": "natsstream.blocking",
        # Not `hasattr`: each class has a `__call__`, which makes its objects.
        **{name: _forwarded(name, kind) for name in special if _has(kind, name)},
        **_public_members(kind),
    }
    proxy = type(kind.__name__, tuple(bases) or (SyncProxy,), members)
    for base in (Mapping, Sequence):
        if issubclass(kind, base):
            cast("ABCMeta", base).register(proxy)  # Its methods would read item by item.
    return proxy


def _has(kind: type[Any], name: str) -> bool:
    return any(name in vars(base) for base in kind.__mro__)


def _has_own(kind: type[Any], name: str) -> bool:
    return getattr(kind, name) is not getattr(object, name)


def _public_members(kind: type[Any]) -> dict[str, Any]:
    """Return methods and properties for `help()`; `__getattr__` finds all that is not here."""
    members: dict[str, Any] = {}
    for name, member in inspect.getmembers_static(kind):
        if name.startswith("_"):
            continue
        if inspect.isfunction(member) and member.__name__ == name:
            members[name] = Method(member)
        elif isinstance(member, property | functools.cached_property):
            members[name] = _property(name, member.__doc__ or "")
    return members


def _property(name: str, doc: str) -> property:
    def read(self: SyncProxy) -> Any:
        return type(self).__getattr__(self, name)

    return property(read, doc=without_async(doc))


def _forwarded(name: str, kind: type[Any]) -> Callable[..., Any]:
    def forward(self: Any, *args: Any, **options: Any) -> Any:
        return self._method(name)(*args, **options)

    member = inspect.getattr_static(kind, name)
    return shown_as(forward, member) if inspect.isfunction(member) else forward


def _items(items: AsyncIterable[Any], portal: Portal) -> Iterator[Any]:
    with closing(Reader(items, portal).runs()) as runs:
        for run in runs:
            yield from _container(run, portal)


async def _next(items: AsyncIterator[Any]) -> Any:
    return await anext(items)


async def _close(items: AsyncGenerator[Any]) -> None:
    await items.aclose()


def _steps(items: AsyncGenerator[Any], portal: Portal) -> Iterator[Any]:
    """Iterate without reading ahead: each item is asked for when it is wanted."""
    try:
        while True:
            try:
                item = portal.call(_next, items)
            except StopAsyncIteration:
                return
            yield wrap(item, portal)
    finally:
        with suppress(NatsStreamError):  # Closed or forked: there is nothing left to free.
            portal.call(_close, items)


def _answer(future: asyncio.Future[Any], portal: Portal) -> Answer[Any]:
    return Answer(future, portal, wrap)


def _filled(proxy: type[list[Any]], values: list[Any], portal: Portal) -> list[Any]:
    """Return a list of a class of its own with the same attributes, and with proxies in it."""
    made = proxy.__new__(proxy)
    made.__dict__.update(vars(values))
    made.extend(_container([*values], portal))
    return made


def _container(values: Any, portal: Portal) -> Any:
    """Return the same container, or another one where values have proxies."""
    if isinstance(values, dict):
        pairs = cast("dict[Any, Any]", values)
        before = [*pairs.values()]
        after = _container(before, portal)
        return pairs if after is before else dict(zip(pairs, after, strict=True))
    kinds = cast("set[type[Any]]", set(map(type, values)))
    # Deeper levels are data, and returned as they are.
    if all(_rule(kind) in (None, _container) for kind in kinds):
        return values
    return type(values)(wrap(value, portal) for value in values)
