"""The columns of an ingested table.

Law: no message is dropped. One that does not fit the schema keeps its bytes in `_corrupt_record`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.
from pyspark.sql.types import ArrayType, BooleanType, StringType, StructField, StructType

from natsstream.errors import ConfigError
from pyspark_natsstream.schema import CORRUPT_RECORD, default_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

DATE = "date"
_TOKEN = re.compile(r"token([1-9]\d?)")
_DAY_S = 86_400
_END = "_natsstream_end"
# Without the last option, Spark reads {'a': 1} as JSON.
_JSON_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": CORRUPT_RECORD,
    "allowSingleQuotes": "false",
}


def json_fields(ddl: str) -> StructType:
    """Return the schema of JSON messages from its DDL, such as `origin string, distance int`.

    Raises:
        ConfigError: The DDL is illegal, or a column has a name that the table uses.
    """
    hint = "write it like: origin string, distance int"
    try:
        found = StructType.fromDDL(ddl)
    except PySparkException as error:
        message = f"{ddl!r} is not a list of columns with types"
        raise ConfigError(message, detail=str(error), hint=hint) from error
    if not isinstance(found, StructType) or not found.fields:
        raise ConfigError(f"{ddl!r} has no columns", hint=hint)
    taken = {*default_schema(include_headers=True).fieldNames(), CORRUPT_RECORD, DATE, _END}
    for name in found.fieldNames():
        if name.lower() in taken or _TOKEN.fullmatch(name.lower()):
            raise ConfigError(f"a JSON column cannot be named {name}: the table has its own {name}")
    return found


def table_of(
    messages: DataFrame, *, fields: StructType | None, partition_by: Sequence[str]
) -> DataFrame:
    """Return the rows of the table.

    Args:
        messages: Rows of `format("nats")` with all columns.
        fields: Schema of the JSON in `data`; its columns replace `stream` and `data`. None leaves
            the messages as they are.
        partition_by: Columns to partition by: columns of the table, `date` (UTC day of `time`), or
            `token1`, `token2` and so on (tokens of the subject).

    Raises:
        ConfigError: A column to partition by does not exist.
    """
    rows = messages if fields is None else _decoded(messages, fields)
    for name in partition_by:
        if name not in rows.columns:
            rows = rows.withColumn(name, _derived(name, rows))
    return rows


def _decoded(messages: DataFrame, fields: StructType) -> DataFrame:
    # from_json stops after the first value and ignores the rest. So each message is parsed as the
    # first of two items: the second is there only if the whole message was parsed.
    item = StructType([*fields.fields, StructField(_END, BooleanType())])
    told = StructType(
        [StructField("items", ArrayType(item)), StructField(CORRUPT_RECORD, StringType())]
    )
    text = F.col("data").cast("string")
    wrapped = F.concat(F.lit('{"items":['), text, F.lit(f',{{"{_END}":true}}]}}'))
    rows = messages.withColumn("_parsed", F.from_json(wrapped, told, _JSON_OPTIONS))
    items = F.col("_parsed.items")
    message = F.get(items, 0)
    is_whole = (
        F.col(f"_parsed.{CORRUPT_RECORD}").isNull()
        & message.isNotNull()
        & (F.size(items) == F.lit(2))
        & F.get(items, 1).getField(_END)
        & F.is_valid_utf8(text)  # Else bytes are replaced silently.
    )
    kept = [name for name in messages.columns if name not in ("stream", "data")]
    return rows.select(
        *kept,
        *[message.getField(name).alias(name) for name in fields.fieldNames()],
        F.when(~F.coalesce(is_whole, F.lit(False)), F.col("data")).alias(CORRUPT_RECORD),  # noqa: FBT003
    )


def _derived(name: str, rows: DataFrame) -> Column:
    if name == DATE:
        # From the Unix time: to_date() uses the session's time zone.
        days = F.floor(F.unix_seconds(F.col("time")) / _DAY_S).cast("int")
        return F.date_from_unix_date(days)
    token = _TOKEN.fullmatch(name)
    if token is None:
        own = ", ".join(rows.columns)
        hint = f"choose from {own}, {DATE}, or token1, token2 and so on for tokens of the subject"
        raise ConfigError(f"no column {name!r} to partition by", hint=hint)
    return F.get(F.split(F.col("subject"), r"\."), int(token[1]) - 1)
