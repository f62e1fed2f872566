"""The Spark columns of each kind of read, and the columns that a read builds.

Law: Spark does not prune the columns of a Python source, so the schema chooses them: columns that
it does not name are not built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from natsstream.errors import ConfigError
from pyspark_natsstream.payloads import no_schema, payload_decoder

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_natsstream.read_options import ReadOptions

CORRUPT_RECORD = "_corrupt_record"
"""Column of malformed payloads as they are stored; its name is Spark's."""

HEADER = StructType([StructField("key", StringType()), StructField("value", StringType())])
_TYPES: dict[str, DataType] = {
    "stream": StringType(),
    "subject": StringType(),
    "sequence": LongType(),
    "time": TimestampType(),
    "headers": ArrayType(HEADER),
    "data": BinaryType(),
}
BUCKET_TYPES: Mapping[str, DataType] = {
    "bucket": StringType(),
    "key": StringType(),
    "value": BinaryType(),
    "revision": LongType(),
    "created": TimestampType(),
    "operation": StringType(),
}
"""The columns of a key-value bucket."""

CONTENT = "content"
# The first four are those of Spark's binaryFile.
OBJECT_TYPES: Mapping[str, DataType] = {
    "path": StringType(),
    "modificationTime": TimestampType(),
    "length": LongType(),
    CONTENT: BinaryType(),
    "digest": StringType(),
    "chunks": LongType(),
    "description": StringType(),
    "headers": ArrayType(HEADER),
    "metadata": MapType(StringType(), StringType()),
    "link": StringType(),
    "revision": LongType(),
}
"""The columns of an object bucket; `content` only on demand."""


def schema_of(types: Mapping[str, DataType], *, without: Collection[str] = ()) -> StructType:
    """Return the schema of columns, in their order, but for some."""
    return StructType(
        [StructField(name, kind) for name, kind in types.items() if name not in without]
    )


def default_schema(*, include_headers: bool) -> StructType:
    """Return the schema of a read without its own: every column, `headers` only on demand."""
    return schema_of(_TYPES, without=() if include_headers else ("headers",))


def read_schema(options: ReadOptions) -> StructType:
    """Return the schema of a read of messages that gives none.

    Raises:
        ConfigError: Payloads of this format have a type that only the user knows.
    """
    schema = default_schema(include_headers=options.include_headers)
    if options.data_format == "text":
        schema["data"].dataType = StringType()
    elif options.data_format != "bytes":
        raise no_schema(options.data_format)
    if options.mode == "PERMISSIVE":
        schema.add(CORRUPT_RECORD, BinaryType())
    return schema


def check_schema(schema: StructType, options: ReadOptions) -> None:
    """Refuse a schema that chooses other columns than a read of messages has.

    Raises:
        ConfigError: As for `chosen_columns`; or malformed payloads would be lost.
    """
    keeps, names = options.mode == "PERMISSIVE", schema.fieldNames()
    types = _TYPES | ({CORRUPT_RECORD: BinaryType()} if keeps else {})
    if CORRUPT_RECORD in names and not keeps:
        raise ConfigError(
            f'schema of format("nats"): {CORRUPT_RECORD} would stay empty',
            hint="add mode=PERMISSIVE and dataFormat, or leave the column out",
        )
    if "data" in names:
        types["data"] = schema["data"].dataType
        payload_decoder(options.data_format, types["data"])
    chosen_columns(schema, types)
    if keeps and ("data" in names) != (CORRUPT_RECORD in names):
        raise ConfigError(
            f"mode=PERMISSIVE needs both the columns data and {CORRUPT_RECORD}",
            hint=f'add "{CORRUPT_RECORD} binary", or take mode=DROPMALFORMED',
        )


def chosen_columns(schema: StructType, types: Mapping[str, DataType]) -> tuple[str, ...]:
    """Return the columns that a schema chooses, in its order.

    Args:
        schema: The user's schema, or the default one.
        types: The columns that there are.

    Raises:
        ConfigError: There is no column, or one is unknown, repeated, or of another type.
    """
    for chosen in schema.fields:
        kind = types.get(chosen.name)
        if kind is None:
            raise _refusal(types, f"no column {chosen.name!r}")
        if chosen.dataType != kind:
            wrong = f"column {chosen.name} is {kind.simpleString()}"
            raise _refusal(types, f"{wrong}, not {chosen.dataType.simpleString()}")
        if not chosen.nullable:
            raise _refusal(types, f"column {chosen.name} cannot be NOT NULL")
    names = tuple(schema.fieldNames())
    if not names or len(set(names)) < len(names):
        raise _refusal(types, "a column stands twice" if names else "no column at all")
    return names


def _refusal(types: Mapping[str, DataType], what: str) -> ConfigError:
    columns = ", ".join(f"{name} {kind.simpleString()}" for name, kind in types.items())
    return ConfigError(f'schema of format("nats"): {what}', hint=f"choose from {columns}")
