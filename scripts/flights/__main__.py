"""The command: `scripts/quickstart`, or `python -m scripts.flights`."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast, get_args

from pyspark.errors import PySparkException

from natsstream.errors import MissingExtraError, NatsStreamError
from scripts.flights.folder import Folder
from scripts.flights.report import Report, ReportKind, open_report
from scripts.flights.run import BATCH_ROWS, Order, run

if TYPE_CHECKING:
    from collections.abc import Sequence

_DEFAULT_DIR = Path(__file__).resolve().parents[2] / "quickstart-data"
_SPARK_LINES = 5


class _Terminated(KeyboardInterrupt):
    """SIGTERM came; it unwinds what is open, as Ctrl-C does."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    asked = _parser().parse_args(arguments)
    order = Order(
        folder=Folder(cast("Path", asked.dir).resolve()),
        rows=cast("int | None", asked.rows),
        batch_rows=cast("int", asked.batch_rows),
    )
    report = open_report(cast("ReportKind", asked.progress))
    signal.signal(signal.SIGTERM, _on_terminate)
    # Spark's bridge to Java logs an interrupt with its whole stack, and then passes it on.
    logging.getLogger().addFilter(_is_no_interrupt)
    try:
        report.finish(run(order, report))
    except MissingExtraError as error:
        return _fail(report, f"{error.message}; install it: {error.hint}")
    except NatsStreamError as error:
        return _fail(report, str(error))
    except OSError as error:
        return _fail(report, f"{error}\nhint: --dir takes another folder")
    except PySparkException as error:
        # After the first lines come those of the JVM's stack.
        told = "\n".join(str(error).splitlines()[:_SPARK_LINES])
        return _fail(report, f"Spark failed: {told}\nhint: see {order.folder.spark_log}")
    except KeyboardInterrupt as error:
        is_terminated = isinstance(error, _Terminated)
        _ = _fail(report, "stopped; the same command goes on from here")
        return 128 + (signal.SIGTERM if is_terminated else signal.SIGINT)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/quickstart",
        description="Publish flights from New York into a real nats-server, ingest the stream into "
        "a Parquet table with Spark, and prove the table from the source. Run it as often as you "
        "like: it goes on where it was, and does nothing twice.",
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=_DEFAULT_DIR,
        help="folder for store, checkpoint and table (default: %(default)s)",
    )
    parser.add_argument(
        "--rows", type=int, help="only the first rows; a later run may take more (default: all)"
    )
    parser.add_argument(
        "--batch-rows",
        type=int,
        default=BATCH_ROWS,
        help="most rows that Spark commits at once (default: %(default)s)",
    )
    parser.add_argument(
        "--progress",
        choices=get_args(ReportKind),
        default="auto",
        help="how to show progress: a bar, a few lines, JSON lines on standard output; auto is a "
        "bar on a terminal (default: %(default)s)",
    )
    return parser


def _fail(report: Report, text: str) -> int:
    report.close()
    sys.stderr.write(f"scripts/quickstart: {text}\n")
    return 1


def _is_no_interrupt(record: logging.LogRecord) -> bool:
    return record.exc_info is None or not isinstance(record.exc_info[1], KeyboardInterrupt)


def _on_terminate(_signal: int, _frame: object) -> NoReturn:
    # Once is enough: what unwinds now must not be broken off again.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Terminated


if __name__ == "__main__":
    sys.exit(main())
