from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark_natsstream.options import option_notes, option_table, spark_name
from pyspark_natsstream.read_options import (
    EARLIEST,
    LATEST,
    Position,
    ReadOptions,
    parse_position,
)
from pyspark_natsstream.write_options import WriteOptions

from natsstream.errors import ConfigError
from natsstream.units import parse_rfc3339
from tests.support.accounts import KeyPair, Operator

GIVEN = {"servers": "nats://h:4222", "stream": "ORDERS"}
SECRET = "s3cr3t"  # noqa: S105 - What must not be shown.
USER = KeyPair.new("user")
SEED, JWT = USER.seed, Operator().user_jwt(USER)

positions = st.one_of(
    st.sampled_from([EARLIEST, LATEST]),
    st.builds(Position, st.sampled_from(["first_seq", "newest"]), st.integers(1, 2**63 - 1)),
    st.builds(Position, st.just("start_time"), st.integers(0, 4 * 10**18)),
)
ends = st.one_of(
    st.just(LATEST),
    st.builds(Position, st.just("last_seq"), st.integers(1, 2**63 - 1)),
    st.builds(Position, st.just("end_time"), st.integers(0, 4 * 10**18)),
)
counts = st.integers(1, 10**12)
seconds = st.floats(0.001, 3600)
options_made = st.builds(
    ReadOptions,
    servers=st.just(("nats://a:1", "tls://b:2")),
    stream=st.just("ORDERS"),
    subjects=st.lists(st.sampled_from(["a.>", "b.*.c"]), unique=True).map(tuple),
    starting_offsets=positions,
    ending_offsets=ends,
    max_messages_per_trigger=st.none() | counts,
    max_bytes_per_trigger=st.none() | counts,
    min_partitions=counts,
    max_records_per_partition=st.none() | counts,
    fail_on_data_loss=st.booleans(),
    include_headers=st.booleans(),
    control=st.booleans(),
    data_format=st.sampled_from(["text", "json", "msgpack"]),
    mode=st.sampled_from(["FAILFAST", "DROPMALFORMED", "PERMISSIVE"]),
    filter_pushdown=st.booleans(),
    context=st.none() | st.just("staging"),
    creds=st.none() | st.just("/etc/nats/user.creds"),
    nkey=st.none() | st.just("/etc/nats/user.nk"),
    ca=st.none() | st.just("/etc/nats/ca.pem"),
    cert=st.none() | st.just("/etc/nats/cert.pem"),
    key=st.none() | st.just("/etc/nats/key.pem"),
    tls_first=st.booleans(),
    domain=st.none() | st.just("hub"),
    inbox_prefix=st.none() | st.just("_INBOX_spark"),
    request_timeout=seconds,
    reconnect_timeout=seconds,
)


def parse(**options: str) -> ReadOptions:
    return ReadOptions.parse(GIVEN | options)


@given(options_made)
def test_options_come_back_from_their_text_as_they_were(options: ReadOptions) -> None:
    assert ReadOptions.parse(options.to_text()) == options


def test_options_that_are_left_out_have_the_documented_defaults() -> None:
    options = parse()

    assert options == ReadOptions(servers=("nats://h:4222",), stream="ORDERS")
    assert options.starting_offsets == EARLIEST
    assert options.ending_offsets == LATEST
    assert options.fail_on_data_loss
    assert not options.include_headers
    assert not options.control
    assert options.data_format == "bytes"
    assert options.mode == "FAILFAST"
    assert not options.filter_pushdown


def test_option_names_are_field_names_in_camel_case() -> None:
    assert spark_name("max_messages_per_trigger") == "maxMessagesPerTrigger"
    assert spark_name("stream") == "stream"


def test_option_names_ignore_case() -> None:
    """Spark's own dictionary hands over lower-case names."""
    assert parse(startingoffsets="first_seq:7").starting_offsets == Position("first_seq", 7)
    assert parse(STARTINGOFFSETS="FIRST_SEQ:7").starting_offsets == Position("first_seq", 7)


def test_option_given_twice_in_different_case_is_refused() -> None:
    with pytest.raises(ConfigError, match="includeHeaders is given twice"):
        parse(includeheaders="true", includeHeaders="false")


def test_lists_are_split_at_commas_and_trimmed() -> None:
    options = parse(servers="nats://a:1, nats://b:2", subjects=" a.> ,b.*.c,")

    assert options.servers == ("nats://a:1", "nats://b:2")
    assert options.subjects == ("a.>", "b.*.c")


def test_list_in_brackets_is_refused_as_no_filter_matches() -> None:
    with pytest.raises(ConfigError) as refused:
        parse(subjects='["a.>", "b"]')
    assert "a.>,b.*.c" in refused.value.hint


@pytest.mark.parametrize("text", ["", " , "])
def test_empty_filters_do_not_read_all(text: str) -> None:
    """As of a variable that is not set."""
    with pytest.raises(ConfigError, match="subjects: it is empty") as caught:
        parse(subjects=text)
    assert caught.value.hint == "leave it out to read all"


def test_choices_ignore_case() -> None:
    options = parse(dataFormat=" JSON", mode="permissive")

    assert (options.data_format, options.mode) == ("json", "PERMISSIVE")


def test_unknown_option_is_refused_with_the_closest_name_and_the_list() -> None:
    with pytest.raises(ConfigError) as refused:
        parse(startSequence="5")

    assert "'startSequence'" in refused.value.message
    assert all(spark_name(name) in refused.value.hint for name in option_notes(ReadOptions))

    with pytest.raises(ConfigError, match="did you mean startingOffsets"):
        parse(startingOffset="first_seq:5")


def test_path_of_load_is_refused_with_the_option_that_names_the_stream() -> None:
    with pytest.raises(ConfigError, match="stream is named by the option stream"):
        parse(path="ORDERS")


@pytest.mark.parametrize("name", ["servers", "stream"])
def test_required_option_that_is_missing_is_named(name: str) -> None:
    given_options = {key: value for key, value in GIVEN.items() if key != name}

    with pytest.raises(ConfigError, match=f"needs the option {name}"):
        ReadOptions.parse(given_options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("servers", ""),
        ("servers", "http://h:1"),
        ("servers", "nats://h:notaport"),
        ("stream", "  "),
        ("startingOffsets", "first"),
        ("startingOffsets", "first_seq"),
        ("startingOffsets", "earliest:1"),
        ("startingOffsets", "first_seq:0"),
        ("startingOffsets", "first_seq:-1"),
        ("startingOffsets", "first_seq:1_000"),
        ("startingOffsets", "first_seq:٣"),  # An Arabic digit, which int() takes.
        ("startingOffsets", "first_seq:9223372036854775808"),
        ("startingOffsets", "newest:0"),
        ("startingOffsets", "last_seq:5"),
        ("startingOffsets", "end_time:2026-11-21T05:00:00Z"),
        ("startingOffsets", "start_time:yesterday"),
        ("startingOffsets", "start_time:2026-11-21T05:00:00"),
        ("endingOffsets", "earliest"),
        ("endingOffsets", "newest:5"),
        ("endingOffsets", "first_seq:5"),
        ("maxMessagesPerTrigger", "0"),
        ("maxBytesPerTrigger", "1.5"),
        ("minPartitions", "-2"),
        ("maxRecordsPerPartition", "many"),
        ("failOnDataLoss", "yes"),
        ("includeHeaders", ""),
        ("requestTimeout", "0"),
        ("requestTimeout", "nan"),
        ("reconnectTimeout", "3601"),
        ("reconnectTimeout", "inf"),
        ("reconnectTimeout", "soon"),
        ("domain", "a.b"),
        ("apiPrefix", "a.>"),
        ("inboxPrefix", ""),
        ("tlsFirst", "yes"),
    ],
)
def test_value_that_can_not_work_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError):
        parse(**{name: value})


def test_refused_value_names_its_option() -> None:
    with pytest.raises(ConfigError, match=r"^maxMessagesPerTrigger: 'x' is not a whole number"):
        parse(maxMessagesPerTrigger="x")
    with pytest.raises(ConfigError, match=r"^maxMessagesPerTrigger is 0"):
        parse(maxMessagesPerTrigger="0")


@pytest.mark.parametrize(
    ("name", "value", "hint"),
    [
        ("requestTimeout", "5s", "a number without a unit, such as 2.5"),
        ("minPartitions", "many", "digits only, such as 10"),
    ],
)
def test_text_that_is_no_number_is_refused_with_its_form(name: str, value: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: '{value}' is not a") as refused:
        parse(**{name: value})
    assert refused.value.hint == f"write {hint}"


def test_zero_made_in_python_is_refused_like_its_text() -> None:
    with pytest.raises(ConfigError, match="minPartitions is 0"):
        ReadOptions(servers=("nats://h:1",), stream="ORDERS", min_partitions=0)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", EARLIEST),
        ("LATEST", LATEST),
        ("first_seq:124", Position("first_seq", 124)),
        ("last_seq:7", Position("last_seq", 7)),
        (" newest:10 ", Position("newest", 10)),
        ("start_time:1970-01-01T00:00:01.5Z", Position("start_time", 1_500_000_000)),
        ("end_time:1970-01-01T01:00:00.000000001+01:00", Position("end_time", 1)),
    ],
)
def test_position_is_read_from_each_documented_form(text: str, position: Position) -> None:
    assert parse_position(text) == position


@given(positions | ends)
def test_position_comes_back_from_its_text_as_it_was(position: Position) -> None:
    assert parse_position(str(position)) == position


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("servers", f"nats://user:{SECRET}@h:4222"),
        ("servers", f"nats://{SECRET}@h:4222"),
        ("servers", f"user:{SECRET}@[h"),
        ("creds", f"-----BEGIN NATS USER JWT-----\n{SECRET}"),
        ("nkey", SEED),
        ("creds", SEED),
        ("creds", JWT),
        ("key", f"-----BEGIN PRIVATE KEY-----\n{SECRET}"),
    ],
    # The seed is another one in each process, and workers must find the same names.
    ids=["password", "token", "broken URL", "creds", "seed", "creds seed", "JWT", "key"],
)
def test_secret_in_the_text_of_an_option_is_refused_and_not_repeated(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(**{name: value})

    assert not any(secret in str(refused.value) for secret in (SECRET, SEED, JWT))
    assert ".creds file" in refused.value.hint


@pytest.mark.parametrize("name", ["user", "password", "token", "userJwt", "keyPassword"])
def test_there_is_no_option_for_a_secret(name: str) -> None:
    with pytest.raises(ConfigError, match="unknown option"):
        parse(**{name: "x"})


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("kafka.bootstrap.servers", "in natsstream: servers. "),
        ("subscribe", "in natsstream: stream. "),
        ("provider", "in natsstream: create temporary view v using nats"),
        ("assign", "in natsstream: stream, and subjects"),
        ("maxOffsetsPerTrigger", "in natsstream: maxMessagesPerTrigger. "),
        ("minOffsetsPerTrigger", "in natsstream: no minimum; "),
        ("startingOffsetsByTimestamp", "in natsstream: startingOffsets=start_time:"),
        ("endingTimestamp", "in natsstream: endingOffsets=end_time:"),
        ("groupIdPrefix", "in natsstream: no groups; "),
        ("topic", "in natsstream: stream; "),
        ("user", "in natsstream: creds or nkey"),
        ("password", "in natsstream: creds or nkey"),
        ("startingOffset", "did you mean startingOffsets? "),
    ],
)
def test_option_of_another_source_is_answered_with_the_one_here(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match="unknown option") as caught:
        parse(**{name: "x"})

    assert caught.value.hint.startswith(told)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("bucket", "in natsstream: a write goes to a stream, never to a bucket; "),
        ("objectBucket", "in natsstream: a write goes to a stream, never to a bucket; "),
        ("streams", "in natsstream: stream; a write goes to one. "),
        ("topic", "in natsstream: stream; "),
        ("subjects", "did you mean subject? "),
        ("zone", "Options: "),
    ],
)
def test_option_that_no_write_has_is_answered_without_a_guess(name: str, told: str) -> None:
    with pytest.raises(ConfigError, match="unknown option") as caught:
        WriteOptions.parse(GIVEN | {name: "x"})

    assert caught.value.hint.startswith(told)


def test_flag_that_is_no_boolean_is_refused_with_the_legal_words() -> None:
    with pytest.raises(ConfigError, match="includeHeaders: 'yes'") as caught:
        parse(includeHeaders="yes")

    assert caught.value.hint == "write true or false"


def test_name_of_a_query_is_refused_in_a_batch_with_its_meaning() -> None:
    with pytest.raises(ConfigError, match="job is for streaming queries only") as caught:
        parse(job="a").check_batch()

    assert "names a query" in caught.value.hint


def test_times_of_restored_streams_are_compared_as_moments() -> None:
    options = parse(restoredAt="2026-01-01T00:00:00Z, 2026-01-01T02:00:00.5+01:00")
    moment = parse_rfc3339("2026-01-01T01:00:00.500000000Z")

    assert options.is_restored(moment)
    assert not options.is_restored(moment + 1)
    assert parse(**options.to_text()) == options
    assert not parse().is_restored(moment)
    with pytest.raises(ConfigError, match="restoredAt"):
        parse(restoredAt="yesterday")


def test_context_stands_for_servers() -> None:
    options = ReadOptions.parse({"context": "staging", "stream": "ORDERS"})

    assert (options.context, options.servers) == ("staging", ())
    with pytest.raises(ConfigError, match="needs the option servers, or context"):
        ReadOptions.parse({"stream": "ORDERS"})


def test_repr_hides_where_the_credentials_are() -> None:
    paths = {"creds": "/home/ann/a.creds", "nkey": "/home/ann/a.nk", "key": "/home/ann/a.pem"}
    shown = repr(parse(startingOffsets="first_seq:5", **paths))

    assert not any(path in shown for path in paths.values())
    assert "nkey='(set)'" in shown
    assert "startingOffsets='first_seq:5'" in shown


@pytest.mark.parametrize(
    "options",
    [
        {"startingOffsets": "latest"},
        {"maxMessagesPerTrigger": "5"},
        {"maxBytesPerTrigger": "5"},
        {"restoredAt": "2026-01-01T00:00:00Z"},
    ],
)
def test_batch_refuses_options_of_streaming_queries(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        parse(**options).check_batch()


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("first_seq:5", "last_seq:3"),
        ("start_time:2026-01-02T00:00:00Z", "end_time:2026-01-01T00:00:00Z"),
    ],
)
def test_batch_refuses_a_start_behind_its_end(start: str, end: str) -> None:
    with pytest.raises(ConfigError, match="the read is empty"):
        parse(startingOffsets=start, endingOffsets=end).check_batch()
    parse(startingOffsets="first_seq:5", endingOffsets="last_seq:4").check_batch()


def test_streaming_refuses_an_end() -> None:
    with pytest.raises(ConfigError, match="endingOffsets is for batch reads only"):
        parse(endingOffsets="last_seq:5").check_streaming()


def test_streaming_refuses_pushed_down_filters() -> None:
    with pytest.raises(ConfigError, match="filterPushdown is for batch reads only"):
        parse(filterPushdown="true").check_streaming()


@pytest.mark.parametrize(
    "options", [{"dataFormat": "json"}, {"dataFormat": "text"}, {"filterPushdown": "true"}]
)
def test_job_that_needs_messages_as_stored_refuses_to_decode_or_filter_them(
    options: dict[str, str],
) -> None:
    with pytest.raises(ConfigError, match="this job reads"):
        parse(**options).check_as_stored()


def test_option_table_has_a_row_with_default_or_need_for_each_field() -> None:
    rows = option_table(option_notes(ReadOptions)).splitlines()[2:]

    assert len(rows) == len(dataclasses.fields(ReadOptions))
    for row, field in zip(rows, dataclasses.fields(ReadOptions), strict=True):
        assert row.startswith(f"| `{spark_name(field.name)}` |")
        assert "Required" in row or "Default" in row
