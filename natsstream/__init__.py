"""A JetStream layer for Python: streams, views and Spark over a real nats-server.

Importing this package, or touching any of its names, imports neither nats-py nor pyarrow: they
load when a connection is opened and when columns are asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from natsstream import advisories, errors, events
from natsstream.connection import Connection, attach, connect
from natsstream.errors import (
    ConfigError,
    IntegrityError,
    NatsStreamError,
    ServerError,
    TransportError,
    UsageError,
)
from natsstream.options import ConnectOptions

if TYPE_CHECKING:
    from natsstream.api.account import AccountInfo
    from natsstream.api.cluster_info import Alternate, ClusterInfo, ReplicaInfo, SourceInfo
    from natsstream.api.config_fields import (
        BucketFields,
        ConsumerFields,
        ObjectBucketFields,
        StreamFields,
    )
    from natsstream.api.consumer_config import ConsumerConfig
    from natsstream.api.consumer_info import (
        ConsumerInfo,
        ConsumerPause,
        ConsumerProgress,
        PriorityGroupState,
    )
    from natsstream.api.diff import ConfigChange, FieldChange
    from natsstream.api.listing import Listing
    from natsstream.api.message import Message
    from natsstream.api.settings.limits import ConsumerLimits
    from natsstream.api.settings.mapping import Republish, SubjectTransform
    from natsstream.api.settings.placement import Placement
    from natsstream.api.settings.source import ExternalStream, SourceConsumer, StreamSource
    from natsstream.api.stream_config import StreamConfig
    from natsstream.api.stream_info import DeletedRange, StreamInfo, StreamState
    from natsstream.conat.akv import AKV
    from natsstream.conat.astream import AStream
    from natsstream.conat.change_feed import ChangeFeed, FeedChange
    from natsstream.conat.codes import conat_code
    from natsstream.conat.configuration import Configuration
    from natsstream.conat.core_stream import CoreStream, CoreStreamInventory, StreamStats
    from natsstream.conat.dko import DKO, ObjectChange
    from natsstream.conat.dkv import DKV, KeyChange, RejectedKey
    from natsstream.conat.dstream import DStream, RejectedMessage
    from natsstream.conat.inventory import Inventory, InventoryItem
    from natsstream.conat.layer_options import CoreStreamArguments, LeaderArguments
    from natsstream.conat.layers import AKVs, AStreams, DKOs, DKVs, DStreams, Inventories
    from natsstream.conat.leader import StoredMessage
    from natsstream.conat.manager import CoreStreams
    from natsstream.conat.undefined import UNDEFINED, Undefined
    from natsstream.conat.unsaved_keys import TOMBSTONE, Conflict, Tombstone
    from natsstream.conat.values import Encoding
    from natsstream.conat.views import Change, KeyedMessage, RawMessage
    from natsstream.conat.writer import PublishItem, PublishOptions, PublishResult, Stored
    from natsstream.consume.dead_letters.letter import DeadLetter
    from natsstream.consume.dead_letters.manager import DeadLetters
    from natsstream.consume.dead_letters.queue import DeadLetterQueue
    from natsstream.consume.delivery.ack_kinds import AckKind, Reject, Retry
    from natsstream.consume.delivery.backoff import Backoff
    from natsstream.consume.delivery.delivered import DeliveredMessage
    from natsstream.consume.delivery.events import (
        ConsumerDeleted,
        ConsumerRecreated,
        DeliveriesMissed,
        DeliverSubjectChanged,
        LeaderChanged,
        LimitExceeded,
        Pinned,
        Reconnected,
        Unpinned,
    )
    from natsstream.consume.delivery.meta import DeliveryMeta
    from natsstream.consume.pull.fetching import FetchedMessages
    from natsstream.consume.pull.messages import ConsumerMessages
    from natsstream.consume.push.subscription import PushMessages
    from natsstream.consume.work.report import WorkReport
    from natsstream.consume.work.worker import Worker
    from natsstream.core.advisories.reader import Advisories
    from natsstream.core.core import Core
    from natsstream.core.message import CoreMessage
    from natsstream.core.subscription import CoreSubscription
    from natsstream.jetstream import JetStream
    from natsstream.kv.cache.cached import CachedKeyValue
    from natsstream.kv.codecs import (
        Base64Keys,
        Base64Values,
        ChainedKeys,
        ChainedValues,
        FilterKeyCodec,
        KeyCodec,
        PathKeys,
        ValueCodec,
    )
    from natsstream.kv.config import BucketConfig
    from natsstream.kv.entry import Entry
    from natsstream.kv.formats import JSON, MSGPACK, RAW, TEXT, ValueFormat
    from natsstream.kv.key_value import KeyValue
    from natsstream.kv.locks.elections import Election, Leader
    from natsstream.kv.locks.locks import Lock
    from natsstream.kv.manager import KeyValueManager
    from natsstream.kv.status import BucketStatus
    from natsstream.kv.watch import Watch
    from natsstream.objects.config import ObjectBucketConfig
    from natsstream.objects.info import ObjectInfo, ObjectLink, ObjectOptions
    from natsstream.objects.manager import ObjectStoreManager
    from natsstream.objects.reader import ObjectReader
    from natsstream.objects.status import ObjectStoreStatus
    from natsstream.objects.store import ObjectStore
    from natsstream.objects.watch import ObjectListing, ObjectWatch
    from natsstream.producer.manager import Producers
    from natsstream.producer.producer import (
        AppendResult,
        CloseResult,
        IdempotentProducer,
        Recovered,
    )
    from natsstream.publish.batches.atomic import AtomicBatch
    from natsstream.publish.batches.atomic_rules import BatchAck
    from natsstream.publish.batches.fast import FastIngest
    from natsstream.publish.batches.fast_state import IngestRefusal, IngestReport, IngestSpan
    from natsstream.publish.outgoing import Expect, PublishMessage
    from natsstream.publish.pub_ack import PubAck
    from natsstream.publish.publisher import Publisher
    from natsstream.publish.schedule import Schedule
    from natsstream.read.direct.answers import DirectBatch
    from natsstream.read.direct.reads import DirectReads
    from natsstream.read.latest.latest import Latest
    from natsstream.read.ordered import OrderedConsumer
    from natsstream.read.progress import Gap, ReadReport
    from natsstream.read.ranges import StreamRange
    from natsstream.read.read_events import (
        EndFound,
        GapFound,
        HeartbeatsMissed,
        OrderedReport,
        ReadEvent,
        Recreated,
    )
    from natsstream.streams.chain.links import ChainHead
    from natsstream.streams.chain.verify import BrokenLink, ChainReport
    from natsstream.streams.chain.writer import ChainedPublisher
    from natsstream.streams.chunks.chunks import Chunks
    from natsstream.streams.chunks.getting import ChunkReader
    from natsstream.streams.chunks.sweeping import SweepReport
    from natsstream.streams.chunks.value import ChunkedValue
    from natsstream.streams.consumers.consumer import Consumer
    from natsstream.streams.counters.counter import Counter
    from natsstream.streams.counters.counters import Counters
    from natsstream.streams.schedules import ScheduledMessage, StreamSchedules
    from natsstream.streams.snapshots.folder import BackupInfo
    from natsstream.streams.snapshots.progress import BackupProgress, RestoreProgress
    from natsstream.streams.stream import Stream
    from natsstream.streams.subject_counts import SubjectCount
    from natsstream.streams.templates.templates import StreamTemplate

    __version__: str

__all__ = [
    "AKV",
    "DKO",
    "DKV",
    "JSON",
    "MSGPACK",
    "RAW",
    "TEXT",
    "TOMBSTONE",
    "UNDEFINED",
    "AKVs",
    "AStream",
    "AStreams",
    "AccountInfo",
    "AckKind",
    "Advisories",
    "Alternate",
    "AppendResult",
    "AtomicBatch",
    "Backoff",
    "BackupInfo",
    "BackupProgress",
    "Base64Keys",
    "Base64Values",
    "BatchAck",
    "BrokenLink",
    "BucketConfig",
    "BucketFields",
    "BucketStatus",
    "CachedKeyValue",
    "ChainHead",
    "ChainReport",
    "ChainedKeys",
    "ChainedPublisher",
    "ChainedValues",
    "Change",
    "ChangeFeed",
    "ChunkReader",
    "ChunkedValue",
    "Chunks",
    "CloseResult",
    "ClusterInfo",
    "ConfigChange",
    "ConfigError",
    "Configuration",
    "Conflict",
    "ConnectOptions",
    "Connection",
    "Consumer",
    "ConsumerConfig",
    "ConsumerDeleted",
    "ConsumerFields",
    "ConsumerInfo",
    "ConsumerLimits",
    "ConsumerMessages",
    "ConsumerPause",
    "ConsumerProgress",
    "ConsumerRecreated",
    "Core",
    "CoreMessage",
    "CoreStream",
    "CoreStreamArguments",
    "CoreStreamInventory",
    "CoreStreams",
    "CoreSubscription",
    "Counter",
    "Counters",
    "DKOs",
    "DKVs",
    "DStream",
    "DStreams",
    "DeadLetter",
    "DeadLetterQueue",
    "DeadLetters",
    "DeletedRange",
    "DeliverSubjectChanged",
    "DeliveredMessage",
    "DeliveriesMissed",
    "DeliveryMeta",
    "DirectBatch",
    "DirectReads",
    "Election",
    "Encoding",
    "EndFound",
    "Entry",
    "Expect",
    "ExternalStream",
    "FastIngest",
    "FeedChange",
    "FetchedMessages",
    "FieldChange",
    "FilterKeyCodec",
    "Gap",
    "GapFound",
    "HeartbeatsMissed",
    "IdempotentProducer",
    "IngestRefusal",
    "IngestReport",
    "IngestSpan",
    "IntegrityError",
    "Inventories",
    "Inventory",
    "InventoryItem",
    "JetStream",
    "KeyChange",
    "KeyCodec",
    "KeyValue",
    "KeyValueManager",
    "KeyedMessage",
    "Latest",
    "Leader",
    "LeaderArguments",
    "LeaderChanged",
    "LimitExceeded",
    "Listing",
    "Lock",
    "Message",
    "NatsStreamError",
    "ObjectBucketConfig",
    "ObjectBucketFields",
    "ObjectChange",
    "ObjectInfo",
    "ObjectLink",
    "ObjectListing",
    "ObjectOptions",
    "ObjectReader",
    "ObjectStore",
    "ObjectStoreManager",
    "ObjectStoreStatus",
    "ObjectWatch",
    "OrderedConsumer",
    "OrderedReport",
    "PathKeys",
    "Pinned",
    "Placement",
    "PriorityGroupState",
    "Producers",
    "PubAck",
    "PublishItem",
    "PublishMessage",
    "PublishOptions",
    "PublishResult",
    "Publisher",
    "PushMessages",
    "RawMessage",
    "ReadEvent",
    "ReadReport",
    "Reconnected",
    "Recovered",
    "Recreated",
    "Reject",
    "RejectedKey",
    "RejectedMessage",
    "ReplicaInfo",
    "Republish",
    "RestoreProgress",
    "Retry",
    "Schedule",
    "ScheduledMessage",
    "ServerError",
    "SourceConsumer",
    "SourceInfo",
    "Stored",
    "StoredMessage",
    "Stream",
    "StreamConfig",
    "StreamFields",
    "StreamInfo",
    "StreamRange",
    "StreamSchedules",
    "StreamSource",
    "StreamState",
    "StreamStats",
    "StreamTemplate",
    "SubjectCount",
    "SubjectTransform",
    "SweepReport",
    "Tombstone",
    "TransportError",
    "Undefined",
    "Unpinned",
    "UsageError",
    "ValueCodec",
    "ValueFormat",
    "Watch",
    "WorkReport",
    "Worker",
    "advisories",
    "attach",
    "conat_code",
    "connect",
    "errors",
    "events",
]

# Names whose modules would import nats-py: they are found when asked for.
_LAZY_NAMES = {
    "api.account": ("AccountInfo",),
    "api.cluster_info": ("Alternate", "ClusterInfo", "ReplicaInfo", "SourceInfo"),
    "api.config_fields": (
        "BucketFields",
        "ConsumerFields",
        "ObjectBucketFields",
        "StreamFields",
    ),
    "api.consumer_config": ("ConsumerConfig",),
    "api.consumer_info": (
        "ConsumerInfo",
        "ConsumerPause",
        "ConsumerProgress",
        "PriorityGroupState",
    ),
    "api.diff": ("ConfigChange", "FieldChange"),
    "api.listing": ("Listing",),
    "api.message": ("Message",),
    "api.settings.limits": ("ConsumerLimits",),
    "api.settings.mapping": ("Republish", "SubjectTransform"),
    "api.settings.placement": ("Placement",),
    "api.settings.source": ("ExternalStream", "SourceConsumer", "StreamSource"),
    "api.stream_config": ("StreamConfig",),
    "api.stream_info": ("DeletedRange", "StreamInfo", "StreamState"),
    "conat.akv": ("AKV",),
    "conat.astream": ("AStream",),
    "conat.change_feed": ("ChangeFeed", "FeedChange"),
    "conat.codes": ("conat_code",),
    "conat.configuration": ("Configuration",),
    "conat.core_stream": ("CoreStream", "CoreStreamInventory", "StreamStats"),
    "conat.dko": ("DKO", "ObjectChange"),
    "conat.dkv": ("DKV", "KeyChange", "RejectedKey"),
    "conat.dstream": ("DStream", "RejectedMessage"),
    "conat.inventory": ("Inventory", "InventoryItem"),
    "conat.layer_options": ("CoreStreamArguments", "LeaderArguments"),
    "conat.layers": ("AKVs", "AStreams", "DKOs", "DKVs", "DStreams", "Inventories"),
    "conat.leader": ("StoredMessage",),
    "conat.manager": ("CoreStreams",),
    "conat.undefined": ("UNDEFINED", "Undefined"),
    "conat.unsaved_keys": ("Conflict", "TOMBSTONE", "Tombstone"),
    "conat.values": ("Encoding",),
    "conat.views": ("Change", "KeyedMessage", "RawMessage"),
    "conat.writer": ("PublishItem", "PublishOptions", "PublishResult", "Stored"),
    "consume.dead_letters.letter": ("DeadLetter",),
    "consume.dead_letters.manager": ("DeadLetters",),
    "consume.dead_letters.queue": ("DeadLetterQueue",),
    "consume.delivery.ack_kinds": ("AckKind", "Reject", "Retry"),
    "consume.delivery.backoff": ("Backoff",),
    "consume.delivery.delivered": ("DeliveredMessage",),
    "consume.delivery.events": (
        "ConsumerDeleted",
        "ConsumerRecreated",
        "DeliverSubjectChanged",
        "DeliveriesMissed",
        "LeaderChanged",
        "LimitExceeded",
        "Pinned",
        "Reconnected",
        "Unpinned",
    ),
    "consume.delivery.meta": ("DeliveryMeta",),
    "consume.pull.fetching": ("FetchedMessages",),
    "consume.pull.messages": ("ConsumerMessages",),
    "consume.push.subscription": ("PushMessages",),
    "consume.work.report": ("WorkReport",),
    "consume.work.worker": ("Worker",),
    "core.advisories.reader": ("Advisories",),
    "core.core": ("Core",),
    "core.message": ("CoreMessage",),
    "core.subscription": ("CoreSubscription",),
    "jetstream": ("JetStream",),
    "kv.cache.cached": ("CachedKeyValue",),
    "kv.codecs": (
        "Base64Keys",
        "Base64Values",
        "ChainedKeys",
        "ChainedValues",
        "FilterKeyCodec",
        "KeyCodec",
        "PathKeys",
        "ValueCodec",
    ),
    "kv.config": ("BucketConfig",),
    "kv.entry": ("Entry",),
    "kv.formats": ("JSON", "MSGPACK", "RAW", "TEXT", "ValueFormat"),
    "kv.key_value": ("KeyValue",),
    "kv.locks.elections": ("Election", "Leader"),
    "kv.locks.locks": ("Lock",),
    "kv.manager": ("KeyValueManager",),
    "kv.status": ("BucketStatus",),
    "kv.watch": ("Watch",),
    "objects.config": ("ObjectBucketConfig",),
    "objects.info": ("ObjectInfo", "ObjectLink", "ObjectOptions"),
    "objects.manager": ("ObjectStoreManager",),
    "objects.reader": ("ObjectReader",),
    "objects.status": ("ObjectStoreStatus",),
    "objects.store": ("ObjectStore",),
    "objects.watch": ("ObjectListing", "ObjectWatch"),
    "producer.manager": ("Producers",),
    "producer.producer": ("AppendResult", "CloseResult", "IdempotentProducer", "Recovered"),
    "publish.batches.atomic": ("AtomicBatch",),
    "publish.batches.atomic_rules": ("BatchAck",),
    "publish.batches.fast": ("FastIngest",),
    "publish.batches.fast_state": ("IngestRefusal", "IngestReport", "IngestSpan"),
    "publish.outgoing": ("Expect", "PublishMessage"),
    "publish.pub_ack": ("PubAck",),
    "publish.publisher": ("Publisher",),
    "publish.schedule": ("Schedule",),
    "read.direct.answers": ("DirectBatch",),
    "read.direct.reads": ("DirectReads",),
    "read.latest.latest": ("Latest",),
    "read.ordered": ("OrderedConsumer",),
    "read.progress": ("Gap", "ReadReport"),
    "read.ranges": ("StreamRange",),
    "read.read_events": (
        "EndFound",
        "GapFound",
        "HeartbeatsMissed",
        "OrderedReport",
        "ReadEvent",
        "Recreated",
    ),
    "streams.chain.links": ("ChainHead",),
    "streams.chain.verify": ("BrokenLink", "ChainReport"),
    "streams.chain.writer": ("ChainedPublisher",),
    "streams.chunks.chunks": ("Chunks",),
    "streams.chunks.getting": ("ChunkReader",),
    "streams.chunks.sweeping": ("SweepReport",),
    "streams.chunks.value": ("ChunkedValue",),
    "streams.consumers.consumer": ("Consumer",),
    "streams.counters.counter": ("Counter",),
    "streams.counters.counters": ("Counters",),
    "streams.schedules": ("ScheduledMessage", "StreamSchedules"),
    "streams.snapshots.folder": ("BackupInfo",),
    "streams.snapshots.progress": ("BackupProgress", "RestoreProgress"),
    "streams.stream": ("Stream",),
    "streams.subject_counts": ("SubjectCount",),
    "streams.templates.templates": ("StreamTemplate",),
}
_LAZY = {name: module for module, names in _LAZY_NAMES.items() for name in names}


if not TYPE_CHECKING:  # Type checkers report a name that is missing by themselves.

    def __getattr__(name: str) -> object:
        module = _LAZY.get(name)
        if name == "__version__":  # Of the installed package; most programs never ask.
            return importlib.import_module("importlib.metadata").version("natsstream")
        if name in ("blocking", "testing"):  # Found here without an import of their own.
            return importlib.import_module(f"natsstream.{name}")
        if module is None:
            here = importlib.import_module("natsstream.foreign_names").name_here(name)
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}{here}")
        found = getattr(importlib.import_module(f"natsstream.{module}"), name)
        globals()[name] = found  # Found without this function from now on.
        return found


def __dir__() -> list[str]:
    return sorted(__all__)
