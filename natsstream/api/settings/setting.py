"""The base of configurations and their parts: checks, reads, writes and compares fields.

Law: the server gets back every field that it sent; `extra` holds those that this version does not
know. None means "the server's default" and is not sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from types import NoneType, UnionType
from typing import ClassVar, Literal, Self, Union, cast, get_args, get_origin, get_type_hints

from natsstream.api.settings.field_kinds import BY_TYPE, FieldKind, check_extra, choice
from natsstream.arguments import described
from natsstream.errors import ConfigError
from natsstream.fields import Fields
from natsstream.notebook import NotebookTable

_WITHOUT_EFFECT = ("none", "default")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Setting(NotebookTable):
    """A configuration, or a part of one; its classes are frozen dataclasses.

    Attributes:
        extra: Fields that the server sent and this version does not know.
    """

    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    # Its name in errors.
    _noun: ClassVar[str] = ""
    # The kinds of fields that do not follow from their types, by Python name.
    special_kinds: ClassVar[Mapping[str, FieldKind]] = {}

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Refuse invalid values; parts given as mappings become their classes.

        Raises:
            ConfigError: A field has an invalid value.
            SubjectError: A subject or filter is not legal.
        """
        for name, kind in field_kinds(type(self)).items():
            value: object = getattr(self, name)
            if value is not None or kind.is_required:
                object.__setattr__(self, name, kind.check(value, self._what(name)))
        check_extra(self.extra, self._what("extra"))

    def to_json(self) -> dict[str, object]:
        """Return the JSON object for the server: unknown fields first, then what is set here."""
        body = dict(self.extra)
        for name, value in self.values().items():
            if value is not None:
                body.update(self.field_json(name, value))
        return body

    @classmethod
    def from_json(cls, body: Mapping[str, object] | Fields) -> Self:
        """Return the configuration that a server sent; durations become seconds.

        Only the types are checked: other clients make streams that we would refuse to make.

        Raises:
            ProtocolError: A field is of a type that no server sends.
        """
        source, made = Fields.of(body, cls.__name__), object.__new__(cls)
        for name, kind in field_kinds(cls).items():
            is_there = any(map(source.has, kind.json_names))
            value = kind.read(source, kind.json_names[0]) if is_there else None
            object.__setattr__(made, name, value)
        known = json_names(cls)
        extra = {name: value for name, value in source.raw.items() if name not in known}
        object.__setattr__(made, "extra", extra)
        return made

    def values(self) -> dict[str, object]:
        """Return every field of this version by its Python name; None if it is not set.

        Cost: no request.
        """
        return {name: getattr(self, name) for name in field_kinds(type(self))}

    def given(self) -> dict[str, object]:
        """Return the fields that are set here by their Python names; unknown ones by their JSON's.

        Cost: no request.
        """
        values = Setting.values(self).items()
        return {**{name: value for name, value in values if value is not None}, **self.extra}

    def field_json(self, name: str, value: object) -> dict[str, object]:
        """Return the server's fields for one field of this class and its value."""
        kind = field_kinds(type(self))[name]
        return {kind.json_names[0]: kind.write(value)}

    @classmethod
    def other_names(cls) -> Mapping[str, str]:
        """Return the names of the fields here, by those that the server has for them."""
        return json_names(cls)

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
                f"{what} is {described(value)}", hint=f"give {cls._example(value)}, or a mapping"
            )
        names = json_names(cls)
        for name, kind in field_kinds(cls).items():
            if name in value and name not in names:
                raise ConfigError(
                    f"{what}: a mapping has the server's field names, and {name!r} is "
                    f"{kind.json_names[0]!r} there",
                    hint=f"give {cls.__name__}({name}=...), or {{{kind.json_names[0]!r}: ...}}",
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
                hint=f"give a list: [{cls._example(cast('object', values))}]",
            )
        items = enumerate(cast("Sequence[object]", values))
        return tuple(cls.of(item, f"{what}, number {index}") for index, item in items)

    @classmethod
    def _example(cls, value: object) -> str:
        """Return what to write instead of a value: a name becomes that of the part."""
        is_name = isinstance(value, str) and "name" in field_kinds(cls)
        return f"{cls.__name__}(name={value!r})" if is_name else f"{cls.__name__}(...)"

    def _what(self, name: str) -> str:
        """Return the name of a field in errors."""
        return f"{self._noun}.{name}"

    def __repr__(self) -> str:
        values = {**Setting.values(self), "extra": self.extra or None}
        shown = ", ".join(f"{name}={each!r}" for name, each in values.items() if each is not None)
        return f"{type(self).__name__}({shown})"


@cache
def field_kinds(config: type[Setting]) -> Mapping[str, FieldKind]:
    """Return the kinds of the fields of a class by Python name, `extra` left out."""
    types = get_type_hints(config)
    kinds: dict[str, FieldKind] = {}
    for item in fields(config):
        if item.name != "extra":
            kind = config.special_kinds.get(item.name) or _kind_of(types[item.name])
            kinds[item.name] = replace(
                kind,
                json_names=kind.json_names or (item.name,),
                is_required=item.default is MISSING,
            )
    return kinds


@cache
def json_names(config: type[Setting]) -> Mapping[str, str]:
    """Return the Python names of the fields of a class by the server's names."""
    kinds = field_kinds(config).items()
    return {json_name: name for name, kind in kinds for json_name in kind.json_names}


def meaning(value: object) -> object:
    """Return JSON without empty fields: servers leave them out or fill them in."""
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        meant = {key: meaning(item) for key, item in items}
        return {key: item for key, item in meant.items() if item} or None
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [meaning(item) for item in cast("Sequence[object]", value)] or None
    return value or None


def says_something(value: object) -> bool:
    """Return True unless a value means the same as leaving the field out."""
    return bool(value) and value not in _WITHOUT_EFFECT


def _kind_of(annotation: object) -> FieldKind:
    """Return the kind of a field by its type."""
    is_union = get_origin(annotation) in (Union, UnionType)
    types = frozenset(get_args(annotation) if is_union else (annotation,)) - {NoneType}
    if types in BY_TYPE:
        return BY_TYPE[types]
    (only,) = types
    if get_origin(only) is Literal:
        return choice(get_args(only))
    if get_origin(only) is Sequence:
        return parts(get_args(only)[0])
    return part(cast("type[Setting]", only))


def part(kind: type[Setting]) -> FieldKind:
    """Return the kind of a part with fields of its own."""

    def read(source: Fields, name: str) -> object:
        value = source.raw[name]  # A caller's mapping may hold parts already.
        return value if isinstance(value, kind) else kind.from_json(source.part(name))

    return FieldKind(check=kind.of, read=read, write=kind.to_json, meaning=meaning)


def parts(kind: type[Setting]) -> FieldKind:
    """Return the kind of a list of parts."""

    def read(source: Fields, name: str) -> object:
        return tuple(
            item if isinstance(item, kind) else kind.from_json(source.as_part(item, place))
            for place, item in source.items(name)
        )

    def write(values: Sequence[Setting]) -> object:
        return [each.to_json() for each in values]

    return FieldKind(check=kind.several, read=read, write=write, meaning=meaning)
