"""Makes, finds and changes the consumers of one stream: `stream.consumers`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any, Literal

from natsstream.api import consumer_rules as rules
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
    consumer_names,
    delete_consumer,
    pause_consumer,
    reset_consumer,
    unpin_consumer,
)
from natsstream.api.diff import ConfigChange
from natsstream.api.requests import Api
from natsstream.arguments import check_names
from natsstream.errors import ConfigError
from natsstream.streams.consumers.consumer import Consumer
from natsstream.streams.consumers.listing import ConsumerListing


class ConsumerManager:
    """The consumers of a stream.

    A configuration is given whole, as a `ConsumerConfig`, or as a name and the fields as keywords.

    Attributes:
        stream: Name of the stream.
    """

    def __init__(self, api: Api, stream: str) -> None:
        self._api = api
        self.stream: str = stream

    async def create(self, config: ConsumerConfig | str | None = None, **fields: Any) -> Consumer:
        """Create a consumer and leave one that exists alone.

        With a name it is durable: it stays until it is deleted. Without a name, or with
        `durable=False`, the server deletes it when nobody has read for `inactive_threshold`.
        Messages have to be acknowledged unless `ack_policy` says otherwise.

        Args:
            config: A configuration, or a name, or nothing for a consumer without one.
            fields: Fields of `ConsumerConfig`.

        Returns:
            The consumer; also one that exists and has exactly this configuration: the server does
            not tell the two apart, and `change` says "created" for both.

        Raises:
            ConfigError: A field has no legal value, or does not go with another; nothing was sent.
            ConsumerExistsError: A consumer of this name has another configuration.
            StreamNotFoundError: The stream does not exist.
            InvalidConfigError: The server refuses a field, or took it as something else.
            UnsupportedServerError: The server lacks a field.
            TransportError: There was no answer; whether it was made is not known.

        Cost: one round trip, on a cluster with an election.
        Source: ADR-10; nats.go jetstream/consumer.go.
        """
        return self._handle(await create_consumer(self._api, self.stream, _config(config, fields)))

    async def update(self, config: ConsumerConfig | str | None = None, **fields: Any) -> Consumer:
        """Change the fields that are given and leave all others as the server has them.

        The consumer's `change` says what differed.

        Raises:
            ConfigError: A field has no legal value, or does not go with another; nothing was sent.
            ConsumerNotFoundError: It does not exist.
            InvalidConfigError: The server refuses a change, or took it as something else.
            UnsupportedServerError: The server lacks a field.
            TransportError: There was no answer; whether it was changed is not known.

        Cost: two round trips, or one where nothing differs.
        """
        return self._handle(await update_consumer(self._api, self.stream, _config(config, fields)))

    async def ensure(self, config: ConsumerConfig | str | None = None, **fields: Any) -> Consumer:
        """Return the consumer with at least this configuration: create, update or leave it.

        The consumer's `change` says which, and of what field; `diff` says it before. A
        `pause_until` that differs is sent as a pause, since an update would take no notice of it.

        Raises:
            NatsStreamError: As for `create` and `update`.

        Cost: one round trip where nothing differs, else two.
        """
        return self._handle(await ensure_consumer(self._api, self.stream, _config(config, fields)))

    async def diff(self, config: ConsumerConfig | str | None = None, **fields: Any) -> ConfigChange:
        """Return what `ensure` would do, and do nothing.

        Returns:
            Each field that differs, with the server's value, the wanted one, and why servers would
            refuse the change, where they are known to; `print` shows it as a table.

        Raises:
            StreamNotFoundError: The stream does not exist.
            TransportError: The server did not answer in time.

        Cost: one round trip.
        """
        return await plan_consumer(self._api, self.stream, _config(config, fields))

    async def get(self, name: str) -> Consumer:
        """Return a consumer that exists.

        Raises:
            ConsumerNameError: No server would take the name.
            ConsumerNotFoundError: It does not exist.
        """
        return Consumer(self._api, await consumer_info(self._api, self.stream, name))

    async def names(self) -> AsyncIterator[str]:
        """Yield the names of all consumers.

        Raises:
            StreamNotFoundError: The stream does not exist.
            TransportError: The server did not answer in time.

        Cost: one round trip for each 1,024 names.
        """
        async for name in consumer_names(self._api, self.stream):
            yield name

    def list(self, *, on_missing: Literal["raise", "report"] = "raise") -> ConsumerListing:
        """Return the infos of all consumers; read them with `async for`.

        Args:
            on_missing: Servers name consumers that they can not describe now, having no leader or
                being too new for the servers. "raise" ends the loop with an error when all others
                are read; "report" leaves them in the result's `missing` and `offline`.

        Raises:
            ConfigError: `on_missing` has no legal value; nothing was sent.
            UnavailableError: Consumers are missing; from the loop.
            StreamNotFoundError: The stream does not exist; from the loop.
            TransportError: The server did not answer in time; from the loop.

        Cost: one round trip for each 256 consumers; four seconds where some are missing.
        """
        return ConsumerListing(self._api, self.stream, on_missing)

    async def delete(self, name: str) -> None:
        """Delete a consumer; what it has not settled stays in the stream.

        Raises:
            ConsumerNotFoundError: It does not exist.
            TransportError: There was no answer, and it is there; it may still be deleted.

        Cost: one round trip. A cluster that is choosing a leader may delete without an answer;
        that is seen after a second.
        """
        await delete_consumer(self._api, self.stream, name)

    async def pause(
        self,
        name: str,
        *,
        until: datetime | int | None = None,
        duration: float | timedelta | None = None,
    ) -> ConsumerPause:
        """Deliver nothing for a while; messages that are out can still be settled.

        Args:
            name: The consumer.
            until: When it goes on: a datetime with a time zone, or Unix nanoseconds.
            duration: Or how long it waits, seconds or timedelta, by this machine's clock.

        Raises:
            ConfigError: Neither or both were given, or the moment has passed; nothing was sent.
            ConsumerNotFoundError: It does not exist.
            UnsupportedServerError: The server is older than 2.11; nothing was sent.
            TransportError: There was no answer; whether it is paused is not known.

        Cost: one round trip.
        """
        if (until is None) == (duration is None):
            raise ConfigError("pause takes until or duration", hint="duration=60 is a minute")
        if until is not None:
            until_ns = rules.check_time("until", until)
        else:
            until_ns = time.time_ns() + rules.check_duration("duration", duration)
        if until_ns <= time.time_ns():
            raise ConfigError("the pause would be over already", hint="resume() ends a pause")
        return await pause_consumer(self._api, self.stream, name, until_ns)

    async def resume(self, name: str) -> ConsumerPause:
        """Let a paused consumer go on; one that is not paused is left as it is.

        Raises:
            ConsumerNotFoundError: It does not exist.
            UnsupportedServerError: The server is older than 2.11; nothing was sent.
            TransportError: There was no answer; whether it goes on is not known.
        """
        return await pause_consumer(self._api, self.stream, name, None)

    async def reset(self, name: str, *, sequence: int | None = None) -> int:
        """Forget what is out, and deliver from a sequence of the stream again.

        Args:
            name: The consumer.
            sequence: The first sequence to deliver; None is the one behind those that are settled.
                A consumer with a start delivers nothing before it.

        Returns:
            The sequence that it goes on at.

        Raises:
            ConsumerNotFoundError: It does not exist.
            ServerError: The server refuses it, as for a sequence before the consumer's start.
            UnsupportedServerError: The server is older than 2.14; nothing was sent.
            TransportError: There was no answer; whether it was reset is not known.

        Cost: two round trips. Acks of messages that were out mean nothing afterwards.
        Source: ADR-60.
        """
        return await reset_consumer(self._api, self.stream, name, sequence=sequence)

    async def unpin(self, name: str, *, group: str) -> None:
        """Take the pin from the pinned client of a priority group; the next to pull gets it.

        Raises:
            NotFoundError: The consumer has no such group.
            ConsumerNotFoundError: It does not exist.
            UnsupportedServerError: The server is older than 2.11; nothing was sent.
            TransportError: There was no answer; whether it was unpinned is not known.

        Source: ADR-42.
        """
        await unpin_consumer(self._api, self.stream, name, group)

    def _handle(self, made: tuple[ConsumerInfo, ConfigChange]) -> Consumer:
        return Consumer(self._api, *made)

    def __repr__(self) -> str:
        return f"<ConsumerManager {self.stream}>"


def _config(config: ConsumerConfig | str | None, fields: dict[str, Any]) -> ConsumerConfig:
    if isinstance(config, ConsumerConfig):
        if fields:
            raise ConfigError("give a ConsumerConfig or keywords, not both")
        return config
    hint = "see ConsumerConfig; a field of a newer server goes into extra={...}"
    known = ConsumerConfig.__dataclass_fields__
    check_names(fields, known, "consumer field", hint=hint)
    if config is not None:
        if "name" in fields:
            raise ConfigError("the consumer's name is given twice", hint="give it once")
        fields = {**fields, "name": config}
    return ConsumerConfig(**fields)
