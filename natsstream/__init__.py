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
    from natsstream.streams.core import Core
    from natsstream.streams.core_message import CoreMessage
    from natsstream.streams.core_subscription import CoreSubscription
    from natsstream.streams.info import StreamInfo, StreamState
    from natsstream.streams.jetstream import JetStream
    from natsstream.streams.message import Message
    from natsstream.streams.ordered import OrderedConsumer
    from natsstream.streams.outgoing import Expect, PublishMessage
    from natsstream.streams.progress import Gap, ReadReport
    from natsstream.streams.pub_ack import PubAck
    from natsstream.streams.publisher import Publisher
    from natsstream.streams.ranges import StreamRange
    from natsstream.streams.read_events import (
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
    "Core": "core",
    "CoreMessage": "core_message",
    "CoreSubscription": "core_subscription",
    "Expect": "outgoing",
    "Gap": "progress",
    "GapFound": "read_events",
    "HeartbeatsMissed": "read_events",
    "JetStream": "jetstream",
    "Message": "message",
    "OrderedConsumer": "ordered",
    "OrderedReport": "read_events",
    "PubAck": "pub_ack",
    "PublishMessage": "outgoing",
    "Publisher": "publisher",
    "ReadEvent": "read_events",
    "ReadReport": "progress",
    "Recreated": "read_events",
    "Stream": "stream",
    "StreamConfig": "config",
    "StreamInfo": "info",
    "StreamRange": "ranges",
    "StreamState": "info",
}


def __getattr__(name: str) -> object:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"natsstream.streams.{module}"), name)
    globals()[name] = found  # Found without this function from now on.
    return found
