"""An atomic batch: messages that are stored together, or not at all.

Law: a commit is sent once. If its answer is lost, the error leaves open whether the batch is
stored, and `outcome` finds out. A batch lives on one connection: after a disconnect its messages
could have a gap, so it ends before anything of it is stored.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import Literal, Self

from natsstream._wire.headers import Headers, HeaderValues
from natsstream._wire.parser import Frame
from natsstream.api.features import ATOMIC_BATCH, ATOMIC_BATCH_END, has_feature
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.arguments import check_int, check_seconds, counted
from natsstream.errors import (
    BatchExpiredError,
    BatchIncompleteError,
    ConfigError,
    NatsStreamError,
    NoRespondersError,
    PermissionDeniedError,
    ProtocolError,
    ServerError,
    TransportError,
    UsageError,
    WrongStreamError,
)
from natsstream.publish.admission import check_with_stream
from natsstream.publish.batches.atomic_rules import (
    AtomicState,
    BatchAck,
    check_stream,
    committing,
    read_batch_ack,
)
from natsstream.publish.batches.atomic_sender import AtomicSender
from natsstream.publish.batches.outcome import LostCommit, find_outcome
from natsstream.publish.destination import Destination, check_teller
from natsstream.publish.outgoing import Expect, Payload, Prepared, Rollup, prepare, too_large
from natsstream.publish.pub_ack import no_stream
from natsstream.publish.schedule import Schedule, Ttl

OUTCOME_TIMEOUT_S = 30.0
# Room for the batch's own headers, apart from the stream's name.
_OWN_BYTES = 160

_log = logging.getLogger("natsstream.publisher")

_State = Literal["new", "open", "committing", "committed", "unknown", "over"]


class AtomicBatch:
    """Messages that the stream stores together or not at all; made by `Stream.batch`.

    Use it as `async with stream.batch() as tx`. Leaving the block without `commit` abandons the
    batch, and logs a warning unless an exception or `abandon` has ended it. No reader sees a
    message before the commit.

    Attributes:
        batch_id: The `Nats-Batch-Id` of its messages.
    """

    def __init__(
        self, api: Api, stream: StreamInfo, *, max_messages: int, idle_timeout: float
    ) -> None:
        self._api = api
        self._stream = stream
        self._max = check_int(max_messages, "max_messages", minimum=1)
        self._idle_s = check_seconds(idle_timeout, "idle_timeout")
        # Each stored message carries it: twelve characters, of 72 random bits.
        self.batch_id: str = secrets.token_urlsafe(9)
        self._batch = AtomicState(stream.config, self.batch_id, self._max)
        self._destination = Destination(api, stream)
        self._state: _State = "new"
        self._failure: NatsStreamError | None = None
        self._ack: BatchAck | None = None
        self._lock = asyncio.Lock()
        self._sender: AtomicSender | None = None
        # Servers before 2.14 end a batch only with a message: the last one is kept back for it.
        self._has_ending = True
        self._held: tuple[Prepared, bytes] | None = None
        # The size of the largest message that was sent, and its subject.
        self._largest = (0, "")

    @property
    def count(self) -> int:
        """Messages in the batch."""
        return self._batch.count

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise UsageError("the batch was opened before", hint="make one for each block")
        await self._api.require(ATOMIC_BATCH)
        config = self._stream.config
        if not config.allow_atomic or config.no_ack:  # It may have been changed since.
            self._stream = await stream_info(self._api, config.name)
            check_stream(self._stream.config, atomic=True)
            self._batch = AtomicState(self._stream.config, self.batch_id, self._max)
            self._destination = Destination(self._api, self._stream)
        client = self._api.client
        version = client.server_info.get("version")
        level = await self._api.level()
        self._has_ending = has_feature(ATOMIC_BATCH_END, version=version, level=level)
        self._sender = AtomicSender(client, config.name, self.batch_id)
        self._state = "open"
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._state != "open":
            return
        if kind is None and self.count:
            _log.warning(
                "batch into stream %s: the block ended without a commit, %s not stored; call "
                "tx.commit(), or tx.abandon() to give them up",
                self._stream.name,
                counted(self.count, "message"),
            )
        self._end(None)

    async def add(
        self,
        subject: str,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        rollup: Rollup | None = None,
        schedule: Schedule | None = None,
    ) -> int:
        """Add a message to the batch, with the arguments of `JetStream.publish`.

        Expectations are checked at the commit, against the stream without the batch. Only the
        first message may expect `last_seq`, and none `last_msg_id`.

        Returns:
            The message's number in the batch, from 1.

        Raises:
            UsageError: The batch is not open, or an argument is illegal here. The batch stays open
                without the message.
            BatchTooLargeError: The batch is full; it stays open without the message.
            BatchDuplicateError: The batch has this message id; it stays open without the message.
            WrongStreamError: Another stream captures the subject; the batch stays open without the
                message.
            BatchExpiredError: The batch was idle for longer than the server keeps it.
            TooManyBatchesError: The stream has too many open batches; nothing is stored.
            PermissionDeniedError: This user may not publish this message, or an earlier one.
            NoRespondersError: No stream captures the subject.
            TransportError: The connection broke or no answer came. The batch is over, and nothing
                of it is stored.

        Cost: one round trip for the first message and each 250th one.
        """
        message = prepare(subject, data, headers, msg_id, expect, ttl, rollup, schedule)
        async with self._lock:
            self._check_open()
            headers = await self._check_message(message)
            await self._let_go()
            block = self._batch.take(message, headers)
            number = self._batch.count
            if self._has_ending:
                await self._stage(message, block)
            else:
                self._held = (message, block)
            return number

    async def commit(
        self,
        subject: str | None = None,
        data: Payload = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expect: Expect | None = None,
        ttl: Ttl | None = None,
        rollup: Rollup | None = None,
        schedule: Schedule | None = None,
        timeout: float | None = None,
    ) -> BatchAck:
        """Store the batch, with one last message if a subject is given, and return its ack.

        Args:
            subject: Subject of the last message; None commits without one.
            data: Payload of the last message.
            headers: Its headers, as in `JetStream.publish`.
            msg_id: Its id for the stream's duplicate window.
            expect: Its conditions on the stream.
            ttl: Its time to live.
            rollup: The earlier messages that it replaces.
            schedule: The time at which the server publishes it.
            timeout: Seconds to wait for the ack; None is `request_timeout`.

        Raises:
            UsageError: The batch is empty or not open, or an argument is illegal.
            WrongLastSequenceError: An expectation did not hold; nothing of the batch is stored.
            BatchDuplicateError: The stream has a message with the same id; nothing of the batch is
                stored.
            BatchIncompleteError: The server lacks a message of the batch, or has dropped it;
                nothing of it is stored.
            PermissionDeniedError: This user may not publish one of the messages; nothing of the
                batch is stored.
            ServerError: The stream refused the batch; nothing of it is stored.
            WrongStreamError: Another stream captures the last message's subject, and the batch
                stays open; or another stream has stored the batch, which the error says.
            NoRespondersError: No stream received the commit; nothing of the batch is stored.
            TransportError: No answer came: the batch may be stored or not. `outcome` finds out.

        Cost: one round trip, two for a batch of one message, and a few milliseconds in a file store
        with one replica.
        """
        given = (headers, msg_id, expect, ttl, rollup, schedule)
        if subject is None and (data or any(each is not None for each in given)):
            raise ConfigError("commit: the last message has no subject", hint="give its subject")
        if timeout is not None:
            check_seconds(timeout, "timeout")
        last = None
        if subject is not None:
            last = prepare(subject, data, headers, msg_id, expect, ttl, rollup, schedule)
        async with self._lock:
            self._check_open()
            subject, payload, block = await self._last(last)
            try:
                self._wire().check()
            except NatsStreamError as error:
                self._end(error)
                raise
            wait_s = self._api.client.options.request_timeout if timeout is None else timeout
            return await self._commit(subject, payload, block, wait_s)

    async def outcome(self, *, timeout: float = OUTCOME_TIMEOUT_S) -> BatchAck | None:
        """Return the batch's ack if it is stored, and None if it is not and never will be.

        For a `commit` whose answer was lost. The call first makes the server drop the batch, so
        that a commit in flight has no effect. Then it searches the stream for the batch.

        Args:
            timeout: Seconds in all.

        Raises:
            UsageError: The batch is still open.
            BatchOutcomeUnknownError: Messages were removed where the batch would be, the stream was
                recreated, or its leader did not answer in time. If `retryable` is True, call it
                again.

        Cost: nothing if the commit was answered. Otherwise some round trips, up to some seconds on
        a replicated stream, and a read of the messages stored since the batch began.
        """
        check_seconds(timeout, "timeout")
        async with self._lock:
            if self._state in ("new", "open"):
                raise UsageError("the batch was not committed", hint="call commit() first")
            if self._state != "unknown":
                return self._ack
            sender = self._wire()
            lost = LostCommit(
                self._stream,
                self.batch_id,
                self._batch.count,
                sender.anchor,
                self._batch.last_subject,
                is_known=sender.sent > 0,
            )
            self._ack = await find_outcome(self._api, lost, timeout)
            self._state = "committed" if self._ack is not None else "over"
            return self._ack

    async def abandon(self) -> None:
        """Abandon the batch: nothing of it is stored. Abandoning twice is fine.

        Raises:
            UsageError: The batch was committed, or may have been.
        """
        async with self._lock:
            if self._state in ("committed", "unknown"):
                raise UsageError(f"the batch is {self._state}", hint="a commit cannot be undone")
            if self._state == "open":
                self._end(None)

    # Messages in flight.

    async def _check_message(self, message: Prepared) -> Headers | None:
        headers = self._batch.check(message)
        await self._destination.check(message.subject)
        self._check_open()  # Another task may have left the block meanwhile.
        if message.needs or message.expects_last_id:
            await check_with_stream(self._api, message, stream=self._stream)
            self._check_open()  # Another task may have left the block meanwhile.
        size = len(message.data) + len(message.block) + _OWN_BYTES + len(self._stream.name)
        largest = self._api.client.max_payload_bytes
        if size > largest:
            what = f"message to {message.subject}, with the batch's headers,"
            raise too_large(what, size, largest)
        self._check_idle()
        return headers

    async def _let_go(self) -> None:
        """Send the message that was kept back: it is not the last one."""
        held, self._held = self._held, None
        if held is not None:
            await self._stage(*held)

    async def _stage(self, message: Prepared, block: bytes) -> None:
        """Send a message that does not end the batch."""
        sender = self._wire()
        before = sender.sent
        self._largest = max(self._largest, (len(message.data) + len(block), message.subject))
        try:
            await sender.stage(message.subject, message.data, block)
        except NoRespondersError as error:
            failure = no_stream(message.subject)
            self._end(failure)
            raise failure from error
        except NatsStreamError as error:
            # Else this one was not sent, or an earlier one was denied.
            is_denied = isinstance(error, PermissionDeniedError)
            if sender.sent > before and (not is_denied or error.subject == message.subject):
                error.index = sender.sent - 1
            if isinstance(error, TransportError):
                error.hint = "nothing of the batch is stored: begin it again"
            self._end(error)
            raise
        except BaseException:  # Cancelled: what the server would have said is not known.
            self._end(sender.lost("adding a message was cancelled"))
            raise
        self._check_open()  # Another task may have left the block while this one waited.

    async def _last(self, last: Prepared | None) -> tuple[str, bytes, bytes]:
        """Return subject, payload and block of the message that commits."""
        if last is not None:
            headers = await self._check_message(last)
            await self._let_go()
            if self._has_ending and not self._wire().sent:
                # The stream must know the batch before its commit, so that it can forget it: a
                # commit that is the first message would begin a batch whenever it arrives.
                await self._stage(last, self._batch.take(last, headers))
                return self._wire().anchor, b"", self._batch.ending()
            return last.subject, last.data, committing(self._batch.take(last, headers))
        if not self._batch.count:
            raise ConfigError("the batch is empty", hint="add messages, or give commit() one")
        self._check_idle()
        if self._held is not None:
            message, block = self._held
            self._held = None
            return message.subject, message.data, committing(block)
        return self._wire().anchor, b"", self._batch.ending()

    async def _commit(self, subject: str, data: bytes, block: bytes, wait_s: float) -> BatchAck:
        self._state = "committing"
        try:
            frame = await self._wire().commit(subject, data, block, wait_s)
            ack = self._read(frame, subject)
            self._state, self._ack = "committed", ack
            check_teller(subject, ack.stream, ack.sequence, self._stream.name)
        except WrongStreamError as error:
            if self._ack is None:  # The server's word, to a caller who has named a stream.
                self._explain(error)
                self._end(error)
            raise
        except NoRespondersError as error:
            failure = no_stream(subject)
            failure.detail = "nothing of the batch is stored"
            self._end(failure)
            raise failure from error
        except ServerError as error:
            self._explain(error)
            self._end(error)
            raise
        except TransportError as error:
            self._state, self._failure = "unknown", error
            if not isinstance(error, ProtocolError):
                error.message = f"{error.message}; the batch may be stored or not"
            error.hint = "await tx.outcome() finds out whether the batch is stored"
            raise
        except BaseException:  # Cancelled after the commit was sent.
            self._state = "unknown"
            raise
        finally:
            self._wire().close()
        return ack

    def _read(self, frame: Frame, subject: str) -> BatchAck:
        try:
            return read_batch_ack(frame, subject, self.batch_id)
        except BatchIncompleteError as error:
            self._wire().raise_denied(error)
            raise

    def _explain(self, error: ServerError) -> None:
        """Say what a refusal leaves open."""
        error.detail = error.detail or "nothing of the batch is stored"
        if isinstance(error, BatchIncompleteError):
            strays = self._batch.strays()
            size, subject = self._largest
            error.hint = (
                "send the whole batch again, under a new id; if that fails too, is the stream's "
                f"max_msg_size now below {size} bytes, which the message to {subject} has?"
            )
            limit = self._stream.config.max_msg_size or 0
            if strays:
                error.hint = (
                    f"does the stream capture {', '.join(strays[:3])}? if so, send it again"
                )
            elif 0 < limit < size:  # The server drops such a message without a word.
                error.hint = (
                    f"raise the stream's max_msg_size, which is {limit} bytes: the message to "
                    f"{subject} has {size}"
                )

    # State.

    def _check_open(self) -> None:
        if self._state == "open":
            return
        if self._state == "new":
            raise UsageError("the batch is not open", hint="use it with 'async with'")
        raise UsageError(
            f"the batch is {'over' if self._state == 'committing' else self._state}",
            detail=self._failure.message if self._failure is not None else "",
            hint="make another one: stream.batch()",
        )

    def _check_idle(self) -> None:
        """Refuse to send into a batch that the server has given up."""
        sender = self._wire()
        waited_s = asyncio.get_running_loop().time() - sender.sent_at
        if not sender.sent or waited_s < self._idle_s:
            return
        error = BatchExpiredError(
            f"batch into {self._stream.name}: nothing was sent for {waited_s:.1f} s, and the "
            f"server keeps a batch for {self._idle_s:g} s",
            detail="nothing of the batch is stored",
            hint="gather the messages first, then send the batch; or idle_timeout= where the "
            "server keeps it for longer",
        )
        self._end(error)
        raise error

    def _wire(self) -> AtomicSender:
        if self._sender is None:
            raise UsageError("the batch is not open", hint="use it with 'async with'")
        return self._sender

    def _end(self, failure: NatsStreamError | None) -> None:
        """End a batch that is not committed, and let the server forget it."""
        self._state, self._failure = "over", failure
        self._held = None
        if self._sender is not None:
            self._sender.end()

    def __repr__(self) -> str:
        return f"<AtomicBatch {self.batch_id} into {self._stream.name}: {self.count} {self._state}>"
