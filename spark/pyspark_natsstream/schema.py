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

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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


def chosen_columns(schema: StructType, types: Mapping[str, DataType] = _TYPES) -> tuple[str, ...]:
    """Return the columns that a schema chooses, in its order.

    Args:
        schema: The user's schema, or the default one.
        types: The columns that there are; those of messages by default.

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
