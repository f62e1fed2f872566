"""Rows as messages: the columns that a write takes, and those that it refuses."""

from __future__ import annotations

from typing import Any

import pyarrow  # noqa: ICN001 - `pa` is its untyped form.
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from pyspark_natsstream.rows import check_columns, rows_of
from pyspark_natsstream.schema import HEADER
from pyspark_natsstream.write_options import WriteOptions

from natsstream.errors import ConfigError

# Its types lack most of it.
pa: Any = pyarrow


def options(**given: str) -> WriteOptions:
    return WriteOptions.parse({"servers": "nats://h:4222", "stream": "S"} | given)


def rows(columns: dict[str, Any], **given: str) -> list[tuple[str, object, object, str]]:
    batch = pa.RecordBatch.from_pydict(columns)
    found = rows_of(batch, options(**given))
    return [(m.subject, m.data, m.headers, each.id) for each in found for m in [each.message]]


# Spark reads a schema's text only where there is a JVM.
KINDS: dict[str, DataType] = {
    "binary": BinaryType(),
    "string": StringType(),
    "int": IntegerType(),
    "bigint": LongType(),
    "double": DoubleType(),
    "time": TimestampType(),
    "pairs": ArrayType(HEADER),
    "texts": ArrayType(StringType()),
    "map": MapType(StringType(), StringType()),
    "numbers": MapType(StringType(), IntegerType()),
}


def check(columns: str, **given: str) -> None:
    pairs = [each.split(" ") for each in columns.split(", ")]
    schema = StructType([StructField(name, KINDS[kind]) for name, kind in pairs])
    check_columns(schema, options(**given))


@pytest.mark.parametrize(
    ("ddl", "given"),
    [
        ("data binary, subject string", {}),
        ("data string, subject string", {}),
        ("data binary", {"subject": "a.b"}),
        ("data binary, region string, n int", {"subject": "a.{region}.{n}"}),
        ("data binary, subject string, headers pairs", {}),
        ("data binary, subject string, headers map", {}),
        ("data binary, subject string, id bigint", {"idColumn": "id"}),
        ("stream string, subject string, sequence bigint, time time, data binary", {}),
    ],
)
def test_columns_that_are_taken(ddl: str, given: dict[str, str]) -> None:
    check(ddl, **given)


@pytest.mark.parametrize(
    ("ddl", "given", "told"),
    [
        ("subject string", {}, "column data is missing"),
        ("data int, subject string", {}, "column data is int"),
        ("data binary", {}, "column subject is missing"),
        ("data binary, subject binary", {}, "column subject is binary"),
        ("data binary", {"subject": "a.{region}"}, "column region is missing"),
        ("data binary, r double", {"subject": "a.{r}"}, "column r is double"),
        ("data binary, subject string, headers string", {}, "column headers is string"),
        ("data binary, subject string, headers texts", {}, "headers is array"),
        ("data binary, subject string, headers numbers", {}, "headers is map"),
        ("data binary, subject string", {"idColumn": "id"}, "column id is missing"),
        ("data binary, subject string, price double", {}, "columns price would not be written"),
        ("data binary, data binary, subject string", {}, "a column stands twice"),
    ],
)
def test_columns_that_are_refused(ddl: str, given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        check(ddl, **given)
    assert caught.value.hint


@pytest.mark.parametrize("subject", ["", "a.{", "a.}", "a.{}", "a.{x!r}", "a.{x:5}"])
def test_template_that_is_none_is_refused(subject: str) -> None:
    with pytest.raises(ConfigError, match="subject is"):
        options(subject=subject)


@pytest.mark.parametrize("given", [{"subject": "a.{regoin}"}, {"idColumn": "regoin"}])
def test_misspelt_column_is_answered_with_the_nearest(given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="column regoin is missing") as caught:
        check("data binary, subject string, region string", **given)

    assert caught.value.hint == "did you mean region? the columns are data, subject, region"


def test_subject_is_a_column_or_a_template() -> None:
    data = {"data": [b"x", b""], "subject": ["a.b", "c"], "n": [7, 8], "r": ["x", "y"]}
    assert [each[0] for each in rows(data)] == ["a.b", "c"]
    assert [each[0] for each in rows(data, subject="k")] == ["k", "k"]
    assert [each[0] for each in rows(data, subject="k.{n}.{r}")] == ["k.7.x", "k.8.y"]
    assert [each[0] for each in rows(data, subject="{n}.{{x}}")] == ["7.{x}", "8.{x}"]


def test_text_is_utf_8_and_headers_keep_each_value() -> None:
    pairs = pa.array(
        [
            [
                {"key": "A", "value": "1"},
                {"key": "nats-Msg-Id", "value": "x"},
                {"key": "B", "value": "2"},
                None,
                {"key": "A", "value": "3"},
                {"key": "Nats-Rollup", "value": "all"},
            ],
            None,
        ]
    )
    columns: dict[str, Any] = {"data": ["ä", ""], "subject": ["s", "s"], "headers": pairs}
    assert rows(columns) == [
        ("s", "ä".encode(), {"A": ["1", "3"], "B": ["2"]}, ""),
        ("s", b"", None, ""),
    ]
    named = pa.array([[("A", "1")], []], pa.map_(pa.string(), pa.string()))
    assert [each[2] for each in rows(columns | {"headers": named})] == [{"A": ["1"]}, None]


@pytest.mark.parametrize(
    ("columns", "given", "told"),
    [
        ({"data": [b"x", None], "subject": ["s", "s"]}, {}, "no data"),
        ({"data": [b"x", b"y"], "subject": ["s", None]}, {}, "no subject"),
        ({"data": [b"x"], "id": [None]}, {"subject": "s", "idColumn": "id"}, "no id"),
    ],
)
def test_null_is_refused(columns: dict[str, Any], given: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        rows(columns, **given)


def test_identity_is_the_message_or_its_id() -> None:
    def identities(**columns: list[Any]) -> set[bytes]:
        batch = pa.RecordBatch.from_pydict({"subject": ["a"], "data": [b"x"]} | columns)
        given = {"idColumn": "id"} if "id" in columns else {}
        return {each.identity for each in rows_of(batch, options(**given))}

    header = [[{"key": "A", "value": "1"}]]
    differing = [
        identities(),
        identities(data=[b"y"]),
        identities(subject=["b"]),
        identities(headers=header),
    ]
    assert len({each for one in differing for each in one}) == len(differing)
    assert identities(id=["k"]) == identities(id=["k"], data=[b"y"])
