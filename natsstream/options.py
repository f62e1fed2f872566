"""Options shared by the Python door, the command line and Spark.

Law: every field says its unit and default; an impossible value is refused here, before anything
is sent, with the way out in the hint.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from natsstream.errors import ConfigError

# Not ws and wss: the fast lane needs the transport of a TCP connection.
_SCHEMES = ("nats", "tls")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """How to reach the servers and how long to wait for them.

    Attributes:
        servers: One or more URLs such as `nats://127.0.0.1:4222`.
        name: Shown by the server in its connection list.
        user: User name, with `password`.
        password: Password.
        token: Token, instead of a user.
        creds: Path of a `.creds` file (JWT and nkey seed).
        connect_timeout: Seconds for the handshake with one server. Default 5.
        request_timeout: Seconds that a request waits for its answer. Default 5.
        reconnect_timeout: Seconds that a reader waits for a lost server to come back. Default 30.
    """

    servers: Sequence[str] = ("nats://127.0.0.1:4222",)
    name: str = "natsstream"
    user: str | None = None
    password: str | None = None
    token: str | None = None
    creds: str | Path | None = None
    connect_timeout: float = 5.0
    request_timeout: float = 5.0
    reconnect_timeout: float = 30.0

    def __post_init__(self) -> None:
        urls = self.servers.split(",") if isinstance(self.servers, str) else self.servers
        object.__setattr__(self, "servers", tuple(url.strip() for url in urls))
        if not self.servers:
            raise ConfigError("no server given", hint="give a URL like nats://127.0.0.1:4222")
        for url in self.servers:
            _check_url(url)
        for field in ("connect_timeout", "request_timeout", "reconnect_timeout"):
            if not getattr(self, field) > 0:
                raise ConfigError(f"{field} must be above 0 seconds, got {getattr(self, field)!r}")
        if self.creds is not None:
            creds = Path(self.creds).expanduser()
            object.__setattr__(self, "creds", creds)
            if not creds.is_file():
                raise ConfigError(
                    f"credentials file {creds} does not exist",
                    hint="give the path of a .creds file",
                )

    def __repr__(self) -> str:
        # Neither secrets nor URLs that may hold them belong into a log.
        hosts = ",".join(public_url(url) for url in self.servers)
        return f"ConnectOptions({hosts!r}, name={self.name!r})"


def public_url(url: str) -> str:
    """Return a server's URL without user and password."""
    parts = urlsplit(url if "://" in url else f"nats://{url}")
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or 4222}"


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url if "://" in url else f"nats://{url}")
        legal = bool(parts.hostname) and parts.scheme in _SCHEMES and parts.port != 0
        legal = legal and not re.search(r"\s", url)
    except ValueError:
        legal = False
    if not legal:
        shown = url.rpartition("@")[2]  # User and password stand before it.
        raise ConfigError(f"{shown!r} is not a server URL", hint="write nats://host:port")
