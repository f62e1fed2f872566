"""The idempotent producer: appends that are stored exactly once, in order."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, Self

from natsstream.api.headers import HeaderValues
from natsstream.arguments import counted
from natsstream.errors import (
    ConfigError,
    ConnectionClosedError,
    NatsStreamError,
    ProducerFullError,
    ProducerTimeoutError,
    UsageError,
)
from natsstream.foreign_names import answers_names
from natsstream.producer.batches import Batches, Ended, Outcome
from natsstream.producer.messages import MessageMaker
from natsstream.producer.options import BATCH_MESSAGES_MAX, ProducerOptions
from natsstream.producer.queue import Group
from natsstream.producer.session import Session, Writer
from natsstream.publish.outgoing import Prepared, PublishMessage, check_messages

# A loop of append and drain lets others run after so many messages, about a millisecond.
_TURN_EVERY = 250

_log = logging.getLogger("natsstream.producer")

Guarantee = Literal["exactly-once"]


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The stream's word that it has what was appended.

    Attributes:
        offset: The sequence of the last message; None where an earlier attempt had stored it and
            the sequence is not known, and for a checkpoint alone.
        duplicate: True if an earlier attempt or an earlier instance had stored it.
        last_seq: The number of the producer's last stored batch in its epoch.
    """

    offset: int | None
    duplicate: bool
    last_seq: int


@dataclass(frozen=True, slots=True)
class CloseResult:
    """The stream's word that it has ended.

    Attributes:
        final_offset: The sequence of the stream's last message; 0 for none.
    """

    final_offset: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """The state of a producer that stood in the stream when it was opened, or restarted.

    Attributes:
        checkpoint: The position of the last checkpoint; None if none was stored, as after a crash
            before the first message.
        count: Messages that were stored, by all instances.
        epoch: The epoch of the last instance that stored or claimed.
    """

    checkpoint: Any  # JSON, which only the caller knows the shape of.
    count: int
    epoch: int


@answers_names("producer", calls=("append_many", "append_wait"))
class IdempotentProducer:
    """Stores what is appended exactly once and in order; made by `js.producer`.

    Use it as `async with await js.producer(...) as producer`. Leaving the block waits until all is
    stored, and raises the first error; leaving it by an error sends nothing more, and logs how many
    messages were given up. A connection that is closed or drained first stores, for up to 5 s, what
    was appended to its open producers; it logs what could not be stored, and `flush`, `drain`,
    `detach` and the end of the block raise `ConnectionClosedError` for it.

    After an error nothing more is stored: all that was appended later would stand before it.
    `append` raises the error then, until `restart` has begun a new epoch.
    """

    def __init__(
        self,
        rules: Batches,
        writer: Writer,
        maker: MessageMaker,
        options: ProducerOptions,
        before_close: Callable[[Callable[[], Awaitable[None]]], Callable[[], None]],
    ) -> None:
        self._rules = rules
        self._maker = maker
        self._options = options
        self._appended = 0
        self._ended = 0
        self._unstored = 0
        self._turn_at = _TURN_EVERY
        self._is_closing = False
        self._final: Group | None = None
        self._is_detached = False
        # Raised by later calls, once the connection was closed under the open producer.
        self._cut: ConnectionClosedError | None = None
        self._told: NatsStreamError | None = None
        self._waiting: dict[Group, asyncio.Future[AppendResult]] = {}
        self._session = Session(rules, writer, self._on_ended, self._is_awaited)
        self._stay = before_close(self._leave)

    # State.

    @property
    def producer_id(self) -> str:
        """The id that all instances of this producer share."""
        return self._options.producer_id

    @property
    def epoch(self) -> int:
        """The epoch of this instance."""
        return self._rules.epoch or 0

    @property
    def next_seq(self) -> int:
        """The number of the next batch in the epoch, from 0."""
        return self._rules.queue.next_seq

    @property
    def pending_count(self) -> int:
        """Messages in the batch that is being filled."""
        return self._rules.queue.pending_count

    @property
    def in_flight_count(self) -> int:
        """Batches that were sent and are not acknowledged."""
        return self._rules.in_flight_count

    @property
    def buffered_bytes(self) -> int:
        """Bytes of all messages that are not known to be stored."""
        return self._rules.queue.size

    @property
    def last_offset(self) -> int | None:
        """The sequence of the last message that this instance has stored; None for none."""
        return self._rules.last_offset

    @property
    def recovered(self) -> Recovered | None:
        """The state in the stream when it was opened or restarted; None if there was none."""
        record = self._rules.recovered
        if record is None:
            return None
        return Recovered(record.checkpoint, record.count, record.epoch)

    @property
    def guarantee(self) -> Guarantee:
        """The promise on this server."""
        return "exactly-once"

    # Appending.

    def append(
        self,
        data: object,
        *,
        subject: str | None = None,
        headers: HeaderValues | None = None,
        checkpoint: object = None,
    ) -> None:
        """Take a message, to be stored soon; returns at once.

        Args:
            data: Bytes or text; with `encoding="json"` any value that JSON has.
            subject: The subject; None is the producer's.
            headers: Header values by name. Of the server's own headers only `Nats-TTL` is taken.
            checkpoint: A position of the application, as JSON, which is stored with the message;
                None keeps the last one.

        Raises:
            ConfigError: An argument is illegal; nothing was appended.
            UsageError: The producer is closed or detached.
            ConnectionClosedError: The connection was closed; nothing was appended.
            EventLoopError: The connection belongs to another event loop; nothing was appended.
            SubjectError: The subject is illegal; nothing was appended.
            HeaderError: A header is illegal; nothing was appended.
            WrongStreamError: The stream does not capture the subject; nothing was appended.
            PayloadTooLargeError: The message exceeds the server's limit; nothing was appended.
            ProducerFullError: `max_buffered_bytes` wait already; `drain` waits for room.
            NatsStreamError: The producer has failed.
        """
        self._take((self._maker.make(data, subject, headers),), checkpoint)

    def append_many(
        self,
        messages: Iterable[object | tuple[str, object] | PublishMessage],
        *,
        checkpoint: object = None,
    ) -> None:
        """Take messages that are stored together, or not at all.

        Args:
            messages: Values for the producer's subject, (subject, value) pairs, or messages with
                headers; at most 997.
            checkpoint: A position of the application, as JSON, which is stored with them; None
                keeps the last one.

        Raises:
            ConfigError: As for `append`; there are none, or too many, or more than one in exclusive
                mode.
            NatsStreamError: As for `append`.
        """
        check_messages(messages)
        made = [self._maker.make_item(each) for each in messages]
        is_exclusive = self._options.mode == "exclusive"
        largest = 1 if is_exclusive else BATCH_MESSAGES_MAX
        if not 0 < len(made) <= largest:
            hint = f"give at most {largest}, or append() each, which are not stored together"
            if is_exclusive:
                hint = "mode='shared' stores messages together"
            raise ConfigError(
                f"append_many of {len(made)} messages, 1 to {largest} can be stored together",
                hint=hint if made else "give one at least",
            )
        self._take(tuple(made), checkpoint)

    def checkpoint(self, position: object) -> None:
        """Store a position without a message, behind all that was appended before.

        For a source whose last items gave no messages. A position that must be stored together with
        a message goes with `append`.

        Raises:
            ConfigError: The position is None or no JSON value, or has more than 4,096 bytes.
            NatsStreamError: The producer has failed.
        """
        if position is None:
            raise ConfigError(
                "the checkpoint is None", hint="give a position, such as 0 for the beginning"
            )
        self._take((), position)

    async def append_wait(
        self,
        data: object,
        *,
        subject: str | None = None,
        headers: HeaderValues | None = None,
        checkpoint: object = None,
    ) -> AppendResult:
        """Append a message, and wait until it is stored.

        Waits for room first. Arguments and errors as for `append`.

        Raises:
            StaleEpochError: Another instance has taken over; the message is not stored.
            StreamClosedError: The stream has ended; the message is not stored.
            ProducerTimeoutError: It was not acknowledged within `delivery_timeout`; it may be
                stored or not.
            ProducerFailedError: The server refused the batch.

        Cost: one round trip and the stream's replication. Calls of many tasks share a batch.
        """
        message = self._maker.make(data, subject, headers)
        await self._session.until(self._has_room)
        group = self._take((message,), checkpoint)
        self._rules.queue.push()
        stored: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
        self._waiting[group] = stored
        return await stored

    async def drain(self) -> None:
        """Wait until `append` has room, and few full batches wait: see `max_in_flight`.

        A loop that appends awaits it once a message, so that full batches are sent meanwhile.

        Raises:
            NatsStreamError: The producer has failed.

        Cost: nothing where there is room.
        """
        queue = self._rules.queue
        is_idle = bool(queue.batches) and not self._rules.in_flight_count
        if is_idle or self._appended >= self._turn_at:
            self._turn_at = self._appended + _TURN_EVERY
            await asyncio.sleep(0)  # The first full batch is sent, and answers are read.
        if queue.is_full or not self._has_room():
            await self._session.until(lambda: not queue.is_full and self._has_room())
        self._raise_failure()

    async def flush(self) -> None:
        """Wait until all that was appended so far is stored.

        Raises:
            NatsStreamError: The first error of what was appended, as for `append_wait`.
        """
        wanted = self._appended
        self._rules.queue.push()
        await self._session.until(lambda: self._ended >= wanted and self._is_ready)
        self._raise_failure()

    # Ending.

    async def detach(self, *, ignore_errors: bool = False) -> None:
        """Flush, and stop this instance; the stream stays open. Detaching twice is fine.

        Args:
            ignore_errors: True raises nothing for messages that were not stored.

        Raises:
            NatsStreamError: As for `flush`.
        """
        self._session.check_loop()
        if self._is_detached:
            if self._cut is not None and not ignore_errors:
                self._raise_failure()
            return
        try:
            if not self._is_closing:
                await self.flush()
        except NatsStreamError:
            if not ignore_errors:
                raise
        finally:
            await self._stop()

    async def restart(self) -> None:
        """Flush and begin the next epoch; also after an error.

        `recovered` has what is stored by then: after an error, go on behind its checkpoint. It is
        None if the stream has no state of the producer any more.
        `max_claims` does not bound it, and counts anew from here.

        Raises:
            StreamClosedError: The stream has ended.
            NatsStreamError: The epoch could not be claimed.

        Cost: two round trips more than `flush`.
        """
        self._check_open()
        if self._rules.failure is None:
            await self.flush()
        self._rules.restart()
        await self._session.until(lambda: self._rules.is_open)
        self._told = None

    async def close(self, final: object = None) -> CloseResult:
        """Flush and end the stream: nobody appends to it any more.

        The final message and the end are stored together. Closing again gives the same result, and
        so does a new instance with the same explicit epoch and the same batches.

        Args:
            final: A last message; None for none.

        Raises:
            StreamClosedError: Another producer has ended the stream.
            NatsStreamError: As for `append_wait`; call `close` again after a timeout.
        """
        if not self._is_closing:
            self._check_open()
            group = None
            if final is not None:
                message = self._maker.make(final, name="final")
                group = Group((message,), len(message.data) + len(message.block))
            await self.flush()
            self._final, self._is_closing = group, True
            self._rules.queue.end(group, self._session.now())
        elif isinstance(self._rules.failure, ProducerTimeoutError):
            self._check_connection()
            self._rules.end_again(self._final, self._session.now())
        await self._session.until(lambda: self._rules.final_offset is not None)
        await self._stop()
        return CloseResult(self._rules.final_offset or 0)

    async def open(self) -> Self:
        """Read the state and claim the epoch; called by `js.producer`."""
        try:
            await self._session.until(lambda: self._rules.is_open)
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            await self.detach()
        elif not self._is_detached:
            await self._stop()
            self._tell_unstored("its block was left by an error")

    # Inside.

    def _has_room(self) -> bool:
        return self._rules.queue.size < self._options.max_buffered_bytes

    @property
    def _is_ready(self) -> bool:
        return self._rules.failure is not None or self._rules.is_open

    def _take(self, messages: tuple[Prepared, ...], checkpoint: object) -> Group:
        self._session.check_loop()
        if self._is_closing or self._is_detached or self._rules.failure is not None:
            self._check_open()
            self._raise_failure()
        if checkpoint is not None:
            self._maker.checkpoint(checkpoint)
        queue = self._rules.queue
        if not self._has_room():
            raise ProducerFullError(
                f"{queue.size} bytes wait to be stored, max_buffered_bytes is "
                f"{self._options.max_buffered_bytes}",
                hint="await producer.drain() between appends",
                retryable=True,
            )
        size = 0
        for _, data, block, _, _ in messages:  # A sum over a generator takes three times as long.
            size += len(data) + len(block)
        group = Group(messages, size, checkpoint)
        queue.append(group, self._session.now)
        self._appended += 1
        self._session.wake()
        return group

    def _check_connection(self) -> None:
        if self._cut is not None:
            raise self._cut.with_traceback(None)

    def _check_open(self) -> None:
        self._check_connection()
        if self._is_closing or self._is_detached:
            state = "closed" if self._is_closing else "detached"
            raise UsageError(f"the producer is {state}", hint="open another one: js.producer(...)")

    def _raise_failure(self) -> None:
        if self._rules.failure is not None:
            raise self._rules.failure.with_traceback(None)

    def _on_ended(self, ended: Ended) -> None:
        self._ended += len(ended.groups)
        if ended.error is not None:
            self._unstored += sum(len(group.messages) for group in ended.groups)
        if self._waiting:
            for outcome in ended.outcomes():
                self._answer(outcome)
        if ended.error is not None and ended.error is not self._told:
            self._told = ended.error
            self._call_back(ended.error)

    def _is_awaited(self) -> bool:
        return not all(stored.done() for stored in self._waiting.values())

    def _answer(self, outcome: Outcome) -> None:
        waiting = self._waiting.pop(outcome.group, None)
        if waiting is None or waiting.done():
            return
        if outcome.error is not None:
            waiting.set_exception(outcome.error)
        else:
            waiting.set_result(AppendResult(outcome.offset, outcome.is_duplicate, outcome.last_seq))

    def _call_back(self, error: NatsStreamError) -> None:
        try:
            if self._options.on_error is not None:
                self._options.on_error(error)
        except Exception:  # noqa: BLE001 - It is the caller's, and must not stop the producer.
            _log.exception("on_error of producer %r has failed", self.producer_id)

    async def _leave(self) -> None:
        """The connection is about to close: store what waits, or tell that it was not stored."""
        cause = "the connection was closed"
        try:
            if not self._is_closing:
                await self.flush()
        except NatsStreamError as error:
            cause = error.message
        finally:
            self._cut = self._connection_closed()
            await self._stop(self._cut)
            self._tell_unstored(cause)

    def _connection_closed(self) -> ConnectionClosedError:
        count = self._rules.queue.count
        lost = f" with {counted(count, 'message')} not known to be stored" if count else ""
        return ConnectionClosedError(
            f"the connection of producer {self.producer_id!r} was closed{lost}",
            hint="open a new one with natsstream.connect(), and the producer again with "
            "js.producer(...): its `recovered` tells what is stored",
        )

    def _tell_unstored(self, cause: str) -> None:
        if self._unstored:
            _log.error(
                "producer %r of stream %s: %d messages were appended and are not known to be "
                "stored: %s",
                self.producer_id,
                self._rules.stream,
                self._unstored,
                cause,
            )

    async def _stop(self, error: NatsStreamError | None = None) -> None:
        self._is_detached = True
        self._stay()
        await self._session.close(error or _left())

    def __repr__(self) -> str:
        state = "closed" if self._is_detached else "open"
        return f"<IdempotentProducer {self.producer_id!r}: epoch {self.epoch}, {state}>"


def _left() -> ConfigError:
    return ConfigError(
        "the producer was left before this was stored",
        hint="open another one with js.producer(...): its `recovered` tells what is stored",
    )
