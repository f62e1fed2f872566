"""The command lines of the jobs, as far as they need neither Spark nor a server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pyspark_natsstream.jobs import backfill, ingest, kv_table, replay, verify
from pyspark_natsstream.jobs.__main__ import listing
from pyspark_natsstream.jobs.__main__ import main as run
from pyspark_natsstream.jobs.command import JobCommand, trigger

from natsstream.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

INGEST = ["--servers", "nats://h", "--stream", "A", "--out", "o", "--checkpoint", "c"]
KV_TABLE = ["--servers", "nats://h", "--bucket", "B", "--out", "o", "--checkpoint", "c"]


@pytest.mark.parametrize(
    ("job", "given", "told"),
    [
        (ingest.main, [*INGEST, "--bucket", "B"], "B; the job kv_table reads a bucket; see --help"),
        (
            kv_table.main,
            [*KV_TABLE, "--stream", "A"],
            "A; give --bucket; the job ingest reads a stream",
        ),
        (ingest.main, [*INGEST, "--subject", "a"], "a; did you mean --subjects? see --help"),
        (ingest.main, [*INGEST, "--zone", "a"], "a; see --help"),
        (ingest.main, [*INGEST, "--ending-offsets", "latest"], "up to the last message; see"),
    ],
)
def test_argument_of_another_job_is_answered_without_a_guess(
    capsys: pytest.CaptureFixture[str], job: JobCommand, given: list[str], told: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        job(given)

    assert ended.value.code == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("job", [ingest.main, verify.main, backfill.main, replay.main])
def test_help_tells_the_formats_and_the_default(
    capsys: pytest.CaptureFixture[str], job: JobCommand
) -> None:
    with pytest.raises(SystemExit):
        job(["--help"])

    shown = " ".join(capsys.readouterr().out.split())
    assert "Default parquet." in shown
    assert "delta" in shown
    assert ("--ending-offsets" in shown) == (job is verify.main)


@pytest.mark.parametrize("text", ["often", "10", "10 parsecs", ""])
def test_trigger_that_can_be_none_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with pytest.raises(SystemExit) as ended:
        ingest.main([*INGEST, "--trigger", text])

    assert ended.value.code == 2
    assert f"{text!r} is no trigger: write available-now, or an" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["available-now", "10 seconds", "1 Minute", "interval 5 hours"])
def test_trigger_of_spark_is_taken(text: str) -> None:
    assert trigger(text) == text


WRITE = ["--servers", "nats://h", "--stream", "A", "--table", "t"]


@pytest.mark.parametrize("job", [backfill.main, replay.main])
def test_name_of_a_write_is_required(job: JobCommand, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        job(WRITE)

    assert ended.value.code == 2
    assert "the following arguments are required: --job" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("job", "given", "told"),
    [
        (replay.main, [*WRITE, "--job", "j", "--speed", "-1"], "speed is -1"),
        (ingest.main, ["--config", "nope.toml"], "file nope.toml cannot be read"),
        (ingest.main, [*INGEST, "--partition-by", "day"], "no column 'day' to partition by"),
        (ingest.main, [*INGEST, "--format", "iceberg"], "'o' names no Iceberg table"),
        (
            ingest.main,
            [*INGEST, "--format", "iceberg", "--out", "no_such_one.eu.orders"],
            "error: the Iceberg catalog no_such_one cannot be opened\ndetail: URI missing",
        ),
    ],
)
def test_wrong_argument_is_refused_before_the_server_is_asked(
    job: JobCommand, given: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert job(given) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(
    ("job", "missing", "hint"),
    [
        (ingest.main, "--stream", "add --stream TEXT"),
        (ingest.main, "--servers", "add --servers nats://127.0.0.1:4222"),
        (kv_table.main, "--bucket", "add --bucket TEXT"),
    ],
)
def test_missing_argument_is_named_as_the_command_line_takes_it(
    job: JobCommand, missing: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = KV_TABLE if job is kv_table.main else INGEST
    at = given.index(missing)

    assert job([*given[:at], *given[at + 2 :]]) == 2
    assert capsys.readouterr().err.endswith(f"\nhint: {hint}\n")


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ('add .option("partitions", "8"), as before', "add --partitions 8, as before"),
        ('add .option("maxBytes", ...)', "add --max-bytes TEXT"),
    ],
)
def test_option_of_any_hint_is_shown_as_an_argument(
    hint: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(_: object) -> None:
        raise ConfigError("no", hint=hint)

    assert replace(ingest.main, check=refuse)(INGEST) == 2
    assert capsys.readouterr().err == f"error: no\nhint: {shown}\n"


def test_jobs_are_listed_each_with_one_sentence() -> None:
    lines = listing().splitlines()[2:]

    assert [line.split()[0] for line in lines] == [
        "ingest",
        "verify",
        "kv_table",
        "backfill",
        "replay",
    ]
    assert all(line.endswith(".") for line in lines)


def test_misspelt_argument_of_a_file_is_named_before_what_is_missing_because_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "job.toml"
    config.write_text('stream = "TRIPS"\noutt = "a"\n')
    with pytest.raises(SystemExit) as ended:
        ingest.main(["--config", str(config), "--servers", "nats://127.0.0.1:4222"])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert f"unrecognized arguments: --outt (in {config}); did you mean --out? see" in told


@pytest.mark.parametrize("job", ["ingest", "kv_table", "kv-table"])
def test_job_behind_a_space_is_run_with_the_other_arguments(
    job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([job, "--config", "nope.toml"]) == 2
    assert "error: file nope.toml cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("ingst", "did you mean ingest?"),
        ("kvtable", "did you mean kv_table?"),
        ("--stream", "choose from ingest, verify, kv_table, backfill, replay"),
    ],
)
def test_unknown_job_is_wrong_usage(
    given: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([given, "--servers", "nats://h"]) == 2
    told = capsys.readouterr()
    assert told.err == f"error: there is no job {given}; {hint}\n"
    assert not told.out


@pytest.mark.parametrize(
    ("given", "shown"),
    [([], "Run a job with"), (["--help"], "Run a job with"), (["--version"], "natsstream ")],
)
def test_without_a_job_there_is_a_list(
    given: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(given) == 0
    assert capsys.readouterr().out.startswith(shown)
