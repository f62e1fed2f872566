"""The replay job: a table into a stream, in the order and at the pace of its times."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention.
from pyspark_natsstream.jobs.replay import main
from pyspark_natsstream.replay import Pace, replay

from natsstream import blocking
from natsstream.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from natsstream.blocking import JetStream
    from natsstream.testing import NatsServer

ROWS = 3_000


@pytest.fixture
def js(server: NatsServer) -> Iterator[JetStream]:
    with blocking.connect(server.url, request_timeout=30) as js:
        yield js


@pytest.fixture
def options(server: NatsServer, js: JetStream, stream_name: str) -> dict[str, str]:
    """The options of an empty stream."""
    js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    given = {"servers": server.url, "stream": stream_name, "updateStream": "true"}
    return given | {"subject": f"{stream_name}.n", "job": "again"}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    """Rows one millisecond apart, the last ones first."""
    rows = spark.range(ROWS).select(
        F.timestamp_micros(F.lit(1_700_000_000_000_000) + F.col("id") * 1_000).alias("time"),
        F.col("id").cast("string").alias("data"),
        F.col("id").alias("sequence"),
    )
    rows.orderBy(F.desc("sequence")).coalesce(2).write.parquet(str(tmp_path / "table"))
    return str(tmp_path / "table")


def test_rows_are_stored_once_in_the_order_of_their_times(
    spark: SparkSession, js: JetStream, stream_name: str, options: dict[str, str], table: str
) -> None:
    first = replay(spark, options=options, table=table, where="sequence < 1500", speed=0)
    assert (first.rows, first.earlier) == (1_500, 0)
    second = replay(spark, options=options, table=table, speed=0)
    assert (second.rows, second.earlier) == (ROWS, 1_500)
    found = [int(message.data) for message in js.streams.get(stream_name).read()]
    assert found == [*range(ROWS)]


def test_rows_of_one_time_and_headers_of_a_map_are_stored_once(
    spark: SparkSession, js: JetStream, stream_name: str, options: dict[str, str], table: str
) -> None:
    same = f"{table}-same"
    rows = spark.range(300).selectExpr(
        "timestamp'2026-11-26 10:00:00' as time",
        "cast(id as string) as data",
        "map('A', 'b') as headers",
    )
    rows.repartition(3).write.parquet(same)
    for _ in range(2):
        assert replay(spark, options=options, table=same, speed=0).rows == 300
    found = [*js.streams.get(stream_name).read()]
    assert [message.data for message in found] == sorted(b"%d" % n for n in range(300))
    assert found[0].headers["A"] == "b"
    rows.withColumn("time", F.lit(None).cast("timestamp")).write.parquet(f"{same}-none")
    with pytest.raises(ConfigError, match="a row has no time"):
        replay(spark, options=options | {"job": "none"}, table=f"{same}-none", speed=0)


def test_pace_is_that_of_the_times(
    spark: SparkSession, js: JetStream, stream_name: str, options: dict[str, str], table: str
) -> None:
    report = replay(spark, options=options, table=table, where="sequence % 100 = 0", speed=2)
    assert report.rows == ROWS // 100
    times = [message.time_ns for message in js.streams.get(stream_name).read()]
    # 2.9 seconds of the table; no row is stored before its moment, and the first one may be late.
    assert times[-1] - times[0] > 1_000_000_000


def test_row_is_due_as_long_after_the_first_as_at_first() -> None:
    now = 50.0
    pace = Pace(2.0, lambda: now)
    assert pace.wait_s(1_000_000) == 0.0
    assert pace.wait_s(3_000_000) == 1.0
    now = 51.5
    assert pace.wait_s(3_000_000) == -0.5
    assert pace.wait_s(9_000_000) == 2.5
    at_once = Pace(0.0, lambda: now)
    assert [at_once.wait_s(micros) for micros in (5, 10**9)] == [0.0, 0.0]


def test_replay_that_cannot_be_is_refused(
    spark: SparkSession, options: dict[str, str], table: str
) -> None:
    with pytest.raises(ConfigError, match="speed is -1"):
        replay(spark, options=options, table=table, speed=-1)
    with pytest.raises(ConfigError, match="exactly-once"):
        replay(spark, options=options | {"guarantee": "duplicate-window"}, table=table)
    timeless = f"{table}-timeless"
    spark.read.parquet(table).drop("time").write.parquet(timeless)
    with pytest.raises(ConfigError, match="no column time"):
        replay(spark, options=options, table=timeless)
    with pytest.raises(ConfigError, match="where is 'nope > 3'"):
        replay(spark, options=options, table=table, where="nope > 3")
    with pytest.raises(ConfigError, match="there is no table at"):
        replay(spark, options=options, table=f"{table}-nowhere")
    del options["job"]
    with pytest.raises(ConfigError, match="needs the option job"):
        replay(spark, options=options, table=table)


def test_command_prints_the_report_as_one_json_line(
    options: dict[str, str], table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {"servers": "servers", "stream": "stream", "updateStream": "update-stream"}
    flags |= {"subject": "subject", "job": "job"}
    command = [text for name, flag in flags.items() for text in (f"--{flag}", options[name])]
    assert main([*command, "--table", table, "--speed", "0", "--where", "sequence < 5"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 5
