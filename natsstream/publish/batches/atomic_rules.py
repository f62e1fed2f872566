"""The rules of atomic batches: legal messages, their headers, and the ack.

Law: what the server would refuse at the commit for certain is refused before anything is sent,
because by then it says little of the reason.

Source: ADR-50; nats-server's stream.go processJetStreamAtomicBatchMsg.
"""

from __future__ import annotations

from dataclasses import dataclass

from natsstream._wire.headers import HeaderName, Headers
from natsstream._wire.parser import Frame
from natsstream.api.names import covers
from natsstream.api.requests import decode
from natsstream.api.stream_config import StreamConfig
from natsstream.api.stream_info import StreamInfo
from natsstream.errors import (
    BatchDisabledError,
    BatchDuplicateError,
    BatchTooLargeError,
    ConfigError,
    ProtocolError,
)
from natsstream.publish.destination import check_acks
from natsstream.publish.outgoing import Prepared, add_header
from natsstream.publish.pub_ack import read_ack

MAX_MESSAGES = 1_000
"""The server's default; its configuration may say another number (`jetstream.limits.batch`)."""
IDLE_TIMEOUT_S = 10.0
"""So long the server keeps a batch to which nothing comes; its configuration may differ."""
# No message of a batch has this number: it makes a gap, upon which the server forgets the batch.
# Servers of 2.12.0 take an unknown commit value, the other way to end a batch, for a commit.
ABORT_NUMBER = 1 << 40
_BATCH_HEADERS = (HeaderName.BATCH_ID, HeaderName.BATCH_SEQUENCE, HeaderName.BATCH_COMMIT)


@dataclass(frozen=True, slots=True)
class BatchAck:
    """The stream's word that it has a whole atomic batch.

    Attributes:
        stream: The stream.
        sequence: The sequence of the batch's last message.
        count: Its messages.
        batch_id: The id that its messages carry as `Nats-Batch-Id`.
        domain: The JetStream domain of the server, None where there is none.
    """

    stream: str
    sequence: int
    count: int
    batch_id: str
    domain: str | None = None

    @property
    def first_seq(self) -> int:
        """The sequence of its first message: the messages of a batch stand together."""
        return self.sequence - self.count + 1


class AtomicState:
    """The messages that an atomic batch has, as far as the rules are about them.

    Attributes:
        count: Messages taken.
        last_subject: The last one's subject.
    """

    def __init__(self, config: StreamConfig, batch_id: str, max_messages: int) -> None:
        self.count: int = 0
        self.last_subject: str = ""
        self._config = config
        self._mark = batch_mark(batch_id)
        self._max = max_messages
        self._subjects: set[str] = set()
        self._ids: set[str] = set()

    def check(self, message: Prepared) -> Headers | None:
        """Refuse what the server would refuse at the commit; return the headers, if it has any.

        Raises:
            BatchTooLargeError: The batch is full.
            BatchDuplicateError: The batch has the message's id already.
            ConfigError: A header or an expectation cannot stand in a batch, or not here.
        """
        if self.count >= self._max:
            raise BatchTooLargeError(
                f"batch into {self._config.name}: it has {self._max} messages already",
                hint="commit it and begin another one; max_messages= where the server takes more",
            )
        if not message.block:
            return None
        headers = Headers(message.block)
        self._check_headers(message.subject, headers)
        return headers

    def _check_headers(self, subject: str, headers: Headers) -> None:
        given = [name.value for name in _BATCH_HEADERS if name in headers]
        if given:
            raise ConfigError(f"headers: {given[0]} is set by the batch", hint="leave it out")
        if HeaderName.EXPECTED_LAST_MSG_ID in headers:
            raise ConfigError(
                "expect: last_msg_id in an atomic batch",
                detail="the server refuses the batch for it",
                hint="expect last_seq or last_subject_seq",
            )
        if HeaderName.EXPECTED_LAST_SEQUENCE in headers and self.count:
            raise ConfigError(
                f"expect: last_seq at message {self.count + 1} of a batch",
                hint="only the first message can expect it; it then holds for the whole batch",
            )
        if HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE in headers:
            about = headers.get(HeaderName.EXPECTED_LAST_SUBJECT_SEQUENCE_SUBJECT, subject)
            if about in self._subjects:
                raise ConfigError(
                    f"expect: an earlier message of the batch writes to {about}",
                    detail="the server compares with what was stored before the batch",
                    hint="expect it at the first message to that subject, or before it",
                )
        msg_id = headers.get(HeaderName.MSG_ID)
        if msg_id is not None and msg_id in self._ids:
            raise BatchDuplicateError(
                f"batch into {self._config.name}: it has a message with id {msg_id!r} already",
                hint="the server would refuse the whole batch; leave one of the two out",
            )

    def take(self, message: Prepared, headers: Headers | None = None) -> bytes:
        """Count a message in and return its header block, the batch's own headers added.

        Args:
            message: A message that passed `check`.
            headers: The result of `check`.
        """
        self.count += 1
        self.last_subject = message.subject
        block = message.block
        if block and headers is None:
            headers = Headers(block)
        if headers is not None and HeaderName.MSG_ID in headers:
            self._ids.add(headers[HeaderName.MSG_ID])
        if self._config.subject_transform is None:  # Else what is stored has other subjects.
            self._subjects.add(message.subject)
        return marked(block, self._mark, self.count)

    def ending(self) -> bytes:
        """Return the block of the message that ends the batch and is not stored."""
        block = marked(b"", self._mark, self.count + 1)
        return add_header(block, HeaderName.BATCH_COMMIT, "eob")

    def strays(self) -> list[str]:
        """Return subjects of the batch that the stream did not have when it was last looked at."""
        patterns = self._config.subjects or [self._config.name]
        return sorted(
            subject
            for subject in self._subjects
            if not any(covers(pattern, subject) for pattern in patterns)
        )


def batch_mark(batch_id: str) -> bytes:
    """Return the two headers of each message of a batch, up to the number: paid once."""
    names = HeaderName.BATCH_ID.value, HeaderName.BATCH_SEQUENCE.value
    return f"{names[0]}: {batch_id}\r\n{names[1]}: ".encode()


def marked(block: bytes, mark: bytes, number: int) -> bytes:
    """Return a message's block with its number in the batch."""
    return b"%b%b%d\r\n\r\n" % (block[:-2] if block else b"NATS/1.0\r\n", mark, number)


def committing(block: bytes) -> bytes:
    """Return a message's block with the mark that the batch ends with it."""
    return add_header(block, HeaderName.BATCH_COMMIT, "1")


def abort_block(batch_id: str) -> bytes:
    """Return the block of a message that leaves a gap, so that the server forgets the batch."""
    block = add_header(b"", HeaderName.BATCH_ID, batch_id)
    return add_header(block, HeaderName.BATCH_SEQUENCE, ABORT_NUMBER)


def check_stream(config: StreamConfig, *, atomic: bool) -> None:
    """Refuse a stream that takes no batches.

    Raises:
        ConfigError: It never says what it stored, or copies another stream.
        BatchDisabledError: It was not allowed to.
    """
    kind, field = ("atomic", "allow_atomic") if atomic else ("fast", "allow_batched")
    if config.mirror:
        raise ConfigError(
            f"stream {config.name} is a mirror: nothing can be published into it",
            hint="publish into the stream that it mirrors",
        )
    check_acks(config)
    # An asynchronous store may lose what it has acked, so the server takes no atomic batch.
    if atomic and config.persist_mode == "async":
        raise ConfigError(
            f"stream {config.name} has persist_mode='async'",
            hint="js.streams.update(name, persist_mode='default')",
        )
    if not (config.allow_atomic if atomic else config.allow_batched):
        raise BatchDisabledError(
            f"stream {config.name} takes no {kind} batches",
            hint=f"js.streams.update(name, {field}=True)",
        )


def read_staged(frame: Frame, what: str) -> None:
    """Read the answer to a message that does not end its batch; an empty one says it is taken.

    Raises:
        ServerError: The batch was refused.
        ProtocolError: The message was stored for itself, or the answer is no server's.
    """
    if not frame[3]:
        return
    decode(frame[3], what)
    raise ProtocolError(
        f"{what}: the answer is not one to a batch",
        detail=repr(frame[3][:80]),
        hint="the message may be stored alone: is the stream on an older server?",
    )


def read_batch_ack(frame: Frame, subject: str, batch_id: str) -> BatchAck:
    """Return the ack of a whole batch, or raise what its answer says instead.

    Raises:
        ServerError: The stream refused the batch; nothing of it is stored.
        ProtocolError: It is not the answer to a batch.
    """
    ack = read_ack(frame, subject)
    answer = decode(frame[3], f"publish to {subject}")
    count = answer.count("count")
    if answer.text("batch", "") != batch_id or not count:
        raise ProtocolError(
            f"batch {batch_id}: the answer is no ack of it",
            detail=repr(frame[3][:80]),
            hint="does another program answer on the subject?",
        )
    return BatchAck(ack.stream, ack.sequence, count, batch_id, ack.domain)


def is_clustered(stream: StreamInfo) -> bool:
    """Return True if a server of a cluster holds the stream."""
    return stream.cluster is not None and bool(stream.cluster.name)


def may_stay_in_part(stream: StreamInfo) -> bool:
    """Return True if a part of an atomic batch stays in the stream when its server is killed.

    A server that stores a batch, and is killed in between, stores the rest when it starts again. In
    a cluster it leaves the rest out, where the stream has one replica in files (nats-server 2.12 to
    2.15).
    """
    config = stream.config
    is_alone = (config.replicas or 1) == 1
    return is_clustered(stream) and is_alone and config.storage != "memory"
