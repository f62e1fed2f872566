"""The ingest job: from a stream to a table, exactly once, as a function and as a command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark_natsstream.checkpoint import START_FILE, pin_start
from pyspark_natsstream.ingest import IngestReport, ingest
from pyspark_natsstream.jobs.ingest import main
from pyspark_natsstream.kept_columns import COLUMNS_FILE
from pyspark_natsstream.read_options import Position, ReadOptions

from natsstream.errors import (
    ConfigError,
    SequenceRangeError,
    StreamNotFoundError,
    StreamRecreatedError,
)
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark_natsstream.ingest import TableFormat

    from natsstream.testing import NatsServer
    from tests.spark.conftest import Feeder

ROOT = Path(__file__).parents[2]
SUBMIT_TIMEOUT_S = 300

# Payload, what the columns "origin string, distance int" must hold, and whether bytes are kept.
JSON_CASES: list[tuple[bytes, str | None, int | None, bool]] = [
    (b'{"origin": "EWR", "distance": 1400}', "EWR", 1400, False),
    (b' {"distance": 5, "origin": "J\\u00c9K", "more": [1]}\n', "JÉK", 5, False),
    (b"{}", None, None, False),
    (b'{"origin": null}', None, None, False),
    (b'{"origin": "a"},{"origin": "b"}', None, None, True),
    (b'{"origin": "EWR", "distance": "far"}', None, None, True),
    (b'{"distance": 99999999999}', None, None, True),
    (b'{"origin": "EWR"', None, None, True),
    (b'{"origin": "EWR"} and more', None, None, True),
    (b'{"origin": "a"}{"origin": "b"}', None, None, True),
    (b'{"origin": "a"}]} x', None, None, True),
    (b'{"origin": "\xff"}', None, None, True),
    (b"{'origin': 'EWR'}", None, None, True),
    (b"[]", None, None, True),
    (b'[{"origin": "EWR"}]', None, None, True),
    (b"null", None, None, False),
    (b"17", None, None, True),
    (b"", None, None, True),
    (b"\x00\xff\xfe", None, None, True),
]


class Table:
    """Where a test's job writes, and what is there."""

    def __init__(self, spark: SparkSession, folder: Path, options: dict[str, str]) -> None:
        self.options = options
        self.out = str(folder / "out")
        self.checkpoint = str(folder / "checkpoint")
        self._spark = spark

    def frame(self) -> DataFrame:
        """The table as Spark reads it back."""
        return self._spark.read.parquet(self.out)

    def rows(self) -> list[Row]:
        """The rows in order of sequence."""
        return self.frame().orderBy("sequence").collect()

    def sequences(self) -> list[int]:
        """The sequences in order; a message that came twice stands there twice."""
        return [row.sequence for row in self.rows()]


@pytest.fixture
def table(spark: SparkSession, server: NatsServer, stream_name: str, tmp_path: Path) -> Table:
    """A table of the test's own stream."""
    return Table(spark, tmp_path, {"servers": server.url, "stream": stream_name})


@pytest.fixture
def interpreter_kept() -> Iterator[None]:
    """Undo what a session of its own sets in the environment."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def run(spark: SparkSession, table: Table, **options: str) -> IngestReport:
    return ingest(
        spark, options=table.options | options, out=table.out, checkpoint=table.checkpoint
    )


def test_ingest_writes_every_message_and_reports_it(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 50)

    report = run(spark, table, maxMessagesPerTrigger="20")

    assert (report.rows, report.batches) == (50, 3)
    assert report.seconds > 0
    assert report.end is not None
    assert report.end.next_seq == 51
    assert table.sequences() == list(range(1, 51))
    assert [bytes(row.data) for row in table.rows()] == [b"%d" % index for index in range(50)]


def test_ingest_run_again_writes_only_what_came_since(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 50)
    run(spark, table)

    again = run(spark, table)
    feed.publish([f"{stream_name}.a"] * 7)
    later = run(spark, table)

    assert (again.rows, later.rows) == (0, 7)
    assert table.sequences() == list(range(1, 58))


def test_progress_is_told_with_the_rows_so_far(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 30)
    told: list[IngestReport] = []

    report = ingest(
        spark,
        options=table.options | {"maxMessagesPerTrigger": "10"},
        out=table.out,
        checkpoint=table.checkpoint,
        on_progress=told.append,
    )

    assert told[-1] == report
    assert [each.rows for each in told] == sorted(each.rows for each in told)


def test_table_is_partitioned_by_utc_day_and_subject_token(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    """Also when the session lives in another time zone."""
    feed.create(stream_name)
    day_before = datetime.now(UTC).date()
    feed.publish([f"{stream_name}.{name}" for name in ("eu.1", "us.1", "eu.2")])
    day_after = datetime.now(UTC).date()
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "Pacific/Kiritimati")  # UTC+14.
    try:
        ingest(
            spark,
            options=table.options,
            out=table.out,
            checkpoint=table.checkpoint,
            partition_by=["date", "token2"],
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)

    folders = {
        str(path.parent.relative_to(table.out)) for path in Path(table.out).rglob("*.parquet")
    }
    days = {day_before, day_after}
    assert {Path(folder).parts[1] for folder in folders} == {"token2=eu", "token2=us"}
    assert {date.fromisoformat(row.date.isoformat()) for row in table.rows()} <= days
    assert [row.token2 for row in table.rows()] == ["eu", "us", "eu"]


def test_json_becomes_columns_and_what_does_not_fit_keeps_its_bytes(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * len(JSON_CASES), lambda index: JSON_CASES[index][0])

    report = ingest(
        spark,
        options=table.options,
        out=table.out,
        checkpoint=table.checkpoint,
        json_schema="origin string, distance int",
    )

    rows = table.rows()
    assert report.rows == len(JSON_CASES)
    assert table.frame().columns == [
        "subject",
        "sequence",
        "time",
        "origin",
        "distance",
        "_corrupt_record",
        "date",
    ]
    found = [
        (
            row.origin,
            row.distance,
            None if row._corrupt_record is None else bytes(row._corrupt_record),
        )
        for row in rows
    ]
    assert found == [
        (origin, distance, payload if is_corrupt_record else None)
        for payload, origin, distance, is_corrupt_record in JSON_CASES
    ]


def test_headers_are_in_the_table_on_demand(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"], lambda _: b"{}", headers=lambda _: {"Trace": "t1"})

    ingest(
        spark,
        options=table.options | {"includeHeaders": "true"},
        out=table.out,
        checkpoint=table.checkpoint,
        json_schema="origin string",
    )

    assert [(pair.key, pair.value) for pair in table.rows()[0].headers] == [("Trace", "t1")]


# The start.


def test_start_is_kept_beside_the_checkpoint_and_counts_once(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    """A job that is killed before its first batch must not skip what came in between."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    options = ReadOptions.parse(table.options | {"startingOffsets": "latest"})
    pinned = pin_start(spark, options, table.checkpoint)
    feed.publish([f"{stream_name}.a"] * 3)

    again = pin_start(spark, options, table.checkpoint)
    report = run(spark, table, startingOffsets="latest")

    assert pinned.starting_offsets == again.starting_offsets == Position("first_seq", 6)
    kept = json.loads((Path(table.checkpoint) / START_FILE).read_text())
    assert kept["streams"][stream_name]["next"] == 6
    assert report.rows == 3
    assert table.sequences() == [6, 7, 8]


def test_start_in_a_stream_created_anew_before_the_first_batch_is_an_error(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    options = ReadOptions.parse(table.options | {"startingOffsets": "latest"})
    pin_start(spark, options, table.checkpoint)
    feed.drop(stream_name)
    feed.create(stream_name)

    with pytest.raises(StreamRecreatedError):
        pin_start(spark, options, table.checkpoint)


def test_start_beyond_the_end_is_refused_before_anything_is_written(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)

    with pytest.raises(SequenceRangeError):
        run(spark, table, startingOffsets="first_seq:5")

    assert not (Path(table.checkpoint) / START_FILE).exists()


# Errors.


def test_query_that_fails_raises_the_error_that_made_it_fail(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    run(spark, table)
    feed.drop(stream_name)
    feed.create(stream_name)

    with pytest.raises(StreamRecreatedError, match=stream_name):
        run(spark, table)


def test_missing_stream_is_a_typed_error(spark: SparkSession, table: Table) -> None:
    with pytest.raises(StreamNotFoundError):
        run(spark, table)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"partition_by": ["day"]}, "no column 'day'"),
        ({"partition_by": "day"}, "partition_by is one string"),
        ({"fmt": "csv"}, "'csv' is not a format"),
        ({"trigger": "-5 seconds"}, "trigger is '-5 seconds'"),
        ({"json_schema": "origin"}, "not a list of columns"),
        ({"json_schema": "sequence int"}, "cannot be named sequence"),
        ({"json_schema": "Date date"}, "cannot be named Date"),
        ({"options": {"stream": "ORDERS"}}, "needs the option servers"),
    ],
)
def test_argument_that_can_not_be_is_refused(
    spark: SparkSession,
    feed: Feeder,
    stream_name: str,
    table: Table,
    arguments: dict[str, object],
    complaint: str,
) -> None:
    feed.create(stream_name)
    given: dict[str, object] = {
        "options": table.options,
        "out": table.out,
        "checkpoint": table.checkpoint,
    }

    with pytest.raises(ConfigError, match=complaint):
        ingest(spark, **(given | arguments))  # pyright: ignore[reportArgumentType] - On purpose.


# The command.


def command(table: Table, **options: str) -> list[str]:
    words = {**table.options, "out": table.out, "checkpoint": table.checkpoint, **options}
    return [word for name, value in words.items() for word in (f"--{name}", value)]


@pytest.mark.usefixtures("spark", "interpreter_kept")
def test_command_prints_the_report_as_one_json_line(
    feed: Feeder, stream_name: str, table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    """It finds the session of the run and uses it."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)

    code = main(command(table, **{"max-messages-per-trigger": "2"}))

    report = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (report["rows"], report["batches"]) == (5, 3)
    assert report["end"]["streams"][stream_name]["next"] == 6


def test_command_tells_a_missing_stream_before_spark_starts(
    stream_name: str,
    table: Table,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr("pyspark_natsstream.jobs.command.job_session")

    code = main(command(table))

    told = capsys.readouterr()
    assert code == 3
    assert told.out == ""
    assert stream_name in told.err
    assert "hint: " in told.err


def test_command_refuses_a_wrong_option_before_spark_starts(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(command(table, **{"starting-offsets": "first"}))

    assert code == 2
    assert "startingOffsets: 'first' is not a position" in capsys.readouterr().err


def test_command_names_the_nearest_argument(
    table: Table, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(command(table, subject="a.>"))

    assert ended.value.code == 2
    assert "unrecognized arguments: --subject a.>; did you mean --subjects?" in (
        capsys.readouterr().err
    )


@pytest.mark.sampled
def test_spark_submit_runs_the_job(feed: Feeder, stream_name: str, table: Table) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    submit = str(Path(sys.executable).with_name("spark-submit"))
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}

    done = subprocess.run(
        [submit, "--master", "local[1]", str(ROOT / "spark/jobs/ingest.py"), *command(table)],
        capture_output=True,
        text=True,
        timeout=SUBMIT_TIMEOUT_S,
        check=False,
        env=environment,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["rows"] == 5
    assert table.sequences() == [1, 2, 3, 4, 5]


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for each in lists for child in each.read_text().split()]


def test_job_that_is_killed_goes_on_and_every_message_is_in_the_table_once(
    feed: Feeder, stream_name: str, table: Table
) -> None:
    """SIGKILL for driver and JVM at once, in the middle of the micro-batches."""
    count = 20_000
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * count)
    # So many that a kill which comes seconds late is in their middle as well.
    each = 200
    words = command(table, **{"max-messages-per-trigger": str(each), "master": "local[2]"})
    killed = subprocess.Popen(
        [sys.executable, "-m", "pyspark_natsstream.jobs.ingest", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    commits = Path(table.checkpoint) / "commits"
    try:
        eventually((commits / "2").exists, within_s=SUBMIT_TIMEOUT_S / 2)
    finally:
        # The JVM is in a group of its own.
        for java in children(killed.pid):
            os.kill(java, signal.SIGKILL)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait(SUBMIT_TIMEOUT_S / 2)
    n_committed = len(list(commits.glob("[0-9]*")))

    code = main(command(table))

    assert 2 < n_committed < count / each
    assert code == 0
    assert table.sequences() == list(range(1, count + 1))


@pytest.mark.parametrize("fmt", ["parquet", "delta"])
@pytest.mark.parametrize(
    ("out", "checkpoint", "told"),
    [
        ("w", "w/", "out .* is the same folder as checkpoint "),
        ("w", "w/checkpoint", "checkpoint .* is inside of out "),
        ("w/out", "w", "out .* is inside of checkpoint "),
    ],
)
def test_folders_that_are_not_apart_are_refused_before_anything_is_written(
    spark: SparkSession,
    table: Table,
    tmp_path: Path,
    fmt: TableFormat,
    out: str,
    checkpoint: str,
    told: str,
) -> None:
    with pytest.raises(ConfigError, match=told):
        ingest(
            spark,
            options=table.options,
            out=f"{tmp_path}/{out}",
            checkpoint=f"{tmp_path}/{checkpoint}",
            fmt=fmt,
        )

    assert not [*tmp_path.iterdir()]


def test_hidden_checkpoint_may_be_inside_of_its_table(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 2)

    for rows in (2, 0):
        inside = f"{table.out}/_checkpoint"
        report = ingest(spark, options=table.options, out=table.out, checkpoint=inside)
        assert report.rows == rows

    assert table.sequences() == [1, 2]


def test_other_columns_or_partitions_than_before_are_refused(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    """No reader could open a table of both."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 2, lambda _: b'{"km": 7}')
    asked: dict[str, Any] = {
        "options": table.options,
        "out": table.out,
        "checkpoint": table.checkpoint,
    }
    ingest(spark, **asked, json_schema="km int", partition_by=["token2"])
    feed.publish([f"{stream_name}.a"], lambda _: b'{"km": 8}')

    with pytest.raises(ConfigError, match="partitioned by token2, not by date") as refused:
        ingest(spark, **asked, json_schema="km int")
    assert "partition_by as before (token2)" in refused.value.hint
    for schema, told in (
        ("km string", "km is int and would be string"),
        (None, "km is int and would be left out"),
        ("km int, more int", "more is not there and would be int"),
    ):
        with pytest.raises(ConfigError, match=told):
            ingest(spark, **asked, json_schema=schema, partition_by=["token2"])

    assert ingest(spark, **asked, json_schema="km int", partition_by=["token2"]).rows == 1
    assert [row.km for row in table.rows()] == [7, 7, 8]


@pytest.mark.parametrize(("first", "told"), [("a", "the subjects {}.a"), ("", "every subject")])
def test_other_subjects_than_before_are_refused(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table, first: str, told: str
) -> None:
    """The checkpoint is behind the messages that the first run left out."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.{name}" for name in "aab"])
    had = {"subjects": f"{stream_name}.{first}"} if first else {}
    stored = run(spark, table, **had).rows
    begin = told.format(stream_name)

    with pytest.raises(ConfigError, match=f"is of {begin}, not of the subjects {stream_name}.b"):
        run(spark, table, subjects=f"{stream_name}.b")
    other = {} if first else {"subjects": f"{stream_name}.>"}
    with pytest.raises(ConfigError, match=f"is of {begin}, not of ") as refused:
        run(spark, table, **other)
    way_out = "subjects=" if first else "leave subjects out as before"
    assert way_out in refused.value.hint
    assert "another table and checkpoint" in refused.value.hint

    feed.publish([f"{stream_name}.a"])
    assert run(spark, table, **had).rows == 1
    assert len(table.sequences()) == stored + 1


def test_checkpoint_of_an_older_version_takes_the_subjects_of_its_next_run(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"])
    run(spark, table, subjects=f"{stream_name}.a,{stream_name}.b")
    kept = Path(table.checkpoint) / COLUMNS_FILE
    older = json.loads(kept.read_text())
    del older["subjects"]
    kept.write_text(json.dumps(older))
    kept.with_name(f".{kept.name}.crc").unlink(missing_ok=True)

    run(spark, table, subjects=f"{stream_name}.b,{stream_name}.a")

    assert json.loads(kept.read_text())["subjects"] == [f"{stream_name}.a", f"{stream_name}.b"]
    with pytest.raises(ConfigError, match="not of every subject"):
        run(spark, table)


def test_first_batch_that_was_interrupted_is_written_again(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table
) -> None:
    """Its files are there, and neither the table's log nor the checkpoint has it."""
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)
    ingest(spark, options=table.options, out=table.out, checkpoint=table.checkpoint)
    for folder in (Path(table.out) / "_spark_metadata", Path(table.checkpoint) / "commits"):
        for name in ("0", ".0.crc"):
            (folder / name).unlink(missing_ok=True)
    feed.publish([f"{stream_name}.a"])

    ingest(spark, options=table.options, out=table.out, checkpoint=table.checkpoint)

    assert table.sequences() == [1, 2, 3, 4, 5, 6]


def test_table_and_checkpoint_that_do_not_belong_together_are_refused(
    spark: SparkSession, feed: Feeder, stream_name: str, table: Table, tmp_path: Path
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 5)

    def run(*, out: str = table.out, checkpoint: str = table.checkpoint) -> None:
        ingest(spark, options=table.options, out=out, checkpoint=checkpoint)

    run()
    with pytest.raises(ConfigError, match="was written with another checkpoint"):
        run(checkpoint=str(tmp_path / "new"))
    with pytest.raises(ConfigError, match="has none of them"):
        run(out=str(tmp_path / "new"))
    spark.range(3).write.parquet(str(tmp_path / "plain"))
    with pytest.raises(ConfigError, match="no streaming query has written"):
        run(out=str(tmp_path / "plain"), checkpoint=str(tmp_path / "another"))
    feed.publish([f"{stream_name}.a"] * 2)
    run()

    assert table.sequences() == [1, 2, 3, 4, 5, 6, 7]
