"""The JetStream context: what everything above streams receives, and what users hold as `js`."""

from __future__ import annotations

from natsstream._wire.client import Client
from natsstream.streams.api import Api
from natsstream.streams.manager import StreamManager
from natsstream.streams.publish import (
    MAX_PENDING,
    Expect,
    HeaderValues,
    PubAck,
    Publisher,
    message_headers,
    publish,
)


class JetStream:
    """JetStream over one connection; made by `natsstream.connect`.

    Attributes:
        streams: Makes, finds and deletes streams.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._api = Api(client)
        self.streams: StreamManager = StreamManager(self._api)

    @property
    def url(self) -> str:
        """The connected server, without secrets."""
        return self._client.url

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._client.is_connected

    async def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        timeout: float | None = None,
    ) -> PubAck:
        """Publish one message to the stream that captures the subject, and wait for its ack.

        Args:
            subject: Where to; no wildcards.
            data: The payload.
            headers: Header values by name; a list sends the header more than once.
            msg_id: Identity for the stream's duplicate window.
            expect: What must hold in the stream.
            timeout: Seconds to wait for the ack; None is `request_timeout`.

        Raises:
            SubjectError: The subject can not be published to; nothing was sent.
            HeaderError: A header would break the wire; nothing was sent.
            PayloadTooLargeError: The message exceeds the server's limit; nothing was sent.
            NoRespondersError: No stream captures the subject.
            WrongLastSequenceError: An expectation did not hold.
            RequestTimeoutError: No ack in time; the message may be stored or not.

        Cost: one round trip, plus the stream's replication.
        """
        block = message_headers(headers, msg_id, expect)
        return await publish(self._api, subject, data, headers=block, timeout=timeout)

    def publisher(self, *, max_pending: int = MAX_PENDING, ack_timeout: float = 5.0) -> Publisher:
        """Return a pipelined publisher, to be used with `async with`.

        Args:
            max_pending: Acks that may be under way; `send` waits beyond that.
            ack_timeout: Seconds after which a message without an ack counts as failed.
        """
        return Publisher(self._api, max_pending=max_pending, ack_timeout=ack_timeout)

    async def close(self) -> None:
        """Close the connection; closing twice is fine."""
        await self._client.close()

    def __repr__(self) -> str:
        return f"<JetStream {self.url}>"
