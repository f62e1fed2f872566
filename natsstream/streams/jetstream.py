"""The JetStream context of streams: what every view receives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from natsstream._wire.client import Client
from natsstream._wire.headers import HeaderValues
from natsstream._wire.subjects import EVENTS
from natsstream.advisories import AdvisoryKind
from natsstream.api.account import AccountInfo, account_info
from natsstream.api.requests import Api
from natsstream.consume.dead_letters.manager import DeadLetters
from natsstream.core.advisories.reader import Advisories
from natsstream.core.advisories.wanted import MAX_PENDING as ADVISORIES_PENDING_MAX
from natsstream.core.advisories.wanted import AdvisoryFilter
from natsstream.core.connection_events import ConnectionEvents
from natsstream.core.core import Core
from natsstream.publish.outgoing import (
    Expect,
    Payload,
    Rollup,
    prepare,
)
from natsstream.publish.pub_ack import PubAck
from natsstream.publish.publish import RETRY_ATTEMPTS, RETRY_WAIT_S, publish
from natsstream.publish.publisher import Publisher
from natsstream.publish.publisher_options import (
    ACK_TIMEOUT_S,
    MAX_PENDING,
    MAX_PENDING_BYTES,
    PublisherOptions,
)
from natsstream.publish.schedule import Schedule, Ttl
from natsstream.streams.counters.counters import Counters
from natsstream.streams.manager import StreamManager


class JetStreamContext:
    """Streams over one connection; users hold it as `JetStream`, which adds the views.

    Attributes:
        streams: Makes, finds and deletes streams.
        core: Plain NATS over the same connection: publish, subscribe, request.
        dead_letters: Messages that nobody could handle: listed, sent again, dropped.
        counters: Counts on streams with `allow_msg_counter`.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._api = Api(client)
        self.streams: StreamManager = StreamManager(self._api)
        self.core: Core = Core(client)
        self.dead_letters: DeadLetters = DeadLetters(self._api)
        self.counters: Counters = Counters(self._api)

    @property
    def url(self) -> str:
        """The connected server, without secrets."""
        return self._client.url

    @property
    def api_prefix(self) -> str:
        """What stands before requests of JetStream's API: `$JS.API`, a domain's, or an import's.

        Views write under it where it is not `$JS.API` (ADR-19).
        """
        return self._api.prefix

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
        rollup: Rollup | None = None,
        schedule: Schedule | None = None,
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
            rollup: Which earlier messages this one replaces: "subject" for those of its subject,
                "all" for those of the stream; the stream needs `allow_rollup_hdrs`.
            schedule: When the server is to publish the message, and where to; this message is then
                the schedule. The stream needs `allow_msg_schedules`, the server 2.12.
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
            MessageRuleError: The stream does not allow a life time, rollup, schedule or counter.
            RequestTimeoutError: No ack in time; the message may be stored or not.
            ProtocolError: Something that is no stream has answered.

        Cost: one round trip, plus the stream's replication; two more where a last message id is
        expected, for the stream's replicas are looked up first.
        """
        return await publish(
            self._api,
            prepare(subject, data, headers, msg_id, expect, ttl, rollup, schedule),
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
                then waited for. The stream is looked at before the first message, for as long.
            keep_order: Nothing is stored before what was sent earlier and has not failed. It is
                fast where the stream's server is in no cluster, though other writers cost it
                speed; in a cluster one message is sent at a time.
            stream: The stream that captures the subjects; None looks it up by the first subject.
                With `retry_for` a message that another stream captures is refused.

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
        return await account_info(self._api)

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

    def advisories(
        self,
        *,
        kinds: Sequence[AdvisoryKind] = (),
        stream: str | None = None,
        consumer: str | None = None,
        domain: str | None = None,
        prefix: str = EVENTS,
        max_pending: int = ADVISORIES_PENDING_MAX,
    ) -> Advisories:
        """Return what JetStream tells of from now on; `async with` listens, `async for` reads.

        The events are in `natsstream.advisories`. They are plain NATS: what is told while the
        connection is broken is lost, and `AdvisoriesInterrupted` stands in its place. To lose
        nothing, capture the subjects in a stream.

        Args:
            kinds: Which ones; none is all but `api_audit`, of which there is one for each call.
            stream: Only about this stream.
            consumer: Only about consumers of this name.
            domain: Only from this JetStream domain; None is the connection's, or all where it has
                none.
            prefix: What stands before `.ADVISORY`, where the events are imported from another
                account.
            max_pending: Events that may wait to be read; more are dropped, counted and raised.

        Raises:
            ConfigError: An argument has no legal value, or no such event can come.

        Cost: a subscription for each kind, or for each family of kinds; servers make events only
        where somebody listens.
        Source: nats-server's jetstream_events.go; nats CLI `nats events --js-advisory`.
        """
        wanted = AdvisoryFilter(
            kinds=kinds,
            stream=stream,
            consumer=consumer,
            domain=self._client.options.domain if domain is None else domain,
            prefix=prefix,
            max_pending=max_pending,
        )
        return Advisories(self._api, wanted)

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
