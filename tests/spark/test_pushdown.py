"""`filterPushdown` of a batch read, against a real server: fewer messages, the same rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from pyspark.errors import PySparkException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from natsstream.testing import NatsServer
    from tests.spark.conftest import Feeder

# Each run takes a fifth of them; --sampled=all takes all.
pytestmark = pytest.mark.sampled

SETTING = "spark.sql.python.filterPushdown.enabled"
SUBJECTS = ["eu.oslo", "eu.rome", "us", "us.reno.old", "eu.oslo.new"]
COUNT = 20


class Pushed(NamedTuple):
    """A stream that is read with and without its filters."""

    spark: SparkSession
    url: str
    stream: str
    plain: DataFrame

    def load(self, **options: str) -> DataFrame:
        return (
            self.spark.read.format("nats")
            .options(servers=self.url, stream=self.stream, **options)
            .load()
        )

    def where(self, predicate: str, **options: str) -> DataFrame:
        """A read of its own, with its filter pushed down."""
        return self.load(filterPushdown="true", **options).where(predicate)


@pytest.fixture
def pushed(
    spark: SparkSession, server: NatsServer, feed: Feeder, stream_name: str
) -> Iterator[Pushed]:
    """Twenty messages on five subjects, in a session that pushes filters down."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.{SUBJECTS[index % 5]}" for index in range(COUNT)])
    source = Pushed(spark, server.url, stream_name, spark.range(0))
    plain = source.load().cache()
    spark.conf.set(SETTING, "true")
    yield source._replace(plain=plain)
    spark.conf.unset(SETTING)
    plain.unpersist()


def found(frame: DataFrame) -> list[int]:
    return [row.sequence for row in frame.collect()]


def read_by(frame: DataFrame) -> int:
    """Run a query, and return how many messages its scan has read."""
    # Spark tells the rows of a scan only in its JVM.
    frame_of_jvm: Any = frame
    plan = frame_of_jvm._jdf.queryExecution().executedPlan()
    plan.executeCollect()
    return int(plan.collectLeaves().head().metrics().apply("numOutputRows").value())


def test_rows_are_those_without_pushdown_for_every_predicate(pushed: Pushed) -> None:
    times = [row.time for row in pushed.plain.select("time").collect()]
    border, name = times[COUNT // 2].isoformat(sep=" "), pushed.stream
    at = f"timestamp'{border}'"
    predicates = [
        "sequence = 7",
        "sequence <=> 7",
        "sequence <=> null",
        "sequence > 7 and sequence <= 9",
        "not (sequence > 7)",
        "sequence != 7",
        "sequence in (3, 17, null)",
        "sequence not in (3, 17)",
        "sequence between 5 and 4",
        "sequence < 0 or sequence > 18",
        "sequence > 7.5",
        "sequence = '7'",
        "sequence >= 9223372036854775807",
        f"time = {at}",
        f"time <=> {at}",
        f"time > {at}",
        f"time >= {at}",
        f"time < {at}",
        f"time <= {at}",
        f"time > {at} - interval 1 microsecond and time < {at} + interval 1 microsecond",
        "time > timestamp'1900-01-01' and time < timestamp'9999-01-01'",
        f"subject = '{name}.us' and sequence > 5",
        f"subject <=> '{name}.us'",
        f"subject != '{name}.us'",
        f"subject in ('{name}.us', '{name}.eu.rome', '{name}.*', null)",
        f"startswith(subject, '{name}.eu.')",
        f"startswith(subject, '{name}.eu.o')",
        f"not startswith(subject, '{name}.eu.')",
        f"subject like '{name}.eu.%'",
        f"subject like '{name}.%.oslo%'",
        f"subject = '{name}.eu.*'",
        f"subject > '{name}.eu.z'",
        "subject is not null and data is not null",
    ]

    differing = [
        each for each in predicates if found(pushed.where(each)) != found(pushed.plain.where(each))
    ]

    assert differing == []
    assert found(pushed.plain.where(f"time = {at}"))  # The border is that of a message.


@pytest.mark.parametrize(
    ("predicate", "count"),
    [
        ("sequence > 4 and sequence < 8", 3),
        ("sequence in (7, 9)", 3),
        ("time < timestamp'2001-01-01'", 0),
        ("subject = '{}.us'", 4),
        ("startswith(subject, '{}.eu.') and sequence <= 10", 6),
        ("subject like 'other.%'", 0),
    ],
)
def test_fewer_messages_are_read(pushed: Pushed, predicate: str, count: int) -> None:
    assert read_by(pushed.where(predicate.format(pushed.stream))) == count


def test_filters_narrow_the_subjects_and_the_newest_of_the_options(pushed: Pushed) -> None:
    """The newest messages are counted before the filter, as Spark does it."""
    name = pushed.stream
    options = {"subjects": f"{name}.eu.>", "startingOffsets": "newest:4"}

    frame = pushed.where(f"subject = '{name}.eu.oslo' and sequence < 19", **options)

    assert read_by(frame) == 1
    assert found(frame) == [16]


def test_without_the_option_nothing_is_pushed_down(pushed: Pushed) -> None:
    frame = pushed.load()

    assert read_by(frame.where("sequence > 18")) == COUNT
    assert frame.where("sequence > 18").count() == 2
    assert frame.count() == COUNT


def test_spark_reuses_a_narrowed_read_for_other_queries_of_the_dataframe(pushed: Pushed) -> None:
    """Spark's fault, and why the option is needed; without the fault its default can change."""
    frame = pushed.load(filterPushdown="true")

    assert frame.where("sequence > 18").count() == 2
    assert frame.count() == 2


def test_option_without_the_setting_of_spark_fails_with_its_name(pushed: Pushed) -> None:
    pushed.spark.conf.set(SETTING, "false")

    with pytest.raises(PySparkException, match=SETTING):
        pushed.where("sequence > 18").count()
