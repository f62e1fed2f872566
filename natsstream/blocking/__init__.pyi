"""The types of `natsstream.blocking`: each class is the twin of the async one.

Generated, do not edit: `scripts/generate_blocking_types` wrote this file from the async sources.
"""

# Editors show these docstrings: at run time the classes are made from the async ones.
# ruff: noqa: PYI021

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import pandas as pd
import pyarrow as pa

from natsstream.options import ConnectOptions
from natsstream.streams.config import StreamConfig
from natsstream.streams.info import StreamInfo
from natsstream.streams.message import Message
from natsstream.streams.progress import ReadReport
from natsstream.streams.publish import Expect, HeaderValues, PubAck

def connect(
    servers: str | Sequence[str] | ConnectOptions = "nats://127.0.0.1:4222",
    *,
    name: str = "natsstream",
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    creds: str | Path | None = None,
    connect_timeout: float = 5.0,
    request_timeout: float = 5.0,
    reconnect_timeout: float = 30.0,
) -> Connection:
    """Describe a connection; `with` opens it."""

class Connection:
    """A connection that is not open yet: `with` opens it and gives its JetStream context."""

    def open(self) -> JetStream:
        """Connect and return the JetStream context; `close` ends it."""

    def close(self) -> None:
        """Close the connection; closing twice is fine."""

    def __enter__(self) -> JetStream: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class JetStream:
    """JetStream over one connection; made by `natsstream.connect`."""

    @property
    def streams(self) -> StreamManager:
        """Makes, finds and deletes streams."""

    @property
    def url(self) -> str:
        """The connected server, without secrets."""

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""

    def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        timeout: float | None = None,
    ) -> PubAck:
        """Publish one message to the stream that captures the subject, and wait for its ack."""

    def publisher(self, *, max_pending: int = 4096, ack_timeout: float = 5.0) -> Publisher:
        """Return a pipelined publisher, to be used with `with`."""

    def close(self) -> None:
        """Close the connection; closing twice is fine."""

class Publisher:
    """Publishes without waiting for each ack; made by `JetStream.publisher`."""

    @property
    def pending_count(self) -> int:
        """Messages whose ack is under way."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def send(
        self,
        subject: str,
        data: bytes,
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
    ) -> Callable[[], PubAck]:
        """Send a message; waits only while the window is full."""

    def flush(self) -> None:
        """Wait for the acks of everything sent so far."""

class Stream:
    """A stream of the server; made by `js.streams`."""

    @property
    def cached(self) -> StreamInfo:
        """Its info when it was opened; `info()` asks for a fresh one."""

    @property
    def name(self) -> str:
        """Its name."""

    def info(self) -> StreamInfo:
        """Return the stream's configuration and state now."""

    def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        timeout: float | None = None,
    ) -> PubAck:
        """Publish one message into this stream and wait for its ack."""

    def get(
        self,
        sequence: int | None = None,
        *,
        last_by_subject: str | None = None,
        next_by_subject: str | None = None,
        start_time: datetime | int | None = None,
    ) -> Message | None:
        """Return one message, or None when the stream has none there."""

    def read(
        self,
        *,
        first: int | None = None,
        last: int | None = None,
        filters: Sequence[str] = (),
        start_time: datetime | int | None = None,
        end_time: datetime | int | None = None,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
        eviction_is_loss: bool = False,
    ) -> StreamRange:
        """Describe a bounded read: iterate the result for messages, or ask it for columns."""

class StreamManager:
    """The streams of the account."""

    def create(self, config: StreamConfig | str, **fields: Any) -> Stream:
        """Create a stream."""

    def update(self, config: StreamConfig | str, **fields: Any) -> Stream:
        """Change the fields that are given and leave all others as the server has them."""

    def ensure(self, config: StreamConfig | str, **fields: Any) -> Stream:
        """Return the stream with at least this configuration: create, update or leave it."""

    def get(self, name: str) -> Stream:
        """Return a stream that exists."""

    def find(self, subject: str) -> str | None:
        """Return the name of the stream that captures a subject, or None."""

    def delete(self, name: str) -> None:
        """Delete a stream with all of its messages."""

    def names(self, *, subject: str | None = None) -> Iterator[str]:
        """Yield the names of all streams, or of those that capture a subject or filter."""

    def list(self, *, subject: str | None = None) -> Iterator[StreamInfo]:
        """Yield the infos of all streams, or of those that capture a subject or filter."""

class StreamRange:
    """Messages of a stream from one sequence or moment to another."""

    @property
    def report(self) -> ReadReport:
        """Counts and gaps of the newest read of this range."""

    def __iter__(self) -> Iterator[Message]:
        """Yield each message in order."""

    def batches(
        self, columns: Sequence[str] | None = None, *, time_unit: Literal["ns", "us"] = "ns"
    ) -> Iterator[pa.RecordBatch]:
        """Yield Arrow record batches in order, of about 1 MiB each."""

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the whole range as one Arrow table, held in memory."""

    def to_pandas(self, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Return the whole range as a pandas DataFrame, held in memory."""
