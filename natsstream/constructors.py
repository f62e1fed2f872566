"""Constructors that answer the names they do not know; pure.

Law: an unknown name is refused with the same words wherever it is given: to the class, to a call
that makes one from keywords, to a server of `natsstream.testing`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar, cast

from natsstream.arguments import check_names
from natsstream.errors import ConfigError
from natsstream.foreign_names import FIELDS

ClassT = TypeVar("ClassT", bound=type)
ConfigT = TypeVar("ConfigT")


def given_config(
    kind: type[ConfigT], config: ConfigT | str | None, fields: Mapping[str, object], noun: str
) -> ConfigT:
    """Return a configuration that is given whole, or as a name and keywords.

    Args:
        kind: The class of the configuration, a dataclass.
        config: A configuration, or a name; the class judges None.
        fields: The keywords.
        noun: The word for one in errors, such as `stream`.

    Raises:
        ConfigError: Both are given, or a keyword is unknown.
        UsageError: A field is not legal.
    """
    if isinstance(config, kind):
        if fields:
            raise ConfigError(f"give {kind.__name__} or keywords, not both")
        return config
    check_arguments(kind, fields)
    if "name" in fields:
        raise ConfigError(f"the {noun}'s name is given twice", hint="give it once")
    # A class that is called with its fields, which a type cannot say.
    return cast("Callable[..., ConfigT]", kind)(name=config, **fields)


def check_arguments(kind: type[object], given: Iterable[str]) -> None:
    """Refuse names that a constructor does not have.

    Args:
        kind: The class. Its `other_names`, if it has them, are its fields by the server's names.
        given: The names of the arguments.

    Raises:
        ConfigError: A name is unknown; the hint shows what it is here, or the nearest.
    """
    title, known = kind.__name__, list(inspect.signature(kind).parameters)
    word = "field" if is_dataclass(kind) else "argument"
    other_names = cast("Callable[[], Mapping[str, str]] | None", getattr(kind, "other_names", None))
    aliases = dict(other_names() if other_names else {}) | dict(FIELDS.get(title, {}))
    rest = "other fields of the server go into extra={...}" if "extra" in known else ""
    check_names(given, known, f"{title} {word}", hint=rest, aliases=aliases)


def answers_fields(kind: ClassT) -> ClassT:
    """Let a dataclass with slots answer names of fields that it does not have.

    Return the class, which is left as it is if it is no dataclass.

    Its constructor is written anew, with one more parameter that takes the unknown. A wrapper would
    make `Expect` and `PublishMessage` a quarter slower; this constructor is faster than before.
    """
    made = cast("Any", kind)
    if not hasattr(made, "__dataclass_fields__"):
        return kind
    init = made.__init__

    def refuse(self: object, unknown: Mapping[str, object], given: Mapping[str, object]) -> None:
        check_arguments(made, unknown)
        init(self, **{name: value for name, value in given.items() if value is not MISSING})

    text, scope = _written(made)
    scope["_refuse"] = refuse
    exec(text, scope)  # noqa: S102 - As dataclasses do; the names in it are those of fields.
    made.__init__ = functools.wraps(init)(scope["__init__"])
    return kind


def _written(kind: Any) -> tuple[str, dict[str, Any]]:
    """Return the text of a dataclass's constructor, and the names that it uses."""
    factories = {each.name: each.default_factory for each in fields(kind)}
    scope: dict[str, Any] = {"_MISSING": MISSING}
    heads, lines, wanted = ["self"], [""], ["_unknown"]
    for parameter in inspect.signature(kind).parameters.values():
        name, default = parameter.name, parameter.default
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in heads:
            heads.append("*")
        if default is parameter.empty:
            # Not left to Python, which would report it before a name that is unknown.
            wanted.append(f"{name} is _MISSING")
            default = MISSING
        heads.append(f"{name}=_default_{name}")
        if factories[name] is not MISSING:
            lines.append(f"if {name} is _default_{name}: {name} = _make_{name}()")
        lines.append(f"_set_{name}(self, {name})")
        scope |= {f"_default_{name}": default, f"_make_{name}": factories[name]}
        scope[f"_set_{name}"] = getattr(kind, name).__set__  # Of the slot, also of a frozen class.
    given = ", ".join(f"{name!r}: {name}" for name in inspect.signature(kind).parameters)
    lines[0] = f"if {' or '.join(wanted)}: return _refuse(self, _unknown, {{{given}}})"
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    return f"def __init__({', '.join(heads)}, **_unknown):\n " + "\n ".join(lines), scope


def answers_arguments(kind: ClassT) -> ClassT:
    """Let any class answer names of arguments that its constructor does not have; return it."""
    made = cast("Any", kind)
    init = made.__init__

    @functools.wraps(init)
    def checked(self: object, *args: object, **options: object) -> None:
        check_arguments(made, options)
        init(self, *args, **options)

    made.__init__ = checked
    return kind
