"""A JetStream layer for Python: streams, views and Spark over a real nats-server.

Importing this package, or touching any of its names, imports neither nats-py nor pyarrow: they
load when a connection is opened and when columns are asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from natsstream import errors, events
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
    from natsstream.streams.account import AccountInfo
    from natsstream.streams.config import StreamConfig
    from natsstream.streams.core.core import Core
    from natsstream.streams.core.message import CoreMessage
    from natsstream.streams.core.subscription import CoreSubscription
    from natsstream.streams.info import StreamInfo, StreamState
    from natsstream.streams.jetstream import JetStream
    from natsstream.streams.message import Message
    from natsstream.streams.publishing.outgoing import Expect, PublishMessage
    from natsstream.streams.publishing.pub_ack import PubAck
    from natsstream.streams.publishing.publisher import Publisher
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
    from natsstream.streams.stream import Stream

__all__ = [
    "AccountInfo",
    "ConfigError",
    "ConnectOptions",
    "Connection",
    "Core",
    "CoreMessage",
    "CoreSubscription",
    "Expect",
    "Gap",
    "GapFound",
    "HeartbeatsMissed",
    "IntegrityError",
    "JetStream",
    "Message",
    "NatsStreamError",
    "OrderedConsumer",
    "OrderedReport",
    "PubAck",
    "PublishMessage",
    "Publisher",
    "ReadEvent",
    "ReadReport",
    "Recreated",
    "ServerError",
    "Stream",
    "StreamConfig",
    "StreamInfo",
    "StreamRange",
    "StreamState",
    "TransportError",
    "UsageError",
    "attach",
    "connect",
    "errors",
    "events",
]

# Names whose modules would import nats-py: they are found when asked for.
_LAZY = {
    "AccountInfo": "account",
    "Core": "core.core",
    "CoreMessage": "core.message",
    "CoreSubscription": "core.subscription",
    "Expect": "publishing.outgoing",
    "Gap": "reading.progress",
    "GapFound": "reading.read_events",
    "HeartbeatsMissed": "reading.read_events",
    "JetStream": "jetstream",
    "Message": "message",
    "OrderedConsumer": "reading.ordered",
    "OrderedReport": "reading.read_events",
    "PubAck": "publishing.pub_ack",
    "PublishMessage": "publishing.outgoing",
    "Publisher": "publishing.publisher",
    "ReadEvent": "reading.read_events",
    "ReadReport": "reading.progress",
    "Recreated": "reading.read_events",
    "Stream": "stream",
    "StreamConfig": "config",
    "StreamInfo": "info",
    "StreamRange": "reading.ranges",
    "StreamState": "info",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"natsstream.streams.{module}"), name)
    globals()[name] = found  # Found without this function from now on.
    return found
