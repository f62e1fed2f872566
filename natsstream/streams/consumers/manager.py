"""Creates, finds and changes the consumers of one stream: `stream.consumers`."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Literal, Unpack, cast

from natsstream.api.config_fields import ConsumerFields
from natsstream.api.consumer_changes import (
    create_consumer,
    ensure_consumer,
    plan_consumer,
    update_consumer,
)
from natsstream.api.consumer_config import ConsumerConfig
from natsstream.api.consumer_info import ConsumerInfo, ConsumerPause
from natsstream.api.consumer_requests import (
    consumer_info,
    consumer_infos,
    consumer_names,
    delete_consumer,
    pause_consumer,
    reset_consumer,
    unpin_consumer,
)
from natsstream.api.diff import ConfigChange
from natsstream.api.listing import Listing
from natsstream.api.requests import Api
from natsstream.api.settings.field_kinds import check_duration, check_time
from natsstream.api.settings.keywords import shows_fields
from natsstream.api.stream_info import StreamInfo
from natsstream.api.unmatched import warn_schedules, warn_unmatched
from natsstream.constructors import given_config
from natsstream.errors import ConfigError
from natsstream.foreign_names import answers_names
from natsstream.streams.consumers.consumer import Consumer
from natsstream.streams.nearest import hint_at_nearest_consumer
from natsstream.units import duration_ns, time_to_ns


@answers_names("stream.consumers")
class ConsumerManager:
    """The consumers of a stream.

    A configuration is a `ConsumerConfig`, or a name with the fields as keywords.

    Every call that asks the server raises `TransportError` when no answer comes in time.

    Attributes:
        stream: Name of the stream.
    """

    def __init__(self, api: Api, cached: StreamInfo) -> None:
        self._api = api
        self._cached = cached
        self.stream: str = cached.name

    @shows_fields(ConsumerFields)
    async def create(
        self, config: ConsumerConfig | str | None = None, **fields: Unpack[ConsumerFields]
    ) -> Consumer:
        """Create a consumer; an existing one is not changed.

        With a name the consumer is durable: it stays until it is deleted. Without a name, or with
        `durable=False`, the server deletes it after `inactive_threshold` without a reader.
        Messages must be acked unless `ack_policy` says otherwise.

        Args:
            config: A configuration, a name, or None for a consumer without a name.
            fields: Fields of `ConsumerConfig`.

        Returns:
            The consumer; also an existing one with exactly this configuration, whose `change` says
            "unchanged". Of several who create it at about the same time each may be told "created".

        Raises:
            ConfigError: A field is illegal, or conflicts with another; nothing was sent.
            ConsumerExistsError: A consumer of this name has another configuration.
            StreamNotFoundError: The stream does not exist.
            InvalidConfigError: The server refuses a field, or stored another value for it.
            UnsupportedServerError: The server lacks a field.
            TransportError: No answer; the consumer may have been created.

        Cost: one round trip; in a cluster also an election.
        Source: ADR-10; nats.go jetstream/consumer.go.
        """
        return await self._made(
            await create_consumer(self._api, self.stream, _config(config, fields))
        )

    @shows_fields(ConsumerFields)
    async def update(
        self, config: ConsumerConfig | str | None = None, **fields: Unpack[ConsumerFields]
    ) -> Consumer:
        """Change the fields that are given and leave all others as the server has them.

        The consumer's `change` lists the changed fields.

        Raises:
            ConfigError: A field is illegal, or conflicts with another; nothing was sent.
            ConsumerNotFoundError: The consumer does not exist.
            InvalidConfigError: The server refuses a change, or stored another value.
            UnsupportedServerError: The server lacks a field.
            TransportError: No answer; the consumer may have been changed.

        Cost: two round trips, or one if nothing differs; three for the first change of a consumer
        after a restart of its server.
        """
        wanted = _config(config, fields)
        async with self._hint(wanted.name or ""):
            return await self._made(await update_consumer(self._api, self.stream, wanted))

    @shows_fields(ConsumerFields)
    async def ensure(
        self, config: ConsumerConfig | str | None = None, **fields: Unpack[ConsumerFields]
    ) -> Consumer:
        """Return the consumer with at least this configuration: create, update or leave it.

        The consumer's `change` says which, and lists the fields; `diff` shows them in advance. A
        different `pause_until` is sent as a pause, since servers ignore it in an update.

        Raises:
            NatsStreamError: As for `create` and `update`.

        Cost: one round trip if nothing differs, else as for `update`.
        """
        return await self._made(
            await ensure_consumer(self._api, self.stream, _config(config, fields))
        )

    @shows_fields(ConsumerFields)
    async def diff(
        self, config: ConsumerConfig | str | None = None, **fields: Unpack[ConsumerFields]
    ) -> ConfigChange:
        """Return the changes that `ensure` would make, without making them.

        Returns:
            Each field that differs, with the server's value, the wanted value and, if known, why
            servers refuse the change. `print` shows a table.

        Raises:
            StreamNotFoundError: The stream does not exist.

        Cost: one round trip.
        """
        return await plan_consumer(self._api, self.stream, _config(config, fields))

    async def get(self, name: str) -> Consumer:
        """Return a consumer that exists.

        Raises:
            ConsumerNameError: The name is illegal.
            ConsumerNotFoundError: The consumer does not exist.
        """
        async with self._hint(name):
            return Consumer(self._api, await consumer_info(self._api, self.stream, name))

    def names(self) -> AsyncGenerator[str]:
        """Yield the names of all consumers.

        Raises:
            StreamNotFoundError: The stream does not exist.

        Cost: one round trip for each 1,024 names.
        """
        return consumer_names(self._api, self.stream)

    def list(self, *, on_missing: Literal["raise", "report"] = "raise") -> Listing[ConsumerInfo]:
        """Return the infos of all consumers; read them with `async for`.

        Args:
            on_missing: For consumers without an info: they have no leader, or are too new for the
                servers. "raise" raises after all others are read; "report" puts them into the
                result's `missing` and `offline`.

        Raises:
            ConfigError: `on_missing` has no legal value; nothing was sent.
            UnavailableError: Consumers are missing; from the loop.
            StreamNotFoundError: The stream does not exist; from the loop.
            TransportError: The server did not answer in time; from the loop.

        Cost: one round trip for each 256 consumers; four seconds if some are missing.
        """
        what = f"consumers of stream {self.stream}"
        return Listing(what, on_missing, lambda gaps: consumer_infos(self._api, gaps, self.stream))

    async def lags(self) -> dict[str, int]:
        """Return how many messages each consumer has not handled, the largest number first.

        As `ConsumerInfo.lag`. Consumers with `ack_policy="none"` have handled what was delivered.

        Raises:
            UnavailableError: The infos of consumers are missing, as those without a leader.
            StreamNotFoundError: The stream does not exist.
            TransportError: The server did not answer in time.

        Cost: as for `list`.
        """
        lags = {info.name: info.lag async for info in self.list()}
        return dict(sorted(lags.items(), key=lambda each: each[1], reverse=True))

    async def delete(self, name: str) -> None:
        """Delete a consumer; messages without an ack stay in the stream.

        Raises:
            ConsumerNotFoundError: The consumer does not exist.
            TransportError: No answer, and the consumer still exists; it may yet be deleted.

        Cost: one round trip. During an election a cluster may delete without an answer; this is
        noticed after a second.
        """
        async with self._hint(name):
            await delete_consumer(self._api, self.stream, name)

    async def pause(
        self,
        name: str,
        *,
        until: datetime | int | None = None,
        duration: float | timedelta | None = None,
    ) -> ConsumerPause:
        """Pause delivery; messages already delivered can still be acked.

        Args:
            name: The consumer.
            until: When delivery resumes: a datetime with a time zone, or Unix nanoseconds.
            duration: Or the length of the pause, in seconds or a timedelta, by the local clock.

        Raises:
            ConfigError: Neither or both were given, or the time is past; nothing was sent.
            ConsumerNotFoundError: The consumer does not exist.
            UnsupportedServerError: The server is older than 2.11; nothing was sent.
            TransportError: No answer; the consumer may be paused.

        Cost: one round trip.
        """
        if (until is None) == (duration is None):
            given = "neither" if until is None else "both"
            raise ConfigError(
                f"pause takes until or duration, and has {given}", hint="duration=60 is a minute"
            )
        if until is not None:
            until_ns = time_to_ns(check_time(until, "until"))
        else:
            until_ns = time.time_ns() + duration_ns(check_duration(duration, "duration"))
        if until_ns <= time.time_ns():
            raise ConfigError("the pause would be over already", hint="resume() ends a pause")
        async with self._hint(name):
            return await pause_consumer(self._api, self.stream, name, until_ns)

    async def resume(self, name: str) -> ConsumerPause:
        """Resume a paused consumer; one that is not paused stays as it is.

        Raises:
            ConsumerNotFoundError: The consumer does not exist.
            UnsupportedServerError: The server is older than 2.11; nothing was sent.
            TransportError: No answer; the consumer may have resumed.
        """
        async with self._hint(name):
            return await pause_consumer(self._api, self.stream, name, None)

    async def reset(self, name: str, *, sequence: int | None = None) -> int:
        """Drop the state of delivered messages, and deliver again from a stream sequence.

        Args:
            name: The consumer.
            sequence: The first sequence to deliver; None is the one after the ack floor. A consumer
                with a start delivers nothing before it.

        Returns:
            The sequence at which delivery resumes.

        Raises:
            ConsumerNotFoundError: The consumer does not exist.
            ServerError: The server refused, as for a sequence before the consumer's start.
            UnsupportedServerError: The server is older than 2.14; nothing was sent.
            TransportError: No answer; the consumer may have been reset.

        Cost: two round trips. The server ignores later acks of messages delivered before.
        Source: ADR-60.
        """
        async with self._hint(name):
            return await reset_consumer(self._api, self.stream, name, sequence=sequence)

    async def unpin(self, name: str, *, group: str) -> None:
        """Unpin the client of a priority group; the next client to pull is pinned.

        Raises:
            NotFoundError: The consumer has no such group.
            ConsumerNotFoundError: The consumer does not exist.
            UnsupportedServerError: The server is older than 2.11; nothing was sent.
            TransportError: No answer; the client may have been unpinned.

        Source: ADR-42.
        """
        async with self._hint(name):
            await unpin_consumer(self._api, self.stream, name, group)

    async def _made(self, made: tuple[ConsumerInfo, ConfigChange]) -> Consumer:
        consumer = Consumer(self._api, *made)
        filters = consumer.cached.config.filters or ()
        what = f"consumer {consumer.name} of stream {self.stream}"
        if consumer.change:
            warn_schedules(self._cached.config, filters, what)
        await warn_unmatched(self._api, self._cached, filters, what)
        return consumer

    def _hint(self, name: str) -> AbstractAsyncContextManager[None]:
        """Let an error hint at the nearest name."""
        return hint_at_nearest_consumer(name, self.names)

    def __repr__(self) -> str:
        return f"<ConsumerManager {self.stream}>"


def _config(config: ConsumerConfig | str | None, fields: Mapping[str, object]) -> ConsumerConfig:
    others = {name: value for name, value in fields.items() if config is not None or name != "name"}
    # A config that is no text is refused by the class.
    named = cast("str | None", fields.get("name")) if config is None else config
    return given_config(ConsumerConfig, named, others, "consumer")
