"""The JetStream context: what everything above streams receives, and what users hold as `js`."""

from __future__ import annotations

from typing import Any

from natsstream._wire import api as subjects
from natsstream._wire.client import Client
from natsstream._wire.headers import HeaderValues
from natsstream.streams.account import AccountInfo
from natsstream.streams.api import Api
from natsstream.streams.connection_events import ConnectionEvents
from natsstream.streams.core.core import Core
from natsstream.streams.manager import StreamManager
from natsstream.streams.publishing.outgoing import (
    Expect,
    Payload,
    Ttl,
    message_headers,
    needed_features,
)
from natsstream.streams.publishing.pub_ack import PubAck
from natsstream.streams.publishing.publish import RETRY_ATTEMPTS, RETRY_WAIT_S, publish
from natsstream.streams.publishing.publisher import Publisher
from natsstream.streams.publishing.publisher_options import (
    ACK_TIMEOUT_S,
    MAX_PENDING,
    MAX_PENDING_BYTES,
    PublisherOptions,
)


class JetStream:
    """JetStream over one connection; made by `natsstream.connect`.

    Attributes:
        streams: Makes, finds and deletes streams.
        core: Plain NATS over the same connection: publish, subscribe, request.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._api = Api(client)
        self.streams: StreamManager = StreamManager(self._api)
        self.core: Core = Core(client)

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
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        timeout: float | None = None,
        retry_attempts: int = RETRY_ATTEMPTS,
        retry_wait: float = RETRY_WAIT_S,
    ) -> PubAck:
        """Publish one message to the stream that captures the subject, and wait for its ack.

        Args:
            subject: Where to; no wildcards.
            data: The payload.
            headers: Header values by name; a list sends the header more than once.
            msg_id: Identity for the stream's duplicate window.
            expect: What must hold in the stream.
            ttl: Whole seconds after which the stream forgets the message, or "never"; the stream
                needs `allow_msg_ttl`, the server 2.11.
            timeout: Seconds to wait for the ack, retries included; None is `request_timeout`.
            retry_attempts: How often it is sent again where nobody listens, as while a stream has
                no leader (ADR-22).
            retry_wait: Seconds between two attempts.

        Raises:
            SubjectError: The subject can not be published to; nothing was sent.
            HeaderError: A header would break the wire; nothing was sent.
            ConfigError: An argument has no legal value; nothing was sent.
            PayloadTooLargeError: The message exceeds the server's limit; nothing was sent.
            UnsupportedServerError: The server is too old for what was asked; nothing was sent.
            NoRespondersError: No stream captures the subject.
            PermissionDeniedError: This user may not publish to the subject.
            WrongLastSequenceError: An expectation did not hold.
            RequestTimeoutError: No ack in time; the message may be stored or not.
            ProtocolError: Something that is no stream has answered.

        Cost: one round trip, plus the stream's replication.
        """
        block = message_headers(headers, msg_id, expect, ttl)
        await self._api.require(*needed_features(expect, ttl))
        return await publish(
            self._api,
            subject,
            data,
            headers=block,
            timeout=timeout,
            retry_attempts=retry_attempts,
            retry_wait=retry_wait,
        )

    def publisher(
        self,
        *,
        max_pending: int = MAX_PENDING,
        max_pending_bytes: int = MAX_PENDING_BYTES,
        ack_timeout: float = ACK_TIMEOUT_S,
        retry_for: float | None = None,
        keep_order: bool = False,
        stream: str | None = None,
    ) -> Publisher:
        """Return a pipelined publisher, to be used with `async with`.

        Without `retry_for` each message is sent once, in the order of `send`; one that fails does
        not hold back those behind it. With it, a message that has no ack after a break of the
        connection, a missing ack or a stream without a leader is sent again, and message ids make
        that safe: each message is stored once; the stream must remember ids for longer than
        `retry_for`. With `keep_order` besides, none is stored before an earlier one.

        Args:
            max_pending: Acks that may be under way; `send` waits beyond that.
            max_pending_bytes: Bytes of the messages whose acks are under way; `send` waits beyond
                that. A larger message goes alone.
            ack_timeout: Seconds after which a message without an ack counts as failed, or is sent
                again.
            retry_for: Seconds from `send` in which a message may be sent again; its last ack is
                then waited for. The stream is looked at before the first message.
            keep_order: Nothing is stored before what was sent earlier and has not failed. It is
                fast where the stream has one replica, though other writers cost it speed; a
                replicated stream takes one message at a time.
            stream: The stream that captures the subjects; None looks it up by the first subject.

        Raises:
            ConfigError: An option has no legal value.
        """
        options = PublisherOptions(
            max_pending=max_pending,
            max_pending_bytes=max_pending_bytes,
            ack_timeout=ack_timeout,
            retry_for=retry_for,
            keep_order=keep_order,
            stream=stream,
        )
        return Publisher(self._api, options)

    async def account(self) -> AccountInfo:
        """Return what the account may use of JetStream, what it uses, and the API level.

        Raises:
            JetStreamNotEnabledError: The server or the account has no JetStream.
            TransportError: The server did not answer in time.

        Cost: one round trip.
        """
        return AccountInfo.from_json(await self._api.read(subjects.INFO, None, what="account"))

    @property
    def raw(self) -> Any:
        """nats-py's client under this connection, for what natsstream does not offer.

        Close the connection by its context, not by this client.
        """
        return self._client.raw

    @property
    def has_fast_lane(self) -> bool:
        """False only where an attached connection is a WebSocket: all works, but slower."""
        return self._client.has_lane

    def events(self) -> ConnectionEvents:
        """Return what happens to the connection from now on, to be read with `async for`.

        The events are in `natsstream.events`: connected, disconnected, a silent server, lame duck,
        denied permissions, new servers, closed.
        """
        return ConnectionEvents(self._client)

    async def drain(self) -> None:
        """End the subscriptions of `js.core` without a loss, then close the connection.

        What the server had sent before it knew of the end is kept: readers get it also after the
        connection is closed. Nothing waits for them.

        Raises:
            TransportError: The server did not confirm in time; everything is closed still.

        Cost: one round trip.
        """
        try:
            await self.core.drain()
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the connection; closing twice is fine."""
        await self._client.close()

    def __repr__(self) -> str:
        return f"<JetStream {self.url}>"
