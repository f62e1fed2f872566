"""A stream as a server stores it, for tests of the pure rules: no clock, no network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import DeletedRange, StreamInfo, StreamState
from natsstream.conat.reconcile import Reconciler
from natsstream.conat.record import Record

ROLLUP = b"NATS/1.0\r\nCN-Enc: 0\r\nNats-Rollup: sub\r\n\r\n"
TOMBSTONE = b"NATS/1.0\r\nCN-Enc: 0\r\nCN-Tombstone: 1\r\nNats-Rollup: sub\r\n\r\n"
ROLLUP_ALL = b"NATS/1.0\r\nCN-Enc: 0\r\nNats-Rollup: all\r\n\r\n"
EXPIRING = b"NATS/1.0\r\nCN-Enc: 0\r\nNats-TTL: 1\r\n\r\n"
PLAIN = b"NATS/1.0\r\nCN-Enc: 0\r\n\r\n"


def fill(client: Reconciler, record: Record) -> None:
    """Give a client the next message of its first load."""
    seq, time_ns, key_subject, headers, data = record
    client.fill([seq], [time_ns], [key_subject], [headers], [data])


@dataclass
class SimulatedStream:
    """One stream of a server.

    Attributes:
        max_msgs: Its limit; -1 for none.
        created_ns: Its identity.
        held: Its messages, by sequence.
        last_seq: The newest sequence ever.
        times_ns: When each message of this life was stored.
        replaced: The message of its subject that was stored when each message came; 0 for none.
        on_stored: Receives every stored message with the sequence of its subject before it.
    """

    max_msgs: int = -1
    created_ns: int = 1
    held: dict[int, Record] = field(default_factory=dict[int, Record])
    last_seq: int = 0
    times_ns: dict[int, int] = field(default_factory=dict[int, int])
    replaced: dict[int, int] = field(default_factory=dict[int, int])
    on_stored: Callable[[Record, int], None] = lambda _record, _before: None

    def publish(
        self, key: str, data: bytes, headers: bytes, *, time_ns: int | None = None
    ) -> Record:
        """Store a message as nats-server does: first the limit, then the rollup."""
        self.last_seq += 1
        stored_ns = self.time_ns(self.last_seq) if time_ns is None else time_ns
        record = Record(self.last_seq, stored_ns, key, headers, data)
        same = [seq for seq, each in self.held.items() if each.key_subject == key]
        while self.max_msgs > 0 and len(self.held) >= self.max_msgs:
            del self.held[min(self.held)]
        before = max(same, default=0)
        if headers == ROLLUP_ALL:
            self.held.clear()
        elif b"Nats-Rollup" in headers:
            for seq in same:
                self.held.pop(seq, None)
        self.held[record.seq] = record
        self.times_ns[record.seq] = stored_ns
        self.replaced[record.seq] = before
        self.on_stored(record, before)
        return record

    def time_ns(self, seq: int) -> int:
        """Return when a message was stored; it tells the lives of a stream apart."""
        return (self.created_ns - 1) * 1_000_000_000_000 + seq * 1_000_000

    def expire(self, is_over: Callable[[Record], bool]) -> None:
        """Remove the messages that have expired."""
        self.held = {seq: each for seq, each in self.held.items() if not is_over(each)}

    def purge(self, last_seq: int) -> None:
        """Remove the messages up to a sequence."""
        self.held = {seq: each for seq, each in self.held.items() if seq > last_seq}

    @property
    def first_seq(self) -> int:
        return min(self.held, default=self.last_seq + 1)

    def records(self, first_seq: int, last_seq: int) -> list[Record]:
        """Return what it stores of a range."""
        return [self.held[seq] for seq in sorted(self.held) if first_seq <= seq <= last_seq]

    def info(self, *, lists_deleted: bool) -> StreamInfo:
        """Return its info."""
        holes = [seq for seq in range(self.first_seq, self.last_seq + 1) if seq not in self.held]
        state = StreamState(
            messages=len(self.held),
            bytes=0,
            first_seq=self.first_seq,
            last_seq=self.last_seq,
            first_time_ns=self._stored_ns(self.first_seq) if self.held else 0,
            last_time_ns=self._stored_ns(self.last_seq),
            num_subjects=0,
            num_deleted=len(holes),
            consumer_count=0,
            lost=(),
            deleted=tuple(DeletedRange(seq, seq) for seq in holes) if lists_deleted else None,
        )
        return StreamInfo(StreamConfig(name="CN"), state, self.created_ns, {})

    def _stored_ns(self, seq: int) -> int:
        return self.times_ns.get(seq, self.time_ns(seq))
