"""The base of every part of a configuration: reads, writes and compares JSON.

Law: the server gets back every field that it sent; `extra` holds those that this version does not
know.
None means "the server's default" and is not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Self, TypeVar, cast

from natsstream.arguments import described
from natsstream.errors import ConfigError
from natsstream.fields import Fields
from natsstream.units import format_rfc3339, time_from_ns, time_to_ns

Reader = Callable[[Fields, str], object]
"""Reads one field of the server's JSON, by its name there."""
Writer = Callable[[object], object]
SettingT = TypeVar("SettingT", bound="Setting")


class Setting:
    """One part of a configuration; its classes are frozen dataclasses.

    Attributes:
        extra: Fields that the server sent and this version does not know.
    """

    __slots__ = ()
    # JSON name -> Python name, in the order of the server.
    _json_names: ClassVar[Mapping[str, str]]
    # Python name -> reader; all other fields are texts.
    _readers: ClassVar[Mapping[str, Reader]] = {}
    # Python name -> writer, for times and other values that are not JSON.
    _writers: ClassVar[Mapping[str, Writer]] = {}

    def to_json(self) -> dict[str, object]:
        """Return the JSON object for the server: unknown fields first, then what is set here."""
        body = dict(cast("Mapping[str, object]", getattr(self, "extra")))  # noqa: B009 - A field of each subclass; the base has no slots.
        for json_name, name in self._json_names.items():
            value: object = getattr(self, name)
            if value is not None:
                body[json_name] = _to_json(self._writers.get(name, _same)(value))
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, object] | Fields) -> Self:
        """Return the part that a server sent; only the types of its fields are checked.

        Raises:
            ProtocolError: A field is of a type that no server sends.
        """
        fields = Fields.of(body, cls.__name__)
        setting = object.__new__(cls)
        for json_name, name in cls._json_names.items():
            read = cls._readers.get(name, Fields.text)
            value = read(fields, json_name) if fields.has(json_name) else None
            object.__setattr__(setting, name, value)
        known = cls._json_names
        extra = {name: value for name, value in fields.raw.items() if name not in known}
        object.__setattr__(setting, "extra", extra)
        return setting

    @classmethod
    def of(cls, value: object, what: str) -> Self:
        """Return a part that is given as its class, or as a mapping with the server's field names.

        Raises:
            ConfigError: It is neither, or has an invalid value.
        """
        if isinstance(value, cls):
            return value
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"{what} is {described(value)}", hint=f"give a {cls.__name__}, or a mapping"
            )
        setting = cls.from_json(Fields(cast("object", value), what, error=ConfigError))
        if value:  # An empty mapping removes the part.
            setting.check()
        return setting

    @classmethod
    def several(cls, values: object, what: str) -> tuple[Self, ...]:
        """Return parts that were given as a list; see `of`.

        Raises:
            ConfigError: It is no list, or an item is invalid.
        """
        if isinstance(values, str | Mapping) or not isinstance(values, Sequence):
            raise ConfigError(
                f"{what} is {described(cast('object', values))}",
                hint=f"give a list of {cls.__name__}",
            )
        items = enumerate(cast("Sequence[object]", values))
        return tuple(cls.of(item, f"{what}, number {index}") for index, item in items)

    def check(self) -> None:
        """Refuse invalid values.

        Raises:
            ConfigError: A value is invalid.
        """


def meaning(value: object) -> object:
    """Return JSON without empty fields: servers leave them out or fill them in."""
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        meant = {key: meaning(item) for key, item in items}
        return {key: item for key, item in meant.items() if item} or None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [meaning(item) for item in cast("Sequence[object]", value)] or None
    return value or None


def check_time(value: object, what: str) -> None:
    """Refuse a value that is not a time.

    Raises:
        ConfigError: It is neither a datetime with a time zone nor Unix nanoseconds.
    """
    if not isinstance(value, datetime | int) or isinstance(value, bool):
        raise ConfigError(f"{what} is {described(value)}", hint="give a datetime, or nanoseconds")
    time_to_ns(value)


def read_time(fields: Fields, name: str) -> datetime | int:
    """Return a time of the server; Unix nanoseconds if a datetime cannot hold it exactly."""
    time_ns = fields.moment(name)
    return time_ns if time_ns % 1_000 else time_from_ns(time_ns)


def write_time(value: object) -> str:
    """Return a moment as the server reads it."""
    return format_rfc3339(time_to_ns(cast("datetime | int", value)))


def reads_one(kind: type[SettingT]) -> Reader:
    """Return a reader for a part inside another part."""

    def read(fields: Fields, name: str) -> object:
        value = fields.raw[name]  # A caller's mapping may hold parts already.
        return value if isinstance(value, kind) else kind.from_json(fields.part(name))

    return read


def reads_many(kind: type[SettingT]) -> Reader:
    """Return a reader for a list of parts inside another part."""

    def read(fields: Fields, name: str) -> object:
        return tuple(
            item if isinstance(item, kind) else kind.from_json(fields.as_part(item, place))
            for place, item in fields.items(name)
        )

    return read


def _same(value: object) -> object:
    return value


def _to_json(value: object) -> object:
    if isinstance(value, Setting):
        return value.to_json()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_to_json(item) for item in cast("Sequence[object]", value)]
    return value
