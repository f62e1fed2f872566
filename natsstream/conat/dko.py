"""A map of objects that is saved field by field; Conat's DKO.

Each object has its list of fields under its key, and each field a value of its own: two clients
that write two fields of one object do not touch each other's.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self, cast

from natsstream.arguments import check_utf8, counted
from natsstream.conat.configuration import Configuration
from natsstream.conat.dkv import DKV, KeyChange, RejectedKey
from natsstream.conat.layer_events import LayerEvents
from natsstream.conat.saver import quiet_after
from natsstream.conat.shared import Release, is_last
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.values import json_text
from natsstream.errors import ConfigError, UsageError
from natsstream.values import from_json

DKO_PREFIX = "__dko__"
"""The beginning of the names of the maps below."""


@dataclass(frozen=True, slots=True)
class ObjectChange:
    """A change of an object, or a refused one.

    Attributes:
        key: The object's key.
        field: The field; None if the list of fields changed, as by a deletion of the object.
        value: The field's value; UNDEFINED if it has none, and for the list of fields.
    """

    key: str
    field: str | None = None
    value: Any = UNDEFINED


class DKO:
    """A map of dictionaries whose fields are saved each for itself.

    Made by `js.dko(name)`; use it with `async with`, or call `close`. `objects["a"]`, `objects.a`
    and `objects.get("a")` read the same object; changes of the returned dictionary are not saved.
    Every method raises `UsageError` after the end, and the error that ended the sync.

    Events for `on`: "change" and "reject" (`ObjectChange`), "stable" (this object) and
    "closed" (None, or the error that ended it).

    Args:
        name: Its name.
        dkv: The map below, open; it is closed with this object.
        release: Counts one user less, and returns True for the last one.
    """

    _is_live: ClassVar[bool] = True

    def __init__(self, name: str, dkv: DKV, release: Release = is_last) -> None:
        self._name = name
        self._dkv = dkv
        self._events = LayerEvents()
        self._is_closed = False
        self._release = release
        # The list of fields that was asked for last, and its fields: changes of an object come
        # together, one of each field.
        self._last_fields: tuple[object, frozenset[str]] = UNDEFINED, frozenset()
        dkv.on("change", self._on_change)
        dkv.on("reject", self._on_reject)
        dkv.on("stable", self._on_stable)
        dkv.on("closed", self._events.close)

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def dkv(self) -> DKV:
        """The map below: lists of fields, and values of fields."""
        return self._dkv

    async def close(self) -> None:
        """Leave, as `DKV.close`."""
        if not self._is_closed and self._release():
            self._is_closed = True
            try:
                await self._dkv.close()
            finally:
                self._dkv.off("change", self._on_change)
                self._dkv.off("reject", self._on_reject)
                self._dkv.off("stable", self._on_stable)
                self._dkv.off("closed", self._events.close)
                self._events.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with quiet_after(kind):
            await self.close()

    # Writing.

    def set(self, key: str, value: Any) -> None:
        """Set an object here, and save the fields that differ; None and UNDEFINED delete it.

        Raises:
            ConfigError: It is no mapping of text, or a field cannot be encoded.
        """
        self._check()
        if value is None or value is UNDEFINED:
            self.delete(key)
            return
        if not isinstance(value, Mapping):
            raise ConfigError("values must be objects", hint="give a dict whose keys are text")
        # The cast says what `isinstance` cannot.
        fields_of = cast("Mapping[object, Any]", value)
        wanted = {check_utf8(field, "a field"): each for field, each in fields_of.items()}
        fields, before = list(wanted), self._fields(key)
        for field, each in wanted.items():
            path = _path(key, field)
            if not _is_same(self._dkv.get(path), each):
                self._dkv.set(path, each)
        for field in before or ():
            if field not in wanted:
                self._dkv.delete(_path(key, field))
        if fields != before:
            self._dkv.set(key, fields)

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is ignored."""
        self._check()
        fields = self._fields(key)
        if fields is not None:
            self._dkv.delete(key)
            for field in fields:
                self._dkv.delete(_path(key, field))

    def clear(self) -> None:
        """Delete all objects that are known here."""
        self._check()
        self._dkv.clear()

    # Reading.

    def get(self, key: str, default: Any = UNDEFINED) -> Any:
        """Return an object as a new dictionary, or the default."""
        self._check()
        fields = self._fields(key)
        if fields is None:
            return default
        values = {field: self._dkv.get(_path(key, field)) for field in fields}
        return {field: value for field, value in values.items() if value is not UNDEFINED}

    def get_all(self) -> dict[str, dict[str, Any]]:
        """Return all objects."""
        return {key: self.get(key) for key in self.keys()}

    def has(self, key: str) -> bool:
        """Return True if an object is there."""
        self._check()
        return self._fields(key) is not None

    def keys(self) -> list[str]:
        """Return the keys of all objects."""
        self._check()
        fields_of = cache(self._field_set)  # The fields of many objects may stand mixed.
        return [key for key in self._dkv if not _is_path(key, fields_of) and self.has(key)]

    @property
    def length(self) -> int:
        """Number of objects."""
        return len(self.keys())

    async def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, and return all of it; see `CoreStream.config`."""
        self._check()
        return await self._dkv.config(changes)

    # Saving.

    async def save(self) -> None:
        """Save all changes; errors and cost as for `DKV.save`."""
        self._check()
        await self._dkv.save()

    def has_unsaved_changes(self) -> bool:
        """Return True if something is not saved; False after the end."""
        return not self._is_closed and self._dkv.has_unsaved_changes()

    def unsaved_changes(self) -> list[tuple[str, str]]:
        """Return key and field of the values that are not saved."""
        self._check()
        fields_of = cache(self._field_set)
        unsaved = self._dkv.unsaved_changes()
        parts = [_parts(path) for path in unsaved if _is_path(path, fields_of)]
        return [each for each in parts if each is not None]

    # Events.

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function with each event of a name; it must not wait.

        Raises:
            UsageError: The event does not exist.
        """
        self._events.on(event, listener)

    def off(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function no more."""
        self._events.off(event, listener)

    def changes(self) -> AsyncGenerator[ObjectChange]:
        """Yield the changes from this call on; ends when the map is closed.

        Raises:
            NatsStreamError: The error that ended the sync.
            SlowReaderError: More than 65,536 changes waited; the next read resumes behind them.
        """
        self._check()
        return self._events.read("change")

    # Python's ways to say the same.

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.has(key)

    def __getitem__(self, key: str) -> dict[str, Any]:
        if not self.has(key):
            raise KeyError(key)
        return self.get(key)

    def __setitem__(self, key: str, value: Mapping[str, Any]) -> None:
        self.set(key, value)

    def __delitem__(self, key: str) -> None:
        if not self.has(key):
            raise KeyError(key)
        self.delete(key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not self.has(name):
            raise AttributeError(f"DKO {name!r} has no value")
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        elif hasattr(type(self), name):
            raise UsageError(f"method name {name!r} is read only", hint="use objects[name] = value")
        else:
            self.set(name, value)

    def __delattr__(self, name: str) -> None:
        if not self.has(name):
            raise AttributeError(f"DKO {name!r} has no value")
        self.delete(name)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else counted(self.length, "object")
        return f"<DKO {self._name}: {state}>"

    # Internals.

    def _fields(self, key: str) -> list[str] | None:
        """Return the fields of an object; None if there is no object."""
        return _listed(self._dkv.get(key))

    def _field_set(self, key: str) -> frozenset[str]:
        """Return the fields of an object, to look for one of them; empty for no object."""
        found: object = self._dkv.get(key)
        if found is not self._last_fields[0]:
            self._last_fields = found, frozenset(_listed(found) or ())
        return self._last_fields[1]

    def _change(self, path: str, value: object) -> ObjectChange:
        parts = _parts(path)
        if parts is None or not (_is_path(path, self._field_set) or value is UNDEFINED):
            return ObjectChange(path)
        return ObjectChange(*parts, value)

    def _on_change(self, change: KeyChange) -> None:
        value = UNDEFINED if change.is_deleted else change.value
        self._events.emit("change", self._change(change.key, value))

    def _on_reject(self, rejected: RejectedKey) -> None:
        change = self._change(rejected.key, rejected.value)
        self._events.reject(f"DKO {self.name}", [change], rejected.error)

    def _on_stable(self, _: object) -> None:
        self._events.emit("stable", self)

    def _check(self) -> None:
        if self._is_closed:
            raise UsageError(f"DKO {self._name} is closed", hint="js.dko() opens it again")
        error = self._dkv.core.error
        if error is not None:
            raise error.with_traceback(None)


def _path(key: str, field: str) -> str:
    return json_text([key, field])


def _parts(path: str) -> tuple[str, str] | None:
    """Return key and field of a path; None if it is none."""
    if not path.startswith("["):
        return None
    try:
        parts = from_json(path)
    except (ValueError, RecursionError):
        return None
    match parts:
        case [str(key), str(field)]:
            return key, field
        case _:
            return None


def _is_path(key: str, fields_of: Callable[[str], Container[str]]) -> bool:
    """Return True if a key of the map below is that of a field.

    A key of an object may look like one: it is one if the object has the field.
    """
    parts = _parts(key)
    return parts is not None and parts[1] in fields_of(parts[0])


def _listed(found: object) -> list[str] | None:
    """Return the fields in the value of an object's key; None if it lists none."""
    if not isinstance(found, list):
        return None
    # The cast says what `isinstance` cannot: JSON and MessagePack have lists of values.
    fields = cast("list[object]", found)
    return [each for each in fields if isinstance(each, str)]


def _is_same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other
