"""Ingest into Delta and Iceberg tables: every message once, whatever breaks between two steps."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow  # noqa: ICN001 - `pa` is its untyped form.
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyiceberg.table import DataScan, FileScanTask
from pyiceberg.utils.config import Config
from pyspark.errors import StreamingQueryException
from pyspark_natsstream import lake_tables
from pyspark_natsstream.failures import spark_reason
from pyspark_natsstream.ingest import TableFormat, ingest
from pyspark_natsstream.lake_tables import lake_table, partition_of
from pyspark_natsstream.tables import read_table
from pyspark_natsstream.verify import VerifyReport, verify

from natsstream.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from natsstream.testing import NatsServer
    from tests.spark.conftest import Feeder

# Each run takes a fifth of them; --sampled=all takes all.
pytestmark = pytest.mark.sampled

pa: Any = pyarrow
FORMATS: tuple[TableFormat, ...] = ("delta", "iceberg")


def no_library(_: str) -> None:
    """Stand for a library that is not installed."""


def no_commit(*_: object) -> None:
    """Stand for a driver that dies before the commit."""


def dying_commit(*_: object) -> None:
    """Stand for a driver that dies in the commit."""
    raise SystemError("the driver dies")


class Lake:
    """A table of one of the formats, and the job that writes it."""

    def __init__(
        self, spark: SparkSession, folder: Path, options: dict[str, str], fmt: TableFormat
    ) -> None:
        self._spark = spark
        self._options = options
        self._folder = folder
        self.fmt: TableFormat = fmt
        self.out = str(folder / "table") if fmt == "delta" else "lake.eu.orders"

    def run(self, *, checkpoint: str = "checkpoint", stream: str = "", **options: Any) -> int:
        """Ingest up to now; return the rows of this run."""
        given = self._options | ({"stream": stream} if stream else {})
        return ingest(
            self._spark,
            fmt=self.fmt,
            options=given,
            out=self.out,
            checkpoint=str(self._folder / checkpoint),
            **options,
        ).rows

    def verify(self, **options: str) -> VerifyReport:
        """Compare the table with its stream."""
        given = self._options | options
        given.pop("maxMessagesPerTrigger", None)
        return verify(self._spark, options=given, table=self.out, fmt=self.fmt)

    def delete(self, condition: str) -> None:
        """Delete rows of the table."""
        if self.fmt == "delta":
            DeltaTable(self.out).delete(condition)
        else:
            load_catalog("lake").load_table("eu.orders").delete(condition)

    def lose(self) -> None:
        """Delete the table."""
        if self.fmt == "delta":
            shutil.rmtree(self.out)
        else:
            load_catalog("lake").drop_table("eu.orders")

    def table(self) -> Any:
        """Return the table, by the format's own library, which has no complete types."""
        if self.fmt == "delta":
            delta: Any = DeltaTable(self.out)
            return delta.to_pyarrow_table()
        return load_catalog("lake").load_table("eu.orders").scan().to_arrow()

    def sequences(self) -> list[int]:
        """Return the sequences in the table."""
        return sorted(self.table()["sequence"].to_pylist())


@pytest.fixture(params=FORMATS)
def lake(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    server: NatsServer,
    feed: Feeder,
    stream_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Lake:
    """A stream with 40 messages on three subjects, and a table for it that is not made yet."""
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__WAREHOUSE", f"file://{tmp_path}/warehouse")
    # It has read the environment when it was imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    feed.create(stream_name)
    feed.publish([f"{stream_name}.{number % 3}" for number in range(40)])
    options = {"servers": server.url, "stream": stream_name, "maxMessagesPerTrigger": "15"}
    return Lake(spark, tmp_path, options, request.param)


def test_table_has_each_message_once_over_several_runs(
    lake: Lake, feed: Feeder, stream_name: str
) -> None:
    assert lake.run() == 40
    feed.publish([f"{stream_name}.last"] * 5)
    assert lake.run() == 5
    table = lake.table()
    assert lake.sequences() == list(range(1, 46))
    rows = {row["sequence"]: row for row in table.to_pylist()}
    assert rows[2]["data"] == b"1"
    assert rows[45]["subject"] == f"{stream_name}.last"
    assert str(table.schema.field("time").type) == "timestamp[us, tz=UTC]"


@pytest.mark.parametrize("step", ["before", "after"])
def test_micro_batch_that_runs_again_is_not_added_twice(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The driver dies before the commit to the table, and behind it."""
    write, calls = lake_tables._write, 0  # pyright: ignore[reportPrivateUsage]

    def dying(table: Any, *batch: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            if step == "after":
                write(table, *batch)
            else:
                with monkeypatch.context() as patches:
                    patches.setattr(table, "commit", no_commit)
                    write(table, *batch)
            raise SystemError("the driver dies")
        write(table, *batch)

    with monkeypatch.context() as patches:
        patches.setattr(lake_tables, "_write", dying)
        with pytest.raises(StreamingQueryException) as died:
            lake.run()
    assert spark_reason(died.value).endswith(" Return Message: SystemError: the driver dies")
    held = 30 if step == "after" else 15
    assert lake.sequences() == list(range(1, held + 1))
    assert lake.run() == 40 - held
    assert lake.sequences() == list(range(1, 41))


def test_table_of_another_checkpoint_is_refused(lake: Lake, feed: Feeder, stream_name: str) -> None:
    """Its messages would be there twice. Another stream may share the table."""
    assert lake.run() == 40
    with pytest.raises(ConfigError, match=f"stream {stream_name} that the query of another check"):
        lake.run(checkpoint="other")
    assert lake.sequences() == list(range(1, 41))

    feed.create(f"{stream_name}_2")
    feed.publish([f"{stream_name}_2.a"] * 3)
    assert lake.run(stream=f"{stream_name}_2", checkpoint="other") == 3
    assert lake.run() == 0
    assert len(lake.sequences()) == 43

    lake.lose()
    with pytest.raises(ConfigError, match="has written 3 micro-batches, and table"):
        lake.run()


@pytest.mark.parametrize("lake", ["delta"], indirect=True)
def test_delta_table_is_not_made_in_a_folder_with_other_files(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of its own first micro-batch, which failed, are allowed."""
    with monkeypatch.context() as patches:
        patches.setattr(lake_tables._DeltaTable, "commit", dying_commit)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(StreamingQueryException):
            lake.run()
    assert lake.run() == 40

    shutil.rmtree(lake.out)
    lake.fmt = "parquet"
    assert lake.run(checkpoint="files") == 40
    lake.fmt = "delta"
    with pytest.raises(ConfigError, match=r"holds date=\S+, which is of no Delta table"):
        lake.run(checkpoint="other")


def test_table_is_verified_as_its_log_says(lake: Lake, feed: Feeder, stream_name: str) -> None:
    """Files of other micro-batches, and of the past, lie in the same folder."""
    lake.run()
    feed.publish([f"{stream_name}.last"] * 5)
    lake.run()
    good = VerifyReport(
        messages=45, rows=45, missing=0, repeated=0, differing=0, gone=0, first_seq=None
    )
    assert lake.verify() == good

    if lake.fmt == "delta":
        DeltaTable(lake.out).optimize.compact()
        assert lake.verify() == good
    lake.delete("sequence >= 20 and sequence <= 29")
    assert lake.verify() == replace(good, rows=35, missing=10, first_seq=20)
    feed.publish([f"{stream_name}.last"])
    assert lake.verify(endingOffsets="latest").missing == 11

    lake.delete("sequence > 0")
    with pytest.raises(ConfigError, match="the table is empty"):
        lake.verify()


def test_files_of_a_lake_table_are_not_read_as_rows(lake: Lake, spark: SparkSession) -> None:
    lake.run()
    folder = lake.out
    if lake.fmt == "iceberg":
        folder = load_catalog("lake").load_table("eu.orders").location()
    with pytest.raises(ConfigError, match=f"holds an? {lake.fmt.title()} table") as refused:
        read_table(spark, folder, "parquet")
    assert f"--format {lake.fmt}" in refused.value.hint


def test_lake_table_that_is_not_there_is_told(lake: Lake, spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match=f"no {lake.fmt.title()} table") as refused:
        read_table(spark, lake.out, lake.fmt)
    assert "that `ingest` calls out" in refused.value.hint


def test_delta_table_with_rows_beside_its_files_is_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Deletion vectors: the files have rows that the table has not."""
    out = tmp_path / "table"
    library: Any = deltalake
    library.write_deltalake(str(out), pa.table({"sequence": [1, 2]}))
    features = ["deletionVectors"]
    versions = {"minReaderVersion": 3, "minWriterVersion": 7}
    protocol = {**versions, "readerFeatures": features, "writerFeatures": features}
    log = out / "_delta_log" / "00000000000000000001.json"
    log.write_text(json.dumps({"protocol": protocol}) + "\n")

    with pytest.raises(ConfigError, match="has the feature deletionVectors") as refused:
        read_table(spark, str(out), "delta")
    assert "--packages" in refused.value.hint


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)
def test_iceberg_table_with_rows_beside_its_files_is_refused(
    lake: Lake, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Delete files: pyiceberg reads them, and does not write any."""
    lake.run()
    plan_files = DataScan.plan_files

    def with_deletes(scan: DataScan) -> list[FileScanTask]:
        return [FileScanTask(task.file, {task.file}) for task in plan_files(scan)]

    with monkeypatch.context() as patches:
        patches.setattr(DataScan, "plan_files", with_deletes)
        with pytest.raises(ConfigError, match="delete files"):
            read_table(spark, lake.out, "iceberg")

    with load_catalog("lake").load_table("eu.orders").update_schema() as change:
        change.rename_column("data", "payload")
    with pytest.raises(ConfigError, match="other names for its columns"):
        read_table(spark, lake.out, "iceberg")


def test_delta_table_is_partitioned_by_columns_of_the_rows(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str, tmp_path: Path
) -> None:
    """A subject's token may be anything, and may be missing."""
    feed.create(stream_name)
    tokens = ["a b", "ü=1", "100%", "x"]
    feed.publish([*(f"{stream_name}.eu.{each}" for each in tokens[1:]), f"{stream_name}.eu"])
    options = {"servers": server.url, "stream": stream_name}
    lake = Lake(spark, tmp_path / "a b+ü", options, "delta")
    lake.run(partition_by=["token3"])
    table = lake.table()
    found = {row["subject"]: row["token3"] for row in table.to_pylist()}
    assert found == {
        **{f"{stream_name}.eu.{each}": each for each in tokens[1:]},
        f"{stream_name}.eu": None,
    }
    assert DeltaTable(lake.out).metadata().partition_columns == ["token3"]

    columns = ["stream", "subject", "sequence", "time", "data", "token3"]
    for _ in range(2):
        rows = read_table(spark, lake.out, "delta", "sequence > 0")
        assert rows.columns == columns
        assert {row.subject: row.token3 for row in rows.collect()} == found
        assert not lake.verify().is_different
        DeltaTable(lake.out).optimize.compact()  # Its paths are others than Spark's.


def test_partition_values_are_read_from_paths_as_spark_writes_them() -> None:
    path = "natsstream/id/000000000001/date=2026-11-26/token2=a%2Fb%3D/part-0.parquet"
    assert partition_of(path) == {"date": "2026-11-26", "token2": "a/b="}
    assert partition_of("k/date=__HIVE_DEFAULT_PARTITION__/p") == {"date": None}


def test_wrong_tables_are_refused_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="cannot be partitioned by date"):
        lake_table("iceberg", "lake.eu.orders", ["date"])
    with pytest.raises(ConfigError, match="names no Iceberg table"):
        lake_table("iceberg", "orders", ())
    monkeypatch.setattr(lake_tables, "find_spec", no_library)
    with pytest.raises(MissingExtraError, match="needs deltalake"):
        lake_table("delta", "folder", ())
