"""The hands of a run: everybody who takes messages from consumers and settles them.

Law: what a hand writes down is what the documentation of its call says that its outcome means. Once
nobody publishes any more, every hand takes what comes, so that all comes to its end.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from natsstream import (
    Consumer,
    ConsumerFields,
    DeliveredMessage,
    JetStream,
    NatsStreamError,
    Reject,
    Stream,
)
from natsstream.errors import ConsumerNotFoundError, StreamFullError
from scripts.chaos_runs.hands_book import COUNTED, Delivery, HandBook
from scripts.chaos_runs.letters import HEADER, MixedUpError, read_letter, split_identity
from scripts.chaos_runs.load import RECONNECT_S, REQUEST_S, STREAM, Load
from scripts.chaos_runs.watch import Activity

Way: TypeAlias = Literal["fetch", "next", "consume", "pool", "push", "short"]
"""How messages are taken: `fetch`, `next` and `consume` of a pull consumer, a worker with dead
letters, a push consumer, and short-lived consumers that are consumed for some seconds each."""
Verdict: TypeAlias = Literal["ack", "confirm", "term", "nak", "leave"]

QUEUE = "CHAOS_DEAD"
SMALL_QUEUE = "CHAOS_SMALL"
"""A dead-letter stream with small limits, which is full at times."""
SMALL_MESSAGES = 24
SMALL_BYTES = 150_000
ACK_WAIT_S = 3.0
ATTEMPTS_MAX = 5
# Of the messages' numbers: what no handler of the pool takes, by `Reject` and by failing each time.
_REJECTED_EVERY = 23
_FAILING_EVERY = 29

_AGAIN_S = 0.2
_SESSION_S = (1.0, 12.0)
_READERS = 4
# What a lost connection, a leader that is away, and the request after it may take together.
_STEP_S = RECONNECT_S + 4 * REQUEST_S
_STOP_S = 5.0
_LONG_PART = 0.01


@dataclass(frozen=True, slots=True)
class Role:
    """One consumer, and how its messages are taken and settled.

    Attributes:
        name: Its name.
        way: How they are taken.
        turn: Which third of the messages it gets: the last token of their subjects.
        verdicts: How often each verdict is drawn.
        hands: How many take messages from it, on several connections.
        config: Fields of the consumer besides its name and filter.
        group: Its priority group.
        queue: Where its dead letters go.
    """

    name: str
    way: Way
    turn: int
    verdicts: Mapping[Verdict, int]
    hands: int = 1
    config: ConsumerFields = field(default_factory=ConsumerFields)
    group: str | None = None
    queue: str = QUEUE


def is_doomed(number: int) -> bool:
    """Tell whether no handler of the pool takes the message with this number of its writer."""
    return number % _REJECTED_EVERY == 0 or number % _FAILING_EVERY == 0


class Hand:
    """One worker on one consumer.

    Args:
        load: What all workers share.
        js: Its connection.
        role: What it does.
        book: Where it takes that down; the hands of one consumer share it.
        number: Which of the hands of its role.
    """

    def __init__(
        self, load: Load, js: JetStream, role: Role, book: HandBook, number: int = 1
    ) -> None:
        self.name: str = f"{role.name} {number}"
        self._load = load
        self._js = js
        self._role = role
        self._book = book
        self._draw: random.Random = load.draw(self.name)
        self._activity: Activity = load.watch.activity(self.name)
        self._settling = [load.watch.activity(f"{self.name}, {n}") for n in range(_READERS)]
        self._first_seq = 1
        self._lives = 0

    async def run(self) -> None:
        """Work until reading is over, however often that breaks; the end of a run cancels it."""
        load = self._load
        while not load.reading_is_over.is_set():
            try:
                with self._activity.limit("open the stream", REQUEST_S + 1):
                    stream = await self._js.streams.get(STREAM)
                async with self._consumer(stream) as consumer:
                    await self._session(consumer)
            except ConsumerNotFoundError as error:
                # A fault deletes the short-lived ones; the others nobody deletes.
                if self._role.way != "short":
                    load.findings.add("error", f"{self.name}: {error}")
                load.errors[f"hand {self._role.name}: {type(error).__name__}"] += 1
            except NatsStreamError as error:
                load.note(f"hand {self._role.name}", error)
            load.counts["sessions of hands"] += 1
            await asyncio.sleep(_AGAIN_S)

    @asynccontextmanager
    async def _consumer(self, stream: Stream) -> AsyncGenerator[Consumer]:
        role = self._role
        if role.way != "short":
            with self._activity.limit("open the consumer", REQUEST_S + 1):
                consumer = await stream.consumers.get(role.name)
            yield consumer
            return
        self._lives += 1
        name = f"{role.name}-{self._lives}"
        try:
            with self._activity.limit("create a consumer", 3 * REQUEST_S):
                consumer = await stream.consumers.create(
                    name,
                    durable=False,
                    filters=[f"chaos.*.{role.turn}"],
                    deliver_policy="by_start_sequence",
                    start_seq=self._first_seq,
                    ack_wait=ACK_WAIT_S,
                    inactive_threshold=30,
                )
            yield consumer
        finally:
            self._book.begin_again()
            with (
                self._activity.limit("delete a consumer", 3 * REQUEST_S),
                suppress(NatsStreamError),
            ):
                await stream.consumers.delete(name)

    async def _session(self, consumer: Consumer) -> None:
        """Take messages for some seconds, then leave in one of several manners."""
        try:
            async with asyncio.timeout(self._draw.uniform(*_SESSION_S)):
                match self._role.way:
                    case "fetch":
                        await self._fetch(consumer)
                    case "next":
                        await self._next(consumer)
                    case "pool":
                        await self._pool(consumer)
                    case "push":
                        await self._push(consumer)
                    case _:
                        await self._consume(consumer)
        except TimeoutError:
            self._load.counts["sessions of hands cancelled"] += 1
        finally:
            self._activity.what = ""

    # Ways to take messages.

    async def _fetch(self, consumer: Consumer) -> None:
        while True:
            timeout = self._draw.uniform(0.1, 3.0)
            no_wait = self._draw.random() < 0.1
            with self._activity.limit("fetch", timeout + REQUEST_S):
                found = await consumer.fetch(
                    self._draw.randint(1, 60), timeout=timeout, no_wait=no_wait
                )
            if found.error is not None:
                self._load.note(f"hand {self._role.name}", found.error)
            for message in found:
                await self._take(message, self._activity)
            if no_wait:
                await asyncio.sleep(0.05)

    async def _next(self, consumer: Consumer) -> None:
        while True:
            message = None
            patience_s = self._draw.choice((None, None, None, 0.002, 0.05, 0.4))
            timeout = self._draw.uniform(0.1, 2.0)
            with self._activity.limit("next", timeout + REQUEST_S):
                try:
                    async with asyncio.timeout(patience_s):
                        message = await consumer.next(timeout=timeout)
                except TimeoutError:
                    self._load.counts["nexts cancelled"] += 1
            if message is not None:
                await self._take(message, self._activity)

    async def _consume(self, consumer: Consumer) -> None:
        draw = self._draw
        window = draw.choice((1, 5, 50, 500))
        stop_after = draw.choice((None, None, draw.randint(1, 300)))
        is_drained = draw.random() < 0.3
        messages = consumer.consume(
            max_messages=window, stop_after=stop_after, heartbeat=1, group=self._role.group
        )
        async with self._left_in_time(messages):

            async def take(activity: Activity) -> int:
                count = 0
                async for message in messages:
                    await self._take(message, activity)
                    count += 1
                return count

            # No TaskGroup: after an error in it, Python 3.11 makes the session's time-out a
            # cancellation, which would end this hand unseen.
            taking = [asyncio.create_task(take(each)) for each in self._settling]
            try:
                if is_drained:
                    await self._load.pause(draw.uniform(0.5, 4.0))
                    with self._activity.limit("drain", _STOP_S):
                        await messages.drain()
                await asyncio.wait(taking, return_when=asyncio.FIRST_EXCEPTION)
            finally:
                for each in taking:
                    each.cancel()
                await asyncio.wait(taking)
            # All of them are told of the same end.
            for each in taking:
                if not each.cancelled() and (error := each.exception()) is not None:
                    raise error
            taken = sum(each.result() for each in taking)
        if stop_after is not None and not is_drained and taken != stop_after:
            self._load.findings.add(
                "stop_after", f"{self.name}: {taken} of {stop_after} messages were handed out"
            )

    async def _push(self, consumer: Consumer) -> None:
        messages = consumer.subscribe()
        async with self._left_in_time(messages):
            async for message in messages:
                await self._take(message, self._activity)

    @asynccontextmanager
    async def _left_in_time(
        self, messages: AbstractAsyncContextManager[object]
    ) -> AsyncGenerator[None]:
        """Open and leave a block of messages, both within their time."""
        with self._activity.limit("open a block", _STEP_S):
            await messages.__aenter__()
        try:
            yield
        finally:
            with self._activity.limit("leave a block", _STOP_S):
                await messages.__aexit__(None, None, None)

    async def _pool(self, consumer: Consumer) -> None:
        is_small, told = self._role.queue == SMALL_QUEUE, self._book.counts

        def tell(error: BaseException, _: DeliveredMessage) -> None:
            if is_small and isinstance(error, StreamFullError):
                told["letters refused"] += 1
            elif isinstance(error, NatsStreamError):
                self._load.note(f"hand {self._role.name}", error)

        worker = consumer.worker(
            self._handle,
            concurrency=8,
            dead_letter=self._role.queue,
            backoff=[0.05, 0.3, 1.0],
            max_attempts=ATTEMPTS_MAX,
            on_error=tell,
            confirm=is_small or self._draw.random() < 0.5,
            stop_timeout=_STOP_S,
        )
        try:
            async with worker:
                await worker.wait()
        finally:
            told[COUNTED] += worker.report.dead_lettered
            told["letters found"] += worker.report.letters_found

    async def _handle(self, message: DeliveredMessage) -> None:
        """Handle a message of the pool: some never, some not always, some slowly."""
        number = self._see(message)
        is_over = self._load.writing_is_over.is_set()
        if number % _REJECTED_EVERY == 0:
            raise Reject("never")
        if number % _FAILING_EVERY == 0 or (not is_over and self._draw.random() < 0.05):
            raise ValueError("not now")
        if not is_over and self._draw.random() < _LONG_PART:
            await self._load.pause(1.5 * ACK_WAIT_S)
        self._book.settle(message.sequence, "acked")

    # What is done with a message.

    async def _take(self, message: DeliveredMessage, activity: Activity) -> None:
        """Look at a message and settle it by chance."""
        self._see(message)
        load, book, sequence = self._load, self._book, message.sequence
        verdicts = self._role.verdicts
        (verdict,) = self._draw.choices([*verdicts], [*verdicts.values()])
        if load.writing_is_over.is_set() and verdict in ("nak", "leave"):
            verdict = "confirm" if "confirm" in verdicts else "ack"
        if verdict == "ack":
            await message.ack()
            book.settle(sequence, "acked")
        elif verdict == "nak":
            await message.nak(delay=self._draw.choice((None, 0.1, 1.0)))
            book.counts["given back"] += 1
        elif verdict == "leave":
            book.counts["left alone"] += 1
        else:
            await self._confirm(message, verdict, activity)

    async def _confirm(self, message: DeliveredMessage, verdict: str, activity: Activity) -> None:
        load, book = self._load, self._book
        asked_ms = load.now_ms()
        # Before it is asked: an answer may be lost, and then nobody brings the message again.
        book.settle(message.sequence, "acked" if verdict == "confirm" else "terminated")
        try:
            with activity.limit("confirm", REQUEST_S):
                if verdict == "term":
                    await message.term(reason="by chance", confirm=True)
                else:
                    await message.ack(confirm=True)
        except NatsStreamError as error:
            if isinstance(error, ConsumerNotFoundError):
                raise
            # Nobody knows whether the server has it: the message may come again.
            load.note(f"hand {self._role.name}", error)
            book.counts["not confirmed"] += 1
            return
        book.confirm(message.sequence, asked_ms, load.now_ms())

    def _see(self, message: DeliveredMessage) -> int:
        """Take down a delivery; returns the message's number."""
        load, meta = self._load, message.meta
        self._first_seq = max(self._first_seq, meta.stream_seq + 1)
        self._book.deliver(
            Delivery(
                meta.stream_seq,
                meta.consumer_seq,
                meta.delivered,
                load.as_ms(meta.time_ns),
                load.now_ms(),
            )
        )
        try:
            identity = read_letter(message.subject, message.headers.get(HEADER), message.data)
        except MixedUpError as error:
            load.findings.add("payload", f"{self.name}: sequence {meta.stream_seq}: {error}")
            return 0
        load.content.see(meta.stream_seq, identity, self.name)
        number = split_identity(identity)[1]
        if not message.subject.endswith(f".{self._role.turn}"):
            load.findings.add("filter", f"{self.name}: got {message.subject}")
        return number
