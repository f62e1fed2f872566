"""Hides the secrets of a server's configuration in what the server says of it."""

from __future__ import annotations

import re

# Words of nats-server's configuration that have a secret behind them.
_SECRET = re.compile(
    r"""(?:pass(?:word|phrase)?|token|seed|nkey|secret|jwt)["']?[\s:=]*["']?([^\s"',}\])]{4,})""",
    re.IGNORECASE,
)
_HIDDEN = "(hidden)"


def without_secrets(log: str, config: str) -> str:
    """Return lines of a log without what stands behind a password, token or seed in a config.

    nats-server takes what begins with "$" and has no quotes, as a bcrypt hash may, for a variable,
    and repeats it when there is none.
    """
    found = {match[1].lstrip("$") for match in _SECRET.finditer(config)}
    for value in sorted(filter(None, found), key=len, reverse=True):
        log = log.replace(value, _HIDDEN)
    return log
