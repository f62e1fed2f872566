"""How values of a bucket become objects and back: ready pairs of functions for `kv.typed`.

Law: whatever a pair raises becomes an error of ours with key and revision; a value of the wrong
kind is refused before anything is sent.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from natsstream.arguments import check_bytes, check_callable, check_text, described
from natsstream.errors import ConfigError, ValueDecodeError
from natsstream.kv.entry import Entry

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ValueFormat(Generic[T]):
    """A pair of functions: `js.kv` buckets take it as `bucket.typed(ns.JSON)`.

    Attributes:
        name: What it is called in messages.
        encode: From an object to the bytes that are stored.
        decode: From stored bytes to the object.
    """

    name: str
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_callable(self.encode, "encode", takes="an object and returns bytes")
        check_callable(self.decode, "decode", takes="bytes and returns an object")
        for name, function in (("encode", self.encode), ("decode", self.decode)):
            if inspect.iscoroutinefunction(function):
                raise ConfigError(
                    f"{name} is {described(function)}, which is async",
                    hint="give a plain function; values are read and written without waiting",
                )

    def to_bytes(self, value: T, *, bucket: str, key: str) -> bytes:
        """Return the bytes that are stored for an object.

        Raises:
            ConfigError: The format can not write this object.
        """
        try:
            return check_bytes(self.encode(value), f"what {self.name} has made of the value")
        except ConfigError:
            raise
        except Exception as error:
            raise ConfigError(
                f"key {key!r} of bucket {bucket}: {self.name} can not write {described(value)}",
                detail=repr(error),
                hint="give what the format can write, or another format to bucket.typed()",
            ) from error

    def from_entry(self, entry: Entry) -> T:
        """Return the object in an entry that is no marker.

        Raises:
            ValueDecodeError: The stored bytes are none of this format.
        """
        try:
            return self.decode(entry.value)
        except Exception as error:
            shown = described(entry.value, with_type=False)
            raise ValueDecodeError(
                f"key {entry.key!r} of bucket {entry.bucket}: revision {entry.revision} is no"
                f" {self.name}: {shown}",
                bucket=entry.bucket,
                key=entry.key,
                revision=entry.revision,
                detail=repr(error),
                hint="bucket.get(key) gives the bytes; somebody else may write another format",
            ) from error


def _to_json(value: object) -> bytes:
    # What JSON does not know, such as NaN, other languages can not read.
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def _from_json(data: bytes) -> object:
    return json.loads(data.decode(), parse_constant=_no_constant)


def _to_msgpack(value: object) -> bytes:
    return cast("bytes", _msgpack().packb(value, datetime=True))


def _from_msgpack(data: bytes) -> object:
    return _msgpack().unpackb(data, timestamp=3, strict_map_key=False)


def _msgpack() -> Any:  # It has no types.
    return importlib.import_module("msgpack")


def _to_text(value: str) -> bytes:
    return check_text(value, "value").encode()


def _from_raw(data: bytes) -> bytes:
    return data


# What comes out of JSON and msgpack is known to the application alone, as with json.loads.
JSON: ValueFormat[Any] = ValueFormat("JSON", _to_json, _from_json)
"""Any value that JSON has, as compact UTF-8 text; NaN and infinity are refused."""

MSGPACK: ValueFormat[Any] = ValueFormat("MessagePack", _to_msgpack, _from_msgpack)
"""Any value that MessagePack has; bytes stay bytes, aware datetimes are its timestamps."""

RAW: ValueFormat[bytes] = ValueFormat("bytes", lambda value: check_bytes(value, "value"), _from_raw)
"""The bytes as they are."""

TEXT: ValueFormat[str] = ValueFormat("UTF-8 text", _to_text, bytes.decode)
"""Text, as UTF-8."""
