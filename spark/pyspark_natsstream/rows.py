"""The rows of a write as messages; pure rules.

Law: a row that cannot be a message stops the write. Two rows have the same identity only if they
give the same message, or have the same id. Headers of the server (`Nats-...`) are left out: they
would have it do again what it did with the message that they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegralType,
    MapType,
    StringType,
    StructType,
)

from natsstream import PublishMessage
from natsstream.arguments import did_you_mean
from natsstream.errors import ConfigError
from pyspark_natsstream.schema import HEADER, default_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from pyspark_natsstream.write_options import WriteOptions

_WORDS = (StringType, IntegralType)
_OF_SERVER = "nats-"
_HINT = 'pack columns with F.to_json(F.struct("*")).alias("data"), and drop the others'


class Row(NamedTuple):
    """A row to write.

    Attributes:
        message: Its message.
        identity: The bytes to compare when the row is written again.
        id: The text of the id column; empty without one.
    """

    message: PublishMessage
    identity: bytes
    id: str


def check_columns(schema: StructType, options: WriteOptions) -> None:
    """Refuse a schema whose rows are no messages.

    Raises:
        ConfigError: A column is missing, has another type, or would not be written.
    """
    kinds = {each.name: each.dataType for each in schema.fields}
    if len(kinds) < len(schema.fields):
        raise ConfigError("a column stands twice", hint="drop or rename one of them")
    _check(kinds, "data", (BinaryType, StringType))
    used = [name for _, name in options.subject_parts if name is not None]
    if options.subject is None:
        _check(kinds, "subject", (StringType,))
    for name in used:
        _check(kinds, name, _WORDS)
    if options.id_column is not None:
        _check(kinds, options.id_column, _WORDS)
    if "headers" in kinds and not _are_headers(kinds["headers"]):
        raise ConfigError(
            f"column headers is {kinds['headers'].simpleString()}",
            hint="make it array<struct<key:string,value:string>> or map<string,string>",
        )
    # Those of a read: a stream can be copied as it was read.
    known = {*default_schema(include_headers=True).fieldNames(), *used, options.id_column}
    if lost := [name for name in kinds if name not in known]:
        raise ConfigError(f"columns {', '.join(lost)} would not be written", hint=_HINT)


def rows_of(batch: pa.RecordBatch, options: WriteOptions) -> Iterator[Row]:
    """Yield the rows of a record batch whose schema was checked.

    Raises:
        ConfigError: A row has no data, no subject or no id.
    """
    count = batch.num_rows
    subjects = _subjects(batch, options)
    data = _values(batch, "data")
    has_headers = "headers" in batch.schema.names
    headers = _values(batch, "headers") if has_headers else [None] * count
    ids = [""] * count if options.id_column is None else _texts(batch, options.id_column)
    for subject, value, raw, row_id in zip(subjects, data, headers, ids, strict=True):
        if value is None:
            raise ConfigError(
                f"a row for {subject} has no data", hint="filter nulls, or coalesce them to b''"
            )
        payload = value.encode() if isinstance(value, str) else cast("bytes", value)
        named = _headers(raw) if raw else {}
        message = PublishMessage(subject, payload, named or None)
        yield Row(message, row_id.encode() or _identity(subject, payload, named), row_id)


def _check(kinds: Mapping[str, DataType], name: str, wanted: tuple[type[DataType], ...]) -> None:
    kind = kinds.get(name)
    if isinstance(kind, wanted):
        return
    names = " or ".join(each.typeName() for each in wanted)
    is_ = f"is {kind.simpleString()}" if kind is not None else "is missing"
    hint = _HINT if name == "data" else f"make it {names}"
    if name == "subject" and kind is None:
        hint = 'add a column subject, or .option("subject", "orders.{region}")'
    elif kind is None and name != "data":
        hint = f"{did_you_mean(name, kinds)}the columns are {', '.join(kinds)}"
    raise ConfigError(f'write to format("nats"): column {name} {is_}', hint=hint)


def _are_headers(kind: DataType) -> bool:
    if isinstance(kind, MapType):
        return isinstance(kind.keyType, StringType) and isinstance(kind.valueType, StringType)
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(each.name, each.dataType) for each in kind.elementType.fields]
    return fields == [(each.name, each.dataType) for each in HEADER.fields]


def _subjects(batch: pa.RecordBatch, options: WriteOptions) -> Sequence[str]:
    if options.subject is None:
        return _texts(batch, "subject")
    pieces: list[list[str]] = []
    for text, name in options.subject_parts:
        pieces.append([text] * batch.num_rows)
        if name is not None:
            pieces.append(_texts(batch, name))
    return ["".join(each) for each in zip(*pieces, strict=True)]


def _texts(batch: pa.RecordBatch, name: str) -> list[str]:
    values = _values(batch, name)
    if any(value is None for value in values):
        raise ConfigError(f"a row has no {name}", hint=f"filter out rows whose {name} is null")
    return [str(value) for value in values]


def _values(batch: pa.RecordBatch, name: str) -> list[object]:
    return batch.column(name).to_pylist()


def _headers(raw: object) -> dict[str, list[str]]:
    """Return headers by name; Arrow gives maps as pairs, and structs as dicts."""
    named: dict[str, list[str]] = {}
    for each in cast("Sequence[tuple[str, str] | Mapping[str, str] | None]", raw):
        if each is None:
            continue
        key, value = each if isinstance(each, tuple) else (each["key"], each["value"])
        if not str(key).lower().startswith(_OF_SERVER):
            named.setdefault(key, []).append(value)
    return named


def _identity(subject: str, data: bytes, headers: Mapping[str, Sequence[str]]) -> bytes:
    # A subject has no spaces, so no two messages give the same bytes.
    return b"%s %s %s" % (subject.encode(), repr(headers).encode() if headers else b"", data)
