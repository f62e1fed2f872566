"""A JetStream layer for Python: streams, views and Spark over a real nats-server.

Importing this package, or touching any of its names, imports neither nats-py nor pyarrow: they
load when a connection is opened and when columns are asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from natsstream.connection import Connection, connect
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
    from natsstream.streams.config import StreamConfig
    from natsstream.streams.info import StreamInfo, StreamState
    from natsstream.streams.jetstream import JetStream
    from natsstream.streams.message import Message
    from natsstream.streams.progress import Gap, ReadReport
    from natsstream.streams.publish import Expect, PubAck, Publisher
    from natsstream.streams.ranges import StreamRange
    from natsstream.streams.stream import Stream

__all__ = [
    "ConfigError",
    "ConnectOptions",
    "Connection",
    "Expect",
    "Gap",
    "IntegrityError",
    "JetStream",
    "Message",
    "NatsStreamError",
    "PubAck",
    "Publisher",
    "ReadReport",
    "ServerError",
    "Stream",
    "StreamConfig",
    "StreamInfo",
    "StreamRange",
    "StreamState",
    "TransportError",
    "UsageError",
    "connect",
]

# Names whose modules would import nats-py: they are found when asked for.
_LAZY = {
    "Expect": "publish",
    "Gap": "progress",
    "JetStream": "jetstream",
    "Message": "message",
    "PubAck": "publish",
    "Publisher": "publish",
    "ReadReport": "progress",
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
    return getattr(importlib.import_module(f"natsstream.streams.{module}"), name)
