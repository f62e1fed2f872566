"""Constructors that answer the names they do not know; pure.

Law: an unknown name is refused with the same words wherever it is given: to the class, to a call
that makes one from keywords, to a server of `natsstream.testing`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar, cast

from natsstream.arguments import check_names, type_name
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
        ConfigError: Both are given, a keyword is unknown, or the configuration is of another class.
        UsageError: A field is not legal.
    """
    if isinstance(config, kind):
        if fields:
            raise ConfigError(
                f"give {kind.__name__} or keywords, not both",
                hint=f"put the keywords into {kind.__name__}(...), or give the name instead of it",
            )
        return config
    _check_kind(kind, config, noun)
    check_arguments(kind, fields)
    if "name" in fields:
        raise ConfigError(f"the {noun}'s name is given twice", hint="give it once")
    # A class that is called with its fields, which a type cannot say.
    return cast("Callable[..., ConfigT]", kind)(name=config, **fields)


def _check_kind(kind: type[object], config: object, noun: str) -> None:
    """Refuse what holds a configuration but is not of its class: one of nats-py, or a mapping."""
    given = type(config)
    is_ours_or_theirs = given.__module__.partition(".")[0] in ("nats", "natsstream")
    if is_ours_or_theirs or issubclass(given, Mapping):
        raise ConfigError(
            f"the {noun} is given as {type_name(config)}",
            hint=f"give ns.{kind.__name__}(...), or a name and keywords",
        )


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


def answers_arguments(kind: ClassT) -> ClassT:
    """Let a class answer names of arguments that its constructor does not have; return it.

    Cost: 0.3 us for each object, so it is for what users make, and not for what they get.
    """
    made = cast("Any", kind)
    init = made.__init__

    @functools.wraps(init)
    def answering(self: object, *args: object, **given: object) -> None:
        try:
            init(self, *args, **given)
        except TypeError:
            check_arguments(made, given)
            raise

    made.__init__ = answering
    return kind
