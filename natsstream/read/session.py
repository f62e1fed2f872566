"""One ephemeral consumer of a read: created, pulled from, deleted.

The consumer is ack-none, in memory and unreplicated: it costs the server little and can be
recreated at any sequence. Pulls are bounded by count and bytes, and no more messages are in flight
than the window, so a slow reader holds memory for one window.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, TypeVar

from natsstream._wire.acks import ack_numbers
from natsstream._wire.client import Subscription
from natsstream._wire.deliveries import BULK_BYTES_MIN, Deliveries, DeliveryCutter
from natsstream._wire.headers import HeaderName
from natsstream._wire.parser import Block, Frame
from natsstream._wire.permission_violations import denied_error
from natsstream._wire.status import PullEnd, Status, StatusCode, parse_status
from natsstream.api.consumer_requests import (
    StartedConsumer,
    delete_subject,
    next_subject,
    start_consumer,
)
from natsstream.api.message import Message, messages_of
from natsstream.api.requests import Api
from natsstream.errors import NatsStreamError, PermissionDeniedError, ProtocolError, ServerError
from natsstream.read.read_events import BreakReason
from natsstream.read.runs import Run, hide, run_of
from natsstream.read.start_position import ConsumerStart
from natsstream.units import duration_ns

if TYPE_CHECKING:
    from natsstream._wire.framing import FrameBlock
    from natsstream.events import PermissionDenied

Item = TypeVar("Item")

# Two pulls of 8 MiB: while one is handed over the other is in flight, and the server's own limit
# of 64 MiB pending for a connection stays far. A stream sends its messages and its acks to
# publishers through one queue, so a publisher waits for what the readers have asked for: see
# docs/decisions.md.
WINDOW_BYTES = 16 << 20
WINDOW_MESSAGES_MAX = 65_536
# A delivery's line and ack subject come on top of what the stream counts.
_WIRE_BYTES = 128
_PULL_BYTES_MAX = 24 << 20
_PULL_EXPIRES_S = 30.0
HEARTBEAT_S = 2.0
"""How often an idle server says that it is there."""
_IDLE_HEARTBEATS_MAX = 2
_SEQUENCE_MAX = (1 << 64) - 1
SILENCE_MAX_S = 2.5 * HEARTBEAT_S
"""Two heartbeats missed, and half of one for a busy machine."""
# The server deletes the consumer by itself when its reader was killed.
_INACTIVE_THRESHOLD_S = 60.0
_CLOSE_TIMEOUT_S = 1.0


_REASONS: dict[PullEnd, BreakReason] = {
    PullEnd.CONSUMER_DELETED: "consumer_deleted",
    PullEnd.LEADERSHIP_CHANGE: "leadership_change",
    PullEnd.SERVER_SHUTDOWN: "server_shutdown",
}


class SessionBrokenError(Exception):
    """The consumer or the connection is gone; the reader makes another. Never leaves `streams`."""

    def __init__(self, text: str, reason: BreakReason = "other") -> None:
        super().__init__(text)
        self.reason: BreakReason = reason


class SessionIdleError(SessionBrokenError):
    """The consumer counts messages that it does not send: deleted, or damaged on disk."""


class ReadSession(Generic[Item]):
    """A consumer and its pulls.

    Args:
        api: The connection.
        stream: Name of the stream.
        start: Where the consumer begins.
        last: Sequence to end at; the consumer may deliver later ones, which the reader drops. None
            is a read without an end: pulls stay open while the stream has nothing.
        filters: Subject filters; empty for all.
        message_bytes: Mean size of a stored message, to turn the window's bytes into a count.
        headers_only: Leaves out the payloads.
        convert: Makes columns of a block; None for messages.
        hidden: The first bytes of subjects whose messages are left out of the runs; empty for none.
        window_bytes: Most bytes in flight or not handed over, but for messages far above the mean.
        heartbeat_s: How often an idle server says so, None is `HEARTBEAT_S`; two times end a read
            with an end.

    Attributes:
        node: The server that holds the consumer, known when it is open; empty for a single server.
    """

    def __init__(
        self,
        api: Api,
        stream: str,
        *,
        start: ConsumerStart,
        last: int | None,
        filters: Sequence[str],
        message_bytes: int,
        headers_only: bool = False,
        convert: Callable[[FrameBlock], Item] | None = None,
        hidden: bytes = b"",
        window_bytes: int = WINDOW_BYTES,
        heartbeat_s: float | None = None,
    ) -> None:
        self._api = api
        self._stream = stream
        self._name = f"read-{secrets.token_hex(8)}"
        self.node: str = ""
        self._next_subject = next_subject(api, stream, self._name)
        self._start = start
        self._filters = filters
        self._headers_only = headers_only
        self._convert = convert
        self._hidden = hidden
        self._cut: Callable[[bytes, int, bytes], Block | None] = DeliveryCutter().cut
        # For the parser: columns cost the same for ten messages as for a thousand.
        self.wants_full: bool = convert is not None
        self.bytes_min: int = 0 if self.wants_full else BULK_BYTES_MIN
        self._heartbeat_ns = duration_ns(HEARTBEAT_S if heartbeat_s is None else heartbeat_s)
        share = window_bytes // (message_bytes + _WIRE_BYTES)
        self._window = max(2, min(WINDOW_MESSAGES_MAX, share))
        # A byte limit that the server's largest message fits into, subject and headers included; a
        # larger one is pulled alone. Two pulls must stay below the server's 64 MiB.
        largest = api.client.max_payload_bytes + (64 << 10)
        self._pull_bytes = min(_PULL_BYTES_MAX, max(window_bytes // 2, largest))
        self._is_live = last is None
        # Without an end there is always more to ask for than the window holds.
        self._last = _SEQUENCE_MAX if last is None else last
        self._left = self._last - (start.sequence or 1) + 1
        self._under_way = 0
        self._delivered = 0
        self._buffered = 0
        self._buffered_bytes = 0
        self._has_oversized = False
        self._idle_heartbeats = 0
        # Waited without hearing anything; what a reader does between its waits does not count.
        self._silent_s = 0.0
        self._queue: deque[Run[Item]] = deque()
        self._wake: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._subscription: Subscription | None = None
        self._unwatch: Callable[[], object] = lambda: None
        self._unwatch_denied: Callable[[], object] = lambda: None
        self._creation: asyncio.Task[StartedConsumer] | None = None

    async def open(self) -> int:
        """Make the consumer and ask for the first messages; returns how many it has to deliver."""
        client = self._api.client
        broken = SessionBrokenError("connection changed", "connection")
        self._unwatch = client.watch(lambda: self._fail(broken))
        self._unwatch_denied = client.watch_denied(self._on_denied)
        inbox = client.new_inbox()
        self._subscription = await client.subscribe(
            inbox, self._on_frames, on_denied=self._fail, what=f"read of stream {self._stream}"
        )
        if self._convert is not None:
            from natsstream._wire.framing import cut_block  # noqa: PLC0415 - numpy is an extra.

            self._cut = cut_block
        self._subscription.read_blocks(self)
        one = self._filters[0] if len(self._filters) == 1 else ""
        config: dict[str, object] = {
            "name": self._name,
            **self._start.config(),
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": duration_ns(_INACTIVE_THRESHOLD_S),
        }
        if one:
            config["filter_subject"] = one
        elif self._filters:
            config["filter_subjects"] = list(self._filters)
        if self._headers_only:
            config["headers_only"] = True
        self._creation = asyncio.ensure_future(
            start_consumer(self._api, self._stream, self._name, config)
        )
        # A reader that leaves meanwhile deletes the consumer, so the answer is waited for.
        pending, self.node = await asyncio.shield(self._creation)
        if pending or self._is_live:
            self._pull()
            self._pull()
        if self._failure is not None:
            raise self._failure
        return pending

    async def next_run(self) -> Run[Item] | None:
        """Return the next messages; None when a heartbeat says that there are none at the moment.

        A heartbeat makes None in a read without an end only. Cancelling it loses nothing.

        Raises:
            SessionBrokenError: Nothing more will come from this consumer.
            PermissionDeniedError: The user may not read here.
        """
        await self.wait()
        if not self._queue:
            if self._failure is not None:
                raise self._failure
            self._idle_heartbeats = 0
            return None
        run = self._queue.popleft()
        self._buffered -= run.count
        self._buffered_bytes -= run.size
        self._pull()
        return run

    async def wait(self) -> None:
        """Wait until `next_run` need not wait; cancelling it loses nothing."""
        while not self._queue and self._failure is None:
            if self._is_live and self._idle_heartbeats:
                return
            loop = asyncio.get_running_loop()
            began, self._wake = loop.time(), loop.create_future()
            try:
                async with asyncio.timeout(max(SILENCE_MAX_S - self._silent_s, 0)):
                    await self._wake
            except TimeoutError:
                # Where the loop was busy for that long, what came meanwhile was read first.
                if self._wake.cancelled():
                    self._failure = SessionBrokenError("two heartbeats missed", "heartbeats")
            finally:
                # A reader with little patience comes again and again: its waits add up.
                if self._wake.cancelled():
                    self._silent_s += loop.time() - began
                self._wake = None

    async def close(self, *, confirm: bool = False) -> None:
        """Free everything here and on the server; closing twice is fine.

        A consumer that is being made is waited for, a second at most: the server works requests
        off side by side, and a deletion can overtake the creation. A caller that is cancelled
        meanwhile does not wait, the deletion does.

        Args:
            confirm: Wait until the server has deleted the consumer, a second at most. Without it,
                nobody waits: the server would delete it by itself after a minute.
        """
        self._unwatch()
        self._unwatch_denied()
        self._fail(SessionBrokenError("closed"))
        self._queue.clear()
        if self._subscription is None:
            return
        self._subscription.close()
        self._subscription = None
        creation = self._creation
        if creation is None or _is_denied(creation):
            return
        if creation.done() and not confirm:
            self._send_delete()
            return
        await self._api.client.endings.run(self._delete(creation, confirm=confirm))

    async def _delete(self, creation: asyncio.Task[StartedConsumer], *, confirm: bool) -> None:
        if not creation.done():
            await asyncio.wait([creation], timeout=_CLOSE_TIMEOUT_S)
            # One that has no answer still ends a turn later; nobody waits for it any more.
            creation.add_done_callback(_take_error)
            creation.cancel()
        if _is_denied(creation):
            return
        client = self._api.client
        if not confirm or not client.is_connected:
            self._send_delete()
            return
        with suppress(NatsStreamError):
            await client.request(self._delete_subject, timeout=_CLOSE_TIMEOUT_S)

    @property
    def _delete_subject(self) -> str:
        return delete_subject(self._api, self._stream, self._name)

    def _send_delete(self) -> None:
        """Delete the consumer without waiting; without a connection it is sent after the next.

        It names a reply, although nobody listens to it: so it counts as a request where a
        connection ends and says which messages were not sent.
        """
        client = self._api.client
        with suppress(NatsStreamError):
            reply = client.new_inbox()
            client.write(client.publish_command(self._delete_subject, reply, b"", b""))

    # Sinks of the fast lane: they must not wait and must not raise.

    def _on_frames(self, frames: list[Frame]) -> None:
        # A status has no reply; a message's reply is its ack subject.
        messages = [frame for frame in frames if frame[1]]
        if messages:
            self._on_messages(messages)
        if len(messages) < len(frames):
            for frame in frames:
                if not frame[1]:
                    self._on_status(parse_status(frame[2]))
            self._notify()

    def _on_messages(self, messages: list[Frame]) -> None:
        if self._convert is not None:
            # Every delivery of this consumer can be cut into a block.
            shown = repr(messages[0][1][:80])
            self._fail(ProtocolError("a message came that is no delivery", detail=shown))
            return
        try:
            _, first_delivery, _, _ = ack_numbers(messages[0][1])
            _, last_delivery, _, pending = ack_numbers(messages[-1][1])
        except ProtocolError as error:
            self._fail(error)
            return
        if last_delivery - first_delivery + 1 != len(messages):
            self._fail(SessionBrokenError("deliveries are missing", "out_of_order"))
            return
        self._delivered = last_delivery
        run = run_of(
            [Message(frame) for frame in messages],
            # A stream may hold headers alone.
            size=sum([len(frame[2]) + len(frame[3]) for frame in messages]),
            first_delivery=first_delivery,
            pending=pending,
        )
        if self._hidden:
            run = hide(run, self._hidden)
        # Item is list[Message] wherever there is no converter.
        self._push(run)  # pyright: ignore[reportArgumentType]

    def take(self, data: bytes, start: int) -> Block | None:
        """Cut a block; called by the parser."""
        assert self._subscription is not None  # noqa: S101 - it is what the parser calls us by.
        return self._cut(data, start, self._subscription.sid)

    def put(self, block: Block) -> None:
        """Turn a block into messages or columns; called by the parser."""
        if isinstance(block, Deliveries):
            self._on_deliveries(block)
        else:
            self._on_block(block)

    def _on_deliveries(self, found: Deliveries) -> None:
        count = len(found)
        if found.last_delivery - found.first_delivery + 1 != count:
            self._fail(SessionBrokenError("deliveries are missing", "out_of_order"))
            return
        self._delivered = found.last_delivery
        # Item is list[Message] wherever there is no converter.
        run: Run[list[Message]] = Run(
            messages_of(found),
            count,
            sum(map(len, found.payloads)) + sum(map(len, found.header_blocks)),
            found.sequences[0],
            found.sequences[-1],
            found.first_delivery,
            int(found.pending[-1]),
            lambda: found.sequences,
        )
        if self._hidden:
            run = hide(run, self._hidden)
        self._push(run)  # pyright: ignore[reportArgumentType]

    def _on_block(self, frames: FrameBlock) -> None:
        if self._convert is None or self._failure is not None:
            return
        deliveries = frames.consumer_sequence
        count = len(frames)
        if int(deliveries[-1]) - int(deliveries[0]) + 1 != count:
            self._fail(SessionBrokenError("deliveries are missing", "out_of_order"))
            return
        shown = frames.without(self._hidden) if self._hidden else frames
        try:
            items = self._convert(shown)
        except Exception as error:  # noqa: BLE001 - handed to the reader, who raises it.
            self._fail(error)
            return
        self._push(
            Run(
                items,
                count,
                int(frames.payload_stop[-1] - frames.subject_start[0]),
                int(frames.sequence[0]),
                int(frames.sequence[-1]),
                int(deliveries[0]),
                frames.pending,
                frames.sequence.tolist,
                () if shown is frames else frames.sequences_without(shown),
            )
        )

    def _push(self, run: Run[Item]) -> None:
        self._has_oversized = False
        self._idle_heartbeats = 0
        self._under_way -= run.count
        self._buffered += run.count
        self._buffered_bytes += run.size
        self._left = self._last - run.last
        self._queue.append(run)
        self._notify()

    def _on_status(self, status: Status | None) -> None:
        if status is None:
            return
        if status.code == StatusCode.CONTROL:
            # The range exists, so a server that idles with a pull open has nothing to send: what it
            # counted as pending was deleted meanwhile. A new consumer counts again.
            self._idle_heartbeats += 1
            # A last message that was lost on the way shows in no other's number.
            if self._is_live and (status.number(HeaderName.LAST_CONSUMER) or 0) > self._delivered:
                self._fail(SessionBrokenError("deliveries are missing", "out_of_order"))
            if self._idle_heartbeats >= _IDLE_HEARTBEATS_MAX and not self._is_live:
                self._fail(SessionIdleError("the consumer has nothing to send"))
            return
        end = status.pull_end
        returned = status.number(HeaderName.PENDING_MESSAGES)
        if status.code in (StatusCode.NOT_FOUND, StatusCode.TIMEOUT) or end in (
            PullEnd.BATCH_COMPLETED,
            PullEnd.MESSAGE_TOO_LARGE,
        ):
            if returned is None:
                self._fail(SessionBrokenError("a pull ended without saying how much is left"))
                return
            self._under_way -= returned
            unused = status.number(HeaderName.PENDING_BYTES)
            if end is PullEnd.MESSAGE_TOO_LARGE and unused == self._pull_bytes:
                # Stored under a larger max_payload than the server has now.
                self._has_oversized = True
            self._pull()
        elif status.code == StatusCode.NO_RESPONDERS:
            self._fail(SessionBrokenError("consumer gone", "no_consumer"))
        elif end is not None:
            reason = _REASONS.get(end, "other")
            self._fail(SessionBrokenError(status.description, reason))
        else:
            text = f"read of stream {self._stream}: {status.description}"
            self._fail(ServerError(text, code=status.code, description=status.description))

    def _pull(self) -> None:
        """Ask for more when half of the window is free and the range has more."""
        window = 1 if self._has_oversized else self._window
        room = window - self._under_way - self._buffered
        share = max(1, window // 2)
        count = min(share, self._left - self._under_way)
        if self._buffered_bytes >= self._pull_bytes:
            return  # Far larger than the mean: a pull ends by its bytes, and so must the buffer.
        if room < share or count <= 0 or self._failure is not None or self._subscription is None:
            return
        body: dict[str, object] = {
            "batch": count,
            "expires": duration_ns(_PULL_EXPIRES_S),
            "idle_heartbeat": self._heartbeat_ns,
        }
        if not self._has_oversized:
            body["max_bytes"] = self._pull_bytes
        client = self._api.client
        payload = json.dumps(body).encode()
        command = client.publish_command(
            self._next_subject, self._subscription.subject, b"", payload
        )
        try:
            client.write(command)
        except NatsStreamError as error:
            self._fail(SessionBrokenError(error.message, "connection"))
            return
        self._under_way += count

    def _on_denied(self, event: PermissionDenied) -> None:
        inbox = self._subscription.subject if self._subscription is not None else ""
        if event.operation == "publish" and event.subject in (self._next_subject, inbox):
            self._fail(denied_error(event))

    def _fail(self, error: Exception) -> None:
        if self._failure is None:
            self._failure = error
        self._notify()

    def _notify(self) -> None:
        self._silent_s = 0.0
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _is_denied(creation: asyncio.Task[StartedConsumer]) -> bool:
    """Return True if this user may not make the consumer, so that there is none to delete."""
    if not creation.done() or creation.cancelled():
        return False
    return isinstance(creation.exception(), PermissionDeniedError)


def _take_error(task: asyncio.Task[StartedConsumer]) -> None:
    """Retrieve the error of an abandoned task, so that the loop does not log it."""
    if not task.cancelled():
        task.exception()
