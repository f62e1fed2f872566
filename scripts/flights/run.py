"""The order of the work: server, publish, Spark, ingest, proof.

Law: nothing is begun that the next run can not go on with. Only processes end with this one; the
folder keeps everything.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_natsstream.session import check_java

import natsstream
from natsstream.errors import UsageError
from natsstream.testing import NatsServer
from scripts.flights.dataset import open_flights
from scripts.flights.prove import prove
from scripts.flights.publish import publish_flights
from scripts.flights.results import Result, Step
from scripts.flights.spark import end_left_behind, ingest_flights, start_spark
from scripts.flights.table import committed_rows, remove_uncommitted

if TYPE_CHECKING:
    from pyspark_natsstream.ingest import IngestReport

    from scripts.flights.dataset import Flights
    from scripts.flights.folder import Folder
    from scripts.flights.report import Report

BATCH_ROWS = 200_000
"""Rows of a micro-batch: what a killed ingest does again. Smaller ones cost half a second each."""

SERVER_AWAY_S = 30.0
"""How long a server that went away is waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the user asks for.

    Attributes:
        folder: Where everything lies.
        rows: First rows of the file; None is all.
        batch_rows: Most rows of a micro-batch.
    """

    folder: Folder
    rows: int | None = None
    batch_rows: int = BATCH_ROWS


def run(order: Order, report: Report) -> Result:
    """Do the whole work, or what is left of it.

    Raises:
        MissingExtraError: Java or the data set is missing; nothing was started.
        NatsStreamError: A step failed; the next run goes on from there.
        PySparkException: Spark failed; the next run goes on from there.
    """
    check_java()
    flights = open_flights()
    rows = flights.total if order.rows is None else order.rows
    if not 0 < rows <= flights.total:
        message = f"--rows is {rows:,}, the data set has {flights.total:,}"
        raise UsageError(message, hint="leave --rows out for all")
    report.start(order.folder, rows)
    # The server's lock on its folder keeps every other run out until the proof is done.
    with NatsServer(store_dir=order.folder.server) as server:
        steps = [
            _publish(server.url, flights, rows, report),
            *_ingest(server.url, order, rows, report),
        ]
        began_s = time.monotonic()
        report.begin("prove")
        checks = prove(order.folder.table, flights.archive, rows=rows)
        steps.append(Step(name="prove", seconds=time.monotonic() - began_s, rows=rows))
        report.end(steps[-1])
    return Result(folder=order.folder, rows=rows, steps=steps, checks=checks)


def _publish(server_url: str, flights: Flights, rows: int, report: Report) -> Step:
    began_s = time.monotonic()
    report.begin("publish", rows)
    held = asyncio.run(_publish_to(server_url, flights, rows, report))
    step = Step(
        name="publish",
        seconds=time.monotonic() - began_s,
        first=held + 1 if held < rows else None,
        rows=rows - held,
    )
    report.end(step)
    return step


async def _publish_to(server_url: str, flights: Flights, rows: int, report: Report) -> int:
    async with natsstream.connect(server_url, request_timeout=SERVER_AWAY_S) as js:
        return await publish_flights(js, flights, rows=rows, advance=report.advance)


def _ingest(server_url: str, order: Order, rows: int, report: Report) -> list[Step]:
    folder = order.folder
    began_s = time.monotonic()
    report.begin("spark")
    end_left_behind(folder)
    removed = remove_uncommitted(folder)
    if removed:
        report.note(f"removed {removed} files of a batch that was not finished")
    before = committed_rows(folder.table)
    with start_spark(folder) as spark:
        start = Step(name="spark", seconds=time.monotonic() - began_s)
        report.end(start)
        began_s = time.monotonic()
        report.begin("ingest", rows)
        report.advance(before)

        def advance(so_far: IngestReport) -> None:
            if so_far.end is not None:
                report.advance(so_far.end.next_seq - 1, so_far.batches)

        told = ingest_flights(
            spark,
            folder,
            server_url=server_url,
            batch_rows=order.batch_rows,
            advance=advance,
        )
        seconds = time.monotonic() - began_s
    # Not what Spark read: a batch that was written, but not noted so before a kill, is read again.
    fresh = committed_rows(folder.table) - before
    step = Step(
        name="ingest",
        seconds=seconds,
        first=before + 1 if fresh else None,
        rows=fresh,
        batches=told.batches,
    )
    report.end(step)
    return [start, step]
