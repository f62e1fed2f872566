"""Finds the error of a Spark Python process in the text of Spark's exception.

Law: where the text holds no complete error, Spark's exception is kept; nothing is guessed.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # pyright: ignore[reportMissingTypeStubs] - It has none.
from pyspark.errors import PySparkException

from natsstream import errors
from natsstream.errors import (
    ChunksDamagedError,
    MessagesLostError,
    MissingExtraError,
    NatsStreamError,
    PermissionDeniedError,
    SequenceRangeError,
)
from pyspark_natsstream.offsets import OffsetError
from pyspark_natsstream.payloads import MalformedPayloadError
from pyspark_natsstream.stored_rows import InputChangedError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pyspark.sql import DataFrame

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""Of the errors in the JVM, PySpark translates some."""

# Python's traceback ends with the error; Spark's own text follows.
_ERROR = re.compile(
    r"^(?:natsstream\.errors|pyspark_natsstream\.(?:offsets|payloads|stored_rows))"
    r"\.(?P<name>\w+Error): "
    r"(?P<message>.*)"
    r"(?:\ndetail: (?P<detail>.*))?(?:\nhint: (?P<hint>.*))?(?:\n(?P<note>in the read of .*))?",
    re.MULTILINE,
)
_DENIED = re.compile(r"may not (publish|subscribe) to (\S+)")
_OWN = {each.__name__: each for each in (InputChangedError, MalformedPayloadError, OffsetError)}
_PAYLOAD = re.compile(r"sequence (\d+) of stream (\S+), subject (.*): the payload is not ")
# Spark's worker needs pyarrow before any code of this package runs, so it tells no more than this.
_MISSING = re.compile(
    r"^ModuleNotFoundError: No module named '"
    r"(?P<module>pyarrow|numpy|nats|natsstream|pyspark_natsstream)\b[\w.]*'",
    re.MULTILINE,
)
# Spark's condition, in brackets, begins what it says: [PATH_NOT_FOUND] Path does not exist.
_REASON = re.compile(r"\[[A-Z][A-Z0-9_.]+\] .*")
_TRACEBACK = "Traceback (most recent call last):"
_RAISED = re.compile(r"\n(?:[ \t].*\n)*(\S.*)")
_HELD = re.compile(r"holds (\d+) to (\d+)|is empty and ends at (\d+)")
_DAMAGE = re.compile(
    r"under (?P<subject>[^\s:]+):? .*?(?:(?P<missing>missing|not all there)|"
    r"(?P<surplus>more than its writer|others too)|(?P<digest>digest|its writer gave))"
)
_RANGE = re.compile(r"(\d+) to (\d+)(?: of stream \S+)? are gone")


def typed_error(error: Exception) -> NatsStreamError | None:
    """Return the natsstream error that made a Spark call fail, or None.

    Args:
        error: Spark's exception; of several errors in its text the last is the cause.
    """
    if isinstance(error, NatsStreamError):
        return error
    found = list(_ERROR.finditer(str(error)))
    if not found:
        return _missing_module(str(error))
    name, message, detail, hint = found[-1].group("name", "message", "detail", "hint")
    kind: object = _OWN.get(name) or getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, NatsStreamError)):
        return None
    attributes = _attributes(kind, message)
    if attributes is None:
        return None
    texts: dict[str, Any] = {
        name: text for name, text in (("detail", detail), ("hint", hint)) if text
    }
    try:
        own = kind(message, **attributes, **texts)
    except TypeError:
        return None  # The text lacks its attributes.
    if found[-1]["note"]:
        own.add_note(found[-1]["note"])
    return own


def spark_reason(error: Exception) -> str:
    """Return the line of a Spark exception's text that says what went wrong, with its condition.

    Args:
        error: One of `SPARK_ERRORS`; a stack trace of the JVM may stand around the line.
    """
    text = str(error).strip()
    found = _REASON.search(text)
    line = found[0] if found else text.partition("\n")[0]
    head, traceback, _ = line.rpartition(_TRACEBACK)
    # A traceback is indented up to the error, and the last one is of what was raised.
    raised = _RAISED.match(text.rpartition(_TRACEBACK)[2]) if traceback else None
    return head + raised[1] if raised else line


@contextmanager
def typed_failures() -> Generator[None]:
    """Raise the natsstream error that made a Spark call fail, instead of Spark's exception.

    Raises:
        NatsStreamError: Spark's exception has one; otherwise that is raised as it is.
    """
    try:
        yield
    except PySparkException as failure:
        error = typed_error(failure)
        if error is None:
            raise
        raise error from failure


def missing_module(module: str) -> MissingExtraError:
    """Return the error for a module that Spark's Python processes lack."""
    if module in ("pyarrow", "numpy"):
        hint = f"install {module} where they run, or ship it with --archives; a zip cannot hold it"
    else:
        hint = "install natsstream where they run, or pass its Spark zip to --py-files"
    return MissingExtraError(f"Spark's Python processes find no module {module}", hint=hint)


def short_failures(write: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """Return a function for `foreachBatch` whose errors do not have the JVM's stack trace in them.

    Spark matches a pattern with the text of each error, also with that of a query that is stopped.
    For a stack trace the pattern needs more stack than there is, and the query's thread dies.
    """

    def shortened(rows: DataFrame, number: int) -> None:
        try:
            write(rows, number)
        except SPARK_ERRORS as error:
            raise typed_error(error) or RuntimeError(spark_reason(error)) from None

    return shortened


def _attributes(kind: type[NatsStreamError], message: str) -> dict[str, Any] | None:
    """Return the attributes that the message of an error tells; None if it lacks some."""
    if issubclass(kind, MessagesLostError):
        lost = _RANGE.search(message)
        return lost and {"first_seq": int(lost[1]), "last_seq": int(lost[2])}
    if issubclass(kind, MalformedPayloadError):
        place = _PAYLOAD.match(message)
        return place and {"stream": place[2], "subject": place[3], "sequence": int(place[1])}
    if issubclass(kind, SequenceRangeError):
        held = _HELD.search(message)
        if held is None:
            return None
        last = int(held[2] or held[3])
        return {"first_seq": int(held[1] or last + 1), "last_seq": last}
    if issubclass(kind, ChunksDamagedError):
        damage = _DAMAGE.search(message)
        return damage and {"subject": damage["subject"], "kind": damage.lastgroup}
    if issubclass(kind, PermissionDeniedError):
        words = _DENIED.search(message)
        operation, subject = words.groups() if words else ("", "")
        return {"operation": operation, "subject": subject}
    return {}


def _missing_module(text: str) -> MissingExtraError | None:
    found = _MISSING.search(text)
    return None if found is None else missing_module(found["module"])
