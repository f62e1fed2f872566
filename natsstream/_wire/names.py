"""Legal names of streams and consumers: one token of a subject; pure rules.

Law: what the server would answer by closing the connection, or take for another name, is refused
before anything is sent, whoever gave it: an argument, a file or a server's answer.
"""

from __future__ import annotations

import re

from natsstream.arguments import check_text
from natsstream.errors import ConsumerNameError, StreamNameError, UsageError

STREAM_NAME_BYTES_MAX = 255

# White space is ASCII's: servers take any other. The last range is what text has in the place of
# bytes that are not UTF-8: it cannot be encoded.
_ILLEGAL_IN_NAME = re.compile(r"[\s.*>/\\\x00-\x1f\x7f\ud800-\udfff]", re.ASCII)


def check_stream_name(name: str) -> str:
    """Return the name, or raise StreamNameError when no server would take it."""
    return _check_name(name, "stream", StreamNameError)


def check_consumer_name(name: str) -> str:
    """Return the name, or raise ConsumerNameError when no server would take it."""
    return _check_name(name, "consumer", ConsumerNameError)


def is_name(text: str) -> bool:
    """Return True if a text of others can be the name of a stream or a consumer."""
    try:
        check_stream_name(text)
    except StreamNameError:
        return False
    return True


def _check_name(name: str, noun: str, error: type[UsageError]) -> str:
    check_text(name, f"the {noun}'s name", error=error)
    if not name:
        raise error(f"the {noun}'s name is empty", hint="give the name that the server knows it by")
    if len(name.encode("utf-8", "surrogatepass")) > STREAM_NAME_BYTES_MAX:
        raise error(
            f"{noun} name {name[:40]!r}... exceeds {STREAM_NAME_BYTES_MAX} bytes",
            hint="servers name files by it; shorten it",
        )
    found = _ILLEGAL_IN_NAME.search(name)
    if found:
        raise error(
            f"{noun} name {name!r} has {found.group()!r}",
            hint="use letters, digits, '-' and '_'; no spaces and none of . * > / \\",
        )
    return name
