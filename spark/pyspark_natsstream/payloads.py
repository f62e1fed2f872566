"""Payloads as values of a Spark type; pure rules.

Law: a payload is decoded whole, or it is malformed. No value is changed to fit its type: text does
not become a number, a number keeps its digits, and none wraps around. Only a float is rounded, and
a time is cut to microseconds as the column `time` is.

A field that is missing is null, and a field that the type does not have is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar, cast

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampType,
)

from natsstream.arguments import described
from natsstream.errors import ConfigError, IntegrityError
from natsstream.units import parse_rfc3339, time_from_ns
from natsstream.values import from_json, from_msgpack

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

DataFormat: TypeAlias = Literal["bytes", "text", "json", "msgpack"]
Mode: TypeAlias = Literal["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]
Decode: TypeAlias = Callable[[bytes], object]

MALFORMED = (ValueError, TypeError, ArithmeticError, RecursionError)
"""Exceptions that a decoder raises for a malformed payload."""

FORMAT_NAMES = {
    "text": "UTF-8 text",
    "json": "JSON of the schema",
    "msgpack": "MessagePack of the schema",
}

_Convert: TypeAlias = Callable[[object], object]
_BITS = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
_FLOAT_MAX = {FloatType: (2 - 2**-23) * 2.0**127, DoubleType: (2 - 2**-52) * 2.0**1023}
_EXACT = [Inexact, InvalidOperation]
_HINT = (
    "mode=PERMISSIVE keeps such payloads in the column _corrupt_record, "
    "mode=DROPMALFORMED leaves their messages out with a warning"
)


class MalformedPayloadError(IntegrityError):
    """A payload is not in the format, or not of the type, that the read names.

    Attributes:
        stream: The message's stream.
        subject: Its subject.
        sequence: Its sequence.
    """

    def __init__(
        self,
        message: str,
        *,
        stream: str,
        subject: str,
        sequence: int,
        detail: str = "",
        hint: str = _HINT,
    ) -> None:
        super().__init__(message, detail=detail, hint=hint)
        self.stream = stream
        self.subject = subject
        self.sequence = sequence


def payload_decoder(data_format: DataFormat, kind: DataType) -> Decode:
    """Return the function from a payload to the value of its column.

    Args:
        data_format: The format of the payloads.
        kind: Type of the column `data`.

    Returns:
        A function whose values pyarrow takes for the column; it raises one of `MALFORMED`.

    Raises:
        ConfigError: The format has no values of this type.
    """
    if data_format in ("bytes", "text"):
        wanted, decode = (
            (BinaryType, bytes) if data_format == "bytes" else (StringType, bytes.decode)
        )
        if not isinstance(kind, wanted):
            hint = f"with dataFormat={data_format} it is {wanted.typeName()}"
            raise _refusal("data", kind, f"{hint}; json and msgpack give it a type of your own")
        return decode
    if isinstance(kind, BinaryType | StringType):
        # Most likely the type of the default schema, and not that of a payload.
        raise _refusal("data", kind, _give_schema(data_format))
    convert = _converter(kind, "data", data_format)
    if data_format == "msgpack":
        return lambda payload: convert(from_msgpack(payload))
    return lambda payload: convert(from_json(payload, parse_float=_number))


def _number(text: str) -> Decimal | float:
    """Return a number with a fraction; a float would lose the digits that a decimal keeps."""
    try:
        return Decimal(text)
    except InvalidOperation:
        if found := float(text):
            raise
        return found  # Its exponent is below all that Decimal has, so as a float it is zero.


def no_schema(data_format: DataFormat) -> ConfigError:
    """Return the error for a read that has to name the type of its payloads, and does not."""
    return ConfigError(f"dataFormat={data_format} needs a schema", hint=_give_schema(data_format))


def _give_schema(data_format: DataFormat) -> str:
    return (
        f"with dataFormat={data_format} give the columns and the payload's type: "
        '.schema("subject string, sequence bigint, data struct<km int>")'
    )


def _refusal(path: str, kind: DataType, hint: str) -> ConfigError:
    return ConfigError(f'schema of format("nats"): {path} is {kind.simpleString()}', hint=hint)


def _converter(kind: DataType, path: str, data_format: DataFormat) -> _Convert:
    """Return the function from a decoded value to one for Arrow."""

    def inner(inner_kind: DataType, name: str, *, nullable: bool) -> _Convert:
        if not nullable:
            raise _refusal(name, inner_kind, "it cannot be NOT NULL: a payload may lack it")
        return _converter(inner_kind, name, data_format)

    convert: _Convert
    match kind:
        case StructType():
            fields = [
                (each.name, inner(each.dataType, f"{path}.{each.name}", nullable=each.nullable))
                for each in kind.fields
            ]
            if len({name for name, _ in fields}) < len(fields):
                raise _refusal(path, kind, "name each field once")
            convert = _struct(fields)
        case ArrayType():
            convert = _array(inner(kind.elementType, f"{path}[]", nullable=kind.containsNull))
        case MapType(keyType=StringType()):
            convert = _map(inner(kind.valueType, f"{path}{{}}", nullable=kind.valueContainsNull))
        case ByteType() | ShortType() | IntegerType() | LongType():
            convert = _whole(_BITS[type(kind)])
        case FloatType() | DoubleType():
            convert = _float(_FLOAT_MAX[type(kind)])
        case DecimalType():
            convert = _decimal(kind)
        case BinaryType() if data_format == "msgpack":
            convert = partial(_expect, bytes)
        case _ if type(kind) in _CONVERTERS:
            convert = _CONVERTERS[type(kind)]
        case _:
            hint = "take a struct, array, map<string,...>, number, boolean, string, date, timestamp"
            binary = "JSON has no bytes: take string, and unbase64() in SQL; else "
            is_binary = isinstance(kind, BinaryType)
            raise _refusal(path, kind, f"{binary if is_binary else ''}{hint}")

    def checked(value: object) -> object:
        try:
            return None if value is None else convert(value)
        except _Mismatch as error:
            raise ValueError(
                f"{path} is {described(error.args[0])}, not {kind.simpleString()}"
            ) from None

    return checked


class _Mismatch(Exception):  # noqa: N818 - Only the function above sees it.
    """The value has another type, or is outside of the type's range."""


def _expect(kind: type[T], value: object) -> T:
    if not isinstance(value, kind):
        raise _Mismatch(value)
    return value


def _struct(fields: Sequence[tuple[str, _Convert]]) -> _Convert:
    def convert(value: object) -> object:
        given = cast("dict[object, object]", _expect(dict, value))
        return {name: of_field(given.get(name)) for name, of_field in fields}

    return convert


def _array(of_item: _Convert) -> _Convert:
    return lambda value: [of_item(item) for item in cast("list[object]", _expect(list, value))]


def _map(of_value: _Convert) -> _Convert:
    def convert(value: object) -> object:
        given = cast("dict[object, object]", _expect(dict, value))
        return [(_text(key), of_value(item)) for key, item in given.items()]

    return convert


def _whole(bits: int) -> _Convert:
    top = 2 ** (bits - 1)

    def convert(value: object) -> object:
        # Not isinstance: True is an int.
        if type(value) is not int or not -top <= value < top:
            raise _Mismatch(value)
        return value

    return convert


def _float(top: float) -> _Convert:
    def convert(value: object) -> object:
        if type(value) not in (int, float, Decimal):
            raise _Mismatch(value)
        number = float(cast("float | Decimal", value))
        # MessagePack has infinity; another number must not become it.
        if abs(number) > top and not (type(value) is float and math.isinf(number)):
            raise _Mismatch(value)
        return number

    return convert


def _decimal(kind: DecimalType) -> _Convert:
    context = Context(prec=kind.precision, traps=_EXACT)
    last_digit = Decimal(1).scaleb(-kind.scale)

    def convert(value: object) -> object:
        if type(value) not in (int, Decimal):
            raise _Mismatch(value)
        try:
            return Decimal(cast("int | Decimal", value)).quantize(last_digit, context=context)
        except (Inexact, InvalidOperation):
            raise _Mismatch(value) from None

    return convert


def _text(value: object) -> object:
    text = _expect(str, value)
    text.encode()  # JSON can spell half of a surrogate pair, which UTF-8 does not have.
    return text


def _date(value: object) -> object:
    try:
        return date.fromisoformat(_expect(str, value))
    except ValueError:
        raise _Mismatch(value) from None


def _timestamp(value: object) -> object:
    if isinstance(value, datetime):
        return value
    try:
        return time_from_ns(parse_rfc3339(_expect(str, value)))
    except ConfigError:
        raise _Mismatch(value) from None


_CONVERTERS: dict[type[DataType], _Convert] = {
    StringType: _text,
    BooleanType: partial(_expect, bool),
    DateType: _date,
    TimestampType: _timestamp,
}
