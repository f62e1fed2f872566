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
    from natsstream.conat.layer_options import CoreStreamArguments
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
    "AtomicBatch",
    "Backoff",
    "BackupInfo",
    "BackupProgress",
    "Base64Keys",
    "Base64Values",
    "BatchAck",
    "BrokenLink",
    "BucketConfig",
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
    "LeaderChanged",
    "LimitExceeded",
    "Listing",
    "Lock",
    "Message",
    "NatsStreamError",
    "ObjectBucketConfig",
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
_LAZY = {
    "Latest": "read.latest.latest",
    "Watch": "kv.watch",
    "CachedKeyValue": "kv.cache.cached",
    "Election": "kv.locks.elections",
    "JSON": "kv.formats",
    "Leader": "kv.locks.elections",
    "Lock": "kv.locks.locks",
    "MSGPACK": "kv.formats",
    "RAW": "kv.formats",
    "TEXT": "kv.formats",
    "ValueFormat": "kv.formats",
    "AccountInfo": "api.account",
    "Advisories": "core.advisories.reader",
    "Alternate": "api.cluster_info",
    "AtomicBatch": "publish.batches.atomic",
    "Backoff": "consume.delivery.backoff",
    "BackupInfo": "streams.snapshots.folder",
    "BackupProgress": "streams.snapshots.progress",
    "Base64Keys": "kv.codecs",
    "Base64Values": "kv.codecs",
    "BatchAck": "publish.batches.atomic_rules",
    "BrokenLink": "streams.chain.verify",
    "BucketConfig": "kv.config",
    "BucketStatus": "kv.status",
    "ChainHead": "streams.chain.links",
    "ChainReport": "streams.chain.verify",
    "ChainedKeys": "kv.codecs",
    "ChainedPublisher": "streams.chain.writer",
    "ChainedValues": "kv.codecs",
    "ClusterInfo": "api.cluster_info",
    "ConfigChange": "api.diff",
    "Consumer": "streams.consumers.consumer",
    "ConsumerConfig": "api.consumer_config",
    "ConsumerDeleted": "consume.delivery.events",
    "ConsumerInfo": "api.consumer_info",
    "ConsumerLimits": "api.settings.limits",
    "ConsumerPause": "api.consumer_info",
    "ConsumerProgress": "api.consumer_info",
    "ConsumerRecreated": "consume.delivery.events",
    "Core": "core.core",
    "CoreMessage": "core.message",
    "CoreSubscription": "core.subscription",
    "Counter": "streams.counters.counter",
    "Counters": "streams.counters.counters",
    "DeletedRange": "api.stream_info",
    "DeliverSubjectChanged": "consume.delivery.events",
    "DeadLetter": "consume.dead_letters.letter",
    "DeadLetterQueue": "consume.dead_letters.queue",
    "DeadLetters": "consume.dead_letters.manager",
    "DeliveredMessage": "consume.delivery.delivered",
    "FilterKeyCodec": "kv.codecs",
    "KeyCodec": "kv.codecs",
    "PathKeys": "kv.codecs",
    "ValueCodec": "kv.codecs",
    "WorkReport": "consume.work.report",
    "Worker": "consume.work.worker",
    "DeliveriesMissed": "consume.delivery.events",
    "DeliveryMeta": "consume.delivery.meta",
    "ChunkReader": "streams.chunks.getting",
    "ChunkedValue": "streams.chunks.value",
    "Chunks": "streams.chunks.chunks",
    "SweepReport": "streams.chunks.sweeping",
    "DirectBatch": "read.direct.answers",
    "DirectReads": "read.direct.reads",
    "Entry": "kv.entry",
    "Expect": "publish.outgoing",
    "ExternalStream": "api.settings.source",
    "FastIngest": "publish.batches.fast",
    "FetchedMessages": "consume.pull.fetching",
    "FieldChange": "api.diff",
    "Gap": "read.progress",
    "GapFound": "read.read_events",
    "HeartbeatsMissed": "read.read_events",
    "IngestRefusal": "publish.batches.fast_state",
    "IngestReport": "publish.batches.fast_state",
    "IngestSpan": "publish.batches.fast_state",
    "JetStream": "jetstream",
    "KeyValue": "kv.key_value",
    "Change": "conat.views",
    "RawMessage": "conat.views",
    "KeyedMessage": "conat.views",
    "CoreStream": "conat.core_stream",
    "CoreStreamInventory": "conat.core_stream",
    "StreamStats": "conat.core_stream",
    "CoreStreams": "conat.manager",
    "Configuration": "conat.configuration",
    "Encoding": "conat.values",
    "PublishItem": "conat.writer",
    "PublishOptions": "conat.writer",
    "PublishResult": "conat.writer",
    "Stored": "conat.writer",
    "UNDEFINED": "conat.undefined",
    "Undefined": "conat.undefined",
    "conat_code": "conat.codes",
    "AKV": "conat.akv",
    "AKVs": "conat.layers",
    "AStream": "conat.astream",
    "AStreams": "conat.layers",
    "ChangeFeed": "conat.change_feed",
    "FeedChange": "conat.change_feed",
    "DKO": "conat.dko",
    "DKOs": "conat.layers",
    "ObjectChange": "conat.dko",
    "Inventory": "conat.inventory",
    "Inventories": "conat.layers",
    "InventoryItem": "conat.inventory",
    "StoredMessage": "conat.leader",
    "DKV": "conat.dkv",
    "KeyChange": "conat.dkv",
    "RejectedKey": "conat.dkv",
    "DStream": "conat.dstream",
    "RejectedMessage": "conat.dstream",
    "CoreStreamArguments": "conat.layer_options",
    "DKVs": "conat.layers",
    "DStreams": "conat.layers",
    "TOMBSTONE": "conat.unsaved_keys",
    "Conflict": "conat.unsaved_keys",
    "Tombstone": "conat.unsaved_keys",
    "KeyValueManager": "kv.manager",
    "LeaderChanged": "consume.delivery.events",
    "LimitExceeded": "consume.delivery.events",
    "Listing": "api.listing",
    "Message": "api.message",
    "ConsumerMessages": "consume.pull.messages",
    "ObjectBucketConfig": "objects.config",
    "ObjectInfo": "objects.info",
    "ObjectLink": "objects.info",
    "ObjectListing": "objects.watch",
    "ObjectOptions": "objects.info",
    "ObjectReader": "objects.reader",
    "ObjectStore": "objects.store",
    "ObjectStoreManager": "objects.manager",
    "ObjectStoreStatus": "objects.status",
    "ObjectWatch": "objects.watch",
    "OrderedConsumer": "read.ordered",
    "OrderedReport": "read.read_events",
    "Pinned": "consume.delivery.events",
    "Placement": "api.settings.placement",
    "PriorityGroupState": "api.consumer_info",
    "PubAck": "publish.pub_ack",
    "PublishMessage": "publish.outgoing",
    "Publisher": "publish.publisher",
    "PushMessages": "consume.push.subscription",
    "ReadEvent": "read.read_events",
    "ReadReport": "read.progress",
    "Reconnected": "consume.delivery.events",
    "Recreated": "read.read_events",
    "Reject": "consume.delivery.ack_kinds",
    "ReplicaInfo": "api.cluster_info",
    "Republish": "api.settings.mapping",
    "RestoreProgress": "streams.snapshots.progress",
    "Retry": "consume.delivery.ack_kinds",
    "Schedule": "publish.schedule",
    "ScheduledMessage": "streams.schedules",
    "SourceConsumer": "api.settings.source",
    "SourceInfo": "api.cluster_info",
    "Stream": "streams.stream",
    "StreamConfig": "api.stream_config",
    "StreamInfo": "api.stream_info",
    "StreamRange": "read.ranges",
    "StreamSchedules": "streams.schedules",
    "StreamSource": "api.settings.source",
    "StreamState": "api.stream_info",
    "StreamTemplate": "streams.templates.templates",
    "SubjectCount": "streams.subject_counts",
    "SubjectTransform": "api.settings.mapping",
    "Unpinned": "consume.delivery.events",
    "AckKind": "consume.delivery.ack_kinds",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"natsstream.{module}"), name)
    globals()[name] = found  # Found without this function from now on.
    return found
