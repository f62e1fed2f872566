"""Payloads as values of a Spark type, and the payloads that are malformed."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow  # noqa: ICN001 - `pa` is its untyped form.
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from pyspark_natsstream.decoding import PayloadDecoder
from pyspark_natsstream.payloads import MALFORMED, MalformedPayloadError, payload_decoder
from pyspark_natsstream.read_options import ReadOptions
from pyspark_natsstream.schema import CORRUPT_RECORD, check_schema, read_schema

from natsstream.columns import message_schema
from natsstream.errors import ConfigError
from natsstream.values import to_msgpack

if TYPE_CHECKING:
    from pyspark_natsstream.payloads import DataFormat

# Its types lack most of it.
pa: Any = pyarrow

DEEP = 100_000
MEASURED = StructType(
    [StructField("v", DoubleType()), StructField("tags", ArrayType(StringType()))]
)


def struct(kind: DataType) -> StructType:
    return StructType([StructField("v", kind)])


def value_of(payload: bytes, kind: DataType, data_format: DataFormat = "json") -> object:
    """The field `v` of a payload, as Arrow gives it back to Spark."""
    decoded = payload_decoder(data_format, struct(kind))(payload)
    column = to_arrow_schema(StructType([StructField("data", struct(kind))]), timezone="UTC")
    return pa.array([decoded], column.field("data").type).to_pylist()[0]["v"]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("9223372036854775807", LongType(), 2**63 - 1),
        ("-9223372036854775808", LongType(), -(2**63)),
        ("-128", ByteType(), -128),
        (
            "123456789012345678901234567890",
            DecimalType(38, 0),
            Decimal(123456789012345678901234567890),
        ),
        ("0.1", DecimalType(5, 2), Decimal("0.10")),
        (
            "12345678901234567890.123456789",
            DecimalType(38, 9),
            Decimal("12345678901234567890.123456789"),
        ),
        ("1", DoubleType(), 1.0),
        ("0.1", DoubleType(), 0.1),
        ("3.4028234663852886e38", FloatType(), 3.4028234663852886e38),
        ("true", BooleanType(), True),
        ('"gr\\u00fc\\u00dfe \\ud83d\\ude00"', StringType(), "grüße 😀"),
        ('"2026-11-21"', DateType(), date(2026, 11, 21)),
        (
            '"2026-11-21T06:00:00.1234567+01:00"',
            TimestampType(),
            datetime(2026, 11, 21, 5, 0, 0, 123456, UTC),
        ),
        ("[1, null, 3]", ArrayType(LongType()), [1, None, 3]),
        ('{"a": 1, "b": null}', MapType(StringType(), LongType()), [("a", 1), ("b", None)]),
        ('{"v": {"v": 7}, "more": [{}]}', struct(struct(LongType())), {"v": {"v": 7}}),
        ("{}", struct(LongType()), {"v": None}),
        ("null", struct(LongType()), None),
    ],
)
def test_json_keeps_the_value_of_its_field(text: str, kind: DataType, value: object) -> None:
    assert value_of(b'{"extra": 1, "v": %s}' % text.encode(), kind) == value


def test_field_that_is_missing_is_null_and_one_that_is_not_asked_for_is_ignored() -> None:
    assert value_of(b'{"w": 1}', LongType()) is None
    assert value_of(to_msgpack({"w": 1, 5: 2}), LongType(), "msgpack") is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("9223372036854775808", LongType()),
        ("2147483648", IntegerType()),
        ("32768", ShortType()),
        ("1.0", LongType()),
        ("true", LongType()),
        ('"1"', LongType()),
        ("1", StringType()),
        ("1", BooleanType()),
        ("1e400", DoubleType()),
        ("1e39", FloatType()),
        ("9" * 400, DoubleType()),
        ("NaN", DoubleType()),
        ("0.001", DecimalType(5, 2)),
        ("1000", DecimalType(5, 2)),
        ("1e999999999999999999999", DecimalType(5, 2)),
        ('"1.5"', DecimalType(5, 2)),
        ('"2026-02-30"', DateType()),
        ('"2026-11-21T05:00:00"', TimestampType()),
        ('"0001-01-01T00:00:00+23:00"', TimestampType()),
        ("1795237200", TimestampType()),
        ('"\\ud800"', StringType()),
        ('{"\\ud800": 1}', MapType(StringType(), LongType())),
        ("[1]", struct(LongType())),
        ("{}", ArrayType(LongType())),
        ("[]", MapType(StringType(), LongType())),
        ('[1, "2"]', ArrayType(LongType())),
        ("[" * DEEP, ArrayType(LongType())),
        ("1" * 5000, LongType()),
    ],
)
def test_json_of_another_type_or_range_is_malformed(text: str, kind: DataType) -> None:
    decode_json = payload_decoder("json", struct(kind))

    with pytest.raises(MALFORMED):
        decode_json(b'{"v": %s}' % text.encode())


@pytest.mark.parametrize(
    "payload",
    [b"", b"{", b'{"v": 1} x', b'{"v": 1}{"v": 2}', b"{'v': 1}", b'{"v": "\xff"}', b"\x00", b"[1]"],
)
def test_payload_that_is_no_json_object_is_malformed(payload: bytes) -> None:
    decode_json = payload_decoder("json", struct(StringType()))

    with pytest.raises(MALFORMED):
        decode_json(payload)


def test_complaint_names_the_field_its_value_and_the_type() -> None:
    kind = struct(ArrayType(struct(LongType())))

    with pytest.raises(ValueError, match=r"data\.v\.v\[\]\.v is 'x' \(of type str\), not bigint"):
        value_of(b'{"v": {"v": [{"v": "x"}]}}', kind)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2**63 - 1, LongType()),
        (b"\xff\x00", BinaryType()),
        (math.inf, DoubleType()),
        (datetime(2026, 11, 21, 5, 0, 0, 123456, UTC), TimestampType()),
        ([b"", None], ArrayType(BinaryType())),
    ],
)
def test_msgpack_keeps_the_value_of_its_field(value: object, kind: DataType) -> None:
    assert value_of(to_msgpack({"v": value}), kind, "msgpack") == value


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (to_msgpack({"v": 2**64 - 1}), LongType()),
        (to_msgpack({"v": b"raw"}), StringType()),
        (to_msgpack({"v": "text"}), BinaryType()),
        (to_msgpack({"v": 1.5}), DecimalType(5, 2)),
        (b"\x81\xa1v\xd4\x07x", StringType()),
        (to_msgpack({"v": {1: 2}}), MapType(StringType(), LongType())),
        (b"\x81\xa1v", LongType()),
        (b"\x81\xa1v\x01\x01", LongType()),
        (b"\x81\xa1v\xa1\xff", StringType()),
        (b"\x81\xa1v" + b"\x91" * DEEP, LongType()),
        (b"\xdd\xff\xff\xff\xff", LongType()),
        (b"\x81\xa1v\xc7\x0c\xff" + b"\xff" * 12, TimestampType()),
        (b"", LongType()),
        (b"\xc1", LongType()),
    ],
)
def test_msgpack_of_another_type_or_cut_is_malformed(payload: bytes, kind: DataType) -> None:
    decode_msgpack = payload_decoder("msgpack", struct(kind))

    with pytest.raises(MALFORMED):
        decode_msgpack(payload)


@pytest.mark.parametrize(
    ("data_format", "kind", "complaint", "hint"),
    [
        ("bytes", StringType(), "data is string", "dataFormat=bytes it is binary"),
        ("text", BinaryType(), "data is binary", "dataFormat=text it is string"),
        ("json", BinaryType(), "data is binary", "data struct<km int>"),
        ("json", struct(BinaryType()), "data.v is binary", "unbase64()"),
        ("json", struct(TimestampNTZType()), "data.v is timestamp_ntz", "timestamp"),
        ("json", MapType(LongType(), LongType()), "data is map<bigint,bigint>", "map<string"),
        ("json", StructType([StructField("v", LongType(), nullable=False)]), "data.v", "NOT NULL"),
        ("msgpack", ArrayType(LongType(), containsNull=False), "data[]", "NOT NULL"),
        ("json", StructType([StructField("v", LongType())] * 2), "struct<v", "once"),
    ],
)
def test_type_that_a_format_does_not_have_is_refused_with_the_way_out(
    data_format: DataFormat, kind: DataType, complaint: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        payload_decoder(data_format, kind)

    assert complaint in refused.value.message
    assert hint in refused.value.hint


def options(**given: str) -> ReadOptions:
    return ReadOptions.parse({"servers": "nats://h:4222", "stream": "ORDERS"} | given)


def test_text_has_a_schema_of_its_own_and_json_needs_one() -> None:
    text = read_schema(options(dataFormat="text", mode="permissive"))

    assert text["data"].dataType == StringType()
    assert text.fieldNames()[-1] == CORRUPT_RECORD
    with pytest.raises(ConfigError, match="dataFormat=json needs a schema"):
        read_schema(options(dataFormat="json"))


@pytest.mark.parametrize(
    ("names", "given", "complaint"),
    [
        (["data", CORRUPT_RECORD], {}, "would stay empty"),
        (["data"], {"mode": "PERMISSIVE"}, "needs both"),
        ([CORRUPT_RECORD], {"mode": "PERMISSIVE"}, "needs both"),
    ],
)
def test_schema_that_loses_malformed_payloads_is_refused(
    names: list[str], given: dict[str, str], complaint: str
) -> None:
    kinds: dict[str, DataType] = {"data": StringType(), CORRUPT_RECORD: BinaryType()}
    schema = StructType([StructField(name, kinds[name]) for name in names])

    with pytest.raises(ConfigError, match=complaint):
        check_schema(schema, options(dataFormat="text", **given))


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"dataFormat": "jsn"}, "did you mean json"),
        ({"dataFormat": "text", "mode": "DROPMALFORME"}, "did you mean DROPMALFORMED"),
        ({"mode": "PERMISSIVE"}, "add dataFormat"),
    ],
)
def test_illegal_format_or_mode_is_refused_with_the_nearest(
    given: dict[str, str], hint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        options(**given)

    assert hint in refused.value.hint


PAYLOADS = [b'{"v": 1, "tags": ["a"]}', b"{", b'{"v": 0.5}', b'{"v": "x"}']


def decode(schema: StructType, payloads: list[bytes], **given: str) -> tuple[Any, PayloadDecoder]:
    asked = options(**given)
    check_schema(schema, asked)
    decoder = PayloadDecoder(asked, schema)
    rows = [
        {"subject": f"o.{row}", "sequence": row + 1, "data": payload}
        for row, payload in enumerate(payloads)
    ]
    columns = message_schema(decoder.columns, time_unit="us")
    return decoder(pa.RecordBatch.from_pylist(rows, columns)), decoder


def test_malformed_payload_fails_with_the_place_of_the_message() -> None:
    schema = StructType([StructField("data", MEASURED)])

    with pytest.raises(MalformedPayloadError) as failed:
        decode(schema, PAYLOADS, dataFormat="json")

    error = failed.value
    assert (error.stream, error.subject, error.sequence) == ("ORDERS", "o.1", 2)
    assert "sequence 2 of stream ORDERS, subject o.1" in error.message
    assert "PERMISSIVE" in error.hint


def test_batch_without_messages_stays_one() -> None:
    schema = StructType([StructField("data", MEASURED)])

    batch, _ = decode(schema, [], dataFormat="json")

    assert batch.num_rows == 0


def test_few_malformed_payloads_among_many_are_found() -> None:
    schema = StructType([StructField("data", MEASURED), StructField(CORRUPT_RECORD, BinaryType())])
    payloads = [b'{"v": %d}' % row for row in range(1_000)]
    payloads[17] = payloads[18] = payloads[999] = b"{"

    batch, _ = decode(schema, payloads, dataFormat="json", mode="PERMISSIVE")

    rows = batch.to_pylist()
    assert [row for row in range(1_000) if rows[row][CORRUPT_RECORD] == b"{"] == [17, 18, 999]
    assert [row["data"]["v"] for row in rows if row["data"]] == [
        row for row in range(1_000) if row not in (17, 18, 999)
    ]


def test_malformed_payloads_are_left_out_and_counted() -> None:
    schema = StructType([StructField("sequence", LongType()), StructField("data", MEASURED)])

    batch, decoder = decode(schema, PAYLOADS, dataFormat="json", mode="DROPMALFORMED")

    assert batch.to_pylist() == [
        {"sequence": 1, "data": {"v": 1.0, "tags": ["a"]}},
        {"sequence": 3, "data": {"v": 0.5, "tags": None}},
    ]
    assert decoder.dropped == 2
    assert "left out 2 messages" in decoder.told()
    assert "sequence 2 of stream ORDERS" in decoder.told()


@pytest.mark.parametrize(
    ("data_format", "kind", "payloads", "values"),
    [
        ("json", MEASURED, PAYLOADS[:2], [{"v": 1.0, "tags": ["a"]}, None]),
        ("text", StringType(), ["grüße".encode(), b"\xff", b""], ["grüße", None, ""]),
        ("msgpack", struct(LongType()), [to_msgpack({"v": 1}), b"\xc1"], [{"v": 1}, None]),
    ],
)
def test_malformed_payloads_are_kept_as_they_are_stored(
    data_format: str, kind: DataType, payloads: list[bytes], values: list[object]
) -> None:
    """The batch has exactly the schema that Spark compares it with."""
    schema = StructType([StructField(CORRUPT_RECORD, BinaryType()), StructField("data", kind)])

    batch, _ = decode(schema, payloads, dataFormat=data_format, mode="PERMISSIVE")

    batch.validate(full=True)
    assert batch.schema.equals(to_arrow_schema(schema, timezone="UTC"))
    assert batch.column("data").to_pylist() == values
    kept = [
        None if value is not None else payload
        for value, payload in zip(values, payloads, strict=True)
    ]
    assert batch.column(CORRUPT_RECORD).to_pylist() == kept
