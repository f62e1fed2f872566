"""The Spark columns of messages, and the columns that a read builds.

Law: Spark does not prune the columns of a Python source, so the schema chooses them: columns that
it does not name are not built.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from natsstream.errors import ConfigError

HEADER = StructType([StructField("key", StringType()), StructField("value", StringType())])
_TYPES: dict[str, DataType] = {
    "stream": StringType(),
    "subject": StringType(),
    "sequence": LongType(),
    "time": TimestampType(),
    "headers": ArrayType(HEADER),
    "data": BinaryType(),
}


def default_schema(*, include_headers: bool) -> StructType:
    """Return the schema of a read without its own: every column, `headers` only on demand."""
    return StructType(
        [
            StructField(name, kind)
            for name, kind in _TYPES.items()
            if include_headers or name != "headers"
        ]
    )


def chosen_columns(schema: StructType) -> tuple[str, ...]:
    """Return the columns that a schema chooses, in its order.

    Raises:
        ConfigError: There is no column, or one is unknown, repeated, or of another type.
    """
    for chosen in schema.fields:
        kind = _TYPES.get(chosen.name)
        if kind is None:
            raise _refusal(f"no column {chosen.name!r}")
        if chosen.dataType != kind:
            wrong = f"column {chosen.name} is {kind.simpleString()}"
            raise _refusal(f"{wrong}, not {chosen.dataType.simpleString()}")
        if not chosen.nullable:
            raise _refusal(f"column {chosen.name} cannot be NOT NULL")
    names = tuple(schema.fieldNames())
    if not names or len(set(names)) < len(names):
        raise _refusal("a column stands twice" if names else "no column at all")
    return names


def _refusal(what: str) -> ConfigError:
    columns = ", ".join(f"{name} {kind.simpleString()}" for name, kind in _TYPES.items())
    return ConfigError(f'schema of format("nats"): {what}', hint=f"choose from {columns}")
