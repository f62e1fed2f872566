"""What may be a stream's name, a subject and a filter; pure rules.

Law: what the server would answer by closing the connection, or by storing under another name, is
refused here before anything is sent.
"""

from __future__ import annotations

import re

from natsstream.errors import StreamNameError, SubjectError

STREAM_NAME_BYTES_MAX = 255
# The server's max_control_line is 4,096 bytes for the whole line; a longer one closes the
# connection. The rest of the line (verb, reply, sizes) needs well under 512.
SUBJECT_BYTES_MAX = 3_584

# White space is ASCII's: servers take any other. The last range is what text has in the place of
# bytes that are not UTF-8: it can not be encoded.
_ILLEGAL_IN_NAME = re.compile(r"[\s.*>/\\\x00-\x1f\x7f\ud800-\udfff]", re.ASCII)
_ILLEGAL_IN_SUBJECT = re.compile(r"[\s\x00-\x1f\x7f\ud800-\udfff]", re.ASCII)


def check_stream_name(name: str) -> str:
    """Return the name, or raise StreamNameError when no server would take it."""
    if not name:
        raise StreamNameError("the stream's name is empty")
    if len(name.encode("utf-8", "surrogatepass")) > STREAM_NAME_BYTES_MAX:
        raise StreamNameError(f"stream name {name[:40]!r}... exceeds {STREAM_NAME_BYTES_MAX} bytes")
    found = _ILLEGAL_IN_NAME.search(name)
    if found:
        raise StreamNameError(
            f"stream name {name!r} has {found.group()!r}",
            hint="use letters, digits, '-' and '_'; no spaces and none of . * > / \\",
        )
    return name


def check_subject(subject: str) -> str:
    """Return a subject to publish to, or raise SubjectError; wildcards are refused."""
    if "*" in subject or ">" in subject:
        for token in subject.split("."):
            if token in ("*", ">"):
                raise SubjectError(
                    f"subject {subject!r} has the wildcard {token!r}",
                    hint="messages are published to one subject; wildcards are for filters",
                )
    return check_filter(subject)


def check_filter(subject: str) -> str:
    """Return a subject filter, or raise SubjectError; `*` is one token and a final `>` the rest."""
    if not subject:
        raise SubjectError("the subject is empty")
    if len(subject.encode("utf-8", "surrogatepass")) > SUBJECT_BYTES_MAX:
        raise SubjectError(
            f"subject {subject[:40]!r}... exceeds {SUBJECT_BYTES_MAX} bytes",
            hint="the server closes the connection on longer lines; shorten it",
        )
    found = _ILLEGAL_IN_SUBJECT.search(subject)
    if found:
        raise SubjectError(
            f"subject {subject!r} has {found.group()!r}",
            hint="no white space or control characters",
        )
    tokens = subject.split(".")
    if not all(tokens):
        raise SubjectError(
            f"subject {subject!r} has an empty token", hint="no leading or double '.'"
        )
    if ">" in tokens[:-1]:
        raise SubjectError(f"subject {subject!r} has '>' before its end")
    return subject
