"""A caller's description, headers and metadata of an object, as they are stored; pure rules.

Law: values that other clients could not read are refused before anything is sent; the caller's
mappings are never changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

from natsstream.arguments import check_utf8, described
from natsstream.errors import ConfigError
from natsstream.objects.info import ObjectInfo

ObjectHeaders: TypeAlias = Mapping[str, str | Sequence[str]]
"""Header values by name, as a caller gives them; a list gives a header several values."""


class Description:
    """A caller's texts for an object; None keeps the stored ones.

    Args:
        description: Free text.
        headers: A value, or a list of values, by name.
        metadata: Texts by key.

    Raises:
        ConfigError: A value has the wrong type, or UTF-8 cannot encode it.
    """

    def __init__(self, description: object, headers: object, metadata: object) -> None:
        self._fields: dict[str, Any] = {}
        if description is not None:
            self._fields["description"] = check_utf8(description, "description")
        if headers is not None:
            self._fields["headers"] = {
                key: _header_values(value, f"header {key!r}")
                for key, value in _items(headers, "headers")
            }
        if metadata is not None:
            self._fields["metadata"] = {
                key: check_utf8(value, f"metadata {key!r}")
                for key, value in _items(metadata, "metadata")
            }

    def apply(self, info: ObjectInfo) -> ObjectInfo:
        """Return an info with these texts."""
        return replace(info, **self._fields)


def _header_values(value: object, what: str) -> tuple[str, ...]:
    if isinstance(value, str):
        return (check_utf8(value, what),)
    if isinstance(value, list | tuple):
        return tuple(check_utf8(each, what) for each in cast("Sequence[object]", value))
    raise ConfigError(f"{what} is {described(value)}", hint="give a text, or a list of texts")


def _items(values: object, what: str) -> list[tuple[str, object]]:
    if not isinstance(values, Mapping):
        raise ConfigError(f"{what} is {described(values)}", hint="give a mapping of names to texts")
    items = cast("Mapping[object, object]", values).items()
    return [(check_utf8(key, f"a name in {what}"), value) for key, value in items]
