"""The options of reads of several streams, and how they share a micro-batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark_natsstream.offsets import Offset, OffsetError, merged, parts_of
from pyspark_natsstream.read_options import EARLIEST, Position
from pyspark_natsstream.source import read_options_of
from pyspark_natsstream.streams_options import StreamsOptions, shares

from natsstream.errors import ConfigError

GIVEN = {"servers": "nats://127.0.0.1:4222", "streams": "B,A"}


def test_each_stream_has_the_options_of_all() -> None:
    options = StreamsOptions.parse({**GIVEN, "subjects": "eu.>", "includeHeaders": "true"})
    assert [each.stream for each in options.each] == ["A", "B"]
    assert all(each.subjects == ("eu.>",) and each.include_headers for each in options.each)
    assert {each.starting_offsets for each in options.each} == {EARLIEST}


def test_positions_are_given_for_all_or_for_each() -> None:
    text = '{"A": "first_seq:7", "B": "latest"}'
    options = StreamsOptions.parse({**GIVEN, "startingOffsets": text})
    assert [each.starting_offsets for each in options.each] == [
        Position("first_seq", 7),
        Position("latest"),
    ]
    assert StreamsOptions.parse(options.to_text()) == options


def test_bytes_of_a_micro_batch_are_divided_among_the_streams() -> None:
    options = StreamsOptions.parse({**GIVEN, "maxBytesPerTrigger": "1001"})
    assert [each.max_bytes_per_trigger for each in options.each] == [500, 500]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"streams": ""}, "streams is empty"),
        ({"streams": "A,B,A"}, "names a stream twice"),
        ({"startingOffsets": '{"A":"earliest"}'}, "startingOffsets is of A, but streams is A, B"),
        ({"startingOffsets": '{"A":"earliest","C":"latest"}'}, "is of A, C"),
        ({"startingOffsets": '{"A":'}, "is not JSON"),
        ({"startingOffsets": '{"A":"now","B":"latest"}'}, "'now' is not a position"),
        ({"endingOffsets": "earliest"}, "endingOffsets"),
        ({"stream": "A"}, "stream and streams exclude each other"),
        ({"streem": "A"}, "streem"),
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_options_of({**GIVEN, **wrong})


@given(
    st.dictionaries(st.text(max_size=3), st.integers(1, 1000), min_size=1, max_size=6),
    st.integers(1, 3000),
)
def test_rows_are_shared_fairly_and_none_is_wasted(backlogs: dict[str, int], rows: int) -> None:
    found = shares(rows, backlogs)
    assert sum(found.values()) == min(rows, sum(backlogs.values()))
    served = [found[name] for name in backlogs if found[name] < backlogs[name]]
    for name, share in found.items():
        assert 0 <= share <= backlogs[name]
        # Who gets less than another one either needs no more, or lacks one row of the division.
        assert all(share <= other + 1 for other in served)


def test_offset_has_a_place_for_each_stream() -> None:
    offsets = {
        name: Offset(stream=name, next_seq=n, created_ns=n) for n, name in enumerate("AB", 1)
    }
    whole = merged(each.to_json() for each in offsets.values())
    assert parts_of(whole, ["A", "B"]) == {n: each.to_json() for n, each in offsets.items()}
    with pytest.raises(OffsetError, match=r"it is of A, B, but the option is streams=A, C"):
        parts_of(whole, ["A", "C"])
    with pytest.raises(OffsetError, match="no stream"):
        parts_of("nothing", ["A"])
