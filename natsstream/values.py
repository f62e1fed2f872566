"""Values as JSON and as MessagePack: the rules that all views share.

Law: a value that was written is read as an equal one, tuples as lists. All other values are
refused. Errors are Python's own (ValueError, TypeError, OverflowError, RecursionError); each view
turns them into its own. MissingExtraError stays as it is.
"""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

from natsstream.errors import MissingExtraError

Default: TypeAlias = Callable[[Any], object]
"""Returns the value to write in place of one that the format does not have, or raises."""


def to_json(value: object, *, default: Default | None = None, ascii_only: bool = False) -> str:
    """Return a value as compact JSON; NaN and infinity are refused.

    Args:
        value: The value.
        default: For values that JSON does not have; None refuses them.
        ascii_only: True writes other characters as escapes.
    """
    # Other languages cannot read NaN, which JSON does not have.
    return json.dumps(
        value, default=default, ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":")
    )


def from_json(data: bytes | str, *, parse_float: Callable[[str], object] | None = None) -> object:
    """Return the value of JSON; NaN and infinity are refused.

    Args:
        data: The JSON.
        parse_float: Reads a number with a fraction or an exponent, such as `Decimal`; None is
            `float`.
    """
    text = data if isinstance(data, str) else data.decode()
    return json.loads(text, parse_float=parse_float, parse_constant=_no_constant)


def to_msgpack(value: object, *, default: Default | None = None) -> bytes:
    """Return a value as MessagePack; aware datetimes are its timestamps.

    Args:
        value: The value.
        default: For values that MessagePack does not have, such as numbers of more than 64 bits and
            naive datetimes; None refuses them.
    """
    return cast("bytes", _msgpack().packb(value, datetime=True, default=default))


def from_msgpack(data: bytes) -> object:
    """Return the value of MessagePack; keys that are arrays become tuples."""
    unpackb = _msgpack().unpackb
    try:
        return unpackb(data, timestamp=3, strict_map_key=False)
    except TypeError:  # A list as a key; rare, and the other way is slower.
        return unpackb(
            data, timestamp=3, strict_map_key=False, object_pairs_hook=_with_hashable_keys
        )


def _with_hashable_keys(pairs: Iterable[tuple[object, object]]) -> dict[object, object]:
    return {_hashable(key): value for key, value in pairs}


def _hashable(key: object) -> object:
    return tuple(map(_hashable, cast("list[object]", key))) if isinstance(key, list) else key


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


@functools.cache
def _msgpack() -> Any:  # It has no types, and is loaded by programs that use it.
    try:
        return importlib.import_module("msgpack")
    except ImportError as error:
        raise MissingExtraError("MessagePack needs msgpack", hint="pip install msgpack") from error
