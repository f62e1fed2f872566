"""A message of plain NATS, which no stream has stored."""

from __future__ import annotations

from natsstream._wire.client import Client
from natsstream._wire.headers import Headers, HeaderValues, encode_headers
from natsstream._wire.parser import Frame
from natsstream.api.names import check_subject
from natsstream.arguments import check_bytes, check_text
from natsstream.errors import (
    ConfigError,
    ConnectionClosedError,
    ConnectionLostError,
    EventLoopError,
    SubjectError,
)

_NO_HEADERS = Headers(b"")


class CoreMessage:
    """A message that came without a stream.

    Attributes:
        subject: Where it was published.
        reply: Where an answer is expected; empty for nowhere.
        data: The payload.
    """

    __slots__ = ("_client", "_header", "data", "reply", "subject")

    def __init__(self, client: Client, frame: Frame) -> None:
        self._client = client
        self._header = frame[2]
        self.subject: str = frame[0].decode("utf-8", "surrogateescape")
        self.reply: str = frame[1].decode("utf-8", "surrogateescape")
        self.data: bytes = frame[3]

    @property
    def headers(self) -> Headers:
        """The headers, parsed when they are asked for."""
        return Headers(self._header) if self._header else _NO_HEADERS

    async def respond(self, data: bytes = b"", *, headers: HeaderValues | None = None) -> None:
        """Answer a request.

        Raises:
            ConfigError: The message expects no answer, or the payload is no bytes.
        """
        if not self.reply:
            raise ConfigError(
                f"the message on {self.subject} expects no answer",
                hint="it was published; js.core.request() asks for one",
            )
        await send(self._client, self.reply, data, headers=headers, reply="")

    def __repr__(self) -> str:
        return f"<CoreMessage {self.subject!r} {len(self.data)} bytes>"


async def send(
    client: Client, subject: str, data: bytes, *, headers: HeaderValues | None, reply: str
) -> None:
    """Write one message, and wait only while the socket has no room.

    Raises:
        NatsStreamError: As for `Core.publish`.
    """
    check_subject(subject)
    if check_text(reply, "reply", error=SubjectError):
        check_subject(reply)
    block = encode_headers(headers) if headers else b""
    command = client.publish_command(subject, reply, block, check_bytes(data, "data"))
    try:
        client.check_loop()
        client.write(command)
        if client.is_congested:
            await client.drain()
    except (ConnectionClosedError, ConnectionLostError, EventLoopError) as error:
        error.name_call(f"publish to {subject}")
        raise
