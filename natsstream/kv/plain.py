"""The calls of a bucket that views of it stand on: typed values, mirrors, locks.

Law: a view of a bucket uses what every user has, and nothing below it.
"""

from __future__ import annotations

from natsstream.api.names import covers
from natsstream.arguments import check_int
from natsstream.errors import ConfigError
from natsstream.kv.doors.reads import Reads
from natsstream.kv.doors.upkeep import Upkeep
from natsstream.kv.doors.watching import Watching
from natsstream.kv.doors.writes import Writes
from natsstream.kv.storing import Record, store
from natsstream.publish.outgoing import Payload

_REVISION_MAX = 2**64 - 1


class PlainBucket(Reads, Upkeep, Watching, Writes):
    """A bucket's reads, writes and watches."""

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""
        return self._js.is_connected

    def is_among(self, key: str, *filters: str) -> bool:
        """Tell whether one of the filters matches a key; none matches all.

        Raises:
            KeyNameError: The key is no legal one, or a filter is none.
        """
        subject = self._place.read_subject(key)
        return not filters or any(
            covers(self._place.read_filter(each), subject) for each in filters
        )

    async def put_guarded(self, key: str, value: Payload, *, guard: str, revision: int) -> int:
        """Store a value if another key of the bucket is still at a revision; return the new one.

        The server compares and stores in one step, so that a writer who was replaced meanwhile
        changes nothing: `revision` is then a fencing token that the server itself checks.

        Args:
            key: The key; no wildcards.
            value: The bytes.
            guard: The other key.
            revision: The revision that must be the newest of the other key; 0 for no record.

        Raises:
            WrongRevisionError: The other key has another revision; nothing was written. `key` is
                the guard's.
            KeyNameError: One of them is no legal key; nothing was sent.
            ConfigError: The bucket is a mirror, or an argument has no legal value.
            UnsupportedServerError: The server is older than 2.11; nothing was sent.
            NatsStreamError: What `put` raises.

        Cost: one round trip, plus the stream's replication.
        Source: `Nats-Expected-Last-Subject-Sequence-Subject`, nats-server 2.11.
        """
        check_int(revision, "revision", minimum=0, maximum=_REVISION_MAX)
        if self._stream.cached.config.mirror is not None:
            raise ConfigError(
                f"bucket {self.name} is a mirror: its guard is where its writes go",
                hint="call put_guarded of its origin",
            )
        record = Record(
            key=key,
            subject=self._place.write_subject(key),
            payload=self._encoded(value),
            revision=revision,
            guard=guard,
            guard_subject=self._place.read_subject(guard),
        )
        return await store(self._js, self._stream, self._place, record)
