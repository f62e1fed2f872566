"""The verify job: a table against its stream, message by message."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from pyspark_natsstream.ingest import ingest
from pyspark_natsstream.jobs.verify import main
from pyspark_natsstream.verify import VerifyReport, verify

from natsstream.errors import ConfigError, SequenceRangeError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from natsstream.testing import NatsServer
    from tests.spark.conftest import Feeder

# Each run takes a fifth of them; --sampled=all takes all.
pytestmark = pytest.mark.sampled

COUNT = 20
GOOD = VerifyReport(
    messages=COUNT, rows=COUNT, missing=0, repeated=0, differing=0, gone=0, first_seq=None
)


@pytest.fixture
def options(server: NatsServer, feed: Feeder, stream_name: str) -> dict[str, str]:
    """The options of a stream with messages."""
    feed.create(stream_name)
    feed.publish(f"{stream_name}.{number % 3}" for number in range(COUNT))
    return {"servers": server.url, "stream": stream_name}


@pytest.fixture
def table(spark: SparkSession, options: dict[str, str], tmp_path: Path) -> Path:
    """The table that was ingested from it."""
    out = tmp_path / "table"
    ingest(
        spark, options=options, out=str(out), checkpoint=str(tmp_path / "check"), partition_by=()
    )
    return out


def changed(spark: SparkSession, table: Path, rows: DataFrame, **options: str) -> VerifyReport:
    """Write another table, and compare it with the stream."""
    other = str(table.with_name("changed"))
    rows.write.parquet(other)
    return verify(spark, options=options, table=other)


def test_ingested_table_is_the_same(
    spark: SparkSession, options: dict[str, str], table: Path, feed: Feeder, stream_name: str
) -> None:
    assert verify(spark, options=options, table=str(table)) == GOOD
    # What came later is not in the range, which ends with the table.
    feed.publish([f"{stream_name}.0"])
    assert not verify(spark, options=options, table=str(table)).is_different
    late = verify(spark, options=options | {"endingOffsets": "last_seq:21"}, table=str(table))
    newest = verify(spark, options=options | {"endingOffsets": "latest"}, table=str(table))
    assert (late.missing, late.first_seq, late.is_different) == (1, 21, True)
    assert newest == late


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("where sequence <> 7", {"missing": 1, "first_seq": 7, "rows": 19}),
        (
            "union all select * from t where sequence = 7",
            {"repeated": 1, "first_seq": 7, "rows": 21},
        ),
    ],
)
def test_what_is_missing_or_repeated_is_told(
    spark: SparkSession,
    options: dict[str, str],
    table: Path,
    change: str,
    told: dict[str, int],
) -> None:
    spark.read.parquet(str(table)).createOrReplaceTempView("t")
    report = changed(spark, table, spark.sql(f"select * from t {change}"), **options)  # noqa: S608
    assert json.loads(report.to_json()) == json.loads(GOOD.to_json()) | told
    assert report.is_different


@pytest.mark.parametrize("column", ["data", "subject", "time"])
def test_message_that_differs_in_one_column_is_told(
    spark: SparkSession, options: dict[str, str], table: Path, column: str
) -> None:
    rows = spark.read.parquet(str(table))
    other = {"data": "x'00'", "subject": "'x'", "time": "time + interval 1 microsecond"}[column]
    rows = rows.selectExpr(
        *[name for name in rows.columns if name != column],
        f"if(sequence = 5, {other}, {column}) as {column}",
    )
    report = changed(spark, table, rows, **options)
    assert (report.differing, report.first_seq, report.missing) == (1, 5, 0)
    assert not changed_columns(spark, table, options, column).is_different


def changed_columns(
    spark: SparkSession, table: Path, options: dict[str, str], column: str
) -> VerifyReport:
    """Compare a table that lacks a column."""
    other = str(table.with_name("fewer"))
    spark.read.parquet(str(table)).drop(column).write.parquet(other)
    return verify(spark, options=options, table=other)


def test_messages_that_the_stream_has_deleted_are_no_difference(
    spark: SparkSession, options: dict[str, str], table: Path, feed: Feeder, stream_name: str
) -> None:
    feed.delete(stream_name, [3, 9])
    feed.purge(stream_name, last_seq=2)
    report = verify(spark, options=options, table=str(table))
    assert (report.gone, report.messages, report.is_different) == (4, 16, False)
    part = options | {"startingOffsets": "first_seq:5", "endingOffsets": "last_seq:12"}
    report = verify(spark, options=part, table=str(table))
    assert (report.gone, report.messages, report.rows) == (1, 7, 8)


def test_table_of_json_and_one_with_partitions_are_compared(
    spark: SparkSession, options: dict[str, str], table: Path
) -> None:
    rows = spark.read.parquet(str(table))
    texts, parts = str(table.with_name("texts")), str(table.with_name("parts"))
    rows.write.json(texts)
    rows.write.partitionBy("subject").parquet(parts)
    assert verify(spark, options=options, table=texts, fmt="json") == GOOD
    assert verify(spark, options=options, table=parts) == GOOD


def test_table_that_cannot_be_compared_is_refused(
    spark: SparkSession, options: dict[str, str], table: Path
) -> None:
    with pytest.raises(ConfigError, match="there is no table at") as refused:
        verify(spark, options=options, table=str(table.with_name("none")))
    assert "the folder that `ingest` calls out" in refused.value.hint
    with pytest.raises(ConfigError, match="no column sequence"):
        changed(spark, table, spark.read.parquet(str(table)).drop("sequence"), **options)
    with pytest.raises(ConfigError, match="newest:3 is no range"):
        verify(spark, options=options | {"startingOffsets": "newest:3"}, table=str(table))
    behind = options | {"startingOffsets": f"first_seq:{COUNT + 1}"}
    with pytest.raises(ConfigError, match=f"first_seq:{COUNT + 1}, and the table's last sequence"):
        verify(spark, options=behind, table=str(table))
    with pytest.raises(ConfigError, match="Spark knows no format parqet") as refused:
        verify(spark, options=options, table=str(table), fmt="parqet")
    assert "choose from parquet, orc, json, delta and iceberg" in refused.value.hint
    empty = str(table.with_name("empty"))
    spark.read.parquet(str(table)).limit(0).write.parquet(empty)
    with pytest.raises(ConfigError, match="is empty"):
        verify(spark, options=options, table=empty)


def test_job_names_a_damaged_or_missing_file_of_its_table(
    options: dict[str, str], table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [*table.rglob("*.parquet")]
    for part in parts:
        part.write_bytes(part.read_bytes()[:-20])
    given = [word for name, text in options.items() for word in (f"--{name}", text)]
    assert main([*given, "--table", str(table)]) == 1
    told = capsys.readouterr().err
    assert "error: Spark failed: " in told
    assert any(part.name in told for part in parts)
    assert "Traceback" not in told
    for part in parts:
        part.unlink()
    assert main([*given, "--table", str(table)]) == 1
    assert "\nhint: a file of the table is damaged or gone: restore" in capsys.readouterr().err


@pytest.mark.parametrize("column", [True, False])
def test_table_that_goes_beyond_the_stream_is_refused_with_its_own_stream(
    spark: SparkSession,
    options: dict[str, str],
    table: Path,
    feed: Feeder,
    stream_name: str,
    column: bool,  # noqa: FBT001 - A parameter of the test.
) -> None:
    """A table of json_schema has no column `stream`."""
    feed.create(f"{stream_name}_2")
    feed.publish([f"{stream_name}_2.a"] * 7)
    if not column:
        spark.read.parquet(str(table)).drop("stream").write.parquet(f"{table}-less")
        table = table.with_name(f"{table.name}-less")
    own = f": it is a table of stream {stream_name}" if column else ""
    beyond = f"goes to sequence {COUNT}, and stream {stream_name}_2 only to 7{own}$"
    given = options | {"stream": f"{stream_name}_2"}

    with pytest.raises(SequenceRangeError) as refused:
        verify(spark, options=given, table=str(table))
    assert re.search(beyond, refused.value.message)
    compare = stream_name if column else "the stream that it was ingested from"
    assert f"compare it with {compare}, or" in refused.value.hint
    with pytest.raises(SequenceRangeError, match="endingOffsets is last_seq:9, but stream"):
        verify(spark, options=given | {"endingOffsets": "last_seq:9"}, table=str(table))


def test_folder_that_is_no_table_of_a_stream_is_wrong_usage(
    spark: SparkSession,
    options: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A table of kv_table: the folder holds versions, and none of their columns is compared."""
    folder = tmp_path / "kv"
    spark.sql("select 'a' as key, 1L as revision").write.parquet(str(folder / "v1"))
    given = [word for name, text in options.items() for word in (f"--{name}", text)]

    assert main([*given, "--table", str(folder)]) == 2
    told = capsys.readouterr().err
    assert f"folder {folder} holds no table of parquet files\nhint: " in told
    assert main([*given, "--table", str(folder / "v1")]) == 2
    assert "v1 has no column sequence\nhint: " in capsys.readouterr().err


def test_command_tells_a_difference_by_its_exit_code(
    options: dict[str, str],
    table: Path,
    feed: Feeder,
    stream_name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = table.with_name("verify.toml")
    lines = [f'servers = "{options["servers"]}"', f'stream = "{options["stream"]}"']
    config.write_text("\n".join([*lines, f'table = "{table}"', ""]))
    command = ["--config", str(config)]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["messages"] == COUNT
    assert main([*command, "--ending-offsets", "last_seq:19", "--min-partitions", "2"]) == 0
    capsys.readouterr()
    assert main([*command, "--starting-offsets", "latest"]) == 2
    feed.publish([f"{stream_name}.0"])
    assert main([*command, "--ending-offsets", "last_seq:21"]) == 4
    assert json.loads(capsys.readouterr().out)["first_seq"] == 21


def test_help_says_what_is_compared_and_lists_no_option_of_a_query(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])

    shown = " ".join(capsys.readouterr().out.split())
    assert "exits with 4 if the two differ" in shown
    assert "--ending-offsets" in shown
    assert "Streaming only" not in shown
