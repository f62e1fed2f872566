"""Opens core streams: `js.core_stream`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from natsstream.arguments import check_bool
from natsstream.conat.configuration import config_fields
from natsstream.conat.core_stream import CoreStream
from natsstream.conat.foreign import ForeignOptions
from natsstream.conat.layer_options import CoreStreamArguments
from natsstream.conat.lifetime import Lifetime
from natsstream.conat.names import PREFIX, SERVICE, StreamNames, storage_path
from natsstream.conat.opening import LOOK_EVERY_S, CoreStreamOptions
from natsstream.conat.shared import Release, SharedObjects, is_last
from natsstream.conat.values import Encoding, json_text
from natsstream.conat.writer import TOMBSTONE_TTL_MS
from natsstream.foreign_names import answers_names
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream


@answers_names("js.core_stream")
class CoreStreams:
    """Opens core streams; `js.core_stream` is the only one of a context.

    Args:
        js: The JetStream context.
    """

    def __init__(self, js: JetStreamContext) -> None:
        self._js = js
        self._shared: SharedObjects[CoreStream] = SharedObjects()

    async def __call__(
        self,
        name: str,
        *,
        account_id: str | None = None,
        project_id: str | None = None,
        config: Mapping[str, object] | None = None,
        start_seq: int | None = None,
        ephemeral: bool = False,
        replicas: int | None = None,
        encoding: Encoding = Encoding.MSGPACK,
        tombstone_ttl: int | None = TOMBSTONE_TTL_MS,
        no_cache: bool = False,
        look_every: float = LOOK_EVERY_S,
        service: str = SERVICE,
        prefix: str = PREFIX,
    ) -> CoreStream:
        """Open a core stream; it is created if it is missing.

        Calls with equal arguments share one object, which ends when each has closed it. The call
        waits for a server that is away as long as for a reconnect: `reconnect_timeout` seconds, 30
        by default. A stream that is open follows its server again after any time.

        Args:
            name: Any text; with `/` for folders.
            account_id: UUID of the account that owns it; counts before `project_id`.
            project_id: UUID of the project that owns it.
            config: Fields of its configuration to set, by Conat's names.
            start_seq: Load only messages from this sequence on; `load` adds older ones.
            ephemeral: Keep a new stream in memory; it is gone when the last client closes it. A
                stream on disk stays there.
            replicas: Replicas of a new stream, 1 to 5; None leaves it to the server.
            encoding: The format of values that this object writes.
            tombstone_ttl: Milliseconds after which the tombstone of a key expires, if the
                configuration has `allow_msg_ttl`; None is never.
            no_cache: Return an object of its own.
            look_every: Seconds between two comparisons with the stream's info. They find what other
                programs have deleted, and messages that were lost on their way.
            service: A service has streams of its own.
            prefix: The first tokens of all subjects.

        Raises:
            StoragePathError: The name or the owner is not legal (403).
            ConfigError: An argument is not legal.
            PermissionDeniedError: The user may not read the stream (403).
            ResourceExhaustedError: The account has no room for the stream (429).
            StreamExistsError: A stream of this name belongs to something else.
            ConnectionLostError: No server came back in time (503).

        Cost: two round trips and the bytes of the messages; one subscription. Then a round trip for
        each comparison.
        """
        options = options_of(
            name,
            {
                "account_id": account_id,
                "project_id": project_id,
                "config": config,
                "start_seq": start_seq,
                "ephemeral": ephemeral,
                "replicas": replicas,
                "encoding": encoding,
                "tombstone_ttl": tombstone_ttl,
                "no_cache": no_cache,
                "look_every": look_every,
                "service": service,
                "prefix": prefix,
            },
        )

        async def make(release: Release) -> CoreStream:
            return await CoreStream(self._js, name, options, release).open()

        if no_cache:
            return await make(is_last)
        fields = json_text(sorted(options.config.items()))
        others = (start_seq, ephemeral, replicas, encoding, tombstone_ttl, look_every)
        return await self._shared.get((options.names, fields, *others), make)

    async def over(
        self,
        stream: Stream | str,
        *,
        start_seq: int | None = None,
        filters: Sequence[str] = (),
        look_every: float = LOOK_EVERY_S,
    ) -> CoreStream:
        """Read any stream as a core stream, and follow it; nothing of it is changed.

        Each subject is a key, and its newest message the key's value. A value is bytes, unless a
        core stream's header names its encoding. The headers are those of NATS, as they are. Delete
        markers of buckets and servers count as tombstones; records of producers are left out.

        An ordered consumer brings the messages, so `conflates` is True. Deletions by other programs
        are found by comparing, every `look_every` seconds. A stream that is deleted loses its
        messages here too; one that is created again is followed from its first message on.

        Args:
            stream: Its name, or a stream, which may be of another domain.
            start_seq: Load only messages from this sequence on; `load` adds older ones.
            filters: Subjects to read, filtered by the server; they must not overlap.
            look_every: Seconds between two comparisons with the stream's info.

        Returns:
            A core stream whose writes raise `ReadOnlyStreamError` (403); its own object each time.

        Raises:
            StreamNotFoundError: The stream does not exist.
            PermissionDeniedError: The user may not read it (403).
            ResourceExhaustedError: There is no room for a consumer (429).
            UsageError: Consumers remove its messages: it is a work queue or an interest stream.
            ConfigError: An argument is not legal.
            SubjectError: A filter is not a legal subject.

        Cost: four round trips and the bytes of the messages; one consumer. Then a round trip for
        each comparison.
        """
        options = ForeignOptions(
            stream=stream, start_seq=start_seq, filters=filters, look_every=look_every
        )
        if isinstance(stream, str):
            await self._js.streams.get(stream)  # Opening waits for a stream that is missing.
        return await CoreStream(self._js, options.names.path, options).open()

    async def delete(
        self,
        name: str,
        *,
        account_id: str | None = None,
        project_id: str | None = None,
        service: str = SERVICE,
        prefix: str = PREFIX,
    ) -> bool:
        """Delete a core stream and its big values: all that a map or a log of this name holds, too.

        Clients that have it open make it again, empty. A map of objects has the name
        `__dko__` and its own.

        Args:
            name: Its name.
            account_id: UUID of the account that owns it; counts before `project_id`.
            project_id: UUID of the project that owns it.
            service: Its service.
            prefix: The first tokens of its subjects.

        Returns:
            True if it was there.

        Raises:
            StoragePathError: The name or the owner is not legal (403).
            StreamExistsError: A stream of this name belongs to something else.
            NatsStreamError: The server refused it, or did not answer; the call may be repeated.

        Cost: three round trips.
        """
        path = storage_path(name, account_id=account_id, project_id=project_id)
        return await Lifetime(self._js, StreamNames(path, service, prefix)).end()

    def __repr__(self) -> str:
        return f"<CoreStreams {self._js.url}>"


def options_of(name: str, arguments: CoreStreamArguments) -> CoreStreamOptions:
    """Return the options of a core stream for the arguments of `js.core_stream`.

    Raises:
        StoragePathError: The name or the owner is not legal (403).
        ConfigError: Another argument is not legal.
    """
    path = storage_path(
        name, account_id=arguments.get("account_id"), project_id=arguments.get("project_id")
    )
    check_bool(arguments.get("no_cache", False), "no_cache")
    return CoreStreamOptions(
        names=StreamNames(path, arguments.get("service", SERVICE), arguments.get("prefix", PREFIX)),
        config=config_fields(arguments.get("config")),
        start_seq=arguments.get("start_seq"),
        ephemeral=arguments.get("ephemeral", False),
        replicas=arguments.get("replicas"),
        encoding=arguments.get("encoding", Encoding.MSGPACK),
        tombstone_ttl=arguments.get("tombstone_ttl", TOMBSTONE_TTL_MS),
        look_every=arguments.get("look_every", LOOK_EVERY_S),
    )
