"""The listener: lag and rates of queries that read streams."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest
from pyspark_natsstream.listener import NatsListener, StreamProgress, progress_of

from tests.support.eventually import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from natsstream.testing import NatsServer
    from tests.spark.conftest import Feeder


def run(messages: DataFrame, name: str, folder: Path) -> list[StreamProgress]:
    query = (
        messages.writeStream.format("noop")
        .queryName(name)
        .option("checkpointLocation", str(folder))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return [each for progress in query.recentProgress for each in progress_of(progress)]


def test_lag_falls_to_nothing_and_rows_are_counted(
    spark: SparkSession,
    server: NatsServer,
    feed: Feeder,
    stream_name: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    feed.create(stream_name)
    feed.publish([f"{stream_name}.a"] * 50)
    messages = (
        spark.readStream.format("nats")
        .options(servers=server.url, stream=stream_name, maxMessagesPerTrigger="20")
        .load()
    )
    told: list[StreamProgress] = []
    listeners = [NatsListener(told.append), NatsListener()]
    for each in listeners:
        spark.streams.addListener(each)
    try:
        with caplog.at_level(logging.INFO, logger="pyspark_natsstream.progress"):
            found = run(messages, "copy", tmp_path)
            eventually(lambda: len(told) >= len(found) and len(caplog.records) >= len(found))
    finally:
        for each in listeners:
            spark.streams.removeListener(each)

    def figures(progress: list[StreamProgress]) -> list[tuple[int, int, int, int]]:
        return [(each.batch, each.next_seq, each.lag, each.rows) for each in progress]

    batches = [each for each in found if each.rows]
    assert figures(batches) == [(0, 21, 30, 20), (1, 41, 10, 20), (2, 51, 0, 10)]
    assert {(each.query, each.stream) for each in told} == {("copy", stream_name)}
    # Spark rounds rates on their way to a listener.
    assert figures(told) == figures(found)
    assert all(each.rows_per_second > 0 for each in batches)
    assert json.loads(caplog.records[0].message)["lag"] == 30
    assert "<td>lag</td><td>30</td>" in batches[0]._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_queries_without_streams_are_left_out(spark: SparkSession, tmp_path: Path) -> None:
    rates = spark.readStream.format("rate").option("rowsPerSecond", "1").load()
    assert run(rates, "rates", tmp_path) == []
