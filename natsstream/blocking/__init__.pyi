"""The types of `natsstream.blocking`: each class is the twin of the async one.

Generated, do not edit: `scripts/generate_blocking_types` wrote this file from the async sources.
"""

# Editors show these docstrings: at run time the classes are made from the async ones.
# ruff: noqa: PYI021

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import pandas as pd
import pyarrow as pa

from natsstream._wire.headers import Headers, HeaderValues
from natsstream.events import ConnectionEvent
from natsstream.options import ConnectOptions, Secret
from natsstream.streams.account import AccountInfo
from natsstream.streams.config import StreamConfig
from natsstream.streams.info import StreamInfo
from natsstream.streams.message import Message
from natsstream.streams.publishing.outgoing import Expect, Payload, PublishMessage, Ttl
from natsstream.streams.publishing.pub_ack import PubAck
from natsstream.streams.reading.progress import ReadReport
from natsstream.streams.reading.read_events import OrderedReport, ReadEvent
from natsstream.streams.reading.starts import DeliverPolicy

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

class ConnectionEvents:
    """The connection's events from now on; made by `JetStream.events`."""

    @property
    def dropped(self) -> int:
        """Events dropped so far because more than 1,000 were waiting."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def close(self) -> None:
        """Listen no more; an iteration that waits ends. Closing twice is fine."""

    def __iter__(self) -> Iterator[ConnectionEvent]: ...
    def __next__(self) -> ConnectionEvent: ...

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
        queue: str = "",
        max_pending: int = 65536,
        max_pending_bytes: int = 67108864,
        on_slow: Literal["raise", "drop"] = "raise",
    ) -> CoreSubscription:
        """Describe a subscription; `with` opens it, `for` reads it."""

    def drain(self) -> None:
        """End all subscriptions, but not what has arrived, which their readers still get."""

    def flush(self, *, timeout: float | None = None) -> None:
        """Wait until the server has taken all that was published."""

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

class CoreSubscription:
    """A subject that is listened to while the context is open; made by `Core.subscribe`."""

    @property
    def subject(self) -> str:
        """What is listened to."""

    @property
    def dropped(self) -> int:
        """Messages dropped so far because the reader was too slow."""

    @property
    def pending_count(self) -> int:
        """Messages that have arrived and are not read yet."""

    def open(self) -> Self:
        """Subscribe; `close` ends it. When it returns, the server knows of the subscription."""

    def drain(self) -> None:
        """End the subscription, but not what has arrived: the iteration ends after that."""

    def close(self) -> None:
        """End the subscription and drop what is not read; closing twice is fine."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def __iter__(self) -> Iterator[CoreMessage]: ...
    def __next__(self) -> CoreMessage: ...
    def next(self, timeout: float) -> CoreMessage | None:
        """Return the next message, None when none came within `timeout` seconds."""

class JetStream:
    """JetStream over one connection; made by `natsstream.connect`."""

    @property
    def streams(self) -> StreamManager:
        """Makes, finds and deletes streams."""

    @property
    def core(self) -> Core:
        """Plain NATS over the same connection: publish, subscribe, request."""

    @property
    def url(self) -> str:
        """The connected server, without secrets."""

    @property
    def is_connected(self) -> bool:
        """True while a server is connected."""

    def publish(
        self,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
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
        keep_order: bool = False,
        stream: str | None = None,
    ) -> Publisher:
        """Return a pipelined publisher, to be used with `with`."""

    def account(self) -> AccountInfo:
        """Return what the account may use of JetStream, what it uses, and the API level."""

    @property
    def raw(self) -> Any:
        """nats-py's client under this connection, for what natsstream does not offer."""

    @property
    def has_fast_lane(self) -> bool:
        """False only where an attached connection is a WebSocket: all works, but slower."""

    def events(self) -> ConnectionEvents:
        """Return what happens to the connection from now on, to be read with `for`."""

    def drain(self) -> None:
        """End the subscriptions of `js.core` without a loss, then close the connection."""

    def close(self) -> None:
        """Close the connection; closing twice is fine."""

class OrderedConsumer:
    """Follows a stream, in order and each message once; made by `Stream.ordered`."""

    @property
    def report(self) -> OrderedReport:
        """What was done so far: messages, gaps, and why consumers were made again."""

    def __enter__(self) -> Self:
        """Find the start and make the first consumer."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def close(self) -> None:
        """Delete the consumer and free everything; loops that wait end. Closing twice is fine."""

    @property
    def next_seq(self) -> int:
        """Where to go on: `first` for another `ordered` behind all that has been taken."""

    @property
    def created_ns(self) -> int:
        """The stream's identity; together with `next_seq` it is a place to go on at."""

    @property
    def is_caught_up(self) -> bool:
        """True when all messages that existed when the block was entered have been taken."""

    def __iter__(self) -> Self:
        """Iterate messages: of what the loop before has left, then what comes."""

    def __next__(self) -> Message:
        """Return the next message, and wait for it."""

    def take_ready(self) -> Message | None:
        """Return the next message if it came together with the last one; None if it did not."""

    def initial(self) -> Iterator[Message]:
        """Yield the messages that existed when the block was entered, then end."""

    def batches(self, *, until_caught_up: bool = False) -> Iterator[list[Message]]:
        """Yield lists of messages, as they arrive together."""

    def events(self) -> Iterator[ReadEvent]:
        """Yield what happens: `Recreated`, `HeartbeatsMissed` and `GapFound`; ends on close."""

class Publisher:
    """Publishes without waiting for each ack; made by `JetStream.publisher`."""

    @property
    def pending_count(self) -> int:
        """Messages whose ack is under way."""

    @property
    def pending_bytes(self) -> int:
        """Bytes of the messages whose ack is under way."""

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
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
    ) -> Callable[[], PubAck]:
        """Send a message; waits only while the window is full."""

    def send_many(self, messages: Iterable[PublishMessage | tuple[str, Payload]]) -> list[PubAck]:
        """Send messages and wait for all of their acks."""

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
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        timeout: float | None = None,
        retry_attempts: int = 2,
        retry_wait: float = 0.25,
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

    def ordered(
        self,
        *,
        filters: Sequence[str] = (),
        first: int | None = None,
        start_time: datetime | int | None = None,
        deliver_policy: DeliverPolicy = "all",
        headers_only: bool = False,
        created_ns: int | None = None,
        on_loss: Literal["raise", "report"] = "raise",
    ) -> OrderedConsumer:
        """Describe a read without an end: what is stored, then what comes, once and in order."""

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
