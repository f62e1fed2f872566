"""The Spark columns of messages, and the columns that a read builds.

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
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from natsstream.errors import ConfigError
from pyspark_natsstream.payloads import no_schema, payload_decoder

if TYPE_CHECKING:
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


def default_schema(*, include_headers: bool) -> StructType:
    """Return the schema of a read without its own: every column, `headers` only on demand."""
    return StructType(
        [
            StructField(name, kind)
            for name, kind in _TYPES.items()
            if include_headers or name != "headers"
        ]
    )


def read_schema(options: ReadOptions) -> StructType:
    """Return the schema of a read that gives none.

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
    """Refuse a schema that chooses other columns than a read has.

    Raises:
        ConfigError: There is no column, or one is unknown, repeated, or of another type; or
            malformed payloads would be lost.
    """
    keeps = options.mode == "PERMISSIVE"
    types = _TYPES | ({CORRUPT_RECORD: BinaryType()} if keeps else {})
    for chosen in schema.fields:
        if chosen.name == CORRUPT_RECORD and not keeps:
            raise ConfigError(
                f'schema of format("nats"): {CORRUPT_RECORD} would stay empty',
                hint="add mode=PERMISSIVE and dataFormat, or leave the column out",
            )
        kind = types.get(chosen.name)
        if kind is None:
            raise _refusal(f"no column {chosen.name!r}")
        if chosen.name == "data":
            payload_decoder(options.data_format, chosen.dataType)
        elif chosen.dataType != kind:
            wrong = f"column {chosen.name} is {kind.simpleString()}"
            raise _refusal(f"{wrong}, not {chosen.dataType.simpleString()}")
        if not chosen.nullable:
            raise _refusal(f"column {chosen.name} cannot be NOT NULL")
    names = schema.fieldNames()
    if not names or len(set(names)) < len(names):
        raise _refusal("a column stands twice" if names else "no column at all")
    if keeps and ("data" in names) != (CORRUPT_RECORD in names):
        raise ConfigError(
            f"mode=PERMISSIVE needs both the columns data and {CORRUPT_RECORD}",
            hint=f'add "{CORRUPT_RECORD} binary", or take mode=DROPMALFORMED',
        )


def _refusal(what: str) -> ConfigError:
    columns = ", ".join(f"{name} {kind.simpleString()}" for name, kind in _TYPES.items())
    return ConfigError(f'schema of format("nats"): {what}', hint=f"choose from {columns}")
