"""A core stream: the messages of a JetStream stream in memory, with keys; Conat's CoreStream."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from natsstream.arguments import check_bool, check_int, check_text, counted
from natsstream.conat.arrays import Arrays
from natsstream.conat.attempts import retried
from natsstream.conat.blobs import Blobs
from natsstream.conat.configuration import Configuration, config_fields
from natsstream.conat.deletion import Deletion
from natsstream.conat.feed import Announcement
from natsstream.conat.foreign import ForeignCodec, ForeignOpener, ForeignOptions
from natsstream.conat.layer_events import CORE_EVENTS, LayerEvents
from natsstream.conat.lifetime import Lifetime
from natsstream.conat.limiter import Limiter
from natsstream.conat.naming import naming
from natsstream.conat.opening import CoreStreamOptions, StreamOpener
from natsstream.conat.reconcile import Edit
from natsstream.conat.republished import RepublishedFeed
from natsstream.conat.shared import Release, is_last
from natsstream.conat.sizes import logical_size
from natsstream.conat.sync import Opener, StreamSync
from natsstream.conat.undefined import UNDEFINED
from natsstream.conat.values import Encoding
from natsstream.conat.views import Change, Codec, KeyValues, Messages, RawMessages
from natsstream.conat.writer import (
    PublishItem,
    PublishOptions,
    PublishResult,
    Stored,
    Writer,
    check_ttl,
    check_value,
)
from natsstream.errors import (
    MissingExtraError,
    NatsStreamError,
    ReadOnlyStreamError,
    UsageError,
)
from natsstream.own_loop import OwnLoop
from natsstream.streams.jetstream import JetStreamContext
from natsstream.units import time_from_ns

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_LEAVE_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class StreamStats:
    """Numbers of the loaded messages.

    Attributes:
        count: Messages.
        bytes: Bytes of their encoded values.
    """

    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CoreStreamInventory:
    """Numbers of the whole stream.

    Attributes:
        bytes: Logical bytes: headers as JSON, values and keys.
        count: Messages, tombstones too.
        limits: The fields of the configuration that differ from their defaults.
        seq: The last sequence that is held; 0 for none.
        is_exact: False if not all messages are loaded; `bytes` are the server's then.
    """

    bytes: int
    count: int
    limits: Mapping[str, object]
    seq: int
    is_exact: bool = True


@dataclass(frozen=True, slots=True)
class _Own:
    """The parts that write to a core stream's own stream; a view over another one has none."""

    opener: StreamOpener
    blobs: Blobs
    deletion: Deletion
    limiter: Limiter
    writer: Writer
    lifetime: Lifetime


class CoreStream:
    """A stream whose messages are in memory, always those that the server holds.

    Made by `js.core_stream(name)`; use it with `async with`, or call `close`. Every method raises
    `UsageError` after the end, and the error that ended the sync, such as missing permission.

    One made by `js.core_stream.over(stream)` is only read. Its keys are the stream's subjects, and
    every method that writes raises `ReadOnlyStreamError` (403).

    Args:
        js: The JetStream context.
        name: Its name.
        options: How it is opened.
        release: Counts one user less, and returns True for the last one.

    Attributes:
        name: Its name.
        raw: The messages, not decoded, ascending by sequence.
        messages: The values of `raw`, in the same order.
        kv: The current message of each key.
    """

    _is_live: ClassVar[bool] = True

    def __init__(
        self,
        js: JetStreamContext,
        name: str,
        options: CoreStreamOptions | ForeignOptions,
        release: Release = is_last,
    ) -> None:
        self.name: str = name
        self._js = js
        self._options = options
        self._names = options.names
        self._events = LayerEvents(CORE_EVENTS)
        self._held: _Own | None = None
        if isinstance(options, ForeignOptions):
            self._codec: Codec = ForeignCodec(options.names)
            self._sync = self._synced(ForeignOpener(js, options), None)
        else:
            self._codec = Codec(options.names)
            self._held = self._owned(options)
        rules = self._sync.reconciler
        self.raw: RawMessages = RawMessages(rules, self._codec)
        self.messages: Messages = Messages(rules, self._codec)
        self.kv: KeyValues = KeyValues(rules, self._codec, options.names)
        self._is_open = False
        self._is_closed = False
        self._release = release
        self._own_loop = OwnLoop()

    def _owned(self, options: CoreStreamOptions) -> _Own:
        """Make the parts that write."""
        js, names = self._js, options.names
        opener, blobs = StreamOpener(js, options), Blobs(js, names, lambda: self._sync.stream)
        self._sync = self._synced(opener, blobs)
        deletion = Deletion(self._sync, blobs)
        limiter = Limiter(self._sync, self._codec, deletion)
        writer = Writer(js, names, self._sync, blobs, options.encoding, limiter)
        return _Own(opener, blobs, deletion, limiter, writer, Lifetime(js, names))

    def _synced(self, opener: Opener, blobs: Blobs | None) -> StreamSync:
        options, js = self._options, self._js
        arrays = Arrays(options.names, blobs, self._on_edit, start_seq=options.start_seq)
        feed = None
        if blobs is not None and isinstance(options, CoreStreamOptions):
            feed = RepublishedFeed(js, options.names, arrays, blobs)
        look_every = options.look_every
        return StreamSync(
            js, opener, arrays, self._events.close, feed=feed, blobs=blobs, look_every=look_every
        )

    async def open(self) -> Self:
        """Create the stream if it is missing, load its messages and follow it.

        It waits for a server as long as a call waits for a reconnect.

        Raises:
            ConnectionLostError: No server came back in time (503).
            PermissionDeniedError: The user may not read the stream (403).
            ResourceExhaustedError: The account has no room for the stream (429).
            StreamExistsError: A stream of this name belongs to something else.
            UsageError: It was opened before.

        Cost: three round trips and the bytes of the messages.
        """
        if self._is_open:
            raise UsageError("a core stream is opened once", hint="call js.core_stream() again")
        self._is_open = True
        try:
            with naming(self._names):
                await self._load()
        except BaseException:
            await self._end()
            raise
        return self

    async def close(self) -> None:
        """Leave the stream; a shared one ends when all that opened it have closed it.

        The last client of a stream in memory deletes it.
        """
        self._own_loop.check()
        if not self._is_closed and self._release():
            await self._end()
            created_ns = self._sync.reconciler.created_ns
            if created_ns is not None and self._js.is_connected:
                # Otherwise the next client that opens it does that.
                with suppress(NatsStreamError, TimeoutError):
                    async with asyncio.timeout(_LEAVE_WAIT_S):
                        await self._leave(created_ns)

    async def __aenter__(self) -> Self:
        return self if self._is_open else await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Publishing.

    async def publish(
        self,
        mesg: Any,
        *,
        headers: Mapping[str, object] | None = None,
        msg_id: str | None = None,
        key: str | None = None,
        previous_seq: int | None = None,
        ttl: int | None = None,
        timeout: float | None = None,
    ) -> Stored | None:
        """Store a message; when it returns, `messages` has it.

        Args:
            mesg: None, bool, int, float, str, bytes, datetime, lists and dicts of them. UNDEFINED
                with a key deletes the key.
            headers: A JSON object, nested or not.
            msg_id: An id that stores the message once, within two minutes.
            key: The key whose value it becomes; any text.
            previous_seq: With a key: the sequence of the key's newest message, a tombstone's too;
                0 if the key must have none.
            ttl: Milliseconds to live; it needs `allow_msg_ttl` in the configuration.
            timeout: Seconds to wait; None is the connection's `request_timeout`.

        Returns:
            Sequence and time; those of the first message if the server knows the id. None if this
            object has published the id before, or a deleted key had no value.

        Raises:
            ConfigError: The value cannot be encoded, or is UNDEFINED without a key; or
                `previous_seq` has no key.
            MessageRuleError: The configuration has no `allow_msg_ttl`, and the message a `ttl`.
            RejectedError: A limit of the stream refuses it ("reject").
            WrongLastSequenceError: `previous_seq` is not the newest ("wrong-last-sequence").
            NoRespondersError: The stream has no leader, or is gone (503).
            WrongStreamError: The stream is gone; another one has stored the message.
            RequestTimeoutError: No ack in time (408); the message may be stored.

        Cost: one round trip, plus the stream's replication. A value above `max_payload` less 64 KiB
        costs about three more, and its bytes go through a second stream.
        """
        own = self._own
        options = PublishOptions(
            headers=headers,
            msg_id=msg_id,
            key=key,
            previous_seq=previous_seq,
            ttl=ttl,
            timeout=timeout,
        )
        if mesg is UNDEFINED and key is not None:
            return await self._delete_key(key, options)
        check_value(mesg)
        return await own.writer.publish(mesg, options)

    async def publish_many(self, items: Sequence[PublishItem]) -> list[PublishResult]:
        """Store messages in order, many in flight; each has a result or an error of its own.

        UNDEFINED is stored as null. Messages of other writers may come between. While a leader
        changes, a message may fail and a later one be stored.

        Raises:
            TransportError: The connection was closed.

        Cost: one round trip for many messages.
        """
        return await self._own.writer.publish_many(items)

    async def publish_in_order(self, items: Sequence[PublishItem]) -> list[PublishResult]:
        """Store messages as `publish_many` does, and none before an earlier one that has failed.

        A refused message, one that no second attempt would store, holds no other back. The
        messages behind any other failure are not stored, and have its error.

        Cost: some round trips for each 1,000 messages where the stream has `allow_atomic`, which
        core streams get from nats-server 2.12; elsewhere one for each message.
        """
        return await self._own.writer.publish_in_order(items)

    @property
    def error(self) -> NatsStreamError | None:
        """The error that has ended the sync; None for none."""
        return self._sync.arrays.error

    @property
    def encoding(self) -> Encoding:
        """The format of the values that it writes.

        Raises:
            ReadOnlyStreamError: It is only read.
        """
        if isinstance(self._options, ForeignOptions):
            raise self._read_only()
        return self._options.encoding

    @property
    def conflates(self) -> bool:
        """True if values may be overwritten unseen, although this client is connected.

        The server republishes each message to a core stream's clients, so they see all. Where it
        does not, an ordered consumer brings the messages that are still stored when it comes to
        them: a stream that is only read, or whose republishing an operator has removed.
        """
        return self._sync.conflates

    def check_ttl(self, ttl: int | None) -> None:
        """Refuse a `ttl` with which no message can be stored; None is none.

        Raises:
            ConfigError: It is no number of milliseconds.
            MessageRuleError: The configuration has no `allow_msg_ttl`.
        """
        check_ttl(ttl, self._sync.config)

    # Keys and values.

    async def set_kv(
        self,
        key: str,
        mesg: Any,
        *,
        headers: Mapping[str, object] | None = None,
        previous_seq: int | None = None,
        msg_id: str | None = None,
        ttl: int | None = None,
        timeout: float | None = None,
    ) -> Stored | None:
        """Set the value of a key; UNDEFINED deletes it. Arguments and errors as in `publish`."""
        return await self.publish(
            mesg,
            key=check_text(key, "key"),
            headers=headers,
            previous_seq=previous_seq,
            msg_id=msg_id,
            ttl=ttl,
            timeout=timeout,
        )

    async def set_kv_many(self, items: Sequence[PublishItem]) -> list[PublishResult]:
        """Set many keys, each named in its item's options; as `publish_many`."""
        return await self.publish_many(items)

    async def delete_kv(
        self, key: str, *, msg_id: str | None = None, previous_seq: int | None = None
    ) -> Stored | None:
        """Delete a key by a tombstone, which other clients see; None if it has no value.

        Raises:
            WrongLastSequenceError: `previous_seq` is not the newest.
            NatsStreamError: As for `publish`.
        """
        return await self._delete_key(key, PublishOptions(msg_id=msg_id, previous_seq=previous_seq))

    def tombstone(self, key: str, *, msg_id: str | None = None) -> PublishItem:
        """Return the message that deletes a key, for `publish_many`."""
        return PublishItem(None, self._tombstone(key, PublishOptions(msg_id=msg_id)))

    def newest_seq_kv(self, key: str) -> int:
        """Return the sequence of a key's newest message, a tombstone's too; 0 for none.

        It is the `previous_seq` of the next write.
        """
        self._check()
        return self._sync.reconciler.keys.newest.get(self._names.subject_of(key), 0)

    def get_kv(self, key: str, default: Any = UNDEFINED) -> Any:
        """Return the value of a key, or the default.

        Raises:
            CodecError: Another program wrote it.
        """
        self._check()
        value = self.kv.value(key)
        return default if value is UNDEFINED else value

    def has_kv(self, key: str) -> bool:
        """Return True if a key has a value."""
        self._check()
        return key in self.kv

    def get_all_kv(self) -> dict[str, Any]:
        """Return all keys with their values, as a new dict."""
        self._check()
        return {key: self.kv.value(key) for key in self.kv}

    def keys_kv(self) -> list[str]:
        """Return all keys that have a value."""
        self._check()
        return list(self.kv)

    def seq_kv(self, key: str) -> int | None:
        """Return the sequence of a key's value; None for no value."""
        self._check()
        record = self.kv.record(key)
        return None if record is None else record.seq

    def headers_kv(self, key: str) -> Mapping[str, object] | None:
        """Return the user's headers of a key's value; None for none."""
        self._check()
        record = self.kv.record(key)
        return None if record is None else self._codec.user(record)

    @overload
    def time_kv(self) -> dict[str, datetime]: ...
    @overload
    def time_kv(self, key: str) -> datetime | None: ...
    def time_kv(self, key: str | None = None) -> dict[str, datetime] | datetime | None:
        """Return when a key's value was stored, in UTC; of all keys without an argument."""
        self._check()
        if key is None:
            return {each: time for each in self.kv if (time := self.time_kv(each)) is not None}
        record = self.kv.record(key)
        return None if record is None else time_from_ns(record.time_ns)

    @property
    def length_kv(self) -> int:
        """Number of keys that have a value."""
        return len(self.kv)

    def gc_kv(self) -> None:
        """Do nothing: replaced messages leave the arrays at once."""
        self._check()

    # Reading.

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def length(self) -> int:
        """Number of loaded messages, tombstones too."""
        return len(self.messages)

    @property
    def start_seq(self) -> int | None:
        """The first sequence that was asked for; None for all."""
        rules = self._sync.reconciler
        return None if self._options.start_seq is None else rules.floor

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return values by position, as a list does."""
        self._check()
        return self.messages[index]

    def get(self, n: int | None = None, default: Any = UNDEFINED) -> Any:
        """Return the value at a position, or the default; all values without an argument."""
        self._check()
        if n is None:
            return self.messages[:]
        return self.messages[n] if self._has(n) else default

    def get_all(self) -> list[Any]:
        """Return all values, as a new list."""
        self._check()
        return self.messages[:]

    def seq(self, n: int) -> int | None:
        """Return the sequence at a position; None for none."""
        self._check()
        return self._sync.reconciler.log.seq(n % len(self)) if self._has(n) else None

    def seqs(self) -> list[int]:
        """Return the sequences of all messages."""
        self._check()
        return self._sync.reconciler.log.sequences()

    def headers(self, n: int) -> Mapping[str, object] | None:
        """Return the user's headers at a position; None for none."""
        self._check()
        return self.raw[n].headers if self._has(n) else None

    def time(self, n: int) -> datetime | None:
        """Return when the message at a position was stored, in UTC; None for none."""
        self._check()
        log = self._sync.reconciler.log
        return time_from_ns(log.record(n % len(self)).time_ns) if self._has(n) else None

    def times(self) -> list[datetime]:
        """Return when each message was stored, in UTC."""
        self._check()
        return [time_from_ns(each) for each in self._sync.reconciler.log.times_ns()]

    def stats(self, *, start_seq: int = 1) -> StreamStats:
        """Return number and bytes of the loaded messages from a sequence on."""
        self._check()
        first = check_int(start_seq, "start_seq")
        return StreamStats(*self._sync.reconciler.log.data_bytes(first))

    def to_arrow(self) -> pa.Table:
        """Return the loaded messages as an Arrow table, in the order of their sequences.

        Returns:
            `seq` int64, `time` timestamp in UTC, `key` string, `headers` and `value` JSON text,
            `data` the encoded value as binary. `value` is null where JSON does not have it: bytes,
            NaN, or another program's message. `headers` is null for none.

        Raises:
            MissingExtraError: pyarrow is not installed.

        Cost: a copy of all messages, and each is decoded.
        """
        self._check()
        try:
            from natsstream.conat.table import table_of  # noqa: PLC0415 - pyarrow is an extra.
        except ImportError as error:
            raise MissingExtraError(
                "to_arrow needs pyarrow", hint="pip install 'natsstream[arrow]'"
            ) from error
        return table_of(self._sync.reconciler.log.records(), self._codec)

    def to_pandas(self) -> pd.DataFrame:
        """Return the loaded messages as a pandas DataFrame, with the columns of `to_arrow`.

        Raises:
            MissingExtraError: pandas or pyarrow is not installed.
        """
        if importlib.util.find_spec("pandas") is None:
            raise MissingExtraError("to_pandas needs pandas", hint="pip install pandas")
        return self.to_arrow().to_pandas()

    async def inventory(self) -> CoreStreamInventory:
        """Return the numbers of the whole stream.

        Cost: one round trip, and a look at every loaded message.
        """
        self._check()
        info = await self._sync.stream.info()
        rules, limits = self._sync.reconciler, self._sync.config.limits()
        if not rules.is_whole:
            seq = rules.log.last_seq or 0
            state = info.state
            return CoreStreamInventory(state.bytes, state.messages, limits, seq, is_exact=False)
        size = sum(logical_size(each.headers, len(each.raw), each.key) for each in self.raw)
        return CoreStreamInventory(size, info.state.messages, limits, rules.log.last_seq or 0)

    async def load(self, *, start_seq: int, no_emit: bool = False) -> None:
        """Load older messages, down to a sequence; 0 is all of them.

        Raises:
            NatsStreamError: The read failed; nothing was loaded.

        Cost: as for a bounded read.
        """
        self._own_loop.check()
        self._check()
        first = max(check_int(start_seq, "start_seq", minimum=0), 1)
        await self._sync.load(first, emits=not check_bool(no_emit, "no_emit"))

    # Changing.

    async def delete(
        self,
        *,
        all: bool = False,  # noqa: A002 - Conat's word.
        last_index: int | None = None,
        seq: int | None = None,
        seqs: Sequence[int] | None = None,
        last_seq: int | None = None,
        key: str | None = None,
    ) -> list[int]:
        """Delete messages, without tombstones; the first argument of this order counts.

        Args:
            all: All messages.
            last_index: All up to a position, inclusive.
            seq: One message.
            seqs: These messages.
            last_seq: All up to a sequence, inclusive.
            key: The current message of a key.

        Returns:
            The sequences that were deleted.

        Raises:
            NotPermittedError: The stream allows no deletion.
            TransportError: No answer; some may be deleted. The call may be repeated.

        Cost: one round trip for a beginning of the stream, one for each other message, 64 in
        flight.
        """
        deletion = self._own.deletion
        check_bool(all, "all")
        with naming(self._names):
            if key is not None and not any((all, seq, seqs, last_seq)) and last_index is None:
                return await deletion.of(seqs=[found] if (found := self.seq_kv(key)) else [])
            return await deletion.of(
                all=all, last_index=last_index, seq=seq, seqs=seqs, last_seq=last_seq
            )

    async def config(self, changes: Mapping[str, object] | None = None) -> Configuration:
        """Set some fields of the configuration, apply its limits, and return all of it.

        Args:
            changes: Values by Conat's names; None leaves a field as it is.

        Raises:
            ConfigError: A field is unknown or its value is not legal; nothing was sent.
            ReadOnlyStreamError: There are changes, and it is only read.
            NatsStreamError: The server refused it.

        Cost: two round trips, four with changes.
        """
        self._own_loop.check()
        self._check()
        with naming(self._names):
            if fields := config_fields(changes):
                self._sync.stream = await self._own.opener.set_config(fields)
                await self._sync.announce(Announcement(is_config_changed=True))
            await self._sync.settle()
            if self._held is not None:
                await self._held.limiter.evict()
        return self._sync.config

    # Changes.

    def on(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function with each event of a name, in order; the arrays have a change already.

        Args:
            event: "change", or "closed" for the end.
            listener: The function; it must not wait. It takes a `Change`; at the end None, or the
                error that ended the sync.

        Raises:
            UsageError: A core stream has no such event.
        """
        self._events.on(event, listener)

    def off(self, event: str, listener: Callable[[Any], object]) -> None:
        """Call a function no more."""
        self._events.off(event, listener)

    def changes(self) -> AsyncGenerator[Change]:
        """Yield the changes from this call on; ends when the stream is closed.

        Raises:
            NatsStreamError: The error that ended the sync.
            SlowReaderError: More than 65,536 changes waited; the next read resumes behind them.
        """
        self._check()
        return self._events.read("change")

    @property
    def msg_ids(self) -> frozenset[str]:
        """The ids that this object has published, the newest 100,000."""
        return frozenset() if self._held is None else frozenset(self._held.writer.msg_ids)

    def __repr__(self) -> str:
        state = (
            "closed"
            if self._is_closed
            else f"{counted(len(self), 'message')}, {counted(self.length_kv, 'key')}"
        )
        return f"<CoreStream {self.name}: {state}>"

    # Internals.

    async def _load(self) -> None:
        if self._held is not None:
            limit_s = self._js.bounded_reconnect_s
            await retried(self._held.lifetime.end_abandoned, limit_s)
        await self._sync.open()
        if isinstance(self._options, CoreStreamOptions) and self._options.config:
            await self._own.limiter.evict()

    async def _end(self) -> None:
        self._is_closed = True
        self._events.close()
        await self._sync.close()
        if self._held is not None:
            await self._held.blobs.close()

    async def _leave(self, created_ns: int) -> None:
        if self._held is not None and self._sync.stream.cached.config.storage == "memory":
            await self._held.lifetime.end_abandoned(created_ns)

    async def _delete_key(self, key: str, options: PublishOptions) -> Stored | None:
        writer = self._own.writer
        return await writer.publish(None, self._tombstone(key, options)) if key in self.kv else None

    def _tombstone(self, key: str, options: PublishOptions) -> PublishOptions:
        if isinstance(self._options, ForeignOptions):
            raise self._read_only()
        return self._own.writer.tombstone(key, options, self._options.tombstone_ttl)

    @property
    def _own(self) -> _Own:
        """The parts that write.

        Raises:
            ReadOnlyStreamError: It is only read.
        """
        self._check()
        if self._held is None:
            raise self._read_only()
        return self._held

    def _read_only(self) -> ReadOnlyStreamError:
        return ReadOnlyStreamError(
            f"core stream over {self.name} is only read",
            hint=f"publish to the subjects with js.publish, and change or delete with "
            f'(await js.streams.get("{self.name}"))',
        )

    def _on_edit(self, edit: Edit) -> None:
        self._events.emit("change", Change(edit, self._codec))

    def _has(self, n: int) -> bool:
        return -len(self) <= check_int(n, "n") < len(self)

    def _check(self) -> None:
        if self._is_closed or not self._is_open:
            state = "closed" if self._is_closed else "not open"
            raise UsageError(f"core stream {self.name} is {state}", hint="js.core_stream() opens")
        self._sync.arrays.check()
