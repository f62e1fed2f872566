"""The options of a connection, for Python, the command line and Spark.

Law: every field has a unit and a default. An illegal value is refused here, before anything is
sent, with a hint. No repr and no message shows a secret.
"""

from __future__ import annotations

import math
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
from natsstream.constructors import answers_arguments
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
"""A text, or a function that returns it. It is called for each connection and must not block."""

DEFAULT_SERVER = "nats://127.0.0.1:4222"
INBOX_PREFIX = "_INBOX"
MISSED_PINGS_MAX = 100
SECONDS_MAX = 3_600
"""An hour, the longest time that a server is given; larger numbers are milliseconds."""
# A call must end. Workers and other readers without an end outlive any outage: their end would
# stop the program's work unnoticed.
_BOUNDED_RECONNECT_S = 30.0

# Not ws and wss: the fast lane needs the transport of a TCP connection.
_SCHEMES = ("nats", "tls")
# These may be shown; any other word may be a part of a password.
_OTHER_SCHEMES = ("http", "https", "tcp", "mqtt", "amqp", "kafka", "redis")
_PORT = re.compile(r"(?:nats://|tls://)?[\w.-]+:([0-9]{5,9})/?")
_PORT_ALONE = re.compile(r"(?:nats://|tls://)?:?[0-9]+/?")
_PORT_MAX = 65_535
_SUBJECT = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")
_TOKEN = re.compile(r"[^\s.*>]+")
_HOST = re.compile(r"[\w.-]+")
_ESCAPES = (
    "in a user or password write each of @ : / ? # , [ ] % and blanks with quote() of "
    "urllib.parse, such as %40; or give user= and password="
)
_URL_FORM = (
    "write nats://host:port or tls://host:port, the port in digits; a comma separates servers"
)
_SECONDS = ("connect_timeout", "request_timeout", "reconnect_timeout", "ping_interval")
_SIGN_IN_HINT = (
    "a connection signs in one way: user with password, token, creds, nkey, or user_jwt with "
    "user_seed; leave the others out"
)


class OptionSource(NamedTuple):
    """Other places of a field's value.

    Attributes:
        env: Environment variable; empty for none.
        context: Key in the nats CLI's context files; empty for none.
    """

    env: str = ""
    context: str = ""


def _from(env: str = "", context: str = "") -> Mapping[str, OptionSource]:
    return {"source": OptionSource(env, context)}


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """Servers, credentials and timeouts of a connection.

    Attributes:
        servers: One or more URLs such as `nats://127.0.0.1:4222`; `tls://` requires TLS.
        name: Connection name that the server shows in its connection list.
        user: User name, with `password`.
        password: Password of `user`.
        token: Token, or a function that returns it. Not with a user; with creds, nkey or JWT only
            if the server's auth callout needs both.
        creds: Path of a `.creds` file (JWT and seed), or its text. The file is read for each
            connection, so it may be replaced.
        nkey: Path of a file with an nkey seed, or the seed (`SU...`).
        user_jwt: User JWT, or a function that returns it, with `user_seed`; a bearer JWT alone.
        user_seed: Seed of `user_jwt`.
        ca: Path of the CA certificates (PEM) of the servers. Default: the system's. Requires TLS,
            as `cert` and `tls_first` do.
        cert: Path of the client's certificate (PEM), with `key`.
        key: Path of the private key of `cert`.
        key_password: Password of `key`, if it has one.
        tls_first: TLS from the first byte, for servers with `handshake_first`. Default false.
        inbox_prefix: Prefix of reply subjects. Default `_INBOX`.
        domain: JetStream domain, one token such as `hub`.
        api_prefix: Prefix of JetStream's API instead of `$JS.API`; not with `domain`.
        connect_timeout: Seconds for the handshake with one server, at most 3,600. Default 5.
        request_timeout: Seconds that a request waits for its answer, at most 3,600. Default 5.
        reconnect_timeout: Seconds that a reader waits for a reconnect. Default: bounded reads
            wait 30, and readers that run on (workers, `consume`, `ordered`, watches) go on for
            ever.
        ping_interval: Seconds between two pings, at most 3,600. Default 10.
        max_missed_pings: Unanswered pings before the client reconnects. Default 2.

    Raises:
        ConfigError: A value is illegal, or two ways to sign in are given.
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
    reconnect_timeout: float | None = None
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
        # A log must not show secrets, nor URLs that may hold them.
        hosts = ",".join(public_url(url) for url in self.servers)
        shown = "".join(f", {name}=(set)" for name in _set_credentials(self))
        return f"ConnectOptions({hosts!r}, name={self.name!r}{shown})"

    @property
    def wants_tls(self) -> bool:
        """True if a server without TLS is refused."""
        asked = self.ca is not None or self.cert is not None or self.tls_first
        return asked or any(urlsplit(url).scheme == "tls" for url in self.servers)

    @property
    def bounded_reconnect_s(self) -> float:
        """Seconds that a read with an end, or a call, waits for a reconnect."""
        given = self.reconnect_timeout
        return _BOUNDED_RECONNECT_S if given is None else given

    @property
    def running_reconnect_s(self) -> float:
        """Seconds that a reader without an end waits for a reconnect; infinite by default."""
        return math.inf if self.reconnect_timeout is None else self.reconnect_timeout

    def creds_pair(self) -> tuple[str, str]:
        """Return the current JWT and seed of `creds`.

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
"""The fields of credentials."""


def option_sources() -> dict[str, OptionSource]:
    """Return the environment variable and context key of each field, by field name."""
    return {
        each.name: each.metadata.get("source", OptionSource()) for each in fields(ConnectOptions)
    }


def split_servers(text: str) -> list[str]:
    """Return the URLs of a comma-separated text.

    Raises:
        ConfigError: A comma may be part of a password.
    """
    urls = [url.strip() for url in text.split(",")]
    if any("@" in url and "://" not in url for url in urls[1:]):
        raise ConfigError(
            "servers: a comma may separate servers, or be part of a user or password",
            hint="write nats:// before each server, or give a list; " + _ESCAPES,
        )
    return urls


def has_sign_in(options: ConnectOptions, url: str) -> bool:
    """Return True if a connection to a server has credentials, a certificate included."""
    has_any = any(getattr(options, name) is not None for name in (*CREDENTIALS, "cert"))
    return has_any or url_sign_in(url) is not None


def public_url(url: str) -> str:
    """Return a server's URL without user and password; show nothing of any other text."""
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
    """Refuse values of a wrong type for their field of `ConnectOptions`; None is skipped.

    Raises:
        ConfigError: A value has the wrong type, or a number is out of range. No secret is shown.
    """
    for name, value in given.items():
        if value is None:
            continue
        if name == "servers":
            _check_servers(value)
        elif name in _SECONDS:
            # A reader may wait for servers as long as it likes.
            check_seconds(value, name, maximum=None if name == "reconnect_timeout" else SECONDS_MAX)
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
    """Describe a value of the wrong type; only a number cannot hold a secret."""
    return described(value) if isinstance(value, int) else f"of type {type(value).__name__}"


def _check_servers(value: object) -> None:
    hint = f"give a URL like {DEFAULT_SERVER}, or a list"
    # No value is shown: a URL may hold a password.
    if isinstance(value, bytes) or not isinstance(value, str | Sequence):
        raise ConfigError(f"servers is {_kind(value)}", hint=hint)
    # The cast: a sequence of anything.
    for number, url in enumerate(cast("Sequence[object]", value)):
        if not isinstance(url, str):
            raise ConfigError(f"servers[{number}] is {_kind(url)}", hint=hint)


def _split(url: str) -> SplitResult:
    return urlsplit(url if "://" in url else f"nats://{url}")


def _read_url(url: str) -> SplitResult | None:
    """Return the parts of a server's URL, None if they are ambiguous.

    A character that ends the host early, or a comma, can put a part of a password into the host or
    the port.
    """
    try:
        parts = _split(url)
        # An IPv6 address was in brackets, or there would be no port.
        host = parts.hostname or ""
        is_plain = ":" in host or _HOST.fullmatch(host) is not None
        is_plain = is_plain and parts.port != 0
        is_plain = is_plain and "@" not in f"{parts.path}{parts.query}{parts.fragment}"
    except ValueError:
        return None
    return parts if is_plain else None


def _check_url(url: str, number: int) -> None:
    """Refuse what is no server's URL, without showing it: any part may be a secret."""
    if not url:
        raise ConfigError(
            "servers is empty" if number == 1 else f"servers: number {number} is empty",
            hint=f"is a variable unset? give a URL like {DEFAULT_SERVER}",
        )
    parts = _read_url(url)
    is_port = _PORT_ALONE.fullmatch(url) is not None
    is_usable = parts is not None and parts.scheme in _SCHEMES and not is_port
    # Such as `nats//host`, in which a colon is missing.
    is_usable = is_usable and ("://" in url or "/" not in url.rstrip("/"))
    if is_usable and not re.search(r"\s", url):
        return
    # Only before an @ may there be a password to write in another way.
    hint, why = f"write nats://host:port; {_ESCAPES}" if "@" in url else _URL_FORM, ""
    port = _PORT.fullmatch(url)
    if url.startswith(("ws://", "wss://")):
        hint = "open a WebSocket with nats-py, and give its client to natsstream.attach()"
    elif (scheme := url.partition("://")[0]) in _OTHER_SCHEMES:
        why, hint = f": it begins with {scheme}://", "write nats://host:port, or tls://host:port"
    elif is_port:
        why, hint = ": it is a port without a host", "write nats://127.0.0.1: before the port"
    elif port is not None and int(port[1]) > _PORT_MAX:
        why, hint = ": its port is too large", "ports end at 65535; the usual one is 4222"
    raise ConfigError(f"servers: number {number} is not a server URL{why}", hint=hint)


def _check_subjects(options: ConnectOptions) -> None:
    for name in ("inbox_prefix", "api_prefix"):
        value: str | None = getattr(options, name)
        if value is not None and not _SUBJECT.fullmatch(value):
            hint = "give tokens separated by dots, without wildcards and without a dot at the end"
            raise ConfigError(f"{name} {value!r} is not a subject prefix", hint=hint)
    if options.domain is not None and not _TOKEN.fullmatch(options.domain):
        raise ConfigError(
            f"domain {options.domain!r} is not one token", hint="a domain is a name such as hub"
        )
    if options.domain is not None and options.api_prefix is not None:
        raise ConfigError(
            "domain and api_prefix are given together",
            hint=f"leave one out; the prefix of this domain is $JS.{options.domain}.API",
        )


def _set_credentials(options: ConnectOptions) -> list[str]:
    given = (*CREDENTIALS, "key_password")
    return [name for name in given if getattr(options, name) is not None]


def _check_sign_in(options: ConnectOptions) -> None:
    """Refuse credentials that are empty, incomplete, of two kinds, or invalid."""
    given = _set_credentials(options)
    for name in given:
        # An empty password is legal; the others are usually variables that were not set.
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
        raise ConfigError(
            "user and password belong together", hint="a secret without user is a token="
        )
    if "user_seed" in given and "user_jwt" not in given:
        raise ConfigError("user_seed without user_jwt", hint="give a seed without a JWT as nkey=")
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
