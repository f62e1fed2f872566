"""A stream that producers write to: opened producers, and what is stored."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from natsstream._wire.client import Client
from natsstream.api.control import control_of
from natsstream.errors import ServerError
from natsstream.producer import shared_writer
from natsstream.producer.records import StateRecord, token_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

    from natsstream import IdempotentProducer, JetStream, Message, Stream
    from natsstream._wire.parser import Frame
    from natsstream.publish.batches.atomic_rules import BatchAck

MODES = ("shared", "exclusive")


@dataclass(frozen=True, slots=True)
class Place:
    """A stream for producers, with data under `<name>.>`.

    Attributes:
        js: A connection.
        name: The stream's name.
        replicas: Its replicas.
        port: The port of a server of it.
    """

    js: JetStream
    name: str
    replicas: int
    port: int

    async def make(self, **fields: Any) -> Stream:
        """Make the stream, or update it."""
        subjects = [f"{self.name}.>"]
        return await self.js.streams.ensure(
            self.name, subjects=subjects, replicas=self.replicas, **fields
        )

    async def open(self, producer_id: str = "p", **options: Any) -> IdempotentProducer:
        """Open a producer into the stream."""
        given: dict[str, Any] = {"subject": f"{self.name}.d", "update_stream": True, **options}
        return await self.js.producer(self.name, producer_id, **given)

    async def data(self, subject: str = "d") -> list[bytes]:
        """Return the payloads of the data."""
        return [message.data for message in await self.messages(subject)]

    async def messages(self, subject: str = "d", *, last_seq: int | None = None) -> list[Message]:
        """Return the messages of the data."""
        stream = await self.js.streams.get(self.name)
        filters = [f"{self.name}.{subject}"]
        return [m async for m in stream.read(first_seq=1, last_seq=last_seq, filters=filters)]

    async def state_subject(self, producer_id: str = "p") -> str:
        """Return the subject of a producer's state record."""
        control = control_of((await self.js.streams.get(self.name)).cached.config)
        assert control is not None
        return control.state(token_of(producer_id))

    async def state(self, producer_id: str = "p") -> tuple[StateRecord, int]:
        """Return a producer's state record and its sequence."""
        stream = await self.js.streams.get(self.name)
        message = await stream.get(last_by_subject=await self.state_subject(producer_id))
        assert message is not None
        return StateRecord.from_json(message.data), message.sequence

    async def put_back(self, record: StateRecord, producer_id: str = "p") -> None:
        """Store a state record as a restored backup has it: an old one, behind newer messages."""
        subject = await self.state_subject(producer_id)
        await self.js.publish(subject, record.to_json(), rollup="subject")


def numbers(count: int, start: int = 0) -> list[bytes]:
    """Return payloads."""
    return [b"%d" % number for number in range(start, start + count)]


def append_all(producer: IdempotentProducer, payloads: Sequence[bytes]) -> None:
    """Append payloads."""
    for payload in payloads:
        producer.append(payload)


async def append_singly(producer: IdempotentProducer, payloads: Sequence[bytes]) -> list[bool]:
    """Append payloads, each in a batch of its own; return which of them were duplicates."""
    return [(await producer.append_wait(payload)).duplicate for payload in payloads]


def is_ack(line: bytes, body: bytes) -> bool:
    """Tell whether a frame is the stream's ack of what was stored."""
    return line.startswith(b"MSG _INBOX.") and body.startswith(b'{"stream":')


class CommitHold:
    """Lets the next commit of an atomic batch wait at the client: its messages are staged.

    Attributes:
        batch_id: The batch.
        is_staged: Set when a batch has been sent but for its commit.
        is_free: Set it, and the commit goes on.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batch_id = ""
        self.is_staged = asyncio.Event()
        self.is_free = asyncio.Event()
        request = Client.request

        async def held(client: Client, subject: str, *args: Any, **options: Any) -> Frame:
            headers: bytes = options.get("headers", b"")
            if b"Nats-Batch-Commit:" in headers and not self.is_free.is_set():
                await client.flush(30)
                _, _, rest = headers.partition(b"Nats-Batch-Id:")
                self.batch_id = rest.split(b"\r\n")[0].decode().strip()
                self.is_staged.set()
                async with asyncio.timeout(30):
                    await self.is_free.wait()
            return await request(client, subject, *args, **options)

        monkeypatch.setattr(Client, "request", held)


class Refusals:
    """Notes what the stream refuses shared producers.

    Attributes:
        seen: The errors, the oldest first.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[ServerError] = []
        store = shared_writer.store_together

        async def noted(*args: Any, **options: Any) -> BatchAck:
            try:
                return await store(*args, **options)
            except ServerError as error:
                self.seen.append(error)
                raise

        monkeypatch.setattr(shared_writer, "store_together", noted)

    def has(self, err_code: int) -> bool:
        """Tell whether a batch was refused with this code."""
        return any(error.err_code == err_code for error in self.seen)
