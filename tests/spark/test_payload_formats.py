"""`dataFormat` and `mode` of a read, against a real server: payloads as values."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StringType, StructField, StructType
from pyspark_natsstream.batch import NatsReader
from pyspark_natsstream.failures import typed_error
from pyspark_natsstream.payloads import MalformedPayloadError
from pyspark_natsstream.read_options import ReadOptions

from natsstream.errors import ConfigError
from natsstream.values import to_msgpack

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

    from natsstream.errors import NatsStreamError
    from natsstream.testing import NatsServer
    from tests.spark.conftest import Feeder

QUERY_WITHIN_S = 240

# Each field of the schema is missing, null, there, or of another type once.
TRIPS = [
    b'{"km": 12, "from": {"city": "oslo"}, "tags": ["a", null], "left": "out"}',
    b'{"km": 9223372036854775807, "from": {}}',
    b'{"km": 9223372036854775808}',
    b'{"from": {"city": 5}}',
    b"{",
    b"",
    b'{"km": null}',
]
TRIP = "data struct<km bigint, from struct<city string>, tags array<string>>"
WHOLE = [
    (1, (12, ("oslo",), ["a", None])),
    (2, (2**63 - 1, (None,), None)),
    (7, (None, None, None)),
]
MALFORMED = [3, 4, 5, 6]


@pytest.fixture
def trips(feed: Feeder, stream_name: str) -> str:
    """A stream with `TRIPS`."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * len(TRIPS), lambda index: TRIPS[index])
    return stream_name


def load(spark: SparkSession, url: str, stream: str, ddl: str = "", **options: str) -> DataFrame:
    reader = spark.read.format("nats").options(servers=url, stream=stream, **options)
    return (reader.schema(ddl) if ddl else reader).load()


def failure_of(frame: DataFrame) -> NatsStreamError | None:
    with pytest.raises(PySparkException) as failed:
        frame.collect()
    return typed_error(failed.value)


def plain(value: Any) -> Any:
    """A row as tuples."""
    return tuple(map(plain, cast("Row", value))) if isinstance(value, tuple) else value


def test_malformed_json_fails_the_read_and_the_error_names_the_message(
    spark: SparkSession, server: NatsServer, trips: str
) -> None:
    error = failure_of(load(spark, server.url, trips, TRIP, dataFormat="json"))

    assert isinstance(error, MalformedPayloadError)
    assert (error.stream, error.subject, error.sequence) == (trips, f"{trips}.a", 3)
    assert "data.km is 9223372036854775808" in error.detail
    assert "mode=PERMISSIVE" in error.hint


def test_malformed_json_is_left_out_on_demand(
    spark: SparkSession, server: NatsServer, trips: str
) -> None:
    ddl = f"sequence bigint, {TRIP}"

    frame = load(spark, server.url, trips, ddl, dataFormat="json", mode="dropmalformed")

    assert [plain(row) for row in frame.collect()] == WHOLE
    assert frame.where("data.from.city = 'oslo'").count() == 1


def test_malformed_json_is_kept_as_it_is_stored(
    spark: SparkSession, server: NatsServer, trips: str
) -> None:
    ddl = f"_corrupt_record binary, sequence bigint, {TRIP}"

    rows = load(spark, server.url, trips, ddl, dataFormat="json", mode="PERMISSIVE").collect()

    assert [plain(row)[1:] for row in rows if row["_corrupt_record"] is None] == WHOLE
    kept = {row.sequence: bytes(row["_corrupt_record"]) for row in rows if row.data is None}
    assert kept == {sequence: TRIPS[sequence - 1] for sequence in MALFORMED}


def test_query_keeps_malformed_json_and_goes_on(
    spark: SparkSession, server: NatsServer, trips: str, tmp_path: Path
) -> None:
    reader = spark.readStream.format("nats").options(
        servers=server.url, stream=trips, dataFormat="json", mode="PERMISSIVE"
    )
    frame = reader.schema(f"sequence bigint, {TRIP}, _corrupt_record binary").load()
    out = str(tmp_path / "out")

    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(out)
    )
    assert query.awaitTermination(QUERY_WITHIN_S)

    rows = spark.read.parquet(out).orderBy("sequence").collect()
    assert [plain(row)[:2] for row in rows if row["_corrupt_record"] is None] == WHOLE
    assert [row.sequence for row in rows if row["_corrupt_record"] is not None] == MALFORMED


def test_text_is_a_string_without_a_schema_and_other_bytes_are_kept(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    payloads = ["grüße 😀".encode(), b"\xff\xfe", b""]
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 3, lambda index: payloads[index])

    frame = load(spark, server.url, stream_name, dataFormat="text", mode="PERMISSIVE")

    rows = frame.collect()
    assert [row.data for row in rows] == ["grüße 😀", None, ""]
    assert [row["_corrupt_record"] for row in rows] == [None, payloads[1], None]
    strict = failure_of(load(spark, server.url, stream_name, dataFormat="text"))
    assert isinstance(strict, MalformedPayloadError)
    assert strict.sequence == 2


def test_msgpack_is_decoded_by_the_schema(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> None:
    payloads = [
        to_msgpack({"raw": b"\xff", "n": 1.5, "m": {"a": [1]}}),
        to_msgpack({"n": "1.5"}),
        b"\xc1",
    ]
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 3, lambda index: payloads[index])
    ddl = "data struct<raw binary, n double, m map<string, array<int>>>"

    frame = load(spark, server.url, stream_name, ddl, dataFormat="msgpack", mode="DROPMALFORMED")

    assert [plain(row.data) for row in frame.collect()] == [(b"\xff", 1.5, {"a": [1]})]


def test_json_without_a_schema_fails_at_load_with_the_way_out(
    spark: SparkSession, server: NatsServer, stream_name: str
) -> None:
    with pytest.raises(PySparkException) as failed:
        load(spark, server.url, stream_name, dataFormat="json")

    error = typed_error(failed.value)
    assert isinstance(error, ConfigError)
    assert ".schema(" in error.hint


def test_partition_logs_how_many_messages_it_left_out(
    server: NatsServer, feed: Feeder, stream_name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without Spark, whose workers log elsewhere."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 9, lambda index: b"\xff" if index % 3 == 2 else b"x")
    options = {"servers": server.url, "stream": stream_name, "minPartitions": "2"}
    asked = ReadOptions.parse(options | {"dataFormat": "text", "mode": "DROPMALFORMED"})
    reader = NatsReader(asked, StructType([StructField("data", StringType())]))

    with caplog.at_level(logging.WARNING, "pyspark_natsstream"):
        batches = [batch for each in reader.partitions() for batch in reader.read(each)]

    assert sum(batch.num_rows for batch in batches) == 6
    first, second = (record.getMessage() for record in caplog.records)
    assert f"sequences 1 to 5 of stream {stream_name}: left out 1 message with" in first
    assert f"sequences 6 to 9 of stream {stream_name}: left out 2 messages" in second
    assert f"sequence 6 of stream {stream_name}, subject {stream_name}.a" in second
