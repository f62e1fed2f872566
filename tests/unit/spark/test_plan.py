from __future__ import annotations

import pickle
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import InputPartition
from pyspark_natsstream.offsets import Offset
from pyspark_natsstream.plan import (
    PARTITIONS_MAX,
    Limit,
    Partition,
    StreamState,
    admit,
    advance,
    check_retention,
    ranges_between,
    resume,
    split,
    start_of,
    stop_of,
)
from pyspark_natsstream.read_options import ReadOptions, parse_position

from natsstream.errors import (
    ConfigError,
    MessagesLostError,
    SequenceRangeError,
    StreamRecreatedError,
)

CREATED_NS = 1_795_237_200_000_000_000
ANEW_NS = CREATED_NS + 1
NO_LIMIT = Limit()


def stream(first: int, last: int, *, created_ns: int = CREATED_NS) -> StreamState:
    """A stream of 100-byte messages without gaps; last = first - 1 is an empty one."""
    return StreamState(
        stream="ORDERS",
        created_ns=created_ns,
        messages=last - first + 1,
        stored_bytes=100 * (last - first + 1),
        first_seq=first,
        last_seq=last,
    )


NEVER_USED = StreamState(
    stream="ORDERS", created_ns=CREATED_NS, messages=0, stored_bytes=0, first_seq=0, last_seq=0
)


def at(next_seq: int, *, created_ns: int = CREATED_NS) -> Offset:
    return Offset(stream="ORDERS", next_seq=next_seq, created_ns=created_ns)


def options(
    start: str = "earliest",
    stop: str = "latest",
    *,
    fail: bool = True,
    partitions_min: int = 1,
    records_max: int | None = None,
) -> ReadOptions:
    return ReadOptions(
        servers=("nats://h:4222",),
        stream="ORDERS",
        starting_offsets=parse_position(start),
        ending_offsets=parse_position(stop),
        fail_on_data_loss=fail,
        min_partitions=partitions_min,
        max_records_per_partition=records_max,
    )


class Looked:
    """Answers of a stream, and the questions."""

    def __init__(self, *answers: int | None) -> None:
        self.asked: list[tuple[int, ...]] = []
        self._answers = list(answers)

    def sequence_at(self, time_ns: int) -> int | None:
        self.asked.append((time_ns,))
        return self._answers.pop(0)

    def first_of_newest(self, count: int, last_seq: int) -> int:
        self.asked.append((count, last_seq))
        return self._answers.pop(0) or 0


def spans(partitions: list[Partition]) -> list[tuple[int, int]]:
    return [(each.first_seq, each.last_seq) for each in partitions]


# Where a read begins and ends.


@pytest.mark.parametrize(
    ("position", "next_seq"),
    [
        ("earliest", 11),
        ("latest", 31),
        ("first_seq:20", 20),
        ("first_seq:31", 31),
    ],
)
def test_start_lies_where_the_position_says(position: str, next_seq: int) -> None:
    assert start_of(options(position), stream(11, 30), Looked()) == at(next_seq)


@pytest.mark.parametrize("position", ["earliest", "latest", "first_seq:1"])
def test_start_in_a_stream_that_never_had_a_message_is_1(position: str) -> None:
    assert start_of(options(position), NEVER_USED, Looked()) == at(1)


def test_start_by_time_is_the_first_message_at_or_after_it() -> None:
    looked = Looked(17)

    found = start_of(options("start_time:1970-01-01T00:00:01Z"), stream(11, 30), looked)

    assert found == at(17)
    assert looked.asked == [(1_000_000_000,)]


@pytest.mark.parametrize(("stop_seq", "last"), [(None, 30), (21, 20)])
def test_start_by_newest_counts_back_from_the_end(stop_seq: int | None, last: int) -> None:
    looked = Looked(14)

    found = start_of(options("newest:5"), stream(11, 30), looked, stop_seq=stop_seq)

    assert found == at(14)
    assert looked.asked == [(5, last)]


def test_start_by_a_time_after_the_last_message_is_the_end() -> None:
    found = start_of(options("start_time:2100-01-01T00:00:00Z"), stream(11, 30), Looked(None))

    assert found == at(31)


def test_start_beyond_the_end_is_refused_with_what_the_stream_holds() -> None:
    with pytest.raises(
        SequenceRangeError, match="first_seq:32, but stream ORDERS holds"
    ) as refused:
        start_of(options("first_seq:32"), stream(11, 30), Looked())

    assert (refused.value.first_seq, refused.value.last_seq) == (11, 30)


@pytest.mark.parametrize("start", ["first_seq:11", "first_seq:31", "newest:3"])
def test_what_the_hint_offers_is_taken(start: str) -> None:
    with pytest.raises(SequenceRangeError) as refused:
        start_of(options("first_seq:32"), stream(11, 30), Looked())
    assert refused.value.hint == "give first_seq:11 to first_seq:31, or newest:N"

    assert start_of(options(start), stream(11, 30), Looked(28)).next_seq in {11, 28, 31}


def test_beyond_the_end_of_an_end_and_of_an_empty_stream() -> None:
    with pytest.raises(SequenceRangeError) as refused:
        stop_of(options(stop="last_seq:31"), stream(11, 30), Looked())
    assert refused.value.hint == "leave it out for all, or give last_seq:30 or less"
    with pytest.raises(SequenceRangeError) as refused:
        start_of(options("first_seq:9"), stream(1, 0), Looked())
    assert refused.value.hint == "leave startingOffsets out until the stream has messages"


@pytest.mark.parametrize(
    ("position", "next_seq"), [("latest", 31), ("last_seq:30", 31), ("last_seq:20", 21)]
)
def test_end_by_sequence_is_inclusive(position: str, next_seq: int) -> None:
    assert stop_of(options(stop=position), stream(11, 30), Looked()) == at(next_seq)


def test_end_by_time_leaves_out_the_message_at_that_time() -> None:
    found = stop_of(options(stop="end_time:1970-01-01T00:00:01Z"), stream(11, 30), Looked(17))

    assert found == at(17)


def test_end_beyond_the_last_message_is_refused() -> None:
    with pytest.raises(SequenceRangeError, match="endingOffsets is last_seq:31"):
        stop_of(options(stop="last_seq:31"), stream(11, 30), Looked())


def test_end_beyond_the_last_message_is_cut_when_loss_may_be() -> None:
    found = stop_of(options(stop="last_seq:99", fail=False), stream(11, 30), Looked())

    assert found == at(31)


# What is loss.


@pytest.mark.parametrize("next_seq", [11, 20, 31])
def test_offset_that_the_stream_holds_goes_on_where_it_is(next_seq: int) -> None:
    assert resume(at(next_seq), stream(11, 30), fail_on_data_loss=True) == (next_seq, "")


def test_stream_created_anew_is_an_error_that_names_the_option() -> None:
    with pytest.raises(StreamRecreatedError, match="ORDERS was created anew") as lost:
        resume(at(20), stream(1, 30, created_ns=ANEW_NS), fail_on_data_loss=True)

    assert "failOnDataLoss=false" in lost.value.hint


def test_head_that_is_gone_is_an_error_with_the_range() -> None:
    with pytest.raises(MessagesLostError, match="sequences 5 to 10 are gone") as lost:
        resume(at(5), stream(11, 30), fail_on_data_loss=True)

    assert (lost.value.first_seq, lost.value.last_seq) == (5, 10)
    assert "failOnDataLoss=false" in lost.value.hint


def test_purge_of_everything_unread_is_an_error_with_the_range() -> None:
    with pytest.raises(MessagesLostError, match="sequences 5 to 30 are gone"):
        resume(at(5), stream(31, 30), fail_on_data_loss=True)


def test_tail_that_is_gone_is_an_error_with_the_range() -> None:
    with pytest.raises(MessagesLostError, match="31 to 49 are gone") as lost:
        resume(at(50), stream(11, 30), fail_on_data_loss=True)

    assert (lost.value.first_seq, lost.value.last_seq) == (31, 49)


@pytest.mark.parametrize(
    ("offset", "state", "next_seq"),
    [
        (at(20), stream(1, 30, created_ns=ANEW_NS), 1),
        (at(5), stream(11, 30), 11),
        (at(5), stream(31, 30), 31),
        # From the end and not from the first message: 11 to 30 were read before.
        (at(50), stream(11, 30), 31),
    ],
)
def test_accepted_loss_warns_and_goes_on_at_the_first_unread_message(
    offset: Offset, state: StreamState, next_seq: int
) -> None:
    resumed = resume(offset, state, fail_on_data_loss=False)

    assert resumed.next_seq == next_seq
    assert "ORDERS" in resumed.warning


@pytest.mark.parametrize("retention", ["workqueue", "interest"])
def test_retention_that_acks_drive_is_refused_with_the_way_out(retention: str) -> None:
    with pytest.raises(ConfigError, match=retention) as refused:
        check_retention("ORDERS", retention)

    assert "read the mirror" in refused.value.hint


def test_retention_by_limits_is_read() -> None:
    check_retention("ORDERS", "limits")


# How much a micro-batch takes.


@pytest.mark.parametrize(
    ("limit", "end"),
    [
        (NO_LIMIT, 31),
        (Limit(5), 16),
        (Limit(500), 31),
        (Limit(None, 700), 18),
        (Limit(None, 1), 12),
        (Limit(5, 700), 16),
        (Limit(9, 700), 18),
        (Limit(None, None, 20), 31),
        (Limit(None, None, 21), 11),
        (Limit(5, None, 20), 16),
    ],
)
def test_micro_batch_takes_what_its_limit_allows(limit: Limit, end: int) -> None:
    """The stream has 20 messages of 100 bytes."""
    assert admit(11, 31, limit, stream(11, 30)) == end


limits = st.builds(
    Limit,
    st.none() | st.integers(1, 50),
    st.none() | st.integers(1, 5_000),
    st.integers(1, 30),
)


@given(st.integers(1, 100), st.integers(0, 100), limits)
def test_micro_batches_reach_the_end_and_never_pass_it(
    first: int, count: int, limit: Limit
) -> None:
    """Unless too few messages are left for the limit's minimum."""
    state, place = stream(first, first + count - 1), first
    for _ in range(count + 1):
        end = admit(place, state.stop_seq, limit, state)
        assert place <= end <= state.stop_seq
        if end == place:
            break
        place = end
    assert state.stop_seq - place < limit.sequences_min


def test_query_stays_where_it_is_when_nothing_is_new() -> None:
    end, warning = advance(at(31), stream(11, 30), NO_LIMIT, target=None, fail_on_data_loss=True)

    assert (end, warning) == (at(31), "")


def test_query_that_ends_does_not_pass_its_end() -> None:
    end, _ = advance(at(11), stream(11, 30), NO_LIMIT, target=at(21), fail_on_data_loss=True)

    assert end == at(21)


def test_query_stays_at_its_end_while_the_stream_grows() -> None:
    end, _ = advance(at(21), stream(11, 30), NO_LIMIT, target=at(21), fail_on_data_loss=True)

    assert end == at(21)


def test_query_that_ends_comes_to_rest_after_a_purge_beyond_its_end() -> None:
    """Else a query with AvailableNow would never end."""
    state = stream(40, 50)
    once, warning = advance(at(11), state, NO_LIMIT, target=at(21), fail_on_data_loss=False)

    again, no_warning = advance(once, state, NO_LIMIT, target=at(21), fail_on_data_loss=False)

    assert warning
    assert (again, no_warning) == (once, "")


def test_accepted_new_stream_is_read_from_its_first_message_with_the_limit() -> None:
    state = stream(1, 30, created_ns=ANEW_NS)

    end, warning = advance(at(500), state, Limit(10), target=None, fail_on_data_loss=False)

    assert end == at(11, created_ns=ANEW_NS)
    assert warning


def test_warning_is_given_once() -> None:
    """An offset that did not move would warn 70 times a second."""
    state = stream(31, 30)
    once, warning = advance(at(5), state, NO_LIMIT, target=None, fail_on_data_loss=False)

    _, again = advance(once, state, NO_LIMIT, target=None, fail_on_data_loss=False)

    assert warning
    assert not again


# Ranges.


@given(
    st.integers(1, 2**62),
    st.integers(0, 5_000),
    st.integers(1, 300),
    st.none() | st.integers(1, 5_000),
)
def test_split_covers_the_range_exactly_and_in_order(
    first: int, count: int, partitions_min: int, sequences_max: int | None
) -> None:
    last = first + count - 1

    found = split(first, last, partitions_min=partitions_min, sequences_max=sequences_max)

    sizes = [stop - start + 1 for start, stop in found]
    assert sum(sizes) == count
    assert all(size >= 1 for size in sizes)
    assert len(found) >= min(partitions_min, count)
    if found:
        assert (found[0][0], found[-1][1]) == (first, last)
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= (sequences_max or count)
    for (_, stop), (start, _) in pairwise(found):
        assert start == stop + 1


def test_split_has_a_limit_and_names_the_options() -> None:
    assert len(split(1, PARTITIONS_MAX, sequences_max=1)) == PARTITIONS_MAX

    with pytest.raises(ConfigError, match="10001 partitions") as refused:
        split(1, PARTITIONS_MAX + 1, sequences_max=1)

    assert "maxRecordsPerPartition" in refused.value.hint


def test_ranges_bear_the_identity_of_the_stream() -> None:
    found, warning = ranges_between(
        at(11), at(31), stream(11, 50), options(partitions_min=2, records_max=8)
    )

    assert found == [
        Partition(stream="ORDERS", first_seq=first, last_seq=last, created_ns=CREATED_NS)
        for first, last in [(11, 17), (18, 24), (25, 30)]
    ]
    assert not warning


@pytest.mark.parametrize(("start", "end"), [(20, 20), (21, 20), (31, 31)])
def test_start_at_or_after_the_end_gives_no_range(start: int, end: int) -> None:
    assert ranges_between(at(start), at(end), stream(11, 30), options()) == ([], "")


def test_ranges_keep_their_numbers_when_the_beginning_is_gone() -> None:
    """A sink that repeats a batch knows its rows by the number of their range."""
    parts = options(partitions_min=3)

    def ranges(start: int) -> list[tuple[int, int]]:
        found, _ = ranges_between(at(start), at(31), stream(start, 30), parts, planned_seq=1)
        return spans(found)

    assert ranges(1) == [(1, 10), (11, 20), (21, 30)]
    assert ranges(3) == [(3, 10), (11, 20), (21, 30)]
    assert ranges(15) == [(15, 10), (15, 20), (21, 30)]


def test_ranges_over_a_purge_are_an_error() -> None:
    with pytest.raises(MessagesLostError, match="sequences 11 to 14 are gone"):
        ranges_between(at(11), at(31), stream(15, 30), options())


def test_ranges_over_an_accepted_purge_begin_after_it() -> None:
    found, warning = ranges_between(at(11), at(31), stream(15, 30), options(fail=False))

    assert spans(found) == [(15, 30)]
    assert warning


def test_ranges_of_a_stream_that_is_created_anew_are_an_error() -> None:
    state = stream(1, 50, created_ns=ANEW_NS)

    with pytest.raises(StreamRecreatedError):
        ranges_between(at(11), at(31), state, options())


def test_ranges_of_a_stream_that_is_gone_are_none_when_loss_is_accepted() -> None:
    state = stream(1, 50, created_ns=ANEW_NS)

    found, warning = ranges_between(at(11), at(31), state, options(fail=False))

    assert found == []
    assert warning


def test_ranges_into_an_accepted_new_stream_begin_at_its_first_message() -> None:
    state = stream(1, 50, created_ns=ANEW_NS)

    found, _ = ranges_between(at(500), at(31, created_ns=ANEW_NS), state, options(fail=False))

    assert spans(found) == [(1, 30)]


def test_ranges_over_a_lost_tail_are_an_error() -> None:
    with pytest.raises(MessagesLostError, match="31 to 49 are gone"):
        ranges_between(at(11), at(50), stream(11, 30), options())


def test_ranges_over_an_accepted_lost_tail_end_where_the_stream_does() -> None:
    found, warning = ranges_between(at(11), at(50), stream(11, 30), options(fail=False))

    assert spans(found) == [(11, 30)]
    assert warning


@given(st.data())
def test_accepted_loss_never_reads_a_message_twice(data: st.DataObject) -> None:
    """Whatever happens to one stream, the ranges of a query only go forward."""
    accept = options(fail=False)
    place, read_last, stop = at(1), 0, 1
    for _ in range(data.draw(st.integers(1, 8))):
        stop += data.draw(st.integers(0, 10))
        first = data.draw(st.integers(1, stop))
        state = stream(first, stop - 1)
        limit = data.draw(limits)
        end, _ = advance(place, state, limit, target=None, fail_on_data_loss=False)
        for span in spans(ranges_between(place, end, state, accept)[0]):
            assert span[0] > read_last
            read_last = span[1]
        place = end


def test_partition_survives_pickling_as_spark_needs_it() -> None:
    partition = Partition(stream="ORDERS", first_seq=1, last_seq=9, created_ns=CREATED_NS)

    assert isinstance(partition, InputPartition)
    assert pickle.loads(pickle.dumps(partition)) == partition  # noqa: S301 - Made one line above.
