"""JSON read many payloads at a time: the same values as one by one, or none."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow  # noqa: ICN001 - `pa` is its untyped form.
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
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
    StringType,
    StructField,
    StructType,
    TimestampType,
)
from pyspark_natsstream.json_columns import json_columns
from pyspark_natsstream.payloads import MALFORMED, payload_decoder

if TYPE_CHECKING:
    from collections.abc import Sequence

# Its types lack most of it.
pa: Any = pyarrow

SEED = 20261127
CASES = 1_500


def struct(**fields: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in fields.items()])


INNER = struct(a=DoubleType(), t=TimestampType())
KIND = struct(
    i=IntegerType(),
    s=StringType(),
    b=BooleanType(),
    d=DoubleType(),
    t=TimestampType(),
    day=DateType(),
    o=INNER,
    l=ArrayType(INNER),
    n=ArrayType(ByteType()),
)
GOOD = b'{"i":1,"s":"x"}'


def at_once(payloads: Sequence[bytes], kind: StructType = KIND) -> Any:
    """What Arrow reads, None if it is left to Python."""
    read = json_columns(kind)
    assert read is not None
    return read(payloads)


def one_by_one(payloads: Sequence[bytes], kind: StructType = KIND) -> Any:
    """The column that Python makes; raises one of `MALFORMED`."""
    decode = payload_decoder("json", kind)
    column = to_arrow_schema(struct(data=kind), timezone="UTC").field("data").type
    return pa.array([decode(payload) for payload in payloads], column)


@pytest.mark.parametrize(
    "payloads",
    [
        [GOOD, b"{}", b'{"s":null}', b'{"more":{"i":"x","s":[1,{}]},"i":2}'],
        ['{"s":"grüße \\ud83d\\ude00 \\u0000 \\n"}'.encode(), b'{\n  "i" :\t7\r\n}'],
        [b'{"d":1,"i":-0}', b'{"d":-0.0}', b'{"d":5e-324}', b'{"d":0.30000000000000004}'],
        [b'{"t":"2013-01-01T10:00:00Z","day":"2013-01-01"}', b'{"t":"9999-12-31T23:59:59.1Z"}'],
        [b'{"o":{"t":"2013-01-01T10:00:00.123456Z"},"l":[{"a":1.5},null,{}]}', b'{"o":null}'],
        [b'{"l":[],"n":[1,-128,null]}', b'{"n":null,"b":true}', b'{"s":"}{ Info, NaN"}'],
    ],
)
def test_well_formed_payloads_are_read_at_once(payloads: list[bytes]) -> None:
    found = at_once(payloads)

    assert found is not None
    found.validate(full=True)
    assert found.equals(one_by_one(payloads))


@pytest.mark.parametrize(
    "payloads",
    [
        [b'{"i":1}{"i":2}', b'{"i":3}\0{"i":4}', b'{"i":5}'],
        [b'{"i":1}{"i":2}', b'{"o":{"a":1}'],
        [b'{"s":"}', b'{"}'],
        [b'{"i":1}null{"i":2}'],
        [b""],
        [b" ", b'{"i":1}{"i":2}'],
        [b'{"i":1.0}'],
        [b'{"i":2147483648}'],
        [b'{"i":"1"}'],
        [b'{"s":1}'],
        [b'{"b":1}'],
        [b'{"d":%s}' % (b"9" * 400)],
        [b'{"d":1e400}'],
        [b'{"d":NaN}'],
        [b'{"x":[-Infinity]}'],
        [b'{"s":"\xff"}'],
        [b'{"x":"\xff"}'],
        [b'{"s":"\\ud800"}'],
        [b'{"day":"2013-02-30"}'],
        [b'{"t":"2013-01-01T10:00Z"}'],
        [b'{"l":[{"t":"2013-01-01"}]}'],
        [b'{"x":' + b"[" * 100_000 + b"}"],
    ],
)
def test_malformed_payload_is_never_read(payloads: list[bytes]) -> None:
    """Also where others make up for it."""
    assert at_once([GOOD, *payloads, GOOD]) is None
    with pytest.raises(MALFORMED):
        one_by_one(payloads)


@pytest.mark.parametrize(
    "payloads",
    [
        [b"null"],
        [b' {"i":1}'],
        [b'{"i":1,"i":2}'],
        [b'{"t":"2013-01-01T10:00:00+01:00"}'],
        [b'{"t":"2013-01-01 10:00:00Z"}'],
        [b'{"x":"[NaN]"}'],
    ],
)
def test_form_that_arrow_reads_otherwise_is_left_to_python(payloads: list[bytes]) -> None:
    assert at_once(payloads) is None
    assert len(one_by_one(payloads)) == 1


@pytest.mark.parametrize(
    "kind",
    [
        struct(v=DecimalType(10, 2)),
        struct(v=FloatType()),
        struct(v=MapType(StringType(), LongType())),
        struct(v=ArrayType(struct(w=FloatType()))),
        struct(v=StructType([])),
        ArrayType(LongType()),
        LongType(),
        StructType([]),
    ],
)
def test_type_that_arrow_reads_otherwise_is_left_to_python(kind: DataType) -> None:
    assert json_columns(kind) is None


def test_damaged_payloads_are_read_as_one_by_one_or_not_at_all() -> None:
    rng, read = random.Random(SEED), 0  # noqa: S311 - a test's own damage.

    for _ in range(CASES):
        payloads = [some_object(rng) for _ in range(rng.randint(1, 6))]
        share = rng.choice([0, 0.3, 0.6])
        payloads = [damaged(rng, each) if rng.random() < share else each for each in payloads]
        if rng.random() < 0.3:  # Past the look at the first and the last byte.
            payloads = [b"{%b}" % each.strip(b"{}") for each in payloads]
        found = at_once(payloads)
        if found is not None:
            read += 1
            assert found.equals(one_by_one(payloads)), (SEED, payloads)

    assert CASES / 4 < read < CASES * 3 / 4


JUNK = [
    *(bytes([each]) for each in b'{}[],:"\\\n\r \t\0\xff1-0.'),
    *(b"null", b"NaN", b"-Inf", b"true", b"1e400", b"e5", b'"i":1', b"9" * 400, b"//", b"\\u0000"),
    *(b"}{", b"}null{", b"} {", b"}[]{", b"{}", b"\xef\xbb\xbf", b"\\ud800", b'"i":1,"i":2'),
]


def some_object(rng: random.Random) -> bytes:
    """A payload of `KIND`, without some fields and with others."""
    values: dict[str, list[object]] = {
        "i": [0, -1, 2**31 - 1, -(2**31)],
        "s": ["", "é😀", "a\nb", "NaN", "Info", "\0", "}{", '{"i":1}', "\\"],
        "b": [True, False, None],
        "d": [1, 0.1, -1e-300, 1.7e308, 5e-324, 123456789012345678, rng.random()],
        "t": [None, "2026-11-27T01:02:03Z", "1999-01-01T00:00:00.5Z", "2026-11-27T01:02:03-05:00"],
        "day": [None, "2026-11-27"],
        "o": [None, {}, {"a": 1, "t": None}, {"a": 0.5, "x": [1, {}]}],
        "l": [None, [], [None], [{"a": 1.5, "t": "2026-11-27T01:02:03Z"}, {}]],
        "n": [None, [], [1, -128, 127, None]],
        rng.choice(["z", "I", "i ", ""]): [1, "NaN", [[[]]], {"i": {"i": "x"}}],
    }
    chosen = {name: rng.choice(some) for name, some in values.items() if rng.random() < 0.5}
    return json.dumps(chosen, ensure_ascii=rng.random() < 0.5, separators=(",", ":")).encode()


def damaged(rng: random.Random, payload: bytes) -> bytes:
    """A payload that was cut, or has something in it that JSON may not have."""
    for _ in range(rng.randint(1, 3)):
        at, cut = rng.randint(0, len(payload)), rng.choice([0, 0, 1, 5, len(payload)])
        payload = payload[:at] + rng.choice([b"", *JUNK]) + payload[at + cut :]
    return payload
