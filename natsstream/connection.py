"""The door: `connect()` opens a connection and hands out its JetStream context."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from natsstream.options import ConnectOptions

if TYPE_CHECKING:
    from natsstream.streams.jetstream import JetStream


class Connection:
    """A connection that is not open yet: `async with` opens it and gives its JetStream context."""

    def __init__(self, options: ConnectOptions) -> None:
        self._options = options
        self._jetstream: JetStream | None = None

    async def open(self) -> JetStream:
        """Connect and return the JetStream context; `close` ends it.

        Raises:
            ConnectError: No server could be reached.
            AuthenticationError: A server refused the credentials.
        """
        # nats-py costs 0.3 s to import and more beside aiohttp: only those pay who connect.
        from natsstream._wire.client import Client  # noqa: PLC0415
        from natsstream.streams.jetstream import JetStream  # noqa: PLC0415

        self._jetstream = JetStream(await Client.connect(self._options))
        return self._jetstream

    async def close(self) -> None:
        """Close the connection; closing twice is fine."""
        if self._jetstream is not None:
            await self._jetstream.close()

    async def __aenter__(self) -> JetStream:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


def connect(
    servers: str | Sequence[str] | ConnectOptions = "nats://127.0.0.1:4222",
    *,
    name: str = "natsstream",
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    creds: str | Path | None = None,
    connect_timeout: float = 5.0,
    request_timeout: float = 5.0,
    reconnect_timeout: float = 30.0,
) -> Connection:
    """Describe a connection; `async with` opens it.

    Args:
        servers: One URL, several (a list, or split by commas), or all options as one object.
        name: Shown by the server in its connection list.
        user: User name, with `password`.
        password: Password.
        token: Token, instead of a user.
        creds: Path of a `.creds` file.
        connect_timeout: Seconds for the handshake with one server.
        request_timeout: Seconds that a request waits for its answer.
        reconnect_timeout: Seconds that a reader waits for a lost server to come back.

    Raises:
        ConfigError: A value can not work.

    Example:
        `async with natsstream.connect("nats://127.0.0.1:4222") as js: ...`
    """
    if isinstance(servers, ConnectOptions):
        return Connection(servers)
    return Connection(
        ConnectOptions(
            servers=servers,
            name=name,
            user=user,
            password=password,
            token=token,
            creds=creds,
            connect_timeout=connect_timeout,
            request_timeout=request_timeout,
            reconnect_timeout=reconnect_timeout,
        )
    )
