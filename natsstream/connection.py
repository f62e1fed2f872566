"""`connect()` opens a connection, `attach()` uses one that is open already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Never, NoReturn, cast

from natsstream.arguments import did_you_mean
from natsstream.contexts import resolve_options
from natsstream.errors import ConfigError, UsageError
from natsstream.foreign_names import CONNECT_OPTIONS
from natsstream.options import ConnectOptions, Secret, check_option_types

if TYPE_CHECKING:
    from natsstream._wire.client import Client
    from natsstream.jetstream import JetStream


class Connection:
    """A connection that is not open yet: `async with` opens it and gives its JetStream."""

    def __init__(self, options: ConnectOptions, attached: object = None) -> None:
        self._options = options
        self._attached = attached
        self._client: Client | None = None

    async def open(self) -> JetStream:
        """Connect and return the JetStream context; `close` ends it.

        Raises:
            ConnectError: No server could be reached.
            AuthenticationError: A server refused the credentials.
            UsageError: The connection is open already.
        """
        if self._client is not None and not self._client.is_closed:
            raise UsageError(
                "this connection is open already", hint="call connect() again for another one"
            )
        # nats-py takes a while to import: imported at the first connection.
        from natsstream._wire.client import Client  # noqa: PLC0415
        from natsstream.jetstream import JetStream  # noqa: PLC0415

        if self._attached is None:
            client = await Client.connect(self._options)
        else:
            client = await Client.attach(self._attached, self._options)
        self._client = client
        return JetStream(client)

    async def close(self) -> None:
        """Close the connection; closing twice is fine."""
        if self._client is not None:
            await self._client.close()

    async def __aenter__(self) -> JetStream:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    if not TYPE_CHECKING:  # Type checkers report these mistakes by themselves.

        def __await__(self) -> NoReturn:
            raise UsageError(
                "a connection cannot be awaited",
                hint="write `async with connect(...) as js:`, or `js = await connect(...).open()`",
            )

        def __enter__(self) -> NoReturn:
            raise UsageError(
                "a connection needs `async with`",
                hint="write `async with`, or use natsstream.blocking.connect() for plain `with`",
            )

        def __exit__(self, *_: object) -> None:
            """Never called: without it Python would complain about `__exit__`, not about async."""

        def __getattr__(self, name: str) -> NoReturn:
            message = f"'Connection' object has no attribute {name!r}"
            if not name.startswith("_"):
                message += "; it is not open yet: `async with connect(...) as js:`, then js." + name
            raise AttributeError(message, name=name, obj=self)

    def __repr__(self) -> str:
        if self._attached is not None:
            return f"<Connection attached to {self._attached!r}>"
        return f"<Connection {self._options!r}>"


def connect(
    servers: str | Sequence[str] | ConnectOptions | None = None,
    *,
    context: str | Path | None = None,
    name: str | None = None,
    user: str | None = None,
    password: str | None = None,
    token: Secret | None = None,
    creds: str | Path | None = None,
    nkey: str | Path | None = None,
    user_jwt: Secret | None = None,
    user_seed: str | None = None,
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    key_password: str | None = None,
    tls_first: bool | None = None,
    inbox_prefix: str | None = None,
    domain: str | None = None,
    api_prefix: str | None = None,
    connect_timeout: float | None = None,
    request_timeout: float | None = None,
    reconnect_timeout: float | None = None,
    ping_interval: float | None = None,
    max_missed_pings: int | None = None,
    **unknown: Never,
) -> Connection:
    """Describe a connection; `async with` opens it.

    Without `servers` and `context` it connects as the nats CLI does: its environment variables
    first, then the context in `NATS_CONTEXT` or of `nats context select`, then
    `nats://127.0.0.1:4222`. Arguments given here win over both. With `servers` or `context`, the
    environment is not read.

    Args:
        servers: One URL, several (a list, or comma-separated), or a `ConnectOptions`.
        context: Name of a nats CLI context, or the path of its file.
        name: Connection name that the server shows in its connection list.
        user: User name, with `password`.
        password: Password of `user`.
        token: Token, or a function that returns it.
        creds: Path of a `.creds` file, or its text.
        nkey: Path of a file with an nkey seed, or the seed.
        user_jwt: User JWT, or a function that returns it, with `user_seed`.
        user_seed: Seed of `user_jwt`.
        ca: Path of the CA certificates (PEM) of the servers; requires TLS.
        cert: Path of the client's certificate, with `key`.
        key: Path of the private key of `cert`.
        key_password: Password of `key`, if it has one.
        tls_first: TLS from the first byte, for servers with `handshake_first`.
        inbox_prefix: Prefix of reply subjects. Default `_INBOX`.
        domain: JetStream domain.
        api_prefix: Prefix of JetStream's API instead of `$JS.API`; not with `domain`.
        connect_timeout: Seconds for the handshake with one server, at most 3,600. Default 5.
        request_timeout: Seconds that a request waits for its answer, at most 3,600. Default 5.
        reconnect_timeout: Seconds that a reader waits for a reconnect. Default: bounded reads
            wait 30, and readers that run on (workers, `consume`, `ordered`, watches) go on for
            ever.
        ping_interval: Seconds between two pings, at most 3,600. Default 10.
        max_missed_pings: Unanswered pings before the client reconnects. Default 2.
        unknown: None; options of other clients are refused with their name here.

    Raises:
        ConfigError: An option is unknown, a value is illegal, the context does not exist, or two
            ways to sign in are given.

    Example:
        `async with natsstream.connect("nats://127.0.0.1:4222") as js: ...`
    """
    return Connection(_describe(dict(locals())))


def attach(
    nats_client: object,
    *,
    inbox_prefix: str | None = None,
    domain: str | None = None,
    api_prefix: str | None = None,
    request_timeout: float | None = None,
    reconnect_timeout: float | None = None,
    ping_interval: float | None = None,
    max_missed_pings: int | None = None,
) -> Connection:
    """Describe JetStream over a connection that the application has opened with nats-py.

    `async with` installs the fast lane on the running connection, and removes it at the end. The
    application's subscriptions and callbacks keep working, and its options control reconnects. A
    WebSocket has no fast lane: everything works, but slower, and `js.has_fast_lane` is False.

    Args:
        nats_client: A connected `nats.aio.client.Client`.
        inbox_prefix: Prefix of reply subjects. Default `_INBOX`.
        domain: JetStream domain.
        api_prefix: Prefix of JetStream's API instead of `$JS.API`; not with `domain`.
        request_timeout: Seconds that a request waits for its answer, at most 3,600. Default 5.
        reconnect_timeout: Seconds that a reader waits for a reconnect. Default: bounded reads
            wait 30, and readers that run on (workers, `consume`, `ordered`, watches) go on for
            ever.
        ping_interval: Seconds between two pings, at most 3,600. Default 10.
        max_missed_pings: Unanswered pings before the client reconnects. Default 2.

    Raises:
        ConfigError: A value is illegal, or `nats_client` is no client of nats-py; on opening: it
            is not connected.

    Example:
        `async with natsstream.attach(nc) as js: ...`
    """
    arguments: dict[str, object] = dict(locals())
    del arguments["nats_client"]
    # An application with a client of nats-py has imported it already.
    from natsstream._wire.attach import check_client  # noqa: PLC0415

    check_client(nats_client)
    given = {option: value for option, value in arguments.items() if value is not None}
    # The arguments have the types of the fields of the same names.
    return Connection(ConnectOptions(**given), nats_client)  # pyright: ignore[reportArgumentType]


def _describe(arguments: dict[str, object]) -> ConnectOptions:
    """Return the options for the arguments of `connect`."""
    unknown = cast("dict[str, object]", arguments.pop("unknown"))
    for name in unknown:
        here = CONNECT_OPTIONS.get(name)
        raise ConfigError(
            f"connect() has no option {name!r}",
            hint=f"in natsstream: {here}" if here else did_you_mean(name, arguments).strip(),
        )
    given = {option: value for option, value in arguments.items() if value is not None}
    options = given.get("servers")
    if not isinstance(options, ConnectOptions):
        check_option_types(given)
    else:
        if len(given) > 1:
            raise ConfigError(
                "ConnectOptions and single options are given together",
                hint="change a copy: dataclasses.replace(options, name=...)",
            )
        return options
    context = given.pop("context", None)
    # By the signature of `connect`.
    return resolve_options(given, context=cast("str | Path | None", context))
