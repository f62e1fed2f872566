"""Writes the messages of fast batches, and takes what the server says to them.

Law: nothing is sent twice but what stores nothing: a ping, and the end of a batch. After a break of
the connection a ping asks what has come: a batch belongs to the stream, not to the connection.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from natsstream._wire.encode import fast_command, publish_start
from natsstream._wire.parser import Frame
from natsstream._wire.permission_violations import denied_error
from natsstream._wire.subscriptions import Subscription
from natsstream.api.requests import Api
from natsstream.arguments import counted
from natsstream.errors import (
    BatchIncompleteError,
    NatsStreamError,
    NoRespondersError,
    PermissionDeniedError,
    RequestTimeoutError,
    WrongStreamError,
)
from natsstream.events import PermissionDenied
from natsstream.publish.batches.fast_answers import (
    FinalAck,
    FlowAck,
    FlowGap,
    Operation,
    Refused,
    read_answer,
    reply_prefix,
)
from natsstream.publish.batches.fast_state import IngestState
from natsstream.publish.destination import wrong_stream
from natsstream.publish.outgoing import Prepared
from natsstream.publish.publish import lost_error

# Commands gathered go out as one write of about this size, so that the server begins early.
WRITE_BYTES = 64 << 10
# The server forgets a batch to which nothing comes, and tells nobody: pings within its time.
_KEEP_ALIVES = 3
# While a leader changes nobody listens (ADR-22).
_START_RETRIES = 2
_START_RETRY_WAIT_S = 0.25
_SUBJECTS_MAX = 1_024
# As a plain number: an enum's costs twice as long to write.
_APPEND = int(Operation.APPEND)


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """How an ingest works.

    Attributes:
        flow: An ack is wanted each so many messages, at most.
        outstanding: Acks that may be in flight.
        gaps_are_ok: Whether a batch continues after a gap.
        ack_timeout_s: Seconds that a wait takes without any progress.
        idle_timeout_s: Seconds for which the server keeps a batch without a sign.
        ping_after_s: A wait for an ack asks with a ping after so long; a ping is no message and is
            not stored.
    """

    flow: int
    outstanding: int
    gaps_are_ok: bool
    ack_timeout_s: float
    idle_timeout_s: float
    ping_after_s: float = 1.0


class FastSender:
    """The wire of an ingest.

    Args:
        api: The connection.
        ingest: The state of the ingest.
        stream: The stream's name.
        options: How it works.

    Attributes:
        room: Messages that can be taken without waiting.
        starts: Command prefix by subject; these subjects are legal.
        waiting: Commands of messages that are taken and not written.
        waiting_bytes: Their bytes.
        largest: The largest message that the server takes.
        failure: Why the batch can take nothing more; None while it can.
    """

    def __init__(self, api: Api, ingest: IngestState, stream: str, options: IngestOptions) -> None:
        self._client = api.client
        self._ingest = ingest
        self._stream = stream
        self._options = options
        self._keep_alive_s = options.idle_timeout_s / _KEEP_ALIVES
        self._inbox = api.client.new_inbox()
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._heard = asyncio.Event()
        self._progress = 0
        self._id = ""
        self._prefix = ""
        self._anchor = ""  # Where pings and the end go: a subject that the stream has.
        self._odd: NatsStreamError | None = None
        self._subscription: Subscription | None = None
        self._stops: list[Callable[[], None]] = []
        self._keeper: asyncio.TimerHandle | None = None
        self._was_idle = False
        self._is_write_due = False
        self._is_ending = False
        self.room: int = 0
        self.starts: dict[str, bytes] = {}
        self.waiting: list[bytes] = []
        self.waiting_bytes: int = 0
        self.largest: int = api.client.max_payload_bytes
        self.failure: NatsStreamError | None = None

    async def open(self) -> None:
        """Listen for answers."""
        client = self._client
        self._subscription = await client.subscribe(
            f"{self._inbox}.>", self._on_frames, on_denied=self._on_inbox_denied
        )
        self._stops = [client.watch(self._on_connection), client.watch_denied(self._on_denied)]
        self._keeper = self.loop.call_later(self._keep_alive_s, self._keep_alive)

    def close(self) -> None:
        """Stop listening, and let the server forget a batch that has not ended."""
        if self._subscription is None:
            return
        self._drop()
        if not self._ingest.current.has_ended:
            self._write_end()
        for stop in self._stops:
            stop()
        if self._keeper is not None:
            self._keeper.cancel()
        self._subscription.close()
        self._subscription = None
        self.room = 0
        self._wake()

    # Beginning and ending a batch.

    async def begin(self, message: Prepared) -> None:
        """Begin a batch with its first message, and wait until the server has it.

        Raises:
            NatsStreamError: The message was refused, or there was no answer.
        """
        attempts = _START_RETRIES
        while True:
            batch = self._ingest.current
            self._id = secrets.token_hex(8)
            self._prefix = reply_prefix(
                self._inbox,
                self._id,
                self._options.flow,
                gaps_are_ok=self._options.gaps_are_ok,
            )
            self.starts.clear()
            self.failure = None
            self._is_ending = False
            start = self.start_of(message.subject)
            self._anchor = message.subject
            batch.taken = 1
            self.put(start, 1, Operation.START, message.block, message.data)
            self.write()
            await self.wait(lambda batch=batch: batch.has_started or batch.has_ended, self.ping)
            if attempts and isinstance(self._reason(), NoRespondersError):
                attempts -= 1
                self._ingest.restart()
                await asyncio.sleep(_START_RETRY_WAIT_S)
                continue
            return

    def _reason(self) -> NatsStreamError | None:
        # By a call: a type checker does not see that answers set it while one waits.
        return self.failure

    async def end(self) -> None:
        """End the batch and wait for the stream's last word on it.

        Raises:
            RequestTimeoutError: It did not come in time.
        """
        batch = self._ingest.current
        if batch.taken and not batch.has_ended:
            self.write()
            await self.wait(lambda: not self.waiting or batch.has_ended, self.ping)
            self._is_ending = True
            self.room = 0
            if not batch.has_ended:
                self._write_end()
                await self.wait(lambda: batch.has_ended, self._write_end)

    def give_up(self) -> None:
        """The stream did not say how the batch ended: what was not written never will be."""
        self._ingest.current.on_vanished()
        self._drop()
        self.room = 0

    def turn(self) -> None:
        """Make room for another batch."""
        self._ingest.turn()
        self._id = ""
        self.room = 0
        self.failure = None

    # Writing.

    def start_of(self, subject: str) -> bytes:
        """Return what the commands of a legal subject begin with."""
        start = self.starts.get(subject)
        if start is None:
            if len(self.starts) >= _SUBJECTS_MAX:
                self.starts.clear()
            start = self.starts[subject] = publish_start(subject, self._prefix)
        return start

    def put_plain(self, start: bytes, data: bytes) -> int:
        """Take a message without headers, for which there is room; return its number."""
        self.room -= 1
        batch = self._ingest.current
        number = batch.taken = batch.taken + 1
        # Not by `put`: a call less is 5 % of what a message costs.
        command = fast_command(start, number, _APPEND, b"", data)
        self.waiting.append(command)
        self.waiting_bytes += len(command)
        if self.waiting_bytes >= WRITE_BYTES:
            self.write()
        elif not self._is_write_due:
            self._is_write_due = True
            self.loop.call_soon(self.write)
        return batch.base + number

    def put_some(self, messages: Sequence[Prepared], index: int) -> int:
        """Take messages from an index on, as many as there is room for; return the next index."""
        batch, starts = self._ingest.current, self.starts
        while self.room > 0 and index < len(messages):
            self.room -= 1
            subject, data, block, _, _ = messages[index]
            index += 1
            batch.taken += 1
            start = starts.get(subject) or self.start_of(subject)
            self.put(start, batch.taken, _APPEND, block, data)
        return index

    def put(self, start: bytes, number: int, operation: int, block: bytes, data: bytes) -> None:
        """Queue the command of a message."""
        command = fast_command(start, number, operation, block, data)
        self.waiting.append(command)
        self.waiting_bytes += len(command)
        if self.waiting_bytes >= WRITE_BYTES:
            self.write()
        elif not self._is_write_due:
            self._is_write_due = True
            self.loop.call_soon(self.write)

    def write(self) -> None:
        """Write what waits, if a server is connected."""
        self._is_write_due = False
        if self.waiting and self._write(b"".join(self.waiting)):
            self._ingest.current.written += len(self.waiting)
            self.waiting.clear()
            self.waiting_bytes = 0
            self._was_idle = False
            if self._client.is_congested:
                self.room = 0  # The next message waits for the socket.

    def _write(self, run: bytes) -> bool:
        try:
            return self._client.write_now(run)
        except NatsStreamError as error:  # The connection is closed.
            self._fail(error)
            return False

    def ping(self) -> None:
        """Ask what has come; the server answers with an ack or a gap."""
        written = self._ingest.current.written
        if written:
            self._write(self._empty(written, Operation.PING))

    def _write_end(self) -> None:
        """End the batch without a message; more than once is fine, as it stores nothing."""
        written = self._ingest.current.written
        if written:
            self._write(self._empty(written + 1, Operation.COMMIT_END))

    def _empty(self, number: int, operation: Operation) -> bytes:
        return fast_command(self.start_of(self._anchor), number, operation, b"", b"")

    # Waiting.

    async def wait(self, is_done: Callable[[], bool], ask: Callable[[], None]) -> None:
        """Wait for the server, asking it each second.

        Raises:
            RequestTimeoutError: Nothing moved for `ack_timeout` seconds.
            NatsStreamError: The connection was closed.
        """
        seen, since = self._progress, self.loop.time()
        while not is_done():
            if self._client.is_closed:
                raise self._client.closing_error()
            self.write()
            self._heard.clear()
            try:
                async with asyncio.timeout(self._options.ping_after_s):
                    await self._heard.wait()
            except TimeoutError:
                if not is_done():
                    ask()
            if self._progress != seen:
                seen, since = self._progress, self.loop.time()
            elif self.loop.time() - since >= self._options.ack_timeout_s and not is_done():
                raise self._stalled()

    async def wait_for_room(self) -> None:
        """Wait until a message can be taken, or the batch is over.

        Raises:
            RequestTimeoutError: Nothing moved for `ack_timeout` seconds.
            ConnectionLostError: The server reads nothing.
        """
        self.write()
        if self._client.is_congested:
            await self._client.drain()
        self._count_room()
        await self.wait(lambda: self.room > 0 or self.is_over, self.ping)

    @property
    def is_over(self) -> bool:
        """True when the batch takes nothing more."""
        return self.failure is not None or self._ingest.current.has_ended

    def _count_room(self) -> None:
        batch = self._ingest.current
        is_open = batch.has_started and not self.is_over and not self._is_ending
        self.room = max(batch.room(self._options.outstanding), 0) if is_open else 0

    def _stalled(self) -> RequestTimeoutError:
        batch = self._ingest.current
        odd = f"; {self._odd.message}" if self._odd is not None else ""
        limit_s = self._options.ack_timeout_s
        return RequestTimeoutError(
            f"fast batch into {self._stream}: nothing was acked for {limit_s:g} s",
            detail=f"message {batch.base + batch.acked} was the last{odd}",
            hint="has the stream a leader? resume() begins another batch",
            retryable=True,
        )

    # Callbacks of the server and the connection.

    def _on_frames(self, frames: list[Frame]) -> None:
        batch = self._ingest.current
        for frame in frames:
            if batch.has_ended or not self._id:
                break
            try:
                answer = read_answer(frame, self._id, self._stream)
            except NatsStreamError as error:
                self._odd = error  # Anybody can write here; the stall that follows tells it.
                continue
            match answer:
                case FlowAck():
                    before = batch.acked, batch.has_started
                    batch.on_ack(answer, self._options.flow)
                    self._progress += before != (batch.acked, batch.has_started)
                case FlowGap():
                    self._on_gap(answer)
                case Refused():
                    self._on_refused(answer)
                case FinalAck():
                    self._progress += 1
                    self._on_final(answer)
                case None:
                    pass
        self._count_room()
        self._wake()

    def _on_final(self, answer: FinalAck) -> None:
        if answer.other:
            self._fail(
                wrong_stream(
                    f"fast batch into {self._stream}: stream {answer.other} has taken the subjects "
                    f"over, and has stored {counted(answer.count, 'message')} up to "
                    f"{answer.sequence}"
                )
            )
            answer = FinalAck(0, 0)  # Nothing of it is in the stream that was meant.
        self._ingest.current.on_final(answer)
        self._drop()

    def _on_gap(self, answer: FlowGap) -> None:
        span = self._ingest.current.on_gap(answer)
        if span is None:
            return
        self._progress += 1
        if not self._options.gaps_are_ok:
            self._fail(
                BatchIncompleteError(
                    f"fast batch into {self._stream}: messages {span.first} to {span.last} did "
                    "not reach the stream",
                    hint="was the connection lost, did the stream's leader change, or has another "
                    "stream these subjects?",
                )
            )

    def _on_refused(self, answer: Refused) -> None:
        batch = self._ingest.current
        is_ours = answer.stream == self._stream
        if answer.is_unknown_batch and is_ours:
            self._progress += 1
            self._fail(answer.error)
            batch.on_vanished()
            self._drop()
            return
        if not answer.is_message:
            if not answer.error.retryable:  # Sealed, for one: its messages will not be told of.
                self._fail(answer.error)
            return
        self._progress += 1
        error = answer.error if is_ours else self._stray(answer)
        batch.on_refused(replace(answer, error=error))
        if answer.number == 1 and answer.is_early:
            self._fail(error)
            batch.on_final(FinalAck(0, 0))  # There was no batch yet, or the server has dropped it.
            self._drop()
        elif not self._options.gaps_are_ok:
            self._fail(error)

    def _stray(self, answer: Refused) -> NatsStreamError:
        number = self._ingest.current.base + answer.number
        return WrongStreamError(
            f"fast batch into {self._stream}, message {number}: its subject belongs to stream "
            f"{answer.stream}",
            detail=answer.error.message,
        )

    def _fail(self, error: NatsStreamError) -> None:
        """Take nothing more, and have the server end the batch."""
        if self.failure is not None:
            return
        self.failure = error
        self.room = 0
        self._drop()
        if not self._is_ending:
            self._write_end()
        self._wake()

    def _drop(self) -> None:
        """Drop unwritten messages."""
        self.waiting.clear()
        self.waiting_bytes = 0

    def _on_connection(self) -> None:
        batch = self._ingest.current
        if batch.written and not batch.has_started and not batch.has_ended:
            # By another way a ping could come before the message itself, which would then begin a
            # batch of this id for a second time.
            self._fail(lost_error(f"ingest into {self._stream}"))
            batch.on_vanished()
        if self._client.is_connected:
            self.largest = self._client.max_payload_bytes
            if self._id and not batch.has_ended:
                if self._is_ending or self.failure is not None:
                    self._write_end()
                else:
                    self.ping()
                    self.write()
        else:
            if self._options.gaps_are_ok:
                batch.on_break()
            if self._client.is_closed:
                self._fail(self._client.closing_error())
        self._wake()

    def _on_denied(self, event: PermissionDenied) -> None:
        if event.operation != "publish" or event.subject not in self.starts:
            return
        batch = self._ingest.current
        self._progress += 1
        self._fail(denied_error(event))
        if not batch.has_started:
            batch.on_final(FinalAck(0, 0))
        self._wake()

    def _on_inbox_denied(self, error: PermissionDeniedError) -> None:
        prefix = self._client.options.inbox_prefix
        error.hint = f"allow {prefix}.> in the user's permissions, or set inbox_prefix"
        self._fail(error)
        self._ingest.current.on_vanished()
        self._wake()

    def _keep_alive(self) -> None:
        """Ping a batch into which nothing was written for a while."""
        self._keeper = self.loop.call_later(self._keep_alive_s, self._keep_alive)
        batch = self._ingest.current
        if self._was_idle and batch.written and not self.is_over:
            with suppress(NatsStreamError):
                self.ping()
        self._was_idle = True

    def _wake(self) -> None:
        self._heard.set()
