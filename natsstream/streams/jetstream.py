"""The JetStream context of streams, which every view builds on."""

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
from natsstream.foreign_names import answers_names
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


@answers_names("js")
class JetStreamContext:
    """Streams over one connection; users hold it as `JetStream`, which adds the views.

    Attributes:
        streams: Creates, finds and deletes streams.
        core: Plain NATS over the same connection: publish, subscribe, request.
        dead_letters: Lists, resends and drops messages that no handler could process.
        counters: Counters on streams with `allow_msg_counter`.
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
        """The subject prefix of JetStream API requests: `$JS.API`, a domain's, or an import's.

        Views publish under it where it is not `$JS.API` (ADR-19).
        """
        return self._api.prefix

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._client.is_connected

    @property
    def bounded_reconnect_s(self) -> float:
        """Seconds that a read with an end, or a call, waits for a reconnect."""
        return self._client.options.bounded_reconnect_s

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
            subject: The subject, without wildcards.
            data: The payload.
            headers: Header values by name; a list sends the header more than once.
            msg_id: Message id for the stream's duplicate window, in place of one in the headers.
            expect: Conditions on the stream; the server refuses the message if one fails.
            ttl: Whole seconds after which the stream deletes the message, or "never"; the stream
                needs `allow_msg_ttl`, the server 2.11. The server may raise it to the stream's
                `subject_delete_marker_ttl`.
            rollup: The earlier messages that this one replaces: "subject" for those of its
                subject, "all" for those of the stream; the stream needs `allow_rollup_hdrs`.
            schedule: When the server publishes the message, and to which subject; this message is
                the schedule. The stream needs `allow_msg_schedules`, the server 2.12.
            timeout: Seconds to wait for the ack, retries included; None is `request_timeout`.
            retry_attempts: Retries after "no responders", as while a stream has no leader (ADR-22).
            retry_wait: Seconds between two attempts.

        Raises:
            SubjectError: The subject cannot be published to; nothing was sent.
            HeaderError: A header cannot be encoded; nothing was sent.
            ConfigError: An argument has no legal value; nothing was sent.
            PayloadTooLargeError: The message exceeds the server's limit; nothing was sent.
            UnsupportedServerError: The server is too old for an argument; nothing was sent.
            NoRespondersError: No stream captures the subject.
            PermissionDeniedError: This user may not publish to the subject.
            WrongLastSequenceError: An expectation did not hold.
            MessageRuleError: The stream does not allow a TTL, rollup, schedule or counter.
            RequestTimeoutError: No ack in time; the message may be stored.
            ConnectionLostError: The connection broke, and the message may be stored; or there was
                none in time, and it says that it was not sent.
            ProtocolError: The answer came from something other than a stream.

        Cost: one round trip, plus the stream's replication. An expected last message id costs two
        more, to look up the stream's replicas.
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
        stream: str | None = None,
    ) -> Publisher:
        """Return a pipelined publisher, to be used with `async with`.

        Without `retry_for` each message is sent once, in the order of `send`; a failed message does
        not delay later ones. With `retry_for`, a message is sent again when its ack is missing,
        the connection broke, or the stream has no leader. Message ids make the retries safe: each
        message is stored once. The stream's duplicate window must be longer than `retry_for`.

        A message that is sent again may be stored after later ones. `max_pending=1` keeps the order
        of `send` at the speed of `publish`; `js.producer` keeps it at many times that speed.

        Args:
            max_pending: Messages in flight, without an ack yet; beyond that `send` waits. With 1 no
                message is stored before an earlier one that has not failed.
            max_pending_bytes: Bytes of the messages in flight; beyond that `send` waits. A larger
                message is sent alone.
            ack_timeout: Seconds after which a message without an ack fails, or is sent again.
            retry_for: Seconds from `send` in which a message is sent again; without an ack it fails
                then, or after `ack_timeout` if that is longer. The stream's configuration is read
                before the first message, with retries for as long.
                A message that has no responders fails at once if no stream captures its subject.
            stream: The stream that the messages are for: an ack of another one fails its message
                with `WrongStreamError`. With `retry_for`, messages that another stream captures
                are not sent, and None looks the stream up by the first subject.

        Raises:
            ConfigError: An option has no legal value.
        """
        options = PublisherOptions(
            max_pending=max_pending,
            max_pending_bytes=max_pending_bytes,
            ack_timeout=ack_timeout,
            retry_for=retry_for,
            stream=stream,
        )
        return Publisher(self._api, options)

    async def account(self) -> AccountInfo:
        """Return the account's JetStream limits and usage, and the API level.

        Raises:
            JetStreamNotEnabledError: The server or the account has no JetStream.
            TransportError: The server did not answer in time.

        Cost: one round trip.
        """
        return await account_info(self._api)

    @property
    def raw(self) -> Any:
        """nats-py's client under this connection, for features that natsstream lacks.

        Close the connection through its context, not through this client.
        """
        return self._client.raw

    @property
    def has_fast_lane(self) -> bool:
        """False only for an attached WebSocket connection: everything works, but slower."""
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
        """Return JetStream's advisories from now on; `async with` subscribes, `async for` reads.

        The events are in `natsstream.advisories`. They are plain NATS messages: those published
        while the connection is broken are lost, and one `AdvisoriesInterrupted` replaces them. To
        lose none, capture the subjects in a stream.

        Args:
            kinds: Kinds to receive; none means all but `api_audit`, which every API call causes.
            stream: Only about this stream.
            consumer: Only about consumers of this name.
            domain: Only from this JetStream domain; None is the connection's, or all without one.
            prefix: Subject prefix before `.ADVISORY`, for events imported from another account.
            max_pending: Events that may wait for the reader; more are dropped, counted and raised.

        Raises:
            ConfigError: An argument has no legal value, or no event can match.

        Cost: a subscription for each kind, or for each family of kinds. Servers publish advisories
        only if there is interest.
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
        """Return the connection's events from now on; read them with `async for`.

        The events are in `natsstream.events`: connected, disconnected, a silent server, lame duck,
        denied permissions, new servers, closed.
        """
        return ConnectionEvents(self._client)

    async def drain(self) -> None:
        """Drain the subscriptions of `js.core`, then close the connection.

        Messages that the server sent before the unsubscribe are kept: readers get them even after
        the connection is closed. The call does not wait for the readers.

        Raises:
            TransportError: The server did not confirm in time; the connection is closed anyway.

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
