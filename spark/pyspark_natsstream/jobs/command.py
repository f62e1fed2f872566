"""The command line of every job: arguments, session, report and exit code.

Law: the report is one JSON line on stdout, everything else goes to stderr. SIGTERM and SIGINT end a
job, and the same command continues it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias, cast

from pyspark.sql import SparkSession

from natsstream import __version__
from natsstream.errors import (
    ConfigError,
    NatsStreamError,
    NotFoundError,
    TransportError,
    UsageError,
)
from pyspark_natsstream.driver import connected
from pyspark_natsstream.failures import SPARK_ERRORS, spark_reason, typed_error
from pyspark_natsstream.ingest import AVAILABLE_NOW, TRIGGERS
from pyspark_natsstream.jobs.interruption import Interruption
from pyspark_natsstream.options import NatsOptions, flag, nearest, option_notes, spark_name
from pyspark_natsstream.session import local_session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from natsstream.blocking import JetStream

EXIT_USAGE = 2
EXIT_DIFFERENT = 4
EXIT_INTERRUPTED = 130


class Report(Protocol):
    """The result of a job."""

    def to_json(self) -> str:
        """Return the report as one line."""
        ...


# An argument of argparse: its flag, and what `add_argument` takes.
Argument: TypeAlias = "tuple[str, Mapping[str, Any]]"

TABLE: Sequence[Argument] = (
    (
        "--table",
        {"required": True, "help": "Folder of the table; for Iceberg catalog.namespace.table."},
    ),
    (
        "--format",
        {
            "default": "parquet",
            "help": "parquet, orc, json, delta or iceberg, or another that Spark knows. "
            "Default parquet.",
        },
    ),
)
"""The arguments of a job that reads a table."""

ROWS: Sequence[Argument] = (*TABLE, ("--where", {"help": "SQL condition for the rows."}))
"""The arguments of a job that reads rows of a table."""

# Words of Spark's errors, and the hint for each.
_ONE_QUERY = (
    "another query uses this checkpoint; nothing is stored twice: let it end, then run this again"
)
_RESTORE = (
    "a file of the table is damaged or gone: restore it, or ingest into a new table with a new "
    "checkpoint"
)
_HINTS = (
    ("Race while writing batch", _ONE_QUERY),
    ("CONCURRENT_STREAM_LOG_UPDATE", _ONE_QUERY),
    ("FILE_NOT_EXIST", _RESTORE),
    ("CANNOT_READ_FILE_FOOTER", _RESTORE),
)
# An option as hints write it for Spark programs.
_OPTION = re.compile(r'\.option\("(\w+)", (?:"([^"]*)"|\.\.\.)\)')
# Spark knows all that is an interval; this is what each has.
_INTERVAL = re.compile(r"\d\s*[a-z]*(second|minute|hour|day|week|month|year)", re.IGNORECASE)


def trigger(text: str) -> str:
    """Return a trigger as given, or refuse what can be none, before Spark starts."""
    if text == AVAILABLE_NOW or _INTERVAL.search(text):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is no trigger: {TRIGGERS}")


CHECKPOINT: Argument = ("--checkpoint", {"required": True, "help": "Folder of the checkpoint."})
TRIGGER: Argument = (
    "--trigger",
    {
        "type": trigger,
        "default": AVAILABLE_NOW,
        "help": "available-now ends at the last message now; '10 seconds' runs until stopped. "
        "Default available-now.",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCommand:
    """The command line of one job.

    Attributes:
        name: The job.
        description: One sentence for the help text.
        arguments: Its own arguments.
        options: The options of `format("nats")` that it takes as arguments.
        without: Fields of these options that it does not take.
        required: Fields of these options that it needs, beyond those that all need.
        elsewhere: Arguments of other jobs, and what stands for them here.
        check: Checks its own arguments, before Spark starts; raises ConfigError.
        first: Asks the server before Spark starts, so that a missing stream is an error at once.
        work: Does the work; gets the session, the options and all arguments.
    """

    name: str
    description: str
    arguments: Sequence[Argument]
    options: type[NatsOptions]
    without: Sequence[str] = ()
    required: Sequence[str] = ()
    check: Callable[[argparse.Namespace], None] = lambda _: None
    elsewhere: Mapping[str, str] = field(default_factory=dict[str, str])
    first: Callable[[JetStream, Mapping[str, str]], object] = lambda _js, _options: None
    work: Callable[[SparkSession, dict[str, str], argparse.Namespace], Report]

    def __call__(self, arguments: Sequence[str] | None = None) -> int:
        """Run the job and return the exit code.

        Args:
            arguments: The arguments after the command; None is `sys.argv`.

        Returns:
            0 success, 1 failure, 2 wrong usage, 3 not found, 4 the data differ, 5 no answer, 130
            interrupted.
        """
        with Interruption() as interruption:
            try:
                given = sys.argv[1:] if arguments is None else arguments
                parser = self._parser()
                asked = parser.parse_args(_with_file(parser, given))
                report = self._work(asked, interruption)
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - An unknown one is raised.
                if not interruption.is_set:
                    return _failed(error)
                interruption.stop_spark()
                say("interrupted; run the same command again to continue")
                return EXIT_INTERRUPTED
        sys.stdout.write(report.to_json() + "\n")
        return EXIT_DIFFERENT if getattr(report, "is_different", False) else 0

    def _work(self, asked: argparse.Namespace, interruption: Interruption) -> Report:
        # All that needs no Spark is checked before the seconds that it takes to start.
        options = self._options(asked)
        self.check(asked)
        with connected(self.options.parse(options), lambda js: self.first(js, options)):
            pass
        name = f"natsstream-{self.name.replace('_', '-')}"
        session = interruption.start_spark(lambda: job_session(asked.master, name))
        return self.work(session, options, asked)

    def _parser(self) -> _Parser:
        parser = _Parser(
            elsewhere=self.elsewhere,
            prog=self.name,
            description=self.description,
            fromfile_prefix_chars=None,
            allow_abbrev=False,
        )
        parser.add_argument(
            "--config", help="TOML file with the arguments by name; those of the command line win."
        )
        parser.add_argument(
            "--master", help="Spark's master. Default: local[*], or that of spark-submit."
        )
        parser.add_argument("--version", action="version", version=f"natsstream {__version__}")
        for name, details in self.arguments:
            parser.add_argument(name, **details)
        group = parser.add_argument_group('options of format("nats")')
        for name, note in option_notes(self.options).items():
            if name not in self.without:
                # A flag may stand alone; argparse formats help texts with %.
                alone: dict[str, Any] = (
                    {"nargs": "?", "const": "true"} if note.parse is flag else {}
                )
                text = note.doc.replace("%", "%%")
                group.add_argument(
                    _flag(name),
                    metavar="TEXT",
                    help=text,
                    required=name in self.required,
                    **alone,
                )
        return parser

    def _options(self, asked: argparse.Namespace) -> dict[str, str]:
        """Return the options that were given.

        Raises:
            ConfigError: One is missing or illegal.
        """
        names = option_notes(self.options)
        given: dict[str, str | None] = {name: getattr(asked, name, None) for name in names}
        options = {spark_name(name): text for name, text in given.items() if text is not None}
        self.options.parse(options)
        return options


class _Parser(argparse.ArgumentParser):
    """Names the nearest argument where one is not known, as Python does from 3.14 on for others."""

    def __init__(self, *, elsewhere: Mapping[str, str], **settings: Any) -> None:
        super().__init__(**settings)
        self._elsewhere = elsewhere

    @property
    def known(self) -> list[str]:
        """All arguments, with their dashes."""
        return [flag for action in self._actions for flag in action.option_strings]

    def error(self, message: str) -> NoReturn:
        given = next((word for word in message.split() if word.startswith("--")), None)
        if message.startswith("unrecognized arguments") and given is not None:
            message = f"{message}; {self._hint(given)}see --help"
        super().error(message)

    def _hint(self, given: str) -> str:
        told = self._elsewhere.get(given)
        if told is not None:
            return f"{told}; "
        # The dashes alone would make short words look alike.
        near = nearest(given.lstrip("-"), [flag.lstrip("-") for flag in self.known])
        return f"did you mean --{near}? " if near else ""


def job_session(master: str | None, name: str) -> SparkSession:
    """Return spark-submit's session if it started this process, else a local one."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        builder = SparkSession.builder.appName(name)
        return builder.getOrCreate() if master is None else builder.master(master).getOrCreate()
    return local_session(master=master or "local[*]", app_name=name, has_own_group=True)


def say(text: str) -> None:
    """Tell the user something."""
    sys.stderr.write(text + "\n")


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _with_file(parser: _Parser, arguments: Sequence[str]) -> list[str]:
    """Return the arguments with those of their configuration file before them.

    Raises:
        ConfigError: The file cannot be read, or is not TOML.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config")
    path: str | None = finder.parse_known_args(arguments)[0].config
    if path is None:
        return [*arguments]
    try:
        found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"file {path} cannot be read", detail=str(error)) from error
    except ValueError as error:
        raise ConfigError(f"{path} is not a TOML file", detail=str(error)) from error
    # Here, for argparse tells first what is missing because of a misspelt one.
    unknown = [flag for flag in map(_flag, found) if flag not in parser.known]
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)} (in {path})")
    flags = [text for name, value in found.items() for text in (_flag(name), _text(value))]
    return [*flags, *arguments]


def _text(value: object) -> str:
    """Return a value of TOML as an argument."""
    if isinstance(value, list):
        return ",".join(_text(each) for each in cast("list[object]", value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _failed(error: BaseException) -> int:
    """Tell why a job failed, and return its exit code; raise an error of no one that is known."""
    # Spark's own exceptions show what went wrong in the library only in their text.
    cause = typed_error(error) if isinstance(error, Exception) else None
    if cause is not None:
        say(f"error: {_OPTION.sub(_argument, str(cause))}")
        return _exit_code(cause)
    if not isinstance(error, SPARK_ERRORS):
        raise error
    # Spark has logged the useful ones of the stack traces around it.
    reason = spark_reason(error)
    say(f"error: Spark failed: {reason}")
    for words, hint in _HINTS:
        if words in reason:
            say(f"hint: {hint}")
    return 1


def _argument(option: re.Match[str]) -> str:
    """Return an option of a hint as the command line takes it: `maxBytes` is `--max-bytes`."""
    name = re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), option[1])
    return f"{_flag(name)} {option[2] or 'TEXT'}"


def _exit_code(error: NatsStreamError) -> int:
    if isinstance(error, UsageError):
        return EXIT_USAGE
    if isinstance(error, NotFoundError):
        return 3
    return 5 if isinstance(error, TransportError) else 1
