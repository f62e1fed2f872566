"""Values of a core stream as bytes, and back; pure rules.

Law: a value is refused before anything is sent, or other clients of Conat read the same value.
As in Conat, fields that are UNDEFINED are left out, and elsewhere UNDEFINED is null.
Source: Conat core/client.ts `messageData` and `decode`; core-stream.md section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from enum import IntEnum
from typing import NoReturn, TypeVar, cast

from natsstream.arguments import described
from natsstream.conat.undefined import UNDEFINED
from natsstream.errors import CodecError, ConfigError, MissingExtraError
from natsstream.values import from_json, from_msgpack, to_json, to_msgpack

T = TypeVar("T")

_INT64_MIN = -(1 << 63)
_UINT64_MAX = (1 << 64) - 1
# A value that nests too deep raises RecursionError or ValueError, by the format.
_REFUSALS = (ValueError, TypeError, OverflowError, RecursionError)


class Encoding(IntEnum):
    """The format of a value; its number is the header `CN-Enc`."""

    MSGPACK = 0
    JSON = 1


# The members of an enumeration are slow to name.
_MSGPACK = Encoding.MSGPACK


class _UndefinedFoundError(ValueError):
    """The value holds UNDEFINED: it is written again without."""


def encode_value(value: object, encoding: Encoding = Encoding.MSGPACK) -> bytes:
    """Return the bytes of a value.

    Tuples become arrays. JSON has no bytes, and datetimes become text as in JavaScript.

    Raises:
        ConfigError: The format cannot write the value.
    """
    if encoding is not _MSGPACK:
        return _written(value, lambda plain: to_json(plain, default=_json_default).encode())
    return _written(value, lambda plain: to_msgpack(plain, default=_msgpack_default))


def json_text(value: object, *, ascii_only: bool = False) -> str:
    """Return the JSON of a value as JavaScript writes it.

    Args:
        value: The value.
        ascii_only: True writes other characters as escapes.

    Raises:
        ConfigError: JSON cannot write the value.
    """
    return _written(
        value, lambda plain: to_json(plain, default=_json_default, ascii_only=ascii_only)
    )


def _written(value: object, write: Callable[[object], T]) -> T:
    try:
        try:
            return write(value)
        except _UndefinedFoundError:
            return write(_without_undefined(value))
    except (ConfigError, MissingExtraError):
        raise
    except _REFUSALS as error:
        raise ConfigError(
            f"the value cannot be encoded: {described(value)}",
            detail=str(error) or repr(error),
            hint="give None, bool, int, float, str, bytes, datetime, and lists and dicts of them",
        ) from error


def decode_value(
    data: bytes, encoding: Encoding | None, *, stream: str = "", sequence: int = 0
) -> object:
    """Return the value of stored bytes.

    Args:
        data: The bytes.
        encoding: Their format; None is another program's message, whose value is the bytes.
        stream: The stream's name, for errors.
        sequence: The message's sequence, for errors.

    Raises:
        CodecError: The bytes are not of this format.
    """
    if encoding is None:
        return data
    try:
        return from_msgpack(data) if encoding is _MSGPACK else from_json(data)
    except MissingExtraError:
        raise
    except _REFUSALS as error:
        raise CodecError(
            f"message {sequence} of stream {stream}: its value is no {encoding.name}:"
            f" {described(data, with_type=False)}",
            bucket=stream,
            key="",
            revision=sequence,
            detail=repr(error),
            hint="another program wrote it; delete the message, or read it with js.streams",
        ) from error


def _msgpack_default(value: object) -> NoReturn:
    """Refuse a value that MessagePack does not have."""
    _refuse_undefined(value)
    if isinstance(value, int):
        shown = described(value, with_type=False)
        raise ConfigError(
            f"the number {shown} has more than 64 bits",
            hint=f"MessagePack has {_INT64_MIN} to {_UINT64_MAX}; store a text: str(value)",
        )
    if isinstance(value, datetime):
        raise _naive(value)
    raise TypeError(f"{described(value)} has no form in MessagePack")


def _json_default(value: object) -> str:
    """Return the text for a datetime, and refuse other values that JSON does not have."""
    _refuse_undefined(value)
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise _naive(value)
        # As JavaScript's Date.toJSON, which has milliseconds.
        moment = value.astimezone(UTC).replace(tzinfo=None)
        return f"{moment.isoformat(timespec='milliseconds')}Z"
    if isinstance(value, bytes | bytearray | memoryview):
        raise ConfigError(
            f"JSON has no bytes: {described(cast('object', value))}",
            hint="store the value with Encoding.MSGPACK, or its base64 text",
        )
    raise TypeError(f"{described(value)} has no form in JSON")


def _refuse_undefined(value: object) -> None:
    if value is UNDEFINED:
        # The rare case costs a second way through the value, and all others nothing.
        raise _UndefinedFoundError("UNDEFINED is the key of a field")


def _without_undefined(value: object) -> object:
    """Return a value without the fields that are UNDEFINED, and with None for others."""
    if isinstance(value, dict):
        items = cast("dict[object, object]", value).items()
        return {key: _without_undefined(each) for key, each in items if each is not UNDEFINED}
    if isinstance(value, list | tuple):
        return [_without_undefined(each) for each in cast("list[object]", value)]
    return None if value is UNDEFINED else value


def _naive(value: datetime) -> ConfigError:
    return ConfigError(
        f"{value!r} has no time zone", hint="give datetime.now(UTC), or value.astimezone()"
    )
