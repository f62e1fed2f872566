"""The errors that a server sends by itself: whom they are about.

What lives here: reading the text of `-ERR`. What must not: deciding what a caller sees.

A permission violation arrives after the command that caused it, on no reply subject; all that
connects the two is the subject in the text. The server offers nothing but English here.

Source: nats-server's client.go, `pubPermissionViolation`, `subPermissionViolation`.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from natsstream.errors import PermissionDeniedError
from natsstream.events import PermissionDenied

# 'Permissions Violation for Publish to "a.b"', '... for Publish with Reply of "a.b"' and
# '... for Subscription to "a.>" using queue "workers"'.
_DENIED = re.compile(
    r"permissions violation for (publish|subscription) (?:to|with reply of) "
    r'"(.*?)"(?: using queue "(.*)")?',
    re.IGNORECASE | re.DOTALL,
)
_AUTH_WORDS = ("authorization", "authentication", "user credentials", "account authentication")


class Denial(NamedTuple):
    """What the server does not allow.

    Attributes:
        operation: "publish" or "subscription".
        subject: The subject as it was sent; of a message whose reply is not allowed, the reply.
        queue: The queue group, empty for none.
    """

    operation: Literal["publish", "subscription"]
    subject: str
    queue: str


def parse_denial(text: str) -> Denial | None:
    """Return what is not allowed, None for any other error."""
    found = _DENIED.search(text)
    if found is None:
        return None
    operation = "publish" if found[1].lower() == "publish" else "subscription"
    return Denial(operation, found[2], found[3] or "")


def denied_error(event: PermissionDenied) -> PermissionDeniedError:
    """Return the error for whoever waits for what was denied."""
    verb = "publish" if event.operation == "publish" else "subscribe"
    return PermissionDeniedError(
        f"this user may not {verb} to {event.subject}",
        operation=event.operation,
        subject=event.subject,
        hint=f"allow it in the account's permissions: {verb} {event.subject}",
    )


def is_about_credentials(text: str) -> bool:
    """Tell whether the server refuses the user, and not what the user did."""
    lowered = text.lower()
    return any(word in lowered for word in _AUTH_WORDS)
