"""The command line of every job: arguments, session, report and exit code.

Law: the report is one JSON line on stdout, everything else goes to stderr. SIGTERM ends a job as an
interrupt does, and the same command continues it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from pyspark.sql import SparkSession

from natsstream.errors import (
    ConfigError,
    NatsStreamError,
    NotFoundError,
    TransportError,
    UsageError,
)
from pyspark_natsstream.failures import typed_error
from pyspark_natsstream.options import NatsOptions, option_notes, spark_name
from pyspark_natsstream.session import local_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

EXIT_DIFFERENT = 4
EXIT_INTERRUPTED = 130


class Report(Protocol):
    """The result of a job."""

    def to_json(self) -> str:
        """Return the report as one line."""
        ...


def job_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments of every job."""
    parser = argparse.ArgumentParser(
        prog=name, description=description, fromfile_prefix_chars=None, allow_abbrev=False
    )
    parser.add_argument(
        "--config", help="TOML file with the arguments by name; those of the command line win."
    )
    parser.add_argument(
        "--master", help="Spark's master. Default: local[*], or that of spark-submit."
    )
    return parser


def add_options(
    parser: argparse.ArgumentParser, kind: type[NatsOptions], *, without: Sequence[str] = ()
) -> None:
    """Add the options of a read or a write, but for some."""
    group = parser.add_argument_group('options of format("nats")')
    for name, note in option_notes(kind).items():
        if name not in without:
            # argparse formats help texts with %.
            group.add_argument(_flag(name), metavar="TEXT", help=note.doc.replace("%", "%%"))


def given_options(asked: argparse.Namespace, kind: type[NatsOptions]) -> dict[str, str]:
    """Return the options that were given, checked before the seconds that Spark takes to start.

    Raises:
        ConfigError: One is missing or illegal.
    """
    given: dict[str, str | None] = {name: getattr(asked, name, None) for name in option_notes(kind)}
    options = {spark_name(name): text for name, text in given.items() if text is not None}
    kind.parse(options)
    return options


def run_job(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    work: Callable[[argparse.Namespace], Report],
) -> int:
    """Run a job's command line and return its exit code.

    Args:
        parser: Reads the arguments.
        arguments: The arguments after the command; None is `sys.argv`.
        work: Does the work.

    Returns:
        0 success, 1 failure, 2 wrong usage, 3 not found, 4 the data differ, 5 no answer, 130
        interrupted.
    """
    try:
        asked = parser.parse_args(_with_file(sys.argv[1:] if arguments is None else arguments))
        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            report = work(asked)
        finally:
            signal.signal(signal.SIGTERM, before)
    except NatsStreamError as error:
        return _failed(error)
    except KeyboardInterrupt:
        say("interrupted; run the same command again to continue")
        return EXIT_INTERRUPTED
    except Exception as error:
        # Spark's own exceptions show what went wrong in the library only in their text.
        cause = typed_error(error)
        if cause is None:
            raise
        return _failed(cause)
    sys.stdout.write(report.to_json() + "\n")
    return EXIT_DIFFERENT if getattr(report, "is_different", False) else 0


def job_session(master: str | None, name: str) -> SparkSession:
    """Return spark-submit's session if it started this process, else a local one."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        builder = SparkSession.builder.appName(name)
        return builder.getOrCreate() if master is None else builder.master(master).getOrCreate()
    return local_session(master=master or "local[*]", app_name=name)


def say(text: str) -> None:
    """Tell the user something."""
    sys.stderr.write(text + "\n")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _with_file(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with those of their configuration file before them.

    Raises:
        ConfigError: The file does not exist, or is not TOML.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config")
    path: str | None = finder.parse_known_args(arguments)[0].config
    if path is None:
        return [*arguments]
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} is not a TOML file", detail=str(error)) from error
    flags = [text for name, value in found.items() for text in (_flag(name), _text(value))]
    return [*flags, *arguments]


def _text(value: object) -> str:
    """Return a value of TOML as an argument."""
    if isinstance(value, list):
        return ",".join(_text(each) for each in cast("list[object]", value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


def _failed(error: NatsStreamError) -> int:
    say(f"error: {error}")
    if isinstance(error, UsageError):
        return 2
    if isinstance(error, NotFoundError):
        return 3
    return 5 if isinstance(error, TransportError) else 1
