"""A fast ingest: many messages into one stream, with one ack for hundreds of them.

Law: no message is sent twice. The report has each message: stored, not stored, or unknown;
a batch that breaks is told by an error, and the next one begins only when it is asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Final, Literal, Self

from natsstream._wire.headers import HeaderValues
from natsstream.api.features import FAST_BATCH
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.api.stream_requests import stream_info
from natsstream.arguments import check_choice, check_int, check_seconds
from natsstream.errors import (
    BatchBrokenError,
    NatsStreamError,
    ServerError,
    UsageError,
)
from natsstream.publish.admission import check_with_stream
from natsstream.publish.batches.atomic_rules import check_stream
from natsstream.publish.batches.fast_answers import Operation
from natsstream.publish.batches.fast_sender import FastSender, IngestOptions
from natsstream.publish.batches.fast_state import IngestReport, IngestState
from natsstream.publish.destination import Destination
from natsstream.publish.outgoing import (
    Expect,
    Payload,
    Prepared,
    PublishMessage,
    Rollup,
    check_messages,
    prepare,
    prepare_message,
    too_large,
)
from natsstream.publish.schedule import Schedule, Ttl

FLOW_MAX = 500
"""So many messages the server acks at once at most, however many it is asked for."""
OUTSTANDING = 2
ACK_TIMEOUT_S = 10.0
_PAIR = 2
_log = logging.getLogger("natsstream.publisher")
# Stands for no message: the caller's iterable may hold anything.
_NONE: Final = object()


class FastIngest:
    """Writes into a stream by fast batches; made by `Stream.ingest`.

    Use it as `async with stream.ingest() as fast`. Leaving the block waits until the stream has
    everything, and raises where it has not and nobody was told.
    """

    def __init__(
        self,
        api: Api,
        stream: StreamInfo,
        *,
        on_gap: Literal["fail", "ok"],
        ack_every: int,
        max_outstanding_acks: int,
        ack_timeout: float,
        idle_timeout: float,
    ) -> None:
        self._api = api
        self._stream = stream
        self._options = IngestOptions(
            gaps_are_ok=check_choice(on_gap, "on_gap", ("fail", "ok")) == "ok",
            flow=check_int(ack_every, "ack_every", minimum=1, maximum=65_535),
            outstanding=check_int(max_outstanding_acks, "max_outstanding_acks", minimum=1),
            ack_timeout_s=check_seconds(ack_timeout, "ack_timeout"),
            idle_timeout_s=check_seconds(idle_timeout, "idle_timeout"),
        )
        self._sender: FastSender | None = None
        self._ingest = _ingest_of(stream)
        self._lock = asyncio.Lock()
        self._broken: BatchBrokenError | None = None
        self._is_told = False
        self._is_closed = False
        self._destination = Destination(api, stream)
        # The same limit for the stream info as for an ack.
        self._info_s = max(self._options.ack_timeout_s, api.client.options.request_timeout)

    @property
    def report(self) -> IngestReport:
        """The state of the messages; while the ingest is open, some are in flight."""
        return self._ingest.report()

    async def __aenter__(self) -> Self:
        if self._sender is not None:
            raise UsageError("the ingest is open already", hint="make one for each block")
        await self._api.require(FAST_BATCH)
        self._stream = await stream_info(self._api, self._stream.name, timeout=self._info_s)
        check_stream(self._stream.config, atomic=False)
        self._destination = Destination(self._api, self._stream)
        self._ingest = _ingest_of(self._stream)
        self._broken, self._is_told = None, False
        sender = FastSender(self._api, self._ingest, self._stream.name, self._options)
        await sender.open()
        self._sender = sender
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._free()
            return
        sender = await self._close()
        if sender is None or self._is_told:
            return
        report = self.report
        is_whole = sender.failure is None and not report.unknown
        if not (is_whole if self._options.gaps_are_ok else report.is_complete):
            raise self._broken_error(sender.failure)

    async def send(
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
        """Send a message; the arguments are those of `JetStream.publish`.

        Waits while as many messages are in flight as the server has asked for. That it returns does
        not say that the message is stored: `close` does.

        Returns:
            The message's number in this ingest, from 1, by which the report speaks of it.

        Raises:
            UsageError: The ingest is not open, or an argument has no legal value; nothing was
                sent, and the ingest stays open, as after all errors of the call itself.
            WrongStreamError: Another stream captures the subject; nothing was sent.
            BatchBrokenError: The batch ended before its time, by a gap, a refusal or a server that
                does not know it any more; this message was not sent. Its cause says why, `report`
                says what is stored, and `resume` begins another batch.
            RequestTimeoutError: Nothing was acked for `ack_timeout` seconds; this message was not
                sent, unless it is the first of a batch: then the report has it as unknown.

        Cost: no round trip, except for the first message.
        """
        sender = self._sender
        if (
            sender is not None
            and asyncio.get_running_loop() is sender.loop
            and sender.room > 0
            and type(data) is bytes
            and type(subject) is str
            and headers is msg_id is expect is ttl is rollup is schedule is None
            and len(data) <= sender.largest
        ):
            start = sender.starts.get(subject)
            if start is not None:
                return sender.put_plain(start, data)
        return await self._send(
            prepare(subject, data, headers, msg_id, expect, ttl, rollup, schedule)
        )

    async def send_many(self, messages: Iterable[PublishMessage | tuple[str, Payload]]) -> int:
        """Send messages, each with its arguments or as (subject, data).

        Where `natsstream.blocking` is used, one call crosses into the loop's thread once. The
        iterable must give its messages at once: while it waits, the whole connection does.

        Returns:
            The number of the last message in this ingest; `IngestReport.sent`, if none was given.

        Raises:
            NatsStreamError: As `send`. The messages before are in flight, and `report.sent` says
                how many were taken.
        """
        check_messages(messages)
        self._open()
        source = iter(messages)
        while True:
            sender = self._open()
            other = self._take_plain(sender, source) if sender.room > 0 else _NONE
            if other is _NONE:
                other = next(source, _NONE)
            if other is _NONE:
                return self._ingest.sent
            await self._send(prepare_message(other))

    async def resume(self) -> None:
        """Go on with a new batch after the last one broke; nothing is sent again.

        The report has the messages of all batches.

        Raises:
            UsageError: The ingest is not open.

        Cost: waits for the stream's last word on the broken batch, at most `ack_timeout`.
        """
        async with self._lock:
            sender = self._open()
            await self._settle(sender)
            sender.turn()
            self._broken, self._is_told = None, False

    async def close(self) -> IngestReport:
        """Wait until the stream has said what it has of all messages, and return the report.

        Closing twice is fine. It raises nothing for what is not stored: the report says it, and
        with `on_gap="fail"` a WARNING in the log.

        Cost: one round trip, and one more behind a gap in a replicated stream; where the server
        does not answer, `ack_timeout` seconds for each.
        """
        sender = await self._close()
        report, is_expected = self.report, self._is_told or self._options.gaps_are_ok
        if sender is not None and not is_expected and not report.is_complete:
            error = self._broken_error(sender.failure)
            _log.warning("%s: %s", error.message, error.detail or "they were lost on their way")
        return report

    async def _close(self) -> FastSender | None:
        """Return the sender that was closed; None if it was closed before."""
        self._api.client.check_loop()
        async with self._lock:
            sender = self._sender
            if sender is not None:
                try:
                    await self._settle(sender)
                finally:
                    self._free()
            return sender

    # Sending.

    def _take_plain(
        self, sender: FastSender, source: Iterator[PublishMessage | tuple[str, Payload]]
    ) -> object:
        """Take plain messages while there is room; return one that needs more than that.

        `_NONE` says that the room or the source is at its end.
        """
        starts, put, largest = sender.starts, sender.put_plain, sender.largest
        for message in islice(source, sender.room):
            if sender.room <= 0 or type(message) is not tuple or len(message) != _PAIR:
                return message
            subject, data = message
            if type(data) is not bytes or len(data) > largest or type(subject) is not str:
                return message
            start = starts.get(subject)
            if start is None:
                return message
            put(start, data)
        return _NONE

    async def _send(self, message: Prepared) -> int:
        """Send a message, waiting for room, and for the batch's beginning."""
        sender = self._open()
        largest = sender.largest
        size = len(message.block) + len(message.data)
        if size > largest:
            raise too_large(f"message to {message.subject}", size, largest)
        if message.needs or message.expects_last_id:
            await check_with_stream(self._api, message, stream=self._stream)
        if message.subject not in sender.starts:
            await self._destination.check(message.subject)
        async with self._lock:
            sender = self._open()
            while True:
                self._check_whole(sender)
                batch = self._ingest.current
                if not batch.taken:
                    number = self._ingest.sent + 1
                    await sender.begin(message)
                    self._check_whole(sender)
                    return number
                if sender.room > 0:
                    break
                await sender.wait_for_room()
                sender = self._open()
            sender.room -= 1
            number = batch.taken = batch.taken + 1
            start = sender.start_of(message.subject)
            sender.put(start, number, Operation.APPEND, message.block, message.data)
            return batch.base + number

    def _open(self) -> FastSender:
        self._api.client.check_loop()
        if self._sender is None and self._is_closed:
            raise UsageError("the ingest is closed", hint="open another one: stream.ingest()")
        if self._sender is None:
            raise UsageError("the ingest is not open", hint="use it with 'async with'")
        return self._sender

    def _check_whole(self, sender: FastSender) -> None:
        """Raise when the batch is over."""
        if sender.is_over:
            if self._broken is None:
                self._broken = self._broken_error(sender.failure)
            self._is_told = True
            raise self._broken.with_traceback(None)  # Else it would grow with each call.

    def _broken_error(self, failure: NatsStreamError | None) -> BatchBrokenError:
        report = self.report
        refused = report.refused[0] if report.refused else None
        known = failure if isinstance(failure, ServerError) else None
        error = BatchBrokenError(
            f"fast batch into {self._stream.name}: {report.stored} of {report.sent} messages are "
            f"stored, of {sum(span.size for span in report.unknown)} it is not known yet",
            code=known.code if known is not None else 0,
            err_code=known.err_code if known is not None else 0,
            description=known.description if known is not None else "",
            detail=failure.message if failure is not None else "",
            hint="`report` says which; resume() begins another batch",
        )
        error.index = refused.number - 1 if refused is not None else None
        error.__cause__ = failure
        return error

    async def _settle(self, sender: FastSender) -> None:
        """Wait for the stream's last word on the batch; what it does not say stays unknown."""
        try:
            await sender.end()
        except NatsStreamError:
            sender.give_up()
        await self._look_at_leader()

    async def _look_at_leader(self) -> None:
        """Believe the gaps that the same leader has told, through the whole batch.

        nats-server 2.15.1: a new leader may begin before it has stored all that the last one had
        replicated. It reports these messages as missing, and stores them afterwards.
        """
        batch, before = self._ingest.current, _term_of(self._stream)
        if batch.has_doubtful_gaps:
            with suppress(NatsStreamError):  # They stay unknown.
                self._stream = await stream_info(self._api, self._stream.name, timeout=self._info_s)
                batch.is_sure_of_gaps = before is not None and before == _term_of(self._stream)

    def _free(self) -> None:
        sender, self._sender = self._sender, None
        if sender is not None:
            self._is_closed = True
            sender.close()
            sender.give_up()

    def __repr__(self) -> str:
        state = "open" if self._sender is not None else "closed"
        return f"<FastIngest into {self._stream.name}: {self._ingest.sent} sent, {state}>"


def _ingest_of(stream: StreamInfo) -> IngestState:
    is_alone = (stream.config.replicas or 1) == 1
    return IngestState(stream.name, stream.state.last_seq, is_sure_of_gaps=is_alone)


def _term_of(stream: StreamInfo) -> tuple[str, int] | None:
    """Return who leads a stream, and since when; None if the server does not say."""
    cluster = stream.cluster
    return None if cluster is None else (cluster.leader, cluster.leader_since_ns)
