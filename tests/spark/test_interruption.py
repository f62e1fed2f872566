"""Jobs that get a signal in the middle of their work: one line, one exit code, and exact data."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from pyspark_natsstream.jobs.command import EXIT_INTERRUPTED
from pyspark_natsstream.kv_table import read_kv_table

from natsstream import blocking
from tests.support.eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    from natsstream.blocking import JetStream
    from natsstream.testing import NatsServer

START_S_MAX = 300
END_S_MAX = 60
ROWS = 20_000


class Case(NamedTuple):
    """A job, when it is in the middle of its work, and the numbers that it has stored."""

    arguments: list[str]
    is_amid: Callable[[], bool]
    stored: Callable[[], list[int]]


@pytest.fixture
def js(server: NatsServer) -> Iterator[JetStream]:
    with blocking.connect(server.url, request_timeout=30) as js:
        yield js


def ingest(js: JetStream, name: str, folder: Path, spark: SparkSession) -> Case:
    js.streams.create(name, subjects=[f"{name}.>"])
    with js.publisher() as publisher:
        for number in range(ROWS):
            publisher.send(f"{name}.a", b"%d" % number)
    table, checkpoint = folder / "table", folder / "checkpoint"
    arguments = ["--stream", name, "--out", str(table), "--checkpoint", str(checkpoint)]

    def stored() -> list[int]:
        return [int(row.data) for row in spark.read.parquet(str(table)).select("data").collect()]

    return Case(
        [*arguments, "--max-messages-per-trigger", "1000"],
        (checkpoint / "commits" / "1").exists,
        stored,
    )


def kv_table(js: JetStream, name: str, folder: Path, spark: SparkSession) -> Case:
    bucket = js.kv.create(name)
    for number in range(40):
        bucket.put(f"key{number}", b"%d" % number)
    table, checkpoint = folder / "table", folder / "checkpoint"
    arguments = ["--bucket", name, "--out", str(table), "--checkpoint", str(checkpoint)]

    def stored() -> list[int]:
        return [int(row.value) for row in read_kv_table(spark, str(table)).collect()]

    return Case([*arguments, "--max-messages-per-trigger", "8"], (table / "v1").exists, stored)


def backfill(js: JetStream, name: str, folder: Path, spark: SparkSession) -> Case:
    stream = js.streams.create(name, subjects=[f"{name}.*", f"{name}.$ctl.>"])
    rows = spark.range(ROWS).selectExpr("string(id) as data", "timestamp_millis(id * 20) as time")
    rows.coalesce(1).write.parquet(str(folder / "table"))
    arguments = ["--stream", name, "--table", str(folder / "table"), "--subject", f"{name}.a"]

    def stored() -> list[int]:
        return [int(message.data) for message in stream.read()]

    return Case(
        [*arguments, "--job", name, "--update-stream"],
        lambda: 0 < stream.info().state.messages < ROWS,
        stored,
    )


def replay(js: JetStream, name: str, folder: Path, spark: SparkSession) -> Case:
    return backfill(js, name, folder, spark)


@pytest.mark.sampled_variants
@pytest.mark.parametrize(
    ("job", "number", "send"),
    [
        (ingest, signal.SIGTERM, os.killpg),
        (kv_table, signal.SIGINT, os.killpg),
        (backfill, signal.SIGTERM, os.killpg),
        (replay, signal.SIGINT, os.kill),
    ],
)
def test_interrupted_job_says_so_in_one_line_and_goes_on(
    spark: SparkSession,
    server: NatsServer,
    js: JetStream,
    stream_name: str,
    tmp_path: Path,
    job: Callable[[JetStream, str, Path, SparkSession], Case],
    number: signal.Signals,
    send: Callable[[int, int], None],
) -> None:
    case = job(js, stream_name, tmp_path, spark)
    module = f"pyspark_natsstream.jobs.{job.__name__}"
    arguments = ["--servers", server.url, *case.arguments]
    running = subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        eventually(lambda: case.is_amid() or running.poll() is not None, within_s=START_S_MAX)
        send(running.pid, number)
        out, told = running.communicate(timeout=END_S_MAX)
    finally:
        running.kill()

    assert running.returncode == EXIT_INTERRUPTED, told
    assert out == ""
    # Before it are warnings of Java's start, and the progress.
    *before, last = told.splitlines()
    assert last == "interrupted; run the same command again to continue", told
    strange = [line for line in before if not re.match(r"WARNING: |\d+ \w+ in \d+ batch", line)]
    assert not strange, told
    fast = ["--speed", "0"] if job is replay else []
    assert import_module(module).main([*arguments, *fast]) == 0
    found = case.stored()
    assert sorted(found) == [*range(len(found))]
    assert len(found) == (40 if job is kv_table else ROWS)
