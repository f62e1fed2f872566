"""Opens producers: `js.producer`."""

from __future__ import annotations

import logging
import random
import secrets
from collections.abc import Callable

from natsstream.api.control import control_of, named_control
from natsstream.api.features import (
    ATOMIC_BATCH,
    FAST_BATCH,
    MESSAGE_TTL,
    MESSAGE_TTL_LATER,
    Feature,
    has_feature,
)
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.arguments import check_bool
from natsstream.errors import (
    ConfigError,
    NatsStreamError,
    StreamClosedError,
    UnsupportedServerError,
)
from natsstream.foreign_names import answers_names
from natsstream.producer.batches import Batches
from natsstream.producer.exclusive_writer import ExclusiveWriter
from natsstream.producer.messages import MessageMaker, Placement, check_captured
from natsstream.producer.options import BATCH_MESSAGES_MAX, Mode, ProducerEncoding, ProducerOptions
from natsstream.producer.producer import IdempotentProducer
from natsstream.producer.records import token_of
from natsstream.producer.session import Writer
from natsstream.producer.settings import may_have_forgotten, missing_settings
from natsstream.producer.shared_writer import SharedWriter
from natsstream.publish.batches.atomic_rules import is_clustered
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.nearest import hint_at_nearest

_OWNER_BYTES = 9
_log = logging.getLogger("natsstream.producer")


@answers_names("js.producer")
class Producers:
    """Opens producers; `js.producer` is the only one of a context.

    Args:
        js: The JetStream context.
        api: Its connection.
    """

    def __init__(self, js: JetStreamContext, api: Api) -> None:
        self._js = js
        self._api = api

    async def __call__(
        self,
        stream: str,
        producer_id: str,
        *,
        subject: str | None = None,
        epoch: int | None = None,
        auto_claim: bool = False,
        mode: Mode = "shared",
        encoding: ProducerEncoding = "bytes",
        update_stream: bool = False,
        max_batch_bytes: int = 1 << 20,
        max_batch_messages: int = BATCH_MESSAGES_MAX,
        linger: float = 0.005,
        max_in_flight: int = 5,
        max_buffered_bytes: int = 64 << 20,
        delivery_timeout: float = 60.0,
        max_claims: int = 3,
        eof_guard: bool = True,
        on_error: Callable[[NatsStreamError], object] | None = None,
    ) -> IdempotentProducer:
        """Open a producer whose messages are stored exactly once and in order.

        One state record for each producer id stands in the stream, beside the data. A batch and the
        state after it are stored together, and only if the state before it is still the stream's:
        so no crash of client or server stores a batch twice or skips one, and an instance that was
        replaced is refused by the server.

        Args:
            stream: The stream.
            producer_id: A stable id, such as "order-service-1"; any text of 600 bytes.
            subject: The subject of messages that name none.
            epoch: The epoch of this instance. None claims the next one, which stops all earlier
                instances. With a number, batches that an earlier instance of the same epoch has
                stored count as duplicates.
            auto_claim: Claim the next epoch when another instance has claimed one, and store again
                what is not stored; at most `max_claims` times a minute.
            mode: "shared": other publishers write to the stream too; needs nats-server 2.12.
                "exclusive": nobody else writes, which is faster; works on all servers, from 2.14 on
                in batches, before with one message in flight.
            encoding: "bytes" takes bytes and text, "json" any value that JSON has.
            update_stream: Update the stream with the settings that it lacks.
            max_batch_bytes: Bytes after which a batch is cut.
            max_batch_messages: Messages after which a batch is cut, 997 at most.
            linger: Seconds that a message waits for others. While a batch is in flight the next one
                grows anyway.
            max_in_flight: Full batches that may wait before `drain` does; the stream takes them one
                after another. An exclusive producer stores so many as one run, and two runs wait.
            max_buffered_bytes: Bytes that may wait; beyond that `append` raises.
            delivery_timeout: Seconds in which a batch must be acknowledged, retries included.
            max_claims: Epochs that it may claim by itself in a minute; beyond that it fails with
                `StaleEpochError`. `restart` always claims one, and begins the count anew.
            eof_guard: Each batch expects the stream to be open. False saves retries where many
                producers share a replicated stream; then `close` does not stop the others.
            on_error: `on_error(error)`, called with each error (a `NatsStreamError`) that stops the
                producer.

        Raises:
            ConfigError: An argument is illegal, or the stream lacks a setting.
            StreamNotFoundError: The stream does not exist.
            UnsupportedServerError: The servers have no atomic batches, in shared mode.
            StreamClosedError: The stream has ended.
            TransportError: The server did not answer in time.

        Cost: four round trips, one more to claim the epoch.
        """
        options = ProducerOptions(
            producer_id=producer_id,
            subject=subject,
            epoch=epoch,
            auto_claim=auto_claim,
            mode=mode,
            encoding=encoding,
            max_batch_bytes=max_batch_bytes,
            max_batch_messages=max_batch_messages,
            linger=linger,
            max_in_flight=max_in_flight,
            max_buffered_bytes=max_buffered_bytes,
            delivery_timeout=delivery_timeout,
            max_claims=max_claims,
            eof_guard=eof_guard,
            on_error=on_error,
        )
        check_bool(update_stream, "update_stream")
        async with hint_at_nearest(stream, self._js.streams.names):
            info = await self._prepared(stream, options, update_stream=update_stream)
        return await self._open(info, options)

    async def _prepared(
        self, stream: str, options: ProducerOptions, *, update_stream: bool
    ) -> StreamInfo:
        """Return the stream, with all that a producer needs."""
        info = await stream_info(self._api, stream)
        if info.config.sealed:
            raise StreamClosedError(
                f"stream {stream} is sealed", hint="nothing can be appended any more"
            )
        if options.mode == "shared":
            try:
                await self._api.require(ATOMIC_BATCH)
            except UnsupportedServerError as error:
                error.hint = "mode='exclusive' works here, for a stream with one writer"
                raise
        lacks = missing_settings(
            info.config,
            mode=options.mode,
            created_ns=info.created_ns,
            has_fast=await self._has(FAST_BATCH),
            has_ttl=await self._has(MESSAGE_TTL),
            takes_ttl=await self._takes_ttl(info),
        )
        if lacks and not update_stream:
            shown: dict[str, object] = {**lacks}
            if metadata := lacks.get("metadata"):
                # The server's own entries come by themselves.
                own = {key: text for key, text in metadata.items() if not key.startswith("_")}
                shown["metadata"] = own
            fields = ", ".join(f"{name}={value!r}" for name, value in shown.items())
            raise ConfigError(
                f"stream {stream} lacks what a producer needs: {', '.join(lacks)}",
                hint="js.producer(..., update_stream=True), in Spark updateStream=true; or "
                f"js.streams.update({stream!r}, {fields})",
            )
        if lacks:
            if options.subject is not None:  # A call that is refused changes nothing.
                check_captured(info.config, options.subject, named_control(info.config))
            info = (await self._js.streams.update(stream, **lacks)).cached
        return info

    async def _has(self, feature: Feature) -> bool:
        version = self._api.client.server_info.get("version")
        return has_feature(feature, version=version, level=await self._api.level())

    async def _takes_ttl(self, info: StreamInfo) -> bool:
        """Return True if an update may turn on the stream's message TTLs."""
        if not is_clustered(info) or (info.config.replicas or 1) > 1:
            return True
        return await self._has(MESSAGE_TTL_LATER)

    async def _open(self, info: StreamInfo, options: ProducerOptions) -> IdempotentProducer:
        control = control_of(info.config)
        if control is None:
            raise ConfigError(
                f"stream {info.name} has no control subjects",
                hint="js.producer(..., update_stream=True)",
            )
        token = token_of(options.producer_id)
        placement = Placement(info.config, control, control.state(token), control.mark(token))
        largest = self._api.client.max_payload_bytes
        maker = MessageMaker(placement, options.subject, options.encoding, largest)
        writer: Writer
        if options.mode == "shared":
            writer = SharedWriter(self._api, info, placement, has_guard=options.eof_guard)
        else:
            has_fast = bool(info.config.allow_batched) and await self._has(FAST_BATCH)
            in_flight = options.max_batch_messages * options.max_in_flight if has_fast else None
            writer = ExclusiveWriter(self._api, info, placement, token, in_flight=in_flight)
        rng = random.Random()  # noqa: S311 - It spreads waits, no secrets.
        owner = secrets.token_urlsafe(_OWNER_BYTES)
        rules = Batches(options, owner, rng, info.name, replicas=info.config.replicas)
        before_close = self._api.client.endings.before_close
        producer = await IdempotentProducer(rules, writer, maker, options, before_close).open()
        if producer.recovered is None and may_have_forgotten(info):
            _log.warning(
                "producer %s finds no state in stream %s, whose limits remove the oldest messages: "
                "if it wrote here before, messages that it appends again are stored twice",
                options.producer_id,
                info.name,
            )
        return producer

    def __repr__(self) -> str:
        return f"<Producers {self._js.url}>"
