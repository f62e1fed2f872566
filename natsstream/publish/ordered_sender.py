"""Sends a publisher's messages so that none is stored before an earlier one, whatever is lost.

Law: the first message of a run is sent when all before it have ended. Copies of an earlier run that
come late to the stream are duplicates there, or expect what is not there any more.

A message of another writer between two of a run breaks it. Runs then shrink to what went through
the last time and grow with each ack, so that a shared stream costs speed and no order.

After a break, and after a second without an answer, the stream may be on other servers, where what
guards a run would do harm: messages then go one at a time until it was looked at again. Nothing is
sent for a second time before that look: another stream may have the subject by now.
"""

from __future__ import annotations

from collections import deque

from natsstream._wire.encode import publish_command
from natsstream._wire.parser import Frame
from natsstream._wire.permission_violations import denied_error
from natsstream.api.requests import Api
from natsstream.api.stream_info import StreamInfo
from natsstream.errors import ConnectionLostError, NatsStreamError, WrongLastMessageIdError
from natsstream.events import PermissionDenied
from natsstream.publish.ack_window import AckFuture, AckWindow, PendingMessage
from natsstream.publish.destination import Destination, check_teller, taken_over
from natsstream.publish.guards import MessageIdGuard, NoChain, is_unclustered
from natsstream.publish.outgoing import add_header
from natsstream.publish.pipelined_sender import TICK_S, WRITE_BYTES, Sender, lost_error
from natsstream.publish.pub_ack import PubAck, read_ack
from natsstream.publish.publish import RETRY_WAIT_S, overdue_error
from natsstream.publish.publisher_options import PublisherOptions

# A server needs longer than this to be started again in a cluster and to give a stream replicas.
_SEEN_FOR_S = 1.0


class _Placed(PendingMessage):
    """A message with its place in the line.

    Attributes:
        number: Counts up from 1.
        run: The run that it was sent in last; 0 before that.
        is_first: Whether it was the run's first.
    """

    __slots__ = ("block", "data", "is_first", "msg_id", "number", "run", "start")

    def __init__(
        self,
        number: int,
        subject: str,
        future: AckFuture,
        parts: tuple[bytes, bytes, bytes, str],
        give_up: float,
    ) -> None:
        self.start, self.block, self.data, self.msg_id = parts
        size = len(self.start) + len(self.block) + len(self.data)
        super().__init__(subject, future, size, 0.0, give_up)
        self.number = number
        self.run = 0
        self.is_first = False


class OrderedSender(Sender):
    """Sends in runs; see the top of the file."""

    def __init__(
        self,
        api: Api,
        options: PublisherOptions,
        window: AckWindow,
        reply_prefix: bytes,
        destination: Destination,
    ) -> None:
        super().__init__(api, options, window)
        self._prefix_size = len(reply_prefix)
        self._destination = destination
        self._next_look = 0.0
        self._is_look_due = False
        # Whether the stream must be looked at before anything is sent for a second time.
        self._is_in_doubt = False
        self._may_use_ids = False
        self._ids = MessageIdGuard()
        self._guard = NoChain()
        self._max_pending = options.max_pending
        self._limit_max = 1
        self._heard_at = self._loop.time()
        self._added = 0
        # All without an ack, in order; and those of them that this run has not sent yet.
        self._line: dict[int, _Placed] = {}
        self._unsent: deque[_Placed] = deque()
        self._run = 1
        self._limit = self._limit_max
        self._flying = 0
        self._gained = 0
        if destination.stream is not None:
            self._seen(destination.stream)

    def add(self, subject: str, start: bytes, block: bytes, data: bytes, msg_id: str) -> AckFuture:
        if self._end is not None:
            raise self._end.with_traceback(None)  # Else it would grow with each call.
        loop = self._loop
        now = loop.time()
        self._added += 1
        future = AckFuture(loop=loop)
        parts = (start, block, data, msg_id)
        entry = _Placed(self._added, subject, future, parts, now + self._retry_for)
        self._window.enter(entry)
        self._line[self._added] = entry
        self._unsent.append(entry)
        self._write_soon()
        self._tick_by(now + self._ack_timeout)
        return future

    def _write_soon(self) -> None:
        if not self._is_write_due:
            self._is_write_due = True
            self._loop.call_soon(self.write)

    def _seen(self, stream: StreamInfo) -> None:
        """Take what the stream is now: it decides how many messages are in flight."""
        self._heard_at = self._loop.time()
        self._is_look_due = False
        self._may_use_ids = is_unclustered(stream)
        self._write_soon()

    def _doubt(self) -> None:
        """Send one message at a time until the stream was looked at again."""
        if self._may_use_ids:
            self._may_use_ids = False
            self._is_look_due = True
            self._guard, self._limit_max, self._limit = NoChain(), 1, 1

    def _choose_guard(self, now: float) -> None:
        if self._may_use_ids and now - self._heard_at > _SEEN_FOR_S:
            self._doubt()
        if self._may_use_ids and not self._flying and self._guard is not self._ids:
            self._guard = self._ids
            self._guard.begin()
            self._limit_max = self._limit = self._max_pending

    async def _look_again(self) -> None:
        run = self._run
        subjects = {entry.subject for entry in self._line.values() if entry.run}
        try:
            strays = await self._destination.strays(subjects)
        except NatsStreamError:  # It stays due.
            if self._is_in_doubt:
                self._go_on_later()
            return
        finally:
            self._looking = None
        if self._destination.stream is not None:
            self._seen(self._destination.stream)
        if run == self._run:
            self._is_in_doubt = False
            self._drop_strays(strays)
        self._write_soon()

    def _drop_strays(self, strays: set[str]) -> None:
        """End what was sent before and would be stored by another stream now."""
        for entry in list(self._line.values()):
            if entry.run and entry.subject in strays:
                del self._line[entry.number]
                self._window.fail(entry, taken_over(entry.subject, self._destination.name))
        self._window.wake()

    def _look_soon(self, now: float) -> None:
        if self._looking is None and now >= self._next_look:
            self._next_look = now + _SEEN_FOR_S
            self._looking = self._loop.create_task(self._look_again())

    def write(self) -> None:
        self._is_write_due = False
        if self._again is not None or not self._writer.is_connected:
            return
        now = self._loop.time()
        self._choose_guard(now)
        guard, unsent, line = self._guard, self._unsent, self._line
        deadline = now + self._ack_timeout
        payload_max = self._client.max_payload_bytes
        commands: list[bytes] = []
        size = 0
        while unsent and self._flying < self._limit:
            entry = unsent[0]
            if len(entry.block) + len(entry.data) + guard.line_bytes_max > payload_max:
                # With another line the server would break the connection: it begins a run.
                if self._flying:
                    break
                guard.begin()
            if entry.number not in line:
                unsent.popleft()
                continue  # An answer to an earlier copy came late.
            if entry.run and now >= entry.give_up:
                unsent.popleft()
                del line[entry.number]
                self._drop(entry, now)  # The stream may have forgotten the first copy's id.
                continue
            if entry.run and self._is_in_doubt:
                if self._looking is None:
                    self._looking = self._loop.create_task(self._look_again())
                break
            unsent.popleft()
            expected = guard.next(entry.msg_id)
            entry.run, entry.is_first, entry.deadline = self._run, expected is None, deadline
            block = entry.block if expected is None else add_header(entry.block, *expected)
            token = b"%x-%x" % (entry.number, self._run)
            commands.append(publish_command(entry.start, token, block, entry.data))
            self._flying += 1
            size += entry.size
            if size >= WRITE_BYTES and not self._put(commands):
                break
            if not commands:
                size = 0
        if self._flying:
            self._tick_by(deadline)
        if commands:
            self._put(commands)
        if self._is_look_due and unsent:
            self._look_soon(now)

    def _put(self, commands: list[bytes]) -> bool:
        run = b"".join(commands)
        commands.clear()
        try:
            self._writer.write(run)
        except ConnectionLostError as error:  # Below, too much waits to be written already.
            self._go_on_later()
            self._begin_run(error)
            return False
        except NatsStreamError as error:  # The connection is closed.
            self._fail_all(error)
            return False
        return True

    def on_acks(self, frames: list[Frame]) -> None:
        self._writer.heard()
        self._heard_at = self._loop.time()
        for frame in frames:
            number, run = _read_token(frame[0][self._prefix_size :])
            entry = self._line.get(number)
            if entry is None:
                continue
            try:
                ack = read_ack(frame, entry.subject)
                check_teller(entry.subject, ack.stream, ack.sequence, self._destination.name)
            except NatsStreamError as error:
                # Of an earlier run's copy only good news counts: a later one is in flight.
                if run == self._run:
                    self._refuse(entry, error)
            else:
                self._store(entry, ack)
        self._window.wake()
        self.write()

    def _store(self, entry: _Placed, ack: PubAck) -> None:
        """Let a message leave that stands in the stream."""
        del self._line[entry.number]
        self._window.settle(entry, ack)
        if entry.run == self._run:
            self._flying -= 1
            self._gained += 1
            self._limit = min(self._limit_max, self._limit + 1)

    def _refuse(self, entry: _Placed, error: NatsStreamError) -> None:
        """Begin a new run, without the message when it is refused for good."""
        is_held_back = not entry.is_first and isinstance(error, WrongLastMessageIdError)
        if not is_held_back:
            is_late = self._loop.time() + RETRY_WAIT_S >= entry.give_up
            if is_late or not error.retryable:
                del self._line[entry.number]
                self._window.fail(entry, error)
            else:
                self._go_on_later()
        self._begin_run(error)

    def _go_on_later(self) -> None:
        if self._again is None:
            self._again = self._loop.call_later(RETRY_WAIT_S, self._go_on)

    def _go_on(self) -> None:
        self._again = None
        self.write()

    def _begin_run(self, error: NatsStreamError) -> None:
        """Line up all that have no ack; those that may not be sent again fail with the error."""
        now = self._loop.time()
        if error.retryable:
            self._is_in_doubt = True
            self._doubt()
        for entry in list(self._line.values()):
            if entry.run and now >= entry.give_up:
                del self._line[entry.number]
                self._window.fail(entry, error)
        self._unsent = deque(self._line.values())
        self._run += 1
        self._limit = min(self._limit_max, max(1, self._gained))
        self._flying = self._gained = 0
        self._guard.begin()
        self._write_soon()

    def _resume(self) -> None:
        self.write()

    def _on_break(self) -> None:
        self._begin_run(lost_error())

    def on_denied(self, event: PermissionDenied) -> None:
        for entry in self._line.values():
            if entry.run == self._run and entry.subject == event.subject:
                self._refuse(entry, denied_error(event))
                self._window.wake()
                return

    def _tick(self) -> None:
        """Begin a new run when an ack is overdue; end what has waited for its turn for too long."""
        self._timer = None
        now = self._loop.time()
        overdue: _Placed | None = None
        for entry in list(self._line.values()):
            if entry.run == self._run:
                if overdue is None and entry.deadline <= now:
                    overdue = entry
            elif now >= self._last_due(entry):
                del self._line[entry.number]
                self._drop(entry, now)
        if overdue is not None:
            self._begin_run(overdue_error(overdue.subject, self._ack_timeout))
        if self._line:
            dues = (
                entry.deadline if entry.run == self._run else self._last_due(entry)
                for entry in self._line.values()
            )
            self._tick_by(max(min(dues), now))
        self._window.wake()

    def _tick_by(self, due: float) -> None:
        """See that somebody looks soon after a deadline."""
        if self._timer is not None:
            if self._timer.when() <= due + TICK_S:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due + TICK_S, self._tick)

    def entries(self) -> list[PendingMessage]:
        return list(self._line.values())

    def _last_due(self, entry: _Placed) -> float:
        """Return until when a message may wait to be sent, for the first time or again."""
        return entry.give_up if entry.run else entry.give_up + self._ack_timeout

    def _forget(self) -> None:
        self._flying = 0
        self._unsent.clear()
        self._line = {}


def _read_token(token: bytes) -> tuple[int, int]:
    """Return number and run out of a reply's last token; zeros for what is none of ours."""
    number, _, run = token.partition(b"-")
    try:
        return int(number, 16), int(run, 16)
    except ValueError:
        return 0, 0
