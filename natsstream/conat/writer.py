"""Writes messages of a core stream: values, keys, ids, compare-and-set, time to live.

Law: a write that returns is stored, and the arrays of this client have passed it. A retry with the
same message id stores nothing twice. It is not refused here, as the message may be stored: only the
server knows.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol, cast

from natsstream.arguments import check_int, check_text, described
from natsstream.conat.blobs import Blobs
from natsstream.conat.codes import conat_code
from natsstream.conat.configuration import Configuration
from natsstream.conat.headers import TOMBSTONE_HEADERS, Blob, header_values
from natsstream.conat.in_order import InOrder
from natsstream.conat.limiter import InFlight, Limiter
from natsstream.conat.limits import refusal, rejected_by_server
from natsstream.conat.names import StreamNames
from natsstream.conat.naming import name_error, naming
from natsstream.conat.sizes import logical_size
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.values import Encoding, encode_value
from natsstream.constructors import answers_arguments
from natsstream.errors import (
    ConfigError,
    ConflictError,
    MessageRuleError,
    MessageTooLargeError,
    NatsStreamError,
    NoRespondersError,
    ServerError,
    StreamFullError,
    WrongLastSequenceError,
)
from natsstream.publish.outgoing import Expect, PublishMessage, options_of
from natsstream.publish.pub_ack import PubAck
from natsstream.streams.jetstream import JetStreamContext
from natsstream.streams.stream import Stream
from natsstream.units import DURATION_NS_MAX, NS_PER_SECOND, time_from_ns

TOMBSTONE_TTL_MS = 7 * 86_400_000
"""Milliseconds after which a tombstone expires: a week, as in the seed."""

# Servers count whole seconds.
_LIFE_TIME_MS_MAX = DURATION_NS_MAX // NS_PER_SECOND * 1_000
_MSG_ID = "Nats-Msg-Id"
# Of own writes; the server's window knows them too.
_IDS_KEPT = 100_000
# For a message whose first copy is in flight.
_ATTEMPTS = 20
_ATTEMPT_WAIT_S = 0.1


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored message.

    Attributes:
        seq: Its sequence.
        time: When it was stored, in UTC; None if only an older copy's sequence is known.
    """

    seq: int
    time: datetime | None


@answers_arguments
@dataclass(frozen=True, slots=True, kw_only=True)
class PublishOptions:
    """Options of one write.

    Attributes:
        headers: A JSON object, nested or not.
        msg_id: An id that stores the message once, within two minutes.
        key: The key whose value the message is.
        previous_seq: The sequence of the key's newest message, tombstones too; 0 for a key that
            has none. It needs a key.
        ttl: Milliseconds to live; it needs `allow_msg_ttl` in the configuration.
        timeout: Seconds to wait for the ack; None is the connection's `request_timeout`.
    """

    headers: Mapping[str, object] | None = None
    msg_id: str | None = None
    key: str | None = None
    previous_seq: int | None = None
    ttl: int | None = None
    timeout: float | None = None


@answers_arguments
@dataclass(frozen=True, slots=True)
class PublishItem:
    """A message for `publish_many`.

    Attributes:
        mesg: The value.
        options: Its options.
    """

    mesg: Any
    options: PublishOptions = field(default_factory=PublishOptions)


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of one message of `publish_many`: it is stored, or has an error.

    Attributes:
        stored: Sequence and time; None after an error.
        error: The error; None if it is stored.
    """

    stored: Stored | None
    error: NatsStreamError | None = None

    @property
    def seq(self) -> int | None:
        """The sequence; None after an error."""
        return None if self.stored is None else self.stored.seq

    @property
    def code(self) -> int | str | None:
        """Conat's code of the error; None without one."""
        return None if self.error is None else conat_code(self.error)


def _checked_items(items: object) -> list[PublishItem]:
    """Return the items, before any of them is sent.

    Raises:
        ConfigError: They are no list of items, or the options of one are something else.
    """
    if not isinstance(items, Iterable):
        raise ConfigError(f"items is {described(items)}", hint="give a list: [PublishItem(mesg)]")
    checked: list[PublishItem] = []
    # The cast says what `isinstance` cannot.
    for index, item in enumerate(cast("Iterable[object]", items)):
        if not isinstance(item, PublishItem):
            raise ConfigError(
                f"item {index} is {described(item)}",
                hint="give PublishItem(mesg), or PublishItem(mesg, PublishOptions(key=...))",
            )
        if not isinstance(item.options, PublishOptions):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types.
            raise ConfigError(
                f"the options of item {index} are {described(item.options)}",
                hint="give PublishItem(mesg, PublishOptions(key=...))",
            )
        checked.append(item)
    return checked


class WrittenStream(Protocol):
    """The stream that is written, with its messages loaded or not.

    Attributes:
        stream: The stream.
        config: Its configuration.
        gone_hint: The way back if no stream captures its messages.
    """

    stream: Stream
    config: Configuration
    gone_hint: str

    async def stored_ns(self, seq: int) -> int | None:
        """Wait until reads see a message; return when it was stored, if known."""
        ...


class Writer:
    """The writes of one core stream.

    Args:
        js: The JetStream context.
        names: The core stream's names.
        sync: Its stream.
        blobs: Its big values.
        encoding: The format of values.
        limiter: Enforces its limits; None if nothing is loaded, then only the largest size is.

    Attributes:
        msg_ids: Ids of this object's writes, the newest 100,000.
    """

    def __init__(
        self,
        js: JetStreamContext,
        names: StreamNames,
        sync: WrittenStream,
        blobs: Blobs,
        encoding: Encoding,
        limiter: Limiter | None = None,
    ) -> None:
        self.msg_ids: OrderedDict[str, None] = OrderedDict()
        # Ids of messages that were sent, and have no answer yet.
        self._sent_ids: OrderedDict[str, None] = OrderedDict()
        self._js = js
        self._names = names
        self._sync = sync
        self._blobs = blobs
        self._encoding = encoding
        self._limiter = limiter

    async def publish(self, mesg: object, options: PublishOptions) -> Stored | None:
        """Store one message; None if this object has published its id before."""
        if options.msg_id is not None and check_text(options.msg_id, "msg_id") in self.msg_ids:
            return None
        with naming(self._names):
            return await self._store(mesg, options)

    async def _store(self, mesg: object, options: PublishOptions) -> Stored:
        data = encode_value(mesg, self._encoding)
        in_flight = self._admit(data, options)
        blob = None
        try:
            blob = await self._put(data, options)
            head = self._publish(data, options, blob)
            if blob is None:
                seq = await head
            else:
                seq = await self._blobs.publish(blob, head, has_id=options.msg_id is not None)
            self._note_answer(options.msg_id)
            self._note(self.msg_ids, options.msg_id)
            stored = await self._stored(seq)
        except ServerError as error:
            self._note_answer(options.msg_id, error)
            raise
        finally:
            self._blobs.forget(blob)
            self._forget(in_flight)
        if self._limiter is not None:
            await self._limiter.evict_after_write()
        return stored

    async def publish_many(self, items: Sequence[PublishItem]) -> list[PublishResult]:
        """Store messages, pipelined and in order; each has a result or an error of its own."""
        async with self._js.publisher(stream=self._names.stream) as publisher:

            async def send(message: PublishMessage) -> asyncio.Future[PubAck]:
                return await publisher.send(message.subject, message.data, **options_of(message))

            return await self._publish_all(items, send)

    async def publish_in_order(self, items: Sequence[PublishItem]) -> list[PublishResult]:
        """Store messages as `publish_many` does, none before an earlier one that may go again."""
        queue = InOrder(self._sync.stream, self._send)
        return await self._publish_all(items, queue.add, queue.flush)

    async def _publish_all(
        self,
        items: Sequence[PublishItem],
        send: Callable[[PublishMessage], Awaitable[asyncio.Future[PubAck]]],
        flush: Callable[[], Awaitable[None]] | None = None,
    ) -> list[PublishResult]:
        items = _checked_items(items)
        results: list[PublishResult | asyncio.Future[PubAck]] = []
        sent: list[tuple[PublishMessage, Blob | None]] = []
        in_flight: list[InFlight] = []
        try:
            for item in items:
                try:
                    message, blob, future = await self._begin(send, item, in_flight)
                except NatsStreamError as error:
                    name_error(error, self._names)
                    results.append(PublishResult(None, error))
                else:
                    sent.append((message, blob))
                    results.append(future)
            if flush is not None:
                await flush()
            futures = [each for each in results if isinstance(each, asyncio.Future)]
            acks = await asyncio.gather(*futures, return_exceptions=True)
            pairs = zip(sent, acks, strict=True)
            answers = iter([await self._result(*each, found) for each, found in pairs])
        finally:
            for _, blob in sent:
                self._blobs.forget(blob)
            self._forget(*in_flight)
        if self._limiter is not None:
            await self._limiter.evict_after_write()
        return [each if isinstance(each, PublishResult) else next(answers) for each in results]

    def tombstone(self, key: str, options: PublishOptions, ttl_ms: int | None) -> PublishOptions:
        """Return the options of the tombstone of a key; it stays where no message may expire."""
        ttl = ttl_ms if self._sync.config.allow_msg_ttl else None
        return replace(options, key=key, headers=TOMBSTONE_HEADERS, ttl=ttl)

    async def _begin(
        self,
        send: Callable[[PublishMessage], Awaitable[asyncio.Future[PubAck]]],
        item: PublishItem,
        in_flight: list[InFlight],
    ) -> tuple[PublishMessage, Blob | None, asyncio.Future[PubAck]]:
        """Send a message behind the earlier ones, its big value first."""
        data = encode_value(None if item.mesg is UNDEFINED else item.mesg, self._encoding)
        admitted, blob = self._admit(data, item.options), None
        try:
            blob = await self._put(data, item.options)
            message = self._message(data, item.options, blob)
            future = await send(message)
        except BaseException:  # It was not sent.
            self._forget(admitted)
            if blob is not None:
                self._blobs.forget(blob)
                await self._blobs.remove([blob])
            raise
        self._note(self._sent_ids, message.msg_id)
        in_flight.append(admitted)
        future.add_done_callback(admitted.on_ack)
        return message, blob, future

    def _admit(self, data: bytes, options: PublishOptions) -> InFlight:
        """Refuse a message that exceeds a limit, before anything of it is sent.

        Raises:
            RejectedError: It does.
        """
        if options.key is not None:
            check_text(options.key, "key")
        size = logical_size(options.headers, len(data), options.key)
        is_retry = isinstance(options.msg_id, str) and options.msg_id in self._sent_ids
        if self._limiter is not None:
            return self._limiter.admit(size, is_retry=is_retry)
        error = refusal(self._sync.config, size, None)
        if error is not None and not is_retry:
            raise error
        return InFlight(size)

    def _forget(self, *messages: InFlight) -> None:
        if self._limiter is not None:
            self._limiter.forget(*messages)

    async def _result(
        self, message: PublishMessage, blob: Blob | None, found: PubAck | BaseException
    ) -> PublishResult:
        try:
            seq = await self._in_use(message, blob, found)
            self._note_answer(message.msg_id)
            return PublishResult(await self._stored(seq))
        except NatsStreamError as error:
            self._note_answer(message.msg_id, error)
            is_full = isinstance(error, StreamFullError | MessageTooLargeError)
            told = rejected_by_server(error) if is_full else error
            name_error(told, self._names)
            return PublishResult(None, told)

    async def _in_use(
        self, message: PublishMessage, blob: Blob | None, found: PubAck | BaseException
    ) -> int:
        head = self._seq(message, found)
        if blob is None:
            return await head
        return await self._blobs.publish(blob, head, has_id=message.msg_id is not None)

    async def _seq(self, message: PublishMessage, found: PubAck | BaseException) -> int:
        """Return the sequence of a message that was sent with others."""
        if isinstance(found, WrongLastSequenceError):
            return await self._earlier_copy(message, found)
        if isinstance(found, ConflictError) and found.retryable:
            return await self._send(message)
        if isinstance(found, NoRespondersError):
            found.hint = self._sync.gone_hint
        if isinstance(found, BaseException):
            raise found
        return found.sequence

    async def _put(self, data: bytes, options: PublishOptions) -> Blob | None:
        """Store a value that does not fit into its message; None for one that does."""
        if not self._blobs.is_big(data):
            return None
        self._message(b"", options)  # A wrong option is refused before chunks are sent.
        return await self._blobs.put(data)

    async def _publish(self, data: bytes, options: PublishOptions, blob: Blob | None) -> int:
        return await self._send(self._message(data, options, blob), options.timeout)

    async def _send(self, message: PublishMessage, timeout: float | None = None) -> int:
        """Publish a message alone, and return its sequence."""
        self._note(self._sent_ids, message.msg_id)
        for attempt in range(_ATTEMPTS):
            try:
                # Not by the context: another stream may have taken the subjects over.
                ack = await self._sync.stream.publish(
                    message.subject, message.data, timeout=timeout, **options_of(message)
                )
            except WrongLastSequenceError as error:
                return await self._earlier_copy(message, error)
            except NoRespondersError as error:
                error.hint = self._sync.gone_hint
                raise
            except (StreamFullError, MessageTooLargeError) as error:
                raise rejected_by_server(error) from error
            except ConflictError as error:
                # A cluster is about to store a message with this id.
                if not error.retryable or attempt == _ATTEMPTS - 1:
                    raise
                await asyncio.sleep(_ATTEMPT_WAIT_S)
            else:
                return ack.sequence
        raise AssertionError

    def _message(
        self, data: bytes, options: PublishOptions, blob: Blob | None = None
    ) -> PublishMessage:
        check_ttl(options.ttl, self._sync.config)
        if options.msg_id is not None:
            check_text(options.msg_id, "msg_id")
        key, has_expectation = options.key, options.previous_seq is not None
        if has_expectation and key is None:
            raise ConfigError(
                f"previous_seq is {options.previous_seq}, and the message has no key",
                hint="give key=: only the messages of one key are compared",
            )
        return PublishMessage(
            self._names.subject_of(key),
            data if blob is None else b"",
            header_values(
                self._encoding, headers=options.headers, key=key, ttl_ms=options.ttl, blob=blob
            ),
            options.msg_id,
            Expect(last_subject_seq=options.previous_seq) if has_expectation else None,
            # Servers count whole seconds; clients hide the message at the exact moment.
            None if options.ttl is None else max(math.ceil(options.ttl / 1_000), 1),
            "subject" if key is not None else None,
        )

    async def _earlier_copy(self, message: PublishMessage, error: WrongLastSequenceError) -> int:
        """Return the sequence of the message if its key's newest one has its id.

        A server with one replica looks at the expectation before it looks at the id.

        Raises:
            WrongLastSequenceError: It has not; the given error.
        """
        if message.msg_id is not None:
            held = await self._sync.stream.get(last_by_subject=message.subject)
            if held is not None and held.headers.get(_MSG_ID) == message.msg_id:
                return held.sequence
        raise error

    async def _stored(self, seq: int) -> Stored:
        time_ns = await self._sync.stored_ns(seq)
        await self._blobs.remove_replaced(seq)
        return Stored(seq, None if time_ns is None else time_from_ns(time_ns))

    def _note_answer(self, msg_id: str | None, error: NatsStreamError | None = None) -> None:
        """Take note that a message with an id is stored, or why it is not."""
        is_refused = isinstance(error, ServerError) and not error.retryable
        if msg_id is not None and (error is None or is_refused):
            self._sent_ids.pop(msg_id, None)

    def _note(self, ids: OrderedDict[str, None], msg_id: str | None) -> None:
        if msg_id is not None:
            ids[msg_id] = None
            if len(ids) > _IDS_KEPT:
                ids.popitem(last=False)


def check_life_time(milliseconds: object, name: str) -> None:
    """Refuse what is no time for a message to live.

    Raises:
        ConfigError: It is no number of milliseconds from 0 on, or servers cannot hold it.
    """
    check_int(milliseconds, name, minimum=0, maximum=_LIFE_TIME_MS_MAX, unit="milliseconds")


def check_ttl(ttl: int | None, config: Configuration) -> None:
    """Refuse a `ttl` with which no message can be stored; None is none.

    Raises:
        ConfigError: It is no number of milliseconds.
        MessageRuleError: The configuration has no `allow_msg_ttl`.
    """
    if ttl is None:
        return
    check_life_time(ttl, "ttl")
    if not config.allow_msg_ttl:
        raise MessageRuleError(
            f"the message has a ttl of {ttl} ms, and its stream lets none expire",
            hint='set it first: await stream.config({"allow_msg_ttl": True})',
        )


def check_value(mesg: object) -> None:
    """Refuse UNDEFINED as a value.

    Raises:
        ConfigError: The value is UNDEFINED.
    """
    if mesg is UNDEFINED:
        raise ConfigError(
            "stream non-kv publish - mesg must not be 'undefined'",
            hint="give None for null, or a key: UNDEFINED deletes the key",
        )
