"""The request for one stored message, to a stream's leader or to any replica; pure rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from natsstream.api.names import check_filter
from natsstream.arguments import check_int, check_text, described
from natsstream.errors import ConfigError, SubjectError
from natsstream.units import position_text, time_to_ns

SEQUENCE_MAX = 2**64 - 1
# For the last message of ">", servers check only their last sequence, which may be deleted (seen on
# 2.10 to 2.15). These two filters together match the same subjects.
EVERY_SUBJECT = ("*", "*.>")


def message_query(
    sequence: int | None = None,
    *,
    last_by_subject: str | None = None,
    next_by_subject: str | None = None,
    start_time: object = None,
) -> dict[str, object]:
    """Return the body of a request for one message, or for the first of several.

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
        body["start_time"] = position_text(time_to_ns(start_time))
    else:
        first: object = 1 if sequence is None else sequence
        if isinstance(first, str):
            hint = f"a subject goes to last_by_subject={first!r} or next_by_subject="
            raise ConfigError(f"sequence is {described(first)}", hint=hint)
        body["seq"] = check_int(first, "sequence", minimum=1, maximum=SEQUENCE_MAX)
    return body


def described_query(query: Mapping[str, object], stream: str) -> str:
    """Return the name of the message that a request asks for, as errors show it."""
    last, subject = query.get("last_by_subj"), query.get("next_by_subj")
    if last is not None:
        return f"last message of {last} in stream {stream}"
    if "start_time" in query:
        place = f"from {query['start_time']} on in stream {stream}"
        return f"first message {'' if subject is None else f'of {subject} '}{place}"
    if subject is not None:
        return f"first message of {subject} from sequence {query['seq']} on in stream {stream}"
    return f"message {query['seq']} of stream {stream}"


def _filter(subject: str, name: str) -> str:
    return check_filter(check_text(subject, name, error=SubjectError))
