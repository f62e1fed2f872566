"""Opens the JetStream stream of a core stream: creates it, or merges the configuration.

Law: a stream without the feed that a core stream needs stays as it is; it is read otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from natsstream.api.message import Message
from natsstream.api.stream_config import REPLICAS_MAX, StreamConfig
from natsstream.arguments import check_bool, check_int, check_seconds, described
from natsstream.conat.configuration import Configuration, check_stream, limits_of
from natsstream.conat.names import StreamNames
from natsstream.conat.reconcile import Limits
from natsstream.conat.values import Encoding
from natsstream.conat.writer import TOMBSTONE_TTL_MS, check_life_time
from natsstream.errors import (
    ConfigError,
    InvalidConfigError,
    StreamExistsError,
    StreamNotFoundError,
    UnsupportedServerError,
)
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream

LOOK_EVERY_S = 30.0
"""Seconds between two comparisons with the stream's info, unless others are chosen.

A feed that has lost its last message shows no hole, and servers do not report deletions.
"""


def check_look_every(seconds: float) -> None:
    """Refuse what is no time between two comparisons.

    Raises:
        ConfigError: It is no number of seconds above 0.
    """
    check_seconds(seconds, "look_every")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreStreamOptions:
    """How a core stream is opened; `JetStream.core_stream` has the arguments.

    Attributes:
        names: Its names.
        config: Fields of its configuration to set.
        start_seq: The first sequence to load; None is the first.
        ephemeral: True keeps a new stream in memory.
        replicas: Replicas of a new stream; None leaves it to the server.
        encoding: The format of values.
        tombstone_ttl: Milliseconds after which the tombstone of a key expires; None is never.
        look_every: Seconds between two comparisons with the stream's info.

    Raises:
        ConfigError: An argument is not legal. `config` comes checked, from `config_fields`.
    """

    names: StreamNames
    config: Mapping[str, object]
    start_seq: int | None = None
    ephemeral: bool = False
    replicas: int | None = None
    encoding: Encoding = Encoding.MSGPACK
    tombstone_ttl: int | None = TOMBSTONE_TTL_MS
    look_every: float = LOOK_EVERY_S

    def __post_init__(self) -> None:
        check_look_every(self.look_every)
        check_bool(self.ephemeral, "ephemeral")
        if self.start_seq is not None:
            check_int(self.start_seq, "start_seq", minimum=0)
        if self.replicas is not None:
            check_int(self.replicas, "replicas", minimum=1, maximum=REPLICAS_MAX)
        if self.tombstone_ttl is not None:
            check_life_time(self.tombstone_ttl, "tombstone_ttl")
        # Another number would be stored, and nobody could read these values.
        if not isinstance(self.encoding, Encoding):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types.
            raise ConfigError(
                f"encoding is {described(self.encoding)}",
                hint="give ns.Encoding.MSGPACK, the default, or ns.Encoding.JSON",
            )


class StreamOpener:
    """Opens the stream of one core stream.

    Args:
        js: The JetStream context.
        options: How the core stream is opened.
    """

    def __init__(self, js: JetStreamContext, options: CoreStreamOptions) -> None:
        self.filters: Sequence[str] = ()
        self._js = js
        self._options = options

    async def open(self) -> Stream:
        """Return the stream with the options' configuration; it is created if it is missing.

        Raises:
            StreamExistsError: A stream of this name belongs to something else.
        """
        options = self._options
        try:
            stream = await self._js.streams.get(options.names.stream)
        except StreamNotFoundError:
            wanted = Configuration().merged(options.config)
            config = (wanted.capped() if options.ephemeral else wanted).to_stream(
                options.names, ephemeral=options.ephemeral, replicas=options.replicas
            )
            with suppress(StreamExistsError):  # Another client was faster.
                return await self._created(config)
            stream = await self._js.streams.get(options.names.stream)
        check_stream(options.names, stream.cached.config)
        return await self._merged(stream, options.config)

    @property
    def is_partial(self) -> bool:
        """False: all messages are wanted."""
        return False

    def learn(self, config: StreamConfig) -> Limits:
        """Return the limits of the stream."""
        return limits_of(config)

    async def data(self, messages: list[Message]) -> list[Message]:
        """Return the messages: all are data."""
        return messages

    async def set_config(self, changes: Mapping[str, object]) -> Stream:
        """Set some fields of the configuration."""
        return await self._merged(await self._js.streams.get(self._options.names.stream), changes)

    async def _created(self, config: StreamConfig) -> Stream:
        """Create the stream, without batches or its feed if a server refuses that."""
        with suppress(InvalidConfigError, UnsupportedServerError):  # Batches came with 2.12.
            return await self._js.streams.create(replace(config, allow_atomic=True))
        try:
            return await self._js.streams.create(config)
        except (InvalidConfigError, UnsupportedServerError) as error:
            with suppress(InvalidConfigError, UnsupportedServerError):
                return await self._js.streams.create(replace(config, republish=None))
            raise error from None

    async def _merged(self, stream: Stream, changes: Mapping[str, object]) -> Stream:
        held = stream.cached.config
        before = Configuration.from_stream(held)
        wanted = before.merged(changes)
        is_ephemeral = held.storage == "memory"
        if is_ephemeral:
            wanted = wanted.capped()
        if wanted == before:
            return stream
        config = wanted.to_stream(
            self._options.names,
            ephemeral=is_ephemeral,
            replicas=held.replicas,
            metadata=held.metadata,
        )
        # No configuration of a core stream has these: an operator's values stay.
        kept = replace(config, max_bytes=None, max_msgs_per_subject=None, republish=None)
        return await self._js.streams.update(kept)
