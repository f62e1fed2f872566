"""The columns of an ingested table, kept beside the checkpoint.

Law: files of other columns or partitions are never added to a table. Parquet would take them, and
then no reader could open the table any more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from natsstream.errors import ConfigError
from pyspark_natsstream.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

COLUMNS_FILE = "natsstream/table.json"

_WAY_OUT = "or another table and checkpoint, which then begin at startingOffsets"


def check_columns_kept(
    spark: SparkSession, checkpoint: str, columns: StructType, partition_by: Sequence[str]
) -> None:
    """Refuse other columns or partitions than those of the query's first run, or keep these.

    Args:
        spark: A session with a driver in this process.
        checkpoint: Folder of the checkpoint, as Spark takes it.
        columns: The columns to write, with those of the partitions.
        partition_by: The columns of the partitions, in order.

    Raises:
        ConfigError: They differ.
    """
    folder = Folder(spark, checkpoint)
    asked = {each.name: each.dataType.simpleString() for each in columns.fields}
    text = folder.read(COLUMNS_FILE) if folder.has_entries("offsets") else None
    if text is None:
        kept = {"columns": asked, "partition_by": list(partition_by)}
        folder.write(COLUMNS_FILE, json.dumps(kept))
        return
    kept: dict[str, Any] = json.loads(text)
    had = kept["partition_by"]
    if had != list(partition_by):
        raise ConfigError(
            f"the table is partitioned by {_listed(had)}, not by {_listed(partition_by)}",
            hint=f"give partition_by as before ({','.join(had) or 'empty'}), {_WAY_OUT}",
        )
    if kept["columns"] != asked:
        raise ConfigError(
            f"the table has other columns: {_differences(kept['columns'], asked)}",
            hint=f"give json_schema and includeHeaders as before, {_WAY_OUT}",
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"


def _differences(had: dict[str, str], asked: dict[str, str]) -> str:
    told = [
        f"{name} is {had.get(name, 'not there')} and would be {asked.get(name, 'left out')}"
        for name in had | asked
        if had.get(name) != asked.get(name)
    ]
    return "; ".join(told) or f"their order is {', '.join(had)}"
