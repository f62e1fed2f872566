"""JSON of servers and of stored text, read field by field: the one place where it is decoded.

Law: whatever the bytes are, reading them gives values of the wanted types or the error of the
reader's room, `ProtocolError` for a server's answer; never TypeError, KeyError or RecursionError.
Fields that nobody asks for are kept as they came, in `raw`.

null says as much as a field that is not there, as in Go. Of a name that stands twice the last one
counts, as in Go too: two subjects that are no UTF-8 may become the same text.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeVar, cast

from natsstream.arguments import described
from natsstream.errors import ConfigError, NatsStreamError, ProtocolError
from natsstream.units import DURATION_NS_MAX, NS_PER_SECOND, parse_rfc3339

Value = TypeVar("Value")

# Servers nest some six levels deep. A deeper value could be parsed, but neither compared nor
# written: Python's own limit is 1,000 calls.
_DEPTH_MAX = 64
_INT64_MIN = -(1 << 63)
_UINT64_MAX = (1 << 64) - 1
# Go's zero time stands for "none".
_GO_ZERO = "0001-01-01T00:00:00Z"


class FieldError(Protocol):
    """Makes the error for undecodable data; ProtocolError is one."""

    def __call__(self, message: str, /, *, detail: str = ..., hint: str = ...) -> NatsStreamError:
        """Return the error."""
        ...


def parse_json(
    data: bytes | str, what: str, *, error: FieldError = ProtocolError, hint: str = ""
) -> object:
    """Return the decoded value.

    Args:
        data: The bytes.
        what: Their name in errors.
        error: Makes the error.
        hint: The likely cause, for the error.

    Raises:
        NatsStreamError: The bytes are not JSON, hold a number that JSON does not have, or nest
            deeper than 64 levels; the class is `error`'s.
    """
    try:
        text = data if isinstance(data, str) else data.decode()
        value: object = _DECODER.decode(text)
        if text.count("[") + text.count("{") > _DEPTH_MAX and _is_deep(value):
            raise RecursionError(f"deeper than {_DEPTH_MAX} levels")
    except (ValueError, RecursionError) as problem:
        detail = f"{str(problem)[:120]}; it begins {data[:80]!r}"
        raise error(f"{what} cannot be decoded", detail=detail, hint=hint) from None
    return value


class Fields:
    """One JSON object, whose fields are read by name and type.

    Every reader of a field raises the error of `error` where the field is there and of another
    type; also where it is missing, unless a default is given.

    Args:
        raw: The object.
        what: Its name in errors, such as `stream ORDERS`.
        error: Makes the error.

    Attributes:
        raw: The object as it came.
        what: Its name in errors.

    Raises:
        NatsStreamError: It is no object.
    """

    __slots__ = ("_error", "raw", "what")

    def __init__(self, raw: object, what: str, *, error: FieldError = ProtocolError) -> None:
        if not isinstance(raw, Mapping):
            raise error(f"{what} is no object", detail=described(raw), hint="")
        # The cast names what isinstance cannot see: the keys of JSON's objects are text.
        self.raw: Mapping[str, object] = cast("Mapping[str, object]", raw)
        self.what: str = what
        self._error = error

    @classmethod
    def of(cls, body: Mapping[str, object] | Fields, what: str) -> Fields:
        """Return the fields of a mapping, or those that are given."""
        return body if isinstance(body, Fields) else cls(body, what)

    @classmethod
    def parse(
        cls, data: bytes | str, what: str, *, error: FieldError = ProtocolError, hint: str = ""
    ) -> Fields:
        """Return the fields of a JSON object in bytes."""
        return cls(parse_json(data, what, error=error, hint=hint), what, error=error)

    def has(self, name: str) -> bool:
        """Return True if a field has a value."""
        return self.raw.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text that UTF-8 can write."""
        value = self._value(name, default)
        return self._checked_text(value, name)

    def integer(
        self,
        name: str,
        default: int | None = None,
        *,
        minimum: int = _INT64_MIN,
        maximum: int = _UINT64_MAX,
    ) -> int:
        """Return a whole number, of 64 bits unless it is bounded further."""
        value = self._value(name, default)
        return self._checked_integer(value, name, minimum, maximum)

    def count(self, name: str, default: int | None = 0) -> int:
        """Return a whole number that is not negative; 0 where there is none."""
        return self.integer(name, default, minimum=0)

    def flag(self, name: str) -> bool:
        """Return a switch; off where it is missing."""
        value = self._value(name, default=False)
        if not isinstance(value, bool):
            raise self.wrong(name, value, "true or false")
        return value

    def seconds(self, name: str, default: int | None = None) -> float:
        """Return a duration, which JSON has in nanoseconds, in seconds."""
        largest = DURATION_NS_MAX
        return self.integer(name, default, minimum=-largest, maximum=largest) / NS_PER_SECOND

    def moment(self, name: str, default: int | None = None) -> int:
        """Return a moment in Unix nanoseconds; the default for Go's "none" and an empty text."""
        value = self._value(name, "" if default is not None else None)
        text = self._checked_text(value, name)
        if default is not None and text in ("", _GO_ZERO):
            return default
        try:
            return parse_rfc3339(text)
        except ConfigError:
            raise self.wrong(name, value, "a time of RFC 3339") from None

    def payload(self, name: str) -> bytes:
        """Return bytes, which JSON has as base64; empty where there are none."""
        text = self.text(name, "")
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            raise self.wrong(name, text, "base64") from None

    def part(self, name: str, default: Mapping[str, object] | None = None) -> Fields:
        """Return an object in the object."""
        return self.as_part(self._value(name, default), name)

    def part_or_none(self, name: str) -> Fields | None:
        """Return an object in the object, None where it is missing."""
        return self.part(name) if self.has(name) else None

    def parts(self, name: str) -> list[Fields]:
        """Return the objects of a list; empty where it is missing."""
        return [self.as_part(item, place) for place, item in self.items(name)]

    def texts(self, name: str) -> list[str]:
        """Return the texts of a list; empty where it is missing."""
        return [self._checked_text(item, place) for place, item in self.items(name)]

    def integers(self, name: str) -> list[int]:
        """Return the numbers of a list, none of them negative; empty where it is missing."""
        values = self.raw.get(name)
        # A server may list 100,000 deleted sequences: places are for errors alone.
        if isinstance(values, list) and values:
            numbers = cast("list[int]", values)
            if {*map(type, numbers)} == {int} and 0 <= min(numbers) <= max(numbers) <= _UINT64_MAX:
                return numbers
        return [
            self._checked_integer(item, place, 0, _UINT64_MAX) for place, item in self.items(name)
        ]

    def counts(self, name: str) -> dict[str, int]:
        """Return the numbers of an object by their names; empty where it is missing."""
        part = self.part(name, {})
        return {each: part.count(each) for each in part.names()}

    def words(self, name: str) -> dict[str, str]:
        """Return the texts of an object by their names; empty where it is missing."""
        part = self.part(name, {})
        return {each: part.text(each, "") for each in part.names()}

    def parts_by_name(self, name: str) -> dict[str, Fields]:
        """Return the objects of an object by their names; empty where it is missing."""
        part = self.part(name, {})
        return {each: part.part(each) for each in part.names()}

    def names(self) -> Iterator[str]:
        """Yield the names of all fields."""
        for name in self.raw:
            yield self._checked_text(name, "a name")

    def wrong(self, name: str, value: object, wanted: str) -> NatsStreamError:
        """Return the error for a field of the wrong type or value."""
        return self._error(
            f"{self.what}: the field {name} is not {wanted}",
            detail=f"it is {described(value)}",
            hint="",
        )

    def _value(self, name: str, default: object) -> object:
        value = self.raw.get(name)
        if value is not None:
            return value
        if default is None:
            raise self._error(f"{self.what}: the field {name} is missing", detail="", hint="")
        return default

    def _checked_text(self, value: object, place: str) -> str:
        if not isinstance(value, str):
            raise self.wrong(place, value, "text")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:  # JSON can write half of a surrogate pair.
                raise self.wrong(place, value, "text that UTF-8 can write") from None
        return value

    def _checked_integer(self, value: object, place: str, minimum: int, maximum: int) -> int:
        if type(value) is not int:
            raise self.wrong(place, value, "a whole number")
        if not minimum <= value <= maximum:
            raise self.wrong(place, value, f"a number from {minimum} to {maximum}")
        return value

    def as_part(self, value: object, place: str) -> Fields:
        """Return what stands in a place of this object as an object of its own."""
        if not isinstance(value, Mapping):
            raise self.wrong(place, value, "an object")
        return Fields(cast("object", value), f"{self.what}, {place}", error=self._error)

    def items(self, name: str) -> Iterator[tuple[str, object]]:
        """Yield the members of a list with their places, of whatever types."""
        values = self.raw.get(name)
        if values is None:
            return
        # Tuples are no JSON, but what a caller gives in the place of a list.
        if not isinstance(values, list | tuple):
            raise self.wrong(name, values, "a list")
        for index, value in enumerate(cast("Sequence[object]", values)):
            yield f"{name}[{index}]", value

    def __repr__(self) -> str:
        return f"<Fields of {self.what}>"


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number of JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is too large for any computer")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def _is_deep(value: object) -> bool:
    """Return True if a value is nested deeper than is allowed; without nested calls."""
    level = [value]
    for _ in range(_DEPTH_MAX):
        level = [item for each in level for item in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: object) -> list[object]:
    """Return the lists and objects that stand directly in another."""
    if isinstance(value, dict):
        items: Sequence[object] = list(cast("dict[str, object]", value).values())
    else:
        items = cast("list[object]", value) if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, list | dict)]
