"""The backfill job: a table into a stream, each row once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow  # noqa: ICN001 - `pa` is its untyped form.
import pytest
from pyspark_natsstream.backfill import backfill
from pyspark_natsstream.jobs.backfill import main

from natsstream import blocking
from natsstream.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from natsstream.blocking import JetStream
    from natsstream.testing import NatsServer

pa: Any = pyarrow


@pytest.fixture
def js(server: NatsServer) -> Iterator[JetStream]:
    with blocking.connect(server.url, request_timeout=30) as js:
        yield js


@pytest.fixture
def options(server: NatsServer, js: JetStream, stream_name: str) -> dict[str, str]:
    """The options of an empty stream."""
    js.streams.create(stream_name, subjects=[f"{stream_name}.>"])
    given = {"servers": server.url, "stream": stream_name, "updateStream": "true"}
    return given | {"subject": f"{stream_name}.{{city}}", "job": "cities"}


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> str:
    rows = spark.createDataFrame([("oslo", 12), ("rome", 9), ("rome", 11)], "city string, n int")
    rows.coalesce(1).write.parquet(str(tmp_path / "table"))
    return str(tmp_path / "table")


def test_columns_become_json_and_each_row_is_stored_once(
    spark: SparkSession, js: JetStream, stream_name: str, options: dict[str, str], table: str
) -> None:
    for _ in range(2):
        assert backfill(spark, options=options, table=table).rows == 3
    messages = [*js.streams.get(stream_name).read()]
    assert [(each.subject, each.data) for each in messages] == [
        (f"{stream_name}.oslo", b'{"city":"oslo","n":12}'),
        (f"{stream_name}.rome", b'{"city":"rome","n":9}'),
        (f"{stream_name}.rome", b'{"city":"rome","n":11}'),
    ]


def test_delta_table_is_written_as_its_log_says(
    spark: SparkSession, js: JetStream, stream_name: str, options: dict[str, str], tmp_path: Path
) -> None:
    """The city is in the log alone, and the files of what was deleted are still there."""
    library: Any = deltalake
    out = str(tmp_path / "lake")
    rows = pa.table({"n": [12, 9, 11], "city": ["oslo", "rome", "rome"]})
    library.write_deltalake(out, rows, partition_by=["city"])
    library.DeltaTable(out).delete("n = 9")
    with pytest.raises(ConfigError, match="a Delta table"):
        backfill(spark, options=options, table=out)

    for _ in range(2):
        assert backfill(spark, options=options, table=out, fmt="delta").rows == 2
    messages = [*js.streams.get(stream_name).read()]
    assert sorted((each.subject, each.data) for each in messages) == [
        (f"{stream_name}.oslo", b'{"n":12,"city":"oslo"}'),
        (f"{stream_name}.rome", b'{"n":11,"city":"rome"}'),
    ]


def test_split_depends_on_no_machine(
    spark: SparkSession, js: JetStream, stream_name: str, options: dict[str, str], table: str
) -> None:
    """Spark packs files by the number of cores, and a run on another machine has others."""
    cores, files = "spark.sql.leafNodeDefaultParallelism", f"{table}-files"
    spark.range(800).repartition(4).selectExpr("id as n", "'x' as city").write.parquet(files)
    try:
        for number in ("4", "1", "2"):
            spark.conf.set(cores, number)
            assert backfill(spark, options=options, table=files).rows == 800
    finally:
        spark.conf.unset(cores)
    found = [json.loads(message.data)["n"] for message in js.streams.get(stream_name).read()]
    assert sorted(found) == [*range(800)]


def test_column_data_is_the_payload_and_where_chooses_rows(
    spark: SparkSession, js: JetStream, stream_name: str, options: dict[str, str], table: str
) -> None:
    other = f"{table}-data"
    spark.read.parquet(table).selectExpr("city", "n", "cast(n as string) as data").write.parquet(
        other
    )
    assert backfill(spark, options=options, table=other, where="n > 9").rows == 2
    assert sorted(m.data for m in js.streams.get(stream_name).read()) == [b"11", b"12"]
    del options["job"]
    with pytest.raises(ConfigError, match="needs the option job"):
        backfill(spark, options=options, table=table)


@pytest.mark.parametrize("where", ["nope > 3", "n >", "n + 1"])
def test_where_that_is_no_condition_is_wrong_usage(
    options: dict[str, str], table: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--servers", options["servers"], "--stream", options["stream"], "--job", "cities"]

    assert main([*given, "--table", table, "--where", where]) == 2
    told = capsys.readouterr().err
    assert f"where is '{where}', which is no condition for the rows of {table}\ndetail: [" in told
    assert "the columns are city, n" in told


def test_command_prints_the_report_as_one_json_line(
    options: dict[str, str], table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = {"servers": "servers", "stream": "stream", "updateStream": "update-stream"}
    flags |= {"subject": "subject", "job": "job"}
    command = [text for name, flag in flags.items() for text in (f"--{flag}", options[name])]
    assert main([*command, "--table", table]) == 0
    assert json.loads(capsys.readouterr().out) == {"rows": 3}
    config = Path(f"{table}.toml")
    lines = [f'servers = ["{options["servers"]}"]', f'table = "{table}"', "update_stream = true"]
    config.write_text("\n".join(lines))
    rest = ["--stream", options["stream"], "--subject", options["subject"], "--job", "other"]
    alone = ["--servers", options["servers"], *rest, "--table", table, "--update-stream"]
    assert main(alone) == 0
    assert main(["--config", str(config), *rest]) == 0
    assert main(["--config", f"{config}.none", *rest]) == 2
    capsys.readouterr()
    assert main([*command[2:], "--table", table]) == 2
    assert "needs the option servers" in capsys.readouterr().err
