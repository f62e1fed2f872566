"""How a connection is described, for the Python door, the command line and Spark.

Law: every field says its unit and default; an impossible value is refused here, before anything
is sent, with the way out in the hint. Secrets are in no repr and in no message.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NamedTuple, TypeAlias, cast
from urllib.parse import SplitResult, unquote, urlsplit

from natsstream.arguments import (
    check_bool,
    check_int,
    check_seconds,
    check_text,
    described,
)
from natsstream.credentials import (
    check_user_seed,
    existing_file,
    find_user_seed,
    is_creds_text,
    is_seed_text,
    parse_creds,
    read_file,
)
from natsstream.errors import ConfigError

Secret: TypeAlias = str | Callable[[], str]
"""A text, or a function that returns it; it is called for each connection and may not block."""

DEFAULT_SERVER = "nats://127.0.0.1:4222"
INBOX_PREFIX = "_INBOX"
MISSED_PINGS_MAX = 100

# Not ws and wss: the fast lane needs the transport of a TCP connection.
_SCHEMES = ("nats", "tls")
_SUBJECT = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")
_TOKEN = re.compile(r"[^\s.*>]+")
_HOST = re.compile(r"[\w.-]+")
_ESCAPES = (
    "in a user or password write each of @ : / ? # , [ ] % and blanks with quote() of "
    "urllib.parse, such as %40; or give user= and password="
)
_SECONDS = ("connect_timeout", "request_timeout", "reconnect_timeout", "ping_interval")
_SIGN_IN_HINT = (
    "a connection signs in one way: user with password, token, creds, nkey, or user_jwt with "
    "user_seed; leave the others out"
)


class OptionSource(NamedTuple):
    """Where else a field's value may stand.

    Attributes:
        env: Environment variable; empty where there is none.
        context: Key of the nats CLI's context files; empty where there is none.
    """

    env: str = ""
    context: str = ""


def _from(env: str = "", context: str = "") -> Mapping[str, OptionSource]:
    return {"source": OptionSource(env, context)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """How to reach the servers, how to sign in, and how long to wait.

    Attributes:
        servers: One or more URLs such as `nats://127.0.0.1:4222`; `tls://` insists on TLS.
        name: Shown by the server in its connection list.
        user: User name, with `password`.
        password: Password of `user`.
        token: Token, or a function that returns it; instead of a user, or beside creds, nkey or
            JWT where the server's auth callout wants both.
        creds: Path of a `.creds` file (JWT and seed), or its text. A file is read again for each
            connection, so it may be renewed.
        nkey: Path of a file with an nkey seed, or the seed (`SU...`).
        user_jwt: User JWT, or a function that returns it, with `user_seed`; alone for a bearer JWT.
        user_seed: Seed that belongs to `user_jwt`.
        ca: Path of the certificates (PEM) that sign for the servers; without it, the system's.
            Given, it insists on TLS, as `cert` and `tls_first` do.
        cert: Path of the client's certificate (PEM), with `key`.
        key: Path of the private key of `cert`.
        key_password: Password of `key`, where it has one.
        tls_first: TLS from the first byte, for servers with `handshake_first`. Default false.
        inbox_prefix: What reply subjects begin with. Default `_INBOX`.
        domain: JetStream domain to speak to, one token such as `hub`.
        api_prefix: Subject of JetStream's API where it is not `$JS.API`, instead of a domain.
        connect_timeout: Seconds for the handshake with one server. Default 5.
        request_timeout: Seconds that a request waits for its answer. Default 5.
        reconnect_timeout: Seconds that a reader waits for a lost server to come back. Default 30.
        ping_interval: Seconds between two looks whether the server still answers. Default 10.
        max_missed_pings: Pings without an answer after which the server is left. Default 2.

    Raises:
        ConfigError: A value that can not work, or two ways to sign in.
    """

    servers: Sequence[str] = field(default=(DEFAULT_SERVER,), metadata=_from("NATS_URL", "url"))
    name: str = "natsstream"
    user: str | None = field(default=None, metadata=_from("NATS_USER", "user"))
    password: str | None = field(default=None, metadata=_from("NATS_PASSWORD", "password"))
    token: Secret | None = field(default=None, metadata=_from("NATS_TOKEN", "token"))
    creds: str | Path | None = field(default=None, metadata=_from("NATS_CREDS", "creds"))
    nkey: str | Path | None = field(default=None, metadata=_from("NATS_NKEY", "nkey"))
    user_jwt: Secret | None = field(default=None, metadata=_from("NATS_JWT", "user_jwt"))
    user_seed: str | None = field(default=None, metadata=_from("NATS_SEED", "user_seed"))
    ca: str | Path | None = field(default=None, metadata=_from("NATS_CA", "ca"))
    cert: str | Path | None = field(default=None, metadata=_from("NATS_CERT", "cert"))
    key: str | Path | None = field(default=None, metadata=_from("NATS_KEY", "key"))
    key_password: str | None = None
    tls_first: bool = field(default=False, metadata=_from(context="tls_first"))
    inbox_prefix: str = field(default=INBOX_PREFIX, metadata=_from(context="inbox_prefix"))
    domain: str | None = field(default=None, metadata=_from(context="jetstream_domain"))
    api_prefix: str | None = field(default=None, metadata=_from(context="jetstream_api_prefix"))
    connect_timeout: float = 5.0
    request_timeout: float = field(default=5.0, metadata=_from("NATS_TIMEOUT"))
    reconnect_timeout: float = 30.0
    ping_interval: float = 10.0
    max_missed_pings: int = 2

    def __post_init__(self) -> None:
        check_option_types({each.name: getattr(self, each.name) for each in fields(self)})
        given = self.servers
        urls = split_servers(given) if isinstance(given, str) else [url.strip() for url in given]
        object.__setattr__(self, "servers", tuple(urls))
        if not self.servers:
            raise ConfigError("no server given", hint="give a URL like nats://127.0.0.1:4222")
        for number, url in enumerate(self.servers, 1):
            _check_url(url, number)
        _check_subjects(self)
        _check_sign_in(self)
        for name in ("ca", "cert", "key"):
            value_or_none: str | Path | None = getattr(self, name)
            if value_or_none is not None:
                object.__setattr__(self, name, existing_file(value_or_none, option=name))
        if (self.cert is None) != (self.key is None):
            raise ConfigError(
                "cert and key belong together", hint="give the certificate and its private key"
            )
        if self.key_password is not None and self.key is None:
            raise ConfigError("key_password without key", hint="give key, or leave it out")

    def __repr__(self) -> str:
        # Neither secrets nor URLs that may hold them belong into a log.
        hosts = ",".join(public_url(url) for url in self.servers)
        shown = "".join(f", {name}=(set)" for name in _set_credentials(self))
        return f"ConnectOptions({hosts!r}, name={self.name!r}{shown})"

    @property
    def wants_tls(self) -> bool:
        """Whether a server without TLS is refused."""
        asked = self.ca is not None or self.cert is not None or self.tls_first
        return asked or any(urlsplit(url).scheme == "tls" for url in self.servers)

    def creds_pair(self) -> tuple[str, str]:
        """Return JWT and seed of `creds` as they are now.

        Raises:
            ConfigError: There are none, or they are damaged.
        """
        if isinstance(self.creds, str):
            return parse_creds(self.creds, source="creds")
        path = self.creds or ""
        return parse_creds(read_file(path, option="creds"), source=str(path))

    def nkey_seed(self) -> str:
        """Return the seed that `nkey` names.

        Raises:
            ConfigError: There is none, or it is damaged.
        """
        if isinstance(self.nkey, str):
            return find_user_seed(self.nkey, source="nkey")
        path = self.nkey or ""
        return find_user_seed(read_file(path, option="nkey"), source=str(path))


CREDENTIALS = ("user", "password", "token", "creds", "nkey", "user_jwt", "user_seed")
"""The fields that say who connects."""


def option_sources() -> dict[str, OptionSource]:
    """Return where else the value of each field may stand, by field name."""
    return {
        each.name: each.metadata.get("source", OptionSource()) for each in fields(ConnectOptions)
    }


def split_servers(text: str) -> list[str]:
    """Return the URLs of a text that has commas between them.

    Raises:
        ConfigError: A comma may as well stand in a password: nothing tells where it ends.
    """
    urls = [url.strip() for url in text.split(",")]
    if any("@" in url and "://" not in url for url in urls[1:]):
        raise ConfigError(
            "servers: a comma may be one between servers, or one in a user or password",
            hint="write each server with nats:// before it, or give a list; " + _ESCAPES,
        )
    return urls


def public_url(url: str) -> str:
    """Return a server's URL without user and password; nothing of a text that is no such URL."""
    parts = _read_url(url)
    if parts is None:
        return "(not a server URL)"
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{parts.port or 4222}"


def url_sign_in(url: str) -> tuple[str, str | None] | None:
    """Return user and password of a URL, decoded; a token is a user without password."""
    parts = _split(url)
    if parts.username is None:
        return None
    password = None if parts.password is None else unquote(parts.password)
    return unquote(parts.username), password


def check_option_types(given: Mapping[str, object]) -> None:
    """Refuse values that no field of `ConnectOptions` of that name can have; None is none.

    Raises:
        ConfigError: A value is of the wrong type, or a number out of range. Secrets are not shown.
    """
    for name, value in given.items():
        if value is None:
            continue
        if name == "servers":
            _check_servers(value)
        elif name in _SECONDS:
            check_seconds(value, name)
        elif name == "max_missed_pings":
            check_int(value, name, minimum=1, maximum=MISSED_PINGS_MAX)
        elif name == "tls_first":
            check_bool(value, name)
        elif name in (*CREDENTIALS, "key_password"):
            allowed = (str, Path) if name in ("creds", "nkey") else (str,)
            is_function = name in ("token", "user_jwt") and callable(value)
            if not isinstance(value, allowed) and not is_function:
                hint = "give a text" if len(allowed) == 1 else "give a text or a path"
                raise ConfigError(f"{name} is of type {type(value).__name__}", hint=hint)
        elif name in ("ca", "cert", "key", "context"):
            if not isinstance(value, str | Path):
                raise ConfigError(f"{name} is {_kind(value)}", hint="give a text or a path")
        else:
            check_text(value, name)


def _kind(value: object) -> str:
    """Return what a value of the wrong type is; only a number is sure to hold no secret."""
    return described(value) if isinstance(value, int) else f"of type {type(value).__name__}"


def _check_servers(value: object) -> None:
    hint = f"give a URL like {DEFAULT_SERVER}, or a list"
    # No value is shown: a URL may hold a password, whatever it is wrapped in.
    if isinstance(value, bytes) or not isinstance(value, str | Sequence):
        raise ConfigError(f"servers is {_kind(value)}", hint=hint)
    # The cast says what is not known as yet: a sequence of anything.
    for number, url in enumerate(cast("Sequence[object]", value)):
        if not isinstance(url, str):
            raise ConfigError(f"servers[{number}] is {_kind(url)}", hint=hint)


def _split(url: str) -> SplitResult:
    return urlsplit(url if "://" in url else f"nats://{url}")


def _read_url(url: str) -> SplitResult | None:
    """Return the parts of a server's URL of any scheme, None where it is not plain which is which.

    A letter that ends the host early, or a comma that cut a list there, leaves a part of a password
    where the host or the port stands.
    """
    try:
        parts = _split(url)
        # An address of IPv6 has stood in brackets, or there would be no port.
        host = parts.hostname or ""
        is_plain = ":" in host or _HOST.fullmatch(host) is not None
        is_plain = is_plain and parts.port != 0
        is_plain = is_plain and "@" not in f"{parts.path}{parts.query}{parts.fragment}"
    except ValueError:
        return None
    return parts if is_plain else None


def _check_url(url: str, number: int) -> None:
    """Refuse what is no server's URL, without showing it: any part of it may be of a secret."""
    parts = _read_url(url)
    if parts is not None and parts.scheme in _SCHEMES and not re.search(r"\s", url):
        return
    hint = f"write nats://host:port; {_ESCAPES}"
    if url.startswith(("ws://", "wss://")):
        hint = "open a WebSocket with nats-py, and give its client to natsstream.attach()"
    raise ConfigError(f"servers: number {number} is not a server URL", hint=hint)


def _check_subjects(options: ConnectOptions) -> None:
    for name in ("inbox_prefix", "api_prefix"):
        value: str | None = getattr(options, name)
        if value is not None and not _SUBJECT.fullmatch(value):
            hint = "tokens with dots between, without wildcards and without a dot at the end"
            raise ConfigError(f"{name} {value!r} is not the begin of a subject", hint=hint)
    if options.domain is not None and not _TOKEN.fullmatch(options.domain):
        raise ConfigError(
            f"domain {options.domain!r} is not one token", hint="a domain is a name such as hub"
        )
    if options.domain is not None and options.api_prefix is not None:
        raise ConfigError(
            "domain and api_prefix are given together",
            hint=f"the prefix of this domain is $JS.{options.domain}.API; leave one of them out",
        )


def _set_credentials(options: ConnectOptions) -> list[str]:
    given = (*CREDENTIALS, "key_password")
    return [name for name in given if getattr(options, name) is not None]


def _check_sign_in(options: ConnectOptions) -> None:
    """Refuse credentials that are empty, halved, of two kinds, or no credentials."""
    given = _set_credentials(options)
    for name in given:
        # An empty password is one; the others are variables that somebody forgot to set.
        if getattr(options, name) == "" and name != "password":
            raise ConfigError(f"{name} is empty", hint=f"set it, or leave {name} out")
    ways = [name for name in ("user", "creds", "nkey", "user_jwt") if name in given]
    # Auth callouts take a token beside a signature, never beside a user.
    if "token" in given and ways == ["user"]:
        ways.append("token")
    if any(url_sign_in(url) for url in options.servers):
        ways.extend(["a user in the URL", *({"token"} & set(given) - set(ways))])
    if len(ways) > 1:
        raise ConfigError(f"{' and '.join(ways)} are given together", hint=_SIGN_IN_HINT)
    if ("user" in given) != ("password" in given):
        raise ConfigError("user and password belong together", hint="a lone secret goes into token")
    if "user_seed" in given and "user_jwt" not in given:
        raise ConfigError("user_seed without user_jwt", hint="a seed alone is given as nkey=")
    if options.creds is not None:
        if not (isinstance(options.creds, str) and is_creds_text(options.creds)):
            path = existing_file(options.creds, option="creds")
            object.__setattr__(options, "creds", path)
        _ = options.creds_pair()
    if options.nkey is not None:
        if not (isinstance(options.nkey, str) and is_seed_text(options.nkey)):
            object.__setattr__(options, "nkey", existing_file(options.nkey, option="nkey"))
        _ = options.nkey_seed()
    if options.user_seed is not None:
        check_user_seed(options.user_seed.strip(), source="user_seed")
