"""Formats of values: how `kv.typed` turns objects into bytes, and bytes into objects.

Law: an error of a format becomes an error of ours, with the key. A value that cannot be encoded is
refused before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from natsstream.arguments import check_bytes, check_plain, check_text, described
from natsstream.constructors import answers_arguments
from natsstream.errors import ConfigError, MissingExtraError, ValueDecodeError
from natsstream.kv.codecs import T, ValueCodec
from natsstream.values import from_json, from_msgpack, to_json, to_msgpack

U = TypeVar("U")


@answers_arguments
@dataclass(frozen=True, slots=True)
class ValueFormat(Generic[T]):
    """A named pair of functions; buckets take it as `kv.typed(ns.JSON)`.

    Attributes:
        name: The name in error messages.
        encode: From an object to the bytes to store.
        decode: From stored bytes to the object.
    """

    name: str
    encode: Callable[[T], bytes]
    decode: Callable[[bytes], T]

    def __post_init__(self) -> None:
        check_text(self.name, "name")
        check_plain(self.encode, "encode", takes="an object and returns bytes")
        check_plain(self.decode, "decode", takes="bytes and returns an object")

    def to_bytes(self, value: T, *, bucket: str, key: str) -> bytes:
        """Return the bytes to store for an object.

        Raises:
            ConfigError: The format cannot write this object.
        """
        try:
            encoded = self.encode(value)
        except (ConfigError, MissingExtraError):
            raise
        except Exception as error:
            raise ConfigError(
                f"key {key!r} of bucket {bucket}: {self.name} cannot write {described(value)}",
                detail=repr(error),
                hint="give a value that the format can write, or another format to kv.typed()",
            ) from error
        try:
            return check_bytes(encoded, "value")
        except ConfigError:
            way = "such as lambda value: json.dumps(value).encode()"
            raise ConfigError(
                f"key {key!r} of bucket {bucket}: {self.name} wrote {described(encoded)}",
                hint=f"give kv.typed() a function that returns bytes, {way}",
            ) from None

    def from_bytes(self, data: bytes, *, bucket: str, key: str, revision: int) -> T:
        """Return the object of stored bytes.

        Raises:
            ValueDecodeError: The format cannot read the bytes.
        """
        try:
            return self.decode(data)
        except MissingExtraError:
            raise
        except Exception as error:
            raise ValueDecodeError(
                f"key {key!r} of bucket {bucket}: {self.name} cannot read revision {revision}:"
                f" {described(data, with_type=False)}",
                bucket=bucket,
                key=key,
                revision=revision,
                detail=repr(error),
                hint="kv.typed(ns.RAW) reads the bytes; another program may write another format",
            ) from error


def make_format(
    encode: ValueCodec[U] | Callable[[U], bytes], decode: Callable[[bytes], U] | None
) -> ValueFormat[U]:
    """Return the format of a codec, or of two functions.

    Raises:
        ConfigError: One of the two functions is missing, or is async.
    """
    if isinstance(encode, ValueCodec) and not isinstance(encode, type):
        codec = cast("ValueCodec[U]", encode)
        name = codec.name if isinstance(codec, ValueFormat) else repr(codec)
        if decode is not None:
            raise ConfigError(
                f"typed() has the format {name} and a decode function",
                hint="give a format, or two functions",
            )
        if isinstance(codec, ValueFormat):
            return codec
        return ValueFormat(name, codec.encode, codec.decode)
    if decode is None:
        raise ConfigError(
            f"typed() has {described(encode)} and nothing to read values with",
            hint="give a format such as ns.JSON, or two functions: encode and decode",
        )
    check_plain(encode, "encode", takes="an object and returns bytes")
    name = "/".join(getattr(each, "__qualname__", repr(each)) for each in (encode, decode))
    return ValueFormat(name, encode, decode)


def _to_json(value: object) -> bytes:
    return to_json(value).encode()


def _to_text(value: str) -> bytes:
    return check_text(value, "value").encode()


def _to_raw(value: bytes) -> bytes:
    return check_bytes(value, "value")


def _from_raw(data: bytes) -> bytes:
    return data


# As with json.loads, only the application knows the type that JSON and MessagePack decode to.
JSON: ValueFormat[Any] = ValueFormat("JSON", _to_json, from_json)
"""Any JSON value, as compact UTF-8 text; NaN and infinity are refused."""

MSGPACK: ValueFormat[Any] = ValueFormat("MessagePack", to_msgpack, from_msgpack)
"""Any MessagePack value; bytes stay bytes, aware datetimes are its timestamps."""

RAW: ValueFormat[bytes] = ValueFormat("bytes", _to_raw, _from_raw)
"""The bytes as they are stored: the format of every bucket that `js.kv` returns."""

TEXT: ValueFormat[str] = ValueFormat("UTF-8 text", _to_text, bytes.decode)
"""Text, as UTF-8."""
