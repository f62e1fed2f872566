"""The types of `natsstream.blocking`: each class is the proxy of the async one.

Generated, do not edit: `scripts/generate_blocking_types` wrote this file from the async sources.
"""

# Editors show these docstrings: at run time the classes are made from the async ones.
# ruff: noqa: PYI021

import os as os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Generic, Literal, Never, Self, Unpack, overload

import pandas as pd
import pyarrow as pa

from natsstream import advisories as advisories
from natsstream import errors as errors
from natsstream import events as events
from natsstream._wire.headers import Headers, HeaderValues
from natsstream.advisories import Advisory, AdvisoryKind
from natsstream.api.account import AccountInfo as AccountInfo
from natsstream.api.cluster_info import Alternate as Alternate
from natsstream.api.cluster_info import ClusterInfo as ClusterInfo
from natsstream.api.cluster_info import ReplicaInfo as ReplicaInfo
from natsstream.api.cluster_info import SourceInfo as SourceInfo
from natsstream.api.config_fields import BucketFields as BucketFields
from natsstream.api.config_fields import ConsumerFields as ConsumerFields
from natsstream.api.config_fields import ObjectBucketFields as ObjectBucketFields
from natsstream.api.config_fields import StreamFields as StreamFields
from natsstream.api.consumer_config import ConsumerConfig as ConsumerConfig
from natsstream.api.consumer_info import ConsumerInfo as ConsumerInfo
from natsstream.api.consumer_info import ConsumerPause as ConsumerPause
from natsstream.api.consumer_info import ConsumerProgress as ConsumerProgress
from natsstream.api.consumer_info import PriorityGroupState as PriorityGroupState
from natsstream.api.diff import ConfigChange as ConfigChange
from natsstream.api.diff import FieldChange as FieldChange
from natsstream.api.listing import InfoT
from natsstream.api.message import Message as Message
from natsstream.api.settings.limits import ConsumerLimits as ConsumerLimits
from natsstream.api.settings.mapping import Republish as Republish
from natsstream.api.settings.mapping import SubjectTransform as SubjectTransform
from natsstream.api.settings.placement import Placement as Placement
from natsstream.api.settings.source import ExternalStream as ExternalStream
from natsstream.api.settings.source import SourceConsumer as SourceConsumer
from natsstream.api.settings.source import StreamSource as StreamSource
from natsstream.api.stream_config import StreamConfig as StreamConfig
from natsstream.api.stream_info import DeletedRange as DeletedRange
from natsstream.api.stream_info import StreamInfo as StreamInfo
from natsstream.api.stream_info import StreamState as StreamState
from natsstream.blocking.answer import Answer
from natsstream.conat.change_feed import FeedChange as FeedChange
from natsstream.conat.codes import conat_code as conat_code
from natsstream.conat.configuration import Configuration as Configuration
from natsstream.conat.core_stream import CoreStreamInventory as CoreStreamInventory
from natsstream.conat.core_stream import StreamStats as StreamStats
from natsstream.conat.dko import ObjectChange as ObjectChange
from natsstream.conat.dkv import KeyChange as KeyChange
from natsstream.conat.dkv import RejectedKey as RejectedKey
from natsstream.conat.dstream import RejectedMessage as RejectedMessage
from natsstream.conat.inventory import InventoryItem as InventoryItem
from natsstream.conat.inventory import StoreType
from natsstream.conat.layer_options import CoreStreamArguments as CoreStreamArguments
from natsstream.conat.layer_options import LeaderArguments as LeaderArguments
from natsstream.conat.leader import StoredMessage as StoredMessage
from natsstream.conat.record import Record
from natsstream.conat.undefined import UNDEFINED as UNDEFINED
from natsstream.conat.undefined import Undefined as Undefined
from natsstream.conat.unsaved_keys import TOMBSTONE as TOMBSTONE
from natsstream.conat.unsaved_keys import Conflict as Conflict
from natsstream.conat.unsaved_keys import Merge
from natsstream.conat.unsaved_keys import Tombstone as Tombstone
from natsstream.conat.values import Encoding as Encoding
from natsstream.conat.views import Change as Change
from natsstream.conat.views import KeyedMessage as KeyedMessage
from natsstream.conat.views import RawMessage as RawMessage
from natsstream.conat.writer import PublishItem as PublishItem
from natsstream.conat.writer import PublishOptions as PublishOptions
from natsstream.conat.writer import PublishResult as PublishResult
from natsstream.conat.writer import Stored as Stored
from natsstream.consume.dead_letters.letter import DeadLetter as DeadLetter
from natsstream.consume.delivery.ack_kinds import AckKind as AckKind
from natsstream.consume.delivery.ack_kinds import Reject as Reject
from natsstream.consume.delivery.ack_kinds import Retry as Retry
from natsstream.consume.delivery.backoff import Backoff as Backoff
from natsstream.consume.delivery.events import ConsumerDeleted as ConsumerDeleted
from natsstream.consume.delivery.events import ConsumerRecreated as ConsumerRecreated
from natsstream.consume.delivery.events import DeliveriesMissed as DeliveriesMissed
from natsstream.consume.delivery.events import DeliverSubjectChanged as DeliverSubjectChanged
from natsstream.consume.delivery.events import LeaderChanged as LeaderChanged
from natsstream.consume.delivery.events import LimitExceeded as LimitExceeded
from natsstream.consume.delivery.events import Pinned as Pinned
from natsstream.consume.delivery.events import Reconnected as Reconnected
from natsstream.consume.delivery.events import Unpinned as Unpinned
from natsstream.consume.delivery.meta import DeliveryMeta as DeliveryMeta
from natsstream.consume.pull.requests import Duration
from natsstream.consume.work.options import WorkOptions
from natsstream.consume.work.report import WorkReport as WorkReport
from natsstream.errors import CodecError, LockLostError, ObjectMetaError
from natsstream.errors import ConfigError as ConfigError
from natsstream.errors import IntegrityError as IntegrityError
from natsstream.errors import NatsStreamError as NatsStreamError
from natsstream.errors import ServerError as ServerError
from natsstream.errors import TransportError as TransportError
from natsstream.errors import UsageError as UsageError
from natsstream.events import ConnectionEvent
from natsstream.kv.codecs import Base64Keys as Base64Keys
from natsstream.kv.codecs import Base64Values as Base64Values
from natsstream.kv.codecs import ChainedKeys as ChainedKeys
from natsstream.kv.codecs import ChainedValues as ChainedValues
from natsstream.kv.codecs import FilterKeyCodec as FilterKeyCodec
from natsstream.kv.codecs import KeyCodec as KeyCodec
from natsstream.kv.codecs import PathKeys as PathKeys
from natsstream.kv.codecs import T
from natsstream.kv.codecs import ValueCodec as ValueCodec
from natsstream.kv.config import BucketConfig as BucketConfig
from natsstream.kv.entry import Entry as Entry
from natsstream.kv.formats import JSON as JSON
from natsstream.kv.formats import MSGPACK as MSGPACK
from natsstream.kv.formats import RAW as RAW
from natsstream.kv.formats import TEXT as TEXT
from natsstream.kv.formats import U
from natsstream.kv.formats import ValueFormat as ValueFormat
from natsstream.kv.locks.elections import Leader as Leader
from natsstream.kv.status import BucketStatus as BucketStatus
from natsstream.objects.config import ObjectBucketConfig as ObjectBucketConfig
from natsstream.objects.describing import ObjectHeaders
from natsstream.objects.info import ObjectInfo as ObjectInfo
from natsstream.objects.info import ObjectLink as ObjectLink
from natsstream.objects.info import ObjectOptions as ObjectOptions
from natsstream.objects.status import ObjectStoreStatus as ObjectStoreStatus
from natsstream.objects.watch import OnUnreadable
from natsstream.options import ConnectOptions as ConnectOptions
from natsstream.options import Secret
from natsstream.producer.options import Mode, ProducerEncoding
from natsstream.producer.producer import AppendResult as AppendResult
from natsstream.producer.producer import CloseResult as CloseResult
from natsstream.producer.producer import Guarantee
from natsstream.producer.producer import Recovered as Recovered
from natsstream.publish.batches.atomic_rules import BatchAck as BatchAck
from natsstream.publish.batches.fast_state import IngestRefusal as IngestRefusal
from natsstream.publish.batches.fast_state import IngestReport as IngestReport
from natsstream.publish.batches.fast_state import IngestSpan as IngestSpan
from natsstream.publish.outgoing import Expect as Expect
from natsstream.publish.outgoing import Payload, Rollup
from natsstream.publish.outgoing import PublishMessage as PublishMessage
from natsstream.publish.pub_ack import PubAck as PubAck
from natsstream.publish.schedule import Schedule as Schedule
from natsstream.publish.schedule import Ttl
from natsstream.read.direct.answers import DirectBatch as DirectBatch
from natsstream.read.progress import Gap as Gap
from natsstream.read.progress import ReadReport as ReadReport
from natsstream.read.read_events import EndFound as EndFound
from natsstream.read.read_events import GapFound as GapFound
from natsstream.read.read_events import HeartbeatsMissed as HeartbeatsMissed
from natsstream.read.read_events import OrderedReport as OrderedReport
from natsstream.read.read_events import ReadEvent as ReadEvent
from natsstream.read.read_events import Recreated as Recreated
from natsstream.read.start_position import DeliverPolicy
from natsstream.streams.chain.links import ChainHead as ChainHead
from natsstream.streams.chain.verify import BrokenLink as BrokenLink
from natsstream.streams.chain.verify import ChainReport as ChainReport
from natsstream.streams.chunks.sources import Source
from natsstream.streams.chunks.sweeping import SweepReport as SweepReport
from natsstream.streams.chunks.value import ChunkedValue as ChunkedValue
from natsstream.streams.chunks.value import Progress
from natsstream.streams.counters.counter import Counter as Counter
from natsstream.streams.schedules import ScheduledMessage as ScheduledMessage
from natsstream.streams.snapshots.folder import BackupInfo as BackupInfo
from natsstream.streams.snapshots.progress import BackupProgress as BackupProgress
from natsstream.streams.snapshots.progress import RestoreProgress as RestoreProgress
from natsstream.streams.subject_counts import SubjectCount as SubjectCount
from natsstream.streams.templates.templates import StreamTemplate as StreamTemplate

__version__: str

def connect(
    servers: str | Sequence[str] | ConnectOptions | None = None,
    *,
    context: str | Path | None = None,
    name: str | None = None,
    user: str | None = None,
    password: str | None = None,
    token: Secret | None = None,
    creds: str | Path | None = None,
    nkey: str | Path | None = None,
    user_jwt: Secret | None = None,
    user_seed: str | None = None,
    ca: str | Path | None = None,
    cert: str | Path | None = None,
    key: str | Path | None = None,
    key_password: str | None = None,
    tls_first: bool | None = None,
    inbox_prefix: str | None = None,
    domain: str | None = None,
    api_prefix: str | None = None,
    connect_timeout: float | None = None,
    request_timeout: float | None = None,
    reconnect_timeout: float | None = None,
    ping_interval: float | None = None,
    max_missed_pings: int | None = None,
    **unknown: Never,
) -> Connection:
    """Describe a connection; `with` opens it."""

class AKV:
    """A map on a core stream; each call asks the server, and sees every acknowledged write."""

    @property
    def name(self) -> str:
        """Its name."""

    def close(self) -> None:
        """End the object; nothing is left on the server."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def get(self, key: str, default: Any = ...) -> Any:
        """Return the value of a key, or the default."""

    def get_message(self, key: str) -> StoredMessage | None:
        """Return the message of a key; None for none. Cost as for `get`."""

    def headers(self, key: str) -> Mapping[str, object] | None:
        """Return the headers of a key's message, with seq, time and key; None for none."""

    def time(self, key: str) -> datetime | None:
        """Return when a key's value was stored, in UTC; None for none."""

    def seq(self, key: str) -> int | None:
        """Return the sequence of a key's value; None for none."""

    def keys(self) -> list[str]:
        """Return the keys that have a value, by the sequences of their values."""

    def set(
        self,
        key: str,
        value: Any,
        *,
        headers: Mapping[str, object] | None = None,
        previous_seq: int | None = None,
        msg_id: str | None = None,
        ttl: int | None = None,
        timeout: float | None = None,
    ) -> Stored | None:
        """Set the value of a key; UNDEFINED deletes it."""

    def delete(self, key: str, *, timeout: float | None = None) -> Stored | None:
        """Delete a key by a tombstone, whether or not it has a value."""

    def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, and return all of it; see `CoreStream.config`."""

class AKVs:
    """Opens maps of which nothing is loaded; `js.akv` is the only one of a context."""

    def __call__(self, name: str, **options: Unpack[LeaderArguments]) -> AKV:
        """Open a map; it is created if it is missing. Each call returns an object of its own."""

class AStream:
    """A log on a core stream; each call asks the server, and sees every acknowledged write."""

    @property
    def name(self) -> str:
        """Its name."""

    def close(self) -> None:
        """End the object and its changefeeds; nothing is left on the server."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def get(self, seq_or_key: int | str, default: Any = ...) -> Any:
        """Return the value at a sequence (a number) or of a key (a text), or the default."""

    def get_message(self, seq_or_key: int | str) -> StoredMessage | None:
        """Return the message at a sequence or of a key; None for none. Cost as for `get`."""

    def headers(self, seq_or_key: int | str) -> Mapping[str, object] | None:
        """Return the headers of a message, with seq, time and key; None for no message."""

    def get_all(
        self, *, start_seq: int | None = None, end_seq: int | None = None
    ) -> Iterator[StoredMessage]:
        """Yield all messages in order, those between two sequences, both inclusive."""

    def publish(
        self,
        mesg: Any,
        *,
        headers: Mapping[str, object] | None = None,
        msg_id: str | None = None,
        key: str | None = None,
        previous_seq: int | None = None,
        ttl: int | None = None,
        timeout: float | None = None,
    ) -> Stored | None:
        """Store a message; UNDEFINED with a key deletes the key."""

    def push(self, *values: Any) -> list[PublishResult]:
        """Store messages in order, many in flight; each has a result or an error of its own."""

    def changefeed(self) -> ChangeFeed:
        """Return a feed of all changes from now on, one of its own for each call."""

    def delete(
        self, *, all: bool = False, seq: int | None = None, last_seq: int | None = None
    ) -> int:
        """Delete messages, and return how many; the first argument of this order counts."""

    def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, and return all of it; see `CoreStream.config`."""

class AStreams:
    """Opens logs of which nothing is loaded; `js.astream` is the only one of a context."""

    def __call__(self, name: str, **options: Unpack[LeaderArguments]) -> AStream:
        """Open a log; it is created if it is missing. Each call returns an object of its own."""

class Advisories:
    """Advisories from now on; made by `JetStream.advisories`."""

    @property
    def pending_count(self) -> int:
        """Events that have come and are not read yet."""

    @property
    def dropped(self) -> int:
        """Events dropped so far because the reader was too slow."""

    def open(self) -> Self:
        """Listen; `close` ends it. When it returns, the server knows of it."""

    def close(self) -> None:
        """Listen no more and drop what is not read; closing twice is fine."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def __iter__(self) -> Iterator[Advisory]: ...
    def __next__(self) -> Advisory: ...
    def next(self, timeout: float) -> Advisory | None:
        """Return the next event, None when none came within `timeout` seconds."""

class AtomicBatch:
    """Messages that the stream stores together or not at all; made by `Stream.batch`."""

    @property
    def batch_id(self) -> str:
        """The `Nats-Batch-Id` of its messages."""

    @property
    def count(self) -> int:
        """Messages in the batch."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...
    def add(
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
    ) -> int:
        """Add a message to the batch, with the arguments of `JetStream.publish`."""

    def commit(
        self,
        subject: str | None = None,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        rollup: Rollup | None = None,
        schedule: Schedule | None = None,
        timeout: float | None = None,
    ) -> BatchAck:
        """Store the batch, with one last message if a subject is given, and return its ack."""

    def outcome(self, *, timeout: float = 30.0) -> BatchAck | None:
        """Return the batch's ack if it is stored, and None if it is not and never will be."""

    def abandon(self) -> None:
        """Abandon the batch: nothing of it is stored. Abandoning twice is fine."""

class CachedKeyValue(Generic[T]):
    """A bucket that is read from memory; made by `KeyValue.cached`, used with `with`."""

    @property
    def name(self) -> str:
        """The bucket's name."""

    def __enter__(self) -> Self:
        """Fill the mirror; returns when it has all that the bucket holds."""

    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """Stop following the bucket and free everything; closing twice is fine."""

    def get(self, key: str) -> Entry[T] | None:
        """Return the entry of a key, or None if the key has no value."""

    def keys(self) -> list[str]:
        """Return the keys that have a value, in the order of their revisions."""

    def items(self) -> list[tuple[str, Entry[T]]]:
        """Return the keys with their entries, in the order of their revisions."""

    @property
    def unreadable(self) -> tuple[CodecError, ...]:
        """The errors of keys and values that cannot be decoded; empty while all can."""

    def __contains__(self, key: object) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    @property
    def is_caught_up(self) -> bool:
        """True when the mirror has all that the bucket held on entering the block."""

    @property
    def revision(self) -> int:
        """The newest revision received; everything up to it is in the mirror."""

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""

    @property
    def staleness(self) -> float:
        """How many seconds old the answers may be."""

    @property
    def size_bytes(self) -> int:
        """The memory of the mirror, about."""

    def wait_for(self, revision: int, *, timeout: float = 5.0) -> None:
        """Wait until the mirror has a revision, such as the result of `kv.put`."""

    def resync(self) -> int:
        """List the server's keys, drop all others, and return how many were dropped."""

    def changes(self) -> Iterator[Entry[T]]:
        """Return the changes from this call on: the newest entry of each key, deletions too."""

    def put(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value, wait until the mirror has it, and return its revision."""

    def create(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value if the key has none, and wait until the mirror has it."""

    def update(self, key: str, value: T, *, revision: int, ttl: Ttl | None = None) -> int:
        """Store a value if the newest revision is the expected one; wait until the mirror has it."""

    def delete(self, key: str, *, revision: int | None = None) -> int:
        """Mark a key as deleted, and wait until the mirror has the marker; raises as `put`."""

    def purge(self, key: str, *, revision: int | None = None, ttl: Ttl | None = None) -> int:
        """Mark a key as deleted, remove its history, and wait until the mirror has the marker."""

class ChainedPublisher:
    """Publishes the links of one writer; made by `Stream.chained`, used with `with`."""

    @property
    def head(self) -> ChainHead:
        """The newest link known to be stored; keep it elsewhere to detect a lost end."""

    def open(self) -> Self:
        """Find the writer's last link, and continue behind it."""

    def close(self) -> None:
        """Refuse further messages; closing twice is fine."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def send(
        self,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        timeout: float | None = None,
    ) -> PubAck:
        """Publish the next link and wait for its ack; it is sent again without one."""

class ChangeFeed:
    """The changes of a core stream, for one `for`; made by `AStream.changefeed`."""

    @property
    def is_closed(self) -> bool: ...
    def open(self) -> Self:
        """Follow the stream; what is stored from now on comes."""

    def close(self) -> None:
        """End the feed; closing twice is fine."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> FeedChange:
        """Return the next change; ends when the feed is closed."""

class ChunkReader:
    """Reads one value, or a part of it; made by `Chunks.open`, used with `with`."""

    @property
    def size(self) -> int:
        """Bytes in all: of the part, if a part is read."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """End the read; closing twice is fine."""

    def __iter__(self) -> Self:
        """Iterate pieces: first the rest of what `read` began, then as they are stored."""

    def __next__(self) -> bytes:
        """Return the next piece; no piece is empty."""

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes; fewer, or none, at the end."""

class Chunks:
    """Writes and reads values as chunks; made by `Stream.chunks`."""

    def put(
        self,
        subject: str,
        source: Source,
        *,
        chunk_size: int | None = None,
        progress: Progress | None = None,
        ack_timeout: float = 10.0,
    ) -> ChunkedValue:
        """Store a value and return its description, once all chunks are acknowledged."""

    def open(
        self, value: ChunkedValue, *, offset: int = 0, length: int | None = None
    ) -> ChunkReader:
        """Return a reader of a value, or of a part of it; nothing is sent before it is entered."""

    def remove(self, subject: str) -> int:
        """Remove a value's chunks and return how many there were."""

    def sweep(
        self,
        filter: str,
        used: Callable[[], Collection[str]],
        *,
        older_than: float | timedelta = 3600.0,
        dry_run: bool = False,
    ) -> SweepReport:
        """Remove the chunks of unused values whose writers are dead."""

class Connection:
    """A connection that is not open yet: `with` opens it and gives its JetStream."""

    def open(self) -> JetStream:
        """Connect and return the JetStream context; `close` ends it."""

    def close(self) -> None:
        """Close the connection; closing twice is fine."""

    def __enter__(self) -> JetStream: ...
    def __exit__(self, *_: object) -> None: ...

class ConnectionEvents:
    """The connection's events from now on; made by `JetStream.events`."""

    @property
    def dropped(self) -> int:
        """Events dropped so far because more than 1,000 were waiting."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """Listen no more; an iteration that waits ends. Closing twice is fine."""

    def __iter__(self) -> Iterator[ConnectionEvent]: ...
    def __next__(self) -> ConnectionEvent: ...

class Consumer:
    """A consumer of a stream; made by `stream.consumers`."""

    @property
    def name(self) -> str:
        """The consumer's name."""

    @property
    def stream(self) -> str:
        """Name of its stream."""

    @property
    def cached(self) -> ConsumerInfo:
        """Its info when it was opened; `info()` returns a fresh one."""

    @property
    def change(self) -> ConfigChange:
        """Whether the call that returned it created the consumer, changed fields, or did"""

    def info(self) -> ConsumerInfo:
        """Return the consumer's configuration and progress now."""

    def next(
        self,
        *,
        timeout: Duration = 5.0,
        heartbeat: Duration | None = None,
        group: str | None = None,
        priority: int | None = None,
        min_pending: int | None = None,
        min_ack_pending: int | None = None,
    ) -> DeliveredMessage | None:
        """Return the next message, or None when the server reports that none came in time."""

    def fetch(
        self,
        n: int,
        *,
        timeout: Duration = 5.0,
        max_bytes: int | None = None,
        no_wait: bool = False,
        heartbeat: Duration | None = None,
        group: str | None = None,
        priority: int | None = None,
        min_pending: int | None = None,
        min_ack_pending: int | None = None,
    ) -> FetchedMessages:
        """Return `n` messages as soon as they are there, or the fewer that came in time."""

    def consume(
        self,
        *,
        max_messages: int = 500,
        max_bytes: int | None = None,
        threshold: float = 0.5,
        expires: Duration = 30.0,
        heartbeat: Duration | None = None,
        stop_after: int | None = None,
        group: str | None = None,
        priority: int | None = None,
        min_pending: int | None = None,
        min_ack_pending: int | None = None,
    ) -> ConsumerMessages:
        """Return a steady flow of messages, to be used with `with` and `for`."""

    def subscribe(
        self, *, max_pending: int = 65536, max_pending_bytes: int = 67108864
    ) -> PushMessages:
        """Return the messages of a push consumer, to be used with `with` and `for`."""

    def run(
        self,
        handler: Callable[[DeliveredMessage], object],
        *,
        concurrency: int = 16,
        dead_letter: str | None = None,
        backoff: Sequence[float | timedelta] | Backoff | None = None,
        max_attempts: int | None = None,
        on_error: Callable[[BaseException, DeliveredMessage], object] | None = None,
        keepalive: bool = True,
        prefetch: int | None = None,
        confirm: bool = False,
        stop_timeout: float = 30.0,
        until_empty: bool = False,
    ) -> None:
        """Handle messages until the call is cancelled, or cannot continue."""

    def worker(
        self,
        handler: Callable[[DeliveredMessage], object],
        *,
        concurrency: int = 16,
        dead_letter: str | None = None,
        backoff: Sequence[float | timedelta] | Backoff | None = None,
        max_attempts: int | None = None,
        on_error: Callable[[BaseException, DeliveredMessage], object] | None = None,
        keepalive: bool = True,
        prefetch: int | None = None,
        confirm: bool = False,
        stop_timeout: float = 30.0,
    ) -> Worker:
        """Return a worker, to be used with `with`; arguments as in `run`."""

    def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        wait: bool = True,
        timeout: float | None = None,
    ) -> str | None:
        """Make the consumer's leader step down, and return the name of the next one."""

class ConsumerManager:
    """The consumers of a stream."""

    @property
    def stream(self) -> str:
        """Name of the stream."""

    def create(
        self, config: ConsumerConfig | str | None = None, **fields: Unpack[ConsumerFields]
    ) -> Consumer:
        """Create a consumer; an existing one is not changed."""

    def update(
        self, config: ConsumerConfig | str | None = None, **fields: Unpack[ConsumerFields]
    ) -> Consumer:
        """Change the fields that are given and leave all others as the server has them."""

    def ensure(
        self, config: ConsumerConfig | str | None = None, **fields: Unpack[ConsumerFields]
    ) -> Consumer:
        """Return the consumer with at least this configuration: create, update or leave it."""

    def diff(
        self, config: ConsumerConfig | str | None = None, **fields: Unpack[ConsumerFields]
    ) -> ConfigChange:
        """Return the changes that `ensure` would make, without making them."""

    def get(self, name: str) -> Consumer:
        """Return a consumer that exists."""

    def names(self) -> Iterator[str]:
        """Yield the names of all consumers."""

    def list(self, *, on_missing: Literal["raise", "report"] = "raise") -> Listing[ConsumerInfo]:
        """Return the infos of all consumers; read them with `for`."""

    def lags(self) -> dict[str, int]:
        """Return how many messages each consumer has not handled, the largest number first."""

    def delete(self, name: str) -> None:
        """Delete a consumer; messages without an ack stay in the stream."""

    def pause(
        self,
        name: str,
        *,
        until: datetime | int | None = None,
        duration: float | timedelta | None = None,
    ) -> ConsumerPause:
        """Pause delivery; messages already delivered can still be acked."""

    def resume(self, name: str) -> ConsumerPause:
        """Resume a paused consumer; one that is not paused stays as it is."""

    def reset(self, name: str, *, sequence: int | None = None) -> int:
        """Drop the state of delivered messages, and deliver again from a stream sequence."""

    def unpin(self, name: str, *, group: str) -> None:
        """Unpin the client of a priority group; the next client to pull is pinned."""

class ConsumerMessages:
    """Messages of a pull consumer; made by `Consumer.consume`, used with `with`."""

    def __enter__(self) -> Self:
        """Send the first pulls; waits for no answer."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End it, and give back its pin; see `stop` and `unpin`."""

    def __iter__(self) -> Self:
        """Iterate messages."""

    def __next__(self) -> DeliveredMessage:
        """Return the next message, and wait for it."""

    def take_ready(self) -> DeliveredMessage | None:
        """Return the next message if it arrived together with the last one, else None."""

    def events(self) -> Iterator[ReadEvent]:
        """Yield events: the classes in `natsstream.consume.delivery.events`."""

    def resize(self, max_messages: int) -> None:
        """Change `max_messages` from now on."""

    @property
    def waiting(self) -> int:
        """Buffered messages."""

    def buffered(self) -> list[DeliveredMessage]:
        """Return the buffered messages, such as to send `in_progress` for them."""

    @property
    def returned(self) -> int:
        """Buffered messages that its end has nak'ed."""

    @property
    def events_dropped(self) -> int:
        """Events dropped because they were not read in time."""

    @property
    def is_stopped(self) -> bool:
        """True once it was stopped, drained or left."""

    def drain(self) -> None:
        """Withdraw the open pulls; loops get the buffered messages, then end."""

    def hand_over(self, last_delivery: int | None) -> None:
        """Withdraw the open pulls and nak what is buffered; loops get what is kept, then end."""

    def stop(self) -> None:
        """End now: loops end, and buffered messages are nak'ed."""

    def unpin(self) -> None:
        """Give back the pin of a pinned priority group: the next reader that pulls is pinned."""

class Core:
    """Plain NATS; `js.core`."""

    def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        reply: str = "",
    ) -> None:
        """Send a message to whoever listens now; nobody says whether somebody does."""

    def request(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        timeout: float | None = None,
    ) -> CoreMessage:
        """Send a request and return the first answer."""

    def subscribe(
        self,
        subject: str,
        *,
        queue: str | None = None,
        max_pending: int = 65536,
        max_pending_bytes: int = 67108864,
        on_slow: Literal["raise", "drop"] = "raise",
    ) -> CoreSubscription:
        """Describe a subscription; `with` opens it, `for` reads it."""

    def drain(self) -> None:
        """End all subscriptions, but not what has arrived, which their readers still get."""

    def flush(self, *, timeout: float | None = None) -> None:
        """Wait until the server has taken all that was published, also acks and batches."""

    def rtt(self, *, timeout: float | None = None) -> float:
        """Return the seconds that a ping takes to the server and back."""

class CoreMessage:
    """A message that came without a stream."""

    @property
    def subject(self) -> str:
        """Where it was published."""

    @property
    def reply(self) -> str:
        """Where an answer is expected; empty for nowhere."""

    @property
    def data(self) -> bytes:
        """The payload."""

    @property
    def headers(self) -> Headers:
        """The headers, parsed when they are asked for."""

    def respond(self, data: bytes = b"", *, headers: HeaderValues | None = None) -> None:
        """Answer a request."""

class CoreStream:
    """A stream whose messages are in memory, always those that the server holds."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def raw(self) -> RawMessages:
        """The messages, not decoded, ascending by sequence."""

    @property
    def messages(self) -> Messages:
        """The values of `raw`, in the same order."""

    @property
    def kv(self) -> KeyValues:
        """The current message of each key."""

    def open(self) -> Self:
        """Create the stream if it is missing, load its messages and follow it."""

    def close(self) -> None:
        """Leave the stream; a shared one ends when all that opened it have closed it."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def publish(
        self,
        mesg: Any,
        *,
        headers: Mapping[str, object] | None = None,
        msg_id: str | None = None,
        key: str | None = None,
        previous_seq: int | None = None,
        ttl: int | None = None,
        timeout: float | None = None,
    ) -> Stored | None:
        """Store a message; when it returns, `messages` has it."""

    def publish_many(self, items: Sequence[PublishItem]) -> list[PublishResult]:
        """Store messages in order, many in flight; each has a result or an error of its own."""

    def publish_in_order(self, items: Sequence[PublishItem]) -> list[PublishResult]:
        """Store messages as `publish_many` does, and none before an earlier one that has failed."""

    @property
    def error(self) -> NatsStreamError | None:
        """The error that has ended the sync; None for none."""

    @property
    def encoding(self) -> Encoding:
        """The format of the values that it writes."""

    @property
    def conflates(self) -> bool:
        """True if values may be overwritten unseen, although this client is connected."""

    def check_ttl(self, ttl: int | None) -> None:
        """Refuse a `ttl` with which no message can be stored; None is none."""

    def set_kv(
        self,
        key: str,
        mesg: Any,
        *,
        headers: Mapping[str, object] | None = None,
        previous_seq: int | None = None,
        msg_id: str | None = None,
        ttl: int | None = None,
        timeout: float | None = None,
    ) -> Stored | None:
        """Set the value of a key; UNDEFINED deletes it. Arguments and errors as in `publish`."""

    def set_kv_many(self, items: Sequence[PublishItem]) -> list[PublishResult]:
        """Set many keys, each named in its item's options; as `publish_many`."""

    def delete_kv(
        self, key: str, *, msg_id: str | None = None, previous_seq: int | None = None
    ) -> Stored | None:
        """Delete a key by a tombstone, which other clients see; None if it has no value."""

    def tombstone(self, key: str, *, msg_id: str | None = None) -> PublishItem:
        """Return the message that deletes a key, for `publish_many`."""

    def newest_seq_kv(self, key: str) -> int:
        """Return the sequence of a key's newest message, a tombstone's too; 0 for none."""

    def get_kv(self, key: str, default: Any = ...) -> Any:
        """Return the value of a key, or the default."""

    def has_kv(self, key: str) -> bool:
        """Return True if a key has a value."""

    def get_all_kv(self) -> dict[str, Any]:
        """Return all keys with their values, as a new dict."""

    def keys_kv(self) -> list[str]:
        """Return all keys that have a value."""

    def seq_kv(self, key: str) -> int | None:
        """Return the sequence of a key's value; None for no value."""

    def headers_kv(self, key: str) -> Mapping[str, object] | None:
        """Return the user's headers of a key's value; None for none."""

    @overload
    def time_kv(self) -> dict[str, datetime]: ...
    @overload
    def time_kv(self, key: str) -> datetime | None: ...
    def time_kv(self, key: str | None = None) -> dict[str, datetime] | datetime | None:
        """Return when a key's value was stored, in UTC; of all keys without an argument."""

    @property
    def length_kv(self) -> int:
        """Number of keys that have a value."""

    def gc_kv(self) -> None:
        """Do nothing: replaced messages leave the arrays at once."""

    def __len__(self) -> int: ...
    @property
    def length(self) -> int:
        """Number of loaded messages, tombstones too."""

    @property
    def start_seq(self) -> int | None:
        """The first sequence that was asked for; None for all."""

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return values by position, as a list does."""

    def get(self, n: int | None = None, default: Any = ...) -> Any:
        """Return the value at a position, or the default; all values without an argument."""

    def get_all(self) -> list[Any]:
        """Return all values, as a new list."""

    def seq(self, n: int) -> int | None:
        """Return the sequence at a position; None for none."""

    def seqs(self) -> list[int]:
        """Return the sequences of all messages."""

    def headers(self, n: int) -> Mapping[str, object] | None:
        """Return the user's headers at a position; None for none."""

    def time(self, n: int) -> datetime | None:
        """Return when the message at a position was stored, in UTC; None for none."""

    def times(self) -> list[datetime]:
        """Return when each message was stored, in UTC."""

    def stats(self, *, start_seq: int = 1) -> StreamStats:
        """Return number and bytes of the loaded messages from a sequence on."""

    def to_arrow(self) -> pa.Table:
        """Return the loaded messages as an Arrow table, in the order of their sequences."""

    def to_pandas(self) -> pd.DataFrame:
        """Return the loaded messages as a pandas DataFrame, with the columns of `to_arrow`."""

    def inventory(self) -> CoreStreamInventory:
        """Return the numbers of the whole stream."""

    def load(self, *, start_seq: int, no_emit: bool = False) -> None:
        """Load older messages, down to a sequence; 0 is all of them."""

    def delete(
        self,
        *,
        all: bool = False,
        last_index: int | None = None,
        seq: int | None = None,
        seqs: Sequence[int] | None = None,
        last_seq: int | None = None,
        key: str | None = None,
    ) -> list[int]:
        """Delete messages, without tombstones; the first argument of this order counts."""

    def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, apply its limits, and return all of it."""

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function with each event of a name, in order; the arrays have a change already."""

    def off(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function no more."""

    def changes(self) -> Iterator[Change]:
        """Yield the changes from this call on; ends when the stream is closed."""

    @property
    def msg_ids(self) -> frozenset[str]:
        """The ids that this object has published, the newest 100,000."""

class CoreStreams:
    """Opens core streams; `js.core_stream` is the only one of a context."""

    def __call__(
        self,
        name: str,
        *,
        account_id: str | None = None,
        project_id: str | None = None,
        config: Mapping[str, object] | None = None,
        start_seq: int | None = None,
        ephemeral: bool = False,
        replicas: int | None = None,
        encoding: Encoding = ...,
        tombstone_ttl: int | None = 604800000,
        no_cache: bool = False,
        look_every: float = 30.0,
        service: str = "persist",
        prefix: str = "cn",
    ) -> CoreStream:
        """Open a core stream; it is created if it is missing."""

    def over(
        self,
        stream: Stream | str,
        *,
        start_seq: int | None = None,
        filters: Sequence[str] = (),
        look_every: float = 30.0,
    ) -> CoreStream:
        """Read any stream as a core stream, and follow it; nothing of it is changed."""

    def delete(
        self,
        name: str,
        *,
        account_id: str | None = None,
        project_id: str | None = None,
        service: str = "persist",
        prefix: str = "cn",
    ) -> bool:
        """Delete a core stream and its big values: all that a map or a log of this name holds, too."""

class CoreSubscription:
    """A subject that is listened to while the context is open; made by `Core.subscribe`."""

    @property
    def subject(self) -> str:
        """The subject, wildcards included."""

    @property
    def pending_count(self) -> int:
        """Messages that have arrived and are not read yet."""

    @property
    def dropped(self) -> int:
        """Messages dropped so far because the reader was too slow."""

    def open(self) -> Self:
        """Subscribe; `close` ends it. When it returns, the server knows of the subscription."""

    def drain(self) -> None:
        """End the subscription, but not what has arrived: the iteration ends after that."""

    def close(self) -> None:
        """End the subscription and drop what is not read; closing twice is fine."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def __iter__(self) -> Iterator[CoreMessage]: ...
    def __next__(self) -> CoreMessage: ...
    def next(self, timeout: float) -> CoreMessage | None:
        """Return the next message, None when none came within `timeout` seconds."""

class Counters:
    """The counters of the account, or those of one stream."""

    def ensure(self, config: StreamConfig | str, **fields: Unpack[StreamFields]) -> Counters:
        """Return the counters of a stream, and create the stream if it does not exist."""

    def incr(
        self,
        subject: str,
        delta: int = 1,
        *,
        msg_id: str | None = None,
        headers: HeaderValues | None = None,
        timeout: float | None = None,
    ) -> int:
        """Add to a counter and return its new total."""

    def get(self, subject: str) -> Counter | None:
        """Return a counter with its total, or None before its first `incr`."""

    def sources(self, subject: str) -> dict[str, dict[str, int]]:
        """Return the totals from other streams in a counter, by stream and by subject there."""

    def list(self, filter: str = ">") -> Iterator[Counter]:
        """Yield the counters whose subject matches."""

class DKO:
    """A map of dictionaries whose fields are saved each for itself."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def dkv(self) -> DKV:
        """The map below: lists of fields, and values of fields."""

    def close(self) -> None:
        """Leave, as `DKV.close`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...
    def set(self, key: str, value: Any) -> None:
        """Set an object here, and save the fields that differ; None and UNDEFINED delete it."""

    def delete(self, key: str) -> None:
        """Delete an object; one that is not there is ignored."""

    def clear(self) -> None:
        """Delete all objects that are known here."""

    def get(self, key: str, default: Any = ...) -> Any:
        """Return an object as a new dictionary, or the default."""

    def get_all(self) -> dict[str, dict[str, Any]]:
        """Return all objects."""

    def has(self, key: str) -> bool:
        """Return True if an object is there."""

    def keys(self) -> list[str]:
        """Return the keys of all objects."""

    @property
    def length(self) -> int:
        """Number of objects."""

    def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, and return all of it; see `CoreStream.config`."""

    def save(self) -> None:
        """Save all changes; errors and cost as for `DKV.save`."""

    def has_unsaved_changes(self) -> bool:
        """Return True if something is not saved; False after the end."""

    def unsaved_changes(self) -> list[tuple[str, str]]:
        """Return key and field of the values that are not saved."""

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function with each event of a name; it must not wait."""

    def off(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function no more."""

    def changes(self) -> Iterator[ObjectChange]:
        """Yield the changes from this call on; ends when the map is closed."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, key: object) -> bool: ...
    def __getitem__(self, key: str) -> dict[str, Any]: ...
    def __setitem__(self, key: str, value: Mapping[str, Any]) -> None: ...
    def __delitem__(self, key: str) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __delattr__(self, name: str) -> None: ...

class DKOs:
    """Opens maps of objects; `js.dko` is the only one of a context."""

    def __call__(
        self,
        name: str,
        *,
        desc: object = None,
        no_autosave: bool = False,
        **options: Unpack[CoreStreamArguments],
    ) -> DKO:
        """Open a map of objects; arguments, errors and cost as for `js.dkv`."""

class DKV:
    """A map whose writes are here at once, and on the server when they are saved."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def core(self) -> CoreStream:
        """The core stream: what the server holds."""

    def close(self) -> None:
        """Save what autosave has not saved yet, and leave; a shared one ends with the last user."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...
    def set(
        self,
        key: str,
        value: Any,
        *,
        headers: Mapping[str, object] | None = None,
        ttl: int | None = None,
    ) -> None:
        """Set a value here, and save it later; UNDEFINED deletes the key."""

    def set_many(self, values: Mapping[str, Any]) -> None:
        """Set many values; errors as in `set`, before which earlier ones are set."""

    def delete(self, key: str) -> None:
        """Delete a key here, and save that later; one without a value is ignored."""

    def clear(self) -> None:
        """Delete all keys that are known here."""

    @overload
    def get(self) -> dict[str, Any]: ...
    @overload
    def get(self, key: str, default: Any = ...) -> Any: ...
    def get(self, key: str | None = None, default: Any = ...) -> Any:
        """Return the value of a key, or the default; all keys without an argument."""

    def get_all(self) -> dict[str, Any]:
        """Return all keys with their values, as a new dict."""

    def has(self, key: str) -> bool:
        """Return True if a key has a value."""

    def keys(self) -> list[str]:
        """Return all keys that have a value."""

    @property
    def length(self) -> int:
        """Number of keys that have a value."""

    @overload
    def time(self) -> dict[str, datetime]: ...
    @overload
    def time(self, key: str) -> datetime | None: ...
    def time(self, key: str | None = None) -> dict[str, datetime] | datetime | None:
        """Return when a key's value was stored, in UTC; of all saved keys without an argument."""

    def seq(self, key: str) -> int | None:
        """Return the sequence of a key's saved value; None for none."""

    def headers(self, key: str) -> Mapping[str, object] | None:
        """Return the headers of a key's value, unsaved ones first; None for none."""

    def stats(self) -> StreamStats:
        """Return number and bytes of the saved messages."""

    def inventory(self) -> CoreStreamInventory:
        """Return the numbers of the core stream; see `CoreStream.inventory`."""

    def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, and return all of it; see `CoreStream.config`."""

    def save(self) -> None:
        """Save all changes; with `no_autosave`, by one attempt, which may leave some unsaved."""

    def has_unsaved_changes(self) -> bool:
        """Return True if something is not saved; False after the end."""

    def unsaved_changes(self) -> list[str]:
        """Return the keys whose values are not saved."""

    def is_stable(self) -> bool:
        """Return True if nothing is unsaved."""

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function with each event of a name; it must not wait."""

    def off(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function no more."""

    def changes(self) -> Iterator[KeyChange]:
        """Yield the changes from this call on; ends when the map is closed."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, key: object) -> bool: ...
    def __getitem__(self, key: str) -> Any: ...
    def __setitem__(self, key: str, value: Any) -> None: ...
    def __delitem__(self, key: str) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __delattr__(self, name: str) -> None: ...

class DKVs:
    """Opens maps; `js.dkv` is the only one of a context."""

    def __call__(
        self,
        name: str,
        *,
        desc: object = None,
        merge: Merge | None = None,
        no_autosave: bool = False,
        **options: Unpack[CoreStreamArguments],
    ) -> DKV:
        """Open a map; it is created if it is missing. Its messages may have a `ttl`."""

class DStream:
    """A log whose new messages are here at once, and on the server when they are saved."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def core(self) -> CoreStream:
        """The core stream: what the server holds."""

    def close(self) -> None:
        """Save what autosave has not saved yet, and leave; a shared one ends with the last user."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...
    def publish(
        self, mesg: Any, *, headers: Mapping[str, object] | None = None, ttl: int | None = None
    ) -> None:
        """Append a message here, and save it later."""

    def push(self, *values: Any) -> None:
        """Append messages here, and save them later; errors as in `publish`."""

    def delete(
        self,
        *,
        all: bool = False,
        last_index: int | None = None,
        seq: int | None = None,
        seqs: Sequence[int] | None = None,
        last_seq: int | None = None,
    ) -> list[int]:
        """Save, then delete messages; arguments, answer and errors as in `CoreStream.delete`."""

    @overload
    def get(self) -> list[Any]: ...
    @overload
    def get(self, n: int, default: Any = ...) -> Any: ...
    def get(self, n: int | None = None, default: Any = ...) -> Any:
        """Return the value at a position, or the default; all values without an argument."""

    def get_all(self) -> list[Any]:
        """Return all values, as a new list."""

    def seq(self, n: int) -> int | None:
        """Return the sequence at a position; None for none, and if it is not saved."""

    def seqs(self) -> list[int]:
        """Return the sequences of all saved messages."""

    def time(self, n: int) -> datetime | None:
        """Return when the message at a position was stored; None if it is not saved."""

    def times(self) -> list[datetime | None]:
        """Return when each message was stored; None for those that are not saved."""

    def headers(self, n: int) -> Mapping[str, object] | None:
        """Return the headers at a position; None for none, and if it is not saved."""

    @property
    def length(self) -> int:
        """Number of messages, unsaved ones too."""

    @property
    def start_seq(self) -> int | None:
        """The first sequence that was asked for; None for all."""

    def load(self, *, start_seq: int, no_emit: bool = False) -> None:
        """Load older messages, down to a sequence; see `CoreStream.load`."""

    def stats(self) -> StreamStats:
        """Return number and bytes of the saved messages that are loaded."""

    def inventory(self) -> CoreStreamInventory:
        """Return the numbers of the core stream; see `CoreStream.inventory`."""

    def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, and return all of it; see `CoreStream.config`."""

    def save(self) -> None:
        """Save all messages; with `no_autosave`, by one attempt, which may leave some unsaved."""

    def has_unsaved_changes(self) -> bool:
        """Return True if something is not saved; False after the end."""

    def unsaved_changes(self) -> list[Any]:
        """Return the values that are not saved."""

    def is_stable(self) -> bool:
        """Return True if nothing is unsaved."""

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function with each event of a name; it must not wait."""

    def off(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function no more."""

    def changes(self) -> Iterator[Change]:
        """Yield the changes from this call on; ends when the log is closed."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return values by position, as a list does."""

    def __iter__(self) -> Iterator[Any]: ...

class DStreams:
    """Opens logs; `js.dstream` is the only one of a context."""

    def __call__(
        self,
        name: str,
        *,
        desc: object = None,
        no_autosave: bool = False,
        **options: Unpack[CoreStreamArguments],
    ) -> DStream:
        """Open a log; it is created if it is missing."""

class DeadLetterQueue:
    """The letters of one dead-letter stream; made by `js.dead_letters`."""

    @property
    def name(self) -> str:
        """The stream's name."""

    def info(self) -> StreamInfo:
        """Return the dead-letter stream's configuration and state now."""

    def list(self, *, stream: str = "*", consumer: str = "*") -> Iterator[DeadLetter]:
        """Yield the letters that are there now."""

    def count(self, *, stream: str = "*", consumer: str = "*") -> int:
        """Return how many letters there are; arguments as in `list`."""

    def get(self, number: int) -> DeadLetter | None:
        """Return one letter, or None when there is none of this number."""

    def replay(
        self,
        letter: DeadLetter | int,
        *,
        to: str | None = None,
        keep_effects: bool = False,
        timeout: float | None = None,
    ) -> PubAck:
        """Republish a letter's message, then drop the letter."""

    def replay_all(
        self,
        *,
        to: str | None = None,
        stream: str = "*",
        consumer: str = "*",
        keep_effects: bool = False,
    ) -> int:
        """Replay all letters, oldest first; a letter without its message stays."""

    def drop(self, letter: DeadLetter | int) -> None:
        """Delete a letter, and release its message where it is stuck in its stream."""

    def drop_all(self, *, stream: str = "*", consumer: str = "*") -> int:
        """Drop all letters, or those of a stream or consumer; return how many."""

class DeadLetters:
    """The dead-letter streams of the account."""

    def ensure(
        self,
        name: str,
        *,
        stream: str | Sequence[str] | None = None,
        consumer: str | None = None,
        replicas: int | None = None,
        storage: Literal["file", "memory"] | None = None,
        max_age: float | timedelta | None = None,
        max_msgs: int | None = None,
        max_bytes: int | None = None,
    ) -> DeadLetterQueue:
        """Create a dead-letter stream, or add advisories to what an existing one captures."""

    def open(self, name: str) -> DeadLetterQueue:
        """Return a dead-letter stream that exists."""

class DeliveredMessage:
    """One delivery of a message: settle it with `ack`, `nak` or `term`."""

    @property
    def subject(self) -> str:
        """The subject under which it is stored."""

    @property
    def data(self) -> bytes:
        """The payload, as stored."""

    @property
    def sequence(self) -> int:
        """Its sequence in the stream, from 1."""

    @property
    def time_ns(self) -> int:
        """When the stream stored it, in Unix nanoseconds."""

    @property
    def pending(self) -> int:
        """Messages that its consumer had yet to deliver after it."""

    @property
    def meta(self) -> DeliveryMeta:
        """Stream, consumer, sequences, deliveries, time and what is pending."""

    @property
    def delivered(self) -> int:
        """How often the message was delivered, from 1."""

    @property
    def reply(self) -> bytes:
        """The ack subject, as it stood on the wire."""

    @property
    def header_block(self) -> bytes:
        """The headers, as they stood on the wire; empty for none."""

    @property
    def wire_bytes(self) -> int:
        """Bytes that the server counts for it: subject, reply, headers and payload."""

    @property
    def verdict(self) -> AckKind | None:
        """How it was acked; None while it is not."""

    @property
    def is_settled(self) -> bool:
        """True once it was acked, nak'ed or terminated."""

    @property
    def lease_s(self) -> float:
        """Seconds until the server redelivers it, unless it is acked or `in_progress` is sent."""

    def ack(self, *, confirm: bool = False, timeout: float | None = None) -> None:
        """Ack the message."""

    def nak(
        self,
        *,
        delay: float | timedelta | None = None,
        confirm: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Nak the message: the server redelivers it, to any reader of the consumer."""

    def term(
        self, *, reason: str = "", confirm: bool = False, timeout: float | None = None
    ) -> None:
        """Terminate the message: the server never redelivers it."""

    def in_progress(self) -> None:
        """Reset the message's `ack_wait`, because it is still being handled."""

    def ack_next(self, *, timeout: float = 5.0) -> DeliveredMessage | None:
        """Ack the message and return the next one, in one round trip (`+NXT`)."""

    def processing(
        self,
        *,
        keepalive: bool = True,
        backoff: Sequence[float | timedelta] | Backoff | None = None,
        confirm: bool = False,
    ) -> Processing:
        """Return a block that acks the message when it ends, or naks it on an exception."""

    def begin_verdict(self, verdict: AckKind) -> None:
        """Mark it as settled, before the ack is sent."""

    def take_verdict_back(self) -> None:
        """Mark it as not settled: the ack did not reach the server."""

    @property
    def headers(self) -> Headers:
        """Its headers; empty when it has none."""

    @property
    def stored_bytes(self) -> int:
        """Size of the payload in the stream, also if `headers_only` left it out."""

    @property
    def ttl(self) -> int | None:
        """Whole seconds after which it expires, as set by its publisher; -1 is never."""

    @property
    def marker_reason(self) -> str | None:
        """Why the server stored it as a delete marker; None if it is not a marker."""

    @property
    def time(self) -> datetime:
        """When the stream stored it, in UTC, cut to microseconds."""

class DirectReads:
    """Reads a stream through any of its replicas; made by `Stream.direct`."""

    def get(
        self,
        sequence: int | None = None,
        *,
        last_by_subject: str | None = None,
        next_by_subject: str | None = None,
        start_time: datetime | int | None = None,
    ) -> Message | None:
        """Return one message, or None when the replica that answers has none there."""

    def batch(
        self,
        count: int,
        *,
        first_seq: int | None = None,
        subject: str | None = None,
        start_time: datetime | int | None = None,
        max_bytes: int = 8388608,
        timeout: float | None = None,
    ) -> DirectBatch:
        """Return up to `count` messages in the order of their sequences, in one answer."""

    def latest(
        self,
        filters: Sequence[str] = (">",),
        *,
        last_seq: int | None = None,
        control: bool = False,
        timeout: float | None = None,
    ) -> DirectBatch:
        """Return the newest message of every subject, all as of one moment of the stream."""

class Election(Generic[T]):
    """An election on a key; made by `KeyValue.election`."""

    @property
    def name(self) -> str:
        """The key."""

    @property
    def candidate(self) -> str:
        """The name of this candidate."""

    @property
    def is_leader(self) -> bool:
        """True while this candidate leads, as far as this process can know."""

    def lead(self, *, timeout: float | None = None) -> Lock[T]:
        """Describe one term: `with election.lead() as term` waits until elected, and leads."""

    def run(self, work: Callable[[Lock[T]], object]) -> None:
        """Campaign, and work whenever elected, until the work returns."""

    def resign(self) -> None:
        """Resign; the term's block continues, and others may lead at once."""

    def leader(self) -> Leader | None:
        """Return the present leader, or None."""

    def changes(self) -> Iterator[Leader]:
        """Yield the leader, then each change, until the loop is left."""

class FastIngest:
    """Writes into a stream by fast batches; made by `Stream.ingest`."""

    @property
    def report(self) -> IngestReport:
        """The state of the messages; while the ingest is open, some are in flight."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...
    def send(
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
    ) -> int:
        """Send a message; the arguments are those of `JetStream.publish`."""

    def send_many(self, messages: Iterable[PublishMessage | tuple[str, Payload]]) -> int:
        """Send messages, each with its arguments or as (subject, data)."""

    def resume(self) -> None:
        """Go on with a new batch after the last one broke; nothing is sent again."""

    def close(self) -> IngestReport:
        """Wait until the stream has said what it has of all messages, and return the report."""

class FetchedMessages(list[DeliveredMessage]):
    """The messages of one fetch, in the order of delivery."""

    @property
    def error(self) -> NatsStreamError | None:
        """The error that ended the fetch early, behind the messages; None without one. A fetch"""

    @property
    def complete(self) -> bool:
        """True if `n` messages came, or `max_bytes` are used up."""

class IdempotentProducer:
    """Stores what is appended exactly once and in order; made by `js.producer`."""

    @property
    def producer_id(self) -> str:
        """The id that all instances of this producer share."""

    @property
    def epoch(self) -> int:
        """The epoch of this instance."""

    @property
    def next_seq(self) -> int:
        """The number of the next batch in the epoch, from 0."""

    @property
    def pending_count(self) -> int:
        """Messages in the batch that is being filled."""

    @property
    def in_flight_count(self) -> int:
        """Batches that were sent and are not acknowledged."""

    @property
    def buffered_bytes(self) -> int:
        """Bytes of all messages that are not known to be stored."""

    @property
    def last_offset(self) -> int | None:
        """The sequence of the last message that this instance has stored; None for none."""

    @property
    def recovered(self) -> Recovered | None:
        """The state in the stream when it was opened or restarted; None if there was none."""

    @property
    def guarantee(self) -> Guarantee:
        """The promise on this server."""

    def append(
        self,
        data: object,
        *,
        subject: str | None = None,
        headers: HeaderValues | None = None,
        checkpoint: object = None,
    ) -> None:
        """Take a message, to be stored soon; returns at once."""

    def append_many(
        self,
        messages: Iterable[object | tuple[str, object] | PublishMessage],
        *,
        checkpoint: object = None,
    ) -> None:
        """Take messages that are stored together, or not at all."""

    def checkpoint(self, position: object) -> None:
        """Store a position without a message, behind all that was appended before."""

    def append_wait(
        self,
        data: object,
        *,
        subject: str | None = None,
        headers: HeaderValues | None = None,
        checkpoint: object = None,
    ) -> AppendResult:
        """Append a message, and wait until it is stored."""

    def drain(self) -> None:
        """Wait until `append` has room, and few full batches wait: see `max_in_flight`."""

    def flush(self) -> None:
        """Wait until all that was appended so far is stored."""

    def detach(self, *, ignore_errors: bool = False) -> None:
        """Flush, and stop this instance; the stream stays open. Detaching twice is fine."""

    def restart(self) -> None:
        """Flush and begin the next epoch; also after an error."""

    def close(self, final: object = None) -> CloseResult:
        """Flush and end the stream: nobody appends to it any more."""

    def open(self) -> Self:
        """Read the state and claim the epoch; called by `js.producer`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...

class Inventories:
    """Opens inventories; `js.inventory` is the only one of a context."""

    def __call__(
        self,
        *,
        account_id: str | None = None,
        project_id: str | None = None,
        service: str = "persist",
    ) -> Inventory:
        """Open the inventory of an owner; calls with equal arguments share one object."""

class Inventory:
    """The maps and logs that programs have listed; made by `js.inventory()`."""

    def close(self) -> None:
        """Save and leave, as `DKV.close`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...
    def set(
        self, name: str, kind: StoreType, numbers: CoreStreamInventory, *, desc: Any = None
    ) -> None:
        """List a map ("kv") or a log ("stream"); None keeps its description."""

    def get(self, name: str, kind: StoreType | None = None) -> InventoryItem | None:
        """Return what is listed of a name; without a kind the map, or else the log."""

    def get_all(self, *, filter: str = "") -> list[InventoryItem]:
        """Return all items, the last listed first."""

    def get_stores(self, *, filter: str = "") -> list[DKV | DStream | DKO]:
        """Open all items; each is to be closed."""

    def delete(self, name: str, kind: StoreType) -> None:
        """Take a map or a log from the list; `js.core_stream.delete` deletes the stream itself."""

    def save(self) -> None:
        """Save all changes; errors and cost as for `DKV.save`."""

    def ls(self, *, filter: str = "") -> str:
        """Return a table of all items, a line each."""

class JetStream:
    """JetStream over one connection; made by `natsstream.connect`."""

    @property
    def kv(self) -> KeyValueManager:
        """Creates, finds and deletes key-value buckets."""

    @property
    def objects(self) -> ObjectStoreManager:
        """Creates, finds and deletes object stores."""

    @property
    def producer(self) -> Producers:
        """Opens idempotent producers: `await js.producer("ORDERS", "order-service-1")`."""

    @property
    def core_stream(self) -> CoreStreams:
        """Opens core streams: `await js.core_stream("chat")`."""

    @property
    def dstream(self) -> DStreams:
        """Opens logs that are written here first: `await js.dstream("chat")`."""

    @property
    def dkv(self) -> DKVs:
        """Opens maps that are written here first: `await js.dkv("settings")`."""

    @property
    def dko(self) -> DKOs:
        """Opens maps of objects that are saved field by field: `await js.dko("users")`."""

    @property
    def akv(self) -> AKVs:
        """Opens maps of which nothing is loaded: `await js.akv("settings")`."""

    @property
    def astream(self) -> AStreams:
        """Opens logs of which nothing is loaded: `await js.astream("chat")`."""

    @property
    def inventory(self) -> Inventories:
        """Opens lists of maps and logs with their sizes: `await js.inventory()`."""

    @property
    def streams(self) -> StreamManager:
        """Creates, finds and deletes streams."""

    @property
    def core(self) -> Core:
        """Plain NATS over the same connection: publish, subscribe, request."""

    @property
    def dead_letters(self) -> DeadLetters:
        """Lists, resends and drops messages that no handler could process."""

    @property
    def counters(self) -> Counters:
        """Counters on streams with `allow_msg_counter`."""

    @property
    def url(self) -> str:
        """The connected server, without secrets."""

    @property
    def api_prefix(self) -> str:
        """The subject prefix of JetStream API requests: `$JS.API`, a domain's, or an import's."""

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""

    @property
    def bounded_reconnect_s(self) -> float:
        """Seconds that a read with an end, or a call, waits for a reconnect."""

    def publish(
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
        retry_attempts: int = 2,
        retry_wait: float = 0.25,
    ) -> PubAck:
        """Publish one message to the stream that captures the subject, and wait for its ack."""

    def publisher(
        self,
        *,
        max_pending: int = 4096,
        max_pending_bytes: int = 33554432,
        ack_timeout: float = 5.0,
        retry_for: float | None = None,
        stream: str | None = None,
    ) -> Publisher:
        """Return a pipelined publisher, to be used with `with`."""

    def account(self) -> AccountInfo:
        """Return the account's JetStream limits and usage, and the API level."""

    @property
    def raw(self) -> Any:
        """nats-py's client under this connection, for features that natsstream lacks."""

    @property
    def has_fast_lane(self) -> bool:
        """False only for an attached WebSocket connection: everything works, but slower."""

    def advisories(
        self,
        *,
        kinds: Sequence[AdvisoryKind] = (),
        stream: str | None = None,
        consumer: str | None = None,
        domain: str | None = None,
        prefix: str = "$JS.EVENT",
        max_pending: int = 10000,
    ) -> Advisories:
        """Return JetStream's advisories from now on; `with` subscribes, `for` reads."""

    def events(self) -> ConnectionEvents:
        """Return the connection's events from now on; read them with `for`."""

    def drain(self) -> None:
        """Drain the subscriptions of `js.core`, then close the connection."""

    def close(self) -> None:
        """Close the connection; closing twice is fine."""

class KeyValue(Generic[T]):
    """A key-value bucket; `js.kv` returns it with values of bytes, `typed` with values of any type."""

    @property
    def name(self) -> str:
        """The bucket's name."""

    @property
    def config(self) -> BucketConfig:
        """The configuration when the bucket was opened; `status()` returns the present one."""

    @property
    def change(self) -> ConfigChange:
        """The change that `create`, `update` or `ensure` has made: created, updated, or none."""

    @property
    def stream(self) -> Stream:
        """The stream that holds the bucket, for backups, step-downs and reads of messages."""

    def status(self) -> BucketStatus:
        """Return what the bucket holds now, and its configuration."""

    def get(
        self, key: str, *, revision: int | None = None, consistent: bool = False
    ) -> Entry[T] | None:
        """Return the entry of a key, or None if the key has no value."""

    def keys(
        self, *filters: str, on_unreadable: Literal["raise", "leave_out"] = "raise"
    ) -> Iterator[str]:
        """Yield the keys that have a value, each once, in the order of their newest revisions."""

    def entries(
        self, *filters: str, on_unreadable: Literal["raise", "hand_out"] = "raise"
    ) -> Iterator[Entry[T]]:
        """Yield the newest entry of each key that has a value, in the order of their revisions."""

    def history(
        self, *filters: str, on_unreadable: Literal["raise", "hand_out"] = "raise"
    ) -> Iterator[Entry[T]]:
        """Yield all revisions that the bucket keeps of some keys, oldest first, with markers."""

    def revisions(
        self,
        *filters: str,
        first: int | None = None,
        last: int | None = None,
        created_ns: int | None = None,
        on_unreadable: Literal["raise", "hand_out"] = "raise",
    ) -> Iterator[Entry[T]]:
        """Yield the revisions in a range that the bucket still keeps, oldest first, with markers."""

    def watch(
        self,
        *filters: str,
        include_history: bool = False,
        ignore_deletes: bool = False,
        meta_only: bool = False,
        updates_only: bool = False,
        resume_after: int | None = None,
        created_ns: int | None = None,
        on_unreadable: Literal["raise", "hand_out"] = "raise",
    ) -> Watch[T]:
        """Describe a watch: the newest entry of each key, then every change."""

    def put(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value and return its revision."""

    def create(self, key: str, value: T, *, ttl: Ttl | None = None) -> int:
        """Store a value if the key has none, and return its revision."""

    def update(self, key: str, value: T, *, revision: int, ttl: Ttl | None = None) -> int:
        """Store a value if the key's newest revision is the expected one; return the new revision."""

    def put_guarded(self, key: str, value: T, *, guard: str, revision: int) -> int:
        """Store a value if another key is still at a revision; return the new revision."""

    def delete(self, key: str, *, revision: int | None = None) -> int:
        """Mark a key as deleted and return the marker's revision; its history stays."""

    def purge(self, key: str, *, revision: int | None = None, ttl: Ttl | None = None) -> int:
        """Mark a key as deleted, remove its history, and return the marker's revision."""

    def revert(self, key: str, revision: int) -> int:
        """Store an older value of a key as its newest one, and return the new revision."""

    def purge_deletes(self, *, older_than: float | timedelta = 1800.0) -> int:
        """Remove old markers, and the history before every marker; return how many revisions."""

    def purge_matching(self, *filters: str, ttl: Ttl | None = None) -> int:
        """Purge every key that has a value and matches a filter; return how many keys."""

    def typed(
        self,
        encode: ValueCodec[U] | Callable[[U], bytes],
        decode: Callable[[bytes], U] | None = None,
    ) -> KeyValue[U]:
        """Return this bucket with values of a type, instead of its present values."""

    def with_codec(
        self, *, keys: KeyCodec | None = None, values: ValueCodec | None = None
    ) -> KeyValue[T]:
        """Return this bucket with encoded keys or values; this object stays as it is."""

    def cached(
        self, *filters: str, max_bytes: int = 268435456, timeout: float = 30.0
    ) -> CachedKeyValue[T]:
        """Describe a local mirror of this bucket, to be used with `with`."""

    def lock(
        self,
        name: str,
        *,
        ttl: float = 10.0,
        timeout: float | None = 30.0,
        holder: str | None = None,
        on_loss: Literal["cancel", "tell"] = "cancel",
        margin: float | None = None,
    ) -> Lock[T]:
        """Describe a lock, to be used as `with kv.lock("jobs.nightly") as lock`."""

    def election(
        self,
        name: str,
        *,
        candidate: str | None = None,
        ttl: float = 10.0,
        margin: float | None = None,
    ) -> Election[T]:
        """Describe an election: `with election.lead() as term` waits until elected."""

class KeyValueManager:
    """The key-value buckets of an account; `js.kv`."""

    def create(self, config: BucketConfig | str, **fields: Unpack[BucketFields]) -> KeyValue[bytes]:
        """Create a bucket, or return the one that has this configuration already."""

    def update(self, config: BucketConfig | str, **fields: Unpack[BucketFields]) -> KeyValue[bytes]:
        """Change the given fields and leave all others as the server has them."""

    def ensure(self, config: BucketConfig | str, **fields: Unpack[BucketFields]) -> KeyValue[bytes]:
        """Return the bucket with this configuration: create, update or leave it."""

    def diff(self, config: BucketConfig | str, **fields: Unpack[BucketFields]) -> ConfigChange:
        """Return the change that `ensure` would make, and make none."""

    def get(self, name: str) -> KeyValue[bytes]:
        """Return a bucket that exists."""

    def delete(self, name: str) -> None:
        """Delete a bucket with all of its keys."""

    def list(self, *, on_missing: Literal["raise", "report"] = "raise") -> Listing[BucketStatus]:
        """Return the status of each bucket; read it with `for`."""

    def names(self) -> Iterator[str]:
        """Yield the names of all buckets: of all streams whose name begins with `KV_`."""

class KeyValues(Mapping[str, KeyedMessage]):
    """The current message of each key that has a value."""

    def record(self, key: str) -> Record | None:
        """Return the current record of a key; None for none."""

    def value(self, key: str) -> object:
        """Return the value of a key; UNDEFINED for none."""

    def __getitem__(self, key: str) -> KeyedMessage: ...
    def __contains__(self, key: object) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...

class Latest:
    """Follows the newest message of each subject; made by `Stream.latest`."""

    def __enter__(self) -> Self:
        """Find the start and make the first consumer."""

    @property
    def horizon(self) -> int:
        """The stream's last sequence when the block was entered; what lies behind came later."""

    def is_current(self) -> bool:
        """Ask the stream's leader whether all that it holds now has been taken."""

    def give_back(self, messages: Sequence[Message]) -> None:
        """Take back the end of what `batches` has yielded last: the next loop begins with it."""

    @property
    def report(self) -> OrderedReport:
        """Counts so far: messages, gaps, and why consumers were recreated."""

    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """Delete the consumer and free everything; loops that wait end. Closing twice is fine."""

    @property
    def next_seq(self) -> int:
        """The `first_seq` with which another `ordered` continues behind everything taken."""

    @property
    def created_ns(self) -> int:
        """The stream's identity; together with `next_seq` it is a position to resume at."""

    @property
    def end_seq(self) -> int | None:
        """Sequence of the record that has ended the stream, once the read has come to it."""

    @property
    def is_caught_up(self) -> bool:
        """True when all messages that existed when the block was entered have been taken."""

    def __iter__(self) -> Self:
        """Iterate messages: of what the loop before has left, then what comes."""

    def __next__(self) -> Message:
        """Return the next message, and wait for it."""

    def take_ready(self) -> Message | None:
        """Return the next message if it arrived together with the last one, else None."""

    def initial(self) -> Iterator[Message]:
        """Yield the messages that existed when the block was entered, then end."""

    def batches(self, *, until_caught_up: bool = False) -> Iterator[list[Message]]:
        """Yield lists of messages, as they arrive together."""

    def events(self) -> Iterator[ReadEvent]:
        """Yield `Recreated`, `HeartbeatsMissed`, `GapFound` and `EndFound`; ends on close."""

class Listing(Generic[InfoT]):
    """The infos of streams or consumers, or the statuses of buckets or object stores."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Names whose servers have not answered in time, in the loop so far."""

    @property
    def offline(self) -> Mapping[str, str]:
        """Names that no server can run now, with the reason, such as a field that is too new."""

    def __iter__(self) -> Iterator[InfoT]: ...

class Lock(Generic[T]):
    """A lock on a key that expires; made by `KeyValue.lock`, held in its `with` block."""

    @property
    def name(self) -> str:
        """The key."""

    @property
    def holder(self) -> str:
        """This holder's name, for others to see."""

    def __enter__(self) -> Self:
        """Wait for the lock and hold it."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release the lock."""

    def release(self) -> None:
        """Release the lock before the block ends; twice is fine."""

    @property
    def is_held(self) -> bool:
        """True while this holder has the lock, as far as this process can know."""

    @property
    def is_in_use(self) -> bool:
        """True while it is awaited or held: from entering it to its refusal, loss or release."""

    @property
    def token(self) -> int:
        """The fencing token: the revision of the acquisition; later holders have greater ones."""

    @property
    def revision(self) -> int:
        """The present revision of the key; renewals change it."""

    @property
    def remaining(self) -> float:
        """Seconds until this holder counts the lock as lost, unless renewed; 0 if not held."""

    def check(self) -> None:
        """Raise if the lock is not held."""

    def lost(self) -> LockLostError:
        """Wait until the lock is lost, and return the error."""

    def put(self, key: str, value: T) -> int:
        """Store a value of the same bucket if the lock is held, and return its revision."""

class Messages(Sequence[Any]):
    """The values of a core stream, as long as `raw` and in the same order."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...

class ObjectListing:
    """The infos of a store's objects, read with `for`; made by `ObjectStore.list`."""

    @property
    def unreadable(self) -> tuple[ObjectMetaError, ...]:
        """The errors of metas that the loop could not read and skipped, the newest 256."""

    @property
    def unreadable_count(self) -> int:
        """How many metas the loop could not read."""

    def __iter__(self) -> Iterator[ObjectInfo]: ...
    def infos(self) -> Iterator[ObjectInfo]:
        """Yield the infos of a loop over the listing; `aclose()` frees everything at once."""

class ObjectReader:
    """Reads an object, or a part of it; made by `ObjectStore.open`, used with `with`."""

    @property
    def info(self) -> ObjectInfo:
        """The info of the object; for a link, its target's."""

    @property
    def size(self) -> int:
        """Bytes in all: of the part, if a part is read."""

    def __enter__(self) -> Self:
        """Find the object."""

    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """End the read; closing twice is fine."""

    def __iter__(self) -> Self:
        """Iterate pieces: first the rest of what `read` began, then as they are stored."""

    def __next__(self) -> bytes:
        """Return the next piece; no piece is empty."""

    def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes; fewer, or none, at the end."""

class ObjectStore:
    """An object store: values of any size under names, as chunks in one stream."""

    @property
    def name(self) -> str:
        """The store's name."""

    @property
    def stream(self) -> Stream:
        """The store's stream, for backups, step-downs and the like."""

    @property
    def config(self) -> ObjectBucketConfig:
        """The store's configuration when it was opened."""

    @property
    def change(self) -> ConfigChange:
        """The change by the call that returned the store: created, updated or none."""

    def put(
        self,
        name: str,
        source: Source,
        *,
        description: str = "",
        headers: ObjectHeaders | None = None,
        metadata: Mapping[str, str] | None = None,
        chunk_size: int | None = None,
        retry_for: float = 30.0,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Store an object, and replace the one of this name."""

    def put_file(
        self,
        path: str | os.PathLike[str],
        name: str | None = None,
        *,
        description: str = "",
        headers: ObjectHeaders | None = None,
        metadata: Mapping[str, str] | None = None,
        chunk_size: int | None = None,
        retry_for: float = 30.0,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Store a file; see `put`."""

    def get(self, name: str) -> bytes | None:
        """Return all bytes of an object, verified; None if it does not exist or is deleted."""

    def get_file(
        self,
        name: str,
        path: str | os.PathLike[str],
        *,
        resume: bool = True,
        progress: Progress | None = None,
    ) -> ObjectInfo:
        """Write an object into a file, which is replaced in one step once all bytes are verified."""

    def open(self, name: str, *, offset: int = 0, length: int | None = None) -> ObjectReader:
        """Return a reader of an object, or of a part of it: `with box.open(name) as reader`."""

    def info(self, name: str, *, include_deleted: bool = False) -> ObjectInfo | None:
        """Return the info of an object, or None if it does not exist."""

    def update(
        self,
        name: str,
        *,
        new_name: str | None = None,
        description: str | None = None,
        headers: ObjectHeaders | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Change the texts or the name of an object; its bytes stay as they are."""

    def rename(self, name: str, new_name: str) -> ObjectInfo:
        """Give an object another name; see `update`."""

    def delete(self, name: str) -> None:
        """Delete an object: its bytes are removed, and a marker replaces its info."""

    def link(self, name: str, target: str | ObjectInfo) -> ObjectInfo:
        """Make a link to an object: a read of the link reads the target as it is then."""

    def link_bucket(self, name: str, bucket: str) -> ObjectInfo:
        """Make a link to a whole store, as a folder links to another folder."""

    def list(
        self, *, include_deleted: bool = False, on_unreadable: OnUnreadable = "report"
    ) -> ObjectListing:
        """Return the infos of all objects, links included; read them with `for`."""

    def names(self) -> Iterator[str]:
        """Yield the names of all objects, links included."""

    def watch(
        self,
        *,
        include_history: bool = False,
        ignore_deletes: bool = False,
        updates_only: bool = False,
        resume_after: int | None = None,
        created_ns: int | None = None,
        on_unreadable: OnUnreadable = "report",
    ) -> ObjectWatch:
        """Return a watch: the info of each object now, then every change."""

    def status(self) -> ObjectStoreStatus:
        """Return the store's status: its size and configuration now."""

    def seal(self) -> ObjectStoreStatus:
        """Refuse all writes and removals forever; the store itself can still be deleted."""

    def sweep(
        self, *, older_than: float | timedelta = 3600.0, dry_run: bool = False
    ) -> SweepReport:
        """Remove chunks of dead writers that no object points to, such as those of killed puts."""

class ObjectStoreManager:
    """The object stores of an account; `js.objects`."""

    def create(
        self, config: ObjectBucketConfig | str, **fields: Unpack[ObjectBucketFields]
    ) -> ObjectStore:
        """Create an object store, or return an existing one with this configuration."""

    def update(
        self, config: ObjectBucketConfig | str, **fields: Unpack[ObjectBucketFields]
    ) -> ObjectStore:
        """Change the given fields and leave all others as they are on the server."""

    def ensure(
        self, config: ObjectBucketConfig | str, **fields: Unpack[ObjectBucketFields]
    ) -> ObjectStore:
        """Return the store with at least this configuration: create, update or leave it."""

    def diff(
        self, config: ObjectBucketConfig | str, **fields: Unpack[ObjectBucketFields]
    ) -> ConfigChange:
        """Return the changes that `ensure` would make, and make none."""

    def get(self, name: str) -> ObjectStore:
        """Return an existing object store."""

    def delete(self, name: str) -> None:
        """Delete an object store with all its objects, also a sealed one."""

    def list(
        self, *, on_missing: Literal["raise", "report"] = "raise"
    ) -> Listing[ObjectStoreStatus]:
        """Return the status of each object store; read it with `for`."""

    def names(self) -> Iterator[str]:
        """Yield the names of all object stores."""

class ObjectWatch:
    """Follows an object store; made by `ObjectStore.watch`."""

    def __enter__(self) -> Self:
        """Find the start and create the first consumer."""

    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """Delete the consumer and free everything; waiting loops end. Closing twice is fine."""

    @property
    def revision(self) -> int:
        """The last revision taken: `resume_after` of a watch that continues here."""

    @property
    def created_ns(self) -> int:
        """The store's identity: a store that was created again has another one."""

    @property
    def is_caught_up(self) -> bool:
        """True once every info that was stored when the block was entered has been taken."""

    @property
    def report(self) -> OrderedReport:
        """The watch so far: messages received, and why consumers were created again."""

    @property
    def unreadable(self) -> tuple[ObjectMetaError, ...]:
        """The errors of metas that could not be read and were skipped, the newest 256."""

    @property
    def unreadable_count(self) -> int:
        """How many metas could not be read."""

    def __iter__(self) -> Self:
        """Iterate infos: the rest of an earlier loop, then new ones."""

    def __next__(self) -> ObjectInfo:
        """Wait for the next info and return it."""

    def initial(self) -> Iterator[ObjectInfo]:
        """Yield the infos that were stored when the block was entered, then end."""

    def events(self) -> Iterator[ReadEvent]:
        """Return the watch's events, `Recreated` and `HeartbeatsMissed`; they end on close."""

class OrderedConsumer:
    """Follows a stream in order, each message once; made by `Stream.ordered`."""

    @property
    def report(self) -> OrderedReport:
        """Counts so far: messages, gaps, and why consumers were recreated."""

    def __enter__(self) -> Self:
        """Find the start and make the first consumer."""

    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """Delete the consumer and free everything; loops that wait end. Closing twice is fine."""

    @property
    def next_seq(self) -> int:
        """The `first_seq` with which another `ordered` continues behind everything taken."""

    @property
    def created_ns(self) -> int:
        """The stream's identity; together with `next_seq` it is a position to resume at."""

    @property
    def end_seq(self) -> int | None:
        """Sequence of the record that has ended the stream, once the read has come to it."""

    @property
    def is_caught_up(self) -> bool:
        """True when all messages that existed when the block was entered have been taken."""

    def __iter__(self) -> Self:
        """Iterate messages: of what the loop before has left, then what comes."""

    def __next__(self) -> Message:
        """Return the next message, and wait for it."""

    def take_ready(self) -> Message | None:
        """Return the next message if it arrived together with the last one, else None."""

    def initial(self) -> Iterator[Message]:
        """Yield the messages that existed when the block was entered, then end."""

    def batches(self, *, until_caught_up: bool = False) -> Iterator[list[Message]]:
        """Yield lists of messages, as they arrive together."""

    def events(self) -> Iterator[ReadEvent]:
        """Yield `Recreated`, `HeartbeatsMissed`, `GapFound` and `EndFound`; ends on close."""

class Processing:
    """Settles one message by how its block ends; made by `DeliveredMessage.processing`."""

    def __enter__(self) -> DeliveredMessage: ...
    def __exit__(self, _kind: object, error: BaseException | None, *_: object) -> bool: ...

class Producers:
    """Opens producers; `js.producer` is the only one of a context."""

    def __call__(
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
        max_batch_bytes: int = ...,
        max_batch_messages: int = 997,
        linger: float = 0.005,
        max_in_flight: int = 5,
        max_buffered_bytes: int = ...,
        delivery_timeout: float = 60.0,
        max_claims: int = 3,
        eof_guard: bool = True,
        on_error: Callable[[NatsStreamError], object] | None = None,
    ) -> IdempotentProducer:
        """Open a producer whose messages are stored exactly once and in order."""

class Publisher:
    """Publishes without waiting for each ack; made by `JetStream.publisher`."""

    @property
    def pending_count(self) -> int:
        """Messages whose ack is in flight."""

    @property
    def pending_bytes(self) -> int:
        """Bytes of the messages whose ack is in flight."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...
    def send(
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
    ) -> Answer[PubAck]:
        """Send a message; waits only while the window is full."""

    def send_many(self, messages: Iterable[PublishMessage | tuple[str, Payload]]) -> list[PubAck]:
        """Send messages and wait for all of their acks."""

    def flush(self) -> None:
        """Wait for the acks of everything sent so far."""

class PushMessages:
    """The messages of a push consumer; made by `Consumer.subscribe`."""

    @property
    def pending_count(self) -> int:
        """Buffered messages."""

    @property
    def dropped(self) -> int:
        """Messages dropped: the reader was too slow for a consumer without flow control."""

    @property
    def missed(self) -> int:
        """Deliveries that did not arrive, as while the connection was broken."""

    def open(self) -> Self:
        """Subscribe; `close` ends it. When it returns, the server sends."""

    def drain(self) -> None:
        """Unsubscribe; the loop gets the buffered messages, then ends."""

    def close(self) -> None:
        """End it and nak buffered messages; closing twice is fine."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End it; see `close`."""

    def __iter__(self) -> Self:
        """Iterate the messages."""

    def __next__(self) -> DeliveredMessage:
        """Return the next message, and wait for it."""

    def next(self, *, timeout: float) -> DeliveredMessage | None:
        """Return the next message, None when none came within `timeout` seconds."""

    def events(self) -> Iterator[ReadEvent]:
        """Yield events: `HeartbeatsMissed`, `Reconnected`, `DeliveriesMissed`,"""

class RawMessages(Sequence[RawMessage]):
    """The messages of a core stream, ascending by sequence."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, index: int) -> RawMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[RawMessage]: ...
    def __getitem__(self, index: int | slice) -> RawMessage | list[RawMessage]: ...
    def __iter__(self) -> Iterator[RawMessage]: ...

class Stream:
    """A stream on the server; made by `js.streams`."""

    @property
    def name(self) -> str:
        """The stream's name."""

    @property
    def cached(self) -> StreamInfo:
        """Its info when it was opened; `info()` returns a fresh one."""

    @property
    def change(self) -> ConfigChange:
        """Whether the call that returned it created the stream, changed fields, or did"""

    def info(self, *, subjects: str | None = None, deleted_details: bool = False) -> StreamInfo:
        """Return the stream's configuration and state now."""

    def subjects(self, filter: str = ">", *, top: int | None = None) -> list[SubjectCount]:
        """Return the stream's subjects, those with the most messages first."""

    def subject_counts(self, filter: str = ">") -> Iterator[SubjectCount]:
        """Yield the stream's subjects by name, for streams with very many."""

    def gaps(self) -> list[DeletedRange]:
        """Return the ranges of sequences between the first and the last that hold no message."""

    def get(
        self,
        sequence: int | None = None,
        *,
        last_by_subject: str | None = None,
        next_by_subject: str | None = None,
        start_time: datetime | int | None = None,
    ) -> Message | None:
        """Return one message, or None when the stream has none there."""

    @property
    def direct(self) -> DirectReads:
        """Reads that any replica answers: fast, spread over the cluster, and possibly stale."""

    def read(
        self,
        *,
        first_seq: int | None = None,
        last_seq: int | None = None,
        filters: Sequence[str] = (),
        start_time: datetime | int | None = None,
        end_time: datetime | int | None = None,
        newest: int | None = None,
        headers_only: bool = False,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
        eviction_is_loss: bool = False,
        until_closed: bool = False,
        control: bool = False,
        max_pending_bytes: int = 16777216,
    ) -> StreamRange:
        """Describe a bounded read; iterate the result for messages, or call it for columns."""

    def ordered(
        self,
        *,
        filters: Sequence[str] = (),
        first_seq: int | None = None,
        start_time: datetime | int | None = None,
        newest: int | None = None,
        deliver_policy: DeliverPolicy = "all",
        headers_only: bool = False,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
        until_closed: bool = False,
        control: bool = False,
    ) -> OrderedConsumer:
        """Describe an ordered consumer: stored messages, then new ones, once and in order."""

    def latest(
        self,
        *,
        filters: Sequence[str] = (),
        include_history: bool = False,
        updates_only: bool = False,
        headers_only: bool = False,
        consistent: bool = False,
        first_seq: int | None = None,
        created_ns: int | None = None,
        control: bool = False,
    ) -> Latest:
        """Describe a read of the newest message of each subject, then of new messages."""

    def data_filters(self) -> list[str]:
        """Return filters that match all messages but the control records of producers."""

    def publish(
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
        retry_attempts: int = 2,
        retry_wait: float = 0.25,
    ) -> PubAck:
        """Publish one message into this stream and wait for its ack."""

    def batch(self, *, max_messages: int = 1000, idle_timeout: float = 10.0) -> AtomicBatch:
        """Describe an atomic batch: messages that the stream stores together, or not at all."""

    def ingest(
        self,
        *,
        on_gap: Literal["fail", "ok"] = "fail",
        ack_every: int = 500,
        max_outstanding_acks: int = 2,
        ack_timeout: float = 10.0,
        idle_timeout: float = 10.0,
    ) -> FastIngest:
        """Describe a fast batch: the fastest way to store many messages in order."""

    @property
    def schedules(self) -> StreamSchedules:
        """The stream's schedules: listed and ended; they need `allow_msg_schedules`."""

    @property
    def counters(self) -> Counters:
        """The stream's counters: added to and read; they need `allow_msg_counter`."""

    @property
    def chunks(self) -> Chunks:
        """Values too large for one message, each as chunks under a subject of its own."""

    def chained(
        self,
        *,
        writer: str,
        key: bytes | None = None,
        filters: Sequence[str] = (),
        exclusive: bool = False,
        resume: ChainHead | None = None,
    ) -> ChainedPublisher:
        """Return a publisher of links: a message that was changed, removed, moved or added shows."""

    def verify_chain(
        self,
        *,
        key: bytes | None = None,
        writers: Sequence[str] | None = None,
        since: Mapping[str, ChainHead] | None = None,
        head: Mapping[str, ChainHead] | None = None,
        filters: Sequence[str] = (),
        on_break: Literal["raise", "report"] = "raise",
    ) -> ChainReport:
        """Read the stream and report the first broken link of each writer."""

    @property
    def consumers(self) -> ConsumerManager:
        """The stream's consumers: created, found, changed and deleted."""

    def step_down(
        self,
        *,
        preferred: str | None = None,
        cluster: str | None = None,
        tags: Sequence[str] = (),
        wait: bool = True,
        timeout: float | None = None,
    ) -> str | None:
        """Make the stream's leader step down, and return the name of the next one."""

    def remove_peer(self, name: str) -> None:
        """Take the stream's replica from a server; the cluster makes one on another server."""

    def backup(
        self,
        path: str | Path,
        *,
        consumers: bool = True,
        check: bool = False,
        chunk_size: int | None = None,
        on_progress: Callable[[BackupProgress], object] | None = None,
        timeout: float | None = None,
    ) -> BackupInfo:
        """Write the stream into a new folder, as the nats CLI does; each restores the other's."""

    def purge(self, *, subject: str = ">", last_seq: int = ..., keep: int = 0) -> int:
        """Remove messages and return how many; without arguments all of them."""

    def delete_message(self, sequence: int, *, secure: bool = False) -> None:
        """Delete one message; readers skip its sequence."""

    def seal(self) -> StreamInfo:
        """Forbid all writes and removals for ever; the stream itself can still be deleted."""

    def delete(self) -> None:
        """Delete the stream with all its messages and consumers, also a sealed one."""

class StreamManager:
    """The streams of the account."""

    def create(self, config: StreamConfig | str, **fields: Unpack[StreamFields]) -> Stream:
        """Create a stream; an existing one is not changed."""

    def update(self, config: StreamConfig | str, **fields: Unpack[StreamFields]) -> Stream:
        """Change the fields that are given and leave all others as the server has them."""

    def ensure(self, config: StreamConfig | str, **fields: Unpack[StreamFields]) -> Stream:
        """Return the stream with at least this configuration: create, update or leave it."""

    def diff(self, config: StreamConfig | str, **fields: Unpack[StreamFields]) -> ConfigChange:
        """Return the changes that `ensure` would make, without making them."""

    def get(self, name: str) -> Stream:
        """Return a stream that exists."""

    def find(self, subject: str) -> str | None:
        """Return the name of the stream that captures a subject, or None."""

    def delete(self, name: str) -> None:
        """Delete a stream with all of its messages."""

    def restore(
        self,
        path: str | Path,
        *,
        name: str | None = None,
        on_progress: Callable[[RestoreProgress], object] | None = None,
        timeout: float | None = None,
        **fields: Unpack[StreamFields],
    ) -> Stream:
        """Create a stream from a folder that `Stream.backup` or `nats stream backup` wrote."""

    def names(self, *, subject: str | None = None) -> Iterator[str]:
        """Yield the names of all streams, or of those that capture a subject or filter."""

    def list(
        self, *, subject: str | None = None, on_missing: Literal["raise", "report"] = "raise"
    ) -> Listing[StreamInfo]:
        """Return the infos of all streams, or of those that capture a subject or filter."""

    def copy(
        self,
        source: str,
        name: str,
        *,
        messages: bool = False,
        timeout: float = 60.0,
        **changes: Unpack[StreamFields],
    ) -> Stream:
        """Create a stream with the configuration of another, and on request with its messages."""

    def template(
        self,
        pattern: str,
        *,
        name: str | None = None,
        max_streams: int = 1000,
        **fields: Unpack[StreamFields],
    ) -> StreamTemplate:
        """Create streams for the subjects of a pattern, when this connection publishes to them."""

class StreamRange:
    """Messages of a stream from one sequence or moment to another."""

    @property
    def report(self) -> ReadReport:
        """Counts and gaps of the newest read of this range."""

    def __iter__(self) -> Iterator[Message]:
        """Yield each message in order."""

    def runs(self) -> Iterator[list[Message]]:
        """Yield lists of messages in order, as they arrive together."""

    def batches(
        self, columns: Sequence[str] | None = None, *, time_unit: Literal["ns", "us"] = "ns"
    ) -> Iterator[pa.RecordBatch]:
        """Yield Arrow record batches in order, of about 1 MiB each."""

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the whole range as one Arrow table, held in memory."""

    def to_pandas(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the whole range as a pandas DataFrame, held in memory."""

    def schema(self, columns: Sequence[str] | None = None) -> pa.Schema:
        """Return the Arrow schema of `to_arrow`; nothing is read."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hand the range to polars, DuckDB or pyarrow; only one of `natsstream.blocking` can be."""

    def bounds(self) -> tuple[int, int]:
        """Return the first and the last sequence that a read would cover now, both inclusive."""

class StreamSchedules:
    """The schedules of one stream: `stream.schedules`."""

    def get(self, subject: str) -> ScheduledMessage | None:
        """Return the schedule on a subject; None if its last message is not a schedule."""

    def list(self, filters: Sequence[str] = ()) -> Iterator[ScheduledMessage]:
        """Yield the stream's schedules, in the order in which they were stored."""

    def cancel(self, subject: str) -> bool:
        """Cancel the schedule on a subject; it fires no more."""

    def cancel_by_publish(
        self,
        scheduled: str,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        timeout: float | None = None,
    ) -> PubAck:
        """Publish a message that cancels a schedule; the server does both or neither."""

class Watch(Generic[T]):
    """Follows keys of a bucket; made by `KeyValue.watch`."""

    def __enter__(self) -> Self:
        """Find the start and make the first consumer."""

    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None:
        """Delete the consumer and free everything; waiting loops end. Closing twice is fine."""

    @property
    def revision(self) -> int:
        """The last revision taken: `resume_after` of a watch that continues this one."""

    @property
    def created_ns(self) -> int:
        """The bucket's identity; with `revision` it is a position in this bucket alone."""

    @property
    def is_caught_up(self) -> bool:
        """True when every entry that the bucket held on entering the block has been taken."""

    @property
    def report(self) -> OrderedReport:
        """Counts so far: revisions received, and why consumers were made again."""

    def is_current(self) -> bool:
        """Ask the bucket's leader whether every entry that it holds now has been taken."""

    def __iter__(self) -> Self:
        """Iterate entries: those that the last loop has left, then new ones."""

    def __next__(self) -> Entry[T]:
        """Wait for the next entry and return it."""

    def take_ready(self) -> Entry[T] | None:
        """Return the next entry if it arrived together with the last one, else None."""

    def initial(self) -> Iterator[Entry[T]]:
        """Yield the entries that the bucket held on entering the block, then end."""

    def batches(self, *, until_caught_up: bool = False) -> Iterator[list[Entry[T]]]:
        """Yield lists of entries as they arrive together; no list is empty."""

    def events(self) -> Iterator[ReadEvent]:
        """Return the watch's events, `Recreated` and `HeartbeatsMissed`; they end on close."""

class Worker:
    """Handlers that run side by side; made by `Consumer.worker`."""

    @property
    def report(self) -> WorkReport:
        """Its counts so far, and the error that has ended it."""

    @property
    def options(self) -> WorkOptions:
        """How it works."""

    @property
    def is_running(self) -> bool:
        """True while it takes messages, or handlers still run."""

    def open(self) -> Self:
        """Begin to work; `stop` or `drain` ends it."""

    def wait(self) -> None:
        """Wait until it has ended: it was stopped or drained, or has failed."""

    def wait_until_empty(self) -> None:
        """Wait until its consumer has no message that is not settled, or as `wait`."""

    def stop(self, *, timeout: float | None = None) -> None:
        """Take no more messages, let running handlers finish, nak the rest."""

    def drain(self, *, timeout: float | None = None) -> None:
        """Stop pulling, handle the buffered messages, then end; in a handler as `stop`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...
