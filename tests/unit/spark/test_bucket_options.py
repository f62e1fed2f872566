"""The options of buckets and object buckets, and what is read when they name them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark_natsstream.bucket_options import BucketOptions
from pyspark_natsstream.bucket_rows import ENTRY_COLUMNS
from pyspark_natsstream.object_batch import OBJECT_COLUMNS, packed
from pyspark_natsstream.object_options import ObjectOptions
from pyspark_natsstream.read_options import ReadOptions
from pyspark_natsstream.row_batches import BYTES_MAX, ROWS_MAX, ArrowColumn, row_batches
from pyspark_natsstream.schema import BUCKET_TYPES, OBJECT_TYPES, schema_of
from pyspark_natsstream.source import DefaultSource, read_options_of

from natsstream.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

GIVEN = {"servers": "nats://h:4222"}


def parse(**options: str) -> ReadOptions | ObjectOptions:
    return read_options_of(GIVEN | options)


def test_stream_and_filters_of_a_bucket_follow_from_its_name_and_keys() -> None:
    options = parse(Bucket="settings", keys="a.*, b ,a.>,a.1", failOnDataLoss="false")

    assert isinstance(options, BucketOptions)
    assert options.stream == "KV_settings"
    assert options.subjects == ("b", "a.>")
    assert not options.eviction_is_loss
    assert BucketOptions.parse(options.to_text()) == options
    assert replace(options, history=True).stream == "KV_settings"


def test_options_of_an_object_bucket_come_back_from_their_text() -> None:
    options = parse(objectBucket="files", columns="path,content", pathGlobFilter="*.png")

    assert isinstance(options, ObjectOptions)
    assert options.stream == "OBJ_files"
    assert options.default_columns == ("path", "content")
    assert ObjectOptions.parse(options.to_text()) == options


@pytest.mark.parametrize(
    ("options", "complaint", "advice"),
    [
        ({"bucket": "b", "stream": "S"}, "stream and bucket exclude each other", "one of them"),
        ({"bucket": "b", "objectBucket": "o"}, "bucket and objectBucket exclude", "one of them"),
        ({}, "needs the option stream", "stream"),
        ({"bucket": ""}, "name is empty", "letters"),
        ({"bucket": "a.b"}, "illegal character", "letters"),
        ({"bucket": "b", "keys": "a.>.b"}, "'>' before its end", "last"),
        ({"bucket": "b", "kyes": "a"}, "unknown option 'kyes'", "did you mean keys?"),
        ({"bucket": "b", "includeHeaders": "true"}, "no option of a read with bucket", "stream"),
        ({"stream": "S", "keys": "a"}, "keys is no option of a read with stream", "bucket"),
        ({"keys": "a"}, "keys is no option of a read with stream", "bucket"),
        ({"objectBucket": "o", "history": "true"}, "with objectBucket", "it goes with bucket"),
        ({"bucket": "b", "startingOffsets": "newest:1"}, "cannot be newest:1", "first_seq:N"),
        ({"objectBucket": "a b"}, "illegal character", "letters"),
        ({"objectBucket": "o", "columns": "path,size"}, "no column 'size'", "length"),
        ({"objectBucket": "o", "columns": "path,path"}, "names a column twice", "path"),
        ({"objectBucket": "o", "pathGlobFilter": "*.{a,b}"}, "pathGlobFilter is", "braces"),
        ({"objectBucket": "o", "maxObjectSize": "0"}, "maxObjectSize is 0", "1 or more"),
    ],
)
def test_illegal_options_are_refused_with_the_way_out(
    options: dict[str, str], complaint: str, advice: str
) -> None:
    with pytest.raises(UsageError) as failed:
        parse(**options)

    assert complaint in failed.value.message
    assert advice in failed.value.hint


@pytest.mark.parametrize(
    "options",
    [
        {"minPartitions": "2"},
        {"maxRecordsPerPartition": "2"},
        {"startingOffsets": "first_seq:2"},
        {"endingOffsets": "last_seq:2"},
    ],
)
def test_only_the_history_of_a_bucket_has_parts(options: dict[str, str]) -> None:
    found = parse(bucket="b", **options)
    assert isinstance(found, BucketOptions)

    with pytest.raises(ConfigError, match=f"{next(iter(options))} needs history=true"):
        found.check_batch()
    replace(found, history=True).check_batch()


def test_schema_follows_from_the_kind_of_read() -> None:
    def columns(**options: str) -> list[str]:
        return DefaultSource(GIVEN | options).schema().fieldNames()

    assert columns(bucket="b") == list(BUCKET_TYPES)
    assert columns(objectBucket="o") == [name for name in OBJECT_TYPES if name != "content"]
    assert columns(objectBucket="o", columns="content,path") == ["content", "path"]


def test_stream_of_objects_is_refused_with_the_way_out() -> None:
    source = DefaultSource(GIVEN | {"objectBucket": "o"})
    # Spark's worker would show an UnboundLocalError if there were no reader.
    reader: object = source.streamReader(source.schema())
    start: Callable[[], object] = getattr(reader, "initialOffset")  # noqa: B009 - its dict is bare.

    with pytest.raises(ConfigError) as failed:
        start()

    assert "stream=OBJ_<bucket>" in failed.value.hint


def test_batches_have_the_types_of_sparks_schema() -> None:
    """Spark refuses a batch of another schema than its own."""
    for types, columns in ((BUCKET_TYPES, ENTRY_COLUMNS), (OBJECT_TYPES, OBJECT_COLUMNS)):
        fields = [pa.field(name, each.kind) for name, each in columns.items()]

        assert pa.schema(fields) == to_arrow_schema(schema_of(types), timezone="UTC")


def test_batch_ends_when_it_is_large() -> None:
    columns: dict[str, ArrowColumn[int]] = {"key": ArrowColumn(pa.string(), str)}

    def rows_of(*sizes: int) -> list[int]:
        batches = row_batches(sizes, columns, ["key"], size=int)
        return [batch.num_rows for batch in batches]

    assert rows_of(1, BYTES_MAX, BYTES_MAX // 2, BYTES_MAX // 2, 1) == [2, 2, 1]
    assert rows_of(*[0] * (ROWS_MAX + 1)) == [ROWS_MAX, 1]
    assert rows_of() == []


def test_objects_are_packed_in_order_up_to_the_size_of_a_task() -> None:
    sizes = {"a": 4, "b": 6, "c": 1, "d": 50, "e": 0, "f": 10}

    assert packed(sizes, bytes_max=10) == [("a", "b"), ("c",), ("d",), ("e", "f")]
    assert packed({}, bytes_max=10) == []
