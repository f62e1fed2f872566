"""Permission violations: errors that a server sends without a request.

A permission violation arrives after the command that caused it, on no reply subject; all that
connects the two is the subject in the text. The server offers nothing but English here.

Source: nats-server's client.go, `pubPermissionViolation`, `subPermissionViolation`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Literal, NamedTuple

from natsstream._wire.acks import ack_rule
from natsstream._wire.subjects import SNAPSHOTS
from natsstream.errors import PermissionDeniedError
from natsstream.events import PermissionDenied

# 'Permissions Violation for Publish to "a.b"', '... for Publish with Reply of "a.b"' and
# '... for Subscription to "a.>" using queue "workers"'.
# Subjects stand there as Go's %q writes them, with escapes.
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_DENIED = re.compile(
    r"permissions violation for (publish|subscription) (?:to|with reply of) "
    rf"{_QUOTED}(?: using queue {_QUOTED})?",
    re.IGNORECASE | re.DOTALL,
)
# As `Client.new_inbox` draws them, and readers the names of their consumers.
_DRAWN_INBOX = re.compile(r"(.+)\.[0-9a-f]{22}(?:\..*)?$", re.DOTALL)
_DRAWN_CONSUMER = re.compile(
    r"(.*\.CONSUMER\.[A-Z.]+\.[^.]+)\.(?:[a-z]+-)?[0-9a-f]{16}(?:\..*)?$", re.DOTALL
)
# A producer's control records, below the subjects of its stream.
_CONTROL = re.compile(r"(.+?)\.\$ctl\.", re.DOTALL)
# An object store, a dead-letter stream and a core stream: below it are names that are drawn.
_LAYER = re.compile(r"\$O\.[^.]+|\$DLQ\.[^.]+|cn\.[bdf]\.[^.]+", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_AUTH_WORDS = ("authorization", "authentication", "user credentials", "account authentication")


class PermissionViolation(NamedTuple):
    """A denied operation.

    Attributes:
        operation: "publish" or "subscription".
        subject: The subject as it was sent; of a message whose reply is not allowed, the reply.
        queue: The queue group, empty for none.
    """

    operation: Literal["publish", "subscription"]
    subject: str
    queue: str


def parse_permission_violation(text: str) -> PermissionViolation | None:
    """Return the denied operation, None for any other error."""
    found = _DENIED.search(text)
    if found is None:
        return None
    operation = "publish" if found[1].lower() == "publish" else "subscription"
    return PermissionViolation(operation, _unquote(found[2]), _unquote(found[3] or ""))


def _unquote(text: str) -> str:
    """Return what Go's %q has quoted; bytes that are no UTF-8 become surrogates, as elsewhere."""
    raw = b"".join(_pieces(text))
    return raw.decode("utf-8", "surrogateescape")


def _pieces(text: str) -> Iterator[bytes]:
    stop = 0
    for escape in _ESCAPE.finditer(text):
        yield text[stop : escape.start()].encode("utf-8", "surrogateescape")
        stop = escape.end()
        byte, short, long, letter = escape.groups()
        if byte is not None:
            yield bytes.fromhex(byte)
        elif letter is not None:
            yield _LETTERS.get(letter, letter).encode("utf-8", "surrogateescape")
        else:
            code = int(short or long, 16)
            yield chr(code if code <= sys.maxunicode else 0xFFFD).encode("utf-8", "replace")
    yield text[stop:].encode("utf-8", "surrogateescape")


def denied_error(event: PermissionDenied) -> PermissionDeniedError:
    """Return the error for whoever waits for what was denied."""
    verb = "publish" if event.operation == "publish" else "subscribe"
    return PermissionDeniedError(
        f"this user may not {verb} to {event.subject}",
        operation=event.operation,
        subject=event.subject,
        hint=f"allow it in the account's permissions: {verb} {permission_rule(event.subject)}",
    )


def permission_rule(subject: str) -> str:
    """Return what permissions must have for a subject: no name that is drawn for each call."""
    if subject.startswith("$JS.ACK."):
        return ack_rule(subject)
    if subject.startswith(SNAPSHOTS):
        return ".".join([*subject.split(".")[:4], ">"])
    if control := _CONTROL.match(subject):
        return f"{control[1]}.>"
    if layer := _LAYER.match(subject):
        return f"{layer[0]}.>"
    drawn = _DRAWN_INBOX.match(subject) or _DRAWN_CONSUMER.match(subject)
    return f"{drawn[1]}.>" if drawn else subject


def is_about_credentials(text: str) -> bool:
    """Return True if the server refuses the user, and not what the user did."""
    lowered = text.lower()
    # A server that is busy says "Authentication Timeout" to the best credentials.
    return "timeout" not in lowered and any(word in lowered for word in _AUTH_WORDS)
