"""What a caller says of an object: description, headers and metadata, as they are stored; pure.

Law: what other clients could not read is refused before anything is sent; the caller's objects are
never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

from natsstream.arguments import check_utf8, described
from natsstream.errors import ConfigError

ObjectHeaders: TypeAlias = Mapping[str, str | Sequence[str]]
"""Header values by name, as a caller gives them; a list gives a header several values."""


def check_description(value: object) -> str:
    """Return a description.

    Raises:
        ConfigError: It is no text that UTF-8 can write.
    """
    return check_utf8(value, "description")


def check_headers(values: object) -> dict[str, tuple[str, ...]]:
    """Return headers with all of their values.

    Raises:
        ConfigError: It is no mapping of texts, or of lists of texts.
    """
    checked: dict[str, tuple[str, ...]] = {}
    for key, value in _items(values, "headers"):
        what = f"header {key!r}"
        if isinstance(value, str):
            checked[key] = (check_utf8(value, what),)
        elif isinstance(value, list | tuple):
            several = cast("Sequence[object]", value)
            checked[key] = tuple(check_utf8(each, what) for each in several)
        else:
            raise ConfigError(
                f"{what} is {described(value)}", hint="give a text, or a list of them"
            )
    return checked


def check_metadata(values: object) -> dict[str, str]:
    """Return metadata.

    Raises:
        ConfigError: It is no mapping of texts.
    """
    return {
        key: check_utf8(value, f"metadata {key!r}") for key, value in _items(values, "metadata")
    }


def _items(values: object, what: str) -> list[tuple[str, object]]:
    if not isinstance(values, Mapping):
        raise ConfigError(f"{what} is {described(values)}", hint="give a mapping of names to texts")
    items = cast("Mapping[object, object]", values).items()
    return [(check_utf8(key, f"a name in {what}"), value) for key, value in items]
