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
    from natsstream.jetstream import JetStream
    from natsstream.kv.bucket import KeyValue
    from natsstream.kv.buckets.bucket_listing import BucketListing
    from natsstream.kv.buckets.config import BucketConfig
    from natsstream.kv.buckets.status import BucketStatus
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
    from natsstream.kv.entry import Entry
    from natsstream.kv.locks.elections import Election, Leader
    from natsstream.kv.locks.locks import Lock
    from natsstream.kv.manager import KeyValueManager
    from natsstream.kv.typed.formats import JSON, MSGPACK, RAW, TEXT, ValueFormat
    from natsstream.kv.typed.typed import TypedKeyValue
    from natsstream.kv.typed.typed_cache import TypedCachedKeyValue
    from natsstream.kv.typed.typed_entry import TypedEntry
    from natsstream.kv.typed.typed_watch import TypedWatch
    from natsstream.kv.watch import Watch
    from natsstream.objects.config import ObjectBucketConfig
    from natsstream.objects.info import ObjectInfo, ObjectLink, ObjectOptions
    from natsstream.objects.manager import ObjectStoreManager
    from natsstream.objects.reader import ObjectReader
    from natsstream.objects.status import ObjectStoreStatus
    from natsstream.objects.store import ObjectStore
    from natsstream.objects.store_listing import ObjectStoreListing
    from natsstream.objects.watch import ObjectListing, ObjectWatch
    from natsstream.streams.account import AccountInfo
    from natsstream.streams.advisories.reader import Advisories
    from natsstream.streams.batches.atomic import AtomicBatch
    from natsstream.streams.batches.atomic_rules import BatchAck
    from natsstream.streams.batches.fast import FastIngest
    from natsstream.streams.batches.fast_books import IngestRefusal, IngestReport, IngestSpan
    from natsstream.streams.chain.links import ChainHead
    from natsstream.streams.chain.verify import BrokenLink, ChainReport
    from natsstream.streams.chain.writer import ChainedPublisher
    from natsstream.streams.chunks.chunks import Chunks
    from natsstream.streams.chunks.getting import ChunkReader
    from natsstream.streams.chunks.sweeping import SweepReport
    from natsstream.streams.chunks.value import Chunked
    from natsstream.streams.cluster_info import Alternate, ClusterInfo, ReplicaInfo, SourceInfo
    from natsstream.streams.config import StreamConfig
    from natsstream.streams.consumers.config import ConsumerConfig
    from natsstream.streams.consumers.consumer import Consumer
    from natsstream.streams.consumers.info import (
        ConsumerInfo,
        ConsumerPause,
        ConsumerProgress,
        PriorityGroupState,
    )
    from natsstream.streams.consumers.listing import ConsumerListing
    from natsstream.streams.core.core import Core
    from natsstream.streams.core.message import CoreMessage
    from natsstream.streams.core.subscription import CoreSubscription
    from natsstream.streams.counters.counter import Counter
    from natsstream.streams.counters.counters import Counters
    from natsstream.streams.dead_letters.letter import DeadLetter
    from natsstream.streams.dead_letters.manager import DeadLetters
    from natsstream.streams.dead_letters.queue import DeadLetterQueue
    from natsstream.streams.delivery.backoff import Backoff
    from natsstream.streams.delivery.delivered import DeliveredMessage
    from natsstream.streams.delivery.events import (
        ConsumerDeleted,
        ConsumerRecreated,
        LeaderChanged,
        LimitExceeded,
        Pinned,
        Reconnected,
        Unpinned,
    )
    from natsstream.streams.delivery.meta import DeliveryMeta
    from natsstream.streams.delivery.verdicts import Reject, Retry, Verdict
    from natsstream.streams.diff import ConfigChange, FieldChange
    from natsstream.streams.direct.answers import DirectBatch
    from natsstream.streams.direct.reads import DirectReads
    from natsstream.streams.doors.inspection import SubjectCount
    from natsstream.streams.doors.schedules import ScheduledMessage, StreamSchedules
    from natsstream.streams.info import DeletedRange, StreamInfo, StreamState
    from natsstream.streams.latest.latest import Latest
    from natsstream.streams.listing import StreamListing
    from natsstream.streams.message import Message
    from natsstream.streams.publishing.outgoing import Expect, PublishMessage
    from natsstream.streams.publishing.pub_ack import PubAck
    from natsstream.streams.publishing.publisher import Publisher
    from natsstream.streams.publishing.schedule import Schedule
    from natsstream.streams.pulling.fetched import Fetched
    from natsstream.streams.pulling.messages import Messages
    from natsstream.streams.pushing.push_events import DeliveriesMissed, DeliverSubjectChanged
    from natsstream.streams.pushing.subscription import PushMessages
    from natsstream.streams.reading.ordered import OrderedConsumer
    from natsstream.streams.reading.progress import Gap, ReadReport
    from natsstream.streams.reading.ranges import StreamRange
    from natsstream.streams.reading.read_events import (
        GapFound,
        HeartbeatsMissed,
        OrderedReport,
        ReadEvent,
        Recreated,
    )
    from natsstream.streams.settings.limits import ConsumerLimits
    from natsstream.streams.settings.mapping import Republish, SubjectTransform
    from natsstream.streams.settings.placement import Placement
    from natsstream.streams.settings.source import ExternalStream, SourceConsumer, StreamSource
    from natsstream.streams.snapshots.folder import BackupInfo
    from natsstream.streams.snapshots.progress import BackupProgress, RestoreProgress
    from natsstream.streams.stream import Stream
    from natsstream.streams.templates.templates import StreamTemplate
    from natsstream.streams.work.report import WorkReport
    from natsstream.streams.work.worker import Worker

__all__ = [
    "JSON",
    "MSGPACK",
    "RAW",
    "TEXT",
    "AccountInfo",
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
    "BucketListing",
    "BucketStatus",
    "CachedKeyValue",
    "ChainHead",
    "ChainReport",
    "ChainedKeys",
    "ChainedPublisher",
    "ChainedValues",
    "ChunkReader",
    "Chunked",
    "Chunks",
    "ClusterInfo",
    "ConfigChange",
    "ConfigError",
    "ConnectOptions",
    "Connection",
    "Consumer",
    "ConsumerConfig",
    "ConsumerDeleted",
    "ConsumerInfo",
    "ConsumerLimits",
    "ConsumerListing",
    "ConsumerPause",
    "ConsumerProgress",
    "ConsumerRecreated",
    "Core",
    "CoreMessage",
    "CoreSubscription",
    "Counter",
    "Counters",
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
    "Entry",
    "Expect",
    "ExternalStream",
    "FastIngest",
    "Fetched",
    "FieldChange",
    "FilterKeyCodec",
    "Gap",
    "GapFound",
    "HeartbeatsMissed",
    "IngestRefusal",
    "IngestReport",
    "IngestSpan",
    "IntegrityError",
    "JetStream",
    "KeyCodec",
    "KeyValue",
    "KeyValueManager",
    "Latest",
    "Leader",
    "LeaderChanged",
    "LimitExceeded",
    "Lock",
    "Message",
    "Messages",
    "NatsStreamError",
    "ObjectBucketConfig",
    "ObjectInfo",
    "ObjectLink",
    "ObjectListing",
    "ObjectOptions",
    "ObjectReader",
    "ObjectStore",
    "ObjectStoreListing",
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
    "PublishMessage",
    "Publisher",
    "PushMessages",
    "ReadEvent",
    "ReadReport",
    "Reconnected",
    "Recreated",
    "Reject",
    "ReplicaInfo",
    "Republish",
    "RestoreProgress",
    "Retry",
    "Schedule",
    "ScheduledMessage",
    "ServerError",
    "SourceConsumer",
    "SourceInfo",
    "Stream",
    "StreamConfig",
    "StreamInfo",
    "StreamListing",
    "StreamRange",
    "StreamSchedules",
    "StreamSource",
    "StreamState",
    "StreamTemplate",
    "SubjectCount",
    "SubjectTransform",
    "SweepReport",
    "TransportError",
    "TypedCachedKeyValue",
    "TypedEntry",
    "TypedKeyValue",
    "TypedWatch",
    "Unpinned",
    "UsageError",
    "ValueCodec",
    "ValueFormat",
    "Verdict",
    "Watch",
    "WorkReport",
    "Worker",
    "advisories",
    "attach",
    "connect",
    "errors",
    "events",
]

# Names whose modules would import nats-py: they are found when asked for.
_LAZY = {
    "Latest": "streams.latest.latest",
    "Watch": "kv.watch",
    "CachedKeyValue": "kv.cache.cached",
    "Election": "kv.locks.elections",
    "JSON": "kv.typed.formats",
    "Leader": "kv.locks.elections",
    "Lock": "kv.locks.locks",
    "MSGPACK": "kv.typed.formats",
    "RAW": "kv.typed.formats",
    "TEXT": "kv.typed.formats",
    "TypedEntry": "kv.typed.typed_entry",
    "TypedCachedKeyValue": "kv.typed.typed_cache",
    "TypedKeyValue": "kv.typed.typed",
    "TypedWatch": "kv.typed.typed_watch",
    "ValueFormat": "kv.typed.formats",
    "AccountInfo": "streams.account",
    "Advisories": "streams.advisories.reader",
    "Alternate": "streams.cluster_info",
    "AtomicBatch": "streams.batches.atomic",
    "Backoff": "streams.delivery.backoff",
    "BackupInfo": "streams.snapshots.folder",
    "BackupProgress": "streams.snapshots.progress",
    "Base64Keys": "kv.codecs",
    "Base64Values": "kv.codecs",
    "BatchAck": "streams.batches.atomic_rules",
    "BrokenLink": "streams.chain.verify",
    "BucketConfig": "kv.buckets.config",
    "BucketListing": "kv.buckets.bucket_listing",
    "BucketStatus": "kv.buckets.status",
    "ChainHead": "streams.chain.links",
    "ChainReport": "streams.chain.verify",
    "ChainedKeys": "kv.codecs",
    "ChainedPublisher": "streams.chain.writer",
    "ChainedValues": "kv.codecs",
    "ClusterInfo": "streams.cluster_info",
    "ConfigChange": "streams.diff",
    "Consumer": "streams.consumers.consumer",
    "ConsumerConfig": "streams.consumers.config",
    "ConsumerDeleted": "streams.delivery.events",
    "ConsumerInfo": "streams.consumers.info",
    "ConsumerLimits": "streams.settings.limits",
    "ConsumerListing": "streams.consumers.listing",
    "ConsumerPause": "streams.consumers.info",
    "ConsumerProgress": "streams.consumers.info",
    "ConsumerRecreated": "streams.delivery.events",
    "Core": "streams.core.core",
    "CoreMessage": "streams.core.message",
    "CoreSubscription": "streams.core.subscription",
    "Counter": "streams.counters.counter",
    "Counters": "streams.counters.counters",
    "DeletedRange": "streams.info",
    "DeliverSubjectChanged": "streams.pushing.push_events",
    "DeadLetter": "streams.dead_letters.letter",
    "DeadLetterQueue": "streams.dead_letters.queue",
    "DeadLetters": "streams.dead_letters.manager",
    "DeliveredMessage": "streams.delivery.delivered",
    "FilterKeyCodec": "kv.codecs",
    "KeyCodec": "kv.codecs",
    "PathKeys": "kv.codecs",
    "ValueCodec": "kv.codecs",
    "WorkReport": "streams.work.report",
    "Worker": "streams.work.worker",
    "DeliveriesMissed": "streams.pushing.push_events",
    "DeliveryMeta": "streams.delivery.meta",
    "ChunkReader": "streams.chunks.getting",
    "Chunked": "streams.chunks.value",
    "Chunks": "streams.chunks.chunks",
    "SweepReport": "streams.chunks.sweeping",
    "DirectBatch": "streams.direct.answers",
    "DirectReads": "streams.direct.reads",
    "Entry": "kv.entry",
    "Expect": "streams.publishing.outgoing",
    "ExternalStream": "streams.settings.source",
    "FastIngest": "streams.batches.fast",
    "Fetched": "streams.pulling.fetched",
    "FieldChange": "streams.diff",
    "Gap": "streams.reading.progress",
    "GapFound": "streams.reading.read_events",
    "HeartbeatsMissed": "streams.reading.read_events",
    "IngestRefusal": "streams.batches.fast_books",
    "IngestReport": "streams.batches.fast_books",
    "IngestSpan": "streams.batches.fast_books",
    "JetStream": "jetstream",
    "KeyValue": "kv.bucket",
    "KeyValueManager": "kv.manager",
    "LeaderChanged": "streams.delivery.events",
    "LimitExceeded": "streams.delivery.events",
    "Message": "streams.message",
    "Messages": "streams.pulling.messages",
    "ObjectBucketConfig": "objects.config",
    "ObjectInfo": "objects.info",
    "ObjectLink": "objects.info",
    "ObjectListing": "objects.watch",
    "ObjectOptions": "objects.info",
    "ObjectReader": "objects.reader",
    "ObjectStore": "objects.store",
    "ObjectStoreListing": "objects.store_listing",
    "ObjectStoreManager": "objects.manager",
    "ObjectStoreStatus": "objects.status",
    "ObjectWatch": "objects.watch",
    "OrderedConsumer": "streams.reading.ordered",
    "OrderedReport": "streams.reading.read_events",
    "Pinned": "streams.delivery.events",
    "Placement": "streams.settings.placement",
    "PriorityGroupState": "streams.consumers.info",
    "PubAck": "streams.publishing.pub_ack",
    "PublishMessage": "streams.publishing.outgoing",
    "Publisher": "streams.publishing.publisher",
    "PushMessages": "streams.pushing.subscription",
    "ReadEvent": "streams.reading.read_events",
    "ReadReport": "streams.reading.progress",
    "Reconnected": "streams.delivery.events",
    "Recreated": "streams.reading.read_events",
    "Reject": "streams.delivery.verdicts",
    "ReplicaInfo": "streams.cluster_info",
    "Republish": "streams.settings.mapping",
    "RestoreProgress": "streams.snapshots.progress",
    "Retry": "streams.delivery.verdicts",
    "Schedule": "streams.publishing.schedule",
    "ScheduledMessage": "streams.doors.schedules",
    "SourceConsumer": "streams.settings.source",
    "SourceInfo": "streams.cluster_info",
    "Stream": "streams.stream",
    "StreamConfig": "streams.config",
    "StreamInfo": "streams.info",
    "StreamListing": "streams.listing",
    "StreamRange": "streams.reading.ranges",
    "StreamSchedules": "streams.doors.schedules",
    "StreamSource": "streams.settings.source",
    "StreamState": "streams.info",
    "StreamTemplate": "streams.templates.templates",
    "SubjectCount": "streams.doors.inspection",
    "SubjectTransform": "streams.settings.mapping",
    "Unpinned": "streams.delivery.events",
    "Verdict": "streams.delivery.verdicts",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"natsstream.{module}"), name)
    globals()[name] = found  # Found without this function from now on.
    return found
