"""Object buckets as tables of `format("nats")`, against a real server."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException
from pyspark_natsstream import object_batch
from pyspark_natsstream.failures import typed_error
from pyspark_natsstream.object_batch import ObjectReader
from pyspark_natsstream.object_options import ObjectOptions

from natsstream import blocking
from natsstream.errors import ChunksDamagedError, ConfigError, StreamRecreatedError
from natsstream.objects.info import write_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from natsstream.blocking import JetStream
    from natsstream.testing import NatsServer

# Each run takes a fifth of them; --sampled=all takes all.
pytestmark = pytest.mark.sampled

LARGE = bytes(range(256)) * 2_000
"""Several chunks of 128 KiB."""


@pytest.fixture
def js(server: NatsServer) -> Iterator[JetStream]:
    """A connection to the shared server."""
    with blocking.connect(server.url) as context:
        yield context


def load(spark: SparkSession, server: NatsServer, bucket: str, **options: str) -> DataFrame:
    reader = spark.read.format("nats").options(servers=server.url, objectBucket=bucket)
    return reader.options(**options).load()


def contents(frame: DataFrame) -> dict[str, bytes | None]:
    """The content of each object, by path; an object that came twice fails."""
    rows = frame.select("path", "content").collect()
    found = {row.path: None if row.content is None else bytes(row.content) for row in rows}
    assert len(found) == len(rows)
    return found


def test_each_object_is_a_row_with_what_its_store_knows(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    box = js.objects.create(stream_name)
    box.put(
        "img/größe.png",
        LARGE,
        description="a picture",
        headers={"Type": ["image/png", "x"]},
        metadata={"by": "ann"},
    )
    box.put("empty", b"")
    box.put("gone", b"1")
    box.delete("gone")
    box.link("same", "empty")

    frame = load(spark, server, stream_name)

    assert "content" not in frame.columns
    rows = {row.path: row for row in frame.collect()}
    assert sorted(rows) == ["empty", "img/größe.png", "same"]
    row, info = rows["img/größe.png"], box.info("img/größe.png")
    assert info is not None
    assert (row.length, row.chunks, row.revision) == (len(LARGE), info.chunks, info.revision)
    assert row.digest == write_digest(hashlib.sha256(LARGE).digest())
    assert row.description == "a picture"
    assert [tuple(each) for each in row.headers] == [("Type", "image/png"), ("Type", "x")]
    assert row.metadata == {"by": "ann"}
    assert row.link is None
    assert row.modificationTime.timestamp() == pytest.approx(info.mtime_ns / 1e9, abs=1e-5)
    assert (rows["same"].link, rows["same"].digest) == (f"{stream_name}/empty", None)


def test_content_is_read_where_it_is_asked_for_and_links_are_followed(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    box = js.objects.create(stream_name)
    other = js.objects.create(f"{stream_name}_2")
    target = other.put("far", b"far away")
    box.put("a", LARGE)
    box.put("b", b"")
    box.link("to-far", target)
    box.link_bucket("to-bucket", other.name)
    box.put("target", b"x")
    box.link("dangling", "target")
    box.delete("target")

    frame = load(spark, server, stream_name, columns="path,content", maxBytesPerPartition="1000")

    assert contents(frame) == {
        "a": LARGE,
        "b": b"",
        "to-far": b"far away",
        "to-bucket": None,
        "dangling": None,
    }


def test_objects_are_chosen_by_name_and_large_ones_have_no_content(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    box = js.objects.create(stream_name)
    for name, size in (("a/1.png", 10), ("2.png", 11), ("3.jpg", 1)):
        box.put(name, b"x" * size)

    frame = load(
        spark,
        server,
        stream_name,
        columns="path,length,content",
        pathGlobFilter="*.png",
        maxObjectSize="10",
    )

    assert contents(frame) == {"a/1.png": b"x" * 10, "2.png": None}
    assert sorted(row.length for row in frame.collect()) == [10, 11]


def test_objects_replaced_or_deleted_since_the_plan_are_as_they_are_now(
    server: NatsServer, js: JetStream, stream_name: str
) -> None:
    box = js.objects.create(stream_name)
    for name in ("a", "b", "c"):
        box.put(name, b"old")
    options = ObjectOptions(servers=(server.url,), object_bucket=stream_name)
    reader = ObjectReader(options, ["path", "length", "content"])
    (planned,) = reader.partitions()

    box.put("a", b"newer")
    box.delete("b")

    (batch,) = reader.read(planned)
    assert [tuple(row.values()) for row in batch.to_pylist()] == [
        ("a", 5, b"newer"),
        ("c", 3, b"old"),
    ]
    js.objects.delete(stream_name)
    js.objects.create(stream_name).put("c", b"another")
    with pytest.raises(StreamRecreatedError):
        list(reader.read(planned))


def test_object_that_spark_cannot_hold_fails_the_read_with_the_way_out(
    server: NatsServer, js: JetStream, stream_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    js.objects.create(stream_name).put("film", b"x" * 11)
    monkeypatch.setattr(object_batch, "CONTENT_BYTES_MAX", 10)
    reader = ObjectReader(
        ObjectOptions(servers=(server.url,), object_bucket=stream_name), ["path", "content"]
    )
    (planned,) = reader.partitions()

    with pytest.raises(ConfigError, match=r"'film' .* has 11 bytes") as failed:
        list(reader.read(planned))
    assert "maxObjectSize" in failed.value.hint


def test_damaged_object_fails_the_read(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    box = js.objects.create(stream_name)
    info = box.put("a", LARGE)
    box.stream.delete_message(info.revision - 1)

    frame = load(spark, server, stream_name, columns="content")

    with pytest.raises(PySparkException) as failed:
        frame.collect()
    error = typed_error(failed.value)
    assert isinstance(error, ChunksDamagedError)
    assert error.__notes__ == [f"in the read of object 'a' of bucket {stream_name}"]
    assert error.subject.startswith(f"$O.{stream_name}.C.")


def test_bucket_without_objects_has_no_rows(
    spark: SparkSession, server: NatsServer, js: JetStream, stream_name: str
) -> None:
    js.objects.create(stream_name)

    assert load(spark, server, stream_name).collect() == []
    assert load(spark, server, stream_name, columns="content").collect() == []
