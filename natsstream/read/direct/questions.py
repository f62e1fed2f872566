"""Requests for single messages, from a replica or the leader; pure rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from natsstream.api.names import check_filter
from natsstream.arguments import check_int, check_text, described
from natsstream.errors import ConfigError, PayloadTooLargeError, SubjectError
from natsstream.units import format_rfc3339, time_to_ns

_SEQUENCE_MAX = 2**64 - 1
# Two filters that match what ">" does, for servers that do not look for ">" itself.
EVERY_SUBJECT = ("*", "*.>")


def which(
    sequence: int | None,
    last_by_subject: str | None,
    next_by_subject: str | None,
    start_time: object,
) -> dict[str, object]:
    """Return the body of a question for one message, or for the first of several.

    Raises:
        ConfigError: The arguments name no message, or two.
        SubjectError: A subject is not legal.
    """
    if last_by_subject is not None:
        if sequence is not None or next_by_subject is not None or start_time is not None:
            raise ConfigError("last_by_subject goes with nothing else")
        return {"last_by_subj": _filter(last_by_subject, "last_by_subject")}
    if sequence is None and start_time is None and next_by_subject is None:
        raise ConfigError(
            "the read names no message",
            hint="give a sequence, last_by_subject, next_by_subject or start_time",
        )
    if sequence is not None and start_time is not None:
        raise ConfigError("a read takes sequence or start_time, not both")
    body: dict[str, object] = {}
    if next_by_subject is not None:
        body["next_by_subj"] = _filter(next_by_subject, "next_by_subject")
    if start_time is not None:
        if isinstance(start_time, bool) or not isinstance(start_time, datetime | int):
            raise ConfigError(
                f"start_time is {described(start_time)}",
                hint="give a datetime with a time zone, or Unix nanoseconds",
            )
        body["start_time"] = format_rfc3339(time_to_ns(start_time))
    else:
        first = 1 if sequence is None else sequence
        body["seq"] = check_int(first, "sequence", minimum=1, maximum=_SEQUENCE_MAX)
    return body


def question_bytes(body: Mapping[str, object], size_max: int) -> bytes:
    """Return the JSON of a question.

    Raises:
        PayloadTooLargeError: It names more subjects than fit into one message.
    """
    question = json.dumps(body).encode()
    if len(question) > size_max:
        raise PayloadTooLargeError(
            f"the question has {len(question)} bytes, the server takes {size_max}",
            hint="name fewer subjects, or use wildcards",
        )
    return question


def _filter(subject: str, name: str) -> str:
    return check_filter(check_text(subject, name, error=SubjectError))
