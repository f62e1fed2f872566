"""Finds the error of a Spark Python process in the text of Spark's exception.

Law: where the text holds no complete error, Spark's exception is kept; nothing is guessed.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from py4j.protocol import Py4JJavaError  # pyright: ignore[reportMissingTypeStubs] - It has none.
from pyspark.errors import PySparkException

from natsstream import errors
from natsstream.errors import (
    MessagesLostError,
    MissingExtraError,
    NatsStreamError,
    PermissionDeniedError,
    SequenceGapError,
    SequenceRangeError,
    StaleEpochError,
)
from pyspark_natsstream.offsets import OffsetError
from pyspark_natsstream.payloads import MalformedPayloadError
from pyspark_natsstream.stored_rows import InputChangedError

if TYPE_CHECKING:
    from collections.abc import Generator

SPARK_ERRORS = (PySparkException, Py4JJavaError)
"""Of the errors in the JVM, PySpark translates some."""

# Python's traceback ends with the error; Spark's own text follows.
_ERROR = re.compile(
    r"^(?:natsstream\.errors|pyspark_natsstream\.(?:offsets|payloads|stored_rows))"
    r"\.(?P<name>\w+Error): "
    r"(?P<message>.*)"
    r"(?:\ndetail: (?P<detail>.*))?(?:\nhint: (?P<hint>.*))?",
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
_HELD = re.compile(r"holds (\d+) to (\d+)|is empty and ends at (\d+)")
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
    if issubclass(kind, MessagesLostError):
        lost = _RANGE.search(message)
        if lost is None:
            return None
        return kind(message, first_seq=int(lost[1]), last_seq=int(lost[2]), hint=hint or "")
    if issubclass(kind, MalformedPayloadError):
        place = _PAYLOAD.match(message)
        if place is None:
            return None
        return kind(
            message,
            stream=place[2],
            subject=place[3],
            sequence=int(place[1]),
            detail=detail or "",
            hint=hint or "",
        )
    if issubclass(kind, SequenceRangeError):
        held = _HELD.search(message)
        if held is None:
            return None
        last = int(held[2] or held[3])
        first = int(held[1] or last + 1)
        return kind(message, first_seq=first, last_seq=last, hint=hint or "")
    if issubclass(kind, StaleEpochError | SequenceGapError):
        return None  # The text lacks their numbers.
    if issubclass(kind, PermissionDeniedError):
        found_words = _DENIED.search(message)
        operation, subject = found_words.groups() if found_words else ("", "")
        return kind(message, operation=operation, subject=subject, hint=hint or "")
    try:
        return kind(message, detail=detail or "", hint=hint or "")
    except TypeError:
        return None  # As above.


def spark_reason(error: Exception) -> str:
    """Return the line of a Spark exception's text that says what went wrong, with its condition.

    Args:
        error: One of `SPARK_ERRORS`; a stack trace of the JVM may stand around the line.
    """
    text = str(error).strip()
    found = _REASON.search(text)
    return found[0] if found else text.partition("\n")[0]


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


def _missing_module(text: str) -> MissingExtraError | None:
    found = _MISSING.search(text)
    return None if found is None else missing_module(found["module"])
